"""Pages that may wait again to be rendered: which, how their requests are kept, and which items they gave already."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.engine.given import Given
from scrapy_focus.engine.marks import GIVEN
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.web.apis.templates import template_of
from scrapy_focus.web.shells import is_shell

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.requests import Requests

logger = printable_logger(__name__)

_TEMPLATES = 1_000
_TOLD = 5  # templates


def begin_rendering(entry: Entry, request: Request) -> None:
    """A request is about to be handed out for a page that is to be rendered."""
    entry.is_direct = GIVEN not in request.meta
    entry.visited = not entry.is_direct
    entry.given = Given.unpack(request.meta.pop(GIVEN, b""))
    request.meta["dont_cache"] = True  # or Scrapy's cache would answer with the plain page


def take_back(entry: Entry, request: Request) -> None:
    """A request waits again, as the object that it is, for a page that is to be rendered."""
    if entry.given is not None and not entry.is_direct:
        request.meta[GIVEN] = entry.given.pack()


class Renderings:
    """Lets pages with scripts be looked at again in a browser, where the policy asks for that (``Policy.render``).

    Parameters
    ----------
    host
        The scheduler.
    requests
        How the requests of links that wait are kept.
    """

    def __init__(self, host: Host, requests: Requests) -> None:
        self.host = host
        self.requests = requests

    def begin(self, entry: Entry, request: Request) -> None:
        """A request is about to be handed out for a pick."""
        if entry.pick.method == "GET" and _is_plain(request):
            entry.first = entry.first or request.copy()
            for each in (entry.first, request):
                each.meta.pop(GIVEN, None)  # of its last visit
            entry.given = Given()

    def concluded(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Say of an outcome that its page has scripts, and how its request waits if it is to be rendered."""
        if outcome.pick.method == "RENDER":
            if not outcome.error and self.host.apis is not None and entry.answers is not None:
                self.host.apis.rendered(entry, entry.answers)
            return outcome
        first, given = entry.first, entry.given
        if first is None or given is None or outcome.pick.method != "GET" or outcome.error or not entry.has_scripts:
            return outcome
        first.meta[GIVEN] = given.pack()
        return outcome._replace(scripted=True, payload=self.requests.pack(entry.pick.key, first))


class Shells:
    """Pages that scripts seem to fill, in a crawl without a browser.

    Parameters
    ----------
    host
        The scheduler, which counts them.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.of: Counter[str] = Counter()  # pages, by template; of 1,000

    def note(self, entry: Entry) -> None:
        """A pick comes back."""
        response = entry.response
        if entry.label() != "ok" or not entry.has_scripts or not isinstance(response, HtmlResponse):
            return
        if not can_be_read(response) or not is_shell(response.selector.root, response.url):
            return
        self.host.count("page/shell")
        template = template_of(entry.pick.url)
        if template and (template in self.of or len(self.of) < _TEMPLATES):
            self.of[template] += 1

    def tell(self) -> None:
        """Say in the log which parts of the site seem to need a browser."""
        if self.of:
            named = ", ".join(f"{brief(template)} ({n:,})" for template, n in self.of.most_common(_TOLD))
            logger.info("Scripts seem to fill these pages, which may show more in a browser: %s", named)


def _is_plain(request: Request) -> bool:
    """Whether the spider leaves it open how a request is fetched."""
    return request.method == "GET" and not request.body and "playwright" not in request.meta
