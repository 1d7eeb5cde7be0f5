"""Draws the moving picture of the README: the panel of a real crawl of the bundled portal, as an animated SVG.

::

    python benchmarks/panel_picture.py docs/_static/panel.svg
"""

from __future__ import annotations

import argparse
import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from scrapy import signals
from scrapy.crawler import CrawlerProcess

from scrapy_focus.engine.finds import Finds
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.progress import Speed, View, draw_panel
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.spiders import polite
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

BUDGET = 1000
BETWEEN = 50  # requests between two frames
SECONDS = 0.6  # that a frame stays ...
LAST = 4  # ... and the last one as many times as long
WIDTH = 92  # columns

frames: list[str] = []


class Frames:
    """Draws the panel after every so many responses."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.finds, self.speed, self.n = Finds(), Speed(0.0), 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.opened, signals.spider_opened)
        crawler.signals.connect(extension.received, signals.response_received)
        crawler.signals.connect(extension.draw, signals.spider_idle)
        return extension

    def opened(self, spider: Spider) -> None:
        host = host_of(self.crawler)
        assert host is not None
        host.features.on("settled", self.finds.note, name="picture")

    def received(self) -> None:
        self.n += 1
        if self.n % BETWEEN == 1:
            self.draw()

    def draw(self) -> None:
        host = host_of(self.crawler)
        assert host is not None
        view = View(host, self.finds, self.speed, "Ctrl-C stops; the same command resumes.")
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(draw_panel(view, WIDTH))
        frames.append(console.export_svg(title=f"focus files URL --budget {BUDGET}"))


def crawl() -> None:
    """Crawl the portal once."""
    settings: dict[str, Any] = {name: value for name, value in vars(polite).items() if name.isupper()}
    settings |= {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DOWNLOAD_DELAY": 0, "FOCUS_SEED": 0, "FOCUS_PROGRESS": "off",
        "LOG_ENABLED": False, "EXTENSIONS": {Frames: 900}, "TELNETCONSOLE_ENABLED": False,
    }  # fmt: skip
    with SiteServer(StatisticsPortal(pages=2000, seed=0)) as server, tempfile.TemporaryDirectory() as out:
        process = CrawlerProcess(settings)
        process.crawl(DatasetsSpider, root=server.url, out=out, budget=str(BUDGET))
        process.start()


def animated(pictures: list[str]) -> str:
    """Return one SVG that shows some of equal width one after the other, again and again."""
    height = max(float(found[1]) for each in pictures if (found := re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', each)))
    sizes = [float(found[1]) for each in pictures if (found := re.search(r'viewBox="0 0 ([\d.]+) ', each))]
    total, share = SECONDS * (len(pictures) - 1 + LAST), 100 * SECONDS
    rules = [f".frame {{ visibility: hidden; animation: {total:.1f}s infinite; }}"]
    for i in range(len(pictures)):
        start = share * i / total
        end = 100 if i == len(pictures) - 1 else share * (i + 1) / total
        before = "" if not i else "0% { visibility: hidden } "
        after = "" if end == 100 else f"{end:.2f}% {{ visibility: hidden }}"
        rules.append(f"@keyframes f{i} {{ {before}{start:.2f}% {{ visibility: visible }} {after} }}")
        rules.append(f".f{i} {{ animation-name: f{i}; animation-timing-function: step-end; }}")
    rules.append(f".f{len(pictures) - 1} {{ visibility: visible; }}")
    rules.append("@media (prefers-reduced-motion) { .frame { animation: none } }")
    font = re.compile(r"@font-face \{.*?\}", re.DOTALL)
    at_top = '<svg preserveAspectRatio="xMidYMin" '  # frames differ in height
    shown = [
        f'<g class="frame f{i}">{font.sub("", each).replace("<svg ", at_top, 1)}</g>' for i, each in enumerate(pictures)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {sizes[0]:g} {height:g}" role="img">'
    title = (
        "<title>The panel of a crawl, from its first request to its last: it learns which links lead to files</title>"
    )
    return "\n".join([head, title, "<style>", *rules, "</style>", *shown, "</svg>", ""])


def main() -> None:
    """Crawl, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    crawl()
    out.write_text(animated(frames), encoding="utf-8")
    print(f"{len(frames)} frames, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
