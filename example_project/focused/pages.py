"""What can go wrong with a page before anything is looked for on it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.response import get_meta_refresh

if TYPE_CHECKING:
    from scrapy.http import HtmlResponse

logger = logging.getLogger(__name__)


def can_be_read(response: HtmlResponse) -> bool:
    """Whether Scrapy can parse a page: some name a charset of which Python makes no text, or a ``<base>`` that is no
    URL, and then ``response.selector`` raises.
    """
    try:
        return response.selector.root is not None
    except (ValueError, LookupError) as error:
        logger.debug("No page: %r (%s)", response.url[:200], type(error).__name__)
        return False


def refresh_of(response: HtmlResponse) -> str:
    """Return the URL that a page sends its visitors on to, ``""`` for none, or for what is no URL."""
    try:
        return get_meta_refresh(response)[1] or ""
    except ValueError:
        return ""
