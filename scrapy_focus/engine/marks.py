"""Keys of ``request.meta`` that belong to this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.printable import EXPLANATION, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request


#: The id of the pick that a request was made for.
PICK = "focus_pick"
#: The place of a link, as set by the user: a dict with tag_path, anchor, context.
LINK = "focus_link"
#: Why the page was fetched, with ``FOCUS_EXPLAIN``: the numbers of a reason by name, and its text as ``why``.
WHY = "focus_why"
#: On the request for a page that was fetched before: facts from its last visit.
VISIT = "focus_visit"
#: On a request for which we use a browser; the spider did not ask for one.
RENDERED = "focus_rendered"
#: On the request for a page queued for rendering: the number of items of its plain copy, and their digests.
GIVEN = "focus_given"
#: On the request of a rendered page: the files that its scripts made there (blobs), as MadeFile.
MADE = "focus_made"
#: In ``response.flags`` of a body that is known to be incomplete.
CUT = "cut"
#: The URL of the page with the link, if Referer differs: for a redirect, Referer is the link itself.
FOUND_ON = "found_on"


def why_of(meta: Mapping[str, Any]) -> str:
    """Return why a page was fetched, in one line, from the meta of its request or response."""
    return printable((meta.get(WHY) or {}).get("why", "the next in line"), EXPLANATION)


def page_of(request: Request) -> str:
    """Return the URL of the page that linked to a request, in this crawl or an earlier one."""
    return str(request.meta.get(FOUND_ON) or (request.headers.get("Referer") or b"").decode("latin-1"))
