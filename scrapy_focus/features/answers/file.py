"""Answers of a site whose pages are not done yet, in a file that a kill at any instant leaves readable.

An answer is written as it arrives, and is forgotten when its page is done. What is in the file when a crawl resumes had
arrived before the kill, and need not be asked for again.
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
_ROOM = 16 << 20  # bytes of answers that are not needed any more, beyond which the file is written anew


class KeptAnswers:
    """Opens the file, or makes it; what an earlier run left of pages that wait is there to be taken.

    Parameters
    ----------
    path
        The file.
    states
        What the crawl knows about keys: only the answers of links that wait are of use.

    Raises
    ------
    StorageError
        If it cannot be written; raised by :meth:`keep` and :meth:`forget` too.
    """

    def __init__(self, path: Path, states: Callable[[Sequence[int]], Sequence[State]]) -> None:
        self.path = path
        self._sizes: dict[int, int] = {}  # key of each page that is not done -> bytes of its answers in the file
        self._left: dict[tuple[int, Question], Answer] = {}  # by an earlier run
        records = self._stored()
        keys = list({record[0] for record in records})
        waiting = {key for key, state in zip(keys, states(keys), strict=True) if state == State.WAITING}
        self._file = self._write_anew([record for record in records if record[0] in waiting])
        self._left = {(key, question): answer for key, question, answer in records if key in waiting}

    def keep(self, key: int, question: Question, answer: Answer) -> None:
        """Write down the answer to a request for a page. It survives this process when the call is back."""
        before = self._file.size
        self._file.append((key, question, answer))
        self._sizes[key] = self._sizes.get(key, 0) + self._file.size - before

    def take(self, key: int, question: Question) -> Answer | None:
        """Return what an earlier run was answered, once; it stays in the file until the page is done."""
        return self._left.pop((key, question), None)

    def forget(self, key: int) -> None:
        """A page is done: its answers are not needed any more."""
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
        """Idempotent. Nothing is left where every page is done."""
        self._file.close()
        if not self._sizes:
            self.path.unlink(missing_ok=True)

    def _stored(self) -> list[Record]:
        """Return the answers of pages that are not done, in order."""
        records: dict[int, list[Record]] = {}
        try:
            for record, _ in read_journal(self.path) if self.path.exists() else ():
                if len(record) == 1:
                    records.pop(record[0], None)
                else:
                    records.setdefault(record[0], []).append(record)
        except StorageError as error:
            logger.warning("%s; what was in it is fetched again", error)
        return [record for each in records.values() for record in each]

    def _write_anew(self, records: list[Record]) -> Journal:
        """Let the file have these records and no others, also if a kill comes in between."""
        other = self.path.with_name(f"{self.path.name}.new")
        self._sizes, self._file = {}, Journal(other)
        for record in records:
            self.keep(*record)
        self._file.close()
        try:
            other.replace(self.path)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error}; allow writing there") from error
        return Journal(self.path, keep=self._file.size)
