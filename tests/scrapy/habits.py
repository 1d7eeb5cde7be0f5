"""Spiders as people write them, for :class:`ShopSite`, and the results of a crawl of each."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crawls import Crawled, crawl
from itemloaders.processors import MapCompose, TakeFirst
from scrapy import Field, FormRequest, Item, Request, Spider, signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DontCloseSpider, DropItem
from scrapy.http import JsonRequest, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider, XMLFeedSpider
from scrapy.utils.request import RequestFingerprinter
from shopsite import SITEMAPS, ShopSite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure


class Shopper(Spider):
    """Starts at some paths of the site that it is given."""

    paths: tuple[str, ...] = ("/books/",)

    def __init__(self, site: ShopSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.start_urls = [site.url(path) for path in self.paths]


def quotes_of(response: Response) -> Iterator[dict[str, Any]]:
    for quote in response.css("div.quote"):
        yield {"text": quote.css(".text::text").get(), "tags": quote.xpath(".//div[@class='tags']/a/text()").getall()}


class Pages(Shopper):
    """Follows one link to the next page, from a selector."""

    name = "pages"
    paths = ("/quotes/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield from quotes_of(response)
        for link in response.css("li.next a"):
            yield response.follow(link, self.parse)


class PagesByAddress(Shopper):
    """Makes the URL of the next page itself, with a Request and ``urljoin``, from several tags."""

    name = "pages_by_address"
    paths = ("/quotes/tag/life/page/1/", "/quotes/tag/work/page/1/", "/quotes/tag/life/page/1/")

    def parse(self, response: Response) -> Iterator[Any]:
        yield from quotes_of(response)
        target = response.xpath("//li[@class='next']/a/@href").get()
        if target is not None:
            yield Request(response.urljoin(target), callback=self.parse)


class Details(Shopper):
    """Follows links from lists to books, details first, and passes on data of the list."""

    name = "details"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/books/"), self.parse_list)

    def parse_list(self, response: Response) -> Iterator[Any]:
        for card in response.css("article.product"):
            about = {"price": card.css(".price::text").get(), "stars": card.css(".star::attr(class)").get()}
            yield response.follow(card.css("h3 a")[0], self.parse_book, priority=10, cb_kwargs={"about": about})
        yield from response.follow_all(css="li.next a", callback=self.parse_list)

    def parse_book(self, response: Response, about: dict[str, str]) -> dict[str, Any]:
        return {**about, "title": response.css("h1::text").get(), "upc": response.xpath("//td[1]/text()").get()}


class Book(Item):
    title = Field(input_processor=MapCompose(str.strip), output_processor=TakeFirst())
    style = Field(output_processor=TakeFirst())
    price = Field(input_processor=MapCompose(lambda text: float(text.lstrip("£"))), output_processor=TakeFirst())


class Categories(Shopper):
    """Goes through categories, and carries a half-filled item in ``meta`` to an item loader on the next page."""

    name = "categories"

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("aside.side ul ul a"):
            style = link.css("::text").get()
            yield response.follow(link, self.parse_category, meta={"item": Book(style=style)})

    def parse_category(self, response: Response) -> Iterator[Any]:
        for link in response.css("h3 a"):
            yield response.follow(link, self.parse_book, meta={"item": response.meta["item"].copy()})
        for link in response.css("li.next a"):
            yield response.follow(link, self.parse_category, meta={"item": response.meta["item"]})

    def parse_book(self, response: Response) -> Any:
        loader = ItemLoader(response.meta["item"], response)
        loader.add_css("title", "h1::text")
        loader.add_css("price", "article.page .price::text")
        return loader.load_item()


class Authors(Shopper):
    """Has items on one of three kinds of pages."""

    name = "authors"
    paths = ("/quotes/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a.about", callback=self.parse_author)
        yield from response.follow_all(css="li.next a, a.tag")

    def parse_author(self, response: Response) -> Iterator[Any]:
        yield {"name": response.css(".name::text").get(), "born": response.css(".born::text").get()}


class Everywhere(Shopper):
    """Follows every link, and takes the books of one category."""

    name = "everywhere"

    def parse(self, response: Response) -> Iterator[Any]:
        if "Poetry" in response.css(".crumbs").get(""):
            yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)


class Rules(CrawlSpider):
    """Has three rules, one with keyword arguments, one that changes its requests and links."""

    name = "rules"
    rules = (
        Rule(LinkExtractor(restrict_css="aside.side ul ul"), follow=True, process_links="half"),
        Rule(LinkExtractor(allow=r"page-\d+\.html", restrict_css="ul.pager")),
        Rule(
            LinkExtractor(allow=r"/book-\d+/", deny=r"/book-00"), callback="parse_book", follow=False,
            cb_kwargs={"kind": "book"}, process_request="mark",
        ),
    )  # fmt: skip

    def __init__(self, site: ShopSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [site.url("/books/")]

    def half(self, links: list[Any]) -> list[Any]:
        return links[::2]

    def mark(self, request: Request, response: Response) -> Request | None:
        return None if request.url.endswith("/book-031/index.html") else request.replace(headers={"X-Mine": "yes"})

    def parse_book(self, response: Response, kind: str) -> Iterator[Any]:
        yield {
            "kind": kind,
            "title": response.css("h1::text").get(),
            "mine": response.request.headers["X-Mine"].decode(),
        }


class LoginByForm(Shopper):
    """Sends the form of a page, with its hidden token."""

    name = "login_by_form"
    paths = ("/quotes/login",)

    def parse(self, response: Response) -> Any:
        return FormRequest.from_response(response, formdata={"username": "me"}, callback=self.parse_mine)

    def parse_mine(self, response: Response) -> Iterator[Any]:
        yield {"user": response.css("b::text").get(), "page": response.css("i::text").get()}
        yield from response.follow_all(css="a.next", callback=self.parse_mine)


class LoginByRequest(LoginByForm):
    """Reads the token itself, after a page that needs a login, and returns to that page."""

    name = "login_by_request"
    paths = ("/quotes/mine/2",)
    handle_httpstatus_list = [403]

    def parse(self, response: Response) -> Any:
        assert response.status == 403
        return response.follow("/quotes/login", self.parse_form, cb_kwargs={"wanted": response.url})

    def parse_form(self, response: Response, wanted: str) -> Any:
        form = {"username": "you", "token": response.xpath("//input[@name='token']/@value").get()}
        return FormRequest(response.url, formdata=form, callback=self.after, cb_kwargs={"wanted": wanted})

    def after(self, response: Response, wanted: str) -> Any:
        if response.css("b::text").get() == "you":
            return Request(wanted, self.parse_mine, dont_filter=True)
        return {"failed": response.url}


class Jars(Shopper):
    """Logs in several times, each time with separate cookies."""

    name = "jars"

    async def start(self) -> AsyncIterator[Any]:
        for jar in range(6):
            yield Request(self.site.url("/quotes/login"), meta={"cookiejar": jar}, dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        jar = response.meta["cookiejar"]
        form = {"username": f"user{jar}", "token": response.css("[name=token]::attr(value)").get()}
        meta = {"cookiejar": jar}  # all are redirected to the same URL
        yield FormRequest(response.url, formdata=form, callback=self.parse_mine, meta=meta, dont_filter=True)

    def parse_mine(self, response: Response) -> Iterator[Any]:
        jar = response.meta["cookiejar"]
        yield {"jar": jar, "user": response.css("b::text").get(), "page": response.css("i::text").get()}
        for link in response.css("a.next"):
            yield response.follow(link, self.parse_mine, meta={"cookiejar": jar}, dont_filter=True)


class Scroll(Shopper):
    """Reads an API page by page, as a list does that grows while one scrolls."""

    name = "scroll"
    paths = ("/quotes/api?page=1",)

    def parse(self, response: Response) -> Iterator[Any]:
        data = response.json()
        yield from data["quotes"]
        if data["has_next"]:
            yield Request(self.site.url(f"/quotes/api?page={data['page'] + 1}"))


class ScrollByPost(Shopper):
    """Reads an API by POST: the same URL each time, another body."""

    name = "scroll_by_post"

    async def start(self) -> AsyncIterator[Any]:
        yield JsonRequest(self.site.url("/quotes/api"), data={"page": 1})

    def parse(self, response: Response) -> Iterator[Any]:
        data = json.loads(response.text)
        yield from data["quotes"]
        if data["has_next"]:
            yield JsonRequest(response.url, data={"page": data["page"] + 1})


class Sitemaps(SitemapSpider):
    """Finds an index of sitemaps by robots.txt, with a gzipped and a missing one; two rules, and a filter."""

    name = "sitemaps"
    sitemap_rules = [("/book-", "parse_book"), ("/author/", "parse_author")]
    sitemap_follow = ["sitemap-(books|gone)", "quotes"]

    def __init__(self, site: ShopSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sitemap_urls = [site.url("/robots.txt")]

    def sitemap_filter(self, entries: Any) -> Iterator[Any]:
        return (entry for entry in entries if not entry["loc"].endswith("/book-001/index.html"))

    def parse_book(self, response: Response) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get()}

    def parse_author(self, response: Response) -> Iterator[Any]:
        yield {"name": response.css(".name::text").get()}


class Nodes(XMLFeedSpider):
    """Iterates over the nodes of an XML file, and follows the link of each."""

    name = "nodes"
    iterator = "xml"
    itertag = "s:url"
    namespaces = [("s", SITEMAPS)]

    def __init__(self, site: ShopSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [site.url("/sitemap-quotes.xml")]

    def parse_node(self, response: Response, selector: Any) -> Any:
        return Request(selector.xpath("s:loc/text()").get(), self.parse_author)

    def parse_author(self, response: Response) -> Iterator[Any]:
        yield {"name": response.css(".name::text").get()}


class Checksums:
    """Keeps of the files what does not depend on the address of the site."""

    def process_item(self, item: Any) -> Any:
        return {
            "title": item["title"],
            **{name: [each["checksum"] for each in item[name]] for name in ("images", "files")},
        }


class Covers(Shopper):
    """Uses Scrapy's pipelines to download the covers of books, as images and as files."""

    name = "covers"
    custom_settings = {
        "ITEM_PIPELINES": {
            "scrapy.pipelines.images.ImagesPipeline": 1,
            "scrapy.pipelines.files.FilesPipeline": 2,
            Checksums: 3,
        },
        "IMAGES_THUMBS": {"small": (1, 1)},
    }

    def parse(self, response: Response) -> Iterator[Any]:
        for card in response.css("article.product"):
            urls = [response.urljoin(card.css("img::attr(src)").get())]
            yield {
                "title": card.css("h3 a::text").get(),
                "image_urls": urls,
                "file_urls": [*urls, response.urljoin("/gone")],
            }
        yield from response.follow_all(css="li.next a")


