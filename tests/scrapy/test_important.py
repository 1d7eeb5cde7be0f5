"""``focus-important`` and its spider: the pages of a site by importance, live over HTTP."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from crawls import BREADTH_FIRST, STOCK, Crawled, crawl
from forked import run as run_forked
from mocksite import MockSite
from scrapy import Request, signals
from scrapy.exceptions import UsageError

from linkweb.web import LinkWeb
from scrapy_focus import HotQueue, Importance
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.engine.links import key_of
from scrapy_focus.finders.important.arguments import ImportantArguments
from scrapy_focus.finders.important.link_book import read_links
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.outputs import write_report
from scrapy_focus.lab.replay.importance_metrics import pagerank
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG
from tests.pages import Reader

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
D = 0.9
#: Runs a command of this package, and ends the process like a kill when so many outcomes are in the journal.
RUN = """
import os, signal, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy_focus.core.events import Concluded
from scrapy_focus.jobs.job import Job
from scrapy_focus.finders.important.spider import ImportantSpider

root, out, until = *sys.argv[1:3], int(sys.argv[3])
tell, told = Job.tell, [0]

def tell_and_die(self, event):
    told[0] += isinstance(event, Concluded)
    if until and told[0] == until:
        os.kill(os.getpid(), signal.SIGKILL)
    tell(self, event)

Job.tell = tell_and_die
process = AsyncCrawlerProcess({
    "ADDONS": {"scrapy_focus.Addon": 500}, "JOBDIR": out + "/.focus/job", "FOCUS_SEED": 1, "FOCUS_MAX_INFLIGHT": 1,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "TWISTED_REACTOR_ENABLED": False,
    "FOCUS_PROGRESS": "off", "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
})
process.crawl(ImportantSpider, root=root, out=out)
process.start()
"""


def table(folder: Path) -> dict[str, dict[str, str]]:
    """Return the lines of the table, by the end of their URL."""
    with (folder / "importance.csv").open(encoding="utf-8-sig", newline="") as file:
        return {re.sub("^http://[^/]+", "", row["url"]): row for row in csv.DictReader(file)}


def links(*paths: str, **more: str) -> str:
    """Return a page with a link to each path; ``more``: attributes by path."""
    return "".join(f'<a href="{path}" {more.get(path.strip("/"), "")}>to {path}</a>' for path in paths)


def find(site: MockSite, out: Path, settings: dict[str, Any] | None = None, **args: str) -> Crawled:
    """Run the spider in this process."""
    polite = {"FOCUS_OBEY": ["nofollow"], "FOCUS_MAX_INFLIGHT": 1, **(settings or {})}
    done = crawl(ImportantSpider, polite, addon=True, root=site.url("/"), out=str(out), **args)
    assert done.errors == {}
    return done


@pytest.fixture
def web() -> Iterator[MockSite]:
    """Four pages, a redirect, an error, and links that do not count or lead elsewhere."""
    elsewhere = "http://elsewhere.example"
    pages = {
        "/": links("/a", "/b", "/a", "/old", f"{elsewhere}/1", f"{elsewhere}/2", "/x.pdf"),
        "/a": links("/", "/c", "/a", "/secret", f"{elsewhere}/1", secret="rel=nofollow"),
        "/b": links("/c?x=1&y=2", "/c?y=2&x=1", "/gone", "/picture"),
        "/c?x=1&y=2": links("/b", "/c?x=1&y=2"),
        "/c": "no link",
    }
    with MockSite(pages=pages) as site:
        site.answers = {
            "/old": lambda _: (301, {"Location": "/older"}, b""),
            "/older": lambda _: (301, {"Location": "/c"}, b""),
            "/picture": lambda _: (200, {"Content-Type": "image/png"}, b"x"),
        }
        yield site


def test_importance_is_pagerank_of_what_was_seen(web: MockSite, tmp_path: Path) -> None:
    """A redirect and its target are one page; repeats, self-links, nofollow and files do not count.

    External links, errors and other documents take their share.
    """
    done = find(web, tmp_path)
    rows = table(tmp_path)
    assert rows.keys() == {"/", "/a", "/b", "/c", "/c?x=1&y=2"}
    # / has links to a, b, c (old), and 2 elsewhere;  a to /, c, 1 elsewhere;  b to c? and 2 that are no pages;  c? to b
    x = 1 - D
    home_a = x / (1 - D / 5 * D / 3)  # home = x + a * D / 3;  a = x + home * D / 5
    home = home_a * (1 + D / 3)
    a = x + home * D / 5
    b = (x + home * D / 5 + D * x) / (1 - D * D / 3)  # b = x + home * D / 5 + D * (x + b * D / 3)
    values = {"/": home, "/a": a, "/b": b, "/c?x=1&y=2": x + b * D / 3, "/c": x + home * D / 5 + a * D / 3}
    mean = sum(values.values()) / 5
    assert {path: float(row["importance"]) for path, row in rows.items()} == pytest.approx(
        {path: value / mean for path, value in values.items()}, abs=1e-5
    )
    ordered = sorted(values, key=lambda path: -values[path])
    assert [*rows] == ordered
    assert [int(row["rank"]) for row in rows.values()] == [1, 2, 3, 4, 5]
    assert {path: int(row["links"]) for path, row in rows.items()} == {
        "/": 1, "/a": 1, "/b": 2, "/c": 2, "/c?x=1&y=2": 1,
    }  # fmt: skip
    assert (rows["/"]["title"], rows["/"]["depth"], rows["/"]["page"]) == ("mock", "0", "")
    assert rows["/a"]["anchor"] == "to /a"
    assert not {"/secret", "/x.pdf"} & {*web.paths}
    assert ending_of(done.crawler).sentence.startswith("Done: 5 pages found in ")


def test_the_policy_and_the_table_agree(tmp_path: Path) -> None:
    """The policy's final values equal the table but for a factor: it receives the same links."""
    rng = random.Random(3)
    there = [f"/{n}" for n in range(60)] + ["http://elsewhere.example/1", "http://elsewhere.example/2", "/gone?1"]
    pages = {f"/{n}": links(*rng.sample(there, 7)) for n in range(60)} | {"/": links("/1", "/2")}
    with MockSite(pages=pages) as site:
        done = find(site, tmp_path, {"FOCUS_POLICY_PARAMS": {"epsilon": 1e-9}}, budget="30")
    rows = table(tmp_path).values()
    assert {row["fetched"] for row in rows} == {"yes", "no"}
    keys = [key_of(Request(row["url"]), done.crawler) for row in rows]
    factors = done.policy.values(keys) / [float(row["importance"]) for row in rows]
    assert factors.max() / factors.min() == pytest.approx(1, abs=1e-4)


