"""A recorded site in one SQLite file: the answer of every URL, and the places of its links.

A policy is tried many times on the same site, so the file is made to be read at once. Data that the simulator reads
for every link are in NumPy columns, and rarely used data (anchors, headers, bodies) stay in the file until requested.
Researchers pass such files on, so each states its format and its completeness, and can be queried with SQL.
"""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from w3lib.url import canonicalize_url

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.lab.recordings.columns import is_settled, key_of, open_columns, path_of, save_columns
from scrapy_focus.lab.recordings.html import decode
from scrapy_focus.lab.recordings.loading import load
from scrapy_focus.lab.recordings.renderings import Renderings, Unrendered
from scrapy_focus.lab.recordings.texts import Labels, Numbers, Strings, texts_in
from scrapy_focus.lab.recordings.versions import Columns, Histories
from scrapy_focus.web.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Set
    from typing import Self

    from numpy.typing import NDArray

    from scrapy_focus.lab.recordings.columns import Arrays
    from scrapy_focus.lab.recordings.renderings import Shown

logger = printable_logger(__name__)

APPLICATION = 0x53464353  # application_id of the SQLite file
FORMAT = 1
WITH_VERSIONS = 2  # the format of recordings where URLs have several answers
WITH_RENDERINGS = 3  # the format where pages have a second copy, as a browser showed them
_LARGEST = 1 << 30  # bytes of a body, Scrapy's DOWNLOAD_MAXSIZE
_ANSWERS = ("pages", "versions", "renderings")

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;  -- values are JSON
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);        -- every string once; 0 is the empty one
CREATE TABLE pages (
    id INTEGER PRIMARY KEY,                         -- from 0, in the order in which the URLs were found
    url TEXT NOT NULL,                              -- as first spelled
    canonical TEXT NOT NULL UNIQUE,                 -- by which URLs are told apart
    status INTEGER,                                 -- NULL: there was no response, see error; or it was never recorded
    error TEXT,                                     -- NULL and no status: linked, but never recorded
    mime TEXT NOT NULL DEFAULT '',                  -- type/subtype in lower case, without parameters
    size INTEGER NOT NULL DEFAULT 0,                -- bytes of the body
    seconds REAL NOT NULL DEFAULT 0,                -- that the response took; 0: unknown
    redirect INTEGER REFERENCES pages,              -- where its Location header leads, if that is on the site
    depth INTEGER,                                  -- clicks from the root; NULL: not reached, or not finished
    headers INTEGER NOT NULL DEFAULT 0 REFERENCES texts,  -- a JSON object
    header_size INTEGER NOT NULL DEFAULT 0,         -- bytes
    digest BLOB,                                    -- 8 bytes, the same for the same body
    body BLOB                                       -- zlib; NULL: not kept
);
CREATE INDEX missing ON pages (id) WHERE status IS NULL AND error IS NULL;
CREATE INDEX failed ON pages (id) WHERE error IS NOT NULL;
CREATE TABLE links (
    source INTEGER NOT NULL REFERENCES pages,
    position INTEGER NOT NULL,                      -- order on the page, from 0; a URL counts where it stands first
    target INTEGER NOT NULL REFERENCES pages,
    tag_path INTEGER NOT NULL REFERENCES texts,
    anchor INTEGER NOT NULL REFERENCES texts,
    context INTEGER NOT NULL REFERENCES texts,
    PRIMARY KEY (source, position)
) WITHOUT ROWID;
"""


class Completeness(NamedTuple):
    """How much of a site a recording holds."""

    recorded: int  # URLs with an answer, or with the reason for its absence
    missing: int  # URLs that are linked and were never recorded
    failed: int  # of the recorded ones, those without a response
    finished: bool  # whether the recording came to an end
    rendered: int = 0  # pages to be shown by a browser
    unrendered: int = 0  # pages with scripts not to be shown, in a recording that has such copies

    @property
    def share(self) -> float:
        """Recorded URLs among all known ones, 0 to 1."""
        return self.recorded / max(1, self.recorded + self.missing)

    def __str__(self) -> str:
        said = "" if self.finished else ", and the recording was stopped before its end"
        failed = f" ({self.failed:,} without an answer)" if self.failed else ""
        recorded = "1 URL is recorded" if self.recorded == 1 else f"{self.recorded:,} URLs are recorded"
        missing = "1 linked one is not" if self.missing == 1 else f"{self.missing:,} linked ones are not"
        share = math.floor(1000 * self.share) / 10  # 100 % is said where nothing is missing
        if self.rendered or self.unrendered:
            rendered = "1 page was rendered" if self.rendered == 1 else f"{self.rendered:,} pages were rendered"
            others = f" ({self.unrendered:,} with scripts were not)" if self.unrendered else ""
            said = f", {rendered}{others}{said}"
        return f"{recorded}{failed}, {missing} ({share:.1f}%){said}"


class RecordedSite:
    """A recorded site, read-only. URLs are numbered from 0 in the order of discovery.

    Columns have shape (n_urls,), and hold the first answer of each URL. Later answers of URLs, if any, have numbers
    behind those of the URLs (:meth:`at`). These numbers give access to their links, headers and bodies, and are their
    places in :attr:`answers`. The same holds for pages as a browser showed them (:attr:`renderings`). Pickled by its
    path, so that other processes open it again.

    Parameters
    ----------
    path
        File that :class:`~scrapy_focus.lab.recordings.writer.SiteWriter` wrote.

    Raises
    ------
    RecordingError
        If the file does not exist, is not a recorded site, is damaged, or has another format.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._database = open_recording(self.path, writable=False)
        self._masks: dict[frozenset[str], NDArray[np.bool_]] = {}
        try:
            with reading(self.path):
                self._read()
        except BaseException:
            self._database.close()  # it would keep others from writing
            raise

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self.path,)

    def __repr__(self) -> str:
        return f"RecordedSite({str(self.path)!r})"

    @property
    def name(self) -> str:
        """Its label: the name of its file."""
        return self.path.stem

    @property
    def n_urls(self) -> int:
        """How many URLs are known, recorded or only linked."""
        return len(self.urls)

    def find(self, url: str) -> int:
        """Return the number of a URL, however it is spelled; -1: unknown."""
        with reading(self.path):
            try:
                row = self._database.execute("SELECT id FROM pages WHERE canonical = ?", (canonicalize_url(url),))
            except (ValueError, UnicodeError):
                return -1
            return int((row.fetchone() or [-1])[0])

    @property
    def begin(self) -> float:
        """When the first change of the site is, in seconds since the epoch; 0 if its pages have one version each."""
        return 0.0 if self._histories is None else self._histories.begin

    @property
    def end(self) -> float:
        """When the last is, likewise."""
        return 0.0 if self._histories is None else self._histories.end

    def at(self, page: int, time: float) -> int:
        """Return the number of the answer that a URL gave at a time, in seconds since the epoch; -1: it did not
        exist, and answered 404.
        """
        return page if self._histories is None else self._histories.at(page, time)

    def history(self, page: int) -> list[tuple[float, int]]:
        """Return the start time and number of each answer of a URL, in order; ``-inf``: from the beginning."""
        return [(-math.inf, page)] if self._histories is None else self._histories.of(page)

    def links(self, page: int) -> slice:
        """Return where the links of an answer are in the columns ``targets`` and ``tag_paths``, in document order."""
        return slice(self._starts[page], self._starts[page + 1])

    def tag_path(self, link: int) -> str:
        """Return the tag path of a link, by its place in the columns."""
        return self._paths[link]

    def tag_paths_of(self, links: Iterable[int]) -> list[str]:
        """Return the tag paths of some links, likewise."""
        return self._paths.some(links)

    def texts(self, links: NDArray[np.int64]) -> list[tuple[str, str]]:
        """Return anchor and context of some links, by their places in the columns."""
        with reading(self.path):
            anchors, contexts = (self._strings.some(of[links].tolist()) for of in (self._anchors, self._contexts))
            return list(zip(anchors, contexts, strict=True))

    def headers(self, page: int) -> dict[str, str]:
        """Return the headers of an answer."""
        with reading(self.path):
            row = self._row("text", page, "JOIN texts ON texts.id = headers")
            headers: dict[str, str] = json.loads(row[0] or "{}")
        return headers

    def body(self, page: int) -> bytes | None:
        """Return the body of an answer, ``None`` if it was not kept."""
        with reading(self.path):
            row = self._row("body", page)
            if row[0] is None:
                return None
            unpacker = zlib.decompressobj()
            body = unpacker.decompress(row[0], _LARGEST)
            if not unpacker.eof:  # files are passed on, and this one may come from anybody
                raise ValueError(f"the body of {self.url_of(page)} is cut off or has more than {_LARGEST:,} bytes")
            return body

    def text(self, page: int) -> str:
        """Return the decoded body of a page, ``""`` if it is not a page or not a success: their bodies are never
        kept.

        Also ``""`` if a page cannot be decoded.

        Raises
        ------
        RecordingError
            If the site was recorded without bodies.
        """
        body = self.body(page)
        answers = self.answers
        if body is None and answers.size[page] and "html" in answers.mimes[page] and 200 <= answers.status[page] < 300:
            raise RecordingError(
                f"the text of {self.url_of(page)} was asked for, and {self.path} has no bodies: record the site again "
                "with --bodies, or bodies=True"
            )
        try:
            return "" if body is None else decode(body, self.headers(page))[0]
        except (LookupError, UnicodeError):  # it declares an encoding that is not one of text
            return ""

    def url_of(self, answer: int) -> str:
        """Return the URL of an answer."""
        return self.urls[answer if answer < self.n_urls else self._row("page", answer)[0]]

    def _row(self, columns: str, answer: int, joined: str = "") -> tuple[Any, ...]:
        """Return columns of an answer."""
        table, number = self._table_of(answer, _ANSWERS)
        row: tuple[Any, ...] = self._database.execute(
            f"SELECT {columns} FROM {table} {joined} WHERE {table}.id = ?",  # noqa: S608 (constants)
            (number,),
        ).fetchone()
        return row

    def _table_of(self, answer: int, tables: tuple[str, str, str]) -> tuple[str, int]:
        """Return the table of an answer (URLs, versions or renderings), and its number there."""
        if answer < self.n_urls:
            return tables[0], answer
        if answer < self._first_rendering:
            return tables[1], answer - self.n_urls
        return tables[2], answer - self._first_rendering

    def with_extension(self, extensions: Collection[str]) -> NDArray[np.bool_]:
        """Return which URLs have one of these extensions (lower case, without the dot)."""
        wanted = frozenset(extensions)
        if wanted not in self._masks:
            is_wanted = np.array([text in wanted for text in self._extensions] or [False])
            self._masks[wanted] = is_wanted[self._extension]
        return self._masks[wanted]

    def completeness(self) -> Completeness:
        """Describe how much of the site the recording holds."""
        recorded = int(np.count_nonzero(self.recorded))
        failed = int(np.count_nonzero(self.recorded & (self.status == 0)))
        return Completeness(
            recorded, self.n_urls - recorded, failed, bool(self.meta.get("finished")), len(self.renderings),
            len(self.unrendered),
        )  # fmt: skip

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._database.close()

    def _read(self) -> None:
        self._database.execute("BEGIN")  # one state of the file, whatever is written to it meanwhile
        self.meta: dict[str, Any] = {
            name: json.loads(value) for name, value in self._database.execute("SELECT name, value FROM meta")
        }
        #: Whether URLs may have several answers, each from a time on.
        self.has_versions: bool = has_table(self._database, "versions")
        #: Whether pages may have a second copy, as a browser showed them.
        self.has_renderings: bool = has_table(self._database, "renderings")
        columns = self._columns()
        self._database.rollback()
        self._set_answers(columns)
        self._set_links(columns)
        #: Numbers of the URLs where a crawl of it starts.
        self.roots: list[int] = [self.ids[url] for url in self.meta["roots"]]

    def _columns(self) -> Arrays:
        """Map the columns beside the recording; if that fails, read it, and write them if possible."""
        key = key_of(self.path, self.meta)
        if key is not None and (kept := open_columns(self.path, key)) is not None:
            return kept
        columns = load(self._database, has_versions=self.has_versions, has_renderings=self.has_renderings)
        if key is None or key != key_of(self.path, self.meta) or not is_settled(self.path):  # it is being written to
            return columns
        try:
            if open_columns(self.path, key) is None:  # another process may have been faster
                save_columns(self.path, key, columns)
        except OSError as error:
            logger.warning(
                "%s cannot be written, so %s is read anew each time: %s", path_of(self.path), self.path, error
            )
        return open_columns(self.path, key) or columns

    def _set_answers(self, columns: Arrays) -> None:
        #: As first spelled.
        self.urls: Strings = texts_in(columns, "urls")
        #: The number of each URL, as first spelled.
        self.ids: Mapping[str, int] = Numbers(self.urls, columns["hashes"], columns["hashed"])
        #: The host name of each URL.
        self.hosts: Labels = Labels(columns["host"], texts_in(columns, "hosts"))
        #: The columns of all answers: first those of the URLs, then those of later versions, then those of
        #: renderings.
        self.answers = Columns.of(columns)
        has_more = len(self.answers.status) > self.n_urls
        first = Columns.of(columns, self.n_urls) if has_more else self.answers
        #: HTTP status; 0 if there was no response.
        self.status: NDArray[np.int16] = first.status
        #: Why there was no response, by URL number.
        self.errors: Mapping[int, str] = first.errors
        #: Whether the URL was requested when the site was recorded.
        self.recorded: NDArray[np.bool_] = first.recorded
        self.mimes: Labels = first.mimes
        #: Bytes of the body.
        self.size: NDArray[np.int64] = first.size
        #: Bytes of the headers.
        self.header_size: NDArray[np.int64] = first.header_size
        #: Seconds that the response took; 0: unknown.
        self.seconds: NDArray[np.float64] = first.seconds
        #: Number of the URL that a redirect leads to; -1: not a redirect, or leads off the site.
        self.redirect: NDArray[np.int64] = first.redirect
        #: Clicks from the root; -1: unknown.
        self.depth: NDArray[np.int64] = columns["depth"]
        #: Equal for equal bodies; 0 without a body.
        self.digest: NDArray[np.int64] = first.digest
        self._extension: NDArray[np.int32] = columns["extension"]
        self._extensions = texts_in(columns, "extensions")
        self._histories = Histories(columns) if self.has_versions else None
        self._first_rendering = len(self.answers.status)
        #: What a browser showed, by page, and its cost.
        self.renderings: Mapping[int, Shown] = {}
        #: Pages with scripts not to be shown by a browser, in a recording that has such copies.
        self.unrendered: Set[int] = frozenset()
        if self.has_renderings:
            self._first_rendering -= len(columns["renderings.pages"])
            self.renderings, self.unrendered = Renderings(columns, self._first_rendering), Unrendered(columns)

    def _set_links(self, columns: Arrays) -> None:
        #: Where the links of each answer start in the following, shape (n_answers + 1,).
        self.starts: NDArray[np.int64] = columns["links.starts"]
        self._starts = self.starts.data
        #: Number of the URL that each link leads to, shape (n_links,); links of later versions, and then those of
        #: renderings, are at the end.
        self.targets: NDArray[np.int32] = columns["links.targets"]
        #: Number of the tag path of each link, shape (n_links,).
        self.tag_paths: NDArray[np.int32] = columns["links.tag_paths"]
        self._anchors: NDArray[np.int32] = columns["links.anchors"]
        self._contexts: NDArray[np.int32] = columns["links.contexts"]
        self._paths = Labels(self.tag_paths, texts_in(columns, "tag_paths"))
        self._strings = texts_in(columns, "texts")


