"""Looks up names as Scrapy's default resolver does, and takes an IPv6 address for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.resolver import CachingThreadedResolver
from twisted.internet.abstract import isIPv6Address
from twisted.internet.defer import succeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.internet.defer import Deferred


class Resolver(CachingThreadedResolver):
    """Scrapy's resolver knows IPv4 only, and looks for a host with the name ``::1`` where a URL has that address."""

    def getHostByName(self, name: str, timeout: Sequence[int] = ()) -> Deferred[str]:
        return succeed(name) if isIPv6Address(name) else super().getHostByName(name, timeout)