class Slow(Details):
    """Lets AutoThrottle choose the delay."""

    name = "slow"
    custom_settings = {
        "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01, "AUTOTHROTTLE_MAX_DELAY": 0.02,
        "DOWNLOAD_DELAY": 0.01, "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
    }  # fmt: skip


class Shallow(Categories):
    """Crawls breadth first, by the settings in Scrapy's FAQ."""

    name = "shallow"
    custom_settings = {
        "DEPTH_LIMIT": 2, "DEPTH_PRIORITY": 1, "DEPTH_STATS_VERBOSE": True,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }  # fmt: skip


class PingPong(Shopper):
    """Sends two pages back and forth, with locks in ``meta``, and follows links from an errback."""

    name = "ping_pong"
    custom_settings = {"RETRY_ENABLED": False}

    async def start(self) -> AsyncIterator[Any]:
        self.lock = threading.Lock()
        for ball in range(4):
            meta = {"lock": self.lock, "turn": asyncio.Semaphore(), "left": 6}
            yield Request(self.site.url("/ok?ping"), dont_filter=True, meta=meta, cb_kwargs={"ball": ball})

    async def parse(self, response: Response, ball: int) -> AsyncIterator[Any]:
        meta = response.meta
        async with meta["turn"]:
            yield {"ball": ball, "left": meta["left"], "same": meta["lock"] is self.lock, "at": response.url}
        there = "/ok?pong" if "ping" in response.url else "/ok?ping"
        again = {"lock": meta["lock"], "turn": meta["turn"], "left": meta["left"] - 1}
        if meta["left"]:
            yield response.follow(there, dont_filter=True, meta=again, cb_kwargs={"ball": ball})
        else:
            url = f"/status?code=410&ball={ball}"
            yield response.follow(url, errback=self.ended, cb_kwargs={"ball": ball}, meta={"lock": meta["lock"]})

    def ended(self, failure: Failure) -> Iterator[Any]:
        request = failure.request
        yield {"ended": request.cb_kwargs["ball"], "status": failure.value.response.status}
        yield Request(self.site.url("/books/"), self.last, dont_filter=True, cb_kwargs=request.cb_kwargs)

    def last(self, response: Response, ball: int) -> Iterator[Any]:
        yield {"last": ball}


