"""ReinforcingAgent: a document is paid for as often as it changes, while it is young."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_focus import ConfigError, NewsGoal, ReinforcingAgent
from scrapy_focus.goals import news
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from tests.made import page as outcome_of

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
TEXT = " ".join(f"word{i}" for i in range(100))


def said(at: float) -> str:
    """Return a time as pages write it."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def article(text: str = TEXT, *, published: float | None = None, modified: float | None = None) -> str:
    """Return a page with a text, and dates."""
    head = "" if published is None else f'<meta property="article:published_time" content="{said(published)}">'
    head += "" if modified is None else f'<meta property="article:modified_time" content="{said(modified)}">'
    return f"<html><head>{head}</head><body><p>{text}</p></body></html>"


def listing(*urls: str) -> str:
    """Return a page that lists others."""
    return "<html><body>" + "".join(f'<p>New: <a href="{url}">{TEXT}</a></p>' for url in urls) + "</body></html>"


class Visits:
    """Shows pages to an agent, or reports an unchanged one."""

    def __init__(self, **options: Any) -> None:
        self.agent: Any = ReinforcingAgent(**options)

    def __call__(self, path: str, html: str, at: float = NOW, *, status: int = 200, **headers: str) -> float:
        url = f"http://a.example{path}"
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        page: Any = SimpleNamespace(url=url, status=status, headers=names, text=html, kind="")
        pick: Any = SimpleNamespace(url=url, key=hash(path), method="GET")
        return float(self.agent(outcome_of(pick, page=page, at=at, status=status)))

    def unchanged(self, path: str, at: float) -> None:
        pick: Any = SimpleNamespace(url=f"http://a.example{path}", key=hash(path), method="GET")
        self.agent.unchanged(outcome_of(pick, at=at, changed=False))


def test_a_document_is_paid_for_once_as_it_is() -> None:
    """Under each URL, and again when it changes while it is young."""
    visit = Visits(hours=24)
    assert visit("/1", article(published=NOW - HOUR)) == 1
    assert visit("/1", article(published=NOW - HOUR)) == 0
    assert visit("/1", article(f"More {TEXT}", published=NOW - HOUR), NOW + HOUR) == 1
    assert visit("/1", article(published=NOW - HOUR), NOW + HOUR) == 0, "it was so before"
    assert visit("/1", article(f"Later {TEXT}", published=NOW - HOUR), NOW + 24 * HOUR) == 0
    assert visit("/copy", article(published=NOW - HOUR)) == 1
    assert visit("/other", article(f"Other {TEXT}", published=NOW - HOUR), status=404) == 0
    assert visit("/", listing("/1", "/2")) == 0


def test_the_last_change_counts() -> None:
    """And not when it was published, where it says both."""
    visit = Visits(hours=24)
    assert visit("/1", article(published=NOW - 10 * DAY, modified=NOW - HOUR)) == 1
    assert visit("/2", article(published=NOW - 10 * DAY, modified=NOW - 25 * HOUR)) == 0
    assert visit("/2", article(f"Now {TEXT}", published=NOW - 10 * DAY, modified=NOW - 23 * HOUR)) == 1
    assert visit("/3", article(published=NOW - 10 * DAY)) == 0
    assert visit("/3", article(f"Changed {TEXT}", published=NOW - 10 * DAY), NOW + HOUR) == 0, "the page says when"
    assert Visits(hours=48)("/2", article(modified=NOW - 25 * HOUR)) == 1
    assert visit("/4", article(modified=NOW - 24 * HOUR - 1)) == 0
    assert visit("/4", article(modified=NOW - 24 * HOUR)) == 1, "it is no older than that"


def test_last_modified_counts_where_the_page_says_nothing() -> None:
    """Unless it is the time of the visit: then it is paid for when another visit shows that it is not."""
    visit = Visits()
    header = "Mon, 05 Jan 2026 09:00:00 GMT"
    assert visit("/1", article(), NOW + 30, Last_Modified=header) == 0
    assert visit("/1", article(), NOW + HOUR, Last_Modified=header) == 1
    assert visit("/2", article(), NOW + 25 * HOUR, Last_Modified=header) == 0
    assert visit("/3", article(published=NOW - 3 * DAY), NOW + HOUR, Last_Modified=header) == 0


def test_without_dates_a_document_is_as_old_as_the_link_or_the_visit_before() -> None:
    """What was there when the crawl began is paid for when it changes, and that no longer ago than these hours."""
    visit = Visits(hours=24)
    assert visit("/", listing("/old")) == 0
    assert visit("/old", article()) == 0, "nobody knows since when it is so"
    assert visit("/old", article(f"Changed {TEXT}"), NOW + 2 * HOUR) == 1
    assert visit("/old", article(f"Changed {TEXT}"), NOW + 3 * HOUR) == 0
    assert visit("/old", article(f"Again {TEXT}"), NOW + 28 * HOUR) == 0, "perhaps 25 hours ago"
    visit.unchanged("/old", NOW + 30 * HOUR)
    assert visit("/old", article(f"Thrice {TEXT}"), NOW + 53 * HOUR) == 1, "visits that brought nothing count"
    visit.unchanged("/", NOW + 54 * HOUR)
    assert visit("/", listing("/new", "/old"), NOW + 55 * HOUR) == 0
    assert visit("/new", article(f"New {TEXT}"), NOW + 56 * HOUR) == 1


def test_it_can_be_stored_and_copied() -> None:
    """With its memory; a copy has a separate memory."""
    visit, other = Visits(), Visits()
    assert visit("/1", article(published=NOW)) == 1
    other.agent = pickle.loads(pickle.dumps(visit.agent))
    assert other("/1", article(published=NOW)) == 0
    other.agent = copy.deepcopy(visit.agent)
    assert other("/2", article(published=NOW)) == visit("/2", article(published=NOW)) == 1
    assert repr(ReinforcingAgent(hours=2)) == "documents that changed in the last 2 hours"


def test_its_memory_is_bounded() -> None:
    """It forgets what was long ago."""
    visit = Visits()
    for i in range(news._PAGES + 10):
        visit.agent._changed(
            news.Document(str(i), True, digest=b"x"), SimpleNamespace(at=NOW, pick=SimpleNamespace(key=i))
        )
    assert len(visit.agent._texts) == news._PAGES


@pytest.mark.parametrize("hours", [0, True, "24"])
def test_hours_that_are_none_are_named(hours: Any) -> None:
    """With the expected values."""
    with pytest.raises(ConfigError, match="it takes a number of hours above 0"):
        ReinforcingAgent(hours=hours)


def test_every_version_of_a_synthetic_article_that_says_so_is_paid_for() -> None:
    """Each once, and of those that say when they changed; what news is counts once for all versions."""
    site, at = NewsSite(Manner(archive=100), seed=3, days=2), BEGIN + DAY
    agent, goal = Visits(), NewsGoal()
    paid = versions = articles = 0
    for version in site.versions():
        path, since = version.path, version.since or BEGIN
        if not path[1:2].isdigit() or version.page.status != 200 or since < at:
            continue
        html = version.page.body.decode()
        if "dateModified" not in html and "article:modified_time" not in html:
            continue
        versions += 1
        assert agent(path, html, since + HOUR) == 1
        assert agent(path, html, since + 2 * HOUR) == 0
        paid += 1
        page: Any = SimpleNamespace(url=f"http://a.example{path}", headers={}, text=html, status=200)
        pick: Any = SimpleNamespace(url=path, key=hash(path), method="GET")
        articles += int(goal(outcome_of(pick, page=page, at=since + HOUR)))
    assert paid == versions > articles > 20
