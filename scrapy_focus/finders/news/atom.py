"""A feed (Atom, RFC 4287) of new articles on a watched site, for feed readers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree as ET

from scrapy_focus.core.printable import printable
from scrapy_focus.finders.kit.records.times import time_text
from scrapy_focus.web.url_parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.news.news_list import Article

FEED = "feed.xml"

_ATOM = "http://www.w3.org/2005/Atom"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 does not allow
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # allowed in an address, besides letters and digits
_LONGEST = 500  # characters of a title


def atom(articles: Sequence[Article], *, roots: Sequence[str], made: float) -> bytes:
    """Return the feed of some articles, the newest first.

    An entry keeps its ``id`` through all changes of its article; ``updated`` is the time when the newest version was
    seen.

    Parameters
    ----------
    articles
        Articles, each once.
    roots
        The start URLs of the watch, which determine the ``id`` of the feed.
    made
        When the feed was written, in seconds since the epoch; with articles, ``updated`` is the time of the newest.
    """
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed")
    name = "\n".join(sorted(roots)).encode(errors="backslashreplace").decode()
    _add(feed, "id", uuid5(NAMESPACE_URL, name).urn)
    _add(feed, "title", f"News of {', '.join(parts_of(url)[0] for url in roots)}")
    _add(feed, "updated", time_text(max((article.at for article in articles), default=made)))
    _add(_add(feed, "author"), "name", "scrapy_focus")
    for url in roots[:1]:
        _add(feed, "link", rel="alternate", href=_address(url))
    for article in articles:
        entry = _add(feed, "entry")
        _add(entry, "id", article.id)
        _add(entry, "title", article.title or article.anchor or article.url)
        _add(entry, "updated", time_text(article.at))
        if article.published is not None:
            _add(entry, "published", time_text(article.published))
        _add(entry, "link", rel="alternate", href=_address(article.url))
        _add(_add(entry, "author"), "name", parts_of(article.url)[0] or "unknown")
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    if text:
        child.text = _NO_XML.sub("", printable(text, _LONGEST))
    return child


def _address(url: str) -> str:
    return quote(url.encode(errors="replace"), safe=_SAFE)
