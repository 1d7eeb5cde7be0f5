"""The files of a folder, over all crawls that wrote to it: what is known of a URL, and what a crawl makes of it.

The list (``manifest.jsonl``) is only added to: a line for each file and crawl in which it was seen, and the last line
of a URL counts. A second URL with the same content is no file of its own, but has to be known in the next crawl; it
stands in a list beside it, which nobody reads but the crawls.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scrapy_focus.finders.files.file_names import Names
from scrapy_focus.finders.kit.records.folder_names import FILES, MANIFEST
from scrapy_focus.finders.kit.records.lines import add_line, cut_line, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["new", "changed", "same", "gone"]


COPIES = ".focus/copies.jsonl"


_KINDS = {
    **dict.fromkeys(("url", "link", "sha256", "page", "path", "etag", "last_modified", "state"), str), "size": int,
    "crawl": int,
}  # fmt: skip


class Known(NamedTuple):
    """The last line of a file."""

    url: str
    link: str  # what was asked for, which may have redirected to the URL
    mime: str
    size: int  # bytes
    sha256: str
    page: str  # URL of the page on which it was found
    anchor: str  # text of the link to it
    name: str  # as its server or URL calls it
    path: str  # where it is stored, relative to the folder
    etag: str
    last_modified: str
    state: State
    crawl: int  # in which it was seen last
    is_copy: bool  # whether another URL has the same content, and is the one in the list
    cut: bool = False  # whether it is known not to be all of it


class Verdict(NamedTuple):
    """What a crawl makes of a file that it got."""

    state: State
    path: str  # where its content is, or is to be stored, relative to the folder
    is_stored: bool  # whether it is there
    is_noted: bool  # whether this crawl has a line of it already
    is_again: bool  # whether this crawl got the same content from another URL
    is_copy: bool  # whether it belongs to the copies, and not to the list


class FileList:
    """The list of files of a folder, read once and added to.

    Parameters
    ----------
    out
        The folder.
    crawl
        The number of this crawl. Lines of it that are there already come from an earlier run of it.

    Notes
    -----
    *Memory*: about a kilobyte a file.

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
        self.n_known = 0  # files of earlier crawls, or their contents, that this one got
        self.to_send = 0  # requests that it takes to ask for all files of earlier crawls that this one did not see
        self._earlier: dict[str, str] = {}  # where each content of earlier crawls is
        self._seen: dict[str, tuple[str, str]] = {}  # URL of each content that this crawl got, and where it is
        for path in (out / MANIFEST, out / COPIES):
            cut_line(path)
            for line in read_lines(path, **_KINDS):
                self._add(known_of(line, is_copy=path.name != MANIFEST))
        self._names = Names(path.removeprefix(f"{FILES}/") for path in self._paths())
        self.to_send = sum(map(_requests_for, self.to_check()))
        self._links = {known.link: url for url, known in self.before.items() if known.link != url}

    def find(self, url: str) -> Known | None:
        """Return what earlier crawls know of a URL, or of what it redirected to."""
        return self.before.get(url) or self.before.get(self._links.get(url, ""))

    def last(self, url: str) -> Known | None:
        """Return the last line of a URL, of this crawl or an earlier one."""
        return self.now.get(url) or self.before.get(url)

    def is_listed(self, url: str) -> bool:
        """Whether a URL is that of a file that was there when it was asked for last."""
        known = self.find(url)
        return known is not None and known.state != "gone"

    def to_check(self) -> list[Known]:
        """Return the files of earlier crawls that this one did not see, those first that were seen longest ago."""
        left = [known for url, known in self.before.items() if url not in self.now and known.state != "gone"]
        return sorted(left, key=lambda known: (known.is_copy, known.crawl))

    def where(self, path: str) -> Path:
        """Return where a file is whose line has this path."""
        return self.out / path

    def judge(self, url: str, name: str, sha256: str) -> Verdict:
        """Return what this crawl makes of a content from a URL, and where it is, or is to be stored."""
        before, (first, path) = self.before.get(url), self._seen.get(sha256, ("", self._earlier.get(sha256, "")))
        is_stored = bool(path) and self.where(path).is_file()
        is_again = bool(first) and first != url
        is_noted = url in self.now and self.now[url].sha256 == sha256
        state: State = "changed"
        if is_noted or url not in self.now:  # else this crawl has another version of it
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
        """Return the state of a content whose URL had what `before` says after the last crawl."""
        if before is None:
            return "same" if sha256 in self._earlier else "new"
        if before.sha256 == sha256:
            return "same"
        return "new" if before.is_copy else "changed"

    def note(self, line: dict[str, Any], *, is_copy: bool = False) -> None:
        """Add the line of a file that this crawl saw."""
        add_line(self.out / (COPIES if is_copy else MANIFEST), line)
        self._add(known_of(line, is_copy=is_copy))

    def counts(self) -> dict[str, int]:
        """Return how many files of the list are in each state, and were not seen in this crawl (``"unseen"``)."""
        found = dict.fromkeys(("new", "changed", "same", "gone", "unseen"), 0)
        for known in {**self.before, **self.now}.values():
            if not known.is_copy:
                found[known.state if known.crawl == self.crawl or known.state == "gone" else "unseen"] += 1
        return found

    def _add(self, known: Known) -> None:
        if known.crawl < self.crawl:
            other = self.before.get(known.url)
            if other is None or other.crawl <= known.crawl:
                self.before[known.url] = known
            if known.state != "gone":
                self._earlier.setdefault(known.sha256, known.path)
        else:
            if known.url in self.before and known.url not in self.now:
                self.to_send -= _requests_for(self.before[known.url])
            self.n_known += _is_known(known) - (known.url in self.now and _is_known(self.now[known.url]))
            self.now[known.url] = known
            if known.state != "gone":
                self._seen.setdefault(known.sha256, (known.url, known.path))

    def _paths(self) -> Iterator[str]:
        yield from self._earlier.values()
        for known in self.now.values():
            yield known.path

    def _give(self, url: str, name: str, sha256: str) -> str:
        """Return a path for a content; what a kill left there without a line is written again."""
        while True:
            path = f"{FILES}/{self._names.give(url, name)}"
            there = self.where(path)
            if not there.exists() or (there.is_file() and _sum(there) == sha256):
                return path


