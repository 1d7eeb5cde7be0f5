"""What a crawl has to remember of its scope: start URLs, pages counted for each host, and URLs that were ruled out."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING
from zlib import crc32

from scrapy_focus.features.scope.rules import Rules
from scrapy_focus.frontiers.keys import KeySet
from scrapy_focus.jobs.journal import Journal, read_journal
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.features.scope.rules import Reason
    from scrapy_focus.jobs.journal import Record

SCOPE = "scope"  # in the folder of a job


class ScopeRecord:
    """Remembers facts, in a job also after a kill at any instant.

    It takes 8 bytes for each page that is counted and for each URL that was ruled out, and some 40 on disk.

    Parameters
    ----------
    path
        The file, ``None`` without a job.

    Raises
    ------
    StorageError
        If the file cannot be read or written; raised by all methods that remember something.
    """

    def __init__(self, path: Path | None) -> None:
        self.starts: list[str] = []
        self.rules: Rules | None = None  # of the last run
        self.n_ruled_out: Counter[Reason] = Counter()
        self._pages: Counter[str] = Counter()  # by host
        self._counted = KeySet()  # keys of links that are counted, for a host
        self._ruled_out = KeySet()  # keys of URLs
        self._journal: Journal | None = None
        if path is not None:
            whole = 0
            for record, whole in read_journal(path) if path.exists() else ():  # noqa: B007 (the end of the last one)
                self._read(record)
            self._journal = Journal(path, keep=whole)

    def begin(self, rules: Rules) -> None:
        """Remember the rules of a run."""
        if rules != self.rules:
            self._write(("rules", asdict(rules)))

    def add_start(self, url: str) -> None:
        """Remember a start URL."""
        self._write(("start", url))

    def rule_out(self, reason: Reason, url: str) -> bool:
        """Remember that a URL is out of scope; return whether that is new."""
        bare = url.partition("#")[0].encode(errors="surrogatepass")
        key = int.from_bytes(blake2b(bare, digest_size=8).digest(), "big") >> 1
        if key in self._ruled_out:
            return False
        self._write(("out", reason, key))
        return True

    def count(self, url: str, key: int, most: float) -> bool:
        """Count a page for the host of its URL, once for each link and host; ``False`` if the host has `most` pages.

        ``key`` is that of the link.
        """
        host = _host_of(url)
        if (mixed := _mixed(host, key)) in self._counted:
            return True
        if self._pages[host] >= most:
            return False
        self._write(("page", host, mixed))
        return True

    def is_full(self, url: str, key: int, most: int) -> bool:
        """Whether :meth:`count` would return ``False``."""
        host = _host_of(url)
        return self._pages[host] >= most and _mixed(host, key) not in self._counted

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _write(self, record: Record) -> None:
        if self._journal is not None:
            self._journal.append(record)
        self._read(record)

    def _read(self, record: Record) -> None:
        match record:
            case ("rules", dict(values)):
                self.rules = Rules(**values)
            case ("start", str(url)):
                self.starts.append(url)
            case ("out", reason, int(key)):
                if self._ruled_out.add(key):
                    self.n_ruled_out[reason] += 1
            case ("page", str(host), int(key)):
                if self._counted.add(key):
                    self._pages[host] += 1


def _host_of(url: str) -> str:
    return parts_of(url)[0].removeprefix("www.")


def _mixed(host: str, key: int) -> int:
    """Return the key of a link for a host: it may redirect to another one."""
    return key ^ crc32(host.encode(errors="surrogatepass"))
