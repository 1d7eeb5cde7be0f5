"""Links that the crawls of a folder saw, and which of them were not followed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.types import Link
from scrapy_focus.finders.files import waiting_links
from scrapy_focus.finders.files.asked_urls import Asked
from scrapy_focus.finders.files.file_list import FileList
from scrapy_focus.finders.files.waiting_links import LINKS, Seen, Waiting
from scrapy_focus.finders.kit.records.crawls import last_crawl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = "http://a.test/"


def link(name: str, tag_path: str = "html/a", **more: Any) -> Link:
    return Link(f"{PAGE}{name}", 0, tag_path=tag_path, **more)


def names(found: Waiting) -> list[str]:
    return [seen.url.removeprefix(PAGE) for seen in found.offered(lambda url: False)]


def test_unfollowed_links_are_kept(tmp_path: Path) -> None:
    """It keeps all its fields; followed links are removed, also for the crawl after the next."""
    first = Waiting(tmp_path, 1)
    first.note(PAGE, [link("a", anchor="A", context="see A", depth=1), link("b"), link("c")], followed=PAGE)
    first.note(f"{PAGE}b", [], followed=f"{PAGE}b")
    assert names(Waiting(tmp_path, 1)) == []  # the resumed crawl has them
    second = Waiting(tmp_path, 2)
    assert next(second.offered(lambda url: False)) == Seen(f"{PAGE}a", PAGE, "html/a", "A", "see A", 1)
    assert names(second) == ["a", "c"]
    assert [seen.url for seen in second.offered(lambda url: url.endswith("a"))] == [f"{PAGE}c"]
    second.begin()
    second.note(f"{PAGE}c", [link("d")], followed=f"{PAGE}c")
    second.note(f"{PAGE}x", [link("c")])  # a revisited page may have links already followed
    assert names(Waiting(tmp_path, 2)) == ["a", "c"]  # the same run, resumed
    third = Waiting(tmp_path, 3)
    assert names(third) == ["a", "d"]
    third.begin()
    assert names(Waiting(tmp_path, 4)) == ["a", "d"]
    assert len((tmp_path / LINKS).read_text().splitlines()) == 2


def test_a_kill_loses_only_the_line_being_written(tmp_path: Path) -> None:
    """A cut line is skipped, and the next one starts after it."""
    first = Waiting(tmp_path, 1)
    first.note(PAGE, [link("a")])
    whole = (tmp_path / LINKS).read_bytes()
    (tmp_path / LINKS).write_bytes(whole + whole[:30])
    Waiting(tmp_path, 1).note(PAGE, [link("b")])
    assert names(Waiting(tmp_path, 2)) == ["a", "b"]


def test_places_take_turns(tmp_path: Path) -> None:
    """The first links of all places come before the second link of any place."""
    Waiting(tmp_path, 1).note(
        PAGE, [*(link(f"long-{n}", "ul/a") for n in range(3)), link("x", "p/a"), link("y", "p/a")]
    )
    assert names(Waiting(tmp_path, 2)) == ["long-0", "x", "long-1", "y", "long-2"]


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, the first links are kept; long texts are cut, and long URLs skipped."""
    monkeypatch.setattr(waiting_links, "_KEPT", 5)
    monkeypatch.setattr(waiting_links, "_MOST", 3)
    first = Waiting(tmp_path, 1)
    first.note(PAGE, [link("x" * 3000), link("0", anchor="a" * 9999, context="c" * 9999)])
    for n in range(1, 20):
        first.note(PAGE, [link(f"{n}")], followed=f"{PAGE}{n - 1}")
        if n == 2:
            first = Waiting(tmp_path, 1)  # resumed
    text = (tmp_path / LINKS).read_text()
    assert len(text) < 3000
    assert text.count('"links"') == 5
    second = Waiting(tmp_path, 2)
    assert [*second.before] == []
    second.begin()
    second.note(PAGE, [link(f"{n}") for n in range(30, 50)])
    third = Waiting(tmp_path, 3)
    assert len(third.before) == 5
    assert names(third) == ["30", "31", "32"]
    third.note(PAGE, [link("more")])
    assert "more" not in (tmp_path / LINKS).read_text()


@pytest.mark.parametrize(
    "links",
    [
        {"a": [["file:///etc/passwd", "", ""]]}, {"a": [["http://", "", ""]]}, {"a": [["http://a.test:x/", "", ""]]},
        {"a": [["http://a.test/", ""]]}, {"a": [["http://a.test/", 1, ""]]}, {"a": "http://a.test/"}, {"a": {"b": 1}},
        ["http://a.test/"], "http://a.test/", 7,
    ],
)  # fmt: skip
def test_a_malformed_list_is_refused(links: Any, tmp_path: Path) -> None:
    """The error has one line, and names the file."""
    (tmp_path / LINKS).parent.mkdir()
    (tmp_path / LINKS).write_text(json.dumps({"crawl": 1, "page": PAGE, "links": links}) + "\n")
    with pytest.raises(ConfigError, match=r"links\.jsonl has .* was expected; remove it") as raised:
        Waiting(tmp_path, 2)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "line", "read"),
    [
        (LINKS, {"crawl": "1"}, lambda out: Waiting(out, 2)),
        (LINKS, {"url": 5}, lambda out: Waiting(out, 2)),
        (LINKS, {"depth": [1]}, lambda out: Waiting(out, 2)),
        (".focus/asked.jsonl", {"url": "file:///etc/passwd"}, lambda out: Asked(out, 2)),
        (".focus/asked.jsonl", {"url": "http://a.test/", "crawl": "one"}, lambda out: Asked(out, 2)),
        (".focus/crawls.jsonl", {"crawl": "x"}, last_crawl),
        (".focus/crawls.jsonl", {"roots": "http://a.test/"}, last_crawl),
        (".focus/copies.jsonl", {"size": "big"}, lambda out: FileList(out, 2)),
        ("manifest.jsonl", {"url": ["http://a.test/"]}, lambda out: FileList(out, 2)),
    ],
)
def test_a_line_of_another_sort(name: str, line: Any, read: Callable[[Path], Any], tmp_path: Path) -> None:
    """A field of another type is refused with one line, which names file and field."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(ConfigError, match=rf"{path.name} has .* was expected; remove it"):
        read(tmp_path)
