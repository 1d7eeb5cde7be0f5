"""The files of a folder, over all crawls that wrote to it: known URLs, and the state of each file.

The list (``manifest.jsonl``) is append-only: it has a line for each file and each crawl that saw it, and the last line
of a URL counts. A second URL with the same content is not a separate file, but the next crawl must know it; it is kept
in another list, which only crawls read.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scrapy_focus.finders.files.file_names import Names
from scrapy_focus.finders.kit.records.folder_names import FILES, MANIFEST
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines, share_in

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["new", "changed", "same", "gone"]


COPIES = ".focus/copies.jsonl"


_KINDS = {
    **dict.fromkeys(("url", "link", "sha256", "page", "path", "etag", "last_modified", "state", "words"), str),
    "size": int, "crawl": int,
}  # fmt: skip


class Known(NamedTuple):
    """The last line of a file."""

    url: str
    link: str  # the requested URL, which may have redirected to the URL
    mime: str
    size: int  # bytes
    sha256: str
    page: str  # URL of the page with the link
    anchor: str  # text of the link to it
    name: str  # from its server or URL
    path: str  # where it is stored, relative to the folder; "": nowhere, as it was not relevant enough
    etag: str
    last_modified: str
    state: State
    crawl: int  # that saw it last
    is_copy: bool  # whether another URL with the same content is the one in the list
    cut: bool = False  # whether it is known to be incomplete
    relevance: float | None = None  # to what its crawl looked for, from 0 to 1; None: it did not say
    words: str = ""  # those that spoke for it, separated by commas


class Verdict(NamedTuple):
    """How a crawl treats a file that it received."""

    state: State
    path: str  # of its content, stored or to be stored, relative to the folder
    is_stored: bool  # whether it is already stored
    is_noted: bool  # whether this crawl already has a line for it
    is_again: bool  # whether this crawl received the same content from another URL
    is_copy: bool  # whether it belongs to the copies, not to the list


class FileList:
    """The list of files of a folder, read once and added to.

    Parameters
    ----------
    out
        The folder.
    crawl
        The number of this crawl. Existing lines with this number are from an earlier run of it.

    Notes
    -----
    *Memory*: about a kilobyte per file.

    Raises
    ------
    ConfigError
        If a list cannot be read.
    """

    def __init__(self, out: Path, crawl: int) -> None:
        self.out = out
        self.crawl = crawl
        self.before: dict[str, Known] = {}  # by URL: the last line of an earlier crawl
        self.now: dict[str, Known] = {}  # by URL: the last line of this crawl
        self.n_known = 0  # files of earlier crawls, or their contents, that this one received
        self.to_send = 0  # requests needed for all files of earlier crawls that this one has not seen
        self._earlier: dict[str, str] = {}  # path of each content of earlier crawls
        self._seen: dict[str, tuple[str, str]] = {}  # URL and path of each content that this crawl received
        for path in (out / MANIFEST, out / COPIES):
            cut_line(path)
            for line in read_lines(path, **_KINDS):
                self._add(known_of(line, is_copy=path.name != MANIFEST))
        self._names = Names(path.removeprefix(f"{FILES}/") for path in self._paths())
        self.to_send = sum(map(_requests_for, self.to_check()))
        self._links = {known.link: url for url, known in self.before.items() if known.link != url}

    def find(self, url: str) -> Known | None:
        """Return the last line of an earlier crawl about a URL, or about its redirect target."""
        return self.before.get(url) or self.before.get(self._links.get(url, ""))

    def last(self, url: str) -> Known | None:
        """Return the last line of a URL in this crawl or an earlier one."""
        return self.now.get(url) or self.before.get(url)

    def is_listed(self, url: str) -> bool:
        """Whether a URL is that of a file that existed at its last request."""
        known = self.find(url)
        return known is not None and known.state != "gone"

    def to_check(self) -> list[Known]:
        """Return the files of earlier crawls that this one has not seen, the least recently seen first."""
        left = [known for url, known in self.before.items() if url not in self.now and known.state != "gone"]
        return sorted(left, key=lambda known: (known.is_copy, known.crawl))

    def where(self, path: str) -> Path:
        """Return the absolute path of a file from the path in its line."""
        return self.out / path

    def judge(self, url: str, name: str, sha256: str) -> Verdict:
        """Return how this crawl treats a content from a URL, and the path of the content."""
        before, (first, path) = self.before.get(url), self._seen.get(sha256, ("", self._earlier.get(sha256, "")))
        is_stored = bool(path) and self.where(path).is_file()
        is_again = bool(first) and first != url
        is_noted = url in self.now and self.now[url].sha256 == sha256
        state: State = "changed"
        if is_noted or url not in self.now:  # otherwise this crawl has another version of it
            state = self._state(before, sha256)
        is_copy = is_again
        if before is not None:
            is_copy = before.is_copy and before.sha256 == sha256
        return Verdict(
            state=state,
            path=path if is_stored or _is_inside(path) else self._give(url, name, sha256),
            is_stored=is_stored,
            is_noted=is_noted,
            is_again=is_again,
            is_copy=is_copy,
        )

    def _state(self, before: Known | None, sha256: str) -> State:
        """Return the state of a content whose URL had the line `before` after the last crawl."""
        if before is None or not before.path:
            return "same" if sha256 in self._earlier else "new"
        if before.sha256 == sha256:
            return "same"
        return "new" if before.is_copy else "changed"

    def note(self, line: dict[str, Any], *, is_copy: bool = False) -> None:
        """Add the line of a file that this crawl saw."""
        add_line(self.out / (COPIES if is_copy else MANIFEST), line)
        self._add(known_of(line, is_copy=is_copy))

    def counts(self) -> dict[str, int]:
        """Return the number of stored files in each state, including those not seen in this crawl (``"unseen"``)."""
        found = dict.fromkeys(("new", "changed", "same", "gone", "unseen"), 0)
        for known in {**self.before, **self.now}.values():
            if known.path and not known.is_copy:
                found[known.state if known.crawl == self.crawl or known.state == "gone" else "unseen"] += 1
        return found

    def _add(self, known: Known) -> None:
        if known.crawl < self.crawl:
            other = self.before.get(known.url)
            if other is None or other.crawl <= known.crawl:
                self.before[known.url] = known
            if known.state != "gone" and known.path:
                self._earlier.setdefault(known.sha256, known.path)
        else:
            if known.url in self.before and known.url not in self.now:
                self.to_send -= _requests_for(self.before[known.url])
            self.n_known += _is_known(known) - (known.url in self.now and _is_known(self.now[known.url]))
            self.now[known.url] = known
            if known.state != "gone" and known.path:
                self._seen.setdefault(known.sha256, (known.url, known.path))

    def _paths(self) -> Iterator[str]:
        yield from self._earlier.values()
        for known in self.now.values():
            yield known.path

    def _give(self, url: str, name: str, sha256: str) -> str:
        """Return a path for a content; a file without a line, left by a kill, is overwritten."""
        while True:
            path = f"{FILES}/{self._names.give(url, name)}"
            there = self.where(path)
            if not there.exists() or (there.is_file() and _sum(there) == sha256):
                return path


def known_of(line: dict[str, Any], *, is_copy: bool = False) -> Known:
    """Return the values of a line; earlier versions of this package did not write all fields."""
    url = str(line.get("url", ""))
    return Known(
        url=url, link=str(line.get("link") or url), mime=intern(str(line.get("mime", ""))),
        size=int(line.get("size") or 0), sha256=str(line.get("sha256", "")), page=intern(str(line.get("page", ""))),
        anchor=intern(str(line.get("anchor", ""))), name=str(line.get("name", "")),
        path=relative(str(line.get("path", ""))), etag=str(line.get("etag") or ""),
        last_modified=str(line.get("last_modified") or ""), state=line.get("state", "new"),
        crawl=int(line.get("crawl", 1)), is_copy=is_copy,
        cut=line.get("cut") is True, relevance=share_in(line, "relevance"), words=str(line.get("words") or ""),
    )  # fmt: skip


def read_files(out: Path) -> dict[str, Known]:
    """Return the list of a folder: the last line of each URL."""
    return {known.url: known for known in map(known_of, read_lines(out / MANIFEST, **_KINDS))}


def relative(path: str) -> str:
    """Return the path in a line relative to the folder; in earlier versions, it was relative to the working folder.

    Examples
    --------
    >>> relative("/home/me/found/files/ab12/prices.csv"), relative("files/example.org/top/prices.csv")
    ('files/ab12/prices.csv', 'files/example.org/top/prices.csv')
    """
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return "/".join(parts[-3:]) if parts[-3:-2] == (FILES,) else path


def _is_inside(path: str) -> bool:
    """Whether the path in a line is below the folder of files."""
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[0] == FILES and ".." not in parts


def _is_known(known: Known) -> bool:
    """Whether a line of this crawl is about a file that an earlier crawl found."""
    return bool(known.path) and not known.is_copy and known.state in ("same", "changed")


def _requests_for(known: Known) -> int:
    """Return the number of requests that fetching a file takes."""
    return 0 if known.state == "gone" else 1 + (known.link != known.url)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