class Awaiting(Shopper):
    """Downloads other pages in the middle of a callback, one after the other and several at once."""

    name = "awaiting"
    paths = ("/quotes/",)

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        for href in response.css("a.about::attr(href)").getall()[:1]:
            page = await self.crawler.engine.download_async(Request(response.urljoin(href)))
            yield {"author": page.css(".name::text").get()}
        hrefs = response.css(".top a::attr(href)").getall()
        wanted = [self.crawler.engine.download_async(response.follow(href)) for href in hrefs]
        yield {"tags": [len(page.css("div.quote")) for page in await asyncio.gather(*wanted)]}
        for link in response.css("li.next a"):
            yield response.follow(link)


class WithoutQuery(RFPDupeFilter):
    """Takes pages that differ in their query only for the same."""

    def request_seen(self, request: Request) -> bool:
        return super().request_seen(request.replace(url=request.url.partition("?")[0]))


class OwnFilter(Shopper):
    """Has a custom definition of duplicates."""

    name = "own_filter"
    paths = ("/ok?start",)
    custom_settings = {"DUPEFILTER_CLASS": WithoutQuery}

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"path": response.url.partition("?")[0]}
        for path in ("/page/1/9", "/page/1/9?b", "/page/2/9?c", "/page/2/9", "/ok?more"):
            yield response.follow(path)


