"""Ties each link to the page that it was found on, whatever its headers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from scrapy_focus.config import PICK
from scrapy_focus.inflight import entry_id

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
