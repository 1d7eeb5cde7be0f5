"""Small crawls, each of which shows one thing that a project expects of Scrapy's scheduler.

``python -m contract.cases CASE MODE FOLDER`` runs one of them, with ``stock``, ``scheduler`` or ``addon`` as the mode,
and prints what was seen as a line of JSON. ``scheduler_contract.py`` runs them all, and compares. A crawl that does
not end is stopped after ``LONGEST`` seconds, also where nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import CloseSpider, DontCloseSpider

from contract import parts
from contract.site import Site

LONGEST = 100  # seconds
CASES = {}
CASE, MODE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])  # spiders need the URL when their class is made
SITE = Site()
URL = SITE.url
SEEN = {}
ITEMS = []
#: Beginnings of the names of Scrapy's stats that are compared.
STATS = (
    "scheduler/", "dupefilter", "item_", "spider_ex", "retry", "request_depth", "downloader/request_count",
    "downloader/response_status",
)  # fmt: skip


def case(function):
    """Make a function a case, under its own name."""
    CASES[function.__name__] = function
    return function


class Records(logging.Handler):
    """Keeps warnings, and what the package logs."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        """Keep the beginning of a record."""
        if record.levelno >= logging.WARNING or record.name.startswith("scrapy_focus"):
            self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()[:300]}")
            if record.exc_info and record.exc_info[1] is not None:
                self.lines.append("    " + repr(record.exc_info[1])[:200])


def settings(**more):
    """Return the settings of a project, with the line that the mode adds to it."""
    project = {
        "LOG_LEVEL": "INFO",
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "LOG_FILE": str(FOLDER / "log.txt"),
        "DOWNLOAD_DELAY": 0,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CLOSESPIDER_TIMEOUT": 40,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    }
    if MODE in ("scheduler", "addon"):
        project["SCHEDULER"] = "scrapy_focus.FocusScheduler"
        project["FOCUS_SEED"] = 1
    if MODE == "addon":
        project["ADDONS"] = {"scrapy_focus.Addon": 500}
    return project | more


def collect(item):
    """Keep an item."""
    ITEMS.append(item)


def run(*spiders, process=CrawlerProcess, **more):
    """Crawl, note how it ended, and return the crawlers."""
    crawls = process(settings(**more))
    records = Records()
    logging.getLogger().addHandler(records)
    crawlers = []
    for spider in spiders:
        crawler = crawls.create_crawler(spider)
        crawlers.append(crawler)
        crawler.signals.connect(collect, signals.item_scraped, weak=False)
        crawls.crawl(crawler)
    started = time.time()
    crawls.start()
    SEEN["seconds"] = round(time.time() - started, 1)
    SEEN["log"] = records.lines
    stats = [crawler.stats.get_stats() for crawler in crawlers]
    SEEN["reason"] = [each.get("finish_reason") for each in stats]
    SEEN["stats"] = {name: count for name, count in stats[0].items() if name.startswith(STATS)}
    return crawlers


def is_logged(*words):
    """Whether a record has one of these in it."""
    return any(word in line for line in SEEN["log"] for word in words)


def rate():
    """Return the requests a second."""
    return round(len(SITE.log) / (SITE.log[-1][0] - SITE.log[0][0]), 1)


def count_signals(crawler, names):
    """Count these signals from now on."""
    SEEN["signals"] = Counter()
    for name in names.split():

        def count(*args, name=name, **kwargs):
            SEEN["signals"][name] += 1

        crawler.signals.connect(count, getattr(signals, name), weak=False)


class Tree(Spider):
    """Follows all links of a tree of 40 pages, and makes an item of each page."""

    name = "s"
    start_urls = [URL + "/n/0"]

    def parse(self, response):
        yield {"url": response.url}
        for a in response.css("a"):
            yield response.follow(a)


# ---------------------------------------------------------------- order


@case
def priority():
    class Own(Tree):
        async def start(self):
            for i in range(12):
                yield Request(f"{URL}/p/{i}", priority=i % 4)

    run(Own, CONCURRENT_REQUESTS=1)
    SEEN["paths"] = SITE.paths()


@case
def priority_from_callback():
    class Own(Tree):
        start_urls = [URL + "/x"]

        def parse(self, response):
            for i in range(12):
                yield Request(f"{URL}/p/{i}", callback=self.other, priority=i)

        def other(self, response):
            pass

    run(Own, CONCURRENT_REQUESTS=1)
    SEEN["paths"] = SITE.paths()


@case
def focus_request_priority():
    class Own(Tree):
        start_urls = [URL + "/x"]

        def parse(self, response):
            for i in range(12):
                yield Request(f"{URL}/p/{i}", callback=self.other, priority=i)

        def other(self, response):
            pass

    run(Own, CONCURRENT_REQUESTS=1, FOCUS_REQUEST_PRIORITY=True)
    SEEN["paths"] = SITE.paths()


@case
def sequential_chain():
    """Each of four sessions has three steps, and later steps a higher priority."""

    class Own(Tree):
        async def start(self):
            for i in range(4):
                yield Request(f"{URL}/login/{i}", callback=self.a, cb_kwargs={"i": i})

        def a(self, response, i):
            yield Request(f"{URL}/b/{i}", callback=self.b, cb_kwargs={"i": i}, priority=10)

        def b(self, response, i):
            yield Request(f"{URL}/c/{i}", callback=self.c, cb_kwargs={"i": i}, priority=20)

        def c(self, response, i):
            yield {"i": i}

    run(Own, CONCURRENT_REQUESTS=1)
    SEEN["paths"] = SITE.paths()


@case
def lifo_fifo_default():
    """No setting about the order, and one request at a time."""
    run(Tree, CONCURRENT_REQUESTS=1)
    SEEN["paths"] = SITE.paths()


@case
def bfo_settings():
    """The settings that Scrapy's documentation gives for breadth-first order."""
    run(
        Tree,
        CONCURRENT_REQUESTS=1,
        DEPTH_PRIORITY=1,
        SCHEDULER_DISK_QUEUE="scrapy.squeues.PickleFifoDiskQueue",
        SCHEDULER_MEMORY_QUEUE="scrapy.squeues.FifoMemoryQueue",
        SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue",
    )
    SEEN["paths"] = SITE.paths()


