"""NewsGoal: news, non-documents, documents that were seen before, and documents without a date."""

from __future__ import annotations

import copy
import pickle
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import ConfigError, Crawl, NewsGoal, memory_frontier
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.web.documents import Document
from tests.made import Clock, EachAgain, link
from tests.made import page as outcome_of

if TYPE_CHECKING:
    from scrapy_focus import Outcome

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
TEXT = " ".join(f"word{i}" for i in range(100))


def article(at: float | None = NOW - HOUR, text: str = TEXT, links: str = "") -> str:
    """Return a page with a text, and a date."""
    date = "" if at is None else f'<meta name="date" content="{datetime.fromtimestamp(at, UTC).isoformat()}">'
    return f"<html><head>{date}</head><body><p>{text}</p>{links}</body></html>"


def listing(*urls: str) -> str:
    """Return a page that lists others."""
    return "<html><body>" + "".join(f'<p>New: <a href="{url}">{TEXT}</a></p>' for url in urls) + "</body></html>"


class Visits:
    """Shows pages to a goal."""

    def unchanged(self, path: str, at: float) -> None:
        """Report that a page is unchanged."""
        pick = SimpleNamespace(url=f"http://a.example{path}", key=hash(path), method="GET")
        self.goal.unchanged(outcome_of(pick, at=at, changed=False))  # type: ignore[arg-type]

    def __init__(self, **options: Any) -> None:
        self.goal = NewsGoal(**options)
        self._n = 0

    def __call__(
        self, path: str, html: str, at: float = NOW, *, changed: bool | None = None, status: int = 200, **headers: str
    ) -> float:
        self._n += 1
        url = f"http://a.example{path}"
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        page: Any = SimpleNamespace(url=url, status=status, headers=names, text=html, kind="")
        pick = SimpleNamespace(url=url, key=hash(path), method="GET")
        outcome = outcome_of(pick, page=page, at=at, changed=changed, status=status)  # type: ignore[arg-type]
        return self.goal(outcome)


def test_a_young_document_is_news_once() -> None:
    """Under one URL or two; not when it changes, and not when it is old."""
    visit = Visits(hours=24)
    assert visit("/1", article()) == 1
    assert visit("/1", article()) == 0
    assert visit("/1", article(text=f"Corrected: {TEXT}"), changed=True) == 0
    assert visit("/1", article(text=f"Again: {TEXT}")) == 0, "by its URL, where nobody says whether it was visited"
    assert visit("/copy?from=front", article()) == 0
    assert visit("/2", article(text=f"Another {TEXT}")) == 1
    assert visit("/3", article(NOW - 25 * HOUR, f"Old {TEXT}")) == 0
    assert visit("/4", article(NOW - 23 * HOUR, f"Young {TEXT}")) == 1
    assert visit("/5", article(NOW + HOUR, f"Ahead {TEXT}")) == 1
    assert visit("/6", article(NOW + 48 * HOUR, f"Far ahead {TEXT}")) == 0
    assert visit("/7", article(text=f"Was there {TEXT}"), changed=True) == 0
    assert visit("/8", article(text=f"Failed {TEXT}"), status=404) == 0
    assert Visits(hours=48)("/3", article(NOW - 25 * HOUR)) == 1


def test_a_list_is_no_document() -> None:
    """However much there is to read on it, and whatever its date, unless it says that it is an article."""
    visit = Visits()
    dated = listing("/a", "/b").replace("<body>", '<meta name="date" content="2026-01-05T08:00:00Z">')
    assert visit("/", dated) == 0
    teasers = "".join(f"<p>Some twelve words about what stands there, so that one follows. {i}</p>" for i in range(50))
    assert visit("/teasers", f'<meta name="date" content="2026-01-05T08:00:00Z">{teasers}') == 0
    assert visit("/short", '<meta property="article:published_time" content="2026-01-05T08:00:00Z"><p>Short.</p>') == 1
    assert visit("/empty", "") == 0


