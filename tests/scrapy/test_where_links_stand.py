"""Every link of a page is tied to the page and to its place on it, however the spider makes its request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from scrapy import Request, Spider
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mocksite import MockSite
    from scrapy.http import HtmlResponse, Response

# Each is the href as written in the page, in a paragraph with its number as class.
AWKWARD = [
    "/plain", "relative.html", "../up?b=2&amp;a=1", "/a b c", "  /padded  ", "/caf\u00e9?q=\u00fc", "/frag#part", "?only=query",
    "//HOST/scheme", "HTTP://HOST/upper/Case", "/100%", "/pct%20and%7e", "/path;params?x=1;y=2", "/a/../b/./c",
    "/dup?x=1&amp;x=1", "/semi?q=a'b\"c".replace('"', "&quot;"), "/[brackets]", "/trailing?",
]  # fmt: skip


def page(site: MockSite, base: str = "") -> str:
    """Return a page with all awkward links, each in a different place."""
    host = f"{site.host}:{site.port}"
    links = "".join(
        f'<p class="n{i}">before {i} <a href="{href.replace("HOST", host)}">link {i}</a></p>'
        for i, href in enumerate(AWKWARD)
    )
    head = f'<html><head><meta charset="utf-8">{base}</head><body>'
    return f'{head}<div id="c">{links}</div></body></html>'


class Noting(BreadthFirst):
    """Notes every link that has a source, and asks for none of them."""

    reads_page = True

    def __init__(self) -> None:
        super().__init__()
        self.links: list[Any] = []
        self.sources: set[str] = set()

    def place(self, links: Any, source: Any) -> Any:
        if source is None:
            return super().place(links, source)
        self.links.extend(links)
        self.sources.add(source.page.url)
        return [None] * len(links)


class Producer(Spider):
    """Makes requests from a page, in the given way."""

    name = "producer"

    def __init__(self, seed: str, make: Callable[[HtmlResponse], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        self.make = make
        self.urls: set[str] = set()

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.seed)

    def parse(self, response: HtmlResponse) -> Iterator[Any]:
        for request in self.make(response):
            self.urls.add(request.url)
            yield request


PRODUCERS: dict[str, Callable[[HtmlResponse], Any]] = {
    "follow a selector": lambda response: (response.follow(link) for link in response.css("a")),
    "follow an attribute": lambda response: (response.follow(href) for href in response.css("a::attr(href)")),
    "follow a string": lambda response: (response.follow(href) for href in response.css("a::attr(href)").getall()),
    "follow all of a selector": lambda response: response.follow_all(css="a"),
    "follow all of an extractor": lambda response: response.follow_all(LinkExtractor().extract_links(response)),
    "request of an extracted link": lambda response: (
        Request(link.url) for link in LinkExtractor().extract_links(response)
    ),
    "request of a joined URL": lambda response: (
        Request(response.urljoin(href.strip())) for href in response.css("a::attr(href)").getall()
    ),
}


def check_places(result: Any, at_least: int) -> None:
    """Fail unless the policy saw every link in its own place, with its own text."""
    links = result.scheduler.crawl.policy.links
    assert len(links) >= at_least
    for link in links:
        number = link.anchor.removeprefix("link ")
        assert link.tag_path == f"html/body/div#c/p.n{number}/a", link
        assert link.context == f"before {number} link {number}"
    assert len({link.anchor for link in links}) == len(links)
    assert result.stats.get("focus/link/unattributed", 0) == 0


@pytest.mark.both
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("base", ["", '<base href="/other/deep/">'], ids=["", "base"])
@pytest.mark.parametrize("how", PRODUCERS)
def test_every_link_has_its_place(site: MockSite, how: str, base: str, addon: bool) -> None:
    """Spaces, other scripts, fragments, dots, entities, upper-case hosts: all are found again on the page."""
    site.pages["/dir/links.html"] = page(site, base)
    seed = site.url("/dir/links.html")
    result = crawl(Producer, {"FOCUS_POLICY": Noting}, addon=addon, seed=seed, make=PRODUCERS[how])
    check_places(result, len(AWKWARD) - 1)  # link extractors leave one or another out
    assert result.scheduler.crawl.policy.sources == {seed}
    assert {link.url for link in result.scheduler.crawl.policy.links} == result.spider.urls


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("canonicalize", [False, True])
def test_rules(site: MockSite, canonicalize: bool, addon: bool) -> None:
    """Links of a CrawlSpider are found again too, canonical or not."""
    site.pages["/dir/links.html"] = page(site)

    class Rules(CrawlSpider):
        name = "rules"
        rules = (Rule(LinkExtractor(tags="a", canonicalize=canonicalize)),)
        start_urls = [site.url("/dir/links.html")]

    check_places(crawl(Rules, {"FOCUS_POLICY": Noting}, addon=addon), len(AWKWARD) - 2)


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_all_kinds_of_elements(site: MockSite, addon: bool) -> None:
    """Areas, frames, forms and link elements have a place as well."""
    site.pages["/kinds"] = (
        '<html><head><link href="/link"></head><body><map><area href="/area" title="A"></map>'
        '<div class="x y"><iframe src="/frame"></iframe></div><form id="f" action="/form"></form>'
        '<a href="/image"><img alt="picture"></a></body></html>'
    )
    urls = ["/link", "/area", "/frame", "/form", "/image"]
    result = crawl(
        Producer, {"FOCUS_POLICY": Noting}, addon=addon, seed=site.url("/kinds"),
        make=lambda response: [response.follow(url) for url in urls],
    )  # fmt: skip
    found = {link.url.rpartition("/")[2]: (link.tag_path, link.anchor) for link in result.scheduler.crawl.policy.links}
    assert found == {
        "link": ("html/head/link", ""), "area": ("html/body/map/area", "A"),
        "frame": ("html/body/div.x y/iframe", ""), "form": ("html/body/form#f", ""),
        "image": ("html/body/a", "picture"),
    }  # fmt: skip


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_links_that_are_not_on_the_page(site: MockSite, addon: bool) -> None:
    """A URL that the spider makes up belongs to its page, has a place of its pattern and callback, and is counted."""
    result = crawl(
        Producer, {"FOCUS_POLICY": Noting}, addon=addon, seed=site.url("/page/0/10"),
        make=lambda response: [response.follow(f"/made-up/{i}") for i in range(3)] + [*response.follow_all(css="li a")],
    )  # fmt: skip
    paths = [link.tag_path for link in result.scheduler.crawl.policy.links]
    assert paths == ["(made)/*:*/parse()"] * 3 + ["html/body/ul/li/a", "html/body/ul/li/a"]
    assert result.stats.get("focus/link/unattributed", 0) == 3


def test_links_of_what_is_no_page(site: MockSite) -> None:
    """A JSON answer has no places; its links have one that follows from their URL and from who reads it."""
    answer = 200, {"Content-Type": "application/json"}, b'{"next": "/api/2"}'
    site.answers["/api/1"] = lambda times: answer
    result = crawl(
        Producer, {"FOCUS_POLICY": Noting}, seed=site.url("/api/1"),
        make=lambda response: [response.follow("/api/2"), response.follow("/books/7", callback=print)],
    )  # fmt: skip
    found = [(link.tag_path, link.callback) for link in result.scheduler.crawl.policy.links]
    assert found == [("(made)/api:*/parse()", ""), ("(made)/books:*/print()", "print")]


class Ruled(CrawlSpider):
    """Two rules, one of which only follows."""

    name = "ruled"
    rules = (Rule(LinkExtractor(allow="/list")), Rule(LinkExtractor(allow="/book"), callback="parse_book"))

    def __init__(self, seed: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [seed]

    def parse_book(self, response: Response) -> None:
        """Never called: the policy asks for none."""


def test_the_callback_of_a_link_is_that_of_its_rule(site: MockSite) -> None:
    """All requests of a CrawlSpider have one callback; the reader of a page is the rule's callback, or none."""
    site.pages["/start"] = '<html><body><a href="/list">all</a><a href="/book">one</a></body></html>'
    result = crawl(Ruled, {"FOCUS_POLICY": Noting}, seed=site.url("/start"))
    assert [link.callback for link in result.scheduler.crawl.policy.links] == ["", "parse_book"]


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_users_may_say_where_a_link_stands(site: MockSite, addon: bool) -> None:
    """``focus_link`` in a request's meta takes precedence over the page."""
    said = {"tag_path": "json/rows", "anchor": "mine", "context": "all mine"}
    result = crawl(
        Producer, {"FOCUS_POLICY": Noting}, addon=addon, seed=site.url("/page/0/10"),
        make=lambda response: [response.follow("/page/1/10", meta={"focus_link": said})],
    )  # fmt: skip
    [link] = result.scheduler.crawl.policy.links
    assert (link.tag_path, link.anchor, link.context) == ("json/rows", "mine", "all mine")


