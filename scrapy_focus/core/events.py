"""The decision log: every pick with the reasons for it, and every outcome, one JSON line each."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome, Pick


class EventLog:
    """Appends to a file of JSON lines; compressed where the name ends in ``.gz``.

    A pick is written as ``{"event": "pick", "id", "url", "method", "arm", "rank", "origin", "depth", "chance", "why"}``,
    where ``why`` is what the policy's ``explain`` says; its outcome as ``{"event": "outcome", "id", "status", "mime",
    "size", "seconds", "items", "error", "reward"}``. A pick that is handed back unsent gives ``{"event": "release",
    "id"}``.

    Raises
    ------
    ConfigError
        If the file cannot be opened for appending.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            open_file = gzip.open if self.path.suffix == ".gz" else open
            self._file = cast("TextIO", open_file(path, "at", encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"the decision log {path} cannot be written: {error}") from error

    def pick(self, pick: Pick, why: dict[str, Any]) -> None:
        """Write why a pick was chosen."""
        self._write(
            event="pick", id=pick.id, url=pick.url, method=pick.method, arm=pick.arm, rank=pick.rank, origin=pick.origin,
            depth=pick.depth, chance=pick.chance, why=why,
        )  # fmt: skip

    def outcome(self, outcome: Outcome) -> None:
        """Write what a pick brought back."""
        self._write(
            event="outcome", id=outcome.pick.id, status=outcome.status, mime=outcome.mime, size=outcome.size,
            seconds=round(outcome.seconds, 4), items=outcome.items, error=outcome.error, reward=outcome.reward,
        )  # fmt: skip

    def release(self, pick: Pick) -> None:
        """Write that a pick was handed back unsent."""
        self._write(event="release", id=pick.id)

    def close(self) -> None:
        """Flush and close. Idempotent."""
        self._file.close()

    def _write(self, **fields: Any) -> None:
        self._file.write(json.dumps(fields, ensure_ascii=False, default=str) + "\n")
