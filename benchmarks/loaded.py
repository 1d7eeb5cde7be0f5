"""What a crawl loads of this package: ``python benchmarks/loaded.py``.

Two small crawls run in separate processes, on a site that they serve themselves: a stock spider with one settings
line, and a loop with the default policy and a frontier in memory, without Scrapy. The files of this package that were
imported by then are counted, with their lines.
"""

from __future__ import annotations

import subprocess
import sys

ONE_LINE = """
from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
class Following(Spider):
    name = "following"
    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
with SiteServer(StatisticsPortal(pages=200, seed=0)) as site:
    Following.start_urls = [site.url]
    process = CrawlerProcess({"SCHEDULER": "scrapy_focus.FocusScheduler", "LOG_ENABLED": False, "CLOSESPIDER_PAGECOUNT": 20})
    process.crawl(Following)
    process.start()
"""
LOOP = """
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.types import Link, Outcome
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.policies.branching.policy import BranchingBandit
crawl = Crawl(BranchingBandit(), frontier=memory_frontier)
crawl.add([Link("http://a.test/", 1, "a.test", 0)])
crawl.report(Outcome(crawl.next(), status=200))
"""
COUNT = """
lab = ("scrapy_focus.lab",)
files = {
    module.__file__ for name, module in list(sys.modules.items())
    if name.startswith("scrapy_focus") and not name.startswith(lab) and getattr(module, "__file__", None)
}
print(len(files), sum(len(open(path).readlines()) for path in files))
"""


def main() -> None:
    """Run both, and print what each loaded."""
    for name, code in (("one settings line", ONE_LINE), ("loop, default policy, memory", LOOP)):
        command = [sys.executable, "-W", "ignore", "-c", f"import sys\n{code}\n{COUNT}"]
        files, lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-2:]
        print(f"{name}: {int(lines):,} lines in {files} files")


if __name__ == "__main__":
    main()
