"""The options of commands that limit the scope of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from mocksite import MockSite
from scrapy.exceptions import UsageError

from scrapy_focus.__main__ import main
from scrapy_focus.finders.files.command import FilesCommand
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.command import ImportantCommand
from scrapy_focus.finders.news.command import WatchCommand
from scrapy_focus.finders.structured.command import StructuredCommand
from scrapy_focus.finders.topic.command import TopicCommand
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.commands.finding import FindCommand

START = "https://www.a.test/docs/x"
SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>'


def arguments(command: type[FindCommand], given: dict[str, Any]) -> Any:
    """Return the arguments of a finder."""
    arguments = command().takes()
    sound = {"root": START, "seeds": START, "keywords": "bees", "rate": "9/day"}
    if command is not WatchCommand:
        del sound["rate"]
    return arguments.read({name: text for name, text in sound.items() if name in arguments.declared()} | given)


def links(*urls: str) -> str:
    """Return a page with links."""
    return "".join(f'<a href="{url}">{url}</a>' for url in urls)


def csv(text: str) -> Any:
    """Return an answer with a file."""
    return lambda _: (200, {"Content-Type": "text/csv"}, text.encode())


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        (FilesCommand, {}, "a.test"),
        (ImportantCommand, {"scope": "host"}, "a.test"),
        (WatchCommand, {"scope": "domain"}, "all hosts of a.test"),
        (TopicCommand, {}, "any host"),
        (TopicCommand, {"scope": "prefix"}, "URLs that begin with a.test/docs/"),
        (StructuredCommand, {"scope": "page"}, "the given pages"),
        (FilesCommand, {"scope": "page"}, "the given pages, and files that they link to"),
        (
            FilesCommand,
            {"exclude": "a{1,2},b", "include": ["c,d"], "depth": "1", "max_pages_per_host": "1000"},
            "a.test, only URLs that match c,d, no URLs that match a{1,2} or b, at most 1 link away from a start URL, at "
            "most 1,000 pages per host",
        ),
    ],
)
def test_the_scope_in_words(command: type[FindCommand], given: dict[str, Any], said: str) -> None:
    """As commands and pages show it."""
    assert arguments(command, given).stays_on == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exclude": "("}, "exclude is '(', which is not a regular expression: missing )"),
        ({"include": ["x", ""]}, "include is '', which is not a regular expression: it is empty"),
        ({"exclude": "a,,b"}, "an example: -a exclude='/archive/'"),
        ({"include": "x" * 1001}, "it has 1,001 characters"),
        ({"scope": "site"}, "scope is 'site'; it takes page, prefix, host, domain or any: -a scope=prefix"),
        ({"depth": "-1"}, "depth is '-1'; it takes a number of links, or 0 for the start URLs alone: -a depth=2"),
        ({"depth": "²"}, "depth is '²'"),
        ({"max_pages_per_host": "0"}, "max_pages_per_host is '0'; it takes a number of pages: -a max_pages"),
    ],
)
def test_values_that_cannot_be_read(given: dict[str, Any], said: str) -> None:
    """Each has a message in the words of its user."""
    with pytest.raises(UsageError) as caught:
        arguments(FilesCommand, given)
    assert said in str(caught.value)


def test_a_warning_names_the_option() -> None:
    """That a start URL is requested although a rule excludes it."""
    said = "although FOCUS_EXCLUDE rules it out", "although no FOCUS_INCLUDE matches it"
    assert [FilesCommand().in_my_words(each) for each in said] == [
        "although --exclude rules it out", "although no --include matches it",
    ]  # fmt: skip


def test_options_are_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run shows all of them, and an error names the option."""
    words = ["files", START, "--exclude", "a,b", "--exclude", "c", "--depth", "0", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main([*words, "--dry-run"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Stays on a.test, no URLs that match a,b or c, at most 0 links away from a start URL" in shown
    with pytest.raises(SystemExit):
        main([*words, "--exclude", "["])
    assert "Error: --exclude is '[', which is not a regular expression" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_files(site: MockSite, tmp_path: Path) -> None:
    """Excluded entries of a sitemap and links are not requested; the page of the crawl counts them, after two runs."""
    site.answers |= {
        "/robots.txt": lambda _: (200, {}, f"Sitemap: {site.url('/map.xml')}".encode()),
        "/map.xml": lambda _: (
            200, {"Content-Type": "application/xml"},
            (SITEMAP % "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in ("/old/1", "/new/1"))).encode(),
        ),
        "/a.csv": csv("a"),
    }  # fmt: skip
    site.pages |= {"/": links("/old/1", "/old/2", "/a.csv"), "/new/1": links("/old/2", "/old/3"), "/old/1": ""}
    settings = {
        "JOBDIR": str(tmp_path / ".focus/job"), "ROBOTSTXT_OBEY": True, "SCHEDULER": "scrapy_focus.FocusScheduler",
    }  # fmt: skip
    given = {"root": site.url("/"), "out": str(tmp_path), "exclude": "/old/"}
    crawl(DatasetsSpider, settings, addon=True, budget="3", **given)
    crawl(DatasetsSpider, settings, addon=True, **given)
    assert not [path for path in site.paths if path.startswith("/old")]
    assert {"/map.xml", "/new/1", "/a.csv"} <= set(site.paths)
    page = (tmp_path / "index.html").read_text()
    assert "3 addresses out of scope: excluded by a pattern." in page
    assert "127.0.0.1, no URLs that match /old/" in page


def test_files_of_given_pages(site: MockSite, tmp_path: Path) -> None:
    """Only files that they link to, on any host, by the extension of their URL; no sitemap."""
    with MockSite("127.0.0.2") as other:
        site.answers |= {
            "/robots.txt": lambda _: (200, {}, f"Sitemap: {site.url('/map.xml')}".encode()),
            "/docs/a.csv": csv("a"), "/get?f=b.csv": csv("b"),
        }  # fmt: skip
        other.answers |= {"/c.csv": csv("c"), "/d.csv": lambda _: (302, {"Location": "/e"}, b"")}
        site.pages["/docs/"] = links("a.csv", "more/", "/get?f=b.csv", other.url("/c.csv"), other.url("/d.csv"))
        given = {"root": site.url("/docs/"), "out": str(tmp_path), "scope": "page", "types": "csv,xml"}
        settings = {"ROBOTSTXT_OBEY": True, "SCHEDULER": "scrapy_focus.FocusScheduler"}
        for _ in range(2):
            crawl(DatasetsSpider, settings, addon=True, **given)
            assert sorted(site.paths) == ["/docs/", "/docs/a.csv"]
            assert sorted(other.paths) == ["/c.csv", "/d.csv"]
            site.log.clear()
            other.log.clear()


def test_the_next_crawl_of_a_folder(site: MockSite, tmp_path: Path) -> None:
    """Pages that an earlier crawl reached by more links than are allowed now are not requested again."""
    site.pages |= {
        "/": links("/1", "/x"),
        "/1": links("/2"),
        "/2": links("/3", "/a.csv"),
        "/3": links("/b.csv"),
        "/x": "",
    }
    site.answers |= {"/a.csv": csv("a"), "/b.csv": csv("b")}
    given = {"root": site.url("/"), "out": str(tmp_path)}
    settings = {"SCHEDULER": "scrapy_focus.FocusScheduler"}
    crawl(DatasetsSpider, settings, addon=True, **given)
    assert sorted(site.paths) == ["/", "/1", "/2", "/3", "/a.csv", "/b.csv", "/x"]
    site.log.clear()
    crawl(DatasetsSpider, settings, addon=True, depth="2", exclude="/x", **given)
    assert sorted(site.paths) == ["/", "/1", "/2"]
    site.log.clear()
    crawl(DatasetsSpider, settings, addon=True, depth="3", **given)
    assert sorted(site.paths) == ["/", "/1", "/2", "/3", "/a.csv", "/x"]


def test_a_topic_on_some_hosts(site: MockSite, tmp_path: Path) -> None:
    """A crawl for a topic stays on the hosts of its seeds, and on those that they redirect to."""
    with MockSite("127.0.0.2", pages={"/home": links("/1"), "/1": "bees"}) as other, MockSite("127.0.0.3") as third:
        site.answers["/"] = lambda _: (302, {"Location": other.url("/home")}, b"")
        other.pages["/1"] = links(third.url("/"), site.url("/2"))
        site.pages["/2"] = "bees"
        given = {"seeds": site.url("/"), "keywords": "bees", "out": str(tmp_path / "topic.jsonl")}
        result = crawl(TopicSpider, {"ROBOTSTXT_OBEY": False}, addon=True, scope="host", **given)
        assert (site.paths, other.paths, third.paths) == (["/", "/2"], ["/home", "/1"], [])
        assert result.stats["focus/scope/host"] == 1
