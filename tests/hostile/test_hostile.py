"""Hostile sites, crawled by each spider: the good is found, and memory, CPU, requests and everything written have bounds.

``table.py`` prints the same as a table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hostilecrawls import Nursery, crawl, serve_all, unprintable
from scenarios import SCENARIOS, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from faultserver import FaultServer

#: The scenarios of the default run: the fast ones of each kind of fault.
DEFAULT = {
    "resets", "endless_body", "zstd_bombs", "codings", "charsets", "cookies", "redirects", "refreshes", "calendar", "comments",
    "long_text", "huge_hrefs", "dispositions", "robots_html", "sitemaps", "come_back",
}  # fmt: skip


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with serve_all() as running:
        yield running


def each() -> Iterator[object]:
    """Yield every scenario with each of its spiders; in the default run with the first, or each in turn."""
    assert {scenario.name for scenario in SCENARIOS} >= DEFAULT
    for n, scenario in enumerate(SCENARIOS):
        for spider in scenario.spiders:
            default = scenario.spiders[0 if scenario.once else n % len(scenario.spiders)]
            slow = scenario.name not in DEFAULT or spider != default
            yield pytest.param(
                scenario, spider, id=f"{spider}-{scenario.name}", marks=[pytest.mark.slow] if slow else []
            )


@pytest.mark.few(6)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "spider"), list(each()))
def test_a_hostile_site_keeps_a_crawl_within_bounds(
    scenario: Scenario, spider: str, nursery: Nursery, server: FaultServer, tmp_path: Path
) -> None:
    """All of the good part is found, in less than 300 MB; nothing is asked for beyond the budget or the site, nothing
    written outside of ``out`` or unprintable. A page takes 0.5 s of CPU at most, and our code holds the loop for 100 ms:
    ``table.py`` says so, and here it may be ten times as much, for a machine that has other things to do.
    """
    crawled = crawl(nursery, server, scenario, spider, tmp_path / "crawl")
    assert not server.errors
    assert crawled.held, "nothing of ours was measured"
    assert not crawled.failures(noise=10.0)


def test_the_panel_shows_no_escape_sequence_of_a_site(nursery: Nursery, server: FaultServer, tmp_path: Path) -> None:
    """On a terminal, the only control sequences are those that move the panel and colour the log."""
    [names] = [scenario for scenario in SCENARIOS if scenario.name == "names"]
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "300"}
    crawled = crawl(nursery, server, names, "datasets", tmp_path / "crawl", terminal, FOCUS_PROGRESS="panel")
    shown = (crawled.folder / "stderr").read_text(encoding="utf-8", errors="surrogateescape")
    assert "best kinds of links" in shown
    assert "\x1b[31mRED" not in shown
    assert not unprintable(re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", shown))


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["\x1b[31m", "\x9b31m", "a\rb", "\u202e", "\u2028", "\x7f", "\udc9b"])
def test_what_is_unprintable(text: str) -> None:
    """What moves a cursor, turns the direction of writing or ends a line is unprintable; letters and line ends are not."""
    assert unprintable(text)
    assert not unprintable("Bienen, 蜜蜂 und نحل\n\tb\u0308\n")