class RecordedPage:
    """A :class:`~scrapy_focus.core.types.Page` read from a recording on demand: the first answer of a URL, or
    another.
    """

    __slots__ = ("answer", "page", "site")

    def __init__(self, site: RecordedSite, page: int, answer: int | None = None) -> None:
        self.site = site
        self.page = page
        self.answer = page if answer is None else answer

    @property
    def url(self) -> str:
        """As first spelled."""
        return self.site.urls[self.page]

    @property
    def status(self) -> int:
        """As recorded; 0: there was no response."""
        return int(self.site.answers.status[self.answer])

    @property
    def headers(self) -> Mapping[str, str]:
        """As recorded."""
        return self.site.headers(self.answer)

    @property
    def text(self) -> str:
        """The decoded body, ``""`` if it was not kept."""
        return self.site.text(self.answer)

    @property
    def kind(self) -> str:
        """The MIME type that the first bytes suggest, ``""`` if they were not kept."""
        return sniff(self.site.body(self.answer) or b"")


def open_recording(path: Path, *, writable: bool) -> sqlite3.Connection:
    """Open the file of an existing recorded site; unfinished changes of a killed writer are undone.

    Raises
    ------
    RecordingError
        If the file does not exist, is not a recorded site, is damaged, or has another format.
    """
    if not path.is_file():
        if path.is_dir():
            raise RecordingError(f"{path} is a folder: name the file of a recorded site, like {path / 'site.sqlite'}")
        raise RecordingError(f"the recorded site {path} is not there: make one with focus record {path}")
    with reading(path):
        if path.with_name(f"{path.name}-journal").exists():  # only a writer can undo the changes of another one
            _connect(path, "rw").close()
        database = _connect(path, "rw" if writable else "ro")
        database.execute("PRAGMA trusted_schema = OFF")
        if database.execute("SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone():
            database.close()
            raise RecordingError(f"{path} is not a recorded site: it has views or triggers, and none has")
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        database.close()
        raise RecordingError(f"{path} is not a recorded site: make one with focus record")
    if not FORMAT <= version <= WITH_RENDERINGS:
        database.close()
        raise RecordingError(
            f"{path} has format {version}, and this version of scrapy_focus reads the formats {FORMAT} to "
            f"{WITH_RENDERINGS}: record the site again, or use the version that it was made with"
        )
    return database


def has_table(database: sqlite3.Connection, name: str) -> bool:
    """Whether a recording has an optional table."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def rows_of(database: sqlite3.Connection, table: str, where: str = "1") -> int:
    """Return how many rows of a table satisfy a condition."""
    return int(database.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])  # noqa: S608 (constants)


def roots_of(path: Path) -> list[str]:
    """Return the URLs where the site of a recording starts, without reading the rest of it.

    Raises
    ------
    RecordingError
        If the file does not exist, is not a recorded site, is damaged, or has another format.
    """
    roots: list[str] = _meta_of(path, "roots")
    return roots


def source_of(path: Path) -> str:
    """Return the source of a recording, in a few words, ``""`` if it does not say; likewise."""
    return str(_meta_of(path, "source") or "")


def has_bodies(path: Path) -> bool:
    """Return whether a recording has the text of its pages; likewise."""
    return bool(_meta_of(path, "bodies"))


def _meta_of(path: Path, name: str) -> Any:
    database = open_recording(path, writable=False)
    with closing(database), reading(path):
        row = database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else json.loads(row[0])


def numbers_of(path: Path, urls: Iterable[str]) -> dict[str, int]:
    """Return the numbers of those URLs that a recording has, in any spelling, without reading the rest of it.

    Raises
    ------
    RecordingError
        If the file does not exist, is not a recorded site, is damaged, or has another format.
    """
    database = open_recording(path, writable=False)
    found: dict[str, int] = {}
    with closing(database), reading(path):
        for url in urls:
            try:
                canonical = canonicalize_url(url)
            except ValueError:  # it is not a URL
                continue
            row = database.execute("SELECT id FROM pages WHERE canonical = ?", (canonical,)).fetchone()
            if row is not None:
                found[url] = row[0]
    return found


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, or of invalid values, into one that says what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:  # it was closed
        raise
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            message = f"{path} is being written by another process: wait until it is done"
        else:
            message = f"{path} cannot be read: {error}"
        raise RecordingError(message) from error
    except (sqlite3.DatabaseError, zlib.error, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise RecordingError(f"{path} is damaged or no recorded site, and cannot be read: {error}") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
    try:
        database.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error:
        database.close()
        raise
    return database