class ByUser(RequestFingerprinter):
    """Tells requests of several users apart, who have it in a header."""

    def fingerprint(self, request: Request) -> bytes:
        return super().fingerprint(request) + request.headers.get("X-User", b"")


class OwnFingerprints(Shopper):
    """Brings its own fingerprints."""

    name = "own_fingerprints"
    paths = ("/ok?start",)
    custom_settings = {"REQUEST_FINGERPRINTER_CLASS": ByUser}

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"user": response.request.headers.get("X-User", b"").decode()}
        for user in ("a", "b", "c", "a"):
            yield response.follow("/ok?start", headers={"X-User": user})


class Fed(Shopper):
    """Gets its requests from outside whenever nothing is left, as those do that read from a queue elsewhere."""

    name = "fed"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Fed:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.left = list(range(4))
        crawler.signals.connect(spider.feed, signals.spider_idle)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        return
        yield

    def feed(self) -> None:
        if self.left:
            number = self.left.pop()
            for path in (f"/quotes/page/{number + 1}/", f"/books/book-00{number}/index.html"):
                self.crawler.engine.crawl(Request(self.site.url(path), self.parse_fed, meta={"number": number}))
            raise DontCloseSpider

    def parse_fed(self, response: Response) -> Iterator[Any]:
        yield {"number": response.meta["number"], "title": response.css("title::text").get()}


class Rotating:
    """Gives each request another name, and repeats requests for pages that only ask to wait."""

    def process_request(self, request: Request) -> None:
        request.headers["User-Agent"] = f"browser {len(request.url) % 3}"

    def process_response(self, request: Request, response: Response) -> Request | Response:
        waits = b'id="captcha"' in response.body
        return request.replace(dont_filter=True, priority=request.priority + 1) if waits else response


