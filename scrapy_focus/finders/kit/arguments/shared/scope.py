"""Which URLs a crawl may request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from scrapy.exceptions import UsageError

from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import number_reader, read_expressions
from scrapy_focus.finders.kit.arguments.seeds import named
from scrapy_focus.web.areas import REACHES, prefix_of
from scrapy_focus.web.url_parts import domain_at

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_focus.finders.kit.arguments.argument import Called
    from scrapy_focus.finders.kit.arguments.seeds import Starts
    from scrapy_focus.web.areas import Reach


def _read_reach(given: str, called: Called) -> Reach | None:
    """Return how far the scope reaches, ``None`` for ``""``."""
    if given and given not in REACHES:
        raise UsageError(f"{called} is {given!r}; it takes page, prefix, host, domain or any: {called.like('prefix')}")
    return cast("Reach", given) if given else None


def _read_depth(given: str, called: Called) -> int | None:
    """Return a number of links from 0, ``None`` for ``""``."""
    if given and not (given.isascii() and given.isdecimal()):
        raise UsageError(
            f"{called} is {given!r}; it takes a number of links, or 0 for the start URLs alone: {called.like(2)}"
        )
    return int(given) if given else None


@dataclass(frozen=True, kw_only=True)
class ScopeArguments(Arguments):
    """Which URLs a crawl may request.

    Arguments
    ---------
    include
        Regular expressions, one of which has to match a URL. Separate several by commas, or give a list.
    exclude
        Regular expressions, none of which may match a URL; likewise.
    scope
        How far the crawl goes: ``page``, only the start URLs and, for files, the files that they link to; ``prefix``,
        URLs in the folders of the start URLs and below; ``host``, their hosts and subdomains; ``domain``, all hosts of
        their registered domains; ``any``.
    depth
        The largest number of links between a start URL and a page; no limit by default.
    max_pages_per_host
        The largest number of links of a host that are followed; no limit by default.
    """

    heading = "scope"
    #: How far a crawl goes by default. With ``host``, the spider itself keeps to its hosts.
    usual: ClassVar[Reach] = "host"
    #: What a crawl fetches with the scope ``page``, in words.
    given_pages: ClassVar[str] = "the given pages"

    include: list[str] = argument(
        read_expressions, metavar="REGEX", repeats=True,
        help="request only URLs in which this regular expression is found, or another --include",
    )  # fmt: skip
    exclude: list[str] = argument(
        read_expressions, metavar="REGEX", repeats=True,
        help="request no URL in which this regular expression is found; repeat the option for several",
    )  # fmt: skip
    scope: Reach | None = argument(
        _read_reach, metavar="SCOPE",
        help="go only to: page (the given pages), prefix (URLs in their folders and below), host (their hosts and "
        "subdomains), domain (all hosts of their domains), or any. Default: host; for topic and structured: any",
    )  # fmt: skip
    depth: int | None = argument(
        _read_depth, metavar="N", help="follow at most N links in a row from a start URL (default: no limit)"
    )
    max_pages_per_host: int | None = argument(
        number_reader("pages", 100), metavar="N", help="follow at most N links to each host (default: no limit)"
    )

    @property
    def reach(self) -> Reach:
        """How far the crawl goes."""
        return self.scope or self.usual

    def area(self, starts: Starts) -> str:
        """Where the crawl stays, in words."""
        hosts = list(dict.fromkeys(starts.hosts))
        if self.reach == "page":
            return self.given_pages
        if self.reach == "prefix":
            return f"URLs that begin with {named([*dict.fromkeys(map(prefix_of, starts.urls))])}"
        if self.reach == "domain":
            return f"all hosts of {named([*dict.fromkeys(map(domain_at, hosts))])}"
        return "any host" if self.reach == "any" else named(hosts)

    @property
    def limits_of_scope(self) -> list[str]:
        """The other limits of the scope, in words."""
        limits = [
            f"only URLs that match {' or '.join(self.include)}" if self.include else "",
            f"no URLs that match {' or '.join(self.exclude)}" if self.exclude else "",
            "" if self.depth is None else f"at most {counted(self.depth, 'link')} away from a start URL",
            f"at most {counted(self.max_pages_per_host, 'page')} per host" if self.max_pages_per_host else "",
        ]
        return [limit for limit in limits if limit]

    def set_up(self, crawler: Crawler) -> None:
        settings = crawler.settings
        values = {
            "FOCUS_INCLUDE": self.include or None,
            "FOCUS_EXCLUDE": self.exclude or None,
            "FOCUS_DEPTH": self.depth,
            "FOCUS_MAX_PAGES_PER_HOST": self.max_pages_per_host,
        }
        settings.update({name: value for name, value in values.items() if value is not None}, "spider")
        if self.scope and (self.scope != self.usual or settings.get("FOCUS_SCOPE")):
            settings.set("FOCUS_SCOPE", "any" if self.scope == self.usual else self.scope, "spider")
        super().set_up(crawler)
