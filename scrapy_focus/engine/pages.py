"""Checks whether a page can be parsed or decoded before anything else reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import TextResponse

from scrapy_focus.core.printable import brief, printable_logger

if TYPE_CHECKING:
    from scrapy.http import HtmlResponse, Response

logger = printable_logger(__name__)


def can_be_read(response: HtmlResponse) -> bool:
    """Whether Scrapy can parse a page.

    ``response.selector`` raises for some: the charset is unknown to Python, or ``<base>`` is not a URL.
    """
    try:
        return response.selector.root is not None
    except (ValueError, LookupError) as error:
        logger.debug("Cannot parse %s (%s)", brief(response.url), type(error).__name__)
        return False


def text_of(response: Response) -> str:
    """Return the decoded body, ``""`` if it is not text or Python does not know its charset."""
    try:
        return response.text if isinstance(response, TextResponse) else ""
    except (ValueError, LookupError) as error:
        logger.debug("Cannot decode %s (%s)", brief(response.url), type(error).__name__)
        return ""
