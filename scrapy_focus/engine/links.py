"""Turns the requests of a spider into links, and finds their place on the page."""

from __future__ import annotations

import itertools
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from scrapy.http import HtmlResponse
from scrapy.spiders import CrawlSpider
from scrapy.utils.request import RequestFingerprinter
from scrapy.utils.response import get_base_url

from scrapy_focus.core.types import Link, State
from scrapy_focus.engine.marks import GIVEN, LINK, MADE, RENDERED, VISIT, WHY
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.engine.requests import Unsendable
from scrapy_focus.engine.slots import slot_name
from scrapy_focus.frontiers.keys import KeySet
from scrapy_focus.web.html import Place, end_of_path, locating
from scrapy_focus.web.patterns import made_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.priorities import Priorities
    from scrapy_focus.engine.requests import Requests

_STEPS = 50  # links of a page located between two pauses
_LONGEST_NAME = 100  # characters of a callback's name
_SAID = 1000  # characters of an anchor or context that a spider may set
_OF_PAGE = (GIVEN, MADE, RENDERED, VISIT, WHY)  # keys of meta that describe one page only
_ODD = 0x9E3779B97F4A7C15  # spreads keys over 63 bits


class Links:
    """Makes links of requests, with different keys for requests that have to be fetched separately.

    The key of a link is the fingerprint of its request. A request to be fetched although its fingerprint is known
    (``dont_filter``) gets another key. So the frontier knows the fingerprint of a request exactly if a dupefilter
    would. In crawls that revisit pages, each page is one link: the first request for it gets the fingerprint in any
    case, and a start request for a known page makes no link.

    Parameters
    ----------
    crawler
        The crawler, whose spider makes the requests.
    crawl
        The crawl, which knows the links found.
    counts
        Where to count.
    requests
        The requests of queued links.
    reads_page
        Whether the policy reads the place of a link on its page.
    priorities
        Separates priorities; ``None`` if they are not used.
    comes_back
        Whether pages are revisited.
    salt
        First of the numbers that separate requests with one fingerprint: a different one in each process of a crawl.
    """

    def __init__(
        self,
        crawler: Crawler,
        crawl: Crawl | Worker,
        counts: Counter[str],
        requests: Requests,
        *,
        reads_page: bool,
        priorities: Priorities | None = None,
        comes_back: bool = False,
        salt: int = 1,
    ) -> None:
        self.crawler = crawler
        self.crawl = crawl
        self.counts = counts
        self.requests = requests
        self.reads_page = reads_page
        self.priorities = priorities
        self.comes_back = comes_back
        self._coming: set[int] = set()  # keys of links not yet given to the policy, and of redirects in flight
        self._offered: Counter[int] = Counter()  # keys of links whose requests are kept until the policy has them
        self._salt = itertools.count(salt)
        self._started = KeySet()  # keys of start requests already checked

    def key(self, request: Request) -> int:
        """Return 63 bits that are equal for requests with the same fingerprint."""
        return key_of(request, self.crawler)

    def is_known(self, request: Request) -> bool:
        """Whether a request was already seen, or is about to be."""
        return self._is_taken(self.key(request))

    def is_coming(self, key: int) -> bool:
        """Whether a link is not given to the policy yet, or a redirect leads to it now."""
        return key in self._coming

    def is_stored_start(self, request: Request) -> bool:
        """Whether a request of ``start()`` belongs to an earlier run of this job.

        Such a request bypasses the dupefilter, so it would be sent in each run. Returns ``True`` once in a run, as a
        spider may request the same page repeatedly.
        """
        if not (request.dont_filter and request.meta.get("is_start_request")):
            return False
        key = self.key(request) if self.comes_back else _salted(self.key(request), 0)
        if not self._started.add(key) or key in self._coming:
            return False
        state = self._state(key)
        if state == State.WAITING:
            self.requests.adopt(key, request)
        return state != State.NEW and not self.requests.was_lost(key)

    def is_recalled(self, request: Request) -> bool:
        """Whether to send a known start request again: it could not be stored, and was lost."""
        key = self.key(request)
        if self._state(key) == State.WAITING:
            self.requests.adopt(key, request)
        return self.requests.was_lost(key)

    def claim(self, request: Request) -> int:
        """Return the key of a redirect, which counts as known from now on."""
        key = self.key(request)
        self._coming.add(key)
        return key

    def release(self, keys: Iterable[int]) -> None:
        """Forget redirects that were not sent, or that the frontier knows now."""
        self._coming.difference_update(keys)

    def make(self, request: Request, *, seen: bool, later: bool = False) -> Link:
        """Return the link of a request.

        With ``seen``, the dupefilter knows it; with ``later``, its request is packed later by :meth:`pack`.

        Raises
        ------
        Unsendable
            If another process may have to send it, and it cannot be stored.
        """
        key = first = self.key(request)
        if request.dont_filter and not self.comes_back:
            key = _salted(first, 0)
        if not seen:
            while self._is_taken(key):
                key = _salted(first, next(self._salt))
            self._coming.add(key)
        said = request.meta.pop(LINK, None) or {}
        for name in _OF_PAGE:  # about the linking page, if a spider copies its meta
            request.meta.pop(name, None)
        slot = slot_name(self.crawler.engine.downloader.get_slot_key(request))
        payload = b"" if later else self._payload(key, request, seen)
        return Link(
            url=request.url,
            key=key,
            host=slot if self.priorities is None else self.priorities.name(slot, request.priority),
            depth=depth if isinstance(depth := request.meta.get("depth"), int) else 0,
            anchor=str(said.get("anchor") or request.meta.get("link_text") or "")[:_SAID],
            tag_path=end_of_path(str(said.get("tag_path", ""))),
            context=str(said.get("context", ""))[:_SAID],
            payload=payload,
            callback=_reader_of(request, cast("Spider", self.crawler.spider)),
        )

    def pack(self, link: Link, request: Request, *, seen: bool) -> Link:
        """Return a link with its request as it is now: later changes of the request have no effect.

        Raises
        ------
        Unsendable
            As :meth:`make`.
        """
        return link._replace(payload=self._payload(link.key, request, seen))

    def _payload(self, key: int, request: Request, seen: bool) -> bytes:
        kept = len(self.requests)
        try:
            payload = self.requests.pack(key, request, again=seen)
        except Unsendable:
            self._coming.discard(key)
            raise
        self.counts["link/kept"] += len(self.requests) - kept
        if not payload:
            self._offered[key] += 1
        return payload

    def concluded(self, entry: Entry) -> list[str]:
        """Note that the policy has the links of a page, and that all keys of the page are known; see :meth:`placed`."""
        self.release(entry.also)
        if self._state(entry.pick.key) not in (State.WAITING, State.FLYING):
            self.requests.forget(entry.pick.key)
        return self.placed(entry.links)

    def placed(self, links: Iterable[Link]) -> list[str]:
        """Note that the policy has these links; forget the requests of those that are not queued.

        Returns the URLs of those that the policy left unchanged: it receives them as new links next time.
        """
        links = list(links)
        keys = [link.key for link in links]
        self._coming.difference_update(keys)
        untouched = []
        for link, state in zip(links, self.crawl.knows(keys), strict=True):
            if state == State.NEW:
                untouched.append(link.url)
            if link.payload:
                continue
            self._offered[link.key] -= 1
            if self._offered[link.key] <= 0:  # or another page has the link, and the policy may want it then
                del self._offered[link.key]
                if state not in (State.WAITING, State.FLYING):
                    self.requests.forget(link.key)
        return untouched

    def forget_given_up(self) -> None:
        """Forget the requests of links that were given up; linear in the requests kept in memory."""
        keys = [key for key in self.requests.kept() if key not in self._offered]
        for key, state in zip(keys, self.crawl.knows(keys), strict=True):
            if state == State.GIVEN_UP:
                self.requests.forget(key)

    def locating(self, entry: Entry) -> Iterator[None]:
        """Give the links of a page their place on it, if the policy reads that.

        What the user set for a link (``focus_link``) takes precedence over the page. A link that is not on the page, as
        code built its URL, gets a place made of its URL and callback. Yields now and then.
        """
        response = entry.response
        if not entry.links or not self.reads_page or response is None:
            return
        urls = [link.url for link in entry.links]
        places: dict[str, Place] = {}
        if isinstance(response, HtmlResponse) and can_be_read(response):
            root, base = response.selector.root, get_base_url(response)
            steps = locating(root, base, urls, places, encoding=response.encoding)
            for _ in itertools.islice(steps, _STEPS - 1, None, _STEPS):
                yield
        self.counts["link/unattributed"] += sum(url not in places for url in urls)
        entry.links = [
            _stand(link, places.get(link.url) or Place(made_place(link.url, link.callback))) for link in entry.links
        ]

    def _is_taken(self, key: int) -> bool:
        return key in self._coming or self._state(key) != State.NEW

    def _state(self, key: int) -> State:
        [state] = self.crawl.knows([key])
        return state


