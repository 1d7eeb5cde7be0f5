"""The kinds of links that paid off, as a page shows them: each with two of its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from scrapy_focus.core.printable import NAME, counted, printable
from scrapy_focus.core.shown_urls import bare, web_link
from scrapy_focus.finders.kit.page.paid import paid
from scrapy_focus.finders.kit.page.sums import bar_of
from scrapy_focus.finders.kit.sheets.tables import Lead
from scrapy_focus.web.mime import extension
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from scrapy_focus.finders.kit.page.paid import Paid
    from scrapy_focus.finders.kit.page.report import Report
    from scrapy_focus.finders.kit.records.notes import Answer

_SHOWN = 6  # kinds of links


class Example(NamedTuple):
    """A link that led to a find."""

    anchor: str  # its text
    page: Lead  # that contains it
    find: Lead  # what it led to


class Kind(NamedTuple):
    """A kind of links, and what following them found."""

    words: str  # that describe the links
    said: str  # what they led to
    found: float  # length of a bar for the finds, from 0 to 100
    requests: float  # and of one for the requests
    examples: list[Example]


def paid_kinds(report: Report) -> list[Kind]:
    """Return which kinds of links led to finds, the most fruitful first; none without notes, and where nearly all did.

    The last ones sum up all other kinds, and all links without finds.
    """
    output = report.output
    kinds = paid(report.notes.answers) if output.fruitless else []
    fruitful = [each for each in kinds if each.words]
    longest = max((each.requests for each in fruitful), default=0)
    said = [_kind_of(each, longest, report) for each in fruitful[:_SHOWN]]
    if rest := fruitful[_SHOWN:]:
        found, requests = sum(each.found for each in rest), sum(each.requests for each in rest)
        said.append(Kind(counted(len(rest), "other kind"), _yield_text(found, requests, report), 0.0, 0.0, []))
    said += [
        Kind(output.fruitless, counted(each.requests, "request"), 0.0, 0.0, []) for each in kinds if not each.words
    ]
    return said if fruitful else []


def _kind_of(kind: Paid, longest: int, report: Report) -> Kind:
    found = min(kind.found, kind.requests) if kind.requests else kind.found
    return Kind(
        kind.words, _yield_text(kind.found, kind.requests, report), bar_of(found, longest),
        bar_of(kind.requests, longest), [_example_of(answer, report) for answer in kind.examples],
    )  # fmt: skip


def _yield_text(found: int, requests: int, report: Report) -> str:
    return f"{counted(found, report.noun)} with {counted(requests, 'request')}"


def _example_of(answer: Answer, report: Report) -> Example:
    url = answer.moved_to or answer.url
    has_name = report.noun == "file" and extension(url)
    name = unquote(parts_of(url)[1]).rpartition("/")[2] if has_name else ""
    return Example(
        printable(answer.anchor, NAME), Lead(bare(answer.page), web_link(answer.page)),
        Lead(printable(name) if name else bare(url), web_link(url)),
    )  # fmt: skip
