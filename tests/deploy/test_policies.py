"""The chart's network policies: allowed destinations of pods; fetchers reach no address that the fetch edge refuses to dial."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from processors.urls import guard
from tests.deploy.manifests import Manifest, of


def allowed(policy: Manifest, address: str) -> bool:
    """Whether an egress policy allows an address by its IP blocks."""
    found = ip_address(address.partition("%")[0])
    for peer in (peer for rule in policy["spec"]["egress"] for peer in rule.get("to", [])):
        block = peer.get("ipBlock")
        if block and found in ip_network(block["cidr"]) and not any(found in ip_network(e) for e in block.get("except", [])):
            return True
    return False


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "168.63.129.16"),
        *(
            "0.0.0.0",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "64:ff9b::a9fe:a9fe"),
        *("64:ff9b:1::1", "2002:a9fe:a9fe::", "2001:0:7f00:1::f7f7:f7f7", "::ffff:0:127.0.0.1", "100::1"),
    ],
)
def test_fetchers_cannot_reach_refused_addresses(plain: list[Manifest], address: str) -> None:
    """An address that the fetch edge refuses is also blocked for its pods: metadata services, private ranges, relays into them."""
    assert guard(address, ())
    assert not allowed(of(plain, "NetworkPolicy")["demo-harvest-fetch"], address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "172.15.255.255", "100.128.0.1", "2606:4700::1111", "2a00:1450::200e"]
)
def test_fetchers_reach_public_addresses(plain: list[Manifest], address: str) -> None:
    """Public addresses are allowed."""
    assert not guard(address, ())
    assert allowed(of(plain, "NetworkPolicy")["demo-harvest-fetch"], address)


def test_exceptions_lie_inside_their_block(full: list[Manifest]) -> None:
    """Exceptions lie inside their block, as Kubernetes requires. An intranet range that is configured is allowed."""
    policy = of(full, "NetworkPolicy")["demo-harvest-fetch"]
    for peer in (peer for rule in policy["spec"]["egress"] for peer in rule["to"]):
        whole = ip_network(peer["ipBlock"]["cidr"])
        for part in map(ip_network, peer["ipBlock"].get("except", [])):
            assert part.version == whole.version
            assert part.subnet_of(whole)  # type: ignore[arg-type]
    assert allowed(policy, "10.1.2.3")
    assert not allowed(policy, "10.2.2.3")


def test_only_fetchers_reach_public_addresses(plain: list[Manifest]) -> None:
    """Other stages reach only DNS, Kafka and their services, each on its port; incoming traffic reaches only the metrics port."""
    policies = of(plain, "NetworkPolicy")
    assert not allowed(policies["demo-harvest"], "8.8.8.8")
    assert not allowed(policies["demo-harvest-index"], "8.8.8.8")
    assert policies["demo-harvest"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    (into,) = policies["demo-harvest"]["spec"]["ingress"]
    assert into["ports"] == [{"protocol": "TCP", "port": 9108}]
    assert all(rule["ports"] for rule in policies["demo-harvest"]["spec"]["egress"])


def test_policy_ports_come_from_configured_addresses(full: list[Manifest]) -> None:
    """The ports of policies come from the configured addresses."""
    ports = {p["port"] for rule in of(full, "NetworkPolicy")["demo-harvest"]["spec"]["egress"] for p in rule["ports"]}
    assert ports == {53, 9108, 8380, 9092, 9093, 8081}