def key_of(request: Request, crawler: Crawler) -> int:
    """Return the fingerprint of a request in 63 bits.

    The bits of Scrapy's fingerprint are equally distributed. A project's fingerprinter may return bytes with the same
    prefix for all requests, so those are hashed.
    """
    fingerprinter = crawler.request_fingerprinter
    found = fingerprinter.fingerprint(request)
    if type(fingerprinter) is not RequestFingerprinter:
        found = blake2b(found, digest_size=8).digest()
    return int.from_bytes(found[:8], "big") >> 1


def _salted(key: int, salt: int) -> int:
    """Return another key for a request whose key is taken; the same in each process."""
    return (key + (salt + 1) * _ODD) & ((1 << 63) - 1)


def _reader_of(request: Request, spider: Spider) -> str:
    """Return the name of a request's callback, ``""`` for ``parse``; for the request of a rule, the rule's."""
    callback: Any = request.callback
    rule = request.meta.get("rule")
    if isinstance(spider, CrawlSpider) and isinstance(rule, int) and 0 <= rule < len(spider.rules):
        callback = spider.rules[rule].callback
    name = callback if isinstance(callback, str) else getattr(callback, "__name__", "")
    return "" if name == "parse" or not isinstance(name, str) else name[:_LONGEST_NAME]


def _stand(link: Link, place: Place) -> Link:
    return link._replace(
        tag_path=link.tag_path or place.tag_path,
        anchor=link.anchor or place.anchor,
        context=link.context or place.context,
    )
