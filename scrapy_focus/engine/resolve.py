"""The addresses of a name, as the download handlers will find them."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed

if TYPE_CHECKING:
    from scrapy_focus.web.addresses import Address


async def addresses_of(host: str) -> list[Address]:
    """Return all addresses that a name has now, none where it cannot be resolved.

    With a Twisted reactor they come from its resolver, and so, by default, from Scrapy's cache of names, from which the
    connection is made next.
    """
    return await (_by_reactor(host) if is_reactor_installed() else _by_system(host))


class _Receiver:
    """What Twisted's resolver tells addresses to."""

    def __init__(self) -> None:
        from twisted.internet.defer import Deferred

        self.hosts: list[str] = []
        self.done: Deferred[None] = Deferred()

    def resolutionBegan(self, resolution: Any) -> None:
        """Nothing is to be told of the beginning."""

    def addressResolved(self, address: Any) -> None:
        """One more address came."""
        if isinstance(host := getattr(address, "host", None), str):
            self.hosts.append(host)

    def resolutionComplete(self) -> None:
        """There are no more."""
        self.done.callback(None)


async def _by_reactor(host: str) -> list[Address]:
    from twisted.internet import reactor

    receiver = _Receiver()
    try:
        reactor.nameResolver.resolveHostName(receiver, host)
    except (ValueError, UnicodeError):  # no name at all: the handler says so
        return []
    await maybe_deferred_to_future(receiver.done)
    return [ip_address(each) for each in receiver.hosts]


async def _by_system(host: str) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError, UnicodeError):
        return []
    return [ip_address(sockaddr[0]) for *_, sockaddr in found]
