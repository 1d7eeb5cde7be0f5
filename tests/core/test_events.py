"""The decision log: one JSON line for each pick, outcome and release."""

from __future__ import annotations

import gzip
import json
import logging
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import ConfigError, Crawl, EventLog, memory_frontier
from scrapy_focus.core.log import read_log
from tests.made import Recording, failure, file, link, links

if TYPE_CHECKING:
    from pathlib import Path


class Talking(Recording):
    """Says why."""

    def explain(self, pick):
        return {"kind": "page", "tag_path": "html/käse"}


def logged(path: Path) -> list[dict]:
    """Crawl three links, and return the events."""
    crawl = Crawl(Talking(), frontier=memory_frontier, goal=lambda outcome: 1.5, log=EventLog(path), strict=True)
    crawl.add([link(1, url="http://h/ä", depth=2), *links(2)])
    crawl.release(crawl.next().id)
    crawl.report(file(crawl.next(), seconds=0.123456, items=2, size=77))
    crawl.report(failure(crawl.next(), None))
    crawl.close()
    crawl.close()
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


@pytest.mark.parametrize("name", ["events.jsonl", "deep/events.jsonl.gz"])
def test_every_decision_is_a_line(name: str, tmp_path: Path) -> None:
    """Picks have their reasons, outcomes their rewards, releases the id; compressed for .gz."""
    why = {
        "kind": "page", "tag_path": "html/käse", "why": "2 clicks from a seed; kind page; tag_path html/käse",
    }  # fmt: skip
    pick = {"event": "pick", "url": "http://h/ä", "method": "GET", "arm": 1, "origin": -1, "depth": 2, "chance": None}
    first, released, again, outcome, second, failed = logged(tmp_path / name)
    assert first == {**pick, "id": first["id"], "rank": first["rank"], "why": why}
    assert released == {"event": "release", "id": first["id"]}
    assert again == {**first, "id": again["id"]}
    assert again["id"] != first["id"]
    assert outcome == {
        "event": "outcome", "id": again["id"], "status": 200, "mime": "application/pdf", "size": 77, "seconds": 0.1235,
        "items": 2, "error": "", "reward": 1.5,
    }  # fmt: skip
    assert (failed["id"], failed["status"], failed["error"]) == (second["id"], None, "http_error")


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_a_log_is_appended_to(name: str, tmp_path: Path) -> None:
    """A resumed crawl appends."""
    first = logged(tmp_path / name)
    assert logged(tmp_path / name) == first * 2


def test_text_stays_readable(tmp_path: Path) -> None:
    """Letters outside ASCII are written as they are, in UTF-8."""
    logged(tmp_path / "log")
    assert "käse" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_log_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    """A path that is a folder is refused when the crawl is set up, and the message names it."""
    with pytest.raises(ConfigError, match=str(tmp_path)):
        EventLog(tmp_path)


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_what_was_written_is_read(name: str, tmp_path: Path) -> None:
    """Event by event, letters outside ASCII too; of several runs one after the other."""
    events = logged(tmp_path / name)
    assert list(read_log(tmp_path / name)) == list(read_log(str(tmp_path / name))) == events
    logged(tmp_path / name)
    assert list(read_log(tmp_path / name)) == events * 2


def test_an_empty_log_has_no_events(tmp_path: Path) -> None:
    """A crawl that was stopped at once leaves one, and one that was killed at once an empty file."""
    EventLog(tmp_path / "empty.jsonl.gz").close()
    (tmp_path / "empty.jsonl").touch()
    assert list(read_log(tmp_path / "empty.jsonl.gz")) == list(read_log(tmp_path / "empty.jsonl")) == []


@pytest.mark.parametrize("lost", [1, 5, 60])
def test_a_line_that_is_cut_off_is_left_out(lost: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a warning. A last line that lacks nothing but its end is read."""
    path = tmp_path / "events.jsonl"
    events = logged(path)
    path.write_bytes(path.read_bytes()[:-lost])
    with caplog.at_level(logging.WARNING):
        assert list(read_log(path)) == (events if lost == 1 else events[:-1])
    said = [record.getMessage() for record in caplog.records]
    assert said == ([] if lost == 1 else [f"{path} is cut off after 5 events; what follows is lost"])


@pytest.mark.few(3)
@pytest.mark.parametrize("cut", range(3, 12))
def test_a_compressed_log_that_is_cut_off_is_read_as_far_as_it_goes(
    cut: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever a kill cut it; even if the next run appended to that, everything before is readable."""
    path = tmp_path / "events.jsonl.gz"
    lines = [json.dumps({"event": "release", "id": number, "noise": hash(str(number))}) for number in range(20_000)]
    whole = gzip.compress("".join(f"{line}\n" for line in lines).encode())
    path.write_bytes(whole[: len(whole) * cut // 12 - 5])
    with caplog.at_level(logging.WARNING):
        events = list(read_log(path))
    assert events == [json.loads(line) for line in lines[: len(events)]]
    assert len(events) > 1200 * cut
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is cut off after {len(events)} events; what follows is lost"
    ]


def test_a_run_goes_on_behind_the_last_whole_line(tmp_path: Path) -> None:
    """What a kill cut off is removed, so that the log stays readable."""
    path = tmp_path / "events.jsonl"
    events = logged(path)
    path.write_bytes(path.read_bytes()[:-10])
    logged(path)
    assert list(read_log(path)) == [*events[:-1], *events]
    path.write_bytes(b'{"event": "pi')
    logged(path)
    assert list(read_log(path)) == events


@pytest.mark.parametrize(
    "line", ["no JSON", "{}", "[1]", "7", '{"event": "none"}', '{"event": "pick"', b"\xff\xfe"], ids=str
)
@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_a_line_that_is_no_event_is_named(name: str, line: str | bytes, tmp_path: Path) -> None:
    """By its number, after the events before it were read."""
    path = tmp_path / name
    logged(tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    text = good + (line if isinstance(line, bytes) else line.encode()) + b"\n" + good
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    events = read_log(path)
    assert len([next(events) for _ in range(6)]) == 6
    with pytest.raises(ConfigError, match=rf"line 7 of {path} is not an event"):
        next(events)


def test_a_log_that_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    """The message names the file, and no line: it is not there, is a folder, or is not what its name says."""
    (tmp_path / "not.gz").write_text('{"event": "pick"}\n')
    for name, why in (("missing.jsonl", "No such file"), ("", "Is a directory"), ("not.gz", "Not a gzipped file")):
        with pytest.raises(ConfigError, match=rf"the decision log {tmp_path / name} cannot be read: .*{why}"):
            list(read_log(tmp_path / name))
