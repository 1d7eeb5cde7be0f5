"""How a crawl that cannot start ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def said_already() -> None:
    """Keep asyncio from logging the traceback of the error with which the task that runs now is about to end.

    The log says it in a line. Scrapy starts a crawl in a task whose error nobody looks at, and looks at its exit status
    instead; whoever awaits the task is given the error all the same.
    """
    with suppress(RuntimeError):  # there is no task
        if (task := asyncio.current_task()) is not None:
            task.add_done_callback(_look_at)


def _look_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
