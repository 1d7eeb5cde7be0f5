"""Pages read from the API behind them, on each kind of API: are their links those that a browser shows? Live crawls.

The synthetic scripted site, with one API of each make and shape: 8 lists of 12 datasets, 104 pages that need a browser.
The default policy with the add-on, 8 requests at once. Measured: pages that a browser fetched, and pages read from the
API; of the links of the latter, how many the site shows on that page, or on any where the API named its next answer
(precision); how many of those that it shows there are among them, but for those of the plain page and of the first page
(recall); requests of the API; requests that were answered 404; files got that no page shows; files got. Not measured:
other sites. It needs scrapy-playwright and a Chromium. ::

    python benchmarks/api_rules.py --seeds 5
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse

from scrapy_focus.lab.sites.scripted.plan import MAKES, SHAPES, Api, Mix
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer

MIX = Mix(lists=2, app_lists=8, per_app_list=12, collections=0, news=0, exports=0)


def site_of(make: str, shape: str, seed: int) -> ScriptedSite:
    """Return a site with one API."""
    return ScriptedSite(mix=MIX, seed=seed, apis=[Api(make, shape)])  # type: ignore[arg-type]


class Compared(scrapy.Spider):
    """Follows all links, and compares those of pages that were read from an API with what the site shows."""

    name = "compared"

    def __init__(self, root: str, site: ScriptedSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [root]
        self.site = site
        self.everything = {link for path in site.html_paths() for link in site.rendered_links(path)}
        self.found: Counter[str] = Counter()

    def parse(self, response: Any) -> Any:
        if not isinstance(response, HtmlResponse):
            return
        yield from response.follow_all(css="a[href]")
        if "focus_api" not in response.flags:
            return
        path = urlsplit(response.url).path
        query = urlsplit(response.url).query
        path = f"{path}?{query}" if query else path
        plain = {*self.site.plain_links(path), *self.site.plain_links("/")}
        rendered = self.everything if path.startswith("/api/") else set(self.site.rendered_links(path))
        shown = rendered - plain
        made = {urlsplit(response.urljoin(href)) for href in response.css("a:not(.api-next)::attr(href)").getall()}
        links = {f"{each.path}?{each.query}" if each.query else each.path for each in made}
        self.found.update(pages=1, made=len(links), right=len(links & (shown | plain)))
        if rendered is not self.everything:
            self.found.update(shown=len(shown), of_shown=len(links & shown))


def crawl(root: str, make: str, shape: str, seed: int) -> None:
    """Crawl a site in this process, and print what came of it."""
    settings = {
        "ADDONS": {"scrapy_focus.Addon": 500}, "FOCUS_TARGETS": "csv", "FOCUS_PROGRESS": "off", "FOCUS_SEED": seed,
        "LOG_LEVEL": "ERROR", "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False,
    }  # fmt: skip
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Compared)
    process.crawl(crawler, root=root, site=site_of(make, shape, seed))
    process.start()
    assert isinstance(crawler.spider, Compared)
    stats = crawler.stats.get_stats()
    print(json.dumps({**crawler.spider.found, "rendered": stats.get("focus/browser/read", 0)}))


def run(make: str, shape: str, seed: int) -> Counter[str]:
    """Crawl a site that is served here in a process of its own."""
    site = site_of(make, shape, seed)
    with SiteServer(site) as server:
        asked = [sys.executable, __file__, "--crawl", server.url, make, shape, str(seed)]
        done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
        served = list(server.log)
    found: Counter[str] = Counter(json.loads(done.stdout.strip().splitlines()[-1]))
    targets = set(site.targets())
    found["files"] = len({each.path for each in served if each.status == 200} & targets)
    found["there"] = len(targets)
    found["missing"] = sum(each.status == 404 for each in served)
    found["calls"] = sum(each.path.startswith("/api/") for each in served)
    needless = {each.path for each in served if site.kind_of(each.path) is None and each.path.startswith("/files/")}
    found["unshown"] = len(needless - targets)
    return found


def share(part: int, whole: int) -> str:
    """Return a share, or a dash where there is nothing to have one of."""
    return f"{part / whole:.3f}" if whole else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--make", nargs="+", default=MAKES, choices=MAKES)
    parser.add_argument("--shape", nargs="+", default=SHAPES, choices=SHAPES)
    options = parser.parse_args()
    print("| make, shape | rendered | from the API | precision | recall | calls | answers 404 | unshown | files |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    all_of: dict[str, Counter[str]] = defaultdict(Counter)
    for make in options.make:
        for shape in options.shape:
            total = all_of[f"{make}, {shape}"]
            for seed in range(options.first, options.first + options.seeds):
                total.update(run(make, shape, seed))
            n = options.seeds
            print(
                f"| {make}, {shape} | {total['rendered'] / n:.0f} | {total['pages'] / n:.0f} "
                f"| {share(total['right'], total['made'])} | {share(total['of_shown'], total['shown'])} "
                f"| {total['calls'] / n:.0f} | {total['missing'] / n:.1f} | {total['unshown'] / n:.1f} "
                f"| {total['files'] / n:.0f} of {total['there'] / n:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        crawl(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
