"""Resolve names as Scrapy's default resolver does, and accept IPv6 addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.resolver import CachingThreadedResolver
from twisted.internet.abstract import isIPv6Address
from twisted.internet.defer import succeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.internet.defer import Deferred


class Resolver(CachingThreadedResolver):
    """Accepts IPv6 addresses in URLs; Scrapy's resolver knows only IPv4, and looks up ``::1`` as a host name."""

    def getHostByName(self, name: str, timeout: Sequence[int] = ()) -> Deferred[str]:
        return succeed(name) if isIPv6Address(name) else super().getHostByName(name, timeout)
