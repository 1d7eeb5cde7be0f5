"""Fixtures and marks of tests that crawl, for the ``conftest.py`` of their folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crawls import REACTOR
from mocksite import MockSite
from scrapy.core.engine import ExecutionEngine

from scrapy_focus.engine import garbage

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "reactor: run with a Twisted reactor too, see test_reactor.py")
    config.addinivalue_line("markers", "both: run by default with the scheduler alone and with the add-on")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what is the same with the add-on and without once by default, with the add-on: most other crawls of tests
    have the scheduler alone. With a reactor, that is all.
    """
    given = [(item, getattr(item, "callspec", None)) for item in items]
    twice = [
        item for item, spec in given if spec is not None and spec.params.get("addon") is False and _has_addon(item)
    ]
    if REACTOR:
        config.hook.pytest_deselected(items=twice)
        items[:] = [item for item in items if item not in twice]
    for item in twice:
        if item.get_closest_marker("both") is None:
            item.add_marker(pytest.mark.slow)


def _has_addon(item: pytest.Item) -> bool:
    """Whether a test has a case for every value of ``addon``."""
    return any("addon" in mark.args[:1] and len(mark.args[1]) > 1 for mark in item.iter_markers("parametrize"))


@pytest.fixture(autouse=True)
def _fast_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 0.1)


@pytest.fixture(autouse=True)
def _no_freeze(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Freezing and thawing the heap of hundreds of tests for each crawl makes Python collect all of it repeatedly."""
    if "freeze" not in request.node.name:
        monkeypatch.setattr(garbage, "freeze", lambda **_: None)


@pytest.fixture
def site() -> Iterator[MockSite]:
    with MockSite() as running:
        yield running