class Served:
    """A synthetic web in one site."""

    def __init__(self) -> None:
        self.web, start = LinkWeb.make(500, seed=1).reached()
        self.paths = [f"/{number}" for number in range(self.web.n_urls)]
        self.paths[start] = "/"

    def fetch(self, path: str) -> Page:
        """Answer with the links of a page."""
        if path not in self.paths:
            return Page.of(b"", status=404)
        number = self.paths.index(path)
        to = self.web.targets[self.web.starts[number] : self.web.starts[number + 1]]
        return Page.of(f"<html><body>{links(*(self.paths[other] for other in to))}</body></html>".encode())


def test_the_most_important_pages_come_with_a_fifth_of_the_budget(tmp_path: Path) -> None:
    """Of the best twentieth by the PageRank of the whole web nine of ten, and more than breadth-first."""
    served = Served()
    n = served.web.n_urls
    best = {served.paths[page] for page in np.argsort(-pagerank(served.web.page_links()))[: n // 20]}
    found = {}
    for by in ("pagerank", "breadth"):
        with SiteServer(served) as server:
            args = {"root": server.url, "out": str(tmp_path / by), "budget": str(n // 5), "by": by}
            crawl(ImportantSpider, {"FOCUS_MAX_INFLIGHT": 1}, addon=True, **args)
        found[by] = len(best & {path for path, row in table(tmp_path / by).items() if row["fetched"] == "yes"})
    assert found["pagerank"] >= 0.9 * len(best)
    assert found["pagerank"] > found["breadth"]


def run(server: SiteServer, out: Path, until: int = 0) -> int:
    command = [sys.executable, "-c", RUN, server.url, str(out), str(until)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return run_forked(command, env=env, check=False, capture_output=True, timeout=HANG).returncode


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    """Table and page are those of an uninterrupted crawl; a page can be written while it is dead."""
    with SiteServer(StatisticsPortal(pages=200, seed=0, endless=False), latency=0.0) as server:
        assert run(server, tmp_path / "whole") == 0
        for until in (30,):
            assert run(server, tmp_path / "killed", until) == -signal.SIGKILL
            page = write_report(tmp_path / "killed")
            assert "It is running, or was killed" in Reader(page.read_text()).text
            assert sum(row["fetched"] == "yes" for row in table(tmp_path / "killed").values()) >= until // 2
        assert run(server, tmp_path / "killed") == 0
    whole, killed = ([*table(tmp_path / name).values()] for name in ("whole", "killed"))
    for row in whole + killed:
        row["at"] = ""
    assert len(whole) > 80
    assert killed == whole
    pages = [timeless(tmp_path / name / "index.html") for name in ("whole", "killed")]
    assert pages[0] == pages[1]


def timeless(path: Path) -> str:
    """Return a page without times, how often the crawl was started, and what it asked for again."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00|\d+ \w+ \d{4}, \d\d:\d\d UTC", "then", path.read_text())
    text = re.sub(r"<li>It sent [\d,]+ requests in total, including .*?\.</li>\n?", "", text)
    text = re.sub(r"found in \d+ requests", "found", text).replace(path.parent.name, "the folder")
    return re.sub(r"<dt>(Runs|Total requests)</dt>\s*<dd>.*?</dd>", r"<dt>\1</dt>", text)


def test_a_report_while_it_runs(web: MockSite, tmp_path: Path) -> None:
    """A report contains the pages so far, ranked by the links so far, and does no harm."""

    class Asking(ImportantSpider):
        asked: ClassVar[list[int]] = []

        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            crawler.signals.connect(cls.ask, signals.item_scraped)
            return super().from_crawler(crawler, *args, **kwargs)

        @classmethod
        def ask(cls) -> None:
            write_report(tmp_path)
            cls.asked.append(len(table(tmp_path)))

    done = crawl(Asking, {"FOCUS_MAX_INFLIGHT": 1}, addon=True, root=web.url("/"), out=str(tmp_path))
    assert done.errors == {}
    assert len(Asking.asked) > 4
    assert len(table(tmp_path)) == 5


def test_a_larger_budget_resumes(web: MockSite, tmp_path: Path) -> None:
    """The next pages of the report are fetched then, and the table has all; the same budget adds nothing."""
    job = {"JOBDIR": str(tmp_path / ".focus" / "job"), "FOCUS_OBEY": ["nofollow"]}
    first = find(web, tmp_path, job, budget="3")
    assert ending_of(first.crawler).kind == "budget"
    before = table(tmp_path)
    assert {row["fetched"] for row in before.values()} == {"yes", "no"}
    assert "What to fetch next" in Reader((tmp_path / "index.html").read_text()).text
    find(web, tmp_path, job, budget="50")
    assert {row["fetched"] for row in table(tmp_path).values()} == {"yes"}
    assert len(table(tmp_path)) == 5


def test_a_folder_has_one_crawl(web: MockSite, tmp_path: Path) -> None:
    """A second one is refused before anything is requested, and existing files stay."""
    find(web, tmp_path)
    there = (tmp_path / "importance.csv").read_bytes()
    web.log.clear()
    with pytest.raises(UsageError, match="results of another crawl"):
        crawl(ImportantSpider, {}, addon=True, root=web.url("/"), out=str(tmp_path))
    assert not web.log
    assert (tmp_path / "importance.csv").read_bytes() == there


def test_words_come_first(tmp_path: Path) -> None:
    """Links that speak of the topic are followed before all others."""
    pages = {"/": links(*(f"/{n}" for n in range(30)), "/cheese", "/old-cheeses")}
    pages |= {f"/{n}": "x" for n in range(30)} | {"/cheese": "x", "/old-cheeses": "x"}
    with MockSite(pages=pages) as site:
        done = find(site, tmp_path, words="cheese,wine", budget="4")
        assert type(done.policy) is HotQueue
        assert [path for path in site.paths if path != "/"] == ["/cheese", "/old-cheeses", "/0"]
    assert type(find(site, tmp_path / "2", {"FOCUS_POLICY": Importance}, by="backlinks").policy) is Importance


class Otherwise(ImportantSpider):
    """What a command line may ask for."""

    chosen: ClassVar[dict[str, Any]] = {}

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in cls.chosen.items():
            crawler.settings.set(name, value, "cmdline")
        return super().from_crawler(crawler, *args, **kwargs)


@pytest.mark.parametrize("chosen", [{"FOCUS_POLICY": BREADTH_FIRST}, {"SCHEDULER": STOCK}])
def test_ranks_without_all_links_are_marked(
    web: MockSite, tmp_path: Path, chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another policy or scheduler, pages come in its order; a message says that ranks are not exact then."""
    monkeypatch.setattr(Otherwise, "chosen", chosen)
    done = crawl(Otherwise, {}, addon="SCHEDULER" not in chosen, root=web.url("/"), out=str(tmp_path))
    assert len(done.logged("ranks will be wrong")) == 1
    assert len((tmp_path / "pages.jsonl").read_text().splitlines()) >= 5
    assert (tmp_path / "index.html").exists()


def test_urls_go_to_a_pipe(web: MockSite, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With ``-`` the URLs are printed immediately, and nothing is stored."""
    crawl(ImportantSpider, {}, addon=True, root=web.url("/"), out="-", budget="2")
    assert capfd.readouterr().out.splitlines() == [web.url("/"), web.url("/a")]
    assert not [*tmp_path.iterdir()]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("self_links", "n"), [(10_000, 100), (0, 12_000), pytest.param(0, 100_000, marks=pytest.mark.slow)]
)
def test_a_page_with_very_many_links(tmp_path: Path, self_links: int, n: int) -> None:
    """No link is lost: neither of very many, nor after ten thousand links of a page to itself."""
    home = links(*(["/"] * self_links)) + "".join(f'<a href="/page/{k}">x</a>' for k in range(n))
    with MockSite(pages={"/": home}) as site:
        find(site, tmp_path, budget="5")
    [first, *_] = read_links(tmp_path)
    assert len(first.to) == n


def test_redirects_in_a_circle(tmp_path: Path) -> None:
    """Twenty redirects that end where they began are no page and no end of the crawl; the other links are followed."""
    with MockSite(pages={"/": links("/r0", "/a"), "/a": links("/", "/r7", "/b"), "/b": "x"}) as site:
        site.answers = {
            f"/r{n}": lambda _, n=n: (302, {"Location": f"/r{(n + 1) % 21}"}, b"") for n in range(21)
        }  # fmt: skip
        find(site, tmp_path, {"RETRY_TIMES": 0})
    rows = table(tmp_path)
    assert rows.keys() == {"/", "/a", "/b"}
    assert int(rows["/b"]["links"]) == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"root": ""}, "say where to start"),
        ({"root": "htp://x"}, "say where to start"),
        ({"by": "pagernk"}, "--by is 'pagernk'; did you mean pagerank? It takes one of pagerank, backlinks, opic"),
        ({"by": "money"}, "--by is 'money'; it takes one of pagerank"),
        ({"by": "similarity"}, "there are no words to compare pages with; add them: --words cheese,wine"),
        ({"words": " , "}, "--words is ' , '; it takes words of two letters or more: --words cheese,wine"),
        ({"words": "a"}, "--words is 'a'"),
        ({"budget": "0"}, "--budget is '0'; it takes a number"),
        ({"targets": "csv"}, "unknown argument targets; the arguments are root, by, words, out,"),
        ({"duration": "7d"}, "unknown argument duration; did you mean time? The arguments are root, by"),
    ],
)
def test_mistakes(args: dict[str, str], said: str) -> None:
    """Each is one line, in the words of the command line."""
    with pytest.raises(UsageError) as caught:
        ImportantArguments.read({"root": "http://x.example/", **args}, ImportantArguments.option_names())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy focus-important`` in a folder, whatever commands the environment has."""
    code = (
        "import sys, scrapy.cmdline as c; from scrapy_focus.finders.important.command import ImportantCommand as I;"
        "named = c._get_commands_from_entry_points;"
        "c._get_commands_from_entry_points = lambda *a, **k: {**named(*a, **k), 'focus-important': I()};"
        "c.execute(['scrapy', 'focus-important', *sys.argv[1:]])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return run_forked(
        [sys.executable, "-c", code, *words], cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=HANG
    )  # fmt: skip


def test_the_command(web: MockSite, tmp_path: Path) -> None:
    """It prints its plan, writes a page and a table, and refuses impossible values with status 2."""
    fast = ["-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"]
    done = command(tmp_path, web.url("/"), "--out", "found", "--by", "backlinks", *fast)
    assert done.returncode == 0, done.stderr
    assert "Looking for the most important pages by backlinks from" in done.stdout
    assert len(table(tmp_path / "found")) == 5
    lines = [json.loads(line) for line in (tmp_path / "found" / "pages.jsonl").read_text().splitlines()]
    assert {line["url"] for line in lines} == {row["url"] for row in table(tmp_path / "found").values()}
    dry = command(tmp_path, web.url("/"), "--out", "other", "--dry-run", "--words", "cheese")
    assert "the most important pages by pagerank, those with the words cheese first" in dry.stdout
    assert not (tmp_path / "other").exists()
    (tmp_path / "file").touch()
    for words in ((), ("nowhere",), (web.url("/"), "--by", "x"), (web.url("/"), "--out", "file")):
        wrong = command(tmp_path, *words)
        assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1), wrong.stderr