@case
def start_order():
    """Start requests that have links of their own."""

    class Own(Tree):
        async def start(self):
            for i in range(30):
                yield Request(f"{URL}/n/0?k=2&most=3&s={i}")

    run(Own, CONCURRENT_REQUESTS=1)
    SEEN["paths"] = SITE.paths()


@case
def scheduler_empty_docs():
    """Start requests that wait for ``scheduler_empty``, as Scrapy's documentation has it for lazy ones."""
    SEEN["empties"] = 0

    class Own(Tree):
        async def start(self):
            self.crawler.signals.connect(self.empty, signals.scheduler_empty)
            for i in range(6):
                if self.crawler.engine.needs_backout() or i:
                    await self.crawler.signals.wait_for(signals.scheduler_empty)
                yield Request(f"{URL}/n/0?k=3&most=10&s={i}&slow=0.02", dont_filter=True)

        def empty(self):
            SEEN["empties"] += 1

    run(Own, CONCURRENT_REQUESTS=4)
    SEEN["starts_at"] = [i for i, p in enumerate(SITE.paths()) if p.startswith("/n/0?")]
    SEEN["paths"] = len(SITE.paths())


@case
def start_lazy_pull():
    """How many start requests are taken from ``start()`` before the n-th request is sent."""
    pulled = []

    class Own(Tree):
        async def start(self):
            for i in range(300):
                pulled.append((i, len(SITE.log)))
                yield Request(f"{URL}/n/0?k=2&most=3&s={i}&slow=0.005", dont_filter=True)

    run(Own, CONCURRENT_REQUESTS=4)
    SEEN["pulled_when_sent"] = {str(n): sum(1 for _, sent in pulled if sent <= n) for n in (0, 10, 50, 100, 200, 400)}
    SEEN["requests"] = len(SITE.log)


# ---------------------------------------------------------------- dupes


@case
def dont_filter():
    """The same page again, with ``dont_filter`` and without."""

    class Own(Tree):
        start_urls = [URL + "/x", URL + "/x", URL + "/x"]

        def parse(self, response):
            n = response.meta.get("n", 0)
            if n < 3:
                yield Request(response.url, dont_filter=True, meta={"n": n + 1})
                yield Request(response.url, meta={"n": n + 1})
            yield {"n": n}

    run(Own)
    SEEN["paths"] = Counter(SITE.paths())
    SEEN["items"] = Counter(str(i["n"]) for i in ITEMS)


@case
def start_dupes_filtered():
    """Start requests that are the same, or the same but for a fragment or the order of a query."""

    class Own(Tree):
        async def start(self):
            for _ in range(3):
                yield Request(URL + "/x")
            yield Request(URL + "/x#frag")
            yield Request(URL + "/x?b=1&a=2")
            yield Request(URL + "/x?a=2&b=1")

    class Listening(Own):
        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            count_signals(
                crawler,
                "request_scheduled request_dropped request_reached_downloader request_left_downloader "
                "response_received bytes_received spider_idle scheduler_empty",
            )
            return super().from_crawler(crawler, *args, **kwargs)

    run(Listening)
    SEEN["paths"] = SITE.paths()


@case
def signals_of_tree():
    """Pages link back to known ones."""

    class Listening(Tree):
        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            count_signals(
                crawler,
                "request_scheduled request_dropped request_reached_downloader request_left_downloader "
                "response_received response_downloaded headers_received spider_idle item_scraped spider_opened "
                "engine_started engine_stopped spider_closed",
            )
            return super().from_crawler(crawler, *args, **kwargs)

        def parse(self, response):
            yield from super().parse(response)
            yield response.follow("/n/0")
            yield response.follow("/n/1")

    run(Listening)
    SEEN["paths"] = len(SITE.paths())


@case
def own_fingerprinter():
    """A fingerprinter that leaves out the query, and takes in a header."""

    class Own(Tree):
        start_urls = [URL + "/n/0"]

        def parse(self, response):
            for i in range(5):
                yield Request(f"{URL}/same?i={i}", headers={"X-A": str(i)})
            for i in range(5):
                yield Request(f"{URL}/head", headers={"X-A": str(i)})

    run(Own, REQUEST_FINGERPRINTER_CLASS="contract.parts.Fingerprinter")
    SEEN["paths"] = Counter(SITE.paths())


@case
def fingerprint_meta():
    """A fingerprinter that takes in a value of meta."""

    class Own(Tree):
        def parse(self, response):
            for i in range(5):
                yield Request(f"{URL}/head", headers={"X-A": str(i)}, meta={"fp": i})

    run(Own, REQUEST_FINGERPRINTER_CLASS="contract.parts.MetaFingerprinter")
    SEEN["paths"] = Counter(SITE.paths())


@case
def own_dupefilter():
    """A dupefilter that only knows paths."""

    class Own(Tree):
        def parse(self, response):
            for i in range(5):
                yield Request(f"{URL}/same?i={i}")

    run(Own, DUPEFILTER_CLASS="contract.parts.PathDupeFilter")
    SEEN["paths"] = Counter(SITE.paths())


@case
def subclass_of_rfp():
    """A subclass of RFPDupeFilter that lets no more than four requests pass."""

    class Own(Tree):
        def parse(self, response):
            for i in range(5):
                yield Request(f"{URL}/same?i={i}")
                yield Request(f"{URL}/same?i={i}")

    run(Own, DUPEFILTER_CLASS="contract.parts.CountingRFP")
    SEEN["paths"] = Counter(SITE.paths())


