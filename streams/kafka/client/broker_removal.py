"""Deletion of what a cluster has of a Broker: the groups of its stages, their topics and changelogs.

Laws:
- While a stage of the Broker has a worker, nothing is deleted.
- Groups go first: offsets without a topic do no harm, but a new topic would be read from the offsets of the old one.
- What is not there is passed over, so that a deletion which was interrupted can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from streams.kafka.client.admin import pluralize
from streams.kafka.client.cluster import REACH, TIMEOUT, Cluster, ClusterError, cluster_errors, identity_group, sentence
from streams.kafka.client.reach import Contact

if TYPE_CHECKING:
    from streams.operations.brokers import Owned

ABSENT = {KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_TOPIC_OR_PART}


def forget_on_cluster(cluster: Cluster, owned: Owned) -> list[str]:
    """Delete all that a cluster has of a Broker; return what there was. Raises ClusterError, also while its workers run."""
    contact = Contact(cluster)
    with cluster_errors(cluster):
        there = contact.metadata(REACH).topics
    topics = [name for name in _topics(cluster, owned) if name in there]
    groups = [cluster.group(name) for stage in owned.stages for name in (stage, identity_group(stage))]
    _refuse_members(cluster, contact.client.describe_consumer_groups(groups, request_timeout=TIMEOUT))
    removed = _delete(cluster, contact.client.delete_consumer_groups(groups, request_timeout=TIMEOUT))
    if topics:
        _delete(cluster, contact.client.delete_topics(topics, operation_timeout=TIMEOUT))
    found = {"topic": topics, "group": removed}
    return [pluralize(len(names), what) for what, names in found.items() if names]


def _refuse_members(cluster: Cluster, asked: Mapping[str, Any]) -> None:
    with cluster_errors(cluster):
        busy = [name for name, answer in asked.items() if answer.result(2 * TIMEOUT).members]
    if busy:
        raise ClusterError(f"{', '.join(busy)}: workers of the Broker run: stop them first")


def _topics(cluster: Cluster, owned: Owned) -> Sequence[str]:
    return [*(cluster.topic(name) for name in owned.topics), *(cluster.changelog(stage) for stage in owned.tables)]


def _delete(cluster: Cluster, asked: Mapping[str, Any]) -> list[str]:
    """Wait for the answers to deletions; return the names of what was there. Raises ClusterError."""
    done = []
    for name, answer in asked.items():
        with cluster_errors(cluster):
            try:
                answer.result(2 * TIMEOUT)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.NON_EMPTY_GROUP:
                    raise ClusterError(f"{name}: workers of this stage run: stop them first") from error
                if code not in ABSENT:
                    raise ClusterError(f"{name}: {sentence(cluster, error.args[0])}") from error
            else:
                done.append(name)
    return done
