"""Writes the answers of a site into a recording, from any source: a live crawl, a folder, a web archive, a cache.

Two requirements conflict: writing should be fast, and a recorder that is killed or finds the disk full should leave a
file that can be read and resumed. So pages are written in small transactions, and the URLs still to be recorded
follow from the file alone.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import zlib
from collections import OrderedDict
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from w3lib.url import canonicalize_url, safe_url_string

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.checksums import SUMS, sums_of
from scrapy_focus.lab.recordings.format import (
    APPLICATION,
    FORMAT,
    SCHEMA,
    WITH_RENDERINGS,
    WITH_VERSIONS,
    Completeness,
    has_table,
    open_recording,
    reading,
    rows_of,
)
from scrapy_focus.lab.recordings.graph import depths, read_links
from scrapy_focus.lab.recordings.html import Content, decode, first_pages, is_page, mime_of, read_page, redirect_of
from scrapy_focus.lab.recordings.renderings import SCHEMA as RENDERINGS
from scrapy_focus.lab.recordings.versions import SCHEMA as VERSIONS
from scrapy_focus.web.listings import beginning, listing_of
from scrapy_focus.web.scripts import has_scripts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from scrapy_focus.lab.recordings.html import Found

_SECONDS = 2.0  # between commits
_PATIENCE = 60  # seconds that a last commit waits for readers of the file
_MEMORY = 64 * 1024  # KiB of the database that are kept in memory
_CACHED = 200_000  # strings whose number is kept in memory
_LARGEST = (1 << 63) - 1  # bytes that SQLite can store; headers may be false
_NOWHERE = -1  # the number of a URL that is not on the site
_UNRENDERED = "status IS NULL AND error IS NULL"
_VALUES = """
status = :status, error = :error, mime = :mime, size = :size, seconds = :seconds, redirect = :redirect,
headers = :headers, header_size = :header_size, digest = :digest, body = :body
"""
_UPDATE = f"UPDATE pages SET {_VALUES} WHERE id = :page"  # noqa: S608 (constants, as below)
_RENDERED = f"UPDATE renderings SET {_VALUES}, requests = :requests, received = :received WHERE id = :number"  # noqa: S608
_INSERT = """
INSERT INTO versions (
    id, page, since, status, error, mime, size, seconds, redirect, headers, header_size, digest, body
) VALUES (
    (SELECT coalesce(max(id) + 1, 0) FROM versions), :page, :since, :status, :error, :mime, :size, :seconds, :redirect,
    :headers, :header_size, :digest, :body
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a URL, without following redirects.

    A body is decompressed; if it came compressed, `size` is the number of received bytes.
    """

    url: str
    status: int | None = None  # None: there was no response, see error
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    size: int | None = None  # bytes of the body as received; None: its length
    error: str = ""  # why there was no response: "ignored" was not requested, because of robots.txt
    seconds: float = 0.0  # that the response took; 0: unknown
    since: float | None = None  # start of its validity, in seconds since the epoch; None: always, as far as known


class Asset(NamedTuple):
    """A script or style sheet that a crawl keeps for all pages that need it."""

    url: str
    size: int  # bytes of the network


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A page as a browser showed it after running its scripts, and the cost of that."""

    url: str  # of the page
    status: int | None = None  # HTTP status; None: it was not shown, see error
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""  # the document as shown
    shown_at: str = ""  # the URL that scripts led to, for resolving links; "": that of the page
    error: str = ""  # why it was not shown
    seconds: float = 0.0  # that it took; 0: unknown
    requests: int = 0  # requests besides the page's own, and those for shared assets
    received: int = 0  # bytes of the network for the page and these, headers and bodies
    assets: Sequence[Asset] = ()  # each once


class SiteWriter:
    """Writes a recorded site, or resumes one. Use it as a context manager; :meth:`finish` ends a recording.

    Parameters
    ----------
    path
        SQLite file to write.
    roots
        Start URLs for crawls of the site. Links to other hosts, except sub-domains of theirs, are not recorded;
        ``www.`` is ignored.
    bodies
        Keep the bodies of pages, sitemaps and feeds, compressed, for goals that read their text. An existing
        recording must be resumed with the same value.
    renderings
        Note which pages have scripts, so that a browser can show them (:meth:`unrendered`). Likewise.
    source
        The source of the recording, in a few words.

    Raises
    ------
    RecordingError
        If the file cannot be written, or holds a recording of another format, with other roots, or without the
        requested bodies or renderings.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        roots: Sequence[str],
        bodies: bool = False,
        renderings: bool = False,
        source: str = "",
    ) -> None:
        self.path = Path(path)
        self.bodies = bodies
        self.renderings = renderings
        self.added = 0
        self._texts = _Cache()
        self._numbers = _Cache()
        self._committed = monotonic()
        spelled = first_pages(roots)
        self.roots = list(spelled.values())
        self._domains = tuple({(urlsplit(root).hostname or "").removeprefix("www.") for root in spelled.values()})
        if self.path.exists():
            self._database = open_recording(self.path, writable=True)
            with self._writing():
                known, kept = self._meta("roots") or [], bool(self._meta("bodies"))
                rendered = has_table(self._database, "renderings")
            if first_pages(known).keys() != spelled.keys():
                self._database.close()
                raise RecordingError(
                    f"{self.path} is a recording of {', '.join(known)}, not of {', '.join(self.roots)}: write to "
                    "another file"
                )
            if bodies and not kept:
                self._database.close()
                raise RecordingError(
                    f"{self.path} was begun without bodies: resume it without them, or write to another file"
                )
            if renderings and not rendered:
                self._database.close()
                raise RecordingError(
                    f"{self.path} was begun without renderings: resume it without them, or write to another file"
                )
            self.bodies, self.renderings = kept, rendered
        else:
            self._database = self._create(self.roots, source)
        self._version = -1  # of the file, which changes when another process writes to it
        with self._writing():
            self._database.execute(f"PRAGMA cache_size = -{_MEMORY}")
            self._begin()
            self._set_meta(finished=False)
            self._commit(patience=_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, answer: Answer | Rendering) -> None:
        """Record the answer of a URL, or a page as a browser showed it. The first answer of a URL is kept; URLs
        elsewhere are skipped.

        An answer with ``since`` is a version: it is valid from that time until the next version of its URL. A URL may
        have any number of them, in any order; of two with the same time, the first is kept. The first one added may
        lack ``since``: then it is valid before the others. If it has a ``since``, the URL answered 404 before.

        A page may be shown before it answers, or without having scripts.

        Raises
        ------
        RecordingError
            If it cannot be written, because the disk is full, say. Committed data stay readable. Also if ``since`` is
            not a number, or the recording has no renderings.
        """
        if isinstance(answer, Rendering):
            if not self.renderings:
                raise RecordingError(f"{self.path} was begun without renderings: write to another file, with them")
        elif answer.since is not None and not math.isfinite(answer.since):
            raise RecordingError(
                f"{answer.url} has an answer since {answer.since}; a version needs the time when it began, in "
                "seconds since the epoch"
            )
        with self._writing():
            self._begin()
            if isinstance(answer, Rendering):
                self._add_rendering(answer)
            else:
                self._add(answer)
            self.added += 1
            if monotonic() - self._committed > _SECONDS:
                self._commit(patience=0)
                self._committed = monotonic()

    def in_scope(self, url: str) -> bool:
        """Whether a URL belongs to the site."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and any(
            host == domain or host.endswith(f".{domain}") for domain in self._domains
        )

    def has(self, url: str) -> bool:
        """Whether a URL is recorded."""
        try:
            canonical = canonicalize_url(url)
        except ValueError:
            return False
        with reading(self.path):
            row = self._database.execute(
                "SELECT status IS NOT NULL OR error IS NOT NULL FROM pages WHERE canonical = ?", (canonical,)
            ).fetchone()
        return bool(row and row[0])

    def missing(self) -> Iterator[str]:
        """Yield the URLs that are linked and not recorded, in the order of discovery. It sees later additions."""
        return self._yield_urls(
            "SELECT id, url FROM pages WHERE id > ? AND status IS NULL AND error IS NULL ORDER BY id LIMIT 1000"
        )

    def unrendered(self) -> Iterator[str]:
        """Yield the pages with scripts not yet shown by a browser, likewise."""
        if not self.renderings:
            return iter(())
        return self._yield_urls(
            "SELECT renderings.id, url FROM renderings JOIN pages ON pages.id = page WHERE renderings.id > ? AND "
            "renderings.status IS NULL AND renderings.error IS NULL ORDER BY renderings.id LIMIT 1000"
        )

    def is_rendered(self, url: str) -> bool:
        """Whether a page was passed to a browser."""
        if not self.renderings:
            return False
        try:
            canonical = canonicalize_url(url)
        except ValueError:
            return False
        with reading(self.path):
            return bool(
                self._database.execute(
                    "SELECT 1 FROM renderings JOIN pages ON pages.id = page WHERE canonical = ? AND "
                    "(renderings.status IS NOT NULL OR renderings.error IS NOT NULL)",
                    (canonical,),
                ).fetchone()
            )

    def _yield_urls(self, question: str) -> Iterator[str]:
        last = -1
        while True:
            with reading(self.path):
                rows = self._database.execute(question, (last,)).fetchall()
            if not rows:
                return
            yield from (url for _, url in rows)
            last = rows[-1][0]

    def finish(self) -> Completeness:
        """Mark the recording as finished, compute the depth of each page, and describe the completeness."""
        with self._writing():
            self._begin()
            self._set_depths()
            self._set_meta(finished=True)
            self._commit(patience=_PATIENCE)
        return self.completeness()

    def completeness(self) -> Completeness:
        """Describe how much of the site is recorded so far."""
        with reading(self.path):
            missing, failed = self._database.execute(
                "SELECT (SELECT count(*) FROM pages WHERE status IS NULL AND error IS NULL), "
                "(SELECT count(*) FROM pages WHERE error IS NOT NULL)"
            ).fetchone()
            left = rows_of(self._database, "renderings", _UNRENDERED) if self.renderings else 0
            rendered = rows_of(self._database, "renderings") - left if self.renderings else 0
            return Completeness(self._n_pages - missing, missing, failed, bool(self._meta("finished")), rendered, left)

    def close(self) -> None:
        """Write what is left, with checksums of all, and close the file. Idempotent."""
        try:
            with self._writing():
                self._begin()
                self._set_meta(**{SUMS: sums_of(self._database)})
                self._commit(patience=_PATIENCE)
        except sqlite3.ProgrammingError:  # closed already
            return
        finally:
            self._database.close()

    def _create(self, roots: Sequence[str], source: str) -> sqlite3.Connection:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)
            self._database = sqlite3.connect(temporary)
            with closing(self._database):
                self._database.execute(f"PRAGMA application_id = {APPLICATION}")
                self._database.execute(f"PRAGMA user_version = {FORMAT}")
                self._database.executescript(SCHEMA)
                if self.renderings:
                    self._database.executescript(RENDERINGS)
                    self._database.execute(f"PRAGMA user_version = {WITH_RENDERINGS}")
                self._database.execute("INSERT INTO texts VALUES (0, '')")
                self._n_pages = 0
                self._set_meta(roots=roots, source=source, bodies=self.bodies)
                for root in roots:
                    self._number(root)
                self._database.commit()
            temporary.rename(self.path)
            return sqlite3.connect(self.path)
        except (OSError, sqlite3.Error) as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise RecordingError(f"{self.path} cannot be written: {error}") from error

    def _begin(self) -> None:
        """Start a transaction if there is none; changes by other processes since the last one are read."""
        if self._database.in_transaction:
            return
        self._database.execute("BEGIN IMMEDIATE")
        version = self._database.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._version = version
            self._database.execute("DELETE FROM meta WHERE name = ?", (SUMS,))  # those of the other process
            self._forget()

    def _commit(self, *, patience: float) -> None:
        """Commit. Without patience, a transaction stays open if a reader blocks the commit."""
        before = self._database.execute("PRAGMA busy_timeout").fetchone()[0]
        self._database.execute(f"PRAGMA busy_timeout = {1000 * patience:.0f}")
        try:
            self._database.commit()
        except sqlite3.OperationalError as error:
            if patience or "locked" not in str(error):
                raise
        finally:
            self._database.execute(f"PRAGMA busy_timeout = {before}")

    def _add(self, answer: Answer) -> None:
        page = self._number(answer.url)
        if page == _NOWHERE:
            return
        status, error = self._database.execute("SELECT status, error FROM pages WHERE id = ?", (page,)).fetchone()
        is_known = status is not None or error is not None
        if is_known and (answer.since is None or self._is_version(page, answer.since)):
            return
        headers = _clean(answer.headers)
        is_html = answer.status is not None and is_page(mime_of(headers), answer.body)
        content = Content([], "")
        if is_html:
            content = read_page(answer.url, headers, answer.body)
        size = len(answer.body) if answer.size is None else answer.size
        keep = self._keeps(answer, is_html=is_html)
        values = self._values(answer, headers, content, size=size, keep=keep)
        source = self._store(page, answer.since, values, is_known=is_known)
        if is_html and _is_success(answer):
            self._add_links(source, content.links, "version_links" if is_known else "links")
            if self.renderings and not is_known and _runs_scripts(headers, answer.body):
                self._rendering_of(page)

    def _keeps(self, answer: Answer, *, is_html: bool) -> bool:
        """Whether the body of an answer is stored: that of a page, a sitemap or a feed."""
        if not self.bodies or not _is_success(answer):
            return False
        return is_html or listing_of(beginning(answer.body)) in ("sitemap", "feed")

    def _store(self, page: int, since: float | None, values: dict[str, Any], *, is_known: bool) -> int:
        """Write an answer, as a version if the page has one already; return the number of its row."""
        if since is not None:
            self._keep_versions()
        if is_known:
            return self._database.execute(_INSERT, {**values, "page": page, "since": since}).lastrowid or 0
        self._database.execute(_UPDATE, {"page": page, **values})
        if since is not None:
            self._database.execute("INSERT INTO begins VALUES (?, ?)", (page, since))
        return page

    def _add_rendering(self, rendering: Rendering) -> None:
        page = self._number(rendering.url)
        if page == _NOWHERE:
            return
        number, is_open = self._rendering_of(page)
        if not is_open:
            return
        headers = _clean(rendering.headers)
        well = rendering.status is not None and 200 <= rendering.status < 300
        well = well and is_page(mime_of(headers), rendering.body)
        content = read_page(rendering.shown_at or rendering.url, headers, rendering.body) if well else Content([], "")
        values = self._values(rendering, headers, content, size=len(rendering.body), keep=self.bodies and well)
        took = {"requests": rendering.requests, "received": rendering.received}
        self._database.execute(_RENDERED, {"number": number, **values, **took})
        self._add_links(number, content.links, "rendering_links")
        self._database.executemany(
            "INSERT OR IGNORE INTO assets VALUES (?, ?, ?)",
            [(number, self._find_text(asset.url), asset.size) for asset in rendering.assets],
        )

    def _rendering_of(self, page: int) -> tuple[int, bool]:
        """Return the number of the rendering of a page, a new one if there is none, and whether it is new."""
        database = self._database
        row = database.execute(f"SELECT id, {_UNRENDERED} FROM renderings WHERE page = ?", (page,)).fetchone()  # noqa: S608
        if row is not None:
            return int(row[0]), bool(row[1])
        added = database.execute(
            "INSERT INTO renderings (id, page) SELECT coalesce(max(id) + 1, 0), ? FROM renderings", (page,)
        )
        return added.lastrowid or 0, True

    def _values(
        self, answer: Answer | Rendering, headers: Mapping[str, str], content: Content, *, size: int, keep: bool
    ) -> dict[str, Any]:
        """Return the columns that answers of all kinds have."""
        is_empty = not answer.body and size > 0  # its body was not downloaded
        return {
            "status": answer.status,
            "error": (answer.error or "failure: unknown") if answer.status is None else None,
            "mime": mime_of(headers),
            "size": min(size, _LARGEST),
            "seconds": answer.seconds,
            "redirect": self._redirect(answer, headers, content),
            "headers": self._find_text(json.dumps(headers, sort_keys=True, ensure_ascii=False) if headers else ""),
            "header_size": sum(len(name) + len(value) + 4 for name, value in headers.items()),  # ": ", end of line
            "digest": None if is_empty else blake2b(answer.body, digest_size=8).digest(),
            "body": zlib.compress(answer.body, 6) if keep else None,
        }

    def _keep_versions(self) -> None:
        """Create the tables of versions, which most recordings lack."""
        if self._has_versions:
            return
        for statement in VERSIONS.split(";\n"):  # executescript would commit
            self._database.execute(statement)
        if not self.renderings:
            self._database.execute(f"PRAGMA user_version = {WITH_VERSIONS}")

    @property
    def _has_versions(self) -> bool:
        return has_table(self._database, "versions")

    def _is_version(self, page: int, since: float) -> bool:
        """Whether a URL has an answer from that time on."""
        if not self._has_versions:
            return False
        row = self._database.execute(
            "SELECT EXISTS (SELECT 1 FROM begins WHERE page = ?1 AND since = ?2) OR "
            "EXISTS (SELECT 1 FROM versions WHERE page = ?1 AND since = ?2)",
            (page, since),
        ).fetchone()
        return bool(row[0])

    def _add_links(self, page: int, links: Sequence[Found], table: str) -> None:
        rows: dict[int, tuple[int, ...]] = {}
        for url, place in links:
            target = self._number(url)
            if target != _NOWHERE and target not in rows:
                texts = (self._text(place.tag_path), self._text(place.anchor), self._text(place.context))
                rows[target] = (page, len(rows), target, *texts)
        self._database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", rows.values())  # noqa: S608

    def _redirect(self, answer: Answer | Rendering, headers: Mapping[str, str], content: Content) -> int | None:
        leads = redirect_of(answer.url, answer.status, headers) or content.refresh
        page = self._number(leads) if leads else _NOWHERE
        return None if page == _NOWHERE else page

    def _number(self, url: str) -> int:
        """Return the number of a URL, a new one if it was never seen."""
        known = self._numbers.get(url)
        if known is None:
            known = self._numbers[url] = self._find_number(url) if self.in_scope(url) else _NOWHERE
        return known

    def _find_number(self, url: str) -> int:
        try:
            canonical = canonicalize_url(url)
        except ValueError:
            return _NOWHERE
        row = self._database.execute("SELECT id FROM pages WHERE canonical = ?", (canonical,)).fetchone()
        if row is not None:
            return int(row[0])
        spelled = safe_url_string(url).partition("#")[0]
        self._database.execute(
            "INSERT INTO pages (id, url, canonical) VALUES (?, ?, ?)", (self._n_pages, spelled, canonical)
        )
        self._n_pages += 1
        return self._n_pages - 1

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = self._find_text(text)
        return number

    def _find_text(self, text: str) -> int:
        row = self._database.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        return self._database.execute("INSERT INTO texts (text) VALUES (?)", (text,)).lastrowid or 0

    def _set_depths(self) -> None:
        rows = self._database.execute("SELECT coalesce(redirect, -1) FROM pages ORDER BY id").fetchall()
        starts, targets = self._all_links(len(rows))
        roots = [self._number(root) for root in self._meta("roots")]
        found = depths(roots, starts, targets, np.array(rows, np.int64).reshape(-1))
        self._database.executemany(  # a row is written with its body, so only if something changes
            "UPDATE pages SET depth = nullif(?1, -1) WHERE id = ?2 AND depth IS NOT nullif(?1, -1)",
            zip(found.tolist(), range(len(found)), strict=True),
        )

    def _all_links(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return where the links of each page start and lead, including those of all its versions."""
        starts, (targets,) = read_links(self._database, n)
        sources, leads = [np.repeat(np.arange(n), np.diff(starts))], [targets]
        for table in ("versions", "renderings"):
            if has_table(self._database, table):
                rows = self._database.execute(f"SELECT page FROM {table} ORDER BY id").fetchall()  # noqa: S608 (constants)
                pages = np.array(rows, np.int64).reshape(-1)
                begins, (more,) = read_links(self._database, len(pages), n, table=f"{table[:-1]}_links")
                sources.append(np.repeat(pages, np.diff(begins)))
                leads.append(more)
        if len(leads) == 1:
            return starts, targets
        source = np.concatenate(sources)
        order = np.argsort(source, kind="stable")
        return np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))]), np.concatenate(leads)[order]

    def _count_pages(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM pages").fetchone()[0])

    def _forget(self) -> None:
        self._texts.clear()
        self._numbers.clear()
        self._n_pages = self._count_pages()

    def _meta(self, name: str) -> Any:
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _set_meta(self, **values: Any) -> None:
        self._database.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, json.dumps(value)) for name, value in values.items()]
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn disk errors of SQLite into one that says what to do, and undo unfinished changes."""
        try:
            yield
        except sqlite3.ProgrammingError:  # it was closed
            raise
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):  # the first error says more
                self._database.rollback()
                self._forget()
            if not isinstance(error, sqlite3.OperationalError):
                message = f"{self.path} is damaged or no recorded site: {error}; record it again"
            elif "readonly" in str(error):
                message = f"{self.path} cannot be written: {error}; copy it to where you may write"
            elif "locked" in str(error):
                message = f"{self.path} cannot be written: {error}; wait until the other process has finished"
            else:
                message = (
                    f"{self.path} cannot be written: {error}; what was recorded until {_SECONDS:.0f} seconds ago is "
                    "safe, and the same command resumes there"
                )
            raise RecordingError(message) from error


def _is_success(answer: Answer) -> bool:
    return answer.status is not None and 200 <= answer.status < 300


def _clean(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers as a database takes them."""
    return {name: value.encode(errors="replace").decode() for name, value in headers.items()}


def _runs_scripts(headers: Mapping[str, str], body: bytes) -> bool:
    try:
        return has_scripts(decode(body, headers)[0])
    except (LookupError, UnicodeError):  # it declares an encoding that is not one of text
        return False


class _Cache(OrderedDict[str, int]):
    """The numbers of the most recently used strings."""

    def __setitem__(self, text: str, number: int) -> None:
        if len(self) >= _CACHED:
            self.popitem(last=False)
        super().__setitem__(text, number)
