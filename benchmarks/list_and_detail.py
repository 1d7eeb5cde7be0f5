"""Ordinary list-and-detail projects, with the stock scheduler and with ours: how many requests until the items come.

Two synthetic sites are shaped like those used to learn Scrapy: a book shop (400 books, 20 listing pages, 50
categories) and quotes (400 quotes of 60 authors, 40 listing pages, tags). The spiders are of the forms that such
projects have: the next page by its link, all listing pages made by code (before or after the details, or in
``start``), rules, items on the listing pages and beside them. Measured: which request, in the order of the server's
answers, brought the fifth item, half of them, and 90 %; over five seeds of the policy. The stock scheduler has no
seed, but answers arrive in another order each time. Not measured: time. ::

    python benchmarks/list_and_detail.py --seeds 5
    python benchmarks/list_and_detail.py --seeds 5 --in-flight 1 --only books
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import statistics
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOKS, CATEGORIES, ON_A_PAGE = 400, 50, 20
QUOTES, AUTHORS, TAGS, QUOTES_ON_A_PAGE = 400, 60, 40, 10
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "stock": {},
    "SCHEDULER line": {"SCHEDULER": "scrapy_focus.FocusScheduler"},
    "ADDONS line": {"ADDONS": {"scrapy_focus.Addon": 500}},
}


class Books:
    """A book shop: listings with pages, categories, and a page for each book."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self.category = [min(int(rng.paretovariate(0.9)) - 1, CATEGORIES - 1) for _ in range(BOOKS)]
        for number in range(CATEGORIES):
            self.category[number] = number  # none is empty

    def fetch(self, path: str) -> Page:
        if path == "/":
            return self._listing(range(BOOKS), 1, "/catalogue/page-{}.html")
        if found := re.fullmatch(r"/catalogue/page-(\d+)\.html", path):
            return self._listing(range(BOOKS), int(found[1]), "/catalogue/page-{}.html")
        if found := re.fullmatch(r"/catalogue/category/books/c_(\d+)/(?:index|page-(\d+))\.html", path):
            books = [book for book in range(BOOKS) if self.category[book] == int(found[1])]
            return self._listing(books, int(found[2] or 1), f"/catalogue/category/books/c_{found[1]}/page-{{}}.html")
        if (found := re.fullmatch(r"/catalogue/title-(\d+)/index\.html", path)) and int(found[1]) < BOOKS:
            return self._book(int(found[1]))
        return _page("not here", status=404)

    def _listing(self, books: Any, page: int, address: str) -> Page:
        pages = math.ceil(len(books) / ON_A_PAGE)
        shown = list(books)[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
        if not shown:
            return _page("not here", status=404)
        categories = "".join(
            f'<li><a href="/catalogue/category/books/c_{i}/index.html">Category {i}</a></li>' for i in range(CATEGORIES)
        )
        pods = "".join(
            f'<li class="col"><article class="product_pod"><div class="image_container">'
            f'<a href="/catalogue/title-{i}/index.html"><img src="/media/{i}.jpg"></a></div>'
            f'<h3><a href="/catalogue/title-{i}/index.html" title="Title {i}">Title {i}</a></h3>'
            f'<p class="price_color">{i % 60}.50</p></article></li>'
            for i in shown
        )
        follow = f'<li class="next"><a href="{address.format(page + 1)}">next</a></li>' if page < pages else ""
        return _page(
            f'<div class="page"><aside class="sidebar"><ul class="nav"><li><a href="/">Books</a><ul>{categories}</ul>'
            f'</li></ul></aside><section><ol class="row">{pods}</ol><ul class="pager"><li class="current">Page {page} of '
            f"{pages}</li>{follow}</ul></section></div>"
        )

    def _book(self, book: int) -> Page:
        category = self.category[book]
        return _page(
            f'<ul class="breadcrumb"><li><a href="/">Home</a></li><li>'
            f'<a href="/catalogue/category/books/c_{category}/index.html">Category {category}</a></li></ul>'
            f'<article class="product_page"><h1>Title {book}</h1><p class="price_color">{book % 60}.50</p></article>'
        )


class Quotes:
    """Quotes on listing pages, a page for each author, and listings for each tag."""

    def __init__(self) -> None:
        rng = random.Random(2)
        self.author = [rng.randrange(AUTHORS) for _ in range(QUOTES)]
        self.tags = [rng.sample(range(TAGS), 3) for _ in range(QUOTES)]

    def fetch(self, path: str) -> Page:
        found = re.fullmatch(r"/page/(\d+)/", path)
        if path == "/" or found:
            return self._listing(range(QUOTES), int(found[1]) if found else 1, "/page/{}/")
        if found := re.fullmatch(r"/tag/t(\d+)/page/(\d+)/", path):
            quotes = [quote for quote in range(QUOTES) if int(found[1]) in self.tags[quote]]
            return self._listing(quotes, int(found[2]), f"/tag/t{found[1]}/page/{{}}/")
        if (found := re.fullmatch(r"/author/a(\d+)", path)) and int(found[1]) < AUTHORS:
            return _page(f'<div class="author-details"><h3>Author {found[1]}</h3></div><a href="/login">Login</a>')
        return _page("not here", status=404)

    def _listing(self, quotes: Any, page: int, address: str) -> Page:
        shown = list(quotes)[(page - 1) * QUOTES_ON_A_PAGE : page * QUOTES_ON_A_PAGE]
        more = page * QUOTES_ON_A_PAGE < len(quotes)
        rows = "".join(
            f'<div class="quote"><span class="text">Quote {i}</span><span>by {self.author[i]} '
            f'<a href="/author/a{self.author[i]}">(about)</a></span><div class="tags">'
            + "".join(f'<a class="tag" href="/tag/t{tag}/page/1/">t{tag}</a>' for tag in self.tags[i])
            + "</div></div>"
            for i in shown
        )
        follow = f'<li class="next"><a href="{address.format(page + 1)}">Next</a></li>' if more else ""
        top = "".join(
            f'<span class="tag-item"><a class="tag" href="/tag/t{i}/page/1/">t{i}</a></span>' for i in range(9)
        )
        return _page(
            f'<div class="row"><div class="col-md-8">{rows}<nav><ul class="pager">{follow}</ul></nav></div>'
            f'<div class="col-md-4 tags-box">{top}</div></div>'
        )


def _page(body: str, *, status: int = 200) -> Page:
    return Page.of(f"<html><body><div class='container'>{body}</div></body></html>".encode(), status=status)


class _OfSite(scrapy.Spider):
    def __init__(self, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [root]
        self.root = root

    def parse_book(self, response: Any) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get()}

    def parse_author(self, response: Any) -> Iterator[Any]:
        yield {"author": response.css("h3::text").get()}

    def books(self, response: Any) -> Iterator[Any]:
        yield from response.follow_all(css="article.product_pod h3 a", callback=self.parse_book)

    def pages(self, response: Any) -> Iterator[Any]:
        for page in range(2, int(response.css(".current::text").re_first(r"of (\d+)")) + 1):
            yield scrapy.Request(f"{self.root}catalogue/page-{page}.html")


class BooksByNext(_OfSite):
    """Details, then the next page by its link: as in the tutorial of Scrapy."""

    name = "books, next page by its link"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from self.books(response)
        yield from response.follow_all(css="li.next a", callback=self.parse)


class BooksPagesFirst(_OfSite):
    """All listing pages, made by code, then the details."""

    name = "books, pages made by code, then details"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from self.pages(response)
        yield from self.books(response)


class BooksPagesLast(_OfSite):
    """The details, then all listing pages, made by code."""

    name = "books, details, then pages made by code"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from self.books(response)
        yield from self.pages(response)


class BooksFromStart(_OfSite):
    """All listing pages are start requests."""

    name = "books, pages made in start()"

    async def start(self) -> Any:
        for page in range(1, 21):
            yield scrapy.Request(f"{self.root}catalogue/page-{page}.html")

    def parse(self, response: Any) -> Iterator[Any]:
        yield from self.books(response)


class BooksMadeDetails(_OfSite):
    """Details made by code, too: their numbers are in an attribute."""

    name = "books, pages and details made by code"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from self.pages(response)
        for number in response.css("article h3 a::attr(title)").re(r"\d+"):
            yield scrapy.Request(f"{self.root}catalogue/title-{number}/index.html", self.parse_book)


class BooksByCategory(_OfSite):
    """Categories, their pages, and the details."""

    name = "books, categories, next, details"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from response.follow_all(css="aside ul ul a", callback=self.parse_category)

    def parse_category(self, response: Any) -> Iterator[Any]:
        yield from self.books(response)
        yield from response.follow_all(css="li.next a", callback=self.parse_category)


class BooksByRules(CrawlSpider):
    """Three rules."""

    name = "books, three rules"
    rules = (
        Rule(LinkExtractor(restrict_css="aside")),
        Rule(LinkExtractor(restrict_css="li.next")),
        Rule(LinkExtractor(restrict_css="h3"), callback="parse_book"),
    )

    def __init__(self, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [root]

    def parse_book(self, response: Any) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get()}


class QuotesByNext(_OfSite):
    """Items on the listing pages, one behind the other."""

    name = "quotes on pages, next by its link"

    def parse(self, response: Any) -> Iterator[Any]:
        for quote in response.css(".quote .text::text").getall():
            yield {"quote": quote}
        yield from response.follow_all(css="li.next a", callback=self.parse)


class QuotesMade(_OfSite):
    """Items on the listing pages, which are made by code, and on those of the authors."""

    name = "quotes on pages made by code, and authors"

    def parse(self, response: Any) -> Iterator[Any]:
        for quote in response.css(".quote .text::text").getall():
            yield {"quote": quote}
        for page in range(2, 41):
            yield scrapy.Request(f"{self.root}page/{page}/")
        yield from response.follow_all(css=".quote span a", callback=self.parse_author)


class Authors(_OfSite):
    """Items on the pages of the authors only."""

    name = "authors of quotes, next by its link"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from response.follow_all(css=".quote span a", callback=self.parse_author)
        yield from response.follow_all(css="li.next a", callback=self.parse)


class AuthorsMade(Authors):
    """The same, with the listing pages made by code."""

    name = "authors of quotes, pages made by code"

    def parse(self, response: Any) -> Iterator[Any]:
        for page in range(2, 41):
            yield scrapy.Request(f"{self.root}page/{page}/")
        yield from response.follow_all(css=".quote span a", callback=self.parse_author)


class AuthorsAndTags(Authors):
    """Items on the pages of the authors; tags are followed, too."""

    name = "authors of quotes, tags and next followed"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from response.follow_all(css=".quote span a", callback=self.parse_author)
        yield from response.follow_all(css="a.tag, li.next a", callback=self.parse)


SPIDERS: dict[type[scrapy.Spider], type[Any]] = {
    BooksByNext: Books, BooksPagesFirst: Books, BooksPagesLast: Books, BooksFromStart: Books, BooksMadeDetails: Books,
    BooksByCategory: Books, BooksByRules: Books, QuotesByNext: Quotes, QuotesMade: Quotes, Authors: Quotes,
    AuthorsMade: Quotes, AuthorsAndTags: Quotes,
}  # fmt: skip


async def crawl(spider: type[scrapy.Spider], root: str, settings: dict[str, Any]) -> list[str]:
    """Return the URLs of the pages that gave items."""
    runner = AsyncCrawlerRunner(settings)
    crawler = runner.create_crawler(spider)
    urls: list[str] = []

    def on_item(item: Any, response: Any) -> None:
        urls.append(response.url)

    crawler.signals.connect(on_item, signals.item_scraped)
    await runner.crawl(crawler, root=root)
    return urls


def marks(numbers: list[int]) -> tuple[int, int, int]:
    """Return the numbers of the fifth item, of the one that makes half of them, and 90 %."""
    return numbers[4], numbers[math.ceil(len(numbers) / 2) - 1], numbers[math.ceil(0.9 * len(numbers)) - 1]


def measure(spider: type[scrapy.Spider], settings: dict[str, Any], latency: float = 0.0) -> tuple[int, ...]:
    """Run one crawl, and return its marks and the number of its items."""
    usual = {
        "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "TWISTED_REACTOR_ENABLED": False,
        "LOG_ENABLED": False, "DOWNLOAD_DELAY": 0, "FOCUS_PROGRESS": "off",
    }  # fmt: skip
    with SiteServer(SPIDERS[spider](), latency=latency) as server:
        urls = asyncio.run(crawl(spider, server.url, {**usual, **settings}))
        first: dict[str, int] = {}
        for number, request in enumerate(server.log, 1):
            first.setdefault(request.path, number)
    return (*marks(sorted(first[urlsplit(url).path] for url in urls)), len(urls))


def main() -> int:
    """Print a line of JSON for each crawl, then a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=8, help="requests at once (default: 8, as in Scrapy)")
    parser.add_argument("--only", default="", help="a regular expression of the names of spiders")
    parser.add_argument("--without", default="", help="a configuration to skip")
    args = parser.parse_args()
    rows = []
    for spider in (each for each in SPIDERS if re.search(args.only, each.name)):
        cells = []
        for configuration in (each for each in CONFIGURATIONS if each != args.without):
            ours = CONFIGURATIONS[configuration]
            given = {**ours, "CONCURRENT_REQUESTS_PER_DOMAIN": args.in_flight}
            seeds = [{**given, "FOCUS_SEED": seed} if ours else given for seed in range(args.seeds)]
            found = [measure(spider, settings, 0.005) for settings in seeds]
            for seed, (*at, items) in enumerate(found):
                said = {"spider": spider.name, "settings": configuration, "seed": seed, "at": at, "items": items}
                print(json.dumps(said), flush=True)
            assert len({items for *_, items in found}) == 1, "the items differ"
            cells.append(" / ".join(f"{statistics.mean(each):.0f}" for each in list(zip(*found, strict=True))[:3]))
        rows.append(f"| {spider.name} | {' | '.join(cells)} |")
    print("\n| spider | " + " | ".join(each for each in CONFIGURATIONS if each != args.without) + " |")
    print("|---|" + "--:|" * (len(CONFIGURATIONS) - bool(args.without)))
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
