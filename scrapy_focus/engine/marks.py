"""Keys of ``request.meta`` that belong to this package."""

from __future__ import annotations

#: The id of the pick that a request was made for.
PICK = "focus_pick"
#: Where users may say where a link stands: a dict with tag_path, anchor, context.
LINK = "focus_link"
#: Where a spider finds why its page was fetched, with ``FOCUS_EXPLAIN``.
WHY = "focus_why"
