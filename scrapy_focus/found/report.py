"""What can be said of a folder: sums of its list and of the notes of its last crawl.

Everything comes from the folder, so that it is the same whoever asks: a crawl at its end, one that was resumed after a
kill, or a command while a crawl runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.found.listed import parts_of, read_list, read_skipped
from scrapy_focus.found.notes import read_notes
from scrapy_focus.found.words import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from scrapy_focus.found.listed import Listed, Skipped
    from scrapy_focus.found.notes import Answer, Notes

STATES = ("new", "changed", "same", "gone", "unseen")


class Sum(NamedTuple):
    """How many files of a kind, host or section there are."""

    name: str
    files: int
    size: int  # bytes
    states: dict[str, int]  # files in each state


class Traffic(NamedTuple):
    """What a host was asked for, and how it answered."""

    host: str
    links: int  # that were followed
    requests: int  # that went out for them
    statuses: dict[str, int]  # links by the first digit of the status: "2xx"; "none" without an answer
    size: int  # bytes of bodies


class Broken(NamedTuple):
    """A link that leads nowhere."""

    url: str
    why: str  # 404, say
    page: str
    anchor: str


class Report(NamedTuple):
    """All that a page shows."""

    files: list[Listed]
    skipped: list[Skipped]
    notes: Notes
    kinds: list[Sum]
    hosts: list[Sum]
    sections: list[Sum]
    traffic: list[Traffic]
    reasons: list[tuple[str, int]]  # why links came to nothing, and how many
    broken: list[Broken]

    @property
    def states(self) -> dict[str, int]:
        """How many files are in each state; empty where nobody knows."""
        return _states(self.files)


def report_of(folder: Path) -> Report:
    """Read a folder; linear in its files and in the outcomes of its last crawl.

    Raises
    ------
    ConfigError
        If its list is damaged.
    StorageError
        If it cannot be read.
    OSError
        If the notes cannot be read.
    """
    files, skipped, notes = read_list(folder), read_skipped(folder), read_notes(folder)
    several = len({file.host for file in files}) > 1
    return Report(
        files=files, skipped=skipped, notes=notes,
        kinds=_sums(files, lambda file: file.kind), hosts=_sums(files, lambda file: file.host),
        sections=_sums(files, lambda file: (_host(file.page or file.url) if several else "") + file.section),
        traffic=_traffic(notes.answers), reasons=_reasons(notes.answers, skipped), broken=_broken(notes.answers),
    )  # fmt: skip


def _sums(files: Iterable[Listed], name_of: Callable[[Listed], str]) -> list[Sum]:
    """Add files up by a name, the most first."""
    by_name: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        by_name[name_of(file)].append(file)
    sums = [Sum(name, len(alike), sum(file.size for file in alike), _states(alike)) for name, alike in by_name.items()]
    return sorted(sums, key=lambda each: (-each.files, each.name))


def _states(files: Iterable[Listed]) -> dict[str, int]:
    counts = Counter(file.state for file in files)
    return {state: counts[state] for state in STATES if counts[state]}


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
        return f"{answer.status // 100}xx"
    if answer.error == "redirect_seen":
        return "3xx"
    return "none" if answer.error.startswith("failure: ") else "unasked"


def _reasons(answers: Iterable[Answer], skipped: Iterable[Skipped]) -> list[tuple[str, int]]:
    """Count why links came to nothing, but for what is broken."""
    counts: Counter[str] = Counter(skip.reason.partition(":")[0] for skip in skipped)
    for answer in answers:
        if not answer.error or answer.files or _is_broken(answer) or answer.error.startswith("failure: "):
            continue  # the last are broken, or on the list of what was skipped
        why = failure(answer.error, answer.why)
        counts[f"{why}: {answer.mime}" if answer.error == "mime_stop" and answer.mime else why] += 1
    return counts.most_common()


def _broken(answers: Iterable[Answer]) -> list[Broken]:
    return [
        Broken(answer.url, str(answer.status or failure(answer.error, "")), answer.page, answer.anchor)
        for answer in answers
        if _is_broken(answer)
    ]


def _is_broken(answer: Answer) -> bool:
    if answer.status is not None:
        return answer.status >= 400
    return answer.error.startswith("failure: ") and "TooLarge" not in answer.error and "Cancelled" not in answer.error


def _host(url: str) -> str:
    return parts_of(url)[0]
