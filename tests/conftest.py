"""What holds for all tests."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def pytest_configure() -> None:
    """Let Ctrl-C reach what tests start, where it is ignored: a shell does that to what it runs in the background, and
    whatever is started there inherits it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for ``-m alone`` or ``-m slow`` that has nothing so marked: most of the time of these goes there."""
    marked = config.option.markexpr
    if marked not in ("alone", "slow") or collection_path.suffix != ".py":
        return None
    return f"mark.{marked}" not in collection_path.read_text(encoding="utf-8") or None
