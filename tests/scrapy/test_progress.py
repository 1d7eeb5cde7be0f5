"""Progress of a running crawl: how far it is, how long it takes, what it found, and by which links."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scrapy import Request

from scrapy_focus.core.abilities import PolicyTable
from scrapy_focus.core.budget import Rate
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.goal import ItemsGoal, noun_of
from scrapy_focus.core.types import Outcome, Pick
from scrapy_focus.engine.finds import Finds, unlike
from scrapy_focus.engine.progress import Speed, Tables, View, draw_panel, kinds, progress
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.policies.orderings import BreadthFirst
from tests.examples import n_examples

IDLE = SimpleNamespace(put_off_hosts=(0, 0.0))  # no host is put off
DEFAULTS = SimpleNamespace(own_policy=None)


def outcome(url: str, arm: int = 0, mime: str = "text/csv") -> Outcome:
    return Outcome(Pick(0, 1, url, "", 0, arm, 0.0, None, -1, "GET", b""), status=200, mime=mime)


def note(finds: Finds, arm: int, text: str, page: str, *, url: str = "http://a/x.csv", earned: float = 1.0) -> None:
    """Report the outcome of a link of an arm."""
    request = Request(url, headers={"Referer": page}, meta={"link_text": text})
    entry: Any = SimpleNamespace(request=request)
    finds.note(entry, outcome(url, arm), earned)


def status(sent: float, passed: float, rate: str = "", **limits: float) -> Any:
    used = {"requests": sent, "bytes": sent * 1000, "seconds": passed}
    at_rate = Rate.of(rate) if rate else None
    return SimpleNamespace(used=used, limits={"requests": None, "bytes": None, "seconds": None} | limits, rate=at_rate)


def test_arms_in_words() -> None:
    """Text of the links, with placeholders for numbers, and their pages; links without reward count as pulls."""
    finds = Finds()
    for i in range(10):
        note(finds, 3, f"Download (CSV, {i} kB)", f"http://a/publication/{i}/data")
    note(finds, 3, "elsewhere", "http://a/", earned=0.0)
    note(finds, 5, "", "http://a/dataset/1")
    assert finds.paid(3) == [
        ("links like “Download (CSV, … kB)” on pages like /publication/…", 10.0, 11),
        ("links to csv on pages like /dataset/…", 1.0, 1),
    ]
    assert dict(finds.kinds) == {"csv": 11}
    assert kinds(finds) == "11 csv"
    assert list(finds.last) == ["x.csv"] * 3


def test_no_two_arms_have_the_same_name() -> None:
    """Arms with the same description are one; equal names of a policy are numbered."""
    finds = Finds()
    for arm in (1, 2, 3):
        note(finds, arm, "Report", "http://a/p/1")
    assert finds.paid(3) == [("links like “Report” on pages like /p/…", 3.0, 3)]
    assert unlike(["a", "a", "a"]) == ["a", "a (2)", "a (3)"]


def test_a_sample_in_bounded_memory() -> None:
    """However many arms, texts, pages and types there are."""
    finds = Finds()
    letters = "abcdefghij"
    for i in range(12_000):
        word = "".join(letters[int(digit)] for digit in str(i))
        note(finds, i, word, f"http://a/{word}/1", url=f"http://a/x.{word}")
        note(finds, 0, word, f"http://a/{word}/1")
    assert len(finds._pulls) <= 10_000
    assert len(finds._arms) <= 500
    assert len(finds.kinds) <= 20
    arm = finds._arms[0]
    assert max(len(arm.texts), len(arm.pages), len(arm.kinds)) <= 20
    assert len(finds.paid(3)) == 3


def test_the_time_that_is_left() -> None:
    """By the delay at the start, then by the speed of the last minute; the budget that ends first counts."""
    speed = Speed(delay=2.0)
    assert speed.left(status(0, 0)) is None
    assert speed.left(status(0, 0, requests=100)) == 200
    speed.note(status(0, 0))
    speed.note(status(20, 10))
    assert speed.left(status(20, 10, requests=100)) == pytest.approx(40)
    assert speed.left(status(20, 10, requests=100, bytes=30_000)) == pytest.approx(5)
    assert speed.left(status(20, 10, requests=100, seconds=15)) == pytest.approx(5)
    speed.note(status(30, 100))
    assert speed.left(status(30, 100, requests=40)) == 20, "the minute before says nothing any more"
    assert speed.left(status(30, 100, rate="6/minute", requests=40)) == 100, "a rate says how long it takes"


def view(finds: Finds, advice: str = "") -> View:
    policy = BreadthFirst()
    crawl = Crawl(policy, frontier=memory_frontier)
    host: Any = SimpleNamespace(
        status=crawl.status, policy=BreadthFirst, pace=IDLE, shown=list, noun="files", config=DEFAULTS
    )
    return View(host, finds, Speed(1.0), advice)


def test_the_panel_names_a_policy_that_was_chosen() -> None:
    """The title has the class of the policy only if the settings name it."""
    for own, is_named in ((None, False), (BreadthFirst, True)):
        shown = view(Finds())
        shown.host.config = SimpleNamespace(own_policy=own)  # type: ignore[assignment]
        console = Console(file=io.StringIO(), width=100)
        console.print(draw_panel(shown, 100))
        assert ("BreadthFirst" in console.file.getvalue()) == is_named  # type: ignore[attr-defined]


def test_what_was_found_has_a_name() -> None:
    """That of the goal, for one find, too; without one it is a target."""
    seen, host = Crawl(BreadthFirst(), frontier=memory_frontier).status(), view(Finds()).host
    nouns: list[tuple[str, float, str]] = [
        (noun_of(FilesGoal()), 2.0, "2 files"), (noun_of(ItemsGoal()), 1.0, "1 item"),
        ("pages of 9 kB", 1.0, "1 page of 9 kB"),
        (noun_of(lambda _: 1.0), 0.5, "0.5 targets"),
    ]  # fmt: skip
    for noun, rewards, said in nouns:
        now = replace(seen, rewards=rewards)
        named: Any = SimpleNamespace(**{**vars(host), "noun": noun, "status": lambda best, now=now: now})
        console = Console(file=io.StringIO(), width=100)
        console.print(draw_panel(View(named, Finds(), Speed(1.0)), 100))
        assert f" requests, {said}" in progress(named)[0]
        assert said in console.file.getvalue()  # type: ignore[attr-defined]


def test_one_is_said_as_one() -> None:
    """Each noun of the panel is in the singular after 1."""
    counts = dict.fromkeys(
        ("outcome/too_large", "link/dropped", "outcome/http_error", "failure/cut", "error/x", "browser/read"), 1
    )
    now = replace(
        Crawl(BreadthFirst(), frontier=memory_frontier).status(), waiting=1, asleep=1, awake=1, counts=counts, next_due=9.0,
        used={"requests": 1, "bytes": 0, "seconds": 1},
    )  # fmt: skip
    seen = {"status": lambda best: now, "pace": SimpleNamespace(put_off_hosts=(1, 2.0))}
    said = "\n".join(progress(SimpleNamespace(**{**vars(view(Finds()).host), **seen})))  # type: ignore[arg-type]
    for line in (
        "1 request, ", "1 link of 1 kind queued", "1 link is not due yet", "1 answer skipped as too large", "1 link given up",
        "1 error response", "1 failed connection: 1 cut", "1 error, see", "1 page rendered, for 0 further requests",
        "1 host paused",
    ):  # fmt: skip
        assert line in said, line


@pytest.mark.parametrize(
    ("cost", "ends_in", "said"),
    [
        (63.4, 600, "the next one is expected to cost 63 requests"),
        (0.2, 101, "the next one is expected to cost 1 request"),
        (2e5, 100,
         "the next one is expected to cost 200,000 requests; the crawl ends in 100 requests "
         "unless one is found or expected for less"),
        (math.inf, 600, "the next one is expected to cost inf requests"),
        (250.0, 0, "the next one is expected to cost 250 requests"), (63.4, None, ""), (None, 600, ""),
    ],
)  # fmt: skip
def test_what_the_next_find_costs(cost: float | None, ends_in: int | None, said: str) -> None:
    """Where there is a limit to it; and that the crawl ends soon, if it does."""
    now = replace(Crawl(BreadthFirst(), frontier=memory_frontier).status(), cost=cost, ends_in=ends_in)
    host: Any = SimpleNamespace(**{**vars(view(Finds()).host), "status": lambda best: now})
    assert [line for line in progress(host) if "cost" in line] == ([said] if said else [])


@settings(max_examples=n_examples(40), deadline=None)
@given(text=st.text(max_size=400), width=st.integers(8, 140))
def test_hostile_names_and_narrow_terminals(text: str, width: int) -> None:
    """Text of a site is escaped, is not markup, and no line is wider than the terminal."""
    finds = Finds()
    note(finds, 0, "[bold]\x1b]0;x\x07" + text, f"http://a/{text}/1", url=f"http://a/{text}.csv")
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(draw_panel(view(finds, "Ctrl-C stops."), width))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(line.isprintable() for line in shown.split("\n"))
    lines = progress(view(finds).host, finds)
    assert all(line.isprintable() and len(line) < 700 for line in lines)
    assert any("links like “[bold]\\x1b" in line for line in lines)


class Counting(BreadthFirst):
    """Shows how often it was asked."""

    asked = 0

    def tables(self) -> list[PolicyTable]:
        self.asked += 1
        return [PolicyTable("Ants", ("ant", "eggs"), [(f"ant {i}", self.asked) for i in range(16)])]


def test_the_panel_has_tables_of_the_policy() -> None:
    """Their first rows, as many as the terminal has room for."""
    crawl = Crawl(Counting(), frontier=memory_frontier)
    host: Any = SimpleNamespace(
        status=crawl.status, policy=Counting, pace=IDLE, shown=list, noun="files", config=DEFAULTS
    )
    shown = View(host, Finds(), Speed(1.0), "Ctrl-C stops.", crawl.forecasts.tables())
    rows = {}
    for height in (None, 60, 20, 17, 16, 3):
        console = Console(file=io.StringIO(), width=100)
        console.print(draw_panel(shown, 100, height))
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert "Ctrl-C stops." in lines[-2]
        assert height is None or height < 16 or len(lines) <= height
        rows[height] = len([line for line in lines if "  ant " in line and "eggs" not in line])
        assert any("Ants, " in line for line in lines) == bool(rows[height])
    assert (rows[None], rows[60], rows[3]) == (8, 8, 0)
    assert rows[20] > rows[17] > 0


def test_the_panel_has_what_the_goal_says() -> None:
    """Its sentences and its alarm are lines of the panel and of the log, in words that harm no terminal."""

    class Telling(ItemsGoal):
        alarm = "the topic drifts \x1b[31m"

        def said(self) -> list[str]:
            return ["about 3 % are on the topic"]

    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, goal=Telling())
    host: Any = SimpleNamespace(
        status=crawl.status, policy=BreadthFirst, pace=IDLE, shown=list, noun="pages", config=DEFAULTS
    )
    console = Console(file=io.StringIO(), width=100)
    console.print(draw_panel(View(host, Finds(), Speed(1.0), ""), 100))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "about 3 % are on the topic" in shown
    assert "the topic drifts \\x1b[31m" in shown
    assert "about 3 % are on the topic; the topic drifts \\x1b[31m" in "; ".join(progress(host))


def test_a_policy_is_asked_for_tables_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in five seconds, and more seldom where that takes long; one without tables never."""
    clock = [100.0]
    monkeypatch.setattr("scrapy_focus.engine.progress.monotonic", lambda: clock[0])
    crawl = Crawl(policy := Counting(), frontier=memory_frontier)
    host: Any = SimpleNamespace(policy=Counting, tables=crawl.forecasts.tables)
    tables = Tables(host)
    for at, asked in ((100, 1), (104.9, 1), (105, 2), (109, 2)):
        clock[0] = at
        assert (tables.now()[0].rows[0], policy.asked) == (("ant 0", asked), asked)

    def slow() -> list[PolicyTable]:
        clock[0] += 1.0
        return crawl.forecasts.tables()

    host.tables, clock[0] = slow, 110.0
    for at, asked in ((110, 3), (160, 3), (161, 4)):
        clock[0] = at
        tables.now()
        assert policy.asked == asked
    assert Tables(SimpleNamespace(policy=BreadthFirst)).now() == []  # type: ignore[arg-type]
