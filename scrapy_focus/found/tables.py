"""The tables and lists of the page of a folder, but for that of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scrapy_focus.core.printable import printable
from scrapy_focus.found.paid import paid
from scrapy_focus.found.report import STATES
from scrapy_focus.found.words import counted, number_of, size_text
from scrapy_focus.sheets.tables import Cell, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.found.paid import Paid
    from scrapy_focus.found.report import Report, Sum

_ROWS = 40  # of a table of sums
_BROKEN = 500  # links that are listed
_REASONS = 25  # why something was skipped, that are listed
_LONGEST_REASON = 120  # characters
_ELSEWHERE = 60  # hosts that are named
_PAID = 15  # kinds of links
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # in an address, besides letters and digits
_LONGEST_LINK = 4000  # characters of an address that is a link
_LONGEST = 200  # characters of a name, text or address that are shown
_STATUSES = {
    "2xx": "2xx, well", "3xx": "3xx, moved", "4xx": "4xx, not there or forbidden", "5xx": "5xx, failed",
    "none": "no answer", "unasked": "not asked for",
}  # fmt: skip


def sums_table(report: Report, name: str, caption: str, head: str, sums: Sequence[Sum]) -> Table | None:
    """Return a table of sums; ``None`` if it would say nothing."""
    if not sums or (name == "hosts" and len(sums) == 1):
        return None
    states = [state for state in STATES if state in report.states] if set(report.states) - {"new"} else []
    rows = [
        Row(printable(each.name, _LONGEST) or "(unknown)", [
            Cell(f"{each.files:,}"), Cell(size_text(each.size)),
            *(Cell(f"{each.states.get(state, 0):,}") for state in states),
        ])
        for each in sums[:_ROWS]
    ]  # fmt: skip
    if rest := sums[_ROWS:]:
        size = sum(each.size for each in rest)
        rows.append(Row(f"{len(rest):,} others", [
            Cell(f"{sum(each.files for each in rest):,}"), Cell(size_text(size)),
            *(Cell(f"{sum(each.states.get(state, 0) for each in rest):,}") for state in states),
        ]))  # fmt: skip
    return Table(name, caption, [head, "Files", "Size", *(state.capitalize() for state in states)], rows)


def paid_table(report: Report) -> Table | None:
    """Return which links paid; ``None`` without notes."""
    kinds = paid(report.notes.answers)
    rows = []
    for each in kinds[:_PAID]:
        rows.append(Row(_links(each), [
            Cell(f"{each.files:,}"), Cell(f"{each.requests:,}"),
            Cell(f"{100 * each.files / each.requests:.0f}" if each.requests else "-"),
        ]))  # fmt: skip
    if rest := kinds[_PAID:]:
        files, requests = sum(each.files for each in rest), sum(each.requests for each in rest)
        cells = [Cell(f"{files:,}"), Cell(f"{requests:,}"), Cell(f"{100 * files / max(1, requests):.0f}")]
        rows.append(Row("all other links", cells))
    caption = "Links that are alike, and what following them brought. Numbers in them are left open (…)."
    return Table("paid", caption, ["Links", "Files", "Requests", "Files in 100 requests"], rows) if rows else None


def _links(kind: Paid) -> str:
    if not kind.files:
        return "links of a kind that led to no file: to other pages, for the most part"
    words = f"links like “{kind.links}”" if kind.links else "links with various texts"
    if kind.links.startswith("."):
        words = f"links with various texts to {kind.links}"
    return f"{words}, on {kind.pages}" if kind.pages else words


def skips_of(report: Report) -> list[str]:
    """Say what was not looked at, and why."""
    notes = report.notes
    said = [f"{counted(n, 'link')}: {printable(why, _LONGEST_REASON)}." for why, n in report.reasons[:_REASONS]]
    if rest := sum(n for _, n in report.reasons[_REASONS:]):
        said.append(f"{counted(rest, 'link')}: for other reasons.")
    if notes.elsewhere:
        named = ", ".join(printable(host, 80) for host in notes.elsewhere[:_ELSEWHERE])
        more = len(notes.elsewhere) - _ELSEWHERE
        said.append(
            f"Links to {counted(len(notes.elsewhere), 'other host')} were not followed: {named}"
            + (f", and {more:,} more." if more > 0 else ".")
        )
    if notes.left_out:
        said.append(f"Links with these extensions were not followed: {', '.join(map(printable, notes.left_out))}.")
    if waiting := number_of(notes.state.get("waiting")):
        said.append(f"{counted(waiting, 'link')}: not followed when the crawl ended.")
    return said


def broken_table(report: Report) -> Table | None:
    """Return which links led nowhere; ``None`` if none did."""
    rows = [
        Row(printable(each.url, _LONGEST), [
            Cell(printable(each.why), "words"), Cell(printable(each.page, _LONGEST), "words", web_link(each.page)),
            Cell(printable(each.anchor, _LONGEST), "words"),
        ], web_link(each.url))
        for each in report.broken[:_BROKEN]
    ]  # fmt: skip
    more = f" The first {_BROKEN} are shown." if len(report.broken) > _BROKEN else ""
    caption = (
        f"{counted(len(report.broken), 'link')} led nowhere.{more} The page is the first on which the link was seen."
    )
    return Table("broken", caption, ["Address", "Answer", "On page", "Text of the link"], rows) if rows else None


def traffic_table(report: Report) -> Table | None:
    """Return what each host was asked for, and how it answered; ``None`` without notes."""
    statuses = [status for status in _STATUSES if any(status in each.statuses for each in report.traffic)]
    rows = [
        Row(printable(each.host, _LONGEST), [
            Cell(f"{each.links:,}"), Cell(f"{each.requests:,}"),
            *(Cell(f"{each.statuses.get(status, 0):,}") for status in statuses), Cell(size_text(each.size)),
        ])
        for each in report.traffic[:_ROWS]
    ]  # fmt: skip
    caption = (
        "Links that were followed, the requests that went out for them, redirects and repeated attempts included, and "
        "how they were answered in the end."
    )
    heads = ["Host", "Links", "Requests", *(_STATUSES[status] for status in statuses), "Size of answers"]
    return Table("traffic", caption, heads, rows) if rows else None


def facts_of(report: Report) -> dict[str, str]:
    """Return what the crawl was asked to do, and what it obeyed."""
    notes = report.notes
    if not notes.runs:
        return {}
    first, run, used = notes.runs[0], notes.runs[-1], notes.state.get("used")
    roots = run.get("roots")
    facts = {
        "Began at": ", ".join(map(str, roots)) if isinstance(roots, list) else "",
        "Looked for": str(run.get("types") or ""),
        "Budget": f"{run['budget']:,} requests" if isinstance(run.get("budget"), int) else "none",
        "Requests in all": _all_requests(used),
        "robots.txt": "obeyed" if run.get("robots") else "not obeyed",
        "Delay": f"{number_of(run.get('delay')) or 0:g} seconds between two requests to a host",
        "User-Agent": str(run.get("agent") or ""),
        "Policy": str(run.get("policy") or ""),
        "Runs": f"{len(notes.runs)}, the first from {first.get('at')}",
        "State of": str(notes.state.get("at") or run.get("at")),
        "Version": f"scrapy_focus {run.get('version')}",
    }
    return {name: printable(text, 1000) for name, text in facts.items() if text}


def _all_requests(used: Any) -> str:
    try:
        return (
            f"{int(used['requests']):,}, robots.txt and what was asked again after an interruption included; "
            f"{size_text(float(used['bytes']))} came, compressed as it was"
        )
    except (TypeError, KeyError, ValueError, OverflowError):
        return ""


def web_link(url: str) -> str:
    """Return a URL that a page may link to, ``""`` for any other."""
    is_web = url.startswith(("http://", "https://")) and len(url) <= _LONGEST_LINK
    return quote(url.encode(errors="replace"), safe=_SAFE) if is_web else ""
