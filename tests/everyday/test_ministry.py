"""A list filled by a script: without a browser a message says so, with a browser it is read completely."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest
from everydaycrawls import CHROMIUM, check_page, manifest, run
from everydaysites import Ministry

from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from pathlib import Path

HAS_BROWSER = importlib.util.find_spec("scrapy_playwright") is not None and CHROMIUM is not None


def test_without_a_browser_it_says_what_may_be_missing(tmp_path: Path) -> None:
    """The last line and the page say so, with the command that installs a browser."""
    with SiteServer(Ministry()) as server:
        done = run(tmp_path, "files", server.url, "--types", "pdf", "-s", "FOCUS_RENDER=never")
    assert done.status == 0
    assert len(manifest(tmp_path / "found")) == 1
    shown = check_page(tmp_path / "found")
    for text in (done.last, shown):
        assert "1 page may show more in a browser" in text
        assert "scrapy-focus[playwright]" in text


@pytest.mark.skipif(not HAS_BROWSER, reason="needs scrapy-playwright and Debian's chromium")
def test_with_a_browser_all_of_it_is_found(tmp_path: Path) -> None:
    """Each click loads ten reports."""
    with SiteServer(Ministry()) as server:
        done = run(tmp_path, "files", server.url, "--types", "pdf")
    assert done.status == 0
    assert len(manifest(tmp_path / "found")) == 96
    check_page(tmp_path / "found")
