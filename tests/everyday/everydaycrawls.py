"""Runs commands as a user would, to check their output, exit status, files and requests."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from forked import Forked
from parsel import Selector

from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus.lab.sites.server import SiteServer

#: Without delays between requests and without retries, to save time.
FAST = ("-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0")
#: One request at a time, so that crawls are repeatable.
IN_TURN = ("-s", "CONCURRENT_REQUESTS=1", "-s", "FOCUS_MAX_INFLIGHT=1", "-s", "FOCUS_SEED=0")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Done(NamedTuple):
    """A command that has ended."""

    status: int
    said: str  # on standard output
    logged: str  # on standard error

    @property
    def last(self) -> str:
        """The last line of its output."""
        return [line for line in [*self.said.splitlines(), *self.logged.splitlines()] if line.strip()][-1]


def run(folder: Path, *words: str, fast: bool = True) -> Done:
    """Run ``python -m scrapy_focus`` in a folder to its end, without a traceback."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    command = [sys.executable, "-m", "scrapy_focus", *words, *(FAST if fast else ())]
    process = Forked(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, logged = process.communicate(timeout=HANG)
    assert "Traceback" not in said + logged
    return Done(process.wait(), said, logged)


def manifest(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a manifest."""
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def gets(server: SiteServer) -> Counter[str]:
    """Return the number of GET requests for each path, without robots.txt."""
    return Counter(seen.path for seen in server.log if seen.method == "GET" and seen.path != "/robots.txt")


def text_of(page: Path) -> str:
    """Return the text of a page of results, with single spaces, without scripts and styles."""
    texts = Selector(page.read_text(encoding="utf-8")).xpath("//body//text()[not(parent::script or parent::style)]")
    return " ".join(" ".join(texts.getall()).split())


def check_page(folder: Path) -> str:
    """Return the text of a folder's page: it loads and runs nothing from a site, and has no local path.

    If Playwright and a browser are installed, open it at two widths, in light and dark.
    """
    page = folder / "index.html"
    source = page.read_text(encoding="utf-8")
    assert "<script>alert" not in source
    assert not Selector(source).xpath("//*[@onerror]")
    assert str(folder.resolve().parent) not in source
    for problem in _problems_in_a_browser(page):
        raise AssertionError(problem)
    return text_of(page)


def _problems_in_a_browser(page: Path) -> Iterator[str]:
    """Yield errors and side effects of a page in a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if CHROMIUM is None:
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for width in (400, 1280):
            for scheme in ("light", "dark"):
                shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                yield from _problems_shown(shown, page.resolve().as_uri(), width)
                shown.close()
        browser.close()


def _problems_shown(shown: Any, url: str, width: int) -> list[str]:
    """Open a page, and return its problems."""
    did: list[str] = []
    shown.on("dialog", lambda dialog: did.append(f"a dialog: {dialog.message}"))
    shown.on("pageerror", lambda error: did.append(f"an error: {error}"))
    shown.on("request", lambda request: did.append(f"a request: {request.url}"))
    shown.goto(url)
    did.remove(f"a request: {url}")
    if shown.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        did.append(f"it is wider than {width} pixels")
    return did
