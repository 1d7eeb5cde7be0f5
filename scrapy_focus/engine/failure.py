"""How a crawl that cannot start ends, and what went wrong with a request, in words.

The commands of Scrapy look at nothing but whether a crawl was begun for their exit status, and have no place where a
crawl could say more. But while it runs, the command is on the stack, and its ``exitcode`` is what the process ends
with. In a script there is no command, and nothing is done: whoever started the crawl is given the exception.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.commands.runspider import Command as RunSpiderCommand
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UsageError,
)
from scrapy.utils.python import global_object_name

from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.ending import STATUS, is_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.commands import ScrapyCommand
    from scrapy.settings import BaseSettings

logger = printable_logger(__name__)

_LONGEST = 2000  # characters of a reason
_KINDS: tuple[tuple[type[BaseException], str, str], ...] = (  # class, name in the stats, in words
    (CannotResolveHostError, "unknown_host", "there is no host of that name"),
    (DownloadConnectionRefusedError, "refused", "the connection was refused"),
    (DownloadTimeoutError, "timeout", "no answer in time"),
    (ResponseDataLossError, "cut", "the answer was cut off"),
)
#: Kinds of failed connections, as they are counted.
FAILURES = (*(name for _, name, _ in _KINDS), "tls", "lost")
_CONNECTION = (*(kind for kind, _, _ in _KINDS), DownloadFailedError)


def running_command() -> ScrapyCommand | None:
    """Return the ``scrapy crawl``, ``scrapy runspider`` or command of ours that crawls in which this is called, if any.

    A command of ours says so by an attribute ``crawls``.
    """
    frame = sys._getframe()
    while frame is not None:
        caller = frame.f_locals.get("self") if frame.f_code.co_name == "run" else None
        if isinstance(caller, (CrawlCommand, RunSpiderCommand)) or getattr(caller, "crawls", False):
            return caller
        frame = frame.f_back  # type: ignore[assignment]
    return None


def reports_status(command: ScrapyCommand | None, settings: BaseSettings | None = None) -> bool:
    """Return whether the exit status tells how a crawl ended: of our commands, or if that is asked for."""
    if getattr(command, "crawls", False):
        return True
    for each in (settings, getattr(command, "settings", None)):
        if each is not None:
            with suppress(ValueError):  # it is refused elsewhere
                return bool(each.getbool("FOCUS_EXIT_STATUS"))
    return False


def in_words_of_command(error: BaseException) -> str:
    """Return what an error says, as a command of ours that crawls says it."""
    said = str(error)
    in_my_words: Callable[[str], str] | None = getattr(running_command(), "in_my_words", None)
    return said if in_my_words is None else in_my_words(said)


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let an error in an argument or setting end the crawl that starts now with one line in the log; it is raised."""
    try:
        yield
    except (FocusError, UsageError) as error:
        logger.error("%s", reason_of(error, _LONGEST))
        said_already(error)
        raise


def said_already(error: BaseException, settings: BaseSettings | None = None) -> None:
    """Keep asyncio from logging the traceback of the error with which the task that runs now is about to end.

    The log says it in a line. Scrapy starts a crawl in a task whose error nobody looks at, and looks at its exit status
    instead; whoever awaits the task is given the error all the same. A command of Scrapy's ends with the status that
    belongs to the error with ``FOCUS_EXIT_STATUS``, under :class:`~scrapy.crawler.AsyncCrawlerProcess`, its default.
    """
    with suppress(RuntimeError):  # there is no task
        if (task := asyncio.current_task()) is not None:
            command = running_command()
            reports = reports_status(command, settings)
            task.add_done_callback(_look_at(command if reports else None, _status_of(error)))


def _status_of(error: BaseException) -> int:
    if not isinstance(error, StorageError):
        return STATUS["wrong_argument"]
    return STATUS["disk_full" if is_full(error) else "error"]


def _look_at(command: ScrapyCommand | None, status: int) -> Callable[[asyncio.Task[Any]], None]:
    def look(task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()
        if command is not None and command.crawler_process is not None:
            command.exitcode = status
            command.crawler_process.bootstrap_failed = False  # for which the command would make it 1

    return look


def failure_kind(error: BaseException) -> str:
    """Return what kind of failed connection an error is, ``""`` if it is none: ``"refused"``, ``"timeout"``, ..."""
    if not isinstance(error, _CONNECTION):
        return ""
    named = next((name for kind, name, _ in _KINDS if isinstance(error, kind)), "")
    return named or ("tls" if _is_tls(error) else "lost")


def in_words(error: BaseException) -> str:
    """Say why there was no answer that could be read."""
    kind = failure_kind(error)
    if kind == "tls":
        return "no safe connection could be made (TLS)"
    if kind == "lost":
        return f"the connection was lost ({reason_of(error)})"
    if kind:
        return next(words for _, name, words in _KINDS if name == kind)
    if isinstance(error, IgnoreRequest) and "robots.txt" in str(error):
        return "robots.txt forbids it"
    said = reason_of(error)
    return said if isinstance(error, IgnoreRequest) else f"{global_object_name(type(error))}: {said}"


def _is_tls(error: BaseException) -> bool:
    said = str(error)
    return "SSL" in said or "TLS" in said or "certificate" in said
