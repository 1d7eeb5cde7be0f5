"""Queues pages again to be rendered, stores their requests, and remembers the items that they already gave."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from scrapy import signals
from scrapy.http import HtmlResponse

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.engine.browser.found import NO_ADDON, install_commands
from scrapy_focus.engine.feature import Feature
from scrapy_focus.engine.inflight import unwrap
from scrapy_focus.engine.marks import GIVEN
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.features.rendering.given import Given
from scrapy_focus.web.shells import is_shell
from scrapy_focus.web.templates import template_of

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.browser.found import Found
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

_TEMPLATES = 1_000
_SAID = 5  # templates that seem to need a browser
_SHOWN = 10  # templates that were rendered


def begin_rendering(entry: Entry, request: Request) -> Given:
    """Prepare a request for rendering before it is handed out; return the items of the page's plain copy."""
    entry.is_direct = GIVEN not in request.meta
    entry.visited = not entry.is_direct
    request.meta["dont_cache"] = True  # or Scrapy's cache would answer with the plain page
    return Given.unpack(request.meta.pop(GIVEN, b""))


def take_back(entry: Entry, request: Request, given: Given) -> None:
    """Restore a request for rendering that is queued again as an object."""
    if not entry.is_direct:
        request.meta[GIVEN] = given.pack()


class Rendering(Feature):
    """Queues pages with scripts again for a browser, if the policy asks for it (``render``).

    Without a browser it looks for pages that scripts seem to fill, and logs at the end how to install one.

    Parameters
    ----------
    host
        The host of the crawl.
    """

    name: ClassVar[str] = "render"
    abilities: ClassVar[frozenset[str]] = frozenset({"render"})
    order: ClassVar[int] = 300

    def __init__(self, host: Host) -> None:
        self.host = host
        self.learns = False  # whether pages are rendered where it is worth it
        self.rendered: Counter[str] = Counter()  # pages rendered for that reason, by template
        self.shells: Shells | None = None  # only without a browser
        self.browser: Found = NO_ADDON  # set when the crawl begins
        self._given: dict[int, Given] = {}  # items of plain copies, by pick
        host.crawler.signals.connect(self._on_opened, signals.spider_opened)

    def given(self, entry: Entry) -> Given | None:
        """Return the items of the plain copy of a page, if it is or may be rendered."""
        return self._given.get(entry.pick.id)

    def hand_out(self, entry: Entry, request: Request) -> bool:
        if entry.pick.method == "RENDER":
            self._given[entry.pick.id] = begin_rendering(entry, request)
        elif self.learns and entry.pick.method == "GET" and _is_plain(request):
            entry.first = entry.first or request.copy()
            for each in (entry.first, request):
                each.meta.pop(GIVEN, None)  # of its last visit
            self._given[entry.pick.id] = Given()
        return False

    def give_back(self, entry: Entry) -> None:
        given = self._given.pop(entry.pick.id, None)
        if entry.pick.method == "RENDER" and given is not None and entry.request is not None:
            take_back(entry, unwrap(entry.request), given)

    def outcome(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        """Mark the outcome as scripted, and attach the request to store for rendering."""
        given = self._given.pop(entry.pick.id, None)
        if outcome.pick.method == "HEAD":
            return None
        if not self.learns:
            if self.shells is not None:
                self.shells.note(entry)
            return None
        if outcome.pick.method == "RENDER":
            if not outcome.error:
                self._note(entry)
            return None
        if outcome.pick.method != "GET" or outcome.error or given is None:
            return None
        return self._may_be_rendered(entry, outcome, given)

    def _may_be_rendered(self, entry: Entry, outcome: Outcome, given: Given) -> Outcome | None:
        """Return the outcome of a page that may show more in a browser, with the request to store."""
        if entry.first is None or not entry.has_scripts:
            return None
        entry.first.meta[GIVEN] = given.pack()
        return outcome._replace(scripted=True, payload=self.host.requests.pack(entry.pick.key, entry.first))

    def _note(self, entry: Entry) -> None:
        """Count a rendered page."""
        response, template = entry.response, template_of(entry.pick.url)
        if template and isinstance(response, HtmlResponse) and can_be_read(response):
            self.rendered[template] += 1

    def close(self) -> None:
        if self.shells is not None:
            self.shells.say()
        for template, n in self.rendered.most_common(_SHOWN):
            logger.info("Pages like %s: %s rendered", brief(template), f"{n:,}")
        if len(self.rendered) > _SHOWN:
            logger.info("Pages of %s more templates were rendered", f"{len(self.rendered) - _SHOWN:,}")

    def _on_opened(self) -> None:
        self.host.guard(self.name, None, self._open)

    def _open(self) -> None:
        """Look for a browser, once all middlewares exist."""
        mode = self.host.config.render
        middlewares = self.host.crawler.engine.downloader.middleware.middlewares
        self.browser = next((each.browser for each in middlewares if getattr(each, "renders", False)), NO_ADDON)
        if mode == "never":
            needs = install_commands(self.host.crawler.settings)
            self._look_for_shells(f'set FOCUS_RENDER = "learn", which needs {needs}')
            return
        if not self.browser:
            logger.info("Pages are not rendered: %s", self.browser.reason)
            self._look_for_shells(self.browser.advice)
            return
        if mode == "always":
            logger.info("All pages are rendered, by %s", self.browser.what)
            return
        logger.info("Pages with scripts are rendered where it is worth it, by %s", self.browser.what)
        self.learns = True

    def _look_for_shells(self, advice: str) -> None:
        """Look for pages that scripts fill, without a browser; log at the end how to install one."""
        self.shells = Shells(self.host)
        self.host.closing.advice = advice


class Shells:
    """Pages that scripts seem to fill, in a crawl without a browser.

    Parameters
    ----------
    host
        The host of the crawl.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.of: Counter[str] = Counter()  # pages by template; at most 1,000

    def note(self, entry: Entry) -> None:
        """Check the page of a finished pick."""
        response = entry.response
        if entry.label() != "ok" or not entry.has_scripts or not isinstance(response, HtmlResponse):
            return
        if not can_be_read(response) or not is_shell(response.selector.root, response.url):
            return
        self.host.count("page/shell")
        template = template_of(entry.pick.url)
        if template and (template in self.of or len(self.of) < _TEMPLATES):
            self.of[template] += 1

    def say(self) -> None:
        """Log which parts of the site seem to need a browser."""
        if self.of:
            named = ", ".join(f"{brief(template)} ({n:,})" for template, n in self.of.most_common(_SAID))
            logger.info("Scripts seem to fill these pages, which may show more in a browser: %s", named)


def _is_plain(request: Request) -> bool:
    """Whether the spider does not say how a request is fetched."""
    return request.method == "GET" and not request.body and "playwright" not in request.meta