class Answering:
    """Answers some requests itself, drops others, and sends some elsewhere."""

    def process_request(self, request: Request) -> Any:
        from scrapy.exceptions import IgnoreRequest
        from scrapy.http import HtmlResponse

        if request.url.endswith("own"):
            return HtmlResponse(request.url, body=b"<h1>own</h1>", encoding="utf-8")
        if request.url.endswith("never"):
            raise IgnoreRequest("as asked")
        return request.replace(url=request.url.replace("old", "new")) if request.url.endswith("old") else None


class Persistent(Shopper):
    """Asks a tired server again, by Scrapy's middleware, its own, and from a callback."""

    name = "persistent"
    custom_settings = {
        "DOWNLOADER_MIDDLEWARES": {Rotating: 400, Answering: 950},
        "RETRY_TIMES": 3,
    }

    async def start(self) -> AsyncIterator[Any]:
        for number in range(6):
            yield Request(self.site.url(f"/weary/{number}"))
            yield Request(self.site.url(f"/captcha/{number}"))
        for name in ("own", "never", "old"):
            yield Request(self.site.url(f"/ok?{name}"), errback=self.ignored)
        yield Request(self.site.url("/redirect?to=/quotes/page/3/"))
        yield Request(
            self.site.url("/redirect?to=/quotes/page/4/"), meta={"dont_redirect": True, "handle_httpstatus_all": True}
        )

    def parse(self, response: Response) -> Iterator[Any]:
        from scrapy.downloadermiddlewares.retry import get_retry_request

        times = response.meta.get("retry_times", 0)
        yield {"url": response.url, "status": response.status, "title": response.css("h1::text").get(), "times": times}
        if "weary" in response.url and times < 3:
            again = get_retry_request(response.request, spider=self, reason="once more", max_retry_times=3)
            assert again is not None
            yield again

    def ignored(self, failure: Failure) -> Iterator[Any]:
        yield {"ignored": type(failure.value).__name__}


class NoRepeats:
    """Drops repeated items, and has something to wait for."""

    def __init__(self) -> None:
        self.had: set[str] = set()

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.001)
        if item["text"] in self.had:
            raise DropItem("known")
        self.had.add(item["text"])
        return item


class Repeated(Shopper):
    """Finds each quote several times, and has the repeats dropped in a pipeline."""

    name = "repeated"
    paths = ("/quotes/", "/quotes/tag/life/page/1/")
    custom_settings = {"ITEM_PIPELINES": {NoRepeats: 300}}

    def parse(self, response: Response) -> Iterator[Any]:
        yield from quotes_of(response)
        yield from response.follow_all(css="a.tag, li.next a")


class Rewriting:
    """Changes the output of a spider, and catches its errors."""

    async def process_spider_output(self, response: Response, result: Any) -> AsyncIterator[Any]:
        async for each in result:
            if isinstance(each, Request):
                yield each.replace(meta={**each.meta, "from": response.meta.get("from", 0) + 1})
            else:
                yield {**each, "from": response.meta.get("from", 0)}

    def process_spider_exception(self, response: Response, exception: Exception) -> Any:
        return [{"raised": str(exception)}, response.follow("/books/book-000/index.html")]


class Rewritten(Shopper):
    """Has a spider middleware that rewrites requests and items, and fails on one page."""

    name = "rewritten"
    custom_settings = {"SPIDER_MIDDLEWARES": {Rewriting: 500}}
    paths = ("/quotes/page/1/",)

    def parse(self, response: Response) -> Iterator[Any]:
        if "/page/5/" in response.url:
            raise ValueError("as asked")
        yield {"url": response.url}
        yield from response.follow_all(css="li.next a")


class AtHome(Shopper):
    """Stays on its own host, and obeys robots.txt."""

    name = "at_home"
    custom_settings = {"ROBOTSTXT_OBEY": True}
    allowed_domains = ["127.0.0.1"]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for path in (
            "http://localhost:9/",
            "/forbidden",
            "/quotes/page/2/",
            "//localhost/x",
            "/redirect?to=http://localhost:9/",
        ):
            yield response.follow(path)


