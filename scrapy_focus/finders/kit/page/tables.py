"""The tables and lists of the page of a folder, except the list of files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import NAME, PARAGRAPH, counted, printable
from scrapy_focus.core.shown_urls import web_link
from scrapy_focus.finders.kit.page.paid import words_paid
from scrapy_focus.finders.kit.page.sums import ROWS, bar_of
from scrapy_focus.finders.kit.page.words import (
    delay_text,
    number_of,
    said_of,
    scope_sentences,
    size_text,
    span,
    starts_of,
)
from scrapy_focus.finders.kit.sheets.tables import Cell, Lead, Row, Table, first_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.finders.kit.page.report import Broken, Report, Traffic

_BROKEN = 500  # broken links that are listed
_PARAMETERS = 50  # parameters that are listed
_REASONS = 25  # reasons for skipping that are listed
_LONGEST_REASON = 120  # characters
_ELSEWHERE = 60  # other hosts that are named
_SEEN = 30  # types not looked for that are listed
_WORDS = 15  # words in link texts that are listed
_STATUSES = 12  # statuses that have a column
_UNANSWERED = {"moved": "moved", "none": "no answer", "unasked": "not requested"}


def seen_table(report: Report) -> Table | None:
    """Return the types of entities seen but not looked for; ``None`` if there were none."""
    noted, found = report.notes.state.get("seen"), report.output.types()
    seen = noted.items() if isinstance(noted, dict) else ()
    counts = Counter({str(name): int(number_of(n) or 0) for name, n in seen if str(name) not in found})
    rows = [Row(printable(name), [Cell(f"{n:,}")]) for name, n in counts.most_common(_SEEN)]
    caption = f"Other types of entities on the pages that were read.{first_of(len(counts), _SEEN)}"
    if not rows:
        return None
    return Table("seen", caption, ["Type", "Entities"], rows)


def words_table(report: Report) -> Table | None:
    """Return which words in link texts led to finds; ``None`` if none did."""
    led_to = report.output.led_to
    words = words_paid(report.notes.answers)[:_WORDS] if led_to else []
    rows = [
        Row(printable(each.words), [
            Cell(f"{each.found:,}", bar=bar_of(each.found, words[0].found)), Cell(f"{each.requests:,}"),
        ])
        for each in words
    ]  # fmt: skip
    caption = f"Words in the texts of links that led to {led_to}, and what following these links found."
    if not rows:
        return None
    return Table("words", caption, ["Word", f"{report.noun.capitalize()}s", "Requests"], rows)


def skips_of(report: Report) -> list[str]:
    """Say what was skipped, and why."""
    notes = report.notes
    said = [f"{counted(n, 'link')}: {printable(why, _LONGEST_REASON)}." for why, n in report.reasons[:_REASONS]]
    if rest := sum(n for _, n in report.reasons[_REASONS:]):
        said.append(f"{counted(rest, 'link')}: for other reasons.")
    said += scope_sentences(notes)
    if notes.elsewhere:
        named = ", ".join(printable(host, NAME) for host in notes.elsewhere[:_ELSEWHERE])
        more = len(notes.elsewhere) - _ELSEWHERE
        said.append(
            f"Links to {counted(len(notes.elsewhere), 'other host')} were not followed: {named}"
            + (f", and {more:,} more." if more > 0 else ".")
        )
    if notes.left_out:
        said.append(f"Links with these extensions were not followed: {', '.join(map(printable, notes.left_out))}.")
    if waiting := number_of(notes.state.get("waiting")):
        said.append(f"{counted(waiting, 'link')}: not yet followed when the crawl ended.")
    return said


def broken_table(report: Report) -> Table | None:
    """Return the broken links; ``None`` if there are none."""
    rows = [
        Row(printable(each.url), [
            Cell(printable(each.why), "words"), _pages_with(each), Cell(printable(each.anchor), "words"),
        ], web_link(each.url))
        for each in report.broken[:_BROKEN]
    ]  # fmt: skip
    more = f" The first {_BROKEN} are shown." if len(report.broken) > _BROKEN else ""
    caption = f"{counted(len(report.broken), 'link')} led nowhere.{more} The text is that of the first page."
    if not rows:
        return None
    return Table("broken", caption, ["Address", "Answer", "On pages", "Text of the link"], rows)


def _pages_with(broken: Broken) -> Cell:
    """Return the pages that contain a broken link: the first, and the others in a fold-out list."""
    first, *others = [Lead(printable(page), web_link(page)) for page in broken.pages] or [Lead("", "")]
    summary = f"and {counted(len(others) + broken.more, 'more page')}"
    if broken.more:
        others.append(Lead(f"and {counted(broken.more, 'further page')}", ""))
    return Cell(first.text, "words", first.link, summary=summary, more=others)


def ignored_table(report: Report) -> Table | None:
    """Return which parameters of URLs were ignored; ``None`` if none were."""
    rows = [
        Row(printable(each.host), [
            Cell(printable(each.name), "words"), Cell(f"{each.links:,}"),
            Cell(f"{counted(each.pairs, 'pair')} of pages" if each.is_learned else "known in advance", "words"),
        ])
        for each in report.ignored[:_PARAMETERS]
    ]  # fmt: skip
    more = f" The first {_PARAMETERS} are shown." if len(report.ignored) > _PARAMETERS else ""
    caption = (
        f"Parameters of addresses that do not change the page: of links that differ in nothing else, one was followed."
        f"{more} To follow all of them, use -s FOCUS_IGNORE_PARAMETERS=0."
    )
    if not rows:
        return None
    return Table("ignored", caption, ["Host", "Parameter", "Links", "Evidence"], rows)


def traffic_table(report: Report) -> Table | None:
    """Return the requests to each host and their answers; ``None`` without notes."""
    counts = sum((Counter(each.statuses) for each in report.traffic), Counter[str]())
    statuses = sorted((status for status, _ in counts.most_common(_STATUSES)), key=lambda each: (each.isalpha(), each))
    others = len(counts) > len(statuses)

    def row(name: str, hosts: Sequence[Traffic]) -> Row:
        links, sums = sum(each.links for each in hosts), sum((Counter(each.statuses) for each in hosts), Counter[str]())
        named = [sums[status] for status in statuses]
        if others:
            named.append(sums.total() - sum(named))
        columns = [links, sum(each.requests for each in hosts), *named]
        return Row(name, [*(Cell(f"{n:,}") for n in columns), Cell(size_text(sum(each.size for each in hosts)))])

    rows = [row(printable(each.host), [each]) for each in report.traffic[:ROWS]]
    if rest := report.traffic[ROWS:]:
        rows.append(row(counted(len(rest), "other"), rest))
    caption = (
        "Links that were followed, the requests sent for them (including redirects and retries), and their final "
        "answers."
    )
    if not rows:
        return None
    named = [_UNANSWERED.get(status, status) for status in statuses]
    if others:
        named.append("others")
    heads = ["Host", "Links", "Requests", *named, "Size of answers"]
    return Table("traffic", caption, heads, rows)


def facts_of(report: Report) -> dict[str, str]:
    """Return the arguments and settings of the crawl."""
    notes = report.notes
    if not notes.runs:
        return {}
    first, run, used = notes.runs[0], notes.last_run, notes.state.get("used")

    facts = {
        "Started at": ", ".join(starts_of(run)),
        "Scope": said_of(run, "scope"),
        "Looked for": said_of(run, "types"),
        "About": said_of(run, "about"),
        "Least relevance": f"{least:g}" if (least := number_of(run.get("about_least"))) else "",
        "Pages per domain": said_of(run, "per_domain"),
        "Pages per host": said_of(run, "per_host"),
        "Budget": _budget(run, notes.state.get("limits")) or "none",
        "Total requests": _all_requests(used),
        "robots.txt": "obeyed" if run.get("robots") else "not obeyed",
        "Delay": delay_text(run.get("delay")),
        "User-Agent": said_of(run, "agent"),
        "Policy": said_of(run, "policy"),
        "Runs": f"{len(notes.runs)}, the first from {first.get('at')}",
        "As of": str(notes.state.get("at") or run.get("at")),
        "Version": f"scrapy_focus {run.get('version')}",
    }
    return {name: printable(text, PARAGRAPH) for name, text in facts.items() if text}


def _budget(run: Mapping[str, Any], noted: Any) -> str:
    """Return the limits of a crawl: those in the notes of its state or, at its begin, that of requests."""
    limits = noted if isinstance(noted, dict) else {"requests": run.get("budget")}
    requests, size, seconds = (number_of(limits.get(name)) for name in ("requests", "bytes", "seconds"))
    said = [counted(int(requests), "request")] if requests else []
    said += [size_text(size)] if size else []
    return ", ".join([*said, *([span(seconds)] if seconds else [])])


def _all_requests(used: Any) -> str:
    try:
        return (
            f"{int(used['requests']):,}, including robots.txt and requests repeated after an interruption; "
            f"{size_text(float(used['bytes']))} received, as compressed by the servers"
        )
    except (TypeError, KeyError, ValueError, OverflowError):
        return ""
