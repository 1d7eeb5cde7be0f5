"""What happens to links between the spider and the scheduler: known ones go no further, new ones keep their page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from scrapy_focus.config import PICK
from scrapy_focus.inflight import entry_id, scheduler_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class LinkMiddleware(BaseSpiderMiddleware):
    """Puts the id of a page's pick into every request that its callback gives.

    The scheduler then knows all links of a page as one batch, and reads where they stand on it. Without this middleware
    it goes by the Referer header, which can be switched off, and which pages with the same URL share. It is outermost,
    so it sees the requests that are left when all other middlewares are done.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        pick_id = None if response is None else entry_id(response)
        if pick_id is None:
            request.meta.pop(PICK, None)
        else:
            request.meta[PICK] = pick_id
        return request


class KnownLinkMiddleware(BaseSpiderMiddleware):
    """Drops links whose URL the scheduler has had, before they cross all other layers to the dupefilter.

    On pages with a hundred links nearly all are known, and half of the time of a crawl goes into carrying them there. It
    does what the dupefilter would, so it stands back where that could differ: from requests with ``dont_filter``, a
    body or another method than GET, with a dupefilter or fingerprinter that is not Scrapy's own, and where the policy
    wants known links. It is innermost but for ``MetaCopyDetectionMiddleware``.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        scheduler = scheduler_of(self.crawler)
        if scheduler is None or request.dont_filter or request.method != "GET" or request.body:
            return request
        if hash(request.url) in scheduler.known_urls:
            scheduler.crawl.counts["link/known"] += 1
            return None
        return request