def known_of(line: dict[str, Any], *, is_copy: bool = False) -> Known:
    """Return what a line says; earlier versions of this package left out some of it."""
    url = str(line.get("url", ""))
    return Known(
        url=url, link=str(line.get("link") or url), mime=intern(str(line.get("mime", ""))),
        size=int(line.get("size") or 0), sha256=str(line.get("sha256", "")), page=intern(str(line.get("page", ""))),
        anchor=intern(str(line.get("anchor", ""))), name=str(line.get("name", "")),
        path=relative(str(line.get("path", ""))), etag=str(line.get("etag") or ""),
        last_modified=str(line.get("last_modified") or ""), state=line.get("state", "new"),
        crawl=int(line.get("crawl", 1)), is_copy=is_copy,
        cut=line.get("cut") is True,
    )  # fmt: skip


def read_files(out: Path) -> dict[str, Known]:
    """Return the list of a folder: the last line of each URL."""
    return {known.url: known for known in map(known_of, read_lines(out / MANIFEST, **_KINDS))}


def relative(path: str) -> str:
    """Return a path of a line relative to the folder: lines of earlier versions have it from where the crawl ran.

    Examples
    --------
    >>> relative("/home/me/found/files/ab12/prices.csv"), relative("files/example.org/top/prices.csv")
    ('files/ab12/prices.csv', 'files/example.org/top/prices.csv')
    """
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return "/".join(parts[-3:]) if parts[-3:-2] == (FILES,) else path


def _is_inside(path: str) -> bool:
    """Whether a path of a line is one below the folder of files."""
    parts = PurePosixPath(path).parts
    return len(parts) > 1 and parts[0] == FILES and ".." not in parts


def _is_known(known: Known) -> bool:
    """Whether a line of this crawl is of a file that an earlier crawl found."""
    return not known.is_copy and known.state in ("same", "changed")


def _requests_for(known: Known) -> int:
    """Return how many requests it takes to ask for a file."""
    return 0 if known.state == "gone" else 1 + (known.link != known.url)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
