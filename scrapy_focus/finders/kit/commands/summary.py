"""What ``--json`` prints: one object about a crawl, planned, ended or failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy import signals

from scrapy_focus.engine.ending import STATUS, ending_of
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.live_status import live_status
from scrapy_focus.finders.kit.commands.base import called, one_line
from scrapy_focus.finders.kit.commands.plan import BUDGETS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy.crawler import Crawler

    from scrapy_focus.finders.kit.commands.plan import Plan

_COMPLETE = frozenset({"finished", "focus_plateau"})  # reasons after which nothing is left to resume
_KINDS = {status: kind for kind, status in STATUS.items() if status}


class Summary:
    """Collects what is known of a crawl at its end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._status: dict[str, Any] = {}
        crawler.signals.connect(self._on_closed, signals.spider_closed)

    def _on_closed(self, reason: str) -> None:
        if (host := host_of(self._crawler)) is not None:
            self._status = live_status(host, reason=reason)

    def values(self, command: str, plan: Plan, list_name: str, status: int) -> dict[str, Any]:
        """Return the object for a crawl that ended with this exit status."""
        ending, seen = ending_of(self._crawler), self._status
        reason = (seen.get("ending") or {}).get("reason", "")
        resume = _resumes_with(reason) if plan.out is not None else None
        used, rewards, items = seen.get("used", {}), seen.get("rewards", 0), seen.get("items", 0)
        listed = getattr(self._crawler.spider, "n_found", None)
        if listed is not None:
            rewards, items = listed, 0
        found = rewards or items
        return {
            **_begin(command, status, ending.kind, ending.sentence),
            "reason": reason,
            "found": int(found) if found == int(found) else found,
            "noun": "items" if items and not rewards else seen.get("noun", ""),
            "states": getattr(self._crawler.spider, "states", None),
            "expected": seen.get("expected"),
            **{name: used.get(name, 0) for name in BUDGETS},
            "limits": seen.get("limits", {}),
            "waiting": seen.get("links", {}).get("waiting", 0),
            "folder": None if plan.out is None else str(plan.out.absolute()),
            "list": _path_of(plan.out, list_name),
            "page": _path_of(plan.out, "index.html"),
            "resumable": resume is not None,
            "resume": resume,
            **_asked(plan),
        }


def planned(command: str, plan: Plan, rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the object for a dry run, with the rows that it would print."""
    said = {name.lower().replace(" ", "_"): text for name, text in rows}
    return {**_begin(command, 0, "dry_run", "This was a dry run: nothing was sent."), **said, **_asked(plan)}


def failed(command: str, status: int, message: str) -> dict[str, Any]:
    """Return the object for a command that ended with an error before its crawl began."""
    return {**_begin(command, status, _KINDS.get(status, "error"), one_line(message)), "resumable": False}


def error_of(crawling: object) -> BaseException | None:
    """Return the error that kept a crawl from beginning, if any is known."""
    if not isinstance(crawling, asyncio.Task) or not crawling.done() or crawling.cancelled():
        return None
    return crawling.exception()


def _begin(command: str, status: int, ending: str, sentence: str) -> dict[str, Any]:
    return {"command": called(command), "status": status, "ending": ending, "sentence": sentence}


def _asked(plan: Plan) -> dict[str, Any]:
    return {"looks_for": plan.asked.looks_for, "starts": plan.asked.starts.urls}


def _path_of(folder: Path | None, name: str) -> str | None:
    """Return the path of a file in the folder of a crawl, ``None`` if there is none."""
    if folder is None or not (folder / name).exists():
        return None
    return str((folder / name).absolute())


def _resumes_with(reason: str) -> str | None:
    """Return the command that resumes a crawl that ended for this reason, ``None`` if nothing is left."""
    if reason in _COMPLETE:
        return None
    if option := BUDGETS.get(reason.removeprefix("focus_budget_")):
        return f"the same command with a larger {option}"
    if reason == "focus_cost_limit":
        return "the same command with a higher --cost-limit, or 0 for none"
    return "the same command"
