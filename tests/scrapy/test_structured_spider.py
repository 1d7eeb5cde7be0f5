"""``focus-structured`` and its spider: whole crawls of pages with JSON-LD and microdata, on several hosts."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pytest
from crawls import Crawled, crawl
from forked import run as run_forked
from handmadehosts import Handmade
from mocksite import MockSite
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.outputs import write_report
from scrapy_focus.finders.structured.entities import read_entities
from scrapy_focus.finders.structured.spider import StructuredSpider, outermost, within
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.web.domains import domain_of
from scrapy_focus.web.entities import Entity
from tests.made import HANG
from tests.pages import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
#: Runs the spider, and ends the process like a kill when it has yielded so many entities.
RUN = """
import os, signal, sys
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy_focus.finders.structured.spider import StructuredSpider

seeds, out, until = *sys.argv[1:3], int(sys.argv[3])

class Killed(StructuredSpider):
    n = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.count, signals.item_scraped)
        return spider

    def count(self):
        self.n += 1
        if self.n == until:
            os.kill(os.getpid(), signal.SIGKILL)

process = AsyncCrawlerProcess({
    "ADDONS": {"scrapy_focus.Addon": 500}, "JOBDIR": out + "/.focus/job", "FOCUS_SEED": 1, "FOCUS_MAX_INFLIGHT": 1,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "TWISTED_REACTOR_ENABLED": False,
    "FOCUS_PROGRESS": "off", "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
})
process.crawl(Killed, seeds=seeds, types="Recipe", folder=out)
process.start()
"""
SEED = "http://start.test/"
FIELDS = {
    "url": str, "number": int, "types": list, "syntax": str, "values": dict, "host": str, "domain": str, "depth": int,
    "page": str, "anchor": str, "why": str, "fetched_at": str, "relevance": type(None),
}  # fmt: skip
SITE = {"@context": "https://schema.org", "@type": "WebSite", "name": "ours", "url": "/", "inLanguage": "en"}


def soup(n: int, **more: Any) -> dict[str, Any]:
    """Return a recipe."""
    author = {"@type": "Person", "name": "Ann"}
    return {"@context": "http://schema.org/", "@type": "Recipe", "name": f"Soup {n}", "author": author, **more}


def page(*links: str, things: Any = (), text: str = "", before: str = "") -> Page:
    """Return a page that describes things; a link is a URL, or a URL and its anchor after a blank."""
    scripts = "".join(f'<script type="application/ld+json">{json.dumps(each)}</script>' for each in things)
    anchors = "".join(f'<p><a href="{link.partition(" ")[0]}">{link.partition(" ")[2]}</a>' for link in links)
    return Page.of(
        f"<html><title>x</title><!--{before}-->{scripts}<body>{text}{anchors}".encode(), mime="text/html; charset=utf-8"
    )


MICRODATA = '<div itemscope itemtype="https://schema.org/Recipe"><b itemprop="name">Soup in a div</b></div>'
PAGES = {
    SEED: page("http://soups.test/ soups", "http://www.soups.test/0 the best soup", "/plain plain", "/moved a soup",
               "/away elsewhere", things=[SITE]),
    "http://start.test/plain": page("/", "/recipes.pdf", text="Recipe"),
    "http://start.test/moved": Page.of(b"", status=301, location="/here"),
    "http://start.test/here": page(things=[soup(70)]),
    "http://start.test/away": Page.of(b"", status=302, location="http://far.test/soup"),
    "http://far.test/soup": page(text=MICRODATA),
    "http://soups.test/": page(*(f"/{n} soup {n}" for n in range(1, 5)), things=[SITE]),
    "http://www.soups.test/0": page(things=[soup(0), SITE, {"@graph": [soup(10), {"@type": "Event"}]}]),
    "http://soups.test/1": page(things=[{"@type": "WebPage", "mainEntity": soup(1)}]),
    "http://soups.test/2": page(things=["no thing"]),
    "http://soups.test/3": page(things=[soup(3, isBasedOn=soup(30))], text=MICRODATA),
    "http://soups.test/4": page("/5 the next"),
    "http://soups.test/5": page(things=[{"@context": "https://schema.org", "@type": ["Recipe", "NewsArticle"]}]),
}  # fmt: skip
FOUND = {
    ("http://www.soups.test/0", 1): "Soup 0", ("http://www.soups.test/0", 2): "Soup 10",
    ("http://soups.test/1", 1): "Soup 1", ("http://soups.test/3", 1): "Soup 3", ("http://soups.test/3", 2): "Soup 30",
    ("http://soups.test/3", 3): "Soup in a div", ("http://soups.test/5", 1): "", ("http://far.test/soup", 1): "Soup in a div",
    ("http://start.test/here", 1): "Soup 70",
}  # fmt: skip


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handmade]:
    """Serves the pages above."""
    with Handmade(PAGES) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        yield server


def find(tmp_path: Path, settings: dict[str, Any] | None = None, **arguments: str) -> Crawled:
    """Run the spider in this process."""
    given = {"seeds": SEED, "types": "Recipe", "folder": str(tmp_path)} | arguments
    done = crawl(StructuredSpider, {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 1, **(settings or {})}, addon=True, **given)
    assert done.errors == {}
    return done


def lines(out: Path) -> list[dict[str, Any]]:
    """Return what a crawl listed."""
    return [json.loads(line) for line in (out / "entities.jsonl").read_text(encoding="utf-8").splitlines()]


def table(out: Path) -> dict[str, dict[str, str]]:
    """Return the lines of the table, by host."""
    with (out / "hosts.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["host"]: row for row in csv.DictReader(file)}


def test_each_entity_is_a_line(hosts: Handmade, tmp_path: Path) -> None:
    """Of the wanted type, wherever on its page it is, with its values, its link and the reason for the visit."""
    done = find(tmp_path)
    found = lines(tmp_path)
    assert {(line["url"], line["number"]): line["values"].get("name", "") for line in found} == FOUND
    assert len(found) == len(FOUND)
    for line in found:
        assert {name: type(value) for name, value in line.items()} == FIELDS
        assert "Recipe" in line["types"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", line["fetched_at"])
        assert line["why"]
    by_url = {line["url"]: line for line in found}
    best = by_url["http://www.soups.test/0"]
    assert (best["host"], best["domain"], best["depth"]) == ("www.soups.test", "soups.test", 1)
    assert (best["page"], best["anchor"], best["syntax"]) == (SEED, "the best soup", "json-ld")
    assert (by_url["http://start.test/here"]["anchor"], by_url["http://far.test/soup"]["anchor"]) == (
        "a soup",
        "elsewhere",
    )
    assert by_url["http://far.test/soup"]["syntax"] == "microdata"
    assert by_url["http://far.test/soup"]["page"] == "http://start.test/away"
    assert by_url["http://soups.test/5"]["types"] == ["Recipe", "NewsArticle"]
    assert by_url["http://soups.test/1"]["values"]["author"] == {"@type": "Person", "name": "Ann"}
    n_pages = len({url for url, _ in FOUND})
    assert done.scheduler.crawl.status().rewards == n_pages, "one a page, however many entities it has"
    assert ending_of(done.crawler).sentence.startswith(f"Done: {n_pages} pages with Recipe found in ")
    [said] = done.logged("Finished (")
    assert f" requests, {n_pages} pages with structured data; " in said
    assert "http://start.test/recipes.pdf" not in hosts.asked_for


def test_hosts_are_counted(hosts: Handmade, tmp_path: Path) -> None:
    """The table and the page show for each host the number of pages, and of entities of each type."""
    find(tmp_path)
    rows = table(tmp_path)
    numbers = {host: (row["pages"], row["with_entities"], row["entities"], row["Recipe"], row["NewsArticle"])
               for host, row in rows.items()}  # fmt: skip
    assert numbers == {
        "soups.test": ("6", "3", "5", "5", "1"), "www.soups.test": ("1", "1", "2", "2", "0"),
        "far.test": ("1", "1", "1", "1", "0"), "start.test": ("3", "1", "1", "1", "0"),
    }  # fmt: skip
    reader = Reader((tmp_path / "index.html").read_text())
    assert str(tmp_path) not in reader.text, "the folder may be anywhere"
    assert "11 pages were read; 6 of them have 9 entities of the wanted types, on 4 hosts." in reader.text
    assert "WebSite 3" in reader.text, "what else there is"


def test_without_types_pages_with_enough_facts(hosts: Handmade, tmp_path: Path) -> None:
    """Whatever they are about; a nested entity has no line of its own."""
    find(tmp_path, types="", least="4")
    found = {(line["url"], line["number"]): line["types"] for line in lines(tmp_path)}
    assert found == {
        ("http://www.soups.test/0", 1): ["Recipe"], ("http://www.soups.test/0", 2): ["WebSite"],
        ("http://www.soups.test/0", 3): ["Recipe"], ("http://www.soups.test/0", 4): ["Event"],
        ("http://soups.test/3", 1): ["Recipe"], ("http://soups.test/3", 2): ["Recipe"],
    }  # fmt: skip
    assert find(tmp_path / "all", types="").scheduler.crawl.status().rewards == 1, "six facts by default"


def test_only_one_syntax(hosts: Handmade, tmp_path: Path) -> None:
    """Entities in another one are not read."""
    find(tmp_path, syntaxes="microdata")
    assert {line["url"] for line in lines(tmp_path)} == {"http://far.test/soup", "http://soups.test/3"}


def test_it_stays_on_its_site_if_set(hosts: Handmade, tmp_path: Path) -> None:
    """On the hosts of its seeds, their sub-domains and no others, whatever redirects; on one host by the default policy."""
    done = find(tmp_path / "one", scope="host", seeds="http://www.soups.test/0,http://soups.test/")
    assert {line["host"] for line in lines(tmp_path / "one")} == {"soups.test", "www.soups.test"}
    assert done.scheduler.crawl.policy.__class__.__name__ == "BranchingBandit"
    said = {line["why"] for line in lines(tmp_path / "one") if line["depth"]}
    assert said
    assert all(re.search(r"links? at \S+ (brought|was known)", why) for why in said), said
    assert type(done.scheduler).__name__ == "FocusScheduler"
    hosts.log.clear()
    done = find(tmp_path / "two", scope="host", seeds=f"{SEED},http://far.test/soup")
    assert {line["host"] for line in lines(tmp_path / "two")} == {"start.test", "far.test"}
    assert not any("soups.test" in url for url in hosts.asked_for)
    assert type(done.scheduler).__name__ == "AnthelionScheduler"


def test_a_seed_that_redirects_elsewhere(tmp_path: Path) -> None:
    """Its new host is crawled, too, by a crawl that stays, also when it is resumed."""
    with MockSite("127.0.0.2") as other, MockSite() as first:
        soups = f'<script type="application/ld+json">{json.dumps(soup(1))}</script>'
        other.pages |= {"/home": '<a href="/1">1</a>', "/1": soups}
        first.answers["/"] = lambda _: (301, {"Location": other.url("/home")}, b"")
        given = {"seeds": first.url("/"), "scope": "host"}
        job = {"JOBDIR": str(tmp_path / ".focus" / "job")}
        assert ending_of(find(tmp_path, job, budget="2", **given).crawler).kind == "nothing_found"
        find(tmp_path, job, budget="30", **given)
        assert [line["url"] for line in lines(tmp_path)] == [other.url("/1")]


def test_a_page_is_read_far_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are often at the end of pages: they are read after two megabytes, but not after five."""
    pages = {f"http://a.test/{n}": page(things=[soup(n)], before="x" * (n << 20)) for n in (2, 5)}
    with Handmade({SEED: page(*pages)} | pages) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        find(tmp_path)
    assert [line["url"] for line in lines(tmp_path)] == ["http://a.test/2"]


