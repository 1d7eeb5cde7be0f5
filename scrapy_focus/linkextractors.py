"""A link extractor that skips links already seen."""

from __future__ import annotations

import re
from inspect import signature
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from lxml import etree
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.misc import arg_to_iter, rel_has_nofollow
from scrapy.utils.python import unique
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace
from w3lib.url import safe_url_string

from scrapy_focus.engine.known import known_on
from scrapy_focus.web.joining import plain_joiner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml.etree import _Element
    from parsel import Selector
    from scrapy.http import TextResponse

    from scrapy_focus.engine.known import KnownLinks

_XHTML = "{http://www.w3.org/1999/xhtml}"
_NAME = re.compile(r"[a-zA-Z][\w-]*\Z")
_VERDICTS = 1 << 16  # known links whose verdict is remembered
_text_of = etree.XPath("string()")


class NewLinks(LinkExtractor):
    """A ``LinkExtractor`` that skips links to URLs that this crawl has already requested or queued.

    It takes the arguments of Scrapy's ``LinkExtractor``, with the same defaults, and returns the same links, in the
    same order, except those that the dupefilter would drop later. It skips these before it joins a URL or creates a
    ``Link``, which saves most of the time in crawls of pages with many links. ::

        from scrapy_focus import NewLinks

        class Spider(CrawlSpider):
            rules = [Rule(NewLinks(allow=r"/data/"), callback="parse_data", follow=True)]

    In a callback, use ``NewLinks().extract_links(response)``. A URL is known if it had a GET request without a body. To
    request pages in another way (another method, ``dont_filter``, headers that your fingerprinter reads), use a
    ``LinkExtractor``.

    Notes
    -----
    Where known URLs cannot be determined, it returns all links: with another scheduler, with a custom
    ``DUPEFILTER_CLASS`` or ``REQUEST_FINGERPRINTER_CLASS``, for responses of ``engine.download()``, and for URLs last
    seen before 131,000 to 262,000 others. It keeps known links that the policy wants
    (:attr:`Policy.wants_known <scrapy_focus.Policy.wants_known>`). A policy with
    :meth:`~scrapy_focus.core.abilities.Knows.know` or ``known_by_key`` receives the keys of skipped links. Skipped
    links are counted in ``focus/link/known``.
    """

    __signature__ = signature(LinkExtractor)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        tags, attrs, without, but = (
            set(arg_to_iter(given.arguments[name])) for name in ("tags", "attrs", "deny_tags", "deny_attrs")
        )
        # Names that lxml can search for; otherwise each element and attribute is tested.
        self._tags = tuple(name for tag in sorted(tags - without) for name in (tag, _XHTML + tag))
        self._all_tags = not all(_NAME.match(tag) for tag in tags)
        self._attr = next(iter(attrs)) if len(attrs) == 1 and not but and "*" not in attrs else None
        self._is_plain = not callable(given.arguments["process_value"])
        self._verdicts: dict[str, bool] = {}  # of known URLs: whether they would be extracted

    def extract_links(self, response: TextResponse) -> list[Link]:
        """Return the new links of a page, see ``LinkExtractor.extract_links``."""
        known = known_on(response)
        if known is None:
            return super().extract_links(response)
        base = get_base_url(response)
        links: list[Link] = []
        for part in self._parts_of(response):
            links += self._process_links(self._new_links(part, response, base, known))
        if self.canonicalize:  # this form of a URL may be known, not the one on the page
            links = [link for link in links if not known.passes(link.url.partition("#")[0])]
        return unique(links, key=self.link_extractor.link_key) if self.link_extractor.unique else links

    def _parts_of(self, response: TextResponse) -> list[Selector]:
        """Return the parts of a page that are searched for links, by default the whole page."""
        if not self.restrict_xpaths:
            return [response.selector]
        return [part for path in self.restrict_xpaths for part in response.xpath(path)]

    def _new_links(self, part: Selector, response: TextResponse, base: str, known: KnownLinks) -> list[Link]:
        """Return the new links in a part of a page, before the filters."""
        passes = self._passes(known)
        joined = plain_joiner(base) if self._is_plain else None
        parser, url, encoding = self.link_extractor, response.url, response.encoding
        links: list[Link] = []
        for element, value in self._values(part.root):
            if joined is not None and not (known.tells_keys and "#" in value):  # filters read fragments
                plain = joined(value)
                if plain and passes(plain, element):
                    continue
            try:
                address = urljoin(base, strip_html5_whitespace(value) if parser.strip else value)
            except ValueError:  # not a URL
                continue
            if (address := parser.process_attr(address)) is None:
                continue
            try:
                address = safe_url_string(address, encoding=encoding)
            except ValueError:
                continue
            address = urljoin(url, address)
            if not passes(address, element):
                links.append(Link(address, _text_of(element) or "", nofollow=rel_has_nofollow(element.get("rel"))))
        return unique(links, key=parser.link_key) if parser.unique else links  # filters read the first of a URL

    def _passes(self, known: KnownLinks) -> Callable[[str, _Element], bool]:
        """Return a function of a URL and the element of its link that says whether to skip the link."""
        if not known.tells_keys:
            return lambda url, _: known.passes(url.partition("#")[0])

        judged: set[str] = set()

        def passes(url: str, element: _Element) -> bool:
            bare = url.partition("#")[0]
            if not known.has(bare):
                return False
            is_first = url not in judged or not self.link_extractor.unique
            judged.add(url)
            if is_first and self._would_count(url, element):
                known.passes(bare)
            return True

        return passes

    def _would_count(self, url: str, element: _Element) -> bool:
        """Whether a link to a known URL would be extracted, so that the policy must be notified."""
        if self.restrict_text:
            return self._link_allowed(Link(url, _text_of(element) or ""))
        verdict = self._verdicts.get(url)
        if verdict is None:
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[url] = self._link_allowed(Link(url))
        return verdict

    def _values(self, root: Any) -> Iterator[tuple[_Element, str]]:
        """Yield possible link addresses with their elements, in document order."""
        parser, attr = self.link_extractor, self._attr
        if self._all_tags:
            elements = (each for each in root.iter(etree.Element) if parser.scan_tag(each.tag.removeprefix(_XHTML)))
        else:
            elements = root.iter(*self._tags) if self._tags else iter(())  # without a name, it yields all elements
        for element in elements:
            if attr is not None:
                if (value := element.get(attr)) is not None:
                    yield element, value
            else:
                yield from ((element, value) for name, value in element.attrib.items() if parser.scan_attr(name))