@case
def base_dupefilter():
    """A dupefilter that filters nothing."""

    class Own(Tree):
        def parse(self, response):
            for _ in range(3):
                yield Request(f"{URL}/same", callback=self.leaf)

        def leaf(self, response):
            pass

    run(Own, DUPEFILTER_CLASS="scrapy.dupefilters.BaseDupeFilter")
    SEEN["paths"] = Counter(SITE.paths())


@case
def dupefilter_debug():
    class Own(Tree):
        def parse(self, response):
            for _ in range(3):
                yield Request(f"{URL}/same", callback=self.leaf)

        def leaf(self, response):
            pass

    run(Own, DUPEFILTER_DEBUG=True, LOG_LEVEL="DEBUG")
    text = (FOLDER / "log.txt").read_text()
    SEEN["lines"] = [
        line.partition("] ")[2].replace(URL, "") for line in text.splitlines() if "Filtered duplicate" in line
    ]


# ---------------------------------------------------------------- idle, outside, engine


def idle_feed(n, wait, batch=1):
    class Own(Tree):
        start_urls = []
        fed, lag, idles = 0, [], 0

        async def start(self):
            return
            yield

        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.idle, signals.spider_idle)
            spider.ready = time.time() + wait
            return spider

        def idle(self):
            self.idles += 1
            SEEN["idles"] = self.idles
            if self.fed < n:
                if time.time() >= self.ready:
                    for j in range(batch):
                        self.crawler.engine.crawl(
                            Request(f"{URL}/q/{self.fed}/{j}", callback=self.got, cb_kwargs={"t": time.time()})
                        )
                    self.fed += 1
                    self.ready = time.time() + wait
                raise DontCloseSpider

        def got(self, response, t):
            self.lag.append(round(time.time() - t, 2))
            SEEN["lag"] = [min(self.lag), max(self.lag)]
            yield {"u": response.url}

    return Own


@case
def idle_slow_queue():
    """Requests that come from outside every two seconds while the spider is idle."""
    run(idle_feed(4, 2.0))
    SEEN["items"] = len(ITEMS)


@case
def idle_fast_queue():
    """The next twenty requests come whenever the spider is idle, as with scrapy-redis."""
    run(idle_feed(5, 0.0, batch=20))
    SEEN["items"] = len(ITEMS)


@case
def feeder_task():
    """A task of the spider adds requests at any time, while the spider is kept open."""

    class Own(Tree):
        async def start(self):
            self.crawler.signals.connect(self.idle, signals.spider_idle)
            self.n = 0
            self.lag = []
            self.task = asyncio.ensure_future(self.feed())
            return
            yield

        async def feed(self):
            for i in range(20):
                await asyncio.sleep(0.1)
                self.crawler.engine.crawl(Request(f"{URL}/q/{i}", callback=self.got, cb_kwargs={"t": time.time()}))
            self.n = 20

        def idle(self):
            if self.n < 20:
                raise DontCloseSpider

        def got(self, response, t):
            self.lag.append(round(time.time() - t, 2))
            SEEN["lag"] = [min(self.lag), max(self.lag)]
            yield {"u": 1}

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def idle_close_reason():
    """A listener of ``spider_idle`` closes the spider with a reason of its own."""

    class Own(Tree):
        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.idle, signals.spider_idle)
            return spider

        def idle(self):
            raise CloseSpider("my_reason")

    run(Own)


@case
def close_in_callback():
    class Own(Tree):
        def parse(self, response):
            yield from super().parse(response)
            if response.url.endswith("/5"):
                raise CloseSpider("enough")

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def start_infinite():
    """``start()`` never ends, and waits a little after each request."""

    class Own(Tree):
        async def start(self):
            i = 0
            while True:
                i += 1
                yield Request(f"{URL}/i/{i}")
                await asyncio.sleep(0.01)

    run(Own, CLOSESPIDER_PAGECOUNT=50)
    SEEN["requests"] = len(SITE.log)


@case
def start_flood():
    """``start()`` never waits; it has an end here, as without one no crawl ends, not even Scrapy's own."""

    class Own(Tree):
        async def start(self):
            for i in range(20_000):
                SEEN["pulled"] = i + 1
                yield Request(f"{URL}/i/{i}?slow=0.005")

    run(Own, CLOSESPIDER_PAGECOUNT=50, CONCURRENT_REQUESTS=4)
    SEEN["requests"] = len(SITE.log)


class Many(Tree):
    """The same on a site of 400 pages that takes some time for each."""

    start_urls = [URL + "/n/0?k=5&most=400&slow=0.01"]


@case
def close_itemcount():
    run(Many, CLOSESPIDER_ITEMCOUNT=20, CONCURRENT_REQUESTS=4)
    SEEN["items"], SEEN["requests"] = len(ITEMS), len(SITE.log)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def close_pagecount():
    run(Many, CLOSESPIDER_PAGECOUNT=20, CONCURRENT_REQUESTS=4)
    SEEN["items"], SEEN["requests"] = len(ITEMS), len(SITE.log)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def close_timeout():
    class Own(Many):
        start_urls = [URL + "/n/0?k=5&most=4000&slow=0.2"]

    run(Own, CLOSESPIDER_TIMEOUT=2, CONCURRENT_REQUESTS=2)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def close_timeout_no_item():
    class Own(Many):
        start_urls = [URL + "/n/0?k=5&most=4000&slow=0.2"]

        def parse(self, response):
            yield from response.follow_all(css="a")

    run(Own, CLOSESPIDER_TIMEOUT_NO_ITEM=2, CONCURRENT_REQUESTS=2)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def close_errorcount():
    class Own(Many):
        def parse(self, response):
            yield from response.follow_all(css="a")
            raise ValueError("x")

    run(Own, CLOSESPIDER_ERRORCOUNT=5, CONCURRENT_REQUESTS=2)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def close_pagecount_no_item():
    class Own(Many):
        def parse(self, response):
            yield from response.follow_all(css="a")

    run(Own, CLOSESPIDER_PAGECOUNT_NO_ITEM=10, CONCURRENT_REQUESTS=2)
    SEEN["requests"] = len(SITE.log)
    SEEN["says_done"] = is_logged(": Done", "try another start URL")


