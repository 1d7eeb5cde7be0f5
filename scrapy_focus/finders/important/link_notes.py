"""Record which pages of a crawl link to which, as the crawl itself sees it."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_focus.core.abilities import Knows
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.feeds import flush_feeds
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.links import key_of
from scrapy_focus.finders.important.link_book import LinkBook

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.finders.important.link_book import Came

logger = printable_logger(__name__)

_PAGES = 100  # pages being read whose link texts are remembered
_URLS = 20_000  # whose keys are remembered


class LinkNotes:
    """Writes a :class:`~scrapy_focus.finders.important.link_book.LinkBook` while a crawl runs.

    The links of a page are those that the policy receives: new and known ones, except those that the page asks robots
    not to follow; and the number of links to other sites. So ranks are computed from the policy's input. A failed write
    is logged in one line, and does not stop the crawl.

    Parameters
    ----------
    crawler
        Of the crawl, before it begins.
    out
        The output folder.
    resumes
        Whether the run resumes an interrupted crawl.
    """

    def __init__(self, crawler: Crawler, *, out: Path, resumes: bool) -> None:
        self.crawler = crawler
        self._book: LinkBook | None = LinkBook(out, resumes=resumes)
        self._texts: OrderedDict[str, dict[int, str]] = OrderedDict()  # of the links of pages being read, by key
        self._keys: OrderedDict[str, int] = OrderedDict()  # of the last requested URLs
        crawler.signals.connect(self._open, signals.spider_opened)

    def link(self, page: str, request: Request, text: str) -> None:
        """Record a link of a page being read; of several with the same URL, the first text that is not empty counts."""
        texts = self._texts.setdefault(page, {})
        if len(self._texts) > _PAGES:
            self._texts.popitem(last=False)
        key = self._key(request)
        texts[key] = texts.get(key) or text

    def _key(self, request: Request) -> int:
        key = self._keys.get(request.url)
        if key is None:
            key = self._keys[request.url] = key_of(request, self.crawler)
            if len(self._keys) > _URLS:
                self._keys.popitem(last=False)
        else:
            self._keys.move_to_end(request.url)
        return key

    def _open(self, spider: Spider) -> None:
        host = host_of(self.crawler)
        if host is None or not issubclass(host.policy, Knows):
            logger.warning(
                "Links to known pages are not recorded, so ranks will be wrong: %s does not receive "
                "them", "the scheduler" if host is None else host.policy.__qualname__,
            )  # fmt: skip
        if host is not None:
            host.features.on("outcome", self._note)

    def _note(self, entry: Entry, outcome: Outcome) -> None:
        where = outcome.pick.url if entry.response is None else entry.response.url
        texts = self._texts.pop(where, {})
        if self._book is None or outcome.changed is False:
            return
        links = {key: ("", texts.get(key, "")) for key in entry.known}
        for link in reversed(entry.links):  # of several with a key, the first is requested
            links[link.key] = link.url, link.anchor
        if not self.crawler.settings["JOBDIR"]:
            flush_feeds(self.crawler)  # the line of a page comes before its links, as with a job
        try:
            self._book.note(
                outcome.pick.key, outcome.pick.url, came=_came(outcome), at="" if where == outcome.pick.url else where,
                links=links, outside=outcome.outside, also=outcome.also,
            )  # fmt: skip
        except OSError as error:
            self._book = None
            logger.error("Stopped recording links, so ranks will be wrong: %s", reason_of(error))


def _came(outcome: Outcome) -> Came:
    if outcome.is_html and outcome.status is not None and 200 <= outcome.status < 300:
        return "page"
    return "moved" if outcome.error == "redirect_seen" else "nothing"
