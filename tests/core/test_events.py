"""The decision log: one JSON line for each pick, outcome and release."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import ConfigError, Crawl, EventLog
from tests.made import Recording, failure, file, link, links

if TYPE_CHECKING:
    from pathlib import Path


class Talking(Recording):
    """Says why."""

    def explain(self, pick):
        return {"kind": "page", "tag_path": "html/käse"}


def logged(path: Path) -> list[dict]:
    """Crawl three links, and return the events."""
    crawl = Crawl(Talking(), goal=lambda outcome: 1.5, log=EventLog(path), strict=True)
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
    """Picks come with the reasons, outcomes with what they were worth, releases with the id; compressed for .gz."""
    why = {"kind": "page", "tag_path": "html/käse"}
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
    """A crawl that goes on writes behind what is there."""
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
