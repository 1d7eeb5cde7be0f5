"""Sentences of the page of a crawl."""

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
    "focus_cost_limit": "The next find would have cost more requests than the cost limit.",
    "focus_plateau": "It stopped because it had found too little for too long.",
    "focus_storage": "It could not read or write its own files any more; the disk may be full.",
}
_OUTCOMES = {
    "http_error": "the site returned an error",
    "mime_stop": "unwanted type",
    "too_large": "too large",
    "ignored": "not requested",
    "spider_error": "the page could not be read",
    "redirect_seen": "redirected to an address already seen",
    "filtered": "filtered",
    "lost": "could not be resumed",
    "near_copy": "a copy of a page already read at another address",
    "out_of_scope": "redirected to an address out of scope",
}
_OUT_OF_SCOPE = {
    "excluded": "excluded by a pattern",
    "not_included": "included by no pattern",
    "page": "not one of the given pages",
    "prefix": "outside the folders of the start URLs",
    "host": "on another host than the start URLs",
    "domain": "in another domain than the start URLs",
    "depth": "more links away from a start URL than the limit",
    "host_full": "beyond the limit of pages of their host",
}


def size_text(size: float) -> str:
    """Return a number of bytes in a suitable unit.

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
    """Return a text from the notes of a run, ``""`` if missing."""
    return str(run.get(name) or "")


def starts_of(run: Mapping[str, Any]) -> list[str]:
    """Return the start URLs in the notes of a run."""
    roots = run.get("roots")
    return [str(url) for url in roots] if isinstance(roots, list) else []


def delay_text(noted: Any) -> str:
    """Say how long a crawl waits between requests, according to its notes.

    Examples
    --------
    >>> delay_text(1), delay_text(0.5)
    ('1 second between requests to a host', '0.5 seconds between requests to a host')
    """
    delay = number_of(noted) or 0
    return f"{delay:g} {inflected(delay, 'second', 'seconds')} between requests to a host"


def span(seconds: float) -> str:
    """Return a duration in a suitable unit.

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
    """Say why the crawl ended, or that it has not ended."""
    if not notes.crawl:
        return "This folder has no notes of a crawl."
    state = notes.state
    if "ending" in state:
        return printable(str(state["ending"]), PARAGRAPH)
    reason = state.get("reason")
    if reason is None:
        return "It is running, or was killed: then the same command resumes it. This page shows what was found so far."
    said = _ENDS.get(str(reason)) or f"It ended with the reason {printable(str(reason))}."
    if reason == "shutdown" and notes.last_run.get("resumable"):
        return f"{said} The same command resumes it."
    return said


def within(sentence: str, folder: Path) -> str:
    """Return a sentence for the page of a folder, without the folder's path on this machine.

    Examples
    --------
    >>> from pathlib import Path
    >>> within("Done: see /home/me/found/pages.jsonl.", Path("/home/me/found"))
    'Done: see pages.jsonl.'
    """
    where = folder.absolute()
    return sentence.replace(f"{where}/", "").replace(str(where), where.name)


def outlook(notes: Notes, noun: str) -> list[str]:
    """Estimate how many finds are left and what the next one will cost; nothing if no page was read."""
    state, said = notes.state, []
    if not any(map(_is_read, notes.answers)):
        return []
    waiting, cost = number_of(state.get("waiting")), number_of(state.get("cost"))
    if waiting == 0 and state.get("reason") == "finished":
        said.append("It followed every link that it found. A crawl cannot find what no link leads to.")
    elif (limits := _limits(state)) is not None:
        said.append(_left(*limits, noun))
    elif waiting:
        said.append(f"The number of {noun}s left to find is unknown.")
    if cost is not None and waiting:
        said.append(f"The next {noun} is expected to cost about {counted(max(1, round(cost)), 'request')}.")
    if waiting:
        said.append(f"{counted(waiting, 'link')} {inflected(waiting, 'was', 'were')} found but not followed.")
    return said


def _is_read(answer: Answer) -> bool:
    return answer.status is not None and 200 <= answer.status < 300


def _left(low: float, middle: float, high: float, noun: str) -> str:
    are = inflected(middle, "is", "are")
    return (
        f"About {counted(middle, noun)} {are} left to find: between {low:,.0f} and {high:,.0f}, with a probability "
        "of 90 %."
    )


def failure(error: str, why: str) -> str:
    """Say why a link led to nothing, from its outcome."""
    if why[1:2].islower():  # a sentence, rather than the name of a protocol or an error
        why = why[:1].lower() + why[1:]
    if why:
        return printable(why)
    if error.startswith("failure: "):
        return f"no answer ({printable(error.removeprefix('failure: '))})"
    return _OUTCOMES.get(error, printable(error))


def scope_sentences(notes: Notes) -> list[str]:
    """Say how many addresses were out of the scope of the crawl, for each reason."""
    noted = notes.state.get("scope")
    counts = noted if isinstance(noted, dict) else {}
    numbers = {why: int(number_of(counts.get(reason)) or 0) for reason, why in _OUT_OF_SCOPE.items()}
    return [f"{counted(n, 'address')} out of scope: {why}." for why, n in numbers.items() if n]


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
    """Return a number from notes, ``None`` if it is not a number."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_one else None
