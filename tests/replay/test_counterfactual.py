"""Decision logs, replayed, and what another policy would have found with as many requests."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from handmade import HOST, Fields, Watching, course, file, moved, page, site_of

from scrapy_focus import ConfigError, EventLog, FilesGoal, Plateau
from scrapy_focus.core.log import read_log
from scrapy_focus.lab.replay.counterfactual import counterfactual
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.policy import TagPath

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SITE = {
    "/": page("/p", "/q", "/r"), "/p": page("/1.csv", "/2.csv"), "/q": page("/3.csv"), "/r": moved("/s"), "/s": page("/4.csv"),
    **{f"/{i}.csv": file(str(i)) for i in range(1, 5)},
}  # fmt: skip


def lines(*events: str | tuple[str, str, float] | tuple[str, str, float, str]) -> list[dict[str, Any]]:
    """A log of ``(method, path, reward)`` each, perhaps with an error; a path alone was never answered."""
    log: list[dict[str, Any]] = []
    for number, event in enumerate(events, 1):
        method, path = ("GET", event) if isinstance(event, str) else event[:2]
        log.append({"event": "pick", "id": number, "url": HOST + path, "method": method})
        if not isinstance(event, str):
            error = event[3] if len(event) == 4 else ""
            log.append({"event": "outcome", "id": number, "reward": event[2], "error": error})
    return log


def write(path: Path, events: Sequence[dict[str, Any]]) -> Path:
    """Write a decision log."""
    text = "".join(json.dumps(event) + "\n" for event in events)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_shares_by_hand(tmp_path: Path) -> None:
    """Depth first would have taken the third page; a part of its requests was never recorded."""
    part: dict[str, Fields] = {path: SITE[path] for path in ("/", "/p", "/1.csv", "/2.csv", "/q", "/r", "/s")}
    site = site_of(tmp_path, part)
    log = write(
        tmp_path / "log",
        lines(
            ("GET", "/", 0.0), ("GET", "/p", 0.0), ("GET", "/1.csv", 5.0), ("GET", "/3.csv", 1.0), ("GET", "/x", 7.0)
        ),
    )
    answer = counterfactual(log, DepthFirst(last_first=True), FilesGoal(), site)
    assert course(answer.logged, site) == ["/", "/p", "/1.csv"]
    assert answer.reproduced == 3 / 5, "nothing led to the others: the page with the one was not asked for"
    assert answer.logged.found[-1] == 5
    assert answer.other.requests == 3
    assert course(answer.other, site) == ["/", "/r", "/s"]
    assert (answer.coverage, answer.shared) == (1.0, 1 / 2)
    more = counterfactual(log, DepthFirst(last_first=True), FilesGoal(), site, budget=7)
    assert course(more.other, site) == ["/", "/r", "/s", "/4.csv", "/q", "/3.csv", "/p"]
    assert more.coverage == pytest.approx(4 / 6)
    assert more.shared == pytest.approx(2 / 6), "3.csv was in the log, and could not be replayed"
    assert more.other.found[-1] == 1, (
        "what 3.csv earned then, though it is not recorded; 4.csv may have been worth something"
    )
    assert str(more) == (
        "the logged crawl found 5 with 3 requests, and this policy finds at least 1 with 7; 66.7% of what it asks for was "
        "recorded, 33.3% is what the logged crawl asked for too, and 60.0% of the log could be replayed"
    )


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
@pytest.mark.parametrize("policy", [BreadthFirst, Random, TagPath])
def test_a_log_is_replayed_as_it_was(tmp_path: Path, policy: Any, name: str) -> None:
    """HEADs, redirects and all; and the same policy finds the same again."""
    site = site_of(tmp_path, SITE)
    crawled = simulate(policy(), FilesGoal(), site, budget=12, seed=3, log=EventLog(tmp_path / name))
    answer = counterfactual(tmp_path / name, policy(), FilesGoal(), site, seed=3)
    assert answer.reproduced == answer.coverage == answer.shared == 1
    assert answer.logged.asked == answer.other.asked == crawled.asked
    assert answer.logged.found.tolist() == answer.other.found.tolist() == crawled.found.tolist()
    assert answer.logged.heads.tolist() == crawled.heads.tolist()


@pytest.mark.parametrize("options", [{}, {"concurrency": 3, "latency": 1.0}])
def test_a_log_of_many_in_flight_is_replayed(tmp_path: Path, options: dict[str, Any]) -> None:
    """All of it: what is linked by a page that is still on its way is waited for."""
    site = site_of(tmp_path, SITE)
    simulate(DepthFirst(), FilesGoal(), site, concurrency=4, latency=1.0, log=EventLog(tmp_path / "log"))
    answer = counterfactual(tmp_path / "log", BreadthFirst(), FilesGoal(), site, **options)
    assert answer.reproduced == 1
    assert answer.logged.asked == [event["url"] for event in read_log(tmp_path / "log") if event["event"] == "pick"]


def test_what_the_log_says_goes_before_the_goal(tmp_path: Path) -> None:
    """Items that pipelines let through cannot be had again; what it was too late for says nothing."""
    site = site_of(tmp_path, SITE)
    log = write(
        tmp_path / "log",
        lines(
            ("GET", "/", 0.0), ("GET", "/p", 0.0), ("HEAD", "/1.csv", 1.0), ("GET", "/1.csv", 0.0),
            ("GET", "/2.csv", 3.0), ("GET", "/r", 0.5), ("GET", "/4.csv", 0.0, "budget"),
        ),
    )  # fmt: skip
    answer = counterfactual(log, BreadthFirst(), FilesGoal(), site, budget=100)
    assert answer.logged.found[-1] == 3 + 0.5 + 1
    assert answer.other.found[-1] == answer.other.exhaustive.worth == 3 + 0.5 + 1 + 1, "3.csv as the goal says"


def test_urls_are_compared_in_their_canonical_form(tmp_path: Path) -> None:
    """A live crawl may have met another spelling first."""
    site = site_of(tmp_path, {"/": page("/q?b=2&a=1"), "/q?b=2&a=1": file()})
    log = write(tmp_path / "log", lines(("GET", "/", 0.0), ("GET", "/q?a=1&b=2#x", 4.0)))
    answer = counterfactual(log, BreadthFirst(), FilesGoal(), site)
    assert (answer.reproduced, answer.logged.found[-1], answer.other.found[-1]) == (1, 4, 4)


def test_released_and_unanswered_picks_are_left_out(tmp_path: Path) -> None:
    """They were not sent, or nobody knows what came of them."""
    site = site_of(tmp_path, SITE)
    events = lines(("GET", "/", 0.0), "/p", ("GET", "/q", 0.0), "/r")
    events.insert(3, {"event": "release", "id": 2})
    answer = counterfactual(write(tmp_path / "log", events), BreadthFirst(), FilesGoal(), site)
    assert course(answer.logged, site) == ["/", "/q"]
    assert answer.reproduced == 1
    assert answer.other.requests == 2


def test_ids_may_come_again(tmp_path: Path) -> None:
    """In the next run of a crawl that was killed; of a URL that was had twice, the first outcome counts."""
    site = site_of(tmp_path, SITE)
    first = lines(("GET", "/", 0.0), ("GET", "/p", 0.0), "/q")
    second = lines(("GET", "/1.csv", 2.0), ("GET", "/q", 0.0), ("GET", "/2.csv", 4.0), ("GET", "/1.csv", 0.0))
    answer = counterfactual(write(tmp_path / "log", first + second), BreadthFirst(), FilesGoal(), site)
    assert course(answer.logged, site) == ["/", "/p", "/1.csv", "/q", "/2.csv"]
    assert answer.logged.found.tolist() == [0, 0, 0, 2, 2, 6]
    assert answer.reproduced == 5 / 6


def test_what_was_never_recorded_is_not_reproduced(tmp_path: Path) -> None:
    """Though a link leads there."""
    site = site_of(tmp_path, {"/": page("/p"), "/p": page("/x")})
    log = write(tmp_path / "log", lines(("GET", "/", 0.0), ("GET", "/p", 0.0), ("GET", "/x", 0.0), ("GET", "/y", 0.0)))
    answer = counterfactual(log, BreadthFirst(), FilesGoal(), site)
    assert answer.reproduced == 2 / 4
    assert answer.logged.missed == 1
    assert answer.coverage == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_the_log_of_a_crawl_that_was_killed_is_replayed_to_where_it_ends(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The cut may be anywhere, in the middle of a line or of a compressed block."""
    site = site_of(tmp_path, SITE)
    simulate(BreadthFirst(), FilesGoal(), site, log=EventLog(tmp_path / name))
    log = tmp_path / name
    log.write_bytes(log.read_bytes()[: -20 if name.endswith(".gz") else -300])
    answer = counterfactual(log, BreadthFirst(), FilesGoal(), site)
    assert answer.reproduced == 1
    assert 3 <= answer.logged.requests < 9
    assert "is cut off" in caplog.text


