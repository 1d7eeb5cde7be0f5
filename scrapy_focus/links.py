"""Turns the requests of a spider into links, and says where they stand on their page."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_base_url

from scrapy_focus.config import LINK
from scrapy_focus.core.html import Place, locate
from scrapy_focus.core.types import Link, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.requests import Requests

_ODD = 0x9E3779B97F4A7C15  # spreads keys over 63 bits


class Links:
    """Makes links of requests, with keys that tell apart what is to be fetched apart.

    The key of a link is the fingerprint of its request. A request that the dupefilter lets pass though its fingerprint is
    known (``dont_filter``) is to be fetched again, and gets another key.
    """

    def __init__(self, crawler: Crawler, crawl: Crawl, requests: Requests) -> None:
        self.crawler = crawler
        self.crawl = crawl
        self.requests = requests
        self._unplaced: set[int] = set()  # keys of links that are not with the policy yet
        self._salt = itertools.count(1)

    def make(self, request: Request, *, seen: bool) -> Link:
        """Return the link of a request; ``seen`` says that the dupefilter knows it."""
        key = first = int.from_bytes(self.crawler.request_fingerprinter.fingerprint(request)[:8], "big") >> 1
        if not seen:
            while key in self._unplaced or self.crawl.frontier.states([key])[0] != State.NEW:
                key = (first + next(self._salt) * _ODD) & ((1 << 63) - 1)
            self._unplaced.add(key)
        said = request.meta.pop(LINK, None) or {}
        kept = len(self.requests)
        payload = self.requests.pack(key, request)
        self.crawl.counts["link/kept"] += len(self.requests) - kept
        return Link(
            url=request.url,
            key=key,
            host=self.crawler.engine.downloader.get_slot_key(request),
            depth=depth if isinstance(depth := request.meta.get("depth"), int) else 0,
            anchor=said.get("anchor") or request.meta.get("link_text") or "",
            tag_path=said.get("tag_path", ""),
            context=said.get("context", ""),
            payload=payload,
        )

    def placed(self, links: Iterable[Link]) -> None:
        """These links are with the policy now; forget the requests of those that it gave up."""
        links = list(links)
        self._unplaced.difference_update(link.key for link in links)
        kept = [link.key for link in links if not link.payload]
        for key, state in zip(kept, self.crawl.frontier.states(kept), strict=True):
            if state not in (State.WAITING, State.FLYING):
                self.requests.forget(key)

    def locate(self, links: list[Link], response: Response | None) -> list[Link]:
        """Return links with where they stand on their page, if the policy reads that and it is HTML.

        What the user said of a link (``focus_link``) goes before what the page says.
        """
        if not links or not self.crawl.policy.reads_page or not isinstance(response, HtmlResponse):
            return links
        root, urls = response.selector.root, [link.url for link in links]
        places = locate(root, get_base_url(response), urls, encoding=response.encoding)
        self.crawl.counts["link/unattributed"] += sum(url not in places for url in urls)
        return [_stand(link, places.get(link.url, Place())) for link in links]


def _stand(link: Link, place: Place) -> Link:
    return link._replace(
        tag_path=link.tag_path or place.tag_path,
        anchor=link.anchor or place.anchor,
        context=link.context or place.context,
    )
