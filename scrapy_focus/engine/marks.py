"""Keys of ``request.meta`` that belong to this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import EXPLANATION, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request


#: The id of the pick that a request was made for.
PICK = "focus_pick"
#: Where users may say where a link stands: a dict with tag_path, anchor, context.
LINK = "focus_link"
#: Why the page was fetched, with ``FOCUS_EXPLAIN``: the numbers of a reason by name, and its text as ``why``.
WHY = "focus_why"
#: On the request for a page that was fetched before: what is known of it since.
VISIT = "focus_visit"
#: On a request that we have a browser answer, not the spider.
RENDERED = "focus_rendered"
#: On the request for a page that waits to be rendered: how many items its plain copy gave, and what tells them apart.
GIVEN = "focus_given"
#: On the request of a page that a browser showed: the files that its scripts made there (blobs), as MadeFile.
MADE = "focus_made"
#: In ``response.flags`` of a body that is known not to be all of it.
CUT = "cut"
#: The URL of the page with the link, where the Referer may be another: that of a redirect is the link itself.
FOUND_ON = "found_on"


def why_of(meta: Mapping[str, Any]) -> str:
    """Return why a page was fetched, in one line, from the meta of its request or response."""
    return printable((meta.get(WHY) or {}).get("why", "the next in line"), EXPLANATION)


def page_of(request: Request) -> str:
    """Return the URL of the page on which the link to a request was seen, in this crawl or an earlier one."""
    return str(request.meta.get(FOUND_ON) or (request.headers.get("Referer") or b"").decode("latin-1"))
