"""What a crawl shows at the bottom of a terminal."""

from __future__ import annotations

import io
import logging
import sys
from typing import TYPE_CHECKING

from crawls import Follower, crawl

from scrapy_focus.engine.terminal import Footer

if TYPE_CHECKING:
    import pytest
    from mocksite import MockSite


class Terminal(io.StringIO):
    """Replaces the terminal of stderr, 80 columns wide. Created in the test: pytest sets stderr after all fixtures."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        monkeypatch.setattr(sys, "stderr", self)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "80")

    def isatty(self) -> bool:
        return True


def test_log_lines_scroll_above_the_footer(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is shown, log handlers of the terminal write through it; afterwards, all is as it was before."""
    terminal = Terminal(monkeypatch)
    handler, other = logging.StreamHandler(terminal), logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.root, "handlers", [*logging.root.handlers, handler, other])
    footer = Footer()
    footer.start()
    try:
        assert handler.stream is sys.stderr is not terminal
        assert other.stream is not sys.stderr
        footer.show("waiting")
        assert "waiting" in terminal.getvalue()
        assert footer.width == 80
    finally:
        footer.stop()
        footer.stop()
    assert handler.stream is sys.stderr is terminal
    shown = terminal.getvalue()
    assert shown.rfind("\x1b[?25l") < shown.rfind("\x1b[?25h"), "the cursor is back"


def test_a_crawl_shows_a_panel(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``FOCUS_PROGRESS="panel"`` it names the policy that a user chose, and counts requests."""
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr("scrapy_focus.extensions.REFRESH", 0.01)
    chosen = {"FOCUS_PROGRESS": "panel", "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}
    crawl(Follower, chosen, addon=True, seeds=[site.url("/page/0/40")])
    shown = terminal.getvalue()
    assert "scrapy_focus: BreadthFirst" in shown
    assert "request" in shown
    assert "per 100 requests:" in shown
    assert sys.stderr is terminal
