"""Pages that record what is read from them, so that it can be read again when a crawl is recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy_focus.core.types import Page

_NOTHING: dict[str, Any] = {"url": "", "status": 0, "headers": {}, "text": "", "kind": ""}


class NotedPage:
    """A page for a policy that records what the policy reads, in ``read``.

    Parameters
    ----------
    page
        The page, as long as it lasts.
    What an earlier run read; a policy that reads anything else now gets empty values.
        What was read of it in an earlier run; a policy that reads anything else now finds nothing.
    """

    __slots__ = ("_page", "read")

    def __init__(self, page: Page | None, read: dict[str, Any] | None = None) -> None:
        self._page = page
        self.read: dict[str, Any] = read if read is not None else {}

    @property
    def url(self) -> str:
        """The URL after redirects."""
        return str(self._get("url"))

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self._get("status"))

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers, names as sent."""
        return dict(self._get("headers"))

    @property
    def text(self) -> str:
        """The decoded body, ``""`` if it is not text."""
        return str(self._get("text"))

    @property
    def kind(self) -> str:
        """The MIME type that the first bytes of the body suggest; ``""`` if they suggest none or are missing."""
        return str(self._get("kind"))

    def made(self, name: str, make: Callable[[Page], Any]) -> Any:
        """Return a plain value computed from the page, and record it by name in place of its sources. It is computed
        once, and nothing else of the page need be kept for it.
        """
        if name not in self.read:
            self.read[name] = make(self if self._page is None else self._page)
        return self.read[name]

    def _get(self, name: str) -> Any:
        if name not in self.read:
            self.read[name] = _NOTHING[name] if self._page is None else getattr(self._page, name)
        return self.read[name]
