"""What the tests of crawls share with those of crawls in one process."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scrapy"))

from mocksite import MockSite
from scrapy.core.engine import ExecutionEngine

from scrapy_focus.engine import garbage
from tests.cluster.local import NearEngine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _fast_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 0.1)


@pytest.fixture(autouse=True)
def _no_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "freeze", lambda **_: None)


@pytest.fixture(autouse=True)
def _no_leaders() -> Iterator[None]:
    """Leave no leader to the next test."""
    yield
    NearEngine.forget()


@pytest.fixture
def site() -> Iterator[MockSite]:
    with MockSite() as running:
        yield running


@pytest.fixture
def sites() -> Iterator[list[MockSite]]:
    """Three sites, each on another host."""
    with ExitStack() as stack:
        yield [stack.enter_context(MockSite(f"127.0.0.{i}")) for i in (1, 2, 3)]
