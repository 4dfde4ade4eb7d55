"""The administration of the gateway on Kafka: its actions are those of the commands, and the workers carry them out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.codec import encode
from schemas.ports import Logged
from schemas.records import Rejected
from sinks.gateway.admin.ports import AdministrationError, AdminRoot
from streams.cli.administration import SettingsAdministration
from streams.config.settings import load
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.topology.flow import TopologySettings, topology

URL = "http://example.org/"


def test_roots_and_rejections_are_administered_on_kafka(harvest: Any, cluster: Cluster) -> None:
    """Roots are added, paused, resumed and removed by events for every partition; a rejection is put back into its topic."""
    harvest("topics", "apply")
    found = SettingsAdministration(load(None), None, print)
    assert found.add_root(URL, 3, None) == f"{URL} is added: the workers visit it"
    assert found.roots() == ([AdminRoot(URL, False, "depth 3, 10,000 URLs")], [])
    found.pause_root(URL)
    assert found.roots()[0][0].paused
    found.resume_root(URL)
    assert found.remove_root(URL) == f"{URL} is removed: the workers remove its objects"
    assert found.roots() == ([], [])
    told = [json.loads(line)["value"]["kind"] for line in harvest("cat", "crawl", "--json").stdout.splitlines()]
    assert sorted(told) == sorted(["seeded", "paused", "resumed", "unseeded"] * 2)
    with pytest.raises(AdministrationError, match="not a root"):
        found.pause_root("http://example.net/")
    letter = Rejected(stage="essence", reason="damaged", time=1, url=URL, version=1, topic="objects", key=b"k", value=b"junk")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.write([Logged("rejected", -1, -1, 1, URL.encode(), encode(letter))])
    (group,) = found.rejections()[0]
    assert (group.reason, group.total, group.latest[0].name) == ("damaged", 1, URL)
    assert found.retry(URL) == "1 record put back: the workers read them"
    assert found.rejections()[0] == []


def test_cluster_without_topics_is_a_mistake(harvest: Any) -> None:
    """The line names the command that makes them."""
    with pytest.raises(Exception, match="harvest topics apply"):
        SettingsAdministration(load(None), None, print).add_root(URL, None, None)
