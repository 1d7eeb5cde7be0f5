"""Which crawl of a folder a run belongs to: the first, the next, or one that was interrupted and resumes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines
from scrapy_focus.finders.kit.records.notes import began_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CRAWLS = ".focus/crawls.jsonl"
JOB = ".focus/job"  # JOBDIR of the crawl that runs, or was interrupted
LEARNED = ".focus/learned"  # what the policy learned

#: Reasons for which a crawl stops without having ended: it resumes if it has a job.
INTERRUPTED = frozenset({"shutdown", "focus_storage"})
COST = "cost"  # what the next find may cost, among the limits of a crawl
_BUDGETS = ("requests", "bytes", "seconds")
_LIMITS = {"focus_cost_limit": COST, **{f"focus_budget_{name}": name for name in _BUDGETS}}  # by the reason
_KINDS = {
    "crawl": int, "requests": int, "bytes": int, "seconds": float, "roots": list, "cost_limit": float, "reason": str,
}  # of what stands in a line  # fmt: skip


class Run(NamedTuple):
    """What a run does with a folder."""

    number: int  # of the crawl, from 1
    resumes: bool  # an interrupted crawl, rather than beginning the next
    requests: int  # that the crawl before sent; 0: not known
    has_reached: bool = False  # whether an earlier run of this crawl got an answer from the site


class Last(NamedTuple):
    """The last crawl of a folder."""

    number: int = 0  # from 1; 0: there was none
    has_ended: bool = True
    requests: int = 0  # that the last crawl that ended sent
    has_reached: bool = False  # whether the site answered, in a crawl that has not ended
    failed: int = 0  # number of a crawl behind it that failed, which does not count; 0: there was none
    limit: str = ""  # for which it ended: "cost", "requests", "bytes" or "seconds"; "": for none
    reached: float = 0.0  # how much of that was allowed, or used
    before: int = 0  # requests that the crawl before it sent


def last_crawl(out: Path) -> Last:
    """Return the last crawl of a folder that counts; one without a line is known by the files of the first.

    A crawl that failed does not count: the next one has its number.
    """
    last = before = earlier = Last()  # before: the last one that ended, earlier: the one before that
    for line in read_lines(out / CRAWLS, **_KINDS):
        number = line.get("crawl") or 1
        if line.get("failed"):
            last = before._replace(failed=number, limit="")
        elif "ended" in line:
            if number != before.number:
                earlier = before
            last = before = _ended(line, number, earlier)
        elif line.get("goes_on"):
            before = earlier
            last = Last(number, False, before.requests, True)
        else:
            if not last.has_ended and last.number != number:  # it was killed, and did not resume
                before = last._replace(has_ended=True)
            last = _begun(line, number, last)
    if not last.number and (out / "manifest.jsonl").exists():  # of a version that wrote no such lines
        return Last(1)
    return last


def _begun(line: dict[str, Any], number: int, last: Last) -> Last:
    """Return the crawl of which a line says that a run began; the one that `last` is about may be the same."""
    has_reached = bool(line.get("reached"))
    if last.number == number and not last.has_ended:
        has_reached = has_reached or last.has_reached
    return Last(number, False, last.requests, has_reached)


def _ended(line: dict[str, Any], number: int, earlier: Last) -> Last:
    """Return the crawl of which a line says that it ended; `earlier` is the one before."""
    limit = _LIMITS.get(line.get("reason") or "", "")
    reached = line.get("cost_limit" if limit == COST else limit) or 0.0
    return Last(number, True, line.get("requests") or 0, limit=limit, reached=reached, before=earlier.requests)


def next_run(out: Path, job: Path | None) -> Run:
    """Return what a run with this ``JOBDIR`` does: a job that has begun resumes, as the crawl that it is of."""
    last = last_crawl(out)
    resumes = job is not None and (job / "focus").exists()
    if resumes and last.has_ended and last.limit:
        return Run(last.number, True, last.before, True)
    if resumes:
        return Run(max(last.failed or last.number, 1), True, last.requests, last.has_reached)
    return Run(last.number + 1, False, last.requests)


def roots_of(out: Path) -> list[str]:
    """Return the URLs with which the last crawl of a folder began, as far as its line says."""
    lines = list(read_lines(out / CRAWLS, **_KINDS))
    return next((list(map(str, line["roots"])) for line in reversed(lines) if line.get("roots")), [])


def can_go_on(out: Path, roots: Iterable[str], fixed: Mapping[str, str], limits: Mapping[str, float | None]) -> bool:
    """Whether this is the last crawl of a folder again, which ended for a limit, with a higher one or none.

    Parameters
    ----------
    out
        The folder.
    roots
        The URLs to begin with.
    fixed
        The arguments with which alone a crawl resumes.
    limits
        The cost of a find and the budgets, by name; 0 or ``None``: no limit. One that is left out is as it was.

    Raises
    ------
    OSError
        If the notes of that crawl cannot be read.
    """
    last = last_crawl(out)
    if not (last.has_ended and last.limit in limits and last.reached and (out / JOB / "focus").exists()):
        return False
    limit = limits[last.limit]
    if limit and limit <= last.reached:
        return False
    return set(roots_of(out)) == set(roots) and all(fixed.get(name) == value for name, value in began_with(out).items())


def prepare(out: Path, *, goes_on: bool = False, again: bool = False) -> Run:
    """Make a folder ready for a run whose ``JOBDIR`` is ``<out>/.focus/job``, and return what that run does.

    A crawl that was interrupted or killed resumes, unless the next one is asked for (``again``); and so does one that
    can go on, if it is to. Else the job is removed: what the next crawl needs of it is in the lists and in what was
    learned.
    """
    job = out / JOB
    if (again or (last_crawl(out).has_ended and not goes_on)) and job.exists():
        shutil.rmtree(job)
    return next_run(out, job)


def note_going_on(out: Path) -> None:
    """Note that the last crawl has not ended, if it ended for a limit."""
    last = last_crawl(out)
    if last.has_ended and last.limit:
        cut_line(out / CRAWLS)
        add_line(out / CRAWLS, {"crawl": last.number, "goes_on": True})


def note_begin(out: Path, number: int, **more: Any) -> None:
    """Note that a crawl begins."""
    cut_line(out / CRAWLS)
    add_line(out / CRAWLS, {"crawl": number, **more})


def note_reached(out: Path, number: int) -> None:
    """Note that the site answered with a page or a file."""
    add_line(out / CRAWLS, {"crawl": number, "reached": True})


def note_end(out: Path, number: int, reason: str, *, failed: bool = False, **more: Any) -> None:
    """Note that a crawl has ended, unless it was only interrupted; ``failed``: without an answer from the site."""
    if reason in INTERRUPTED:
        return
    line: dict[str, Any] = {"crawl": number, "reason": reason}
    if failed:
        line["failed"] = True
    add_line(out / CRAWLS, {**line, **more})