def test_pages_of_a_domain_are_limited(hosts: Handmade, tmp_path: Path) -> None:
    """To so many of each."""
    find(tmp_path, per_domain="2")
    came = [urlsplit(seen.path).hostname for seen in hosts.log if seen.status == 200 and "robots.txt" not in seen.path]
    assert Counter(map(domain_of, came)).items() >= {"soups.test": 2, "start.test": 2}.items()


def test_nothing_found_says_what_there_is(hosts: Handmade, tmp_path: Path) -> None:
    """The last line names the types that were seen, also after a resume."""
    job = {"JOBDIR": str(tmp_path / ".focus" / "job")}
    assert ending_of(find(tmp_path, job, types="JobPosting,Dataset", budget="5").crawler).kind == "nothing_found"
    done = find(tmp_path, job, types="JobPosting,Dataset", budget="100")
    ending = ending_of(done.crawler)
    assert ending.kind == "nothing_found"
    assert re.fullmatch(
        r"No page with JobPosting or Dataset in \d+ requests; seen: 9 Recipe, 6 Person, 3 WebSite, 1 \w+, 1 \w+, 1 others?: "
        r"try other types, or another start URL\. See \S+#nothing-found", ending.sentence,
    ), ending.sentence  # fmt: skip
    assert (tmp_path / "entities.jsonl").read_text() == ""
    assert "Recipe 9" in Reader((tmp_path / "index.html").read_text()).text


