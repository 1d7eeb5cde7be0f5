"""Write the page of a crawl: what it found, how it went, and what it did not fetch.

The page is one self-contained file. Its names, texts and addresses come from the crawled site and are not trusted. So
the template escapes them, the list for the script is data that no browser runs, and the page's content security policy
allows one script, by its hash, and loads nothing else.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from scrapy_focus.core.printable import NAME, PARAGRAPH, REASON, counted, inflected, printable
from scrapy_focus.core.shown_urls import bare, web_link
from scrapy_focus.finders.kit.page.curve import HEIGHT, WIDTH, curve
from scrapy_focus.finders.kit.page.frame import made_environment, policy_of, source
from scrapy_focus.finders.kit.page.paid_kinds import paid_kinds
from scrapy_focus.finders.kit.page.policy_tables import on_page
from scrapy_focus.finders.kit.page.sums import STATES
from scrapy_focus.finders.kit.page.tables import (
    broken_table,
    facts_of,
    ignored_table,
    seen_table,
    skips_of,
    traffic_table,
    words_table,
)
from scrapy_focus.finders.kit.page.words import ending, number_of, outlook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.kit.page.output import Output
    from scrapy_focus.finders.kit.page.report import Report
    from scrapy_focus.finders.kit.records.notes import Notes

_SHOWN = 100  # files in the page itself, shown without a script
_HOSTS = 5  # with unchecked certificates that are named
_UNREAD = 5  # unreadable start URLs that are named


class Shown(NamedTuple):
    """A file as the page shows it."""

    name: str
    link: str  # to the file, relative; "": not stored
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
    relevance: int  # in per cent; -1: not judged
    words: str  # those that spoke for it


def page(report: Report) -> bytes:
    """Return the page; it grows by about 150 bytes per file."""
    output, sums = report.output, report.sums
    style, script = source("sheets/style.css", "page.css"), source("page.js")
    text = made_environment().get_template("page.html.jinja").render(
        title=_title(report),
        style=style,
        script=script,
        policy=policy_of(style, script),
        report=report,
        output=output,
        made=datetime.now(UTC),
        summary=output.summary(sums),
        results=_results(report),
        alarm=printable(str(report.notes.state.get("alarm") or ""), PARAGRAPH),
        shown=[_shown(output, find) for find in output.finds[:_SHOWN]],
        has_states=_is_again(sums.states),
        data=_data(output),
        columns=output.columns,
        kinds=[printable(sum_.name) for sum_ in sums.kinds] if output.has_kinds else [],
        states=[state for state in STATES if state in sums.states],
        sums=[table for table in output.sums(sums) if table is not None],
        curve=curve(report.notes.answers, output.worth(report.notes.answers)),
        width=WIDTH,
        height=HEIGHT,
        paid=paid_kinds(report),
        words=words_table(report),
        seen=seen_table(report),
        waiting=output.waiting(),
        resumable=report.notes.last_run.get("resumable"),
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
    hosts = [sum_.name for sum_ in report.sums.hosts] or [each.host for each in report.traffic]
    if not hosts:
        return "What was found"
    more = f" and {counted(len(hosts) - 1, 'other host')}" if len(hosts) > 1 else ""
    return f"What was found on {printable(hosts[0], NAME)}{more}"


def _is_again(states: dict[str, int]) -> bool:
    """Whether an earlier crawl found some of the files: after the first crawl, all are new."""
    return bool(set(states) - {"new"})


def _new(notes: Notes, output: Output) -> str:
    """Add, after the first crawl, that only finds of no earlier crawl are counted."""
    if output.noun == "file" and notes.crawl > 1:
        return " that no earlier crawl had found"
    return ""


def _results(report: Report) -> list[str]:
    """Sum up the last crawl, and say what to expect of the next one."""
    notes, output, states = report.notes, report.output, report.sums.states
    said = []
    if _is_again(states):
        counts = ", ".join(f"{states.get(state, 0):,} {word}" for state, word in zip(
            STATES, ("new", "changed", "unchanged", "gone", "not seen this time"), strict=True))  # fmt: skip
        said.append(f"Since the previous crawl: {counts}.")
    if notes.answers:
        said += _followed(notes, output)
    said += [*_rendered(notes), *_unchecked(notes), *output.facts(), *_goal_sentences(notes)]
    if cut := sum(map(output.is_cut, output.finds)):
        were, them = inflected(cut, "was", "were"), inflected(cut, "it", "them")
        said.append(f"{counted(cut, 'file')} {were} cut: the server sent only part of {them}.")
    said.append(ending(notes))
    for url, why in report.unread[:_UNREAD]:
        if printable(url, REASON) not in said[-1]:
            said.append(f"The start URL {printable(url)} could not be read: {why}.")
    return [*said, *outlook(notes, output.sought)]


def _followed(notes: Notes, output: Output) -> list[str]:
    """Say how many links were followed, what they cost, and what they led to."""
    requests = sum(answer.sent for answer in notes.answers)
    found = sum(answer.files > 0 for answer in notes.answers)
    rate = f" ({100 * found / requests:.1f} per 100 requests)" if requests else ""
    ordinal = f"Crawl {notes.crawl}" if notes.crawl > 1 else "The crawl"
    said = (
        f"{ordinal} followed {counted(len(notes.answers), 'link')} with {counted(requests, 'request')}, and found "
        f"{counted(found, output.noun)}{output.quality}{_new(notes, output)}{rate}."
    )
    return [said, *_all_sent(notes, requests)]


def _all_sent(notes: Notes, counted_here: int) -> list[str]:
    """Give the total of requests, where it exceeds those for links."""
    used = notes.state.get("used")
    sent = int(number_of(used.get("requests")) or 0) if isinstance(used, dict) else 0
    if sent <= counted_here:
        return []
    more = []
    if notes.last_run.get("robots"):
        more.append("robots.txt")
    if len(notes.runs) > 1:
        more.append("requests repeated after an interruption")
    beside = f", including {' and '.join(more)}" if more else ""
    return [f"It sent {counted(sent, 'request')} in total{beside}."]


def _rendered(notes: Notes) -> list[str]:
    """Say how many pages a browser rendered, and at what cost."""
    rendered = notes.state.get("rendered")
    counts = rendered if isinstance(rendered, dict) else {}
    pages, asked, apart, stored = (
        int(number_of(counts.get(name)) or 0)
        for name in ("browser/read", "browser/requests", "browser/elsewhere", "browser/stored")
    )
    refused = sum(int(number_of(n) or 0) for name, n in counts.items() if name.startswith("browser/refused/"))
    if not pages:
        return []
    elsewhere = f" ({apart:,} of them to other hosts)" if apart else ""
    return [
        f"A browser rendered {counted(pages, 'page')}, with {counted(asked, 'further request')}{elsewhere}; "
        f"{refused:,} were blocked, and {stored:,} scripts and style sheets came from the cache."
    ]


def _unchecked(notes: Notes) -> list[str]:
    """Name the hosts whose certificates were not checked, those that are known to be invalid first."""
    hosts = sorted(notes.unchecked.items(), key=lambda each: not each[1])
    if not hosts:
        return []
    named = [printable(f"{host} ({wrong.removeprefix('is ')})" if wrong else host, REASON) for host, wrong in hosts]
    more = [counted(len(named) - _HOSTS, "other host")] if len(named) > _HOSTS else []
    listed = [*named[:_HOSTS], *more]
    together = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    said = inflected(len(hosts), "The certificate of {} was", "The certificates of {} were").format(together)
    return [f"{said} not checked."]


def _goal_sentences(notes: Notes) -> list[str]:
    """Return what the goal reported about the crawl, one sentence each."""
    noted = notes.state.get("said")
    said = [printable(each, PARAGRAPH) for each in noted if isinstance(each, str)] if isinstance(noted, list) else []
    return [f"{each[:1].upper()}{each[1:].rstrip('.')}." for each in said]


def _shown(output: Output, find: Any) -> Shown:
    columns = output.columns
    size = columns.measure.show(columns.measure.read(find))
    return Shown(
        name=printable(columns.name.read(find) or find.url), link=_quoted(output.path(find)),
        url=bare(find.url), web=web_link(find.url), kind=printable(columns.kind.read(find)),
        size=f"{size}, cut" if output.is_cut(find) else size, place=printable(columns.place.read(find)),
        page=bare(find.page), page_link=web_link(find.page), anchor=printable(find.anchor),
        state=printable(output.state(find), 20),
        more=[
            (printable(each.anchor), bare(each.page), web_link(each.page)) for each in output.further(find)
        ],
        relevance=_per_cent(output.relevance(find)), words=printable(output.words(find)),
    )  # fmt: skip


def _per_cent(relevance: float | None) -> int:
    """Return a relevance in per cent, -1 for one that was not judged."""
    return -1 if relevance is None else round(100 * relevance)


def _quoted(path: str) -> str:
    """Return a relative path as a link: it begins with the folder of all files, so it cannot name a scheme."""
    return quote(path)


def _data(output: Output) -> Markup:
    """Return the list and its kind as JSON for an element; no character in it has a meaning in HTML.

    Each text is stored once in ``texts``, and rows refer to it by number. A row holds name, folder and end of the URL,
    size, type, host and section, page, text of the link, state, folder and name on disk, 1 if it was cut, then, if
    finds have a relevance, that in per cent (-1: not judged) and the words that spoke for it, then page and text of
    each further link; an end or a name is 0 if it equals the shown name.
    """
    numbers: dict[str, int] = {}
    shown: dict[str, int] = {}  # the same, keyed by the texts before they were made printable

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    def number_shown(text: str) -> int:
        known = shown.get(text)
        if known is None:
            known = shown[text] = number(printable(text))
        return known

    columns, rows = output.columns, []
    for find in output.finds:
        name = printable(columns.name.read(find) or find.url)
        folder, slash, end = web_link(find.url).rpartition("/")
        folder_on_disk, separator, stored = output.path(find).rpartition("/")
        rows.append([
            name, number(folder + slash), 0 if end == name else end, columns.measure.read(find),
            number_shown(columns.kind.read(find)), number_shown(columns.place.read(find)), number(web_link(find.page)),
            number_shown(find.anchor), number_shown(output.state(find)),
            number(folder_on_disk + separator), 0 if stored == name else stored, int(output.is_cut(find)),
            *((_per_cent(output.relevance(find)), number_shown(output.words(find))) if output.has_relevance else ()),
            *(each for other in output.further(find) for each in (
                number(web_link(other.page)), number_shown(other.anchor),
            )),
        ])  # fmt: skip
    text = json.dumps(
        {"about": output.about, "noun": output.listed_noun, "texts": [*numbers], "rows": rows}, separators=(",", ":")
    )  # fmt: skip
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 (no character of it has a meaning)
