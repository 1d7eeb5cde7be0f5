"""What holds for all tests."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Files that take longest. They come first, so that at the end of a run no process is left alone with one of them.
FIRST = (
    "scrapy/test_reactor.py", "hostile/test_hostile.py", "scrapy/test_storage.py", "scrapy/test_kills.py",
    "scrapy/test_record_command.py", "scrapy/test_topic_spider.py", "scrapy/test_crawl_again.py",
    "scrapy/test_kill_safe_fetch.py", "scrapy/test_endings.py", "scrapy/test_find_commands.py",
    "scrapy/test_put_off_hosts.py", "scrapy/test_soak.py", "docs/test_build.py",
)  # fmt: skip


settings.register_profile("unhurried", deadline=None)  # an example may meet a machine that stands still for seconds
settings.load_profile("unhurried")


def pytest_configure() -> None:
    """Let Ctrl-C reach what tests start, where it is ignored: a shell does that to what it runs in the background, and
    whatever is started there inherits it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, and leave the others in their order."""
    items.sort(key=lambda item: _place(item.path.as_posix()))


def _place(path: str) -> int:
    return next((place for place, name in enumerate(FIRST) if path.endswith(name)), len(FIRST))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for ``-m alone`` or ``-m slow`` that has nothing so marked: most of the time of these goes there."""
    marked = config.option.markexpr
    if marked not in ("alone", "slow") or collection_path.suffix != ".py":
        return None
    return f"mark.{marked}" not in collection_path.read_text(encoding="utf-8") or None