def test_lines_go_to_a_pipe(hosts: Handmade, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With ``-`` each entity is a line of JSON on standard output, and nothing is stored."""
    find(tmp_path, folder="", out="-")
    said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert {(line["url"], line["number"]): line["values"].get("name", "") for line in said} == FOUND
    assert not [*tmp_path.iterdir()]


def test_a_file_for_the_lines(hosts: Handmade, tmp_path: Path) -> None:
    """With ``out`` there are the lines alone; an empty entry among the types is none."""
    find(tmp_path, types=" Recipe,,", folder="", out=str(tmp_path / "x" / "soups.jsonl"))
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["soups.jsonl"]
    assert len((tmp_path / "x" / "soups.jsonl").read_text().splitlines()) == len(FOUND)


def test_a_report_while_it_runs(hosts: Handmade, tmp_path: Path) -> None:
    """A report contains the entities so far, and does no harm."""

    class Asking(StructuredSpider):
        asked: ClassVar[list[int]] = []

        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            crawler.signals.connect(cls.ask, signals.response_received)
            return super().from_crawler(crawler, *args, **kwargs)

        @classmethod
        def ask(cls) -> None:
            if (tmp_path / "entities.jsonl").exists():
                write_report(tmp_path)
                cls.asked.append(len(read_entities(tmp_path)))

    settings = {
        "FOCUS_MAX_INFLIGHT": 1,
        "JOBDIR": str(tmp_path / ".focus" / "job"),
    }  # with it, no line stays in a buffer
    done = crawl(Asking, settings, addon=True, seeds=SEED, types="Recipe", folder=str(tmp_path))
    assert done.errors == {}
    assert Asking.asked == sorted(Asking.asked)
    assert 0 < Asking.asked[-1] <= len(FOUND) == len(lines(tmp_path))


def run(server: Handmade, out: Path, until: int = 0) -> int:
    """Run the spider in a separate process."""
    command = [sys.executable, "-c", RUN, SEED, str(out), str(until)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "http_proxy": server.url, "no_proxy": ""}
    return run_forked(command, env=env, check=False, capture_output=True, timeout=HANG).returncode


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    """No entity is lost or repeated; table and page are those of an uninterrupted crawl."""
    pages = {
        SEED: page(*(f"http://h{n % 5}.test/{n} soup {n}" for n in range(40)), "http://h1.test/list", things=[SITE]),
        "http://h1.test/list": page(*(f"http://h{n % 5}.test/{n} soup {n}" for n in range(40, 60))),
    }
    pages |= {
        f"http://h{n % 5}.test/{n}": page(
            things=[soup(100 * n + k, description="x" * 1000) for k in range(30)] if n % 3 else [SITE]
        )
        for n in range(60)
    }
    with Handmade(pages) as server:
        assert run(server, tmp_path / "whole") == 0
        for until in (415,):
            assert run(server, tmp_path / "killed", until) == -signal.SIGKILL
            page_of = write_report(tmp_path / "killed")
            n_listed = Counter(entity.url for entity in read_entities(tmp_path / "killed"))
            assert {*n_listed.values()} - {30}, "the kill came between the lines of a page"
            assert "It is running, or was killed" in Reader(page_of.read_text()).text
        assert run(server, tmp_path / "killed") == 0
        assert run(server, tmp_path / "killed") == 0, "nothing is added to what has ended"
    found = {name: [(line["url"], line["number"]) for line in lines(tmp_path / name)] for name in ("whole", "killed")}
    assert len(found["whole"]) == len({*found["whole"]}) == 40 * 30
    assert sorted(found["killed"]) == sorted(found["whole"])
    assert table(tmp_path / "killed") == table(tmp_path / "whole")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seeds": ""}, "where to start?"),
        ({"types": "Recip"}, "'Recip' is not a type of schema.org; did you mean Recipe?"),
        ({"types": ", ,"}, "types is ', ,'; it takes words separated by commas: -a types=Recipe,Event"),
        ({"types": "HowToStep,,Recip"}, "'Recip' is not a type of schema.org; did you mean Recipe? Newer types"),
        ({"syntaxes": "rdfa"}, "there is no syntax 'rdfa'"),
        ({"syntaxes": "jsonld"}, "did you mean json-ld?"),
        ({"types": "", "least": "0"}, "least is '0'; it takes a number of facts: -a least=6"),
        ({"least": "3"}, "least is '3', and types are given"),
        ({"scope": "yes"}, "scope is 'yes'; it takes page, prefix, host, domain or any: -a scope=prefix"),
        ({"stay": "yes"}, "unknown argument stay; did you mean scope?"),
        ({"per_domain": "5-2"}, "per_domain is '5-2'; it takes a number of pages"),
        (
            {"per_domain": "5", "scope": "host"},
            "per_domain is '5', but the crawl stays on one host; limit it by a budget",
        ),
        ({"per_host": "0"}, "per_host is '0'; it takes a number of pages: -a per_host=10"),
        ({"per_host": "5", "scope": "host"}, "per_host is '5', but the crawl stays on one host; limit it by a budget"),
        ({"per_host": "5", "per_domain": "5"}, "per_domain and per_host are two ways to count pages; give one of them"),
        ({"budget": "x"}, "budget is 'x'"),
        ({"out": "."}, "out is '.', a folder"),
        ({"out": "/proc/no/entities.jsonl"}, "cannot write to"),
        ({"folder": "file"}, "cannot write to"),
        ({"kinds": "Recipe"}, "unknown argument kinds; the arguments are seeds, types, about"),
    ],
    ids=str,
)
def test_bad_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, str], said: str) -> None:
    """An unusable argument is an error that names it and says what would be right; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        StructuredSpider.from_crawler(Crawler(StructuredSpider), **{"seeds": SEED, "types": "Recipe"} | arguments)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_extruct_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the message contains the command that installs it."""
    monkeypatch.setitem(sys.modules, "extruct", None)
    with pytest.raises(UsageError, match=r'needs extruct: pip install "scrapy-focus\[structured\]"'):
        StructuredSpider(seeds=SEED, types="Recipe")


def test_results_of_another_crawl_are_not_touched(tmp_path: Path) -> None:
    """A file that has lines is added to by its own job only."""
    (tmp_path / "entities.jsonl").write_text('{"url": "http://a.test/", "number": 1}\n{"url": "http://a.te')
    for settings in ({}, {"JOBDIR": str(tmp_path / "job")}):
        with pytest.raises(UsageError, match=r"entities\.jsonl contains the results of another crawl"):
            StructuredSpider.from_crawler(Crawler(StructuredSpider, settings), seeds=SEED, folder=str(tmp_path))
    (tmp_path / "job" / "focus").mkdir(parents=True)
    crawler = Crawler(StructuredSpider, {"JOBDIR": str(tmp_path / "job")})
    assert StructuredSpider.from_crawler(crawler, seeds=SEED, folder=str(tmp_path)).n_listed == 1


def test_a_page_lists_no_more_than_it_may() -> None:
    """Of a page's entities the outermost, and as many as the limit allows, but one at least."""
    inner = {"@type": "Offer", "name": "x" * 50}
    outer = {"@type": "Product", "offers": [{"price": inner}], "name": "y" * 50}
    entities = [Entity(("Product",), outer, "json-ld"), Entity(("Offer",), inner, "json-ld")]
    others = [Entity(("Offer",), dict(inner), "microdata") for _ in range(10)]
    assert [*outermost([*entities, *others])] == [entities[0], *others]
    assert [*within([*entities, *others], 0)] == entities[:1]
    assert [*within([*entities, *others], 800)] == [*entities, *others[:7]]
    assert [*within([], 0)] == []
