from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.urls import guard

PUBLIC = [
    "93.184.216.34",
    "8.8.8.8",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "223.255.255.255",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "2001:200::",
    "2001:db7:ffff::1",
    "3fff:1000::",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]

REFUSED = [
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("0.0.0.0", "unspecified"),
    ("10.1.2.3", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "private"),
    ("100.100.100.200", "private"),
    ("169.254.169.254", "link-local"),
    ("168.63.129.16", "cloud"),
    ("192.0.0.192", "reserved"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("198.51.100.1", "reserved"),
    ("203.0.113.1", "reserved"),
    ("192.88.99.1", "reserved"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("2001:db8::1", "reserved"),
    ("3fff::1", "reserved"),
    ("100::1", "reserved"),
    ("2001:4:112::1", "reserved"),
    ("2001:0:808:808:0:0:f7f7:f7f7", "reserved"),
    ("4000::1", "reserved"),
    ("5f00::1", "reserved"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:a9fe:a9fe", "link-local"),
    ("::127.0.0.1", "loopback"),
    ("::a9fe:a9fe", "link-local"),
    ("::8.8.8.8", "reserved"),
    ("::ffff:0:127.0.0.1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b:1::1", "private"),
    ("2002:a9fe:a9fe::", "link-local"),
    ("2002:7f00:1::1", "loopback"),
    ("2001:0:808:808:0:0:80ff:fffe", "loopback"),
    ("2001:0:7f00:1::f7f7:f7f7", "loopback"),
    ("2606:4700::5efe:10.0.0.1", "private"),
    ("2606:4700::200:5efe:10.0.0.1", "private"),
    ("localhost", "not an address"),
    ("0x7f.1", "not an address"),
    ("127.1", "not an address"),
    ("0177.0.0.1", "not an address"),
    ("2130706433", "not an address"),
    ("", "not an address"),
    ("x" * 1_000, "not an address"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    """A public address is accepted in every notation."""
    assert guard(address, ()) == ""


@pytest.mark.parametrize(("address", "why"), REFUSED)
def test_other_addresses_are_refused(address: str, why: str) -> None:
    """An address that is not public, or that maps to one, is refused with a reason."""
    reason = guard(address, ())
    assert why in reason
    assert len(reason) <= 200


ALLOWED = [
    ("127.0.0.1", "127.0.0.0/8", True),
    ("::ffff:127.0.0.1", "127.0.0.0/8", True),
    ("10.0.0.1", "127.0.0.0/8", False),
    ("::1", "::1/128", True),
    ("::1", "127.0.0.0/8", False),
    ("64:ff9b::7f00:1", "127.0.0.0/8", False),
    ("2002:7f00:1::1", "127.0.0.0/8", False),
    ("fd00::1", "fd00::/8", True),
]


@pytest.mark.parametrize(("address", "network", "passes"), ALLOWED)
def test_target_in_allowed_network_passes(address: str, network: str, passes: bool) -> None:
    """A local target passes if its network is allowed; tunnelled addresses of an allowed network do not."""
    assert (guard(address, (ip_network(network),)) == "") is passes


# The special-purpose registries of IANA (RFC 6890, as of 2025), except those that may be public: 6to4, where the embedded address
# decides, and the blocks of AS112. What `ipaddress` calls private or global differs between versions of Python, even within 3.11.
REGISTERED = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24"),
    *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/127", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20"),
    *("5f00::/16", "fc00::/7", "fe80::/10", "ff00::/8"),
)


@pytest.mark.parametrize("block", REGISTERED)
def test_blocks_are_refused_whole(block: str) -> None:
    """Both ends of every special-purpose block are refused."""
    network = ip_network(block)
    for address in (network[0], network[1], network[network.num_addresses // 2], network[-1]):
        assert guard(str(address), ())


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_has_one_verdict_in_all_forms(number: int) -> None:
    """An address refused as IPv4 is refused mapped, by NAT64 and by 6to4, too."""
    refused = bool(guard(str(IPv4Address(number)), ()))
    for outer in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert bool(guard(str(IPv6Address(outer)), ())) is refused


@given(st.integers(0, 2**128 - 1))
def test_no_ipv6_address_passes_that_is_not_global_unicast(number: int) -> None:
    """Outside of 2000::/3 only embedded IPv4 addresses pass."""
    address = IPv6Address(number)
    if not guard(str(address), ()):
        assert number >> 125 == 1 or address.ipv4_mapped or number >> 32 == 0x64FF9B << 64
