"""The versions of the pages of a recorded site: the answers of each URL with their start times, if there are several.

Most recordings have one answer of each URL, and should not be slower because others have more. So answers are
numbered: the first of each URL has the number of the URL, and all later ones have numbers behind these. A column has
a value for each answer, so the number of an answer is enough, whether it is the first or not.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.lab.recordings.columns import joined
from scrapy_focus.lab.recordings.texts import Labels, Notes, Sorter, packed, texts_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray

    from scrapy_focus.lab.recordings.columns import Arrays

SCHEMA = """
CREATE TABLE begins (                               -- URLs that did not always answer as they do in pages
    page INTEGER PRIMARY KEY REFERENCES pages,
    since REAL NOT NULL                             -- seconds since the epoch; before, it answered 404
);
CREATE TABLE versions (                             -- what URLs answered later
    id INTEGER PRIMARY KEY,                         -- from 0
    page INTEGER NOT NULL REFERENCES pages,
    since REAL NOT NULL,                            -- seconds since the epoch, until the next version
    status INTEGER,                                 -- this and the following as in pages
    error TEXT,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    seconds REAL NOT NULL,
    redirect INTEGER REFERENCES pages,
    headers INTEGER NOT NULL REFERENCES texts,
    header_size INTEGER NOT NULL,
    digest BLOB,
    body BLOB,
    UNIQUE (page, since)
);
CREATE TABLE version_links (
    source INTEGER NOT NULL REFERENCES versions,
    position INTEGER NOT NULL,                      -- this and the following as in links
    target INTEGER NOT NULL REFERENCES pages,
    tag_path INTEGER NOT NULL REFERENCES texts,
    anchor INTEGER NOT NULL REFERENCES texts,
    context INTEGER NOT NULL REFERENCES texts,
    PRIMARY KEY (source, position)
) WITHOUT ROWID;
"""
NOT_YET = -1  # in place of an answer: the URL did not exist then
_AT_ONCE = 10_000  # rows
_KINDS: dict[str, DTypeLike] = {
    "status": np.int16, "recorded": np.bool_, "size": np.int64, "header_size": np.int64, "seconds": np.float64,
    "redirect": np.int64, "digest": np.int64, "mime": np.int32, "error": np.int32,
}  # fmt: skip
_ANSWER = "status, error, mime, size, seconds, redirect, header_size, digest"


@dataclass(frozen=True, slots=True)
class Columns:
    """Properties of answers without their contents, a value for each; shape (n_answers,)."""

    status: NDArray[np.int16]  # 0 if there was no response
    errors: Mapping[int, str]  # why there was none, by the number of the answer
    recorded: NDArray[np.bool_]  # whether the URL was requested
    mimes: Labels
    size: NDArray[np.int64]  # bytes of the body
    header_size: NDArray[np.int64]  # bytes
    seconds: NDArray[np.float64]  # that the response took; 0: unknown
    redirect: NDArray[np.int64]  # number of the URL that a redirect leads to; -1: not a redirect, or leads off the site
    digest: NDArray[np.int64]  # equal for equal bodies; 0 if there was none

    @classmethod
    def of(cls, arrays: Arrays, n: int | None = None) -> Columns:
        """Make them from the result of :func:`read_answers`; optionally of the first so many answers."""
        columns = {name: array[:n] for name, array in arrays.items() if name.startswith("answers.")}
        return cls(
            status=columns["answers.status"],
            errors=Notes(Labels(columns["answers.error"], texts_in(arrays, "errors"))),
            recorded=columns["answers.recorded"],
            mimes=Labels(columns["answers.mime"], texts_in(arrays, "mimes")),
            size=columns["answers.size"],
            header_size=columns["answers.header_size"],
            seconds=columns["answers.seconds"],
            redirect=columns["answers.redirect"],
            digest=columns["answers.digest"],
        )


class Histories:
    """Which answer of each URL is valid when; empty for URLs with a single answer.

    Parameters
    ----------
    arrays
        The result of :func:`read_histories`.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._starts = arrays["histories.starts"].data
        self._since = arrays["histories.since"].data
        self._answers = arrays["histories.answers"].data
        begin, end = arrays["histories.ends"].tolist()
        #: When the first of all changes was, in seconds since the epoch; 0 if there is none.
        self.begin: float = begin
        #: When the last of all was, likewise.
        self.end: float = end

    def at(self, page: int, time: float) -> int:
        """Return the number of the answer that a URL gave at a time, :data:`NOT_YET` if it did not exist."""
        first, last = self._starts[page], self._starts[page + 1]
        if first == last:
            return page
        place = bisect_right(self._since, time, first, last)
        return int(self._answers[place - 1]) if place > first else NOT_YET

    def of(self, page: int) -> list[tuple[float, int]]:
        """Return the start time and number of each answer of a URL, in order; ``-inf`` if it was always valid."""
        places = slice(self._starts[page], self._starts[page + 1])
        return list(zip(self._since[places], self._answers[places], strict=True)) or [(-np.inf, page)]


