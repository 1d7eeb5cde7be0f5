"""The decision log: every pick with its reasons, and every outcome, one JSON line each."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.printable import printable_json, printable_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_focus.core.types import Outcome, Pick

logger = printable_logger(__name__)

_LONGEST = 1 << 20  # bytes of a line


class EventLog:
    """Appends to a file of JSON lines; compressed if the name ends in ``.gz``.

    A pick is written as ``{"event": "pick", "id", "url", "method", "arm", "rank", "origin", "depth", "chance",
    "why"}``. There ``why`` is the record of its reason: the numbers by name, and its text again as ``why``. An
    outcome is ``{"event": "outcome", "id", "status", "mime", "size", "seconds", "items", "error", "reward"}``. A pick
    that was released unsent gives ``{"event": "release", "id"}``. If an earlier run was killed, a cut last line is
    removed.

    Raises
    ------
    ConfigError
        If the file cannot be opened for appending.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.suffix != ".gz" and self.path.is_file():  # a device may be endless
                _drop_cut_line(self.path)
            self._file = self._open()
        except OSError as error:
            raise ConfigError(f"the decision log {path} cannot be written: {error}") from error

    def pick(self, pick: Pick, why: dict[str, Any]) -> None:
        """Write why a pick was chosen."""
        self._write(
            event="pick", id=pick.id, url=pick.url, method=pick.method, arm=pick.arm, rank=pick.rank,
            origin=pick.origin, depth=pick.depth, chance=pick.chance, why=why,
        )  # fmt: skip

    def outcome(self, outcome: Outcome) -> None:
        """Write the outcome of a pick."""
        self._write(
            event="outcome", id=outcome.pick.id, status=outcome.status, mime=outcome.mime, size=outcome.size,
            seconds=round(outcome.seconds, 4), items=outcome.items, error=outcome.error, reward=outcome.reward,
        )  # fmt: skip

    def release(self, pick: Pick) -> None:
        """Write that a pick was released unsent."""
        self._write(event="release", id=pick.id)

    def mark(self) -> tuple[str, int] | None:
        """Return how far the file is written, for :meth:`cut`; ``None`` if it cannot be cut.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        if not self.path.is_file():
            return None
        try:
            if self.path.suffix == ".gz":  # complete members, behind which the file can be cut
                self._file.close()
                self._file = self._open()
            else:
                self._file.flush()
            return str(self.path.resolve()), self.path.stat().st_size
        except OSError as error:
            raise StorageError(
                f"the decision log {self.path} cannot be written: {error}; make room, and start the crawl again"
            ) from error

    def cut(self, path: str, size: int) -> bool:
        """Drop what was written after a mark, to be written again; ``False`` if the mark is not in this file."""
        if str(self.path.resolve()) != path or not self.path.is_file() or self.path.stat().st_size < size:
            return False
        self._file.close()
        os.truncate(self.path, size)
        self._file = self._open()
        return True

    def close(self) -> None:
        """Flush and close. Idempotent."""
        self._file.close()

    def _open(self) -> TextIO:
        open_file = gzip.open if self.path.suffix == ".gz" else open
        return cast("TextIO", open_file(self.path, "at", encoding="utf-8"))

    def _write(self, **fields: Any) -> None:
        self._file.write(printable_json(fields, default=str) + "\n")


def _drop_cut_line(path: Path) -> None:
    with path.open("r+b") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _LONGEST)
        file.seek(start)
        end = file.read(_LONGEST)
        if end and not end.endswith(b"\n"):
            file.truncate(start + end.rfind(b"\n") + 1)


def read_log(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a decision log. A cut last line, as a killed crawl leaves it, is skipped.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is not a decision log.
    """
    path, number = Path(path), 0
    open_file = gzip.open if path.suffix == ".gz" else open
    try:
        with cast("BinaryIO", open_file(path, "rb")) as file:
            for number, line in enumerate(file, 1):
                try:
                    yield _read_event(line)
                except ValueError as error:
                    if not line.endswith(b"\n"):
                        break
                    raise ConfigError(f"line {number} of {path} is not an event of a decision log: {error}") from error
            else:
                return
        number -= 1
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and not (isinstance(error, gzip.BadGzipFile) and number):
            raise ConfigError(f"the decision log {path} cannot be read: {error}") from error
    logger.warning("%s is cut off after %d events; what follows is lost", path, number)


def _read_event(line: bytes) -> dict[str, Any]:
    event = json.loads(line.decode())
    if not isinstance(event, dict) or event.get("event") not in ("pick", "outcome", "release"):
        raise ValueError("it has no event")
    return event
