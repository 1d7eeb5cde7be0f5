"""Where a crawl starts: URLs, files of URLs, and standard input, for every command and spider."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest
from scrapy.exceptions import UsageError

from scrapy_focus.__main__ import main
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.kit.arguments.seeds import named, words_of
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy import Spider

COMMANDS = [
    ["files"], ["important"], ["structured"], ["topic", "--keywords", "bees"], ["watch", "--rate", "9/day"],
]  # fmt: skip
SPIDERS: list[tuple[type[Spider], dict[str, str]]] = [
    (DatasetsSpider, {}), (ImportantSpider, {}), (NewsSpider, {"rate": "9/day"}), (StructuredSpider, {}),
    (TopicSpider, {"keywords": "bees"}),
]  # fmt: skip
#: A file as people have them: a byte order mark, line ends of Windows, comments, blank lines, and a URL twice.
SAVED = "\ufeff# sites\r\nhttp://one.example/\r\n\r\n  two.example/data  # tables\r\nhttp://one.example/\r\n".encode()
READ = ["http://one.example/", "https://two.example/data"]


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let a command read this from standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_reads_standard_input(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mixed with a file and with URLs; each URL counts once."""
    (tmp_path / "more.txt").write_text("three.example\nhttp://one.example/\n")
    monkeypatch.chdir(tmp_path)
    pipe(monkeypatch, SAVED)
    with pytest.raises(SystemExit) as ended:
        main([*words, "http://zero.example/", "-", "more.txt", "-", "--dry-run"])
    assert not ended.value.code
    starts = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Starts at"))
    assert starts.split(maxsplit=2)[2] == ", ".join(["http://zero.example/", *READ, "https://three.example"])


@pytest.mark.parametrize(("spider", "more"), SPIDERS)
def test_every_spider_takes_a_file(
    spider: type[Spider], more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between URLs, whatever its name has; and standard input, from ``scrapy crawl``."""
    name = "seeds" if spider in (StructuredSpider, TopicSpider) else "root"
    monkeypatch.chdir(tmp_path)
    for file in ("seeds.txt", "a, b.txt"):
        (tmp_path / file).write_bytes(SAVED)
        assert spider(**{name: file}, **more).asked.starts.urls == READ  # type: ignore[attr-defined]
    given = "http://zero.example/, seeds.txt"
    assert spider(**{name: given}, **more).asked.starts.urls == ["http://zero.example/", *READ]  # type: ignore[attr-defined]
    pipe(monkeypatch, SAVED)
    assert spider(**{name: "-"}, **more).asked.starts.urls == READ  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"http://a.example/\n\nnothing here\n", "line 3: 'nothing here' is not a URL with http:// or https://"),
        (b"# a\r\nhtps://a.example/", "line 2: 'htps://a.example/' is not a URL with http:// or https://; did you"),
        (b"http://me:secret@\n", "line 1: 'http://me:***@' is not a URL"),
        (b"\n# nothing\n", "has no URL; give one per line"),
        (b"", "has no URL; give one per line"),
        ("http://a.example/".encode("utf-16"), "cannot be read: it is not UTF-8"),
    ],
)
def test_errors_name_the_line(content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a file and for standard input; a resumed crawl without URLs is told to repeat them."""
    (tmp_path / "seeds.txt").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    pipe(monkeypatch, content)
    for word, place in (("seeds.txt", "seeds.txt"), ("-", "standard input")):
        with pytest.raises(UsageError) as error:
            words_of([word])
        message = str(error.value)
        assert message.startswith(place)
        assert said in message
        assert message.endswith("to resume a crawl, give the same URLs again") == (word == "-" and "no URL" in said)


def test_a_shell_may_pass_a_pipe() -> None:
    """As in ``focus files <(sort sites.txt)``; of many URLs, the first ones are named."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(b"https://%d.example/\n" % number for number in range(9)))
    os.close(writing)
    urls = words_of([f"/dev/fd/{reading}"])
    os.close(reading)
    assert named(urls).endswith("https://4.example/ and 4 more")
    assert named(urls[:5]).endswith(", https://4.example/")


def test_a_name_that_is_too_long_is_no_file() -> None:
    """Nor is a URL with a part that no file could have."""
    assert words_of([f"https://a.example/{'x' * 5000}"]) == [f"https://a.example/{'x' * 5000}"]
    with pytest.raises(UsageError, match="is not a URL"):
        words_of(["x" * 5000])
