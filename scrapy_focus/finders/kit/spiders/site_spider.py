"""Base class of spiders that crawl some sites from their root pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.exceptions import UsageError

from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import brief, reason_of
from scrapy_focus.engine.failure import in_one_line
from scrapy_focus.finders.kit.arguments.seeds import host_of
from scrapy_focus.finders.kit.spiders.following_spider import be_quiet
from scrapy_focus.finders.kit.spiders.private_headers import add_headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.web.access import Access

_HOSTS = ".focus/hosts.json"


class SiteSpider(scrapy.Spider):
    """Starts at some URLs, and stays on their hosts and on those that these URLs redirect to.

    Parameters
    ----------
    starts
        The URLs.
    stays
        Whether it stays there; otherwise, only settings limit where it goes.
    """

    asked: FinderArguments

    def __init__(self, starts: Starts, *, stays: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.roots = self.start_urls = starts.urls
        self.stays = stays
        self.allowed_domains = [*starts.hosts] if stays else []
        self.moved: dict[str, list[str]] = {}  # hosts that each root redirected to
        self._starts = {scrapy.Request(url).url for url in self.roots}
        self._hosts: Path | None = None  # the file that records them

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        with in_one_line():
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.request_scheduled, signals.request_scheduled)  # before Scrapy refuses it
            spider.set_up(crawler)
            add_headers(crawler.settings)
        be_quiet()
        return spider

    @property
    def access(self) -> Access:
        """What the crawl sends to some hosts alone."""
        return self.asked.access

    def set_up(self, crawler: Crawler) -> None:
        """Apply the arguments, and check that the output can be written."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.roots:
            yield scrapy.Request(url)

    def follow_roots(self, out: Path) -> None:
        """Allow the hosts that a root redirected to in an earlier run, and record further ones in the folder."""
        if not self.stays:
            return
        self._hosts = out / _HOSTS
        if self._hosts.exists():
            self.moved = _read_hosts(self._hosts)
            self.allowed_domains += [host for url in self._starts for host in self.moved.get(url, ())]

    def request_scheduled(self, request: scrapy.Request) -> None:
        """Follow a root to the host that it redirects to; the handler of Scrapy's signal of this name."""
        redirected = request.meta.get("redirect_urls")
        if not (self.stays and redirected and redirected[0] in self._starts):
            return
        host = host_of(request.url).removeprefix("www.")
        if not host or any(f".{host}".endswith(f".{domain}") for domain in self.allowed_domains):
            return
        self.moved.setdefault(redirected[0], []).append(host)
        self.allowed_domains.append(host)
        if self._hosts is not None:
            self._hosts.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._hosts, json.dumps(self.moved).encode())
        self.logger.warning("%s redirects to %s: that host is crawled, too", brief(redirected[0]), brief(request.url))


def _read_hosts(path: Path) -> dict[str, list[str]]:
    """Return the hosts that each root redirected to; ``UsageError`` if the file is malformed."""
    try:
        moved: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read ({reason_of(error)}); remove it, or name another folder") from error
    sound = isinstance(moved, dict) and all(
        isinstance(hosts, list) and all(isinstance(host, str) for host in hosts) for hosts in moved.values()
    )
    if not sound:
        raise UsageError(f"{path} does not contain lists of hosts by URL; remove it, or name another folder")
    return dict(moved)