def test_options_are_those_of_a_simulation(tmp_path: Path) -> None:
    """All can be given; those that make no sense for the replay of the log are for the other policy alone."""
    site = site_of(tmp_path, SITE)
    simulate(BreadthFirst(), FilesGoal(), site, log=EventLog(tmp_path / "log"))
    answer = counterfactual(
        tmp_path / "log", BreadthFirst(), FilesGoal(), site.path, ignored=["csv"], budget=4,
        stop=Plateau(window=2, slope=1.0, decay=1.0, patience=1), truth=SiteTruth(site, FilesGoal()), retries=0,
        latency=1.0,
    )  # fmt: skip
    assert (answer.logged.requests, answer.logged.found[-1]) == (len(SITE), 4)
    assert (answer.other.requests, answer.other.stopped) == (2, "plateau")


class Once(FilesGoal):
    """Pays for one file only."""

    paid = False

    def __call__(self, outcome: Any) -> float:
        worth = 0.0 if self.paid else super().__call__(outcome)
        self.paid = self.paid or worth > 0
        return worth


def test_a_goal_that_remembers_starts_afresh_for_the_other_policy(tmp_path: Path) -> None:
    """The replay of the log uses a copy of it."""
    site = site_of(tmp_path, SITE)
    answer = counterfactual(write(tmp_path / "log", lines(("GET", "/", 0.0))), BreadthFirst(), Once(), site, budget=100)
    assert answer.other.found[-1] == answer.other.exhaustive.worth == 1