def read_answers(database: sqlite3.Connection, tables: Sequence[str]) -> Arrays:
    """Return the columns of all answers: those of the pages, of their versions, of their renderings."""
    names = "status", "recorded", "size", "header_size", "seconds", "redirect", "digest", "mime", "error"
    lots: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    mimes, errors = Sorter(), Sorter("")
    for table in tables:
        rows = database.execute(f"SELECT {_ANSWER} FROM {table} ORDER BY id")  # noqa: S608 (constants)
        while some := rows.fetchmany(_AT_ONCE):
            for name, value in _columns_of(some, mimes, errors).items():
                lots[name].append(np.array(value, _KINDS[name]))
    columns = {f"answers.{name}": joined(parts, _KINDS[name]) for name, parts in lots.items()}
    return columns | packed("mimes", mimes.names()) | packed("errors", errors.names())


def _columns_of(rows: Sequence[Sequence[Any]], mimes: Sorter, errors: Sorter) -> dict[str, Any]:
    """Return the columns of some answers, with numbers for types and errors."""
    status, error, mime, size, seconds, redirect, header_size, digest = zip(*rows, strict=True)
    answered = [value is not None or text is not None for value, text in zip(status, error, strict=True)]
    return {
        "status": np.array([value or 0 for value in status], np.int16),
        "recorded": answered,
        "size": size,
        "header_size": header_size,
        "seconds": seconds,
        "redirect": [-1 if value is None else value for value in redirect],
        "digest": [int.from_bytes(value or b"", "big", signed=True) for value in digest],
        "mime": list(map(mimes, mime)),
        "error": [errors(text or "") for text in error],
    }


def read_histories(database: sqlite3.Connection, n_urls: int) -> Arrays:
    """Return which answer of each URL is valid when, grouped by URL, in the order of time.

    Raises
    ------
    ValueError
        If versions are missing, or are of missing pages, or a time is not a number.
    """
    rows = database.execute("SELECT id, page, since FROM versions ORDER BY id").fetchall()
    begins = dict(database.execute("SELECT page, since FROM begins").fetchall())
    if [number for number, _, _ in rows] != list(range(len(rows))):
        raise ValueError("versions are missing")
    since = np.array([*begins.values(), *(since for *_, since in rows)], np.float64)
    pages = np.array([*begins, *(page for _, page, _ in rows)], np.int64)
    if not np.isfinite(since).all():
        raise ValueError("a time is not a number")
    if len(pages) and not 0 <= pages.min() <= pages.max() < n_urls:
        raise ValueError("a version is of a page that is not there")
    ends = [since.min(initial=np.inf), since.max(initial=-np.inf)] if len(since) else [0.0, 0.0]
    always = np.setdiff1d(pages, np.fromiter(begins, np.int64))  # the first answer of these is valid before any version
    answers = np.concatenate([np.fromiter(begins, np.int64), n_urls + np.arange(len(rows)), always])
    pages, since = np.concatenate([pages, always]), np.concatenate([since, np.full(len(always), -np.inf)])
    order = np.lexsort((answers, since, pages))
    return {
        "histories.starts": np.searchsorted(pages[order], np.arange(n_urls + 1)).astype(np.int64),
        "histories.since": since[order],
        "histories.answers": answers[order].astype(np.int64),
        "histories.ends": np.array(ends, np.float64),
    }