@case
def pause_unpause():
    """Nothing is sent while the engine is paused, and all of it afterwards."""

    class Own(Many):
        start_urls = [URL + "/n/0?k=5&most=60&slow=0.01"]
        done = False

        def parse(self, response):
            yield from super().parse(response)
            if not self.done and len(SITE.log) > 10:
                self.done = True
                self.crawler.engine.pause()
                asyncio.get_event_loop().call_later(2, self.go)

        def go(self):
            SEEN["sent"] = len(SITE.log)
            SEEN["seconds_without_requests"] = round(time.time() - max(when for when, *_ in SITE.log))
            self.crawler.engine.unpause()

    run(Own, CONCURRENT_REQUESTS=2)
    SEEN["items"] = len(ITEMS)


@case
def engine_download():
    """A callback downloads pages by itself, past the scheduler."""

    class Own(Tree):
        async def parse(self, response):
            r = await self.crawler.engine.download_async(Request(URL + "/echo?a=1", meta=response.meta))
            r2 = await self.crawler.engine.download_async(response.request.replace(url=URL + "/echo?a=2"))
            r3 = await self.crawler.engine.download_async(Request(URL + "/redirect?to=/echo2"))
            yield {"a": r.url, "b": r2.url, "c": r3.url, "s": [r.status, r2.status, r3.status]}
            for a in response.css("a"):
                yield response.follow(a)

    run(Own)
    SEEN["items"] = len(ITEMS)
    SEEN["paths"] = Counter(p.split("?")[0].split("/")[1] for p in SITE.paths())


@case
def engine_download_in_start():
    class Own(Tree):
        async def start(self):
            r = await self.crawler.engine.download_async(Request(URL + "/n/0"))
            for a in r.css("a::attr(href)").getall():
                yield Request(URL + a)

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def crawl_in_spider_opened():
    class Own(Tree):
        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.opened, signals.spider_opened)
            return spider

        def opened(self, spider):
            self.crawler.engine.crawl(Request(URL + "/extra", callback=self.parse))

    run(Own)
    SEEN["extra"] = "/extra" in SITE.paths()
    SEEN["items"] = len(ITEMS)


@case
def scheduler_api():
    """What monitors and telnet read of Scrapy's scheduler beyond BaseScheduler."""

    class Own(Tree):
        def parse(self, response):
            if "api" not in SEEN:
                from scrapy.utils.engine import get_engine_status

                scheduler = self.crawler.engine.scheduler
                api = {}
                for name, get in {
                    "len": lambda: len(scheduler),
                    "df": lambda: type(scheduler.df).__name__,
                    "df.fingerprints": lambda: len(scheduler.df.fingerprints),
                    "df.request_seen": lambda: scheduler.df.request_seen(Request(URL + "/n/1")),
                    "mqs": lambda: len(scheduler.mqs),
                    "dqs": lambda: scheduler.dqs,
                    "stats": lambda: bool(scheduler.stats),
                    "has_pending_requests": scheduler.has_pending_requests,
                    "bool(scheduler)": lambda: bool(scheduler),
                    "spider": lambda: scheduler.spider.name,
                    "crawler": lambda: scheduler.crawler is self.crawler,
                }.items():
                    try:
                        api[name] = get()
                    except Exception as error:
                        api[name] = type(error).__name__
                SEEN["api"] = api
                SEEN["est"] = {
                    name: str(value) for name, value in get_engine_status(self.crawler.engine) if "scheduler" in name
                }
            yield from super().parse(response)

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def enqueue_directly():
    """A callback gives requests to the scheduler itself."""

    class Own(Tree):
        def parse(self, response):
            yield {"u": response.url}
            if response.url.endswith("/n/0"):
                for i in range(5):
                    self.crawler.engine.scheduler.enqueue_request(Request(f"{URL}/d/{i}", callback=self.parse))

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def several_crawlers():
    """Two crawls in one process, at the same time."""

    class A(Tree):
        name = "a"

    class B(Tree):
        name = "b"
        start_urls = [URL + "/n/0?b=1"]

    run(A, B)
    SEEN["items"] = len(ITEMS)


@case
def sequential_runner():
    """Three crawls in one process, one after the other."""
    from scrapy.crawler import AsyncCrawlerRunner
    from scrapy.utils.reactor import install_reactor

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")

    async def main():
        for i in range(3):

            class Own(Tree):
                start_urls = [URL + f"/n/0?x={i}"]

            runner = AsyncCrawlerRunner(settings())
            crawler = runner.create_crawler(Own)
            crawler.signals.connect(collect, signals.item_scraped, weak=False)
            await runner.crawl(crawler)

    from scrapy.utils.defer import deferred_from_coro
    from twisted.internet.task import react

    try:
        react(lambda reactor: deferred_from_coro(main()))
    except SystemExit as ending:
        SEEN["exit"] = ending.code
    SEEN["items"] = len(ITEMS)


