"""How a crawl that cannot start ends, and what went wrong with a request, in words.

The commands of Scrapy look at nothing but whether a crawl was begun for their exit status, and have no place where a
crawl could say more. But while it runs, the command is on the stack, and its ``exitcode`` is what the process ends
with. In a script there is no command, and nothing is done: whoever started the crawl is given the exception.
"""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

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
from scrapy.http import HtmlResponse
from scrapy.utils.python import global_object_name

from scrapy_focus.config import Config
from scrapy_focus.core.errors import ConfigError, FocusError, StorageError
from scrapy_focus.core.printable import EXPLANATION, printable, printable_logger, reason_of
from scrapy_focus.engine.ending import STATUS, Wall, is_full
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.web.refusals import OWNER, Refusal, guard_of, has_password_form, refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.commands import ScrapyCommand
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

logger = printable_logger(__name__)

_KINDS: tuple[tuple[type[BaseException], str, str], ...] = (  # class, name in the stats, in words
    (CannotResolveHostError, "unknown_host", "there is no host of that name"),
    (DownloadConnectionRefusedError, "refused", "the connection was refused"),
    (DownloadTimeoutError, "timeout", "no answer in time"),
    (ResponseDataLossError, "cut", "the answer was cut off"),
)
#: Kinds of failed connections, as they are counted.
FAILURES = (*(name for _, name, _ in _KINDS), "tls", "lost")
_TLS = re.compile(r"\[SSL|OpenSSL\.SSL|TLS|certificate|VerificationError")
_OTHER_NAME = re.compile(r"VerificationError\b.*Mismatch|Hostname mismatch|IP address mismatch")
_INVALID = re.compile(r"(?i)certificate[ _]verify[ _]failed")
_CERTIFICATE = "its certificate is "
_ANY_CERTIFICATE = "if you trust the host all the same, accept its certificate with DOWNLOAD_VERIFY_CERTIFICATES=False"
_TLS_REASON = re.compile(r"'([^']+)'\)\]>")  # of OpenSSL
_NOT_TLS = re.compile(r"(?i)wrong[ _]version[ _]number")  # what came is no TLS at all
_FEW_LINKS = 10  # of a page that is a form for a password, and has little else
_LOG_IN = (
    """log in with a browser and send its cookie, with -s DEFAULT_REQUEST_HEADERS='{"Cookie": "..."}', """
    "or start at a page that needs no login"
)
_ADVICE = {"robots.txt forbids it": "start at a page that it allows"}
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
            with suppress(ConfigError):  # it is refused elsewhere
                return Config.exit_status.of(each)
    return False


def in_words_of_command(error: BaseException | str) -> str:
    """Return what an error or a text says, as a command of ours that crawls says it."""
    said = str(error)
    in_my_words: Callable[[str], str] | None = getattr(running_command(), "in_my_words", None)
    return said if in_my_words is None else in_my_words(said)


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let an error in an argument or setting end the crawl that starts now with one line in the log; it is raised."""
    try:
        yield
    except (FocusError, UsageError) as error:
        logger.error("%s", reason_of(error, EXPLANATION))
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
    if _TLS.search(str(error)):
        return "tls"
    return next((name for kind, name, _ in _KINDS if isinstance(error, kind)), "lost")


def in_words(error: BaseException) -> str:
    """Say why there was no answer that could be read."""
    kind = failure_kind(error)
    if kind == "tls":
        return _tls_in_words(str(error))
    if kind == "lost":
        return f"the connection was lost ({reason_of(error)})"
    if kind:
        return next(words for _, name, words in _KINDS if name == kind)
    said = reason_of(error)
    if isinstance(error, IgnoreRequest):
        return "robots.txt forbids it" if said == "Forbidden by robots.txt" else said
    return f"{global_object_name(type(error))}: {said}"


def why_unread(url: str, response: Response | None, error: BaseException | None) -> Refusal:
    """Say why a page could not be read: its answer is no success, or there was an error."""
    if error is not None or response is None:
        why = "it has no answer" if error is None else in_words(error)
        if _CERTIFICATE in why:
            return Refusal(why, _ANY_CERTIFICATE)
        is_robots = isinstance(error, IgnoreRequest) and "robots.txt" in why
        return Refusal(why, _ADVICE.get(why, ""), "robots-txt" if is_robots else "unreachable")
    headers = {str(name).lower(): value for name, value in response.headers.to_unicode_dict().items()}
    return refusal_of(response.status, headers, response.body, urlsplit(url).netloc.rpartition("@")[2])


def wall_before(request: Request, response: Response | None) -> Wall | None:
    """Say what a start page is that lets no program in though its status is a success, and what to do; ``None`` for any
    other.
    """
    if not isinstance(response, HtmlResponse) or not can_be_read(response):
        return None
    root = response.selector.root
    n_links = len(root.xpath("//a[@href]")[:_FEW_LINKS])
    redirects = bool(request.meta.get("redirect_urls"))
    if has_password_form(root) and (redirects or n_links < _FEW_LINKS):
        what = f"redirects to {printable(response.url)}, a page with a password form"
        return Wall(f"The start page {what if redirects else 'asks for a password'}: {_LOG_IN}.", "login-wall")
    if not n_links and (guard := guard_of({}, response.body, by_name=True)):
        return Wall(f"The start page is that of {guard}, which turns programs away: {OWNER}.", "blocked")
    return None


def _tls_in_words(said: str) -> str:
    if _NOT_TLS.search(said):
        return "no TLS connection: is it http://?"
    if _OTHER_NAME.search(said):
        return f"{_CERTIFICATE}for another name"
    if _INVALID.search(said):
        return f"{_CERTIFICATE}not valid: self-signed, expired, or of an unknown authority"
    found = _TLS_REASON.search(said)
    return f"no TLS connection ({printable(found[1] if found else said, EXPLANATION)})"
