"""Imports a site from a folder, or any other that answers without a network.

Two goals conflict. A folder should be answered as by a stock web server: files of unknown type are
``application/octet-stream``, links to missing files are dead. And the answers should be the same on every machine:
the system's MIME tables are not read, symbolic links that leave the folder lead nowhere.

A mirror by ``wget --mirror`` has pages without a suffix and with queries in their names; :class:`MirrorSite` answers
as the original site did.
"""

from __future__ import annotations

import re
from itertools import islice
from mimetypes import MimeTypes
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.lab.recordings.html import gunzip, redirect_of
from scrapy_focus.lab.recordings.importers.base import identity, record
from scrapy_focus.lab.recordings.writer import Answer
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.web.mime import FILE_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy_focus.lab.recordings.format import Completeness
    from scrapy_focus.lab.recordings.writer import SiteWriter
    from scrapy_focus.lab.sites.server import Site

logger = printable_logger(__name__)

OCTET_STREAM = "application/octet-stream"
# mimetypes' own table differs between Python versions: the types that make a file a target are pinned, as in a stock
# nginx, which knows no source files.
_TYPES = {
    **MimeTypes().types_map[True],
    **{f".{suffix}": types[0] for suffix, types in FILE_TYPES.items()},
    ".c": OCTET_STREAM,
    ".h": OCTET_STREAM,
    ".ipynb": OCTET_STREAM,
    ".js": "application/javascript",
    ".py": OCTET_STREAM,
    ".tgz": "application/gzip",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".yml": "application/yaml",
}
_HOPS = 5  # redirects before the first page
_HEAD = 1024  # bytes searched to distinguish a page from other files
_BEGINS_PAGE = re.compile(  # a comment ends in one place only, or comments could be put together in many ways
    rb"(?:\xef\xbb\xbf)?(?:\s|<\?xml[^>]*>|<!--(?:[^-]|-(?!->))*-->)*<(?:!doctype\s+html|html)\b", re.I
)


