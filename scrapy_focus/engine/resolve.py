"""Resolves names to addresses, the way that the download handlers will."""

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
    """Return all current addresses of a name, none if it cannot be resolved.

    With a Twisted reactor they come from its resolver, by default with Scrapy's DNS cache, which the connection uses
    next.
    """
    return await (_by_reactor(host) if is_reactor_installed() else _by_system(host))


class _Receiver:
    """Receives addresses from Twisted's resolver."""

    def __init__(self) -> None:
        from twisted.internet.defer import Deferred

        self.hosts: list[str] = []
        self.done: Deferred[None] = Deferred()

    def resolutionBegan(self, resolution: Any) -> None:
        """Do nothing when resolution begins."""

    def addressResolved(self, address: Any) -> None:
        """Note one more address."""
        if isinstance(host := getattr(address, "host", None), str):
            self.hosts.append(host)

    def resolutionComplete(self) -> None:
        """Finish: there are no more."""
        self.done.callback(None)


async def _by_reactor(host: str) -> list[Address]:
    from twisted.internet import reactor

    receiver = _Receiver()
    try:
        reactor.nameResolver.resolveHostName(receiver, host)
    except (ValueError, UnicodeError):  # not a host name: the handler reports it
        return []
    await maybe_deferred_to_future(receiver.done)
    return [ip_address(each) for each in receiver.hosts]


async def _by_system(host: str) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError, UnicodeError):
        return []
    return [ip_address(sockaddr[0]) for *_, sockaddr in found]
