"""Which network an address belongs to: the public Internet, or one that only insiders should reach."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

Address = IPv4Address | IPv6Address
Network = Literal["public", "loopback", "link-local", "private"]

_EMBEDDING = (  # networks of IPv6 whose addresses end in one of IPv4 that is meant
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("64:ff9b::/96"),  # NAT64
)
_THIS_HOST = IPv4Network("0.0.0.0/8")  # a connection to 0.0.0.0 reaches this machine


def network_of(address: Address) -> Network:
    """Return which network an address belongs to. An IPv4 address within one of IPv6 counts as itself.

    ``private`` is whatever is neither public (``is_global`` of :mod:`ipaddress`) nor this machine nor link-local,
    multicast and reserved addresses too.
    """
    address = _embedded(address)
    if address.is_loopback or address in _THIS_HOST or int(address) == 0:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    site_local = isinstance(address, IPv6Address) and address.is_site_local
    return "public" if address.is_global and not (address.is_multicast or site_local) else "private"


def literal(host: str) -> Address | None:
    """Return the address that a host is by itself, without asking for its name; ``None`` for a name.

    Numbers in any spelling that the C library reads (``127.1``, ``0x7f000001``, ``2130706433``) are addresses, and so
    is ``localhost`` with all names below it.

    Examples
    --------
    >>> literal("0x7f.1")
    IPv4Address('127.0.0.1')
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return IPv4Address("127.0.0.1")
    try:
        return ip_address(name)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None


def _embedded(address: Address) -> Address:
    if isinstance(address, IPv4Address) or int(address) <= 1:  # :: and ::1 are themselves
        return address
    if any(address in network for network in _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.sixtofour or (teredo[1] if teredo else address)
