"""Recordings made in a test from a few answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "http://example.org/"
HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(path: str, html: str = "", *, status: int | None = 200, **fields: Any) -> Answer:
    """Return the answer of an HTML page, by its path or URL."""
    url = path if "//" in path else ROOT + path.lstrip("/")
    return Answer(url=url, status=status, headers=HTML, body=html.encode(), **fields)


def redirect(path: str, location: str, status: int = 301) -> Answer:
    """Return an answer that leads on."""
    url = path if "//" in path else ROOT + path.lstrip("/")
    return Answer(url=url, status=status, headers={"Location": location})


def links(*hrefs: str) -> str:
    """Return the HTML of links, each with its address as its anchor."""
    return "".join(f'<a href="{href}">{href}</a> ' for href in hrefs)


def record(path: Path, *answers: Answer, roots: tuple[str, ...] = (ROOT,), **options: Any) -> RecordedSite:
    """Record answers to the end, and open the recording."""
    with SiteWriter(path, roots=roots, **options) as writer:
        for answer in answers:
            writer.add(answer)
        writer.finish()
    return RecordedSite(path)


def leads_to(site: RecordedSite, url: str = ROOT) -> list[str]:
    """Return where the links of a page lead, in document order."""
    return [site.urls[target] for target in site.targets[site.links(site.ids[url])]]
