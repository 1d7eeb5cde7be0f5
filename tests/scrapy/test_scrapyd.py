"""Crawls as Scrapyd starts them: a separate process, configured by arguments and settings of the command line only."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from shopsite import ShopSite

from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

SPIDER = """
import scrapy

class Shelves(scrapy.Spider):
    name = "shelves"

    async def start(self):
        self.logger.info("this is job %s", self._job)
        yield scrapy.Request(self.root)

    def parse(self, response):
        for card in response.css("article.product"):
            yield {"title": card.css("h3 a::text").get(), "shelf": self.shelf}
        yield from response.follow_all(css="li.next a")
"""
SETTINGS = {
    "stock": "",
    "scheduler": "SCHEDULER = 'scrapy_focus.FocusScheduler'",
    "addon": "ADDONS = {'scrapy_focus.Addon': 500}",
}
#: Scrapyd's own runner where it is installed; it ends in the same function as the other, which is Scrapy's.
RUNNERS = ["scrapy.cmdline", *(["scrapyd.runner"] if importlib.util.find_spec("scrapyd") else [])]


def project(folder: Path, settings: str) -> Path:
    """Make a project called ``shop`` in a folder."""
    package = folder / "shop"
    package.mkdir()
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = nowhere.settings\nshop = shop.settings\n")
    (package / "__init__.py").write_text("")
    (package / "settings.py").write_text(
        f"SPIDER_MODULES = ['shop.spiders']\nTELNETCONSOLE_ENABLED = False\n{settings}\n"
    )
    (package / "spiders.py").write_text(SPIDER)
    return folder


def start(folder: Path, runner: str, job: str, **arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a spider of the project as Scrapyd's launcher does; ``items``, ``logs`` and ``jobs`` are folders."""
    settings = {
        "LOG_FILE": str(folder / "logs" / f"{job}.log"),
        "FEEDS": json.dumps({(folder / "items" / f"{job}.jl").as_uri(): {"format": "jsonlines"}}),
        "JOBDIR": str(folder / "jobs" / job),
    }
    (folder / "logs").mkdir(exist_ok=True)
    words = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    words += [part for name, value in {"_job": job, **arguments}.items() for part in ("-a", f"{name}={value}")]
    return subprocess.run(
        [sys.executable, "-m", runner, "crawl", "shelves", *words],
        cwd=folder,
        env={**os.environ, "SCRAPY_PROJECT": "shop"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.few(1)
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_spider_runs_under_scrapyd(tmp_path: Path, settings: str, runner: str) -> None:
    """Items are in Scrapyd's folder, the log is in its file and nothing on the screen, the status is 0."""
    folder = project(tmp_path, SETTINGS[settings])
    with ShopSite() as site:
        done = start(folder, runner, "5ef1", root=site.url("/books/"), shelf="left")
    log = (folder / "logs" / "5ef1.log").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "this is job 5ef1" in log
    assert "Traceback" not in log + done.stderr
    assert "Spider closed (finished)" in log
    found = Counter(item["title"] for item in lines(folder / "items" / "5ef1.jl"))
    assert found == Counter(f"The Book of {n}" for n in range(60))
    assert (folder / "jobs" / "5ef1").is_dir()
    assert not done.stdout
    assert runner == "scrapyd.runner" or not done.stderr