def test_last_modified_counts_where_the_page_says_nothing() -> None:
    """Unless it is the time of the visit, as it is where pages are made when they are asked for."""
    visit = Visits()
    assert visit("/1", article(None), Last_Modified="Mon, 05 Jan 2026 08:00:00 GMT") == 1
    assert visit("/2", article(None, f"B {TEXT}"), last_modified="Fri, 02 Jan 2026 08:00:00 GMT") == 0
    assert visit("/3", article(None, f"C {TEXT}"), Last_Modified="Mon, 05 Jan 2026 09:00:00 GMT") == 0
    assert visit("/4", article(NOW - 90 * HOUR, f"D {TEXT}"), Last_Modified="Mon, 05 Jan 2026 08:00:00 GMT") == 0
    assert visit("/5", article(None, f"E {TEXT}"), Last_Modified="soon") == 0


def test_without_a_date_a_document_is_as_old_as_the_link_to_it() -> None:
    """New where that appeared on a page that had been visited without it, within the hours."""
    visit = Visits(hours=24)
    assert visit("/", listing("/old"), NOW) == 0
    assert visit("/old", article(None, f"Old {TEXT}"), NOW) == 0, "seen for the first time, as all is at first"
    assert visit("/", listing("/new", "/old"), NOW + HOUR, changed=True) == 0
    assert visit("/new", article(None, f"New {TEXT}"), NOW + 2 * HOUR) == 1
    assert visit("/old2", article(None, f"Old2 {TEXT}"), NOW + 2 * HOUR) == 0
    visit("/", listing("/late", "/new", "/old"), NOW + 50 * HOUR, changed=True)
    assert visit("/late", article(None, f"Late {TEXT}"), NOW + 51 * HOUR) == 0, "it may have been there for two days"
    visit("/", listing("/soon", "/late"), NOW + 52 * HOUR, changed=True)
    assert visit("/soon", article(None, f"Soon {TEXT}"), NOW + 73 * HOUR) == 1
    visit.unchanged("/", NOW + 99 * HOUR)
    visit("/", listing("/long", "/soon"), NOW + 100 * HOUR, changed=True)
    assert visit("/long", article(None, f"Long {TEXT}"), NOW + 101 * HOUR) == 1, "visits that brought nothing count"
    visit("/list", listing("/seen"), NOW + 101 * HOUR)
    visit("/", listing("/seen", "/soon"), NOW + 101 * HOUR, changed=True)
    assert visit("/seen", article(None, f"Seen {TEXT}"), NOW + 101 * HOUR) == 0, "it was known from another page"


def test_a_reading_says_what_a_page_says_of_itself() -> None:
    """For listing news; the goal counts nothing by it."""
    goal = NewsGoal(hours=2)
    page: Any = SimpleNamespace(url="http://a.example/1", headers={}, text=article(), status=200, kind="")
    reading = goal.reading(page)
    assert reading._replace(digest=b"") == Document("http://a.example/1", True, published=NOW - HOUR, by="meta")
    assert goal.is_news(reading, NOW)
    assert goal.is_news(reading, NOW)
    assert not goal.is_news(reading, NOW + 2 * HOUR)
    assert goal.published(reading, NOW + 2 * HOUR) == NOW - HOUR
    nothing: Any = SimpleNamespace(url="http://a.example/2", headers={}, text="", status=200, kind="")
    assert goal.reading(nothing) == Document("http://a.example/2")
    assert not goal.is_news(goal.reading(nothing), NOW)


def test_it_can_be_stored_and_copied() -> None:
    """With its memory; a copy has a separate memory."""
    visit = Visits()
    visit("/1", article())
    other = Visits()
    other.goal = pickle.loads(pickle.dumps(visit.goal))
    assert other("/copy", article()) == 0
    other.goal = copy.deepcopy(visit.goal)
    assert other("/2", article(text=f"B {TEXT}")) == 1
    assert visit("/2", article(text=f"B {TEXT}")) == 1


