"""A few hand-made pages on many hosts, behind a proxy on this machine."""

from __future__ import annotations

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import ProxyServer


class Handmade(ProxyServer):
    """Serves some pages by their URLs, as a proxy; ``/robots.txt`` of each host forbids ``/private/``."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self.pages = pages
        super().__init__(self)

    def fetch(self, url: str) -> Page:
        if url.endswith("/robots.txt"):
            return Page.of(b"User-agent: *\nDisallow: /private/\n", mime="text/plain")
        return self.pages.get(url, Page.of(b"none", status=404))

    @property
    def asked_for(self) -> list[str]:
        """The URLs of pages that were asked for, in order."""
        return [request.path for request in self.log if not request.path.endswith("/robots.txt")]


def html(*links: str, text: str = "", title: str = "", lang: str = "") -> Page:
    """Return a page with links; a link is a URL, or a URL and its anchor after a blank."""
    anchors = "".join(f'<p><a href="{link.partition(" ")[0]}">{link.partition(" ")[2]}</a>' for link in links)
    source = f"<html{lang and f' lang={lang}'}><title>{title}</title><body><p>{text}</p>{anchors}"
    return Page.of(source.encode(), mime="text/html; charset=utf-8")
