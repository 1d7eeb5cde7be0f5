"""The report of a folder: sums of its list and of the notes of its last crawl.

Everything is read from the folder, so the report is the same for a crawl at its end, for a crawl resumed after a kill,
and for a command while a crawl runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scrapy_focus.finders.kit.page.policy_tables import read_tables
from scrapy_focus.finders.kit.page.words import failure
from scrapy_focus.finders.kit.records.notes import Referrers, link_key, read_notes, read_referrers
from scrapy_focus.finders.kit.records.skipped import read_skipped
from scrapy_focus.web.linkurls import link_url
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.kit.page.output import Output
    from scrapy_focus.finders.kit.page.policy_tables import Said
    from scrapy_focus.finders.kit.page.sums import Sums
    from scrapy_focus.finders.kit.records.notes import Answer, Notes
    from scrapy_focus.finders.kit.records.skipped import Skipped

_PAGES = 20  # pages with a broken link that are named


class Traffic(NamedTuple):
    """Requests to a host, and their answers."""

    host: str
    links: int  # links followed
    requests: int  # requests sent for them
    statuses: dict[str, int]  # links by their status: "404"; "moved", "none" without an answer, "unasked"
    size: int  # bytes of bodies


class Broken(NamedTuple):
    """A link that leads nowhere."""

    url: str
    why: str  # 404, say
    pages: list[str]  # the first pages that contain it
    more: int  # number of further pages that contain it
    anchor: str  # text of the link on the first page


class Ignored(NamedTuple):
    """A parameter of URLs that does not change the page."""

    host: str
    name: str
    links: int  # links not followed because of it
    pairs: int  # pairs of pages that were the same
    is_learned: bool  # from these pairs, rather than known in advance


class Report(NamedTuple):
    """All that a page shows."""

    output: Output  # what was found
    sums: Sums  # of all finds
    skipped: list[Skipped]
    notes: Notes
    traffic: list[Traffic]
    reasons: list[tuple[str, int]]  # why links led to nothing, and how many
    broken: list[Broken]
    unread: list[tuple[str, str]]  # start URLs that could not be read, and why
    ignored: list[Ignored]
    said: Said  # tables of the policy

    @property
    def files(self) -> Sequence[Any]:
        """What was found."""
        return self.output.finds

    @property
    def noun(self) -> Literal["file", "page"]:
        """What is found by following a link."""
        return self.output.noun


def report_of(folder: Path, finder: type[Output]) -> Report:
    """Read a folder; linear in its finds and in the outcomes of its last crawl.

    Raises
    ------
    ConfigError
        If its list is damaged.
    StorageError
        If it cannot be read.
    OSError
        If the notes cannot be read.
    """
    skipped, notes = read_skipped(folder), read_notes(folder)
    output = finder(folder, notes)
    if (found := output.counts_as_found(notes)) is not None:
        notes = _with_finds(notes, found)
    return Report(
        output=output, sums=output.added_up(), skipped=skipped, notes=notes, traffic=_traffic(notes.answers),
        reasons=_reasons(notes.answers, skipped), broken=_broken(folder, notes), unread=_unread(notes),
        ignored=_ignored(notes.state.get("parameters")), said=read_tables(folder),
    )  # fmt: skip


def _with_finds(notes: Notes, urls: set[str]) -> Notes:
    """Return notes in which exactly the answers of listed pages count as finds."""
    found = [each._replace(files=float((each.moved_to or each.url) in urls)) for each in notes.answers]
    return replace(notes, answers=found)


def _traffic(answers: Iterable[Answer]) -> list[Traffic]:
    by_host: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_host[_host(answer.url)].append(answer)
    found = []
    for host, alike in by_host.items():
        statuses = Counter(_status(answer) for answer in alike)
        requests, size = sum(answer.sent for answer in alike), sum(answer.size for answer in alike)
        found.append(Traffic(host, len(alike), requests, dict(sorted(statuses.items())), size))
    return sorted(found, key=lambda each: (-each.requests, each.host))


def _status(answer: Answer) -> str:
    if answer.status is not None:
        return str(answer.status)
    if answer.error == "redirect_seen":
        return "moved"
    return "none" if answer.error.startswith("failure: ") else "unasked"


def _reasons(answers: Iterable[Answer], skipped: Iterable[Skipped]) -> list[tuple[str, int]]:
    """Count the reasons why links led to nothing, except broken links."""
    counts: Counter[str] = Counter(skip.reason.partition(":")[0] for skip in skipped)
    for answer in answers:
        if not answer.error or answer.files or _is_broken(answer) or answer.error.startswith("failure: "):
            continue  # the last are broken, or on the list of skipped files
        if answer.error == "out_of_scope" and not answer.sent:
            continue  # counted by its reason
        why = failure(answer.error, answer.why)
        counts[f"{why}: {answer.mime}" if answer.error == "mime_stop" and answer.mime else why] += 1
    return counts.most_common()


def _broken(folder: Path, notes: Notes) -> list[Broken]:
    broken = [answer for answer in notes.answers if _is_broken(answer)]
    referrers = read_referrers(folder, {link_key(answer.url) for answer in broken}, _PAGES)
    found = []
    for answer in broken:
        found_on = referrers.get(link_key(answer.url), Referrers([], 0))
        pages = list(dict.fromkeys(filter(None, [answer.page, *found_on.pages])))[:_PAGES]
        why = str(answer.status or failure(answer.error, answer.why))
        found.append(Broken(answer.url, why, pages, max(0, found_on.number - len(pages)), answer.anchor))
    return found


def _unread(notes: Notes) -> list[tuple[str, str]]:
    roots = {link_url(str(url), "").rstrip("/") for run in notes.runs for url in _list(run.get("roots"))}
    return [
        (answer.url, f"it answers {answer.status}" if answer.status else failure(answer.error, answer.why))
        for answer in notes.answers
        if answer.url.rstrip("/") in roots and (_is_broken(answer) or answer.error in ("ignored", "out_of_scope"))
    ]


def _ignored(noted: Any) -> list[Ignored]:
    """Return the ignored parameters, those that saved the most links first."""
    found = []
    for each in _list(noted):
        if isinstance(each, dict) and each.get("is_believed"):
            host, name, links, pairs = (each.get(name) for name in ("host", "name", "links", "pairs"))
            if isinstance(links, int) and isinstance(pairs, int):
                found.append(Ignored(str(host), str(name), links, pairs, bool(each.get("is_learned"))))
    return sorted(found, key=lambda each: (-each.links, each.host, each.name))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_broken(answer: Answer) -> bool:
    if answer.status is not None:
        return answer.status >= 400
    return answer.error.startswith("failure: ") and "TooLarge" not in answer.error and "Cancelled" not in answer.error


def _host(url: str) -> str:
    return parts_of(url)[0]
