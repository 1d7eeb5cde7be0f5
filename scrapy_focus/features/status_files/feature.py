"""Rewrites the files at intervals, and when the crawl ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import try_to_write, write_atomically
from scrapy_focus.core.printable import brief, printable_json, printable_logger, reason_of
from scrapy_focus.engine.feature import Feature
from scrapy_focus.engine.live_status import live_status
from scrapy_focus.engine.progress import Speed
from scrapy_focus.features.status_files.metrics import metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy_focus.engine.host import Host

logger = printable_logger(__name__)

_FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {  # by setting
    "FOCUS_STATS_FILE": lambda status: printable_json(status, indent=2) + "\n",
    "FOCUS_METRICS_FILE": metrics_of,
}
_BEGINS = (b'{\n  "state": ', b"# TYPE focus_")  # the files of earlier runs
_READ = 100  # bytes


class StatusFiles(Feature):
    """Keeps files with the state of the crawl current; each is replaced in one step.

    A file that cannot be written later on is a warning, once, and the crawl continues.

    Parameters
    ----------
    host
        The crawl.
    files
        The paths, by the setting that names them.
    every
        Seconds between two versions.

    Raises
    ------
    ConfigError
        If a file cannot be written.
    """

    name: ClassVar[str] = "status_files"

    def __init__(self, host: Host, files: Mapping[str, str], *, every: float) -> None:
        self.host = host
        self.files = {name: Path(path).absolute() for name, path in files.items()}
        self._every = every
        self._speed = Speed(host.crawler.settings.getfloat("DOWNLOAD_DELAY"))
        self._loop: Any = None
        self._reason = ""  # for which the spider was closed
        self._failed: set[str] = set()  # settings whose file could not be written
        for name, path in self.files.items():
            _try_out(name, path)
            _check_mine(name, path)
        if len({*self.files.values()}) < len(self.files):
            raise ConfigError(f"{' and '.join(self.files)} are the same file, {brief(str(path))}; name another one")
        connect = host.crawler.signals.connect
        connect(self._opened, signals.spider_opened)
        connect(self._closed, signals.spider_closed)

    def _opened(self) -> None:
        self._loop = create_looping_call(self._write)
        self._loop.start(self._every)

    def _closed(self, reason: str) -> None:
        self._reason = reason
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        self._write()

    def _write(self) -> None:
        self.host.guard(self.name, None, self._write_all)  # after an exception, the loop would end

    def _write_all(self) -> None:
        status = live_status(self.host, self._speed, reason=self._reason)
        for name, path in self.files.items():
            try:
                write_atomically(path, _FORMATS[name](status).encode())
            except OSError as error:
                self._warn(name, path, error)

    def _warn(self, name: str, path: Path, error: OSError) -> None:
        if name not in self._failed:
            self._failed.add(name)
            logger.warning(
                "%s cannot be written any more (%s): %s; the crawl continues, and later versions are tried",
                name, error.strerror or reason_of(error), path, extra={"spider": self.host.crawler.spider},
            )  # fmt: skip


def _check_mine(name: str, path: Path) -> None:
    """Raise ``ConfigError`` if a file has other contents, which would be lost."""
    with suppress(OSError):
        with path.open("rb") as file:
            begins = file.read(_READ).lstrip()
        if begins and not begins.startswith(_BEGINS):
            raise ConfigError(
                f"{name} is {brief(str(path))}, which has other contents, and would be overwritten; name another file"
            )


def _try_out(name: str, path: Path) -> None:
    try:
        try_to_write(path)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or reason_of(error)
        raise ConfigError(
            f"{name} is {brief(str(path))}, which cannot be written: {reason}; name a file in a folder that can be "
            "written"
        ) from error
