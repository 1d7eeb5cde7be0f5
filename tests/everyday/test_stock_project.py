"""An existing project with one more line in its settings ends and logs as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from everydaycrawls import gets
from everydaysites import DataPortal
from forked import Forked

from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
import scrapy
from scrapy.linkextractors import LinkExtractor


class Sets(scrapy.Spider):
    name = "sets"
    custom_settings = {"ROBOTSTXT_OBEY": True, "RETRY_TIMES": 0}

    def __init__(self, url, items="yes", **kwargs):
        super().__init__(**kwargs)
        self.start_urls, self.items = [url], items == "yes"

    def parse(self, response):
        if self.items and "/resource/" in response.url:
            yield {"url": response.url}
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in LinkExtractor().extract_links(response):
                yield scrapy.Request(link.url)
"""


@pytest.mark.parametrize("line", [pytest.param("", marks=pytest.mark.slow), "scrapy_focus.FocusScheduler"])
@pytest.mark.parametrize("items", ["yes", "no"])
def test_one_line_changes_neither_items_nor_status_nor_requests(line: str, items: str, tmp_path: Path) -> None:
    """Every page is fetched once, no item is missing, and a spider without items exits with Scrapy's 0."""
    (tmp_path / "spider.py").write_text(SPIDER)
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-o", "items.jsonl", "-a", f"items={items}"]
    with SiteServer(DataPortal(5)) as server:
        start = server.url
        words = [*command, "-a", f"url={start}", "-s", "LOG_LEVEL=WARNING"]
        words += ["-s", f"SCHEDULER={line}"] if line else []
        env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
        pipe = subprocess.PIPE
        done = Forked(words, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True)
        _, logged = done.communicate(timeout=HANG)
        asked = gets(server)
    assert done.wait() == 0, logged
    assert "WARNING" not in logged
    found = [json.loads(text)["url"] for text in (tmp_path / "items.jsonl").read_text().splitlines()]
    portal = server.site
    pages = {path.partition("/download/")[0] for path in portal.files} if items == "yes" else set()
    assert {url.removeprefix(start.rstrip("/")) for url in found} >= pages
    assert len(found) == len(set(found))
    assert set(asked.values()) == {1}
    assert {f"/dataset/ds-{number:03}" for number in range(5)} <= set(asked)
