"""Write the page of a watched site: new articles, how soon they were seen, and which pages are watched.

Like the page of files, it is self-contained, everything in it is escaped, and nothing is loaded. It has no script.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.printable import NAME, PARAGRAPH, WORD, counted, inflected, printable
from scrapy_focus.core.shown_urls import bare, web_link
from scrapy_focus.finders.kit.page.curve import HEIGHT, WIDTH, Tick, ticks
from scrapy_focus.finders.kit.page.frame import made_environment, policy_of, source
from scrapy_focus.finders.kit.page.fresh import FRESH
from scrapy_focus.finders.kit.page.policy_tables import on_page
from scrapy_focus.finders.kit.page.sums import bar_of
from scrapy_focus.finders.kit.page.words import delay_text, ending, said_of, size_text, span, starts_of
from scrapy_focus.finders.kit.records.folder_names import NEWS
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table
from scrapy_focus.finders.news.atom import FEED
from scrapy_focus.finders.news.hours import HOUR
from scrapy_focus.finders.news.watched import longest_gap, number_in_state, per_day
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from scrapy_focus.finders.news.news_list import Article
    from scrapy_focus.finders.news.watched import Watched

_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 30.0, 44.0  # margins of a drawing
_HOURS = 168  # hours that are drawn
_SHOWN = 30  # articles
_PAGES = 30  # watched pages that are shown
_HUBS = 15  # pages with new articles that are shown
_DAYS = 14  # days whose requests are shown
_GAP = 6 * HOUR  # the shortest time without requests that is reported
_DAY = 24 * HOUR
_UNITS = ((2 * 60, 1, "seconds"), (2 * HOUR, 60, "minutes"), (2 * _DAY, HOUR, "hours"))
_BY = {"page": "a page", "feed": "a feed", "sitemap": "a sitemap", "start": "the start"}


class Bars(NamedTuple):
    """The drawing of new articles per hour."""

    bars: list[tuple[float, float, float, float]]  # left, top, width and height of each
    across: list[Tick]  # days
    up: list[Tick]  # articles
    hours: int
    articles: int


class Line(NamedTuple):
    """The drawing of the share of articles seen within a time."""

    points: str  # of a polyline
    across: list[Tick]  # times
    up: list[Tick]  # per cent
    unit: str  # of these times


class Shown(NamedTuple):
    """An article as the page shows it."""

    title: str
    url: str
    web: str  # the URL, if it may be a link
    seen: str
    published: str
    delay: str
    state: str
    by: str
    page: str
    page_link: str


def news_page(watched: Watched, made: float) -> bytes:
    """Return the page; ``made``: in seconds since the epoch."""
    style = source("sheets/style.css", "page.css")
    text = made_environment(__package__).get_template("newspage.html.jinja").render(
        title=_title(watched), style=style, policy=policy_of(style), summary=_summary(watched),
        made=datetime.fromtimestamp(made, UTC), results=_results(watched),
        shown=[_shown(each) for each in watched.articles[:_SHOWN]],
        news=NEWS, feed=FEED, fresh=FRESH, bars=_bars(watched), line=_line(watched), delays=watched.delays,
        width=WIDTH, height=HEIGHT, hubs=_hubs(watched), pages=_pages(watched), requests=_requests(watched),
        said=watched.said, said_tables=on_page(watched.said),
        facts=_facts(watched), damaged=watched.damaged, more=max(0, watched.n_new - len(watched.articles[:_SHOWN])),
    )  # fmt: skip
    return text.encode(errors="backslashreplace")


def _title(watched: Watched) -> str:
    hosts = [parts_of(url)[0] for url in starts_of(watched.notes.last_run)] or watched.hosts
    if not hosts:
        return "News"
    more = f" and {counted(len(hosts) - 1, 'other host')}" if len(hosts) > 1 else ""
    return f"News of {printable(hosts[0], NAME)}{more}"


def _summary(watched: Watched) -> str:
    if not watched.n_new:
        return "No new article has been seen so far."
    changes = f" and {counted(watched.n_changes, 'change')}" if watched.n_changes else ""
    return f"{counted(watched.n_new, 'new article')}{changes}, on {counted(len(watched.hosts), 'host')}."


def _results(watched: Watched) -> list[str]:
    """Say how soon news was seen, and at what cost."""
    said = [*_arrivals(watched), *_sent(watched), *_waiting(watched)]
    if (gap := longest_gap(watched.hours)) >= _GAP:
        said.append(f"No request was sent for {span(gap)}; articles that came and went in that time were missed.")
    return [*said, ending(watched.notes)]


def _arrivals(watched: Watched) -> list[str]:
    """Say how many articles were published during the watch, and how soon they were seen."""
    now, said = watched.last, []
    if watched.began is not None and now:
        said.append(f"Watched since {_time(watched.began)}, for {span(max(0.0, now - watched.began))}.")
    recent = sum(n for hour, n in watched.arrivals.items() if (hour + 1) * HOUR > now - _DAY)
    if watched.n_new:
        said.append(f"{counted(recent, 'new article')} in the 24 hours before {_time(now)}.")
    if (delays := watched.delays) is not None:
        said.append(
            f"Of {counted(delays.n, 'article')} with a publication time during the watch, half "
            f"were seen within {span(delays.median)}, 90 % within {span(delays.most)}; the mean is {span(delays.mean)}."
        )
    return said


def _sent(watched: Watched) -> list[str]:
    """Say how many requests the watch sends, and how many it may send."""
    rate = watched.notes.last_run.get("rate")
    said = []
    if (asked := per_day(watched.hours, "requests", watched.last)) is not None:
        said.append(f"It sent {counted(asked, 'request')} per day.")
    if rate:
        said.append(f"It may send {printable(str(rate), WORD)}.")
    return [" ".join(said)] if said else []


def _waiting(watched: Watched) -> list[str]:
    """Say which pages are due."""
    state, said = watched.notes.state, []
    asleep, due = number_in_state(state, "asleep"), number_in_state(state, "next_due")
    if asleep and due is not None:
        then = f"; the next visit is at {_time(due)}" if due else ""
        wait = "waits for its" if asleep == 1 else "wait for their"
        said.append(f"{counted(asleep, 'page')} {wait} next visit{then}.")
    if waiting := number_in_state(state, "waiting"):
        said.append(f"{counted(waiting, 'link')} {inflected(waiting, 'is', 'are')} queued: not yet followed, or due.")
    return said


def _shown(article: Article) -> Shown:
    changed = article.state == "changed"
    return Shown(
        title=printable(article.title or article.anchor or article.url), url=bare(article.url),
        web=web_link(article.url), seen=_time(article.first_seen),
        published="" if article.published is None else _time(article.published),
        delay="" if article.delay is None else span(article.delay),
        state=f"changed {_time(article.at)}" if changed else "", by=_BY[article.by], page=bare(article.page),
        page_link=web_link(article.page),
    )  # fmt: skip


def _bars(watched: Watched) -> Bars | None:
    """Draw the new articles of each hour of the last days; ``None`` if there are none, or it is too early."""
    if not watched.arrivals or watched.began is None:
        return None
    last = int(watched.last // HOUR)
    first = max(int(watched.began // HOUR), last - _HOURS + 1)
    counts = [watched.arrivals.get(hour, 0) for hour in range(first, last + 1)]
    if len(counts) < 2 or not any(counts):
        return None
    largest = max(counts)
    wide, high = (WIDTH - _LEFT - _RIGHT) / len(counts), (HEIGHT - _TOP - _BOTTOM) / largest
    bars = [
        (round(_LEFT + wide * i, 1), round(HEIGHT - _BOTTOM - high * n, 1), round(0.85 * wide, 1), round(high * n, 1))
        for i, n in enumerate(counts)
        if n
    ]
    across = _ticks_of_hours(range(first, last + 1), wide)
    up = [Tick(HEIGHT - _BOTTOM - high * n, f"{n:,}") for n in ticks(largest)]
    return Bars(bars, across, up, len(counts), sum(counts))


def _ticks_of_hours(hours: range, wide: float) -> list[Tick]:
    """Return about eight ticks below bars, each `wide`: hours of a day, or days if there are too many hours."""
    every = next((each for each in (1, 3, 6, 12, 24) if len(hours) / each <= 8), 48)
    style = "%H:00" if every < 24 else "%d %b"
    return [
        Tick(_LEFT + wide * (hour - hours.start), datetime.fromtimestamp(hour * HOUR, UTC).strftime(style))
        for hour in hours
        if hour % every == 0
    ]


def _line(watched: Watched) -> Line | None:
    """Draw the share of articles seen within a time, up to 95 % of them."""
    if watched.delays is None:
        return None
    shares = watched.delays.quantiles[:96]
    longest = max(shares[-1], 1.0)
    unit, name = next(((unit, name) for below, unit, name in _UNITS if longest < below), (_DAY, "days"))
    right = max(longest / unit, 1.0)
    wide, high = (WIDTH - _LEFT - _RIGHT) / right, (HEIGHT - _TOP - _BOTTOM) / 100
    points = " ".join(
        f"{_LEFT + wide * seconds / unit:.1f},{HEIGHT - _BOTTOM - high * percent:.1f}"
        for percent, seconds in enumerate(shares)
    )
    across = [Tick(_LEFT + wide * n, f"{n:,}") for n in ticks(int(right))]
    up = [Tick(HEIGHT - _BOTTOM - high * n, f"{n} %") for n in range(0, 101, 20)]
    return Line(points, across, up, name)


def _hubs(watched: Watched) -> Table | None:
    most = watched.hubs[0][1] if watched.hubs else 0
    rows = [Row(bare(url), [Cell(f"{n:,}", bar=bar_of(n, most))], web_link(url)) for url, n in watched.hubs[:_HUBS]]
    where = ", ".join(f"{n:,} on {_BY[by]}" for by, n in watched.by)
    if not rows:
        return None
    return Table("hubs", f"Where links to new articles were first found: {where}.", ["Page", "New articles"], rows)


def _pages(watched: Watched) -> Table | None:
    """Show the pages that are visited most often."""
    if not watched.pages:
        return None
    rows = []
    for page in watched.pages[:_PAGES]:
        low, high = _rate(page.low), _rate(page.high)
        cells = (
            f"{page.visits:,}", f"{page.changes:,}", f"{_rate(page.rate)} ({low} to {high})", _rate(page.targets),
            _time(page.last), "now" if page.next is None else _time(page.next),
        )  # fmt: skip
        rows.append(Row(bare(page.url), [Cell(cell) for cell in cells], web_link(page.url)))
    said = f"The {counted(len(rows), 'page')} visited most often, of {len(watched.pages):,} in the table."
    heads = [
        "Page",
        "Visits",
        "Changes",
        "Changes per day, with 90 % probability",
        "New articles per day",
        "Last visit",
        "Next",
    ]
    return Table("watched", said, heads, rows)


def _requests(watched: Watched) -> Table | None:
    """Show the requests of each of the last days."""
    days: dict[int, Counter[str]] = {}
    for hour in watched.hours:
        days.setdefault(int(hour.began // _DAY), Counter()).update(hour.counts)
    rows = []
    for day, counts in sorted(days.items(), reverse=True)[:_DAYS]:
        cells = [f"{counts[name]:,}" for name in ("requests", "first", "changed", "unchanged", "error")]
        rows.append(
            Row(
                f"{datetime.fromtimestamp(day * _DAY, UTC):%d %B %Y}",
                [Cell(cell) for cell in [*cells, size_text(counts["bytes"])]],
            )
        )
    heads = ["Day", "Requests", "First visits", "Changed", "Unchanged", "Errors", "Received"]
    return Table("requests-a-day", "By day, in UTC.", heads, rows) if rows else None


def _facts(watched: Watched) -> dict[str, str]:
    """Return the arguments and settings of the watch."""
    notes = watched.notes
    if not notes.runs:
        return {}
    run = notes.last_run
    facts = {
        "Started at": ", ".join(starts_of(run)),
        "Looked for": said_of(run, "types"),
        "Requests": str(run.get("rate") or "no limit"),
        "Until": str(run.get("until") or "it is stopped"),
        "robots.txt": "obeyed" if run.get("robots") else "not obeyed",
        "Delay": delay_text(run.get("delay")),
        "User-Agent": said_of(run, "agent"),
        "Policy": said_of(run, "policy"),
        "Runs": f"{len(notes.runs)}, the first from {notes.runs[0].get('at')}",
        "As of": str(notes.state.get("at") or run.get("at")),
        "Version": f"scrapy_focus {run.get('version')}",
    }
    return {name: printable(text, PARAGRAPH) for name, text in facts.items() if text}


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%d %b %H:%M}"
