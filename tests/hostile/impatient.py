"""A crawl's patience with what is hostile: short, where the fault of a scenario is that nothing ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

SECONDS = 2


class Impatient:
    """Waits for paths such as ``/x/1.html`` and for robots.txt no longer than this; for others as long as ever."""

    def process_request(self, request: Request) -> None:
        if re.match(r"http://[^/]+/(x/|robots.txt$)", request.url):
            request.meta["download_timeout"] = SECONDS
