"""Tells whether an address belongs to the public Internet, or to a network that only insiders should reach."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal

Address = IPv4Address | IPv6Address
Network = Literal["public", "loopback", "link-local", "private"]

_EMBEDDING = (  # networks of IPv6 whose addresses end in the IPv4 address that is reached
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated
    IPv6Network("64:ff9b::/96"),  # NAT64
)
_ISATAP = (0x00005EFE, 0x02005EFE)  # precedes the IPv4 address in the lower half of an IPv6 address
_THIS_HOST = IPv4Network("0.0.0.0/8")  # a connection to 0.0.0.0 reaches this machine
_UNICAST = IPv6Network("2000::/3")  # all assigned addresses of IPv6, except NAT64
_SPECIAL = (  # what is_global of Python 3.11.7 considers public
    IPv4Network("192.0.0.0/24"),
    IPv6Network("3fff::/20"),
)
_ANYCAST = frozenset({IPv4Address("192.0.0.9"), IPv4Address("192.0.0.10")})  # public ones among them


def network_of(address: Address) -> Network:
    """Return the network of an address. An IPv4 address embedded in IPv6 counts as itself.

    ``private`` is anything neither public nor this machine, including link-local, multicast and reserved addresses.
    Public is what IANA's registries call globally reachable: ``is_global`` of :mod:`ipaddress`, corrected for old
    versions of it.
    """
    address = _embedded(address)
    if address.is_loopback or address in _THIS_HOST or int(address) == 0:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "public" if _is_public(address) else "private"


def literal(host: str) -> Address | None:
    """Return the address that a host is written as, without a DNS query; ``None`` for a name.

    Numbers in any spelling of the C library (``127.1``, ``0x7f000001``, ``2130706433``) are addresses, and so is
    ``localhost`` with all names below it.

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


def _is_public(address: Address) -> bool:
    if address.is_multicast or (isinstance(address, IPv6Address) and address not in _UNICAST):
        return False
    if any(address in network for network in _SPECIAL):
        return address in _ANYCAST
    return address.is_global


def _embedded(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, any other address unchanged."""
    if isinstance(address, IPv4Address) or int(address) <= 1:  # :: and ::1 are themselves
        return address
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _EMBEDDING) or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        return last
    teredo = address.teredo
    return address.sixtofour or (teredo[1] if teredo else address)
