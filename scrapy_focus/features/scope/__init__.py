"""Keeps a crawl within a scope: patterns of URLs, an area around its start URLs, a depth, a number of pages a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.core.setting import Kind, Setting, choice, is_no_text, texts_of, whole
from scrapy_focus.web.areas import REACHES
from scrapy_focus.web.expressions import compiled
from scrapy_focus.web.wanted import split_words

if TYPE_CHECKING:
    from scrapy_focus.engine.feature import Feature
    from scrapy_focus.engine.host import Host
    from scrapy_focus.web.areas import Reach


def _expressions() -> Kind[tuple[str, ...]]:
    """Regular expressions; in one text, commas separate them, except within brackets."""

    def read(name: str, value: Any) -> tuple[str, ...]:
        texts = split_words(value) if isinstance(value, str) else texts_of(value)
        for text in texts:
            try:
                compiled(text)
            except ValueError as error:
                raise ConfigError(f"{name} has {brief(text)}, which is not a regular expression: {error}") from error
        return tuple(texts)

    return Kind(read, "regular expressions of URLs, in a list, or separated by commas", is_no_text)


DEPTH: Setting[int | None] = Setting("FOCUS_DEPTH", whole(), default=None, unit="links from a start URL")
EXCLUDE: Setting[tuple[str, ...]] = Setting("FOCUS_EXCLUDE", _expressions(), default=())
INCLUDE: Setting[tuple[str, ...]] = Setting("FOCUS_INCLUDE", _expressions(), default=())
MAX_PAGES_PER_HOST = Setting("FOCUS_MAX_PAGES_PER_HOST", whole(), default=0, unit="pages of a host", in_cluster=False)
SCOPE: Setting[Any] = Setting("FOCUS_SCOPE", choice(*REACHES, is_empty=is_no_text), default="", in_cluster=False)
SETTINGS = (DEPTH, EXCLUDE, INCLUDE, MAX_PAGES_PER_HOST, SCOPE)


def make(host: Host) -> Feature | None:
    """Return the feature if a setting limits the scope."""
    settings = host.crawler.settings
    reach: Reach = SCOPE.of(settings) or "any"
    depth, n_pages = DEPTH.of(settings), MAX_PAGES_PER_HOST.of(settings)
    include, exclude = INCLUDE.of(settings), EXCLUDE.of(settings)
    if depth is None and reach == "any" and not (n_pages or include or exclude):
        return None
    from scrapy_focus.features.scope.feature import Scope
    from scrapy_focus.features.scope.rules import Rules

    return Scope(host, Rules(include=include, exclude=exclude, reach=reach, depth=depth, n_pages=n_pages))
