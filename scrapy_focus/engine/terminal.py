"""Keeps a picture at the bottom of a terminal while a crawl runs."""

from __future__ import annotations

import atexit
import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Seconds between two pictures.
REFRESH = 0.5


class Footer:
    """What stays at the bottom of the terminal of stderr; log lines scroll above it.

    To be stopped before the process ends; if an error or a second Ctrl-C prevents that, the cursor is shown again
    anyway.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._handlers: list[tuple[logging.StreamHandler[Any], Any]] = []
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._live.console.width

    @property
    def height(self) -> int:
        """Lines of the terminal."""
        return self._live.console.height

    def start(self) -> None:
        """Let all log handlers of the terminal write above what is shown from now on."""
        stream = sys.stderr
        self._live.start()  # replaces sys.stderr
        atexit.register(self._live.stop)
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
                self._handlers.append((handler, handler.setStream(sys.stderr)))

    def show(self, picture: RenderableType) -> None:
        """Show this in place of what was shown before."""
        self._live.update(picture, refresh=True)

    def stop(self) -> None:
        """Take it away. Idempotent."""
        while self._handlers:
            handler, stream = self._handlers.pop()
            handler.setStream(stream)
        self._live.stop()
        atexit.unregister(self._live.stop)
