"""Writes what a crawl found as one page: the files, how the crawl went, and what it left.

The page is one file that needs nothing else. Names, texts and addresses in it come from whatever site was crawled. So
the template escapes them, the list for the script is data that no browser runs, and a policy in the page itself lets
no script run but the one that is known by its hash, and lets nothing be loaded.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from scrapy_focus.core.printable import counted, printable
from scrapy_focus.core.shown_urls import bare, web_link
from scrapy_focus.finders.kit.page.curve import HEIGHT, WIDTH, curve
from scrapy_focus.finders.kit.page.frame import made_environment, policy_of, source
from scrapy_focus.finders.kit.page.policy_tables import on_page
from scrapy_focus.finders.kit.page.report import STATES
from scrapy_focus.finders.kit.page.table import TABLES
from scrapy_focus.finders.kit.page.tables import (
    broken_table,
    facts_of,
    ignored_table,
    paid_table,
    seen_table,
    skips_of,
    sums_tables,
    traffic_table,
    waiting_table,
    words_table,
)
from scrapy_focus.finders.kit.page.words import ending, number_of, outlook, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.kit.page.report import Report
    from scrapy_focus.finders.kit.records.listed import Listed
    from scrapy_focus.finders.kit.records.notes import Notes
    from scrapy_focus.finders.kit.records.ranking import Through

_SHOWN = 100  # files in the page itself, which a browser shows without a script
_LONGEST = 200  # characters of a name, text or address that are shown
_LONGEST_SAID = 1000  # characters of a sentence of the goal
_UNREAD = 5  # start URLs that could not be read, which are named
_HEADS = {  # of the list
    "files": {"name": "Name", "kind": "Type", "size": "Size", "state": "State", "place": "Section"},
    "topic": {"name": "Page", "kind": "Language", "size": "Relevance", "state": "State", "place": "Host"},
    "importance": {"name": "Page", "kind": "Rank", "size": "Importance", "state": "State", "place": "Linked from"},
    "structured": {"name": "Entity", "kind": "Type", "size": "Values", "state": "State", "place": "Host"},
}
_FOUND = {"topic": " on the topic", "structured": " with entities"}


class Shown(NamedTuple):
    """One file as the page shows it."""

    name: str
    link: str  # to the file, relative; "": it is not there
    url: str
    web: str  # the URL, if it may be a link
    kind: str
    size: str
    place: str  # host and section
    page: str
    page_link: str
    anchor: str
    state: str
    more: Sequence[tuple[str, str, str]]  # further links to it: text, page and link to the page


def page(report: Report) -> bytes:
    """Return the page; it grows by some 150 bytes a file."""
    places, more = _places(report), _more(report)
    style, script = source("sheets/style.css", "page.css"), source("page.js")
    text = made_environment().get_template("page.html.jinja").render(
        title=_title(report),
        style=style,
        script=script,
        policy=policy_of(style, script),
        report=report,
        made=datetime.now(UTC),
        summary=_summary(report),
        results=_results(report),
        alarm=printable(str(report.notes.state.get("alarm") or ""), _LONGEST_SAID),
        shown=[_shown(report, *each) for each in zip(report.files[:_SHOWN], places, more, strict=False)],
        has_states=_is_again(report.states),
        data=_data(report, places, more),
        heads=_HEADS[report.about],
        table=TABLES[report.about],
        kinds=[] if report.about == "importance" else [printable(sum_.name) for sum_ in report.kinds],
        states=[state for state in STATES if state in report.states],
        sums=sums_tables(report),
        curve=None if report.about == "importance" else curve(report.notes.answers),
        width=WIDTH,
        height=HEIGHT,
        paid=paid_table(report),
        words=words_table(report),
        seen=seen_table(report),
        waiting=waiting_table(report),
        resumable=bool(report.notes.runs) and report.notes.runs[-1].get("resumable"),
        skips=skips_of(report),
        broken=broken_table(report),
        ignored=ignored_table(report),
        traffic=traffic_table(report),
        said=report.said,
        said_tables=on_page(report.said),
        facts=facts_of(report),
    )  # fmt: skip
    return text.encode(errors="backslashreplace")


def _title(report: Report) -> str:
    hosts = [sum_.name for sum_ in report.hosts] or [each.host for each in report.traffic]
    if not hosts:
        return "What was found"
    more = f" and {counted(len(hosts) - 1, 'other host')}" if len(hosts) > 1 else ""
    return f"What was found on {printable(hosts[0], 80)}{more}"


def _is_again(states: dict[str, int]) -> bool:
    """Whether an earlier crawl had found some of the files: after the first, all are new."""
    return bool(set(states) - {"new"})


def _summary(report: Report) -> str:
    """Say how much is in the folder, in a line."""
    if report.about == "importance":
        n_links = sum(page.links for page in report.ranking)
        known = counted(len(report.ranking), "page")
        return f"{counted(len(report.files), 'page')} of {known} that it knows, by {counted(n_links, 'link')} to them."
    if report.about == "topic":
        there = f"{counted(len(report.pages), 'page')} {'was' if len(report.pages) == 1 else 'were'} read"
        on = f", on {counted(len(report.hosts), 'host')}" if report.files else ""
        return f"{there}; {len(report.files):,} of them {'is' if len(report.files) == 1 else 'are'} on the topic{on}."
    if report.about == "structured":
        pages, found = (sum(getattr(host, name) for host in report.read) for name in ("pages", "with_entities"))
        there = f"{counted(pages, 'page')} {'was' if pages == 1 else 'were'} read"
        on = f", on {counted(len(report.hosts), 'host')}" if report.files else ""
        what = f"{counted(len(report.files), 'entity')} of what is looked for"
        return f"{there}; {found:,} of them {'has' if found == 1 else 'have'} {what}{on}."
    if not report.files:
        return "No file was found."
    size, kinds, hosts = sum(file.size for file in report.files), len(report.kinds), len(report.hosts)
    return (
        f"{counted(len(report.files), 'file')}, {size_text(size)}, of {counted(kinds, 'type')}, on "
        f"{counted(hosts, 'host')}."
    )


def _new(notes: Notes, report: Report) -> str:
    """Say that those are counted that no earlier crawl found, where there was one."""
    return " that no earlier crawl had found" if report.about == "files" and notes.crawl > 1 else ""


def _results(report: Report) -> list[str]:
    """Say what came of the last crawl, and what is to be expected of the next one."""
    notes, states = report.notes, report.states
    said = []
    if _is_again(states):
        counts = ", ".join(f"{states.get(state, 0):,} {word}" for state, word in zip(
            STATES, ("new", "changed", "the same", "gone", "not seen this time"), strict=True))  # fmt: skip
        said.append(f"Since the crawl before: {counts}.")
    requests = sum(answer.sent for answer in notes.answers)
    found = sum(answer.files > 0 for answer in notes.answers)
    if notes.answers:
        rate = f" ({100 * found / requests:.1f} in 100 requests)" if requests else ""
        ordinal = f"Crawl {notes.crawl}" if notes.crawl > 1 else "The crawl"
        said.append(
            f"{ordinal} followed {counted(len(notes.answers), 'link')} with {counted(requests, 'request')}, and found "
            f"{counted(found, report.noun)}{_FOUND.get(report.about, '')}{_new(notes, report)}{rate}."
        )
        said += _all_sent(notes, requests)
    said += [*_rendered(notes), *_best(report), *_told(notes)]
    if cut := sum(bool(file.cut) for file in report.files):
        it = "it" if cut == 1 else "them"
        said.append(f"{counted(cut, 'file')} {'was' if cut == 1 else 'were'} cut: the server sent only a part of {it}.")
    said.append(ending(notes))
    for url, why in report.unread[:_UNREAD]:
        if printable(url, 300) not in said[-1]:
            said.append(f"The crawl was to begin at {printable(url, _LONGEST)}, too, which could not be read: {why}.")
    return [*said, *outlook(notes, report.noun)]


def _all_sent(notes: Notes, counted_here: int) -> list[str]:
    """Say how many requests were sent in all, where that is more than those for links that were followed once."""
    used = notes.state.get("used")
    sent = int(number_of(used.get("requests")) or 0) if isinstance(used, dict) else 0
    if sent <= counted_here:
        return []
    more = ["robots.txt"] if notes.runs and notes.runs[-1].get("robots") else []
    more += ["what was asked again after an interruption"] if len(notes.runs) > 1 else []
    return [f"It sent {counted(sent, 'request')} in all{', with ' if more else ''}{' and '.join(more)}."]


def _rendered(notes: Notes) -> list[str]:
    """Say what a browser did for the crawl, and what was read from APIs in its place."""
    told = notes.state.get("rendered")
    counts = told if isinstance(told, dict) else {}
    pages, asked, apart, stored, read, calls = (
        int(number_of(counts.get(name)) or 0)
        for name in (
            "browser/read", "browser/requests", "browser/elsewhere", "browser/stored", "api/pages", "api/requests",
        )
    )  # fmt: skip
    refused = sum(int(number_of(n) or 0) for name, n in counts.items() if name.startswith("browser/refused/"))
    said = []
    if pages:
        elsewhere = f" ({apart:,} of them to other hosts)" if apart else ""
        said.append(
            f"A browser rendered {counted(pages, 'page')}, with {counted(asked, 'further request')}{elsewhere}; "
            f"{refused:,} were refused, and {stored:,} scripts and style sheets were there already."
        )
    if read:
        said.append(f"Links of {counted(read, 'page')} were read from APIs instead, with {counted(calls, 'request')}.")
    return said


def _told(notes: Notes) -> list[str]:
    """Return what the goal told of the crawl, a sentence each."""
    told = notes.state.get("said")
    said = [printable(each, _LONGEST_SAID) for each in told if isinstance(each, str)] if isinstance(told, list) else []
    return [f"{each[:1].upper()}{each[1:].rstrip('.')}." for each in said]


def _best(report: Report) -> list[str]:
    """Say how many of the most important pages were fetched, of as many as were fetched at all."""
    number = len(report.files)
    if report.about != "importance" or not number or number == len(report.ranking):
        return []
    found = sum(page.is_fetched for page in report.ranking[:number])
    return [
        f"Of the {counted(number, 'page')} that are most important by all links that were seen, it fetched {found:,}. "
        "The others are listed below."
    ]


def _places(report: Report) -> list[str]:
    """Return where each find is: its section, or its host, or both."""
    if report.about == "importance":
        return [counted(page.links, "page") for page in report.ranking if page.is_fetched]
    if report.about in ("topic", "structured"):
        return [page.host for page in report.files]
    several = len(report.hosts) > 1
    return [file.host + file.section if several else file.section for file in report.files]


def _shown(report: Report, file: Listed, place: str, more: Sequence[Through]) -> Shown:
    return Shown(
        name=printable(file.name or file.url, _LONGEST), link=_quoted(file.path), url=bare(file.url),
        web=web_link(file.url), kind=printable(file.kind),
        size=_size(report, file.size) + (", cut" if file.cut else ""),
        place=printable(place, _LONGEST), page=bare(file.page),
        page_link=web_link(file.page), anchor=printable(file.anchor, _LONGEST), state=printable(file.state, 20),
        more=[(printable(each.anchor, _LONGEST), bare(each.page), web_link(each.page)) for each in more],
    )  # fmt: skip


def _size(report: Report, size: int) -> str:
    if report.about == "files":
        return size_text(size)
    if report.about == "structured":
        return f"{size:,}"
    return f"{size} %" if report.about == "topic" else f"{size / 1000:,.2f}"


def _more(report: Report) -> list[list[Through]]:
    """Return for each find the links by which it was found, but for the first one."""
    if report.about != "importance":
        return [[] for _ in report.files]
    fetched = (page for page in report.ranking if page.is_fetched)
    return [[each for each in page.through if each.page != page.page] for page in fetched]


def _quoted(path: str) -> str:
    """Return a relative path as a link: it begins with the folder of all files, and so names no scheme."""
    return quote(path)


def _data(report: Report, places: Sequence[str], more: Sequence[Sequence[Through]]) -> Markup:
    """Return the list, and what it is a list of, as JSON for an element: no character in it has a meaning for HTML.

    Texts that many files share stand once in ``texts``; a row has their numbers. In a row are name, folder and end of
    the URL, size, type, host and section, page, text of the link, state, folder and name on disk, 1 if it was cut, then
    page and text of each further link; 0 for an end or a name that is the name that is shown.
    """
    numbers: dict[str, int] = {}
    shown: dict[str, int] = {}  # the same, by what the texts were before they were made printable

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    def number_shown(text: str) -> int:
        known = shown.get(text)
        if known is None:
            known = shown[text] = number(printable(text, _LONGEST))
        return known

    rows: list[list[Any]] = []
    for file, where, others in zip(report.files, places, more, strict=True):
        name = printable(file.name or file.url, _LONGEST)
        folder, slash, end = web_link(file.url).rpartition("/")
        folder_on_disk, separator, stored = file.path.rpartition("/")
        rows.append([
            name, number(folder + slash), 0 if end == name else end, file.size, number_shown(file.kind),
            number_shown(where), number(web_link(file.page)),
            number_shown(file.anchor), number_shown(file.state),
            number(folder_on_disk + separator), 0 if stored == name else stored, int(bool(file.cut)),
            *(each for other in others for each in (number(web_link(other.page)), number_shown(other.anchor))),
        ])  # fmt: skip
    text = json.dumps(
        {"about": report.about, "noun": report.listed, "texts": [*numbers], "rows": rows}, separators=(",", ":")
    )  # fmt: skip
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 (no character of it has a meaning)
