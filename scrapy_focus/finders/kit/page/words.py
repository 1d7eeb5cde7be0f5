"""What the page of a crawl says, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import PARAGRAPH, counted, inflected, printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scrapy_focus.finders.kit.records.notes import Answer, Notes

_SIZES = ("B", "kB", "MB", "GB", "TB")
_ENDS = {
    "finished": "Every link that was found was followed.",
    "shutdown": "It was interrupted.",
    "focus_budget_requests": "Its budget of requests is used up.",
    "focus_budget_bytes": "Its budget of bytes is used up.",
    "focus_budget_seconds": "Its budget of time is used up.",
    "focus_cost_limit": "The next find would have cost more requests than it was allowed to.",
    "focus_plateau": "It found so little for so long that it stopped.",
    "focus_storage": "Its own files could not be written or read any more; there may be no room left on the disk.",
}
_OUTCOMES = {
    "http_error": "the site answered with an error",
    "mime_stop": "not of a wanted type",
    "too_large": "too large",
    "ignored": "not asked for",
    "spider_error": "the page could not be read",
    "redirect_seen": "led to an address that was known",
    "filtered": "left out",
    "lost": "could not be resumed",
    "near_copy": "led to a page that was read at another address",
}


def size_text(size: float) -> str:
    """Return a number of bytes in a unit in which it is short.

    Examples
    --------
    >>> size_text(999), size_text(1_234_567)
    ('999 B', '1.2 MB')
    """
    unit = 0
    while size >= 999.5 and unit < len(_SIZES) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:,.{int(unit > 0)}f} {_SIZES[unit]}"


def said_of(run: Mapping[str, Any], name: str) -> str:
    """Return what the notes of a run say under a name, ``""`` for nothing."""
    return str(run.get(name) or "")


def starts_of(run: Mapping[str, Any]) -> list[str]:
    """Return the URLs with which a run began, as its notes have them."""
    roots = run.get("roots")
    return [str(url) for url in roots] if isinstance(roots, list) else []


def delay_text(noted: Any) -> str:
    """Say how long a crawl waits between requests, from what its notes have.

    Examples
    --------
    >>> delay_text(1), delay_text(0.5)
    ('1 second between two requests to a host', '0.5 seconds between two requests to a host')
    """
    delay = number_of(noted) or 0
    return f"{delay:g} {inflected(delay, 'second', 'seconds')} between two requests to a host"


def span(seconds: float) -> str:
    """Return a time in the unit in which it is short.

    Examples
    --------
    >>> span(0.4), span(90), span(3600), span(200_000)
    ('0 seconds', '2 minutes', '60 minutes', '2.3 days')
    """
    if seconds < 60:
        return counted(round(seconds), "second")
    if seconds < 2 * 3600:
        return counted(round(seconds / 60), "minute")
    size, name = (3600, "hours") if seconds < 2 * 86_400 else (86_400, "days")
    return f"{seconds / size:,.1f} {name}"


def ending(notes: Notes) -> str:
    """Say why the crawl ended, or that it did not."""
    if not notes.crawl:
        return "There are no notes of a crawl in this folder."
    state = notes.state
    if "ending" in state:
        return printable(str(state["ending"]), PARAGRAPH)
    reason = state.get("reason")
    if reason is None:
        return "It runs, or it was killed; the same command resumes it then. What stands here is what was found so far."
    said = _ENDS.get(str(reason)) or f"It ended with the reason {printable(str(reason))}."
    if reason == "shutdown" and notes.last_run.get("resumable"):
        return f"{said} The same command resumes it."
    return said


def within(sentence: str, folder: Path) -> str:
    """Return a sentence for the page of a folder: without the path that the folder has on this machine.

    Examples
    --------
    >>> from pathlib import Path
    >>> within("Done: see /home/me/found/pages.jsonl.", Path("/home/me/found"))
    'Done: see pages.jsonl.'
    """
    where = folder.absolute()
    return sentence.replace(f"{where}/", "").replace(str(where), where.name)


def outlook(notes: Notes, noun: str) -> list[str]:
    """Say how many finds are expected to be left, and what the next one is expected to cost; nothing if no page was
    read.
    """
    state, said = notes.state, []
    if not any(map(_is_read, notes.answers)):
        return []
    waiting, cost = number_of(state.get("waiting")), number_of(state.get("cost"))
    if waiting == 0 and state.get("reason") == "finished":
        said.append("No link that it found is left to follow. What no link leads to cannot be found by a crawl.")
    elif (limits := _limits(state)) is not None:
        said.append(_left(*limits, noun))
    elif waiting:
        said.append(f"How many {noun}s are left to be found cannot be said.")
    if cost is not None and waiting:
        said.append(f"The next {noun} is expected to cost about {counted(max(1, round(cost)), 'request')}.")
    if waiting:
        said.append(f"{counted(waiting, 'link')} {inflected(waiting, 'was', 'were')} found and not followed.")
    return said


def _is_read(answer: Answer) -> bool:
    return answer.status is not None and 200 <= answer.status < 300


def _left(low: float, middle: float, high: float, noun: str) -> str:
    are = inflected(middle, "is", "are")
    return (
        f"About {counted(middle, noun)} {are} left to be found: between {low:,.0f} and {high:,.0f}, with a probability "
        "of 90 %."
    )


def failure(error: str, why: str) -> str:
    """Say why a link came to nothing, from what its outcome says."""
    if why[1:2].islower():  # a sentence, rather than the name of a protocol or an error
        why = why[:1].lower() + why[1:]
    if why:
        return printable(why)
    if error.startswith("failure: "):
        return f"no answer ({printable(error.removeprefix('failure: '))})"
    return _OUTCOMES.get(error, printable(error))


def _limits(state: Mapping[str, Any]) -> tuple[float, float, float] | None:
    left = state.get("left")
    if not isinstance(left, list) or len(left) != 3:
        return None
    numbers = [number_of(value) for value in left]
    low, middle, high = numbers
    if low is None or middle is None or high is None:
        return None
    return low, middle, high


def number_of(value: Any) -> float | None:
    """Return what notes have for a number, ``None`` if it is none."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_one else None