def test_a_log_of_another_site_is_a_mistake(tmp_path: Path) -> None:
    """As is one without picks, and one that is not there; the message says what to look at."""
    site = site_of(tmp_path, SITE)
    other = lines(("GET", "//b.example/", 0.0))
    other[0]["url"] = "http://b.example/"
    for events in (other, []):
        with pytest.raises(
            ConfigError, match=r"nothing in the decision log .*log is on the recorded site .*site.sqlite"
        ):
            counterfactual(write(tmp_path / "log", events), BreadthFirst(), FilesGoal(), site)
    with pytest.raises(ConfigError, match=r"no\.jsonl cannot be read"):
        counterfactual(tmp_path / "no.jsonl", BreadthFirst(), FilesGoal(), site)
    (tmp_path / "bad").write_text('{"event": "pick", "id": 1}\nwhat\n')
    with pytest.raises(ConfigError, match=r"line 2 of .*bad"):
        counterfactual(tmp_path / "bad", BreadthFirst(), FilesGoal(), site)


def test_the_replay_makes_no_choice_of_its_own(tmp_path: Path) -> None:
    """What the log does not name is left alone, even if nothing else is left."""
    site = site_of(tmp_path, SITE)
    log = write(tmp_path / "log", lines(("GET", "/", 0.0)))
    answer = counterfactual(log, Watching(), FilesGoal(), site)
    assert answer.logged.asked == [f"{HOST}/"]
    assert answer.logged.stopped == ""
