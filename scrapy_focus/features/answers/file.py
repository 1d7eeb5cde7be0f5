"""Stores responses of unfinished pages in a file that stays readable after a kill at any instant.

A response is written when it arrives, and forgotten when its page is done. What is in the file when a crawl resumes had
arrived before the kill, and does not have to be requested again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.core.types import State
from scrapy_focus.jobs.journal import Journal, read_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from scrapy_focus.jobs.journal import Record

    Question = tuple[str, str, bytes]  # method, URL and body of a request
    Answer = tuple[Any, ...]  # plain values

logger = printable_logger(__name__)

ANSWERS = "answers"
_ROOM = 16 << 20  # bytes of responses not needed any more; with more, the file is rewritten


class KeptAnswers:
    """Opens or creates the file; responses that an earlier run left for queued pages can be taken.

    Parameters
    ----------
    path
        The file.
    states
        Returns the states of keys: only responses for queued links are used.

    Raises
    ------
    StorageError
        If it cannot be written; raised by :meth:`keep` and :meth:`forget` too.
    """

    def __init__(self, path: Path, states: Callable[[Sequence[int]], Sequence[State]]) -> None:
        self.path = path
        self._sizes: dict[int, int] = {}  # bytes in the file, by key of each unfinished page
        self._left: dict[tuple[int, Question], Answer] = {}  # from an earlier run
        records = self._stored()
        keys = list({record[0] for record in records})
        waiting = {key for key, state in zip(keys, states(keys), strict=True) if state == State.WAITING}
        self._file = self._write_anew([record for record in records if record[0] in waiting])
        self._left = {(key, question): answer for key, question, answer in records if key in waiting}

    def keep(self, key: int, question: Question, answer: Answer) -> None:
        """Write the response to a request of a page. When this call returns, the response survives the process."""
        before = self._file.size
        self._file.append((key, question, answer))
        self._sizes[key] = self._sizes.get(key, 0) + self._file.size - before

    def take(self, key: int, question: Question) -> Answer | None:
        """Return the response that an earlier run received, once; it stays in the file until the page is done."""
        return self._left.pop((key, question), None)

    def forget(self, key: int) -> None:
        """Forget the responses of a page that is done."""
        if self._sizes.pop(key, None) is None:
            return
        for question in [question for other, question in self._left if other == key]:
            del self._left[key, question]
        if not self._sizes:
            self._file.clear()
            return
        self._file.append((key,))
        if self._file.size > _ROOM + 2 * sum(self._sizes.values()):
            self._file.close()
            self._file = self._write_anew(self._stored())

    def close(self) -> None:
        """Close the file. Idempotent. The file is removed if every page is done."""
        self._file.close()
        if not self._sizes:
            self.path.unlink(missing_ok=True)

    def _stored(self) -> list[Record]:
        """Return the responses of unfinished pages, in order."""
        records: dict[int, list[Record]] = {}
        try:
            for record, _ in read_journal(self.path) if self.path.exists() else ():
                if len(record) == 1:
                    records.pop(record[0], None)
                else:
                    records.setdefault(record[0], []).append(record)
        except StorageError as error:
            logger.warning("%s; its responses are fetched again", error)
        return [record for each in records.values() for record in each]

    def _write_anew(self, records: list[Record]) -> Journal:
        """Rewrite the file with these records only, safely even if a kill interrupts it."""
        other = self.path.with_name(f"{self.path.name}.new")
        self._sizes, self._file = {}, Journal(other)
        for record in records:
            self.keep(*record)
        self._file.close()
        try:
            other.replace(self.path)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error}; check its permissions") from error
        return Journal(self.path, keep=self._file.size)
