"""Which crawl of a folder a run belongs to: the first, the next, or an interrupted one that resumes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines
from scrapy_focus.finders.kit.records.notes import began_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CRAWLS = ".focus/crawls.jsonl"
JOB = ".focus/job"  # JOBDIR of the running or interrupted crawl
LEARNED = ".focus/learned"  # what the policy learned

#: Closing reasons that do not end a crawl: it resumes if it has a job.
INTERRUPTED = frozenset({"shutdown", "focus_storage"})
COST = "cost"  # name of the cost limit among the limits of a crawl
_BUDGETS = ("requests", "bytes", "seconds")
_LIMITS = {"focus_cost_limit": COST, **{f"focus_budget_{name}": name for name in _BUDGETS}}  # by the reason
_KINDS = {
    "crawl": int, "requests": int, "bytes": int, "seconds": float, "roots": list, "cost_limit": float, "reason": str,
    "about": str,
}  # of what stands in a line  # fmt: skip


class Run(NamedTuple):
    """What a run does with a folder."""

    number: int  # of the crawl, from 1
    resumes: bool  # whether it resumes an interrupted crawl, rather than beginning the next
    requests: int  # requests that the previous crawl sent; 0: unknown
    has_reached: bool = False  # whether an earlier run of this crawl received a response from the site


class Last(NamedTuple):
    """The last crawl of a folder."""

    number: int = 0  # from 1; 0: there was none
    has_ended: bool = True
    requests: int = 0  # requests of the last crawl that ended
    has_reached: bool = False  # whether the site answered, in a crawl that has not ended
    failed: int = 0  # number of a later crawl that failed, which does not count; 0: there was none
    limit: str = ""  # the limit that ended it: "cost", "requests", "bytes" or "seconds"; "": none
    reached: float = 0.0  # how much of that was allowed, or used
    before: int = 0  # requests that the previous crawl sent


def last_crawl(out: Path) -> Last:
    """Return the last crawl of a folder that counts; without a line, files show that there was a first one.

    A failed crawl does not count: the next one takes its number.
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
    if not last.number and (out / "manifest.jsonl").exists():  # by a version that wrote no such lines
        return Last(1)
    return last


def _begun(line: dict[str, Any], number: int, last: Last) -> Last:
    """Return the crawl after a line that a run began; it may be the same as `last`."""
    has_reached = bool(line.get("reached"))
    if last.number == number and not last.has_ended:
        has_reached = has_reached or last.has_reached
    return Last(number, False, last.requests, has_reached)


def _ended(line: dict[str, Any], number: int, earlier: Last) -> Last:
    """Return the crawl after a line that it ended; `earlier` is the previous one."""
    limit = _LIMITS.get(line.get("reason") or "", "")
    reached = line.get("cost_limit" if limit == COST else limit) or 0.0
    return Last(number, True, line.get("requests") or 0, limit=limit, reached=reached, before=earlier.requests)


def next_run(out: Path, job: Path | None) -> Run:
    """Return what a run with this ``JOBDIR`` does: a job that has begun resumes its crawl."""
    last = last_crawl(out)
    resumes = job is not None and (job / "focus").exists()
    if resumes and last.has_ended and last.limit:
        return Run(last.number, True, last.before, True)
    if resumes:
        return Run(max(last.failed or last.number, 1), True, last.requests, last.has_reached)
    return Run(last.number + 1, False, last.requests)


def roots_of(out: Path) -> list[str]:
    """Return the start URLs of the last crawl of a folder, if recorded."""
    lines = list(read_lines(out / CRAWLS, **_KINDS))
    return next((list(map(str, line["roots"])) for line in reversed(lines) if line.get("roots")), [])


def about_by_crawl(out: Path) -> dict[int, str]:
    """Return what each crawl of a folder looked for, in the user's words, by its number; none where nothing was
    said.
    """
    return {line.get("crawl") or 1: line["about"] for line in read_lines(out / CRAWLS, **_KINDS) if line.get("about")}


def can_go_on(out: Path, roots: Iterable[str], fixed: Mapping[str, str], limits: Mapping[str, float | None]) -> bool:
    """Whether this repeats the last crawl of a folder, which a limit ended, with a higher limit or none.

    Parameters
    ----------
    out
        The folder.
    roots
        The start URLs.
    fixed
        The arguments that must not change when a crawl resumes.
    limits
        The cost limit and the budgets, by name; 0 or ``None``: no limit. A missing one is unchanged.

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
    """Prepare a folder for a run whose ``JOBDIR`` is ``<out>/.focus/job``, and return what that run does.

    A crawl that was interrupted or killed resumes, unless ``again`` requests the next one. A crawl that a limit ended
    resumes with ``goes_on``. Otherwise the job is removed: everything that the next crawl needs is in the lists and in
    what the policy learned.
    """
    job = out / JOB
    if (again or (last_crawl(out).has_ended and not goes_on)) and job.exists():
        shutil.rmtree(job)
    return next_run(out, job)


def note_going_on(out: Path) -> None:
    """Note that the last crawl has not ended, if a limit had ended it."""
    last = last_crawl(out)
    if last.has_ended and last.limit:
        cut_line(out / CRAWLS)
        add_line(out / CRAWLS, {"crawl": last.number, "goes_on": True})


def note_begin(out: Path, number: int, **more: Any) -> None:
    """Note that a crawl begins."""
    cut_line(out / CRAWLS)
    add_line(out / CRAWLS, {"crawl": number, **more})


def note_reached(out: Path, number: int) -> None:
    """Note that the site returned a page or a file."""
    add_line(out / CRAWLS, {"crawl": number, "reached": True})


def note_end(out: Path, number: int, reason: str, *, failed: bool = False, **more: Any) -> None:
    """Note that a crawl has ended, unless it was only interrupted; ``failed``: without an answer from the site."""
    if reason in INTERRUPTED:
        return
    line: dict[str, Any] = {"crawl": number, "reason": reason}
    if failed:
        line["failed"] = True
    add_line(out / CRAWLS, {**line, **more})
