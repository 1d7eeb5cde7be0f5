"""Shows a live footer at the bottom of the terminal during a crawl."""

from __future__ import annotations

import atexit
import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Seconds between two updates.
REFRESH = 0.5


class Footer:
    """The footer at the bottom of the terminal of stderr; log lines scroll above it.

    Stop it before the process ends. If an error or a second Ctrl-C prevents that, the cursor is shown again anyway.
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
        """Make all log handlers of the terminal write above the footer from now on."""
        stream = sys.stderr
        self._live.start()  # replaces sys.stderr
        atexit.register(self._live.stop)
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
                self._handlers.append((handler, handler.setStream(sys.stderr)))

    def show(self, picture: RenderableType) -> None:
        """Replace the footer with this."""
        self._live.update(picture, refresh=True)

    def stop(self) -> None:
        """Remove the footer. Idempotent."""
        while self._handlers:
            handler, stream = self._handlers.pop()
            handler.setStream(stream)
        self._live.stop()
        atexit.unregister(self._live.stop)
