"""What can go wrong with a page before anything is looked for on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import TextResponse

from scrapy_focus.core.printable import brief, printable_logger

if TYPE_CHECKING:
    from scrapy.http import HtmlResponse, Response

logger = printable_logger(__name__)


def can_be_read(response: HtmlResponse) -> bool:
    """Whether Scrapy can parse a page: some name a charset of which Python makes no text, or a ``<base>`` that is no
    URL, and then ``response.selector`` raises.
    """
    try:
        return response.selector.root is not None
    except (ValueError, LookupError) as error:
        logger.debug("No page: %s (%s)", brief(response.url), type(error).__name__)
        return False


def text_of(response: Response) -> str:
    """Return the decoded body, ``""`` where it is no text, or names a charset of which Python makes none."""
    try:
        return response.text if isinstance(response, TextResponse) else ""
    except (ValueError, LookupError) as error:
        logger.debug("No text: %s (%s)", brief(response.url), type(error).__name__)
        return ""
