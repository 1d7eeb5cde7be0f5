"""Reads pages from the APIs behind them, where renderings have taught how: a few small answers in place of a browser.

Rules that an earlier crawl learned may be about a site that has changed. So they are used for a template once a
rendering has shown what they predict; until then its pages are rendered as ever.

What comes of it is a page of its own: a list of the links that a rendering would show, which the spider reads as it
reads any page. Pages whose renderings gave items are never read like that, as only a browser makes what they are of.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.response import get_base_url

from scrapy_focus.core.policy import PolicyTable
from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.engine.inflight import BudgetExhausted
from scrapy_focus.engine.marks import FROM_API
from scrapy_focus.engine.pages import can_be_read, text_of
from scrapy_focus.features.rendering.keptrules import TEMPLATES, Kept
from scrapy_focus.web.apis.answers import Call, Unreadable, data_in_page, links_in, read_json
from scrapy_focus.web.apis.paging import rest_of_lists
from scrapy_focus.web.apis.rules import ApiRules
from scrapy_focus.web.apis.templates import spelled, template_of
from scrapy_focus.web.mime import BLOCKED_EXTENSIONS, extension

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from pathlib import Path

    from scrapy.http import Response

    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

#: The file of a job in which the rules are.
API_RULES = "apis.json"

_NEXT_PART = "focus_next_part"  # flag of pages that link to the next part of their list
_SAMPLE = 20  # pages of a template of which one is rendered still
_TRIES = 3  # renderings that show more than was predicted, after which the rules of an earlier crawl are forgotten
_CALLS = 8  # of a page
_SAID = 10  # templates that the log names at the end
_TOLD = 500  # links of a page that stand in its JSON alone
_CARRIES = (b"application/json", b"__NEXT_DATA__")  # stands in pages that carry JSON, nearly always
_MARK = "focus-api="  # begins the fragment of a URL that is the next answer for a page
_OK = 200
_ENDS = (re.compile(r"</body\b", re.IGNORECASE), re.compile(r"</html\b", re.IGNORECASE))  # of what is read of a page


class Apis:
    """The rules of one crawl, by template of page.

    Parameters
    ----------
    count
        Called with the name of a stat and how much to add.
    path
        File in which rules survive the process, if they are to.
    learned
        Rules of an earlier crawl, to begin with.
    """

    def __init__(self, count: Callable[[str, int], None], path: Path | None, learned: Kept | None = None) -> None:
        self.count = count
        self.path = path
        self.rules: OrderedDict[str, ApiRules] = OrderedDict()
        self._with_items: set[str] = set()  # templates whose renderings gave items
        self._unproven: dict[str, int] = {}  # templates whose rules are of an earlier crawl: pages that showed more
        self._wanted: Counter[str] = Counter()  # pages of a template that were to be read, if they can be
        self._read: Counter[str] = Counter()  # pages of it that were read ...
        self._by: dict[str, str] = {}  # ... and the pattern of the URL that was asked for the last of them
        self._shown: Counter[str] = Counter()  # pages of it that a browser showed
        self._cut: set[str] = set()  # pages whose list is read on from an API, as clicking had to stop
        if learned is not None:
            self._begin(learned._replace(unproven=dict.fromkeys(learned.rules, 0)))
            self.save()  # or a run that is killed would leave none to the next
        self._load()

    # What the downloader middleware asks

    def rules_for(self, url: str) -> ApiRules | None:
        """Return the rules by which a page is to be read now, ``None`` where it is to be rendered."""
        template = template_of(url)
        rules = self.rules.get(template)
        if rules is None or template in self._with_items or template in self._unproven:
            return None
        if not rules.predicts(url) or rules.is_far(url):
            return None
        self._wanted[template] += 1
        return None if self._wanted[template] % _SAMPLE == 0 else rules

    async def read(
        self, rules: ApiRules, request: Request, ask: Callable[[Request], Awaitable[Response]]
    ) -> HtmlResponse | None:
        """Return a page with the links that a rendering would show, ``None`` if it has to be rendered after all.

        Parameters
        ----------
        rules
            Of its template.
        request
            For the page.
        ask
            Sends a request, and waits for the answer.
        """
        calls = []
        for url in rules.calls_of(request.url)[:_CALLS]:
            call = None if _host(url) != _host(request.url) else await self._ask(url, request, ask)
            if call is None:
                rules.fail(request.url, url)
                self._tell(rules)
                return None
            calls.append(call)
        if not rules.is_decided(request.url, calls):
            return None
        self._note(rules, calls)
        return self._page(rules, request, request.url, calls, rules.links_of(request.url, calls))

    def following(self, request: Request, response: Response) -> Response:
        """Return what the spider reads of an answer: a page, where it is the next one of an API, else the answer."""
        mark = request.url.partition("#")[2]
        if not mark.startswith(_MARK):
            return response
        page_url = unquote(mark.removeprefix(_MARK))
        rules, data = self.rules.get(template_of(page_url)), self._data(response)
        call = Call(request.url.partition("#")[0], data)
        links: list[tuple[str, str]] = []
        if rules is not None and data is not None and response.status == _OK:
            links = rules.links_of(page_url, [call]) if rules.is_sure else rules.listed(page_url, call)
        if rules is None or not (links or rules.is_sure):
            if page_url in self._cut:
                self._cut.discard(page_url)
                self.count("browser/list_cut", 1)
            return response
        self._note(rules, [call])
        return self._page(rules, request, page_url, [call], links)

    def beside(self, response: Response) -> Response:
        """Return a plain page with the links that a rendering would show, where it carries what these are made of."""
        url = response.url
        rules = self.rules.get(template_of(url)) if self.rules else None
        if rules is None or not isinstance(response, HtmlResponse) or response.status != _OK:
            return response
        if not rules.predicts(url) or {spelled(call) for call in rules.calls_of(url)} != {spelled(url)}:
            return response
        data = _data_of_page(response) if can_be_read(response) else None
        calls = [Call(url, data)]
        if data is None or not rules.is_decided(url, calls) or self.rules_for(url) is None:
            return response
        self._note(rules, [])
        return _with_links(response, rules.links_of(url, calls)).replace(flags=[*response.flags, FROM_API])

    def told(
        self, response: Response, answers: Sequence[tuple[str, bytes]] = (), *, is_cut: bool = False
    ) -> Response:  # fmt: skip
        """Return a page with the URLs that stand in its JSON and nowhere else: the place of each is its path there.

        Where the JSON states how long a list is, and the page shows only a part of it, the page also has a link to the
        answer with the next part.

        Parameters
        ----------
        response
            A page, plain or rendered. What it carries for its scripts is read, too.
        answers
            URL and body of what its scripts fetched.
        is_cut
            Whether clicking had to stop while it still brought links, which counts unless the JSON leads on.
        """
        told = self._told(response, answers, is_cut=is_cut)
        if is_cut and _NEXT_PART in told.flags:
            self._cut.add(response.url)
        elif is_cut:
            self.count("browser/list_cut", 1)
        return told

    def _told(self, response: Response, answers: Sequence[tuple[str, bytes]], *, is_cut: bool) -> Response:
        if not isinstance(response, HtmlResponse) or response.status != _OK:
            return response
        if not answers and not any(mark in response.body for mark in _CARRIES):  # long texts are found fast
            return response
        if not can_be_read(response):
            return response
        calls = [Call(where, data) for where, body in answers if (data := self._json(body)) is not None]
        asked = {template_of(call.url) for call in calls}  # scripts know how to ask for more of these, and rules do
        if (carried := _data_of_page(response)) is not None:
            calls.append(Call(response.url, carried))
        if not calls:
            return response
        had = {spelled(url) for url in [response.url, *_links_of(response, set())]}
        links: dict[str, tuple[str, str]] = {}
        for url, place in (link for call in calls for link in links_in(call.data, call.url)):
            is_new = spelled(url) not in had and spelled(url) not in links
            if is_new and extension(url) not in BLOCKED_EXTENSIONS and template_of(url) not in asked:
                links[spelled(url)] = (url, place)
        has_rest = is_cut or not any(_is_part(url, response.url) for url in had)
        rest = [_next_link(url, response.url) for url in (rest_of_lists(calls)[:_CALLS] if has_rest else ())]
        if not links and not rest:
            return response
        shown = [*links.values()][:_TOLD]
        self.count("api/told", len(shown))
        flags = [*response.flags, *([_NEXT_PART] if rest else [])]
        return _with_links(response, shown, rest).replace(flags=flags)

    # What the scheduler tells

    def rendered(self, entry: Entry, answers: Iterable[tuple[str, bytes]]) -> None:
        """A browser showed a page, and these answers in JSON came for it: learn how its links are made of them."""
        response = entry.response
        if not isinstance(response, HtmlResponse) or not can_be_read(response):
            return
        url = entry.pick.url
        template = template_of(url)
        if not template:
            return
        self._shown[template] += 1
        if entry.items:
            self._with_items.add(template)
        rules = self.rules.setdefault(template, ApiRules())
        self.rules.move_to_end(template)
        while len(self.rules) > TEMPLATES:
            self.rules.popitem(last=False)
        calls = [Call(where, data) for where, body in answers if (data := self._json(body)) is not None]
        if (data := _data_of_page(response)) is not None:
            calls.append(Call(url, data))
        new = [link.url for link in entry.links]
        plain = _links_of(response, set(new))
        was_sure = rules.is_sure
        if template in self._unproven:
            if not self._prove(rules, url, calls, new, plain):
                return
            rules = self.rules.setdefault(template, ApiRules())
            was_sure = rules.is_sure
            self.save()
        elif rules.predicts(url):
            rules.check(url, [link for link, _ in rules.links_of(url, calls)], new, plain=plain)
        rules.learn(url, calls, new, plain=plain)
        if rules.is_sure != was_sure:
            self._tell(rules)
            self.save()

    def _prove(
        self, rules: ApiRules, url: str, calls: Sequence[Call], new: Sequence[str], plain: Sequence[str]
    ) -> bool:
        """Compare the rules of an earlier crawl with a rendering. They are forgotten where it does not show what they
        predict, and proven where it shows nothing else; return whether either is so.

        The first pages of a crawl show much that is new, such as menus, which later ones do not.
        """
        template, is_known = rules.template, rules.predicts(url)
        wrong, missed = rules.differences(url, [link for link, _ in rules.links_of(url, calls)], new, plain=plain)
        if (missed or not is_known) and not wrong and self._unproven[template] + 1 < _TRIES:
            self._unproven[template] += 1
            return False
        del self._unproven[template]
        if wrong or missed or not is_known:
            del self.rules[template]
            logger.info("Pages like %s are not as an earlier crawl learned; they are rendered", brief(template))
        else:
            self._tell(rules)
        return True

    def tables(self) -> list[PolicyTable]:
        """Return a table of the APIs in use, those first behind which most pages were."""
        rows: list[tuple[str | float | int, ...]] = [
            (
                template, self._read[template], self._by.get(template, ""), self._shown[template], rules.withdrawn,
                rules.reason or "in use",
            )
            for template, rules in self.rules.items()
            if rules.is_sure or self._read[template]
        ]  # fmt: skip
        rows.sort(key=lambda row: row[1], reverse=True)
        columns = ("template", "pages read", "from", "rendered", "times withdrawn", "state")
        return [PolicyTable("Pages read from the API behind them", columns, rows)] if rows else []

    def say(self) -> None:
        """Tell in the log which pages were rendered, and which were read in place of that, by template."""
        of_all = self._shown + self._read
        for template, _ in of_all.most_common(_SAID):
            by = f" by {brief(self._by[template])}" if self._by.get(template) else " from the pages themselves"
            read = f", {self._read[template]:,} read{by}" if self._read[template] else ""
            logger.info("Pages like %s: %s rendered%s", brief(template), f"{self._shown[template]:,}", read)
        if len(of_all) > _SAID:
            logger.info("Pages of %s more templates were rendered", f"{len(of_all) - _SAID:,}")

    def _note(self, rules: ApiRules, calls: Sequence[Call]) -> None:
        """Count a page that was read from these answers; none: from what the plain page carries."""
        self.count("api/pages", 1)
        self._read[rules.template] += 1
        self._by[rules.template] = template_of(calls[0].url) if calls else ""

    def save(self) -> None:
        """Write the rules down, if there is a file."""
        if self.path is None or not self.rules:
            return
        part = self.path.with_suffix(".part")
        try:
            part.write_text(self.kept().to_text(), encoding="utf-8")
            part.replace(self.path)
        except OSError as error:
            self.count("error/api", 1)
            logger.warning("%s cannot be written, and is learned again by the next run: %s", self.path, error)

    def kept(self) -> Kept:
        """Return the rules as another run or another crawl may begin with them."""
        found = {template: rules for template, rules in self.rules.items() if rules.template}
        return Kept(found, self._with_items & found.keys(), self._unproven)

    def _load(self) -> None:
        if self.path is None or not self.path.exists():
            return
        try:
            self._begin(Kept.of_text(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            logger.warning("%s is not read, and its rules are learned again: %s", self.path, error)

    def _begin(self, kept: Kept) -> None:
        self.rules = OrderedDict(kept.rules)
        self._with_items, self._unproven = set(kept.with_items), dict(kept.unproven)

    async def _ask(self, url: str, request: Request, ask: Callable[[Request], Awaitable[Response]]) -> Call | None:
        """Ask an API; ``None`` where it gives no JSON."""
        headers = {"Accept": "application/json, */*;q=0.5", "Referer": request.url}
        self.count("api/requests", 1)
        try:
            response = await ask(Request(url, callback=NO_CALLBACK, headers=headers, dont_filter=True))
        except BudgetExhausted:
            raise
        except Exception as error:  # whatever a download handler or middleware raises
            self.count("error/api", 1)
            logger.info("An API is not asked any more for pages like %s: %s: %s", brief(request.url), url, error)
            return None
        data = self._data(response) if response.status == _OK else None
        return None if data is None else Call(url, data)

    def _page(
        self, rules: ApiRules, request: Request, page_url: str, calls: Sequence[Call],
        links: Sequence[tuple[str, str]],
    ) -> HtmlResponse:  # fmt: skip
        """Return a page of the links that answers make, by how they are made, and where more of them are."""
        parts = _lists(links)
        pages = [url for url, _ in links if template_of(url) == rules.template]
        by_pages = {
            spelled(call) for url in pages for call in rules.calls_of(url)
        }  # they are asked for with their pages
        for url in dict.fromkeys(url for call in calls for url in rules.next_calls(call)):
            if spelled(url) in by_pages:
                continue
            parts.append(_next_link(url, page_url))
        body = f"<html><head><title>{escape(page_url)}</title></head><body>{''.join(parts)}</body></html>"
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return HtmlResponse(
            request.url.partition("#")[0], body=body.encode(), encoding="utf-8", headers=headers, request=request,
            flags=[FROM_API],
        )  # fmt: skip

    def _data(self, response: Response) -> Any:
        """Return the data of an answer, or of a page that carries some; ``None`` where there is none."""
        if isinstance(response, HtmlResponse):
            return _data_of_page(response)
        if isinstance(response, TextResponse) or response.body[:1] in b"[{":
            return self._json(response.body)
        return None

    def _json(self, body: bytes) -> Any:
        try:
            return read_json(body)
        except Unreadable as error:
            self.count(f"api/unread/{error.reason.lower().replace(' ', '_')}", 1)
            return None

    def _tell(self, rules: ApiRules) -> None:
        if rules.is_sure:
            logger.info("Pages like %s are read from the API behind them", brief(rules.template))
        else:
            self.count("api/withdrawn", int(rules.withdrawn > 0))
            logger.info("Pages like %s are rendered again: %s", brief(rules.template), brief(rules.reason))


def _data_of_page(response: HtmlResponse) -> Any:
    """Return what a page carries for its scripts: data, a list of it where there are several, ``None`` for none."""
    found = data_in_page(text_of(response))
    return found[0] if len(found) == 1 else found or None


def _links_of(response: HtmlResponse, besides: set[str]) -> list[str]:
    """Return the links of a page, absolute, but for some."""
    base = get_base_url(response)
    found = []
    for href in response.xpath("//a/@href").getall():
        with suppress(ValueError):
            found.append(urljoin(base, href.strip()))
    return [url for url in found if url not in besides]


def _with_links(
    response: HtmlResponse, links: Iterable[tuple[str, str]], elements: Iterable[str] = ()
) -> HtmlResponse:  # fmt: skip
    """Return a page with links, and elements in HTML, added at its end."""
    text = text_of(response)
    ends = [end.start() for pattern in _ENDS for end in [*pattern.finditer(text)][-1:]]
    at = min(ends, default=len(text))
    text = text[:at] + "".join([*_lists(links), *elements]) + text[at:]
    return response.replace(body=text.encode(response.encoding, "xmlcharrefreplace"))


def _lists(links: Iterable[tuple[str, str]]) -> list[str]:
    """Return lists of links, in HTML, by how they are made."""
    groups: OrderedDict[str, list[str]] = OrderedDict()
    for url, place in links:
        groups.setdefault(place, []).append(url)
    return [f'<ul class="{_name_of(place)}">{"".join(map(_item, urls))}</ul>' for place, urls in groups.items()]


def _is_part(url: str, page_url: str) -> bool:
    """Whether a link leads from a page to another part of its list, by its URL."""
    is_like = url.partition("?")[0] == page_url.partition("?")[0] or template_of(url) == template_of(page_url)
    return is_like and spelled(url) != spelled(page_url)


def _next_link(url: str, page_url: str) -> str:
    """Return a link, in HTML, to the answer that comes next for a page."""
    target = f"{url.partition('#')[0]}#{_MARK}{quote(page_url, safe='')}"
    return f'<a class="api-next" rel="next" href="{escape(target)}">{escape(url)}</a>'


def _name_of(place: str) -> str:
    """Return the class that says of links in which way they are made: letters, digits and hyphens."""
    name = "-".join("".join(each if each.isalnum() and each.isascii() else " " for each in place).split())
    return f"api-{name[:80]}"


def _item(url: str) -> str:
    name = unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]) or url
    return f'<li><a href="{escape(url)}">{escape(name)}</a></li>'


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()
