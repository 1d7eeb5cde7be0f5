"""The importer protocol: an importer makes a recording from a copy of a site, without requests to the site.

An archive does not say where a crawl started, and a recording must. :class:`Archive` takes the first page with a
successful answer, or the first URL that redirected to it. A source that can answer any URL, like a folder of files,
is an importer without being an archive: it answers what is missing in the recording until nothing is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from w3lib.url import canonicalize_url, safe_url_string

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import source_of
from scrapy_focus.lab.recordings.html import mime_of, redirect_of
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from scrapy_focus.lab.recordings.format import Completeness


class Importer(Protocol):
    """Provides the answers of a site.

    Any class of this shape can be named on the command line, ``focus record SITE.sqlite --importer
    my.module.MyImporter SOURCE ...``, which calls it with the sources, ``MyImporter(*sources)``. For an unusable
    source it raises :class:`~scrapy_focus.core.errors.RecordingError`, there or in its methods; the command shows the
    message in one line.
    """

    @property
    def source(self) -> str:
        """What it imports, in a few words; the recording stores it as its source."""
        ...

    def find_root(self, named: str | None) -> str:
        """Return the URL of the first page. Not called if a recording is resumed with the root named.

        Parameters
        ----------
        named
            URL that the user named; ``None`` to find one.

        Raises
        ------
        RecordingError
            If there is no such page.
        """
        ...

    def answers(self, recording: SiteWriter) -> Iterable[Answer]:
        """Yield the answers of the URLs of the site, one :class:`~scrapy_focus.lab.recordings.writer.Answer` each.

        The first answer of a URL counts; other sites are skipped. An exception leaves a readable recording that is
        marked as unfinished.

        Parameters
        ----------
        recording
            The recording. Each answer is written before the next is requested: ``recording.missing()`` yields the
            linked URLs without an answer so far.
        """
        ...


class Archive(ABC):
    """An importer of answers in some order: a subclass yields them, and this class does the rest.

    The answers are read twice: once up to the first page, once to record them.
    """

    #: What it imports, in a few words.
    source: str

    @abstractmethod
    def read(self) -> Iterable[Answer]:
        """Yield the answers to GET requests in the order of arrival."""

    def find_root(self, named: str | None) -> str:
        """Return the URL of the first page, see :meth:`Importer.find_root`."""
        first = FirstPage(named)
        for answer in _checked(self, self.read()):
            first.see(answer.url, answer.status, answer.headers)
            if first.is_known:
                break
        return first.root(self.source)

    def answers(self, recording: SiteWriter) -> Iterable[Answer]:
        """Yield all answers, see :meth:`Importer.answers`."""
        return self.read()


class FirstPage:
    """Looks at answers in the order of arrival, and finds where their crawl started.

    Parameters
    ----------
    named
        URL that has to be among them, if the user named one.
    """

    def __init__(self, named: str | None = None) -> None:
        self.has_named = False
        self.page: str | None = None
        self._named = named
        self._identity = None if named is None else identity(named)
        self._came_from: dict[str, str] = {}

    @property
    def is_known(self) -> bool:
        """Whether no later answer can change the result."""
        return self.page is not None and (self._named is None or self.has_named)

    def see(self, url: str, status: int | None, headers: Mapping[str, str]) -> None:
        """Look at one answer."""
        self.has_named = self.has_named or identity(url) == self._identity
        if self.page is not None or status is None:
            return
        if leads := redirect_of(url, status, headers):
            self._came_from.setdefault(identity(leads), url)
        elif status == 200 and "html" in mime_of(headers) and not url.endswith("/robots.txt"):
            while (before := self._came_from.pop(identity(url), None)) is not None:
                url = before
            self.page = url

    def root(self, source: str, advice: object = "give root=...") -> str:
        """Return the URL that the user named, or else the first page.

        Raises
        ------
        RecordingError
            If the answers contain no such page; the message names `source` and gives `advice`.
        """
        if self._named is None:
            if self.page is None:
                raise RecordingError(f"{source} has no HTML page that was answered with status 200: {advice}")
            return self.page
        if not self.has_named:
            raise RecordingError(f"{source} has no answer of {self._named}; its first page is {self.page}")
        return self._named


def record(
    importer: Importer,
    path: str | Path,
    *,
    root: str | None = None,
    bodies: bool = False,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Completeness:
    """Write the answers of an importer to a recording. An existing one with the same root is resumed.

    Parameters
    ----------
    importer
        What answers.
    path
        SQLite file to write.
    root
        URL of the first page; without one, the importer finds it. Other hosts are skipped.
    bodies
        Keep the bodies of pages.
    limit
        URLs to record at most, for endless sites; the recording is then left unfinished.
    progress
        Called with the number of answers after each of them.

    Raises
    ------
    RecordingError
        If the importer has no such page or yields anything but answers, or if the recording cannot be written.
    """
    if root is None or not Path(path).exists():
        root = importer.find_root(root)
    with SiteWriter(path, roots=[root], bodies=bodies, source=importer.source) as writer:
        for answer in _checked(importer, importer.answers(writer)):
            if writer.added == limit:
                return writer.completeness()
            writer.add(answer)
            if progress is not None:
                progress(writer.added)
        return writer.finish()


def other_source(path: Path, source: str) -> str:
    """Return what a recording was made from, ``""`` if that is this source, with paths spelled in any way."""
    held = source_of(path)
    pairs = zip_longest(held.split(), source.split(), fillvalue="")
    is_other = any(one != other and Path(one).resolve() != Path(other).resolve() for one, other in pairs)
    return held if is_other else ""


def _checked(importer: Importer, answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers of an importer, and raise ``RecordingError`` at the first other value."""
    for answer in answers:
        if not isinstance(answer, Answer):
            raise RecordingError(
                f"{type(importer).__name__} yielded {type(answer).__name__}, {str(answer)[:80]!r}; yield an Answer of "
                "scrapy_focus.lab.recordings.writer for each URL"
            )
        yield answer


def merge_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name; repeated ones are joined by commas, except those where the last one counts."""
    merged: dict[str, str] = {}
    for spelled, value in pairs:
        name = spelled.strip().title()
        single = name in ("Content-Type", "Location") or name not in merged
        merged[name] = value if single else f"{merged[name]}, {value}"
    return merged


def identity(url: str) -> str:
    """Return the canonical form of a URL; an invalid one unchanged."""
    try:
        return canonicalize_url(safe_url_string(url))
    except ValueError:
        return url
