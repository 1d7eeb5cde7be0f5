"""A crawl with little patience: for scenarios whose fault is that nothing ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

SECONDS = 2


class Impatient:
    """Waits no longer than this for paths such as ``/x/1.html`` and for robots.txt; as usual for others."""

    def process_request(self, request: Request) -> None:
        if re.match(r"http://[^/]+/(x/|robots.txt$)", request.url):
            request.meta["download_timeout"] = SECONDS
