"""A site whose pages move and fail, and a spider that uses most features of Scrapy, for the tests of kills.

``python -m scrapy runspider killed.py -a root=... -a out=...`` runs the spider alone; see also :mod:`killer`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

from mocksite import MockSite, Seen
from scrapy import Request, Spider

from scrapy_focus.core.files import write_atomically
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES, StatisticsPortal
from scrapy_focus.policies.bases import Bandit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mocksite import Answer
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from scrapy_focus import Link

CONCURRENT = 8


class Asked(NamedTuple):
    """What a request asks for."""

    method: str
    path: str  # with the query
    body: bytes = b""


def number(path: str) -> int:
    """Return the number that selects the peculiarities of a path, the same for the site and its spider."""
    return crc32(path.encode())


def goal_of(path: str) -> str:
    """Return where a path leads in the end: ``/moved/1/moved/1/here`` to ``/here``."""
    while path.startswith("/moved/"):
        path = path[len("/moved/1") :]
    return path


class KilledSite(MockSite):
    """The bundled portal behind a server that moves pages, fails now and then, and takes its time; all runs are equal.

    One page in seven leads, over two redirects, to a page without other links to it, which links to another one. From
    one in seven two redirects lead to a page that is also linked. One in eight answers 503 the first time, one in forty
    the first two times: counted for all clients together. One in twelve takes 0.1 seconds longer. ``POST /search``
    answers with two pages that are linked nowhere else.
    """

    def __init__(self, *, english: bool = False, latency: float = 0.01) -> None:
        super().__init__(latency=latency)
        self.english = english  # whether nothing leads to the other two thirds
        self.portal = StatisticsPortal(pages=200, seed=3, endless=False)
        self.answered: list[tuple[Asked, int]] = []  # with the status
        self._linked = [
            path for path in self.portal.html_paths() if path != "/" and not (english and _is_foreign(path))
        ]
        self._asked: Counter[Asked] = Counter()
        self._now = threading.local()

    def begin(self, seen: Seen) -> None:
        self._now.asked = Asked(seen.method, seen.path, seen.body)
        super().begin(seen)
        if number(seen.path) % 12 == 5:
            time.sleep(0.1)

    def answer(self, path: str) -> Answer:
        asked, answer = self._now.asked, self._page(path, self._now.asked)
        with self._lock:
            self._asked[asked] += 1
            if answer[0] < 300 and self._asked[asked] <= failures(path):
                answer = 503, {"Content-Type": "text/plain"}, b"later"
            self.answered.append((asked, answer[0]))
        return answer

    @property
    def asks(self) -> list[Asked]:
        """The requests in order, except robots.txt and forbidden URLs."""
        # Scrapy 2.19.0 passes most of the requests that wait for robots.txt, which it fetches again in each run
        return [Asked(seen.method, seen.path, seen.body) for seen in self.log if not _is_special(seen.path)]

    def leads_to(self, path: str) -> Iterator[str]:
        """Yield a path and what it redirects to."""
        while path:
            yield path
            path = self._page(path, Asked("GET", path))[1].get("Location", "")

    @cached_property
    def ways(self) -> Counter[str]:
        """The number of links to each path, including redirects: the limit of HEADs, which follow redirects."""
        pages = [self._page(path, Asked("GET", path))[2] for path in self._linked]
        links = {href.decode() for page in pages for href in re.findall(rb' href="(/[^"#]*)"', page)}
        return Counter(path for link in links for path in self.leads_to(link))

    def _page(self, path: str, asked: Asked) -> Answer:
        kind = path.partition("?")[0].split("/")[1]
        if kind == "moved":
            return 302, {"Location": path[len("/moved/1") :]}, b""
        if kind == "extra":
            return 200, {"Content-Type": "text/plain"}, f"more of {path}".encode()
        if kind == "search":
            n = number(asked.body.decode())
            return _html(f'<a href="/found/{n}">1</a><a href="/found/{n}?more">2</a>')
        if kind in ("found", "below"):
            return _html("an end")
        if "/private/" in path:
            return 200, {"Content-Type": "text/plain"}, b"an end"
        if kind == "only":
            return _html(f'<a href="/below/{number(path)}">below</a>')
        page = self.portal.fetch(path)
        headers = {"Content-Type": page.mime}
        if page.location is not None:
            headers["Location"] = page.location
        body = page.body
        if page.status == 200 and page.mime == "text/html":
            if self.english:
                body = re.sub(rb' href="/(fr|de)(?=[/?"])', rb' title="/\1', body)
            body = body.replace(b"</body>", self._also(path).encode() + b"</body>")
        return page.status, headers, body

    def _also(self, path: str) -> str:
        n = number(path)
        match n % 7:
            case 0:
                return f'<ul class="moved"><li><a href="/moved/1/moved/1/only/{n}">there</a></ul>'
            case 1:
                to = self._linked[n % len(self._linked)]
                return f'<p class="moved"><a href="/moved/1{to}">one</a> <a href="/moved/2{to}">two</a></p>'
        return ""


def _is_foreign(path: str) -> bool:
    return path.startswith(("/fr", "/de"))


def _is_special(path: str) -> bool:
    return path == "/robots.txt" or "/private/" in path


def failures(path: str) -> int:
    """Return how often a path answers 503 before it answers well."""
    n = number(path)
    if path.startswith(("/extra/", "/robots.txt")):
        return 0
    return 2 if n % 40 == 7 else int(n % 8 == 7)


def _html(body: str) -> Answer:
    return 200, {"Content-Type": "text/html"}, f"<html><body>{body}</body></html>".encode()


class Killed(Spider):
    """Follows every link with one of several callbacks, and checks whether each request arrived as it was sent."""

    name = "killed"
    custom_settings = {
        "CONCURRENT_REQUESTS": CONCURRENT,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,
        "ITEM_PIPELINES": {"killed.Written": 100},
        "LOG_LEVEL": "INFO",
        "LOGSTATS_INTERVAL": 0,
        "REMOTE_CONTROL_ENABLED": False,
        "RETRY_TIMES": 3,
        "ROBOTSTXT_OBEY": True,
        "TELNETCONSOLE_ENABLED": False,
        "FOCUS_PROGRESS": "off",
    }

    def __init__(self, root: str, out: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.out = Path(out)
        self.start_urls = [root + "/", root + "/index.html"]
        self.more_seeds = [root + "/archive", root + "/glossary"]

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        for url in self.more_seeds:
            await asyncio.sleep(0.02)
            yield Request(url, self.parse_slowly, cb_kwargs={"asked": path_of(url), "deep": [path_of(url)]})

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from self.items_of(response)
        yield from self.links_of(response)
        if has_more(response):
            yield response.follow(more_of(response), self.parse_more)

    async def parse_slowly(self, response: Response, asked: str, deep: list[str]) -> AsyncIterator[Any]:
        first = response.meta.get("redirect_urls", [response.url])[0]
        if asked != path_of(first) or deep != [asked]:
            yield {"id": f"damaged {asked} {deep} {response.url}"}
        await asyncio.sleep(0.01 * (number(asked) % 4))
        for each in self.items_of(response):
            await asyncio.sleep(0.002)
            yield each
        for each in self.parse_rest(response):
            yield each

    async def parse_and_download(self, response: Response) -> AsyncIterator[Any]:
        for each in self.links_of(response):
            yield each
        if has_more(response):
            more = await self.crawler.engine.download_async(Request(response.urljoin(more_of(response))))
            for each in self.parse_more(more):
                yield each
        for each in self.items_of(response):
            yield each
        trail = response.meta["trail"]
        if trail[1] != {"number": number(trail[0])}:
            yield {"id": f"damaged {trail} {response.url}"}

    def parse_rest(self, response: Response) -> Iterator[Any]:
        yield from self.links_of(response)
        if has_more(response):
            yield response.follow(more_of(response), self.parse_more)

    def parse_more(self, response: Response) -> Iterator[Any]:
        if response.text == f"more of {path_of(response.url)}":
            yield {"id": path_of(response.url)}

    def parse_search(self, response: Response, word: str) -> Iterator[Any]:
        if response.request.body.decode() == word and response.request.method == "POST":
            yield {"id": f"search {word}"}
        yield from self.links_of(response)

    def gone(self, failure: Failure) -> Iterator[Any]:
        response = getattr(failure.value, "response", None)
        if response is not None and response.status != 200:  # 200: of a type that is blocked
            yield {"id": f"gone {path_of(response.url)}"}

    def closed(self, reason: str) -> None:
        stats = {**self.crawler.stats.get_stats(), "finish_reason": reason}
        write_atomically(self.out / "end", json.dumps(stats, default=str).encode())

    def items_of(self, response: Response) -> Iterator[Any]:
        """Yield an item for a target, and for a third of the pages."""
        path = path_of(response.url)
        mime = response.headers.get("Content-Type", b"").decode()
        if mime in TARGET_MIMES or (mime == "text/html" and number(path) % 3 == 0):
            yield {"id": path}

    def links_of(self, response: Response) -> Iterator[Request]:
        """Yield the links of a page, with callbacks by their final targets."""
        if not response.headers.get("Content-Type", b"").startswith(b"text/html"):
            return
        page = number(path_of(response.url))
        if page % 7 == 2:
            word = f"q={page}"
            yield Request(
                response.urljoin("/search"), self.parse_search, method="POST", body=word, cb_kwargs={"word": word}
            )
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href)
            if urlsplit(url).netloc != urlsplit(self.start_urls[0]).netloc or re.search(r"/calendar/\d", url):
                continue
            path = path_of(url)
            match number(goal_of(path)) % 4:
                case 0:
                    yield Request(url, cb_kwargs={"unused": 1.5})
                case 1:
                    yield Request(url, self.parse_slowly, cb_kwargs={"asked": path, "deep": [path]})
                case 2:
                    yield Request(url, self.parse_and_download, meta={"trail": [path, {"number": number(path)}]})
                case _:
                    yield Request(url, errback=self.gone, headers={"X-Asked": path})


class Written:
    """Appends items to a file, one line each, which a kill finds whole or not begun."""

    def __init__(self, crawler: Crawler) -> None:
        self.file = os.open(crawler.spider.out / "items", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Written:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        os.write(self.file, json.dumps(item).encode() + b"\n")
        return item


class Hashed(Bandit):
    """A bandit whose arms are hashes of tag paths, so that its statistics can be recomputed from a log."""

    def __init__(self, *, arms: int = 12) -> None:
        self.arms = arms

    def arm(self, link: Link) -> int:
        return number(link.tag_path) % self.arms


def path_of(url: str) -> str:
    """Return the path of a URL, with its query."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def has_more(response: Response) -> bool:
    """Whether another request belongs to a page."""
    return has_more_at(path_of(response.url)) and response.headers.get("Content-Type") == b"text/html"


def has_more_at(path: str) -> bool:
    """Whether another request belongs to a page, if there is one."""
    return number(path) % 6 == 1


def more_of(response: Response) -> str:
    """Return where that leads."""
    return more_at(path_of(response.url))


def more_at(path: str) -> str:
    """Return the path of the other request of a page."""
    return f"/extra/{number(path)}"