class TwoPages(Spider):
    """Reads two pages at once, whose links alternate."""

    name = "two_pages"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Any]:
        for name in "ab":
            self.site.pages[f"/{name}"] = f'<ul class="{name}"><a href="/{name}1">1</a><a href="/{name}2">2</a></ul>'
            yield Request(self.site.url(f"/{name}"))

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        import asyncio

        for link in response.css("a"):
            await asyncio.sleep(0.05)
            yield response.follow(link)


@pytest.mark.parametrize("referrer", [True, False], ids=["referer", "no_referer"])
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_pages_side_by_side(site: MockSite, addon: bool, referrer: bool) -> None:
    """Links of pages that are parsed at once keep their page; without Referer headers the add-on is needed for that."""
    result = crawl(TwoPages, {"FOCUS_POLICY": Noting, "REFERER_ENABLED": referrer}, addon=addon, site=site)
    links = result.scheduler.crawl.policy.links
    if addon or referrer:
        assert sorted(link.tag_path for link in links) == ["html/body/ul.a/a"] * 2 + ["html/body/ul.b/a"] * 2
        assert result.stats["focus/link/loose"] == 2
    else:
        assert not links
        assert result.stats["focus/link/loose"] == 6


class SameUrl(Spider):
    """Reads two responses of one URL at once, whose links alternate."""

    name = "same_url"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.begun: set[bytes] = set()
        self.done: set[bytes] = set()

    async def start(self) -> AsyncIterator[Any]:
        self.site.pages["/search"] = "<p>found"
        for word in "ab":
            yield Request(self.site.url("/search"), method="POST", body=word)

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        if response.request.method == "GET":
            return
        word = response.request.body
        await self.both(self.begun, word)
        for n in "12":
            yield response.follow(f"/{word.decode()}{n}")
        await self.both(self.done, word)

    async def both(self, those: set[bytes], word: bytes) -> None:
        """Wait for the other answer."""
        import asyncio

        those.add(word)
        while len(those) < 2:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_pages_that_share_a_url(site: MockSite, addon: bool) -> None:
    """A link is never assigned to another page with the same URL, whose outcome could lose it at a kill."""
    result = crawl(SameUrl, {"FOCUS_POLICY": Noting}, addon=addon, site=site)
    assert len(result.scheduler.crawl.policy.links) == (4 if addon else 0)
    assert result.stats["focus/link/loose"] == (2 if addon else 6)
