"""Streams in the chart, of the Gatherer and of Brokers: one worker each, on the same volume and node as the gateway."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streams.topology.flow import TopologySettings, topology
from tests.deploy.conftest import Helm, HelmError
from tests.deploy.manifests import GATEWAY, Manifest, environment, of, pods

FEED: dict[str, Any] = {"stages": {"feed": {"enabled": True}}}


@pytest.fixture(scope="module")
def made(helm: Helm) -> list[Manifest]:
    """The manifests with the feed and the gateway, and with autoscaling."""
    return helm.template({**GATEWAY, **FEED, "autoscaling": {"enabled": True}})


def spec_of(manifests: list[Manifest], name: str) -> Manifest:
    """The pod of a Deployment."""
    return dict(of(manifests, "Deployment")[name]["spec"]["template"]["spec"])


def test_feed_is_off_by_default(rendered: dict[str, list[Manifest]]) -> None:
    """Without the stage there is neither its worker nor its volume, and no pod has its setting."""
    manifests = rendered["gateway"]
    assert "feed" not in of(manifests, "Deployment", "PersistentVolumeClaim")
    assert not any("HARVEST_FEED_ENABLED" in environment(c) for _, spec in pods(manifests) for c in spec["containers"])


def test_feed_is_a_stage_of_the_topology(made: list[Manifest], settings_of: Any) -> None:
    """Its worker runs the stage of that name; every pod has the setting, so that all draw the same topology."""
    (container,) = spec_of(made, "feed")["containers"]
    assert container["args"] == ["worker", topology(TopologySettings(feed=True)).stage("feed").name]
    for _, spec in pods(made):
        for one in (one for one in spec["containers"] if one.get("env")):
            assert settings_of({name: value for name, value in environment(one).items() if value is not None}).feed.enabled


def test_feed_has_one_worker(helm: Helm, made: list[Manifest]) -> None:
    """It is never scaled, by lag or by hand, and an old worker ends before a new one starts: the volume is for one node."""
    assert "feed" not in of(made, "ScaledObject")
    spec = of(made, "Deployment")["feed"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    with pytest.raises(HelmError, match="replicas"):
        helm.template({"stages": {"feed": {"enabled": True, "replicas": 2}}})


def test_gateway_reads_the_volume_of_the_feed(made: list[Manifest]) -> None:
    """The worker and the gateway mount the same volume where the program has its feed; it is mounted by one node."""
    claim = of(made, "PersistentVolumeClaim")["feed"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    for name in ("feed", "gateway"):
        spec = spec_of(made, name)
        assert {"name": "feed", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in spec["volumes"]
        (container,) = spec["containers"]
        assert {"name": "feed", "mountPath": "/var/lib/harvest/feed"} in container["volumeMounts"]
        assert environment(container)["HARVEST_DATA"] == "/var/lib/harvest"


def test_gateway_runs_on_the_node_of_the_feed(helm: Helm, made: list[Manifest]) -> None:
    """Pods of the gateway need the node of the worker; the worker prefers theirs. An affinity of the values stands above."""
    (term,) = spec_of(made, "gateway")["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (wish,) = spec_of(made, "feed")["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    for to, found in (("feed", term), ("gateway", wish["podAffinityTerm"])):
        labels = of(made, "Deployment")[to]["spec"]["template"]["metadata"]["labels"]
        assert found["topologyKey"] == "kubernetes.io/hostname"
        assert found["labelSelector"]["matchLabels"].items() <= labels.items()
        assert found["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == to
    assert "affinity" not in spec_of(made, "fetch")
    assert "affinity" not in spec_of(helm.template(FEED), "feed")
    stopped = helm.template({**GATEWAY, "stages": {"feed": {"enabled": True, "replicas": 0}}})
    assert "affinity" not in spec_of(stopped, "gateway")
    term = {"topologyKey": "rack", "labelSelector": {}}
    own: dict[str, Any] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert spec_of(helm.template({**GATEWAY, **FEED, "affinity": own}), "gateway")["affinity"] == own


@pytest.mark.parametrize("feed", [True, False])
def test_streams_of_brokers_are_on_the_volume_of_the_feed(helm: Helm, feed: bool) -> None:
    """Each Broker with a stream has one worker of its stage; all share a volume with the gateway, and need one node."""
    brokers = {"few": {"stream": True}, "all": {"from": ["broker:few"], "stream": True}, "pages": {}}
    stages = {"feed": {"enabled": feed}}
    found = helm.template({**GATEWAY, "brokers": brokers, "stages": stages, "autoscaling": {"enabled": True}})
    workers = ["feed", "stream-all", "stream-few"][not feed :]
    drawn = of(found, "Deployment")
    assert [name for name in sorted(drawn) if name.startswith(("feed", "stream"))] == workers
    assert not {*workers} & of(found, "ScaledObject").keys()
    (claim,) = (name for name in of(found, "PersistentVolumeClaim") if name == "feed")
    for name in (*workers, "gateway"):
        spec = spec_of(found, name)
        volumes = {one["name"]: one["persistentVolumeClaim"] for one in spec["volumes"] if "persistentVolumeClaim" in one}
        assert volumes == {"feed": {"claimName": of(found, "PersistentVolumeClaim")[claim]["metadata"]["name"]}}
        assert {"name": "feed", "mountPath": "/var/lib/harvest/feed"} in spec["containers"][0]["volumeMounts"]
    for name in workers:
        spec = drawn[name]["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        assert spec["template"]["spec"]["containers"][0]["args"] == ["worker", name.replace("-", ".", 1)]
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    for name in (*workers[1:], "gateway"):
        (term,) = spec_of(found, name)["affinity"]["podAffinity"][needed]
        assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == workers[0]
    assert needed not in spec_of(found, workers[0])["affinity"]["podAffinity"]
    with pytest.raises(HelmError, match="replicas"):
        helm.template({"brokers": brokers, "stages": {"stream": {"replicas": 2}}})


def test_volume_of_the_feed_can_be_given(helm: Helm) -> None:
    """A claim of the operator's takes the place of the chart's."""
    found = helm.template({**GATEWAY, "stages": {"feed": {"enabled": True, "existingClaim": "mine"}}})
    assert "feed" not in of(found, "PersistentVolumeClaim")
    for name in ("feed", "gateway"):
        claims = [one["persistentVolumeClaim"] for one in spec_of(found, name)["volumes"] if "persistentVolumeClaim" in one]
        assert claims == [{"claimName": "mine"}]


def test_test_of_the_release_asks_the_feed(made: list[Manifest]) -> None:
    """`helm test` asks whether the worker of the feed is ready."""
    (pod,) = of(made, "Pod").values()
    assert re.search(r"-feed:9108/readyz", str(pod["spec"]["containers"][1]["args"]))