@case
def select_reactor():
    run(Tree, TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor")
    SEEN["items"] = len(ITEMS)


@case
def select_reactor_delay():
    run(Tree, TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor", DOWNLOAD_DELAY=0.05)
    SEEN["items"] = len(ITEMS)


@case
def no_reactor():
    """Scrapy without Twisted's reactor."""
    run(Tree, process=AsyncCrawlerProcess, TWISTED_REACTOR_ENABLED=False)
    SEEN["items"] = len(ITEMS)


@case
def uvloop():
    run(Tree, ASYNCIO_EVENT_LOOP="uvloop.Loop")
    SEEN["items"] = len(ITEMS)


# ---------------------------------------------------------------- downloader, politeness


@case
def concurrency():
    class Own(Many):
        start_urls = [URL + "/n/0?k=8&most=120&slow=0.05"]

    run(Own, CONCURRENT_REQUESTS=16, CONCURRENT_REQUESTS_PER_DOMAIN=5)
    SEEN["most"] = SITE.most
    SEEN["rate"] = rate()


@case
def delay():
    run(Tree, DOWNLOAD_DELAY=0.1)
    SEEN["rate"] = rate()


@case
def autothrottle():
    class Own(Many):
        start_urls = [URL + "/n/0?k=5&most=60&slow=0.05"]

    run(Own, AUTOTHROTTLE_ENABLED=True, AUTOTHROTTLE_START_DELAY=0.05, AUTOTHROTTLE_TARGET_CONCURRENCY=2.0)
    SEEN["rate"] = rate()


@case
def download_slots():
    """DOWNLOAD_SLOTS gives one slot a delay."""

    class Own(Tree):
        def parse(self, response):
            for i in range(6):
                yield Request(f"{URL}/slow/{i}", callback=self.leaf, meta={"download_slot": "slow"})
                yield Request(f"{URL}/fast/{i}", callback=self.leaf, meta={"download_slot": "fast"})

        def leaf(self, response):
            yield {"slot": response.meta["download_slot"]}

    run(
        Own,
        DOWNLOAD_SLOTS={
            "slow": {"concurrency": 1, "delay": 0.3, "randomize_delay": False},
            "fast": {"concurrency": 4, "delay": 0},
        },
    )
    slow = [t for t, _, p, _ in SITE.log if p.startswith("/slow")]
    SEEN["slow_gap"] = round(min(b - a for a, b in pairwise(slow)), 2)
    SEEN["fast_done_before_slow"] = max(t for t, _, p, _ in SITE.log if p.startswith("/fast")) < slow[2]
    SEEN["items"] = len(ITEMS)


@case
def per_ip():
    """No more than two requests to an address at once, with a queue and a reactor that keep to it in Scrapy, too."""

    class Own(Many):
        start_urls = [URL + "/n/0?k=5&most=60&slow=0.02"]

    run(
        Own,
        CONCURRENT_REQUESTS_PER_IP=2,
        SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue",
        TWISTED_REACTOR="twisted.internet.selectreactor.SelectReactor",
    )
    SEEN["most"] = SITE.most
    SEEN["rate"] = rate()


@case
def depth_limit():
    run(Tree, DEPTH_LIMIT=2, DEPTH_STATS_VERBOSE=True)
    SEEN["items"] = len(ITEMS)


# ---------------------------------------------------------------- requests


def kinds_spider():
    from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest

    class Own(Tree):
        async def start(self):
            yield JsonRequest(URL + "/echo", data={"a": 1}, callback=self.got)
            yield XmlRpcRequest(URL + "/echo", params=("x",), methodname="m", callback=self.got)
            yield FormRequest(URL + "/echo", formdata={"a": "b"}, callback=self.got)
            yield parts.MyRequest(URL + "/echo?mine", extra=5, callback=self.got)
            yield Request(URL + "/echo?c", cookies={"k": "v"}, flags=["f"], callback=self.got)
            yield Request(URL + "/echo?list", cb_kwargs={"more": [1, 2, {"a": (1, 2)}]}, callback=self.got)
            yield Request(URL + "/echo?put", method="PUT", body="bytes", callback=self.got)
            yield Request(URL + "/echo?enc", body="\u00e4", encoding="latin-1", method="POST", callback=self.got)

        def got(self, response, more=None):
            r = response.request
            d = json.loads(response.text)
            yield {
                "cls": type(r).__name__,
                "extra": getattr(r, "extra", None),
                "method": d["method"],
                "body": d["body"][:30],
                "ct": d["headers"].get("Content-Type"),
                "cookie": d["headers"].get("Cookie"),
                "flags": r.flags,
                "more": more,
                "enc": r.encoding,
            }

    return Own


@case
def kinds():
    """Requests of all classes, methods, bodies and encodings arrive as they were made."""
    run(kinds_spider())
    SEEN["items"] = sorted(json.dumps(i, sort_keys=True) for i in ITEMS)


@case
def kinds_jobdir():
    """The same where requests are stored."""
    run(kinds_spider(), JOBDIR=str(FOLDER / "job"))
    SEEN["items"] = sorted(json.dumps(i, sort_keys=True) for i in ITEMS)


def lambda_spider():
    class Own(Tree):
        def parse(self, response):
            for i in range(4):
                yield Request(f"{URL}/l/{i}", callback=lambda r, i=i: [{"i": i}])

            def nested(response):
                yield {"i": "nested"}

            yield Request(f"{URL}/nested", callback=nested)
            file = Path(__file__).open()  # noqa: SIM115
            yield Request(f"{URL}/lock", callback=self.lock, meta={"lock": asyncio.Lock(), "file": file})

        def lock(self, response):
            yield {"i": type(response.meta["lock"]).__name__}

    return Own


@case
def lambdas():
    """Callbacks and meta that cannot be serialized."""
    run(lambda_spider())
    SEEN["items"] = sorted(str(i["i"]) for i in ITEMS)


@case
def lambdas_jobdir():
    """The same where requests are stored."""
    run(lambda_spider(), JOBDIR=str(FOLDER / "job"))
    SEEN["items"] = sorted(str(i["i"]) for i in ITEMS)


@case
def callback_of_other_object():
    """Callbacks are methods of an object that is not the spider."""

    class Helper:
        def __init__(self, spider):
            self.spider = spider

        def parse(self, response):
            yield {"helper": response.url}

    class Own(Tree):
        def parse(self, response):
            h = Helper(self)
            for i in range(3):
                yield Request(f"{URL}/h/{i}", callback=h.parse)

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def meta_mutated_later():
    """A request is changed after it was yielded."""

    class Own(Tree):
        def parse(self, response):
            reqs = [Request(f"{URL}/m/{i}", callback=self.got, meta={"n": 0}, cb_kwargs={"k": 0}) for i in range(5)]
            yield from reqs
            for r in reqs:
                r.meta["n"] = 7
                r.cb_kwargs["k"] = 8
                r.headers["X-Late"] = "1"
            self.reqs = reqs

        def got(self, response, k):
            yield {
                "n": response.meta["n"],
                "k": k,
                "same": any(response.request is r for r in self.reqs),
                "h": "X-Late" in response.request.headers,
            }

    run(Own)
    SEEN["items"] = Counter(json.dumps(i) for i in ITEMS)


@case
def meta_identity():
    """Callbacks share a list in meta."""

    class Own(Tree):
        def parse(self, response):
            shared = []
            for i in range(5):
                yield Request(f"{URL}/m/{i}", callback=self.got, meta={"shared": shared})

        def got(self, response):
            response.meta["shared"].append(response.url)
            if len(response.meta["shared"]) == 5:
                yield {"all": 5}

    run(Own)
    SEEN["items"] = ITEMS


@case
def meta_visible():
    """What a callback finds in meta, whether it is JSON, and what becomes of it when it is passed on."""

    class Own(Tree):
        def parse(self, response):
            SEEN.setdefault("meta_keys", sorted(map(str, response.meta)))
            SEEN.setdefault("flags", response.flags)
            SEEN.setdefault("errback", repr(response.request.errback))
            try:
                SEEN.setdefault("json", len(json.dumps(response.meta)) > 0)
                timeless = {name: value for name, value in response.meta.items() if name != "download_latency"}
                SEEN.setdefault("values", {str(name): repr(value) for name, value in timeless.items()})
            except Exception as e:
                SEEN.setdefault("json", repr(e))
            yield {"u": response.url, "meta_keys": sorted(map(str, response.meta))}
            for a in response.css("a::attr(href)").getall():
                yield Request(response.urljoin(a), meta=response.meta)

    run(Own)
    SEEN["items"] = len(ITEMS)
    SEEN["meta_of_last"] = ITEMS[-1]["meta_keys"]


@case
def meta_as_item():
    """A project writes meta to its feeds."""

    class Own(Tree):
        def parse(self, response):
            yield dict(response.meta)
            yield from response.follow_all(css="a")

    run(
        Own,
        FEEDS={
            str(FOLDER / "o.jsonl"): {"format": "jsonlines", "overwrite": True},
            str(FOLDER / "o.csv"): {"format": "csv", "overwrite": True},
        },
    )
    SEEN["first"] = sorted(json.loads((FOLDER / "o.jsonl").read_text().splitlines()[0]))
    SEEN["header"] = (FOLDER / "o.csv").read_text().splitlines()[0]


@case
def errbacks():
    """Errors of HTTP, of connections, of callbacks and of an errback."""

    class Own(Tree):
        async def start(self):
            yield Request(URL + "/status/404", callback=self.ok, errback=self.err, cb_kwargs={"x": 1})
            yield Request(URL + "/status/500", callback=self.ok, errback=self.err)
            yield Request("http://127.0.0.1:1/refused", callback=self.ok, errback=self.err)
            yield Request("http://127.0.0.1:1/refused2", callback=self.ok, errback=self.err_again)
            yield Request(URL + "/boom", callback=self.boom, errback=self.err)

        def ok(self, response, x=None):
            yield {"ok": response.url}

        def boom(self, response):
            raise ValueError("boom")

        def err(self, failure):
            yield {
                "err": failure.type.__name__,
                "meta": sorted(failure.request.meta),
                "cb": getattr(failure.request.errback, "__name__", None),
                "kw": failure.request.cb_kwargs,
            }

        def err_again(self, failure):
            yield Request(URL + "/n/39", callback=self.ok, dont_filter=True)
            raise RuntimeError("in errback")

    run(Own, RETRY_TIMES=1)
    SEEN["items"] = sorted(json.dumps(i) for i in ITEMS)


@case
def retry_from_callback():
    """Retries that callbacks ask for have a priority that the project did not set; the log must not say that it did."""
    from scrapy.downloadermiddlewares.retry import get_retry_request

    class Own(Tree):
        start_urls = [URL + "/n/0?most=4"]

        def parse(self, response):
            r = get_retry_request(response.request, spider=self, reason="empty", max_retry_times=2)
            if r:
                yield r
                return
            yield {"u": response.url, "t": response.meta.get("retry_times")}
            yield from response.follow_all(css="a")

    run(Own)
    SEEN["items"] = Counter(str(i["t"]) for i in ITEMS)
    SEEN["paths"] = Counter(SITE.paths())
    SEEN["says_priority"] = is_logged("Request.priority")


@case
def flaky():
    """Pages that answer when they are asked for the third time."""

    class Own(Tree):
        def parse(self, response):
            for i in range(6):
                yield Request(f"{URL}/flaky/{i}?fails=2", callback=self.got)

        def got(self, response):
            yield {"t": response.meta["retry_times"], "p": response.request.priority}

    run(Own)
    SEEN["items"] = Counter(json.dumps(i) for i in ITEMS)


@case
def redirects():
    """Redirects to new, known and redirected pages."""

    class Own(Tree):
        def parse(self, response):
            yield Request(URL + "/redirect?to=/t1", callback=self.got)
            yield Request(URL + "/redirect?to=/t1&x=2", callback=self.got)
            yield Request(URL + "/t1", callback=self.got)
            yield Request(URL + "/redirect?to=/n/0", callback=self.got)
            yield Request(URL + "/redirect?to=/redirect%3Fto%3D/t2", callback=self.got)
            yield Request(URL + "/redirect?to=/t3&df", callback=self.got, dont_filter=True)
            yield Request(URL + "/redirect?to=/t3", callback=self.got, dont_filter=True)
            yield Request(URL + "/redirect?to=/redirect?to=/loop", callback=self.got)

        def got(self, response):
            yield {
                "u": response.url.replace(URL, ""),
                "r": [u.replace(URL, "") for u in response.meta.get("redirect_urls", [])],
            }

    run(Own, CONCURRENT_REQUESTS=1)
    SEEN["items"] = sorted(json.dumps(i) for i in ITEMS)
    SEEN["paths"] = sorted(SITE.paths())


@case
def splash_like():
    """A downloader middleware replaces each request once, as that of scrapy-splash."""

    run(Tree, DOWNLOADER_MIDDLEWARES={"contract.parts.ReplaceOnce": 725})
    SEEN["items"] = len(ITEMS)
    SEEN["replaced"] = Counter(path.count("via=splash") for path in SITE.paths())


@case
def ban_retry():
    """A downloader middleware sends banned requests again, as that of scrapy-rotating-proxies."""

    class Own(Tree):
        def parse(self, response):
            yield {"t": response.meta.get("tries")}
            for i in range(4):
                yield Request(f"{URL}/flaky/{i}?fails=3", callback=self.got)

        def got(self, response):
            yield {"t": response.meta.get("tries")}

    run(Own, RETRY_ENABLED=False, DOWNLOADER_MIDDLEWARES={"contract.parts.BanRetry": 560})
    SEEN["items"] = Counter(str(i["t"]) for i in ITEMS)


@case
def cached_by_middleware():
    """A downloader middleware answers every other request."""
    run(Tree, DOWNLOADER_MIDDLEWARES={"contract.parts.Cache": 50})
    SEEN["items"], SEEN["requests"] = len(ITEMS), len(SITE.log)


@case
def ignore_in_middleware():
    """A downloader middleware drops some requests."""
    run(Tree, DOWNLOADER_MIDDLEWARES={"contract.parts.IgnoreSome": 50})
    SEEN["items"], SEEN["requests"] = len(ITEMS), len(SITE.log)


@case
def spider_middlewares():
    """A spider middleware sees all that goes by."""
    run(Tree, SPIDER_MIDDLEWARES={"contract.parts.CountingMiddleware": 10}, LOG_LEVEL="INFO")
    SEEN["items"], SEEN["requests"] = len(ITEMS), len(SITE.log)
    SEEN["mw"] = parts.CountingMiddleware.seen


@case
def dedup_seen_by_outer_middleware():
    """The same where pages link back to known ones."""

    class Own(Tree):
        def parse(self, response):
            yield from super().parse(response)
            yield response.follow("/n/0")
            yield response.follow("/n/1")

    run(Own, SPIDER_MIDDLEWARES={"contract.parts.CountingMiddleware": 10})
    SEEN["mw"] = parts.CountingMiddleware.seen


@case
def async_callbacks():
    """Callbacks wait between the requests that they yield."""

    class Own(Tree):
        async def parse(self, response):
            await asyncio.sleep(0.02)
            for a in response.css("a"):
                await asyncio.sleep(0.01)
                yield response.follow(a)
            yield {"u": response.url}

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def async_long_callback():
    """A callback yields requests over five seconds."""

    class Own(Tree):
        async def parse(self, response):
            for i in range(5):
                yield Request(f"{URL}/w/{i}", callback=self.leaf, cb_kwargs={"t": time.time()})
                await asyncio.sleep(1)

        def leaf(self, response, t):
            yield {"lag": round(time.time() - t, 1)}

    run(Own)
    SEEN["lags"] = [i["lag"] for i in ITEMS]


@case
def exceptions():
    """A callback fails halfway through its links."""

    class Own(Tree):
        def parse(self, response):
            yield {"u": response.url}
            for n, a in enumerate(response.css("a")):
                yield response.follow(a)
                if n == 1:
                    raise ValueError("half")

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def items_from_start():
    """``start()`` yields an item, too."""

    class Own(Tree):
        async def start(self):
            yield {"from": "start"}
            yield Request(URL + "/n/0")

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def custom_settings():
    """A spider that asks for Scrapy's own scheduler gets it."""
    schedulers = []

    class Own(Tree):
        custom_settings = {"CONCURRENT_REQUESTS": 1, "SCHEDULER": "scrapy.core.scheduler.Scheduler"}

        def parse(self, response):
            schedulers.append(self.crawler.engine.scheduler)
            yield from super().parse(response)

    run(Own)
    SEEN["scheduler"] = type(schedulers[0]).__name__
    SEEN["items"] = len(ITEMS)


@case
def update_settings():
    """A spider changes settings in ``update_settings``."""

    class Own(Tree):
        @classmethod
        def update_settings(cls, settings):
            super().update_settings(settings)
            settings.set("DOWNLOAD_DELAY", 0.01, priority="spider")
            settings["DEPTH_LIMIT"] = 1

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def queue_settings_said():
    """Settings that name queues which do not exist."""
    run(
        Tree,
        SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue",
        SCHEDULER_DISK_QUEUE="no.such.Queue",
        SCHEDULER_MEMORY_QUEUE="no.such.Queue2",
        SCHEDULER_DEBUG=True,
    )
    SEEN["items"] = len(ITEMS)


@case
def stop_by_crawler():
    """A callback has the crawler stop."""

    class Own(Many):
        is_stopped = False

        def parse(self, response):
            yield from super().parse(response)
            if len(SITE.log) >= 20 and not self.is_stopped:
                from scrapy.utils.defer import deferred_from_coro

                self.is_stopped = True
                deferred_from_coro(self.crawler.stop_async())

    run(Own, CONCURRENT_REQUESTS=2)
    SEEN["requests"] = len(SITE.log)


@case
def media_pipeline():
    class Own(Tree):
        def parse(self, response):
            yield {"file_urls": [f"{URL}/file/{response.url.split('/')[-1]}.bin"]}
            yield from response.follow_all(css="a")

    run(Own, ITEM_PIPELINES={"scrapy.pipelines.files.FilesPipeline": 1}, FILES_STORE=str(FOLDER / "files"))
    SEEN["items"] = len(ITEMS)
    SEEN["files"] = sum(len(i["files"]) for i in ITEMS)


@case
def periodic_log():
    run(
        Many,
        PERIODIC_LOG_STATS=True,
        PERIODIC_LOG_DELTA=True,
        PERIODIC_LOG_TIMING_ENABLED=True,
        LOGSTATS_INTERVAL=0.2,
        EXTENSIONS={"scrapy.extensions.periodic_log.PeriodicLog": 0},
        CLOSESPIDER_PAGECOUNT=60,
    )
    text = (FOLDER / "log.txt").read_text()
    SEEN["lines"] = text.count("periodic_log")


@case
def stats_keys():
    """The names of Scrapy's stats."""
    crawlers = run(Tree)
    SEEN["keys"] = sorted(name for name in crawlers[0].stats.get_stats() if not name.startswith("focus/"))


@case
def stats_keys_jobdir():
    """The same with JOBDIR."""
    crawlers = run(Tree, JOBDIR=str(FOLDER / "job"))
    SEEN["keys"] = sorted(name for name in crawlers[0].stats.get_stats() if not name.startswith("focus/"))


@case
def memusage():
    """The crawl is closed before its first request; the log must not blame the start URLs for it."""
    run(Many, MEMUSAGE_ENABLED=True, MEMUSAGE_LIMIT_MB=1, MEMUSAGE_CHECK_INTERVAL_SECONDS=0.2, LOGSTATS_INTERVAL=0)
    SEEN["untrue_line"] = is_logged("no start URL was given")


@case
def frontier_of_hosts():
    """Ten hosts, by way of a proxy."""

    class Own(Tree):
        start_urls = [URL + "/n/0"]

        def parse(self, response):
            for i in range(40):
                yield Request(f"http://h{i % 10}.test/x/{i}?slow=0.05", meta={"proxy": URL}, callback=self.leaf)

        def leaf(self, response):
            yield {"u": response.url}

    run(Own, CONCURRENT_REQUESTS=16, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    SEEN["items"] = len(ITEMS)
    SEEN["most"] = SITE.most


@case
def callback_none_and_noparse():
    """Requests without a callback, and with NO_CALLBACK."""
    from scrapy.http.request import NO_CALLBACK

    class Own(Tree):
        def parse(self, response):
            yield {"u": response.url}
            for i in range(3):
                yield Request(f"{URL}/y/{i}")
            yield Request(f"{URL}/nocb", callback=NO_CALLBACK)

    run(Own)
    SEEN["items"] = len(ITEMS)


@case
def subclass_stock_scheduler():
    """A project has a scheduler of its own, which the add-on must leave alone."""
    run(Tree, SCHEDULER="contract.parts.MyScheduler")
    SEEN["mine"] = parts.MyScheduler.asked > 0
    SEEN["items"] = len(ITEMS)


@case
def generator_of_requests():
    """All of 10,000 requests of one callback are placed."""

    class Own(Tree):
        def parse(self, response):
            for i in range(10000):
                yield Request(f"{URL}/big/{i}", callback=self.leaf)

        def leaf(self, response):
            yield {"i": 1}

    run(Own, CLOSESPIDER_PAGECOUNT=300)


@case
def download_maxsize_and_timeout():
    """Limits of single requests, set in meta."""

    class Own(Tree):
        async def start(self):
            yield Request(URL + "/n/0?slow=3", meta={"download_timeout": 0.5}, errback=self.err)
            yield Request(URL + "/n/0?k=30&most=40", meta={"download_maxsize": 10}, errback=self.err)

        def err(self, failure):
            yield {"e": failure.type.__name__}

    run(Own, RETRY_ENABLED=False)
    SEEN["items"] = sorted(i["e"] for i in ITEMS if "e" in i)


@case
def unhashable_and_none_meta():
    """Keys and values of meta that JSON does not know."""

    class Own(Tree):
        def parse(self, response):
            yield Request(
                URL + "/a", meta={"d": {"x": [1]}, 5: "int key", None: 1, "t": (1, 2), "s": {1, 2}}, callback=self.got
            )
            yield Request(URL + "/b", meta={"item": {"a": 1}}, callback=self.got, cb_kwargs={"x": object()})

        def got(self, response, x=None):
            m = response.meta
            yield {
                "ok": m.get(5) == "int key" and m.get(None) == 1 and m.get("t") == (1, 2) and m.get("s") == {1, 2}
                if "d" in m
                else type(x).__name__
            }

    run(Own)
    SEEN["items"] = sorted(str(i["ok"]) for i in ITEMS)


@case
def dataclass_items_and_subclasses_in_meta():
    """Objects in meta keep their classes."""

    class Own(Tree):
        def parse(self, response):
            for i in range(3):
                yield Request(
                    f"{URL}/dc/{i}",
                    meta={"item": parts.Thing("a", i), "o": parts.IntSub(3), "st": parts.StrSub("x")},
                    callback=self.got,
                )

        def got(self, response):
            m = response.meta
            yield {"t": [type(m["item"]).__name__, type(m["o"]).__name__, type(m["st"]).__name__]}

    run(Own)
    SEEN["items"] = Counter(json.dumps(i) for i in ITEMS)


if __name__ == "__main__":
    if hasattr(signal, "alarm"):
        signal.alarm(LONGEST)
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        CASES[CASE]()
    except BaseException as error:
        SEEN["raised"] = repr(error)[:500]
    print(json.dumps(SEEN, default=str))
    sys.stdout.flush()
    os._exit(0)  # threads of the site do not matter
