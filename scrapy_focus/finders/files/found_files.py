"""Read the list of files of a folder, for the page and the table.

The folder may be from an unknown source, and the list contains paths: no path outside the folder is ever returned.
"""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from scrapy_focus.finders.kit.records.crawls import about_by_crawl
from scrapy_focus.finders.kit.records.folder_names import FILES, MANIFEST
from scrapy_focus.finders.kit.records.lines import lines_of, number_in, share_in, text_in
from scrapy_focus.web.mime import FILE_TYPES, effective_mime, extension
from scrapy_focus.web.url_parts import parts_of, section_of

_BY_MIME = {mime: name for name, mimes in reversed(FILE_TYPES.items()) for mime in mimes}
_SURROGATE = re.compile("[\ud800-\udfff]")  # invalid in file names
_LONGEST_KIND = 40  # characters


class Listed(NamedTuple):
    """A file of the list."""

    url: str
    name: str
    kind: str  # extension or MIME type
    host: str
    section: str  # first part of the path of that page
    size: int  # bytes
    page: str  # URL of the page with the link
    anchor: str  # text of its link
    path: str  # of the file, relative to the folder, with slashes; "": unknown
    state: str  # in the last crawl: "new", "changed", "same", "gone" or "unseen"; "": unknown
    crawl: int  # that saw it last; 0: unknown
    at: str  # ISO 8601
    mime: str
    sha256: str
    cut: str = ""  # "yes" if it is known to be incomplete
    relevance: float | None = None  # to what the last crawl looked for, from 0 to 1; None: not judged by that
    words: str = ""  # those that spoke for it
    why: str = ""  # why its link was followed


def read_list(folder: Path, crawl: int = 0) -> list[Listed]:
    """Return the files of a folder in the order in which they were first found; linear in the lines of its list.

    ``crawl`` is the number of the last crawl, if known; by default, the last one with a line.

    Raises
    ------
    ConfigError
        If a line is malformed, except a last one that is being written.
    StorageError
        If it cannot be read.
    """
    found: dict[str, Listed] = {}
    places, abouts = _Places(folder), about_by_crawl(folder)
    about = abouts.get(crawl or max(abouts, default=0), "")
    for line in lines_of(folder / MANIFEST):
        url, mime, page = text_in(line, "url"), text_in(line, "mime"), text_in(line, "page")
        path, (host, place) = places.relative(text_in(line, "path")), parts_of(url)
        is_judged = abouts.get(number_in(line, "crawl"), "") == about
        found[url] = Listed(
            url=url, name=text_in(line, "name") or PurePosixPath(path).name or unquote(place).rpartition("/")[2],
            kind=_kind(mime, url, path), host=host, section=section_of(page or url), size=number_in(line, "size"),
            page=page, anchor=text_in(line, "anchor"), path=path, state=text_in(line, "state"),
            crawl=number_in(line, "crawl"), at=text_in(line, "at"), mime=mime, sha256=text_in(line, "sha256"),
            cut="yes" if line.get("cut") is True else "",
            relevance=share_in(line, "relevance") if is_judged else None,
            words=text_in(line, "words") if is_judged else "", why=text_in(line, "why"),
        )  # fmt: skip
    last = max([crawl, *(file.crawl for file in found.values())])
    return [
        file if file.crawl == last or file.state == "gone" else file._replace(state="unseen") for file in found.values()
    ]


class _Places:
    """Finds files in the folder; their paths in the list may be relative to the folder where a crawl was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._prefix: tuple[str, ...] | None = None  # the part of the last path that was before the folder

    def relative(self, named: str) -> str:
        """Return a path within the folder, ``""`` if the file does not exist there."""
        parts = PurePosixPath(named.replace("\\", "/")).parts
        if not parts or ".." in parts or "\0" in named or _SURROGATE.search(named):
            return ""
        if self._prefix is not None and parts[: len(self._prefix) + 1] == (*self._prefix, FILES):
            return "/".join(parts[len(self._prefix) :])
        for i, part in enumerate(parts):
            if part == FILES and self._is_there(parts[i:]):
                self._prefix = parts[:i]
                return "/".join(parts[i:])
        return ""

    def _is_there(self, parts: tuple[str, ...]) -> bool:
        try:
            return self.folder.joinpath(*parts).is_file()
        except (OSError, ValueError):
            return False


def _kind(mime: str, url: str, path: str) -> str:
    """Return the user's name for the type of a file: an extension if its MIME type has one."""
    name = _BY_MIME.get(effective_mime(mime, url)) if mime != "application/octet-stream" else None
    name = name or extension(path) or extension(url) or (mimetypes.guess_extension(mime) or "").removeprefix(".")
    return (name or mime or "unknown")[:_LONGEST_KIND]
