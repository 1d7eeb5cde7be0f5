"""Which network an address belongs to, in whatever way it is written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.addresses import literal, network_of

NETWORKS = {
    "public": [
        "8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "::ffff:0:8.8.8.8",
        "192.0.0.9", "192.0.0.10", "2620:4f:8000::1",
    ],
    "loopback": [
        "127.0.0.1", "127.255.0.3", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:127.0.0.1", "2a01:4f8::5efe:127.0.0.1",
        "2001:0:808:808::80ff:fffe",
    ],
    "link-local": ["169.254.169.254", "fe80::1", "fe80::1%2", "::ffff:169.254.169.254"],
    "private": [
        "10.0.0.1", "172.16.9.9", "192.168.1.1", "100.64.0.1", "fd00:ec2::254", "fec0::1", "224.0.0.1", "ff02::1",
        "255.255.255.255", "240.0.0.1", "192.0.2.1", "2002:a00:1::", "::ffff:0:10.0.0.1",
        "64:ff9b:1::1", "64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:ffff::808:808", "192.0.0.8",
        "192.0.0.170", "198.18.0.1", "3fff::1", "5f00::1", "100::1", "100:0:0:1::1", "2001:db8::1", "4000::1",
    ],
}  # fmt: skip


@pytest.mark.parametrize("network", NETWORKS)
def test_networks(network: str) -> None:
    """Loopback, link-local and all other non-public addresses are recognised, even within IPv6."""
    assert {address: network_of(ip_address(address)) for address in NETWORKS[network]} == dict.fromkeys(
        NETWORKS[network], network
    )


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "127.0.0.1.",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "LOCALHOST",
        "a.localhost.",
    ],
)
def test_spellings_of_this_machine(host: str) -> None:
    """Numbers in any base and of any count are the address that the C library reads, and so is localhost."""
    assert literal(host) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize("host", ["example.org", "1.2.3.4.5", "", "12.example", "localhost.example", "\0", "é"])
def test_names_are_no_addresses(host: str) -> None:
    """A name that has to be looked up is not a literal."""
    assert literal(host) is None


@given(st.ip_addresses(v=4))
def test_an_address_within_ipv6_counts_as_itself(address: IPv4Address) -> None:
    """Every form of an IPv4 address within IPv6 is recognised."""
    n = int(address)
    expected = network_of(address)
    assert network_of(IPv6Address(n)) == expected
    assert network_of(IPv6Address((0xFFFF << 48) + n)) == expected
    assert network_of(IPv6Address((0x2A01 << 112) + (0x5EFE << 32) + n)) == expected
    assert network_of(IPv6Address((0x2A01 << 112) + (0x2005EFE << 32) + n)) == expected
    assert network_of(IPv6Address((0x20010000 << 96) + (~n & 0xFFFFFFFF))) == expected
    assert network_of(IPv6Address((0xFFFF << 32) + n)) == expected
    assert network_of(IPv6Address((0x64FF9B << 96) + n)) == expected
    assert network_of(IPv6Address((0x2002 << 112) + (n << 80))) == expected


@given(st.text(max_size=40))
def test_any_text_is_read(host: str) -> None:
    """No host makes it raise."""
    literal(host)