class FolderSite:
    """Answers as a web server over a folder would, using only files inside it.

    Parameters
    ----------
    root
        Folder to serve.
    tree
        Folder that symbolic links may not leave; it contains `root`. A link out of it, including absolute ones, is
        answered with 404.
    types
        MIME types by suffix (with the dot, lower case) that differ from those of a stock server.
    """

    def __init__(self, root: Path, *, tree: Path | None = None, types: Mapping[str, str] | None = None) -> None:
        self.root = root.resolve()
        self.tree = (root if tree is None else tree).resolve()
        self.types = {**_TYPES, **(types or {})}

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path` (percent-encoded, with or without a query).

        Folders are answered by their ``index.html``, after a redirect to the path with a slash at the end.
        ``NAME.html.gz`` is a page, served decompressed under its own name and as ``NAME.html``.
        """
        location, _, query = path.partition("?")
        parts = [part for part in unquote(location, errors="surrogateescape").split("/") if part]
        if ".." in parts or any("\0" in part for part in parts):
            return _not_found()
        file = Path(self.root, *parts)
        if self._has(file) and file.is_dir():
            if not location.endswith("/"):
                return _redirect_to_folder(location, query)
            file /= "index.html"
        elif location.endswith("/"):
            return _not_found()
        return self._page_of(file)

    def _page_of(self, file: Path) -> Page:
        if not self._has(file) and file.suffix == ".html":
            file = file.with_name(file.name + ".gz")
        if not self._has(file) or not file.is_file():
            return _not_found()
        if file.name.endswith(".html.gz"):
            return Page.of(gunzip(file.read_bytes()))
        mime = self.types.get(file.suffix.lower(), OCTET_STREAM)
        return Page(status=200, mime=mime, size=file.stat().st_size, make=file.read_bytes)

    def _has(self, file: Path) -> bool:
        """Return whether `file` exists inside the tree, its symbolic links resolved."""
        try:
            return file.exists() and file.resolve().is_relative_to(self.tree)
        except (OSError, RuntimeError, ValueError):  # a name that is too long, or circular links
            return False


def _redirect_to_folder(location: str, query: str) -> Page:
    target = f"/{location.strip('/')}/"
    if query:
        target += f"?{query}"
    return Page.of(b"", status=301, location=target)


class MirrorSite(FolderSite):
    """Answers as the site that ``wget --mirror`` copied into a folder, with ``--adjust-extension`` or without.

    It differs from a folder in three ways. ``/list?page=2`` is answered by the file of that name, if it exists; any
    page also by a file with ``.html`` after its name; and a file with an unknown suffix is a page if it begins like
    one.
    """

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path` (percent-encoded, with or without a query)."""
        for known in _names_of(path):
            page = super().fetch(known)
            if page.status == 200 or (page.location and super().fetch(page.location).status == 200):
                break
        else:
            return super().fetch(path)
        if page.mime == OCTET_STREAM and _BEGINS_PAGE.match(page.body[:_HEAD]):
            return Page.of(page.body)
        return page


def _names_of(path: str) -> list[str]:
    """Return the file names that mirroring programs use for a path, the most likely first."""
    location, _, query = path.partition("?")
    name = f"{location}index.html" if location.endswith("/") else location
    names = []
    if query:
        for mark in ("%3F", "@"):  # @: in wget's file names on Windows
            spelled = f"{name}{mark}{_in_name(query)}"
            names += [spelled, f"{spelled}.html"]
    return [*names, path, f"{location}.html"]


class SiteImporter:
    """An :class:`~scrapy_focus.lab.recordings.importers.base.Importer` for a site that answers without a network.

    The site is crawled breadth-first; links to other hosts or ports are not requested.

    Parameters
    ----------
    site
        Provides the answers: a :class:`FolderSite`, or a synthetic one.
    root
        URL of the first page by default.
    source
        The source of the recording, in a few words; the `repr` of the site by default.
    """

    def __init__(self, site: Site, *, root: str = "http://localhost/", source: str = "") -> None:
        self.site = site
        self.root = root
        self.source = source or repr(site)

    def find_root(self, named: str | None) -> str:
        """Return the URL of the first page."""
        return named or self.root

    def answers(self, recording: SiteWriter) -> Iterator[Answer]:
        """Yield the answers of the site to what is missing in a recording, until nothing is."""
        here = {_origin(root) for root in recording.roots}
        for url in recording.missing():
            if _origin(url) in here:
                yield _answer(self.site, url)


class FolderImporter(SiteImporter):
    """Imports a site from a folder, as a web server would answer it, or as ``wget --mirror`` made it.

    It starts at ``http://localhost/index.html`` by default: the path is relative to the folder, and the host counts
    for absolute links.

    Parameters
    ----------
    folder
        Where its files are; symbolic links that leave it are dead.
    types
        MIME types by suffix (with the dot, lower case) that differ from those of a stock server.

    Raises
    ------
    RecordingError
        If there is no such folder.
    """

    def __init__(self, folder: str | Path, *, types: Mapping[str, str] | None = None) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise RecordingError(f"there is no folder {folder}: name the one with the files of the site")
        super().__init__(
            MirrorSite(self.folder, types=types), root="http://localhost/index.html", source=f"the folder {folder}"
        )

    def find_root(self, named: str | None) -> str:
        """Return the URL of the first page.

        Raises
        ------
        RecordingError
            If the folder has no HTML page there; the message names some that it has.
        """
        root = super().find_root(named)
        _check_root(self.site, self.folder, root)
        return root


def record_site(
    site: Site,
    path: str | Path,
    *,
    root: str,
    bodies: bool = False,
    limit: int | None = None,
    source: str = "",
    progress: Callable[[int], None] | None = None,
) -> Completeness:
    """Crawl a site that answers without a network, breadth-first, and record its answers.

    The same as :func:`~scrapy_focus.lab.recordings.importers.base.record` with a :class:`SiteImporter`.

    Raises
    ------
    RecordingError
        If the recording cannot be written.
    """
    importer = SiteImporter(site, source=source)
    return record(importer, path, root=root, bodies=bodies, limit=limit, progress=progress)


def _check_root(site: Site, folder: Path, root: str) -> None:
    url = root
    for _ in range(_HOPS):
        answer = _answer(site, url)
        url = redirect_of(url, answer.status, answer.headers)
        if not url:
            break
    if answer.status == 200 and "html" in answer.headers["Content-Type"]:
        return
    there = _pages_in(folder)
    urls = ", ".join(dict.fromkeys(urljoin(root, f"/{quote(name)}") for name in there[:3]))
    advice = f"start at one that exists, as root={urls}" if urls else "and no other HTML page either"
    if urls and (above := there[0].rpartition("/index.html")[0]):
        advice += f"; or name the folder {folder / above}"
    raise RecordingError(f"{folder} has no HTML page {_path(root)}, for the root {root}: {advice}")


def _pages_in(folder: Path) -> list[str]:
    """Return the names of HTML pages in a folder, 1,000 at most; those near the top and the indexes come first."""
    pages = (file for name in ("index.html", "index.html.gz", "*.html", "*.htm") for file in folder.rglob(name))
    there = [file.relative_to(folder).as_posix() for file in islice(pages, 1000)]
    there.sort(key=lambda name: (name.count("/"), "index.html" not in name, name))
    return there


def _answer(site: Site, url: str) -> Answer:
    """Return the response of a server over the site."""
    try:
        page = site.fetch(_path(url))
        body = page.body
    except Exception:
        logger.exception("The site failed on %s", url)
        body = b"500 Internal Server Error\n"
        page = Page.of(body, status=500, mime="text/plain")
    headers = {"Content-Type": page.mime, "Content-Length": str(page.size)}
    if page.location is not None:
        headers["Location"] = page.location
    return Answer(url=url, status=page.status, headers=headers, body=body)


def _in_name(query: str) -> str:
    """Return a query as in the file names of ``wget``, percent-encoded once more."""
    return quote(unquote(query, errors="surrogateescape").replace("/", "%2F"), errors="surrogateescape")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(identity(url))
    return parts.scheme, parts.netloc


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _not_found() -> Page:
    return Page.of(b"404 Not Found", status=404, mime="text/plain")