@dataclass
class BookPage:
    """An object that a callback requests by an annotation: its creator, and its other parts."""

    title: str
    style: str

    @classmethod
    async def made(cls, response: Response, crawler: Crawler) -> BookPage:
        """Read a page, and another one for it."""
        home = response.css(".crumbs a::attr(href)").getall()[1]
        other = await crawler.engine.download_async(response.follow(home))
        return cls(response.css("h1::text").get(), other.css("h1::text").get())


class Unread(Response):
    """Says that a callback does not look at its response."""


class Injecting:
    """Provides the annotated arguments of callbacks, and downloads no page that its callback does not use."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Injecting:
        return cls(crawler)

    def process_request(self, request: Request) -> Response | None:
        return Unread(request.url) if "Unread" in self._annotations(request).values() else None

    async def process_response(self, request: Request, response: Response) -> Response:
        for name, wanted in self._annotations(request).items():
            if wanted == "BookPage":
                request.cb_kwargs[name] = await BookPage.made(response, self.crawler)
        return response

    def _annotations(self, request: Request) -> dict[str, str]:
        return (request.callback or self.crawler.spider.parse).__annotations__


class Injected(Shopper):
    """Has its pages read by objects that a middleware makes and passes to its callbacks."""

    name = "injected"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Injecting: 543}}

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("h3 a"):
            yield response.follow(link, self.parse_book, priority=10)
            yield response.follow(link, self.parse_address, dont_filter=True)
        yield from response.follow_all(css="li.next a")

    def parse_book(self, response: Response, page: BookPage) -> Iterator[Any]:
        yield {"title": page.title, "style": page.style}

    def parse_address(self, response: Unread) -> Iterator[Any]:
        yield {"address": response.url}


HABITS = [
    Pages, PagesByAddress, Details, Categories, Authors, Everywhere, Rules, LoginByForm, LoginByRequest, Jars, Scroll, ScrollByPost,
    Sitemaps, Nodes, Covers, Slow, Shallow, PingPong, Awaiting, OwnFilter, OwnFingerprints, Fed, Persistent, Repeated, Rewritten, AtHome,
    Injected,
]  # fmt: skip


class Ran(NamedTuple):
    """The results of a crawl as seen from outside."""

    items: Counter[str]
    sent: Counter[str]  # requests, as the server saw them
    fed: Counter[str]  # lines of the file that FEEDS made
    reason: str
    errors: Counter[str]  # of the log, tracebacks included
    result: Crawled


def ran(
    spider: type[Spider],
    folder: Path,
    settings: dict[str, Any] | None = None,
    *,
    addon: bool = False,
    site: ShopSite | None = None,
) -> Ran:
    """Crawl a site, a new one by default; keep all output of the crawl in a folder."""
    if site is None:
        with ShopSite() as fresh:
            return ran(spider, folder, settings, addon=addon, site=fresh)
    feed = folder / "items.jsonl"
    kept = {
        "FEEDS": {str(feed): {"format": "jsonlines", "overwrite": True}}, "IMAGES_STORE": str(folder / "images"),
        "FILES_STORE": str(folder / "files"), "HTTPCACHE_DIR": str(folder / "cache"), "RETRY_BACKOFF_BASE": 0,
    }  # fmt: skip
    already = len(site.log)
    result = crawl(spider, {**kept, **(settings or {})}, addon=addon, site=site)
    home = site.url("")
    return Ran(
        Counter(str(item).replace(home, "") for item in result.items),
        Counter(f"{seen.method} {seen.path}".replace(home, "") for seen in site.log[already:]),
        Counter(feed.read_text(encoding="utf-8").replace(home, "").splitlines()),
        result.reason,
        Counter(
            record.getMessage().replace(home, "")
            for record in result.records
            if record.levelno >= logging.ERROR or record.exc_info
        ),
        result,
    )