def test_its_memory_is_bounded() -> None:
    """A million links, and it says that it forgets what was long ago."""
    goal = NewsGoal()
    for i in range(300_000):
        goal._links.add(i.to_bytes(16) if i % 2 else bytes(16))
    assert len(goal._links._bits) == 2 << 20
    from scrapy_focus.goals import news

    for i in range(news._SEEN + 10):
        news._remember(goal._seen, i.to_bytes(16), 0.0, news._SEEN)
    assert len(goal._seen) == news._SEEN
    assert (0).to_bytes(16) not in goal._seen


def test_odd_pages_take_no_longer_than_they_are() -> None:
    """Paragraphs within each other, and many links."""
    goal = NewsGoal()
    words = "word " * 30
    for text in (f"<p>{words}<table><tr><td>" * 5000, f'<p>{words}<a href="/{words}">x</a>' * 20_000, "<p>" * 100_000):
        page: Any = SimpleNamespace(url="http://a.example/", headers={}, text=text, status=200)
        start = time.process_time()
        goal.reading(page)
        assert time.process_time() - start < 20


@pytest.mark.parametrize("hours", [0, -1, "24", True, float("nan"), 1e9])
def test_hours_that_are_none_are_named(hours: Any) -> None:
    """With the expected values."""
    with pytest.raises(ConfigError, match="it takes a number of hours above 0"):
        NewsGoal(hours=hours)


def test_a_crawl_tells_it_the_time() -> None:
    """That of its clock, in each outcome."""
    seen = []

    def goal(outcome: Outcome) -> float:
        seen.append(outcome.at)
        return 0.0

    clock = Clock()
    crawl = Crawl(EachAgain(every=5.0), frontier=memory_frontier, goal=goal, clock=clock, strict=True)
    crawl.add([link(1)])
    for changed in (None, True, False):
        pick = crawl.next()
        assert pick is not None
        crawl.report(outcome_of(pick, changed=changed))
        clock.now += 5
    assert seen == [1000.0, 1005.0]


def test_a_crawl_tells_it_of_pages_that_came_back_as_they_were() -> None:
    """At their time; other goals need not know."""
    told = []

    class Goal(NewsGoal):
        def unchanged(self, outcome: Outcome) -> None:
            told.append((outcome.at, outcome.changed))

    clock = Clock()
    crawl = Crawl(EachAgain(every=5.0), frontier=memory_frontier, goal=Goal(), clock=clock, strict=True)
    crawl.add([link(1)])
    for changed in (None, False, True):
        pick = crawl.next()
        assert pick is not None
        crawl.report(outcome_of(pick, changed=changed))
        clock.now += 5
    assert told == [(1005.0, False)]


@pytest.mark.few(1)
@pytest.mark.parametrize("undated", [0.0, 1.0])
def test_all_documents_of_synthetic_sites_are_told_from_lists(undated: float) -> None:
    """Every page of the news site, and those of the portal but few."""
    site, goal, at = NewsSite(Manner(archive=300, undated=undated), seed=3, days=1), NewsGoal(), BEGIN + DAY - 1
    for path in dict.fromkeys(version.path for version in site.versions()):
        made = site.answer(path, at)
        if made.status == 200:
            page: Any = SimpleNamespace(url=f"http://a.example{path}", headers={}, text=made.body.decode(), status=200)
            reading = goal.reading(page)
            assert reading.is_document == path[1:2].isdigit(), path
            assert (reading.published is not None) == (path[1:2].isdigit() and not undated)
    portal = StatisticsPortal(pages=300, seed=0)
    lists = ["/", "/news", "/data", "/publications", "/indicators", "/topics", "/archive", "/news?page=1", "/fr/news"]
    for path in lists:
        page = SimpleNamespace(
            url=f"http://a.example{path}", headers={}, text=portal.fetch(path).body.decode(), status=200
        )
        assert not goal.reading(page).is_document, path
