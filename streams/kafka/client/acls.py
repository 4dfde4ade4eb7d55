"""Rights that the ACLs of a cluster have to grant, by stage and command, made from the topology; and which of them are missing.

Laws:
- The table in `streams/kafka/README.md` is made here, and the broker of the tests grants nothing else.
- Rights that another one implies are left out: READ and WRITE imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS.
- No right is for the cluster or for a transactional id; all names begin with the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException, TopicCollection

from streams.kafka.client.brokers import written_topics
from streams.kafka.client.cluster import (
    PROBE,
    READER,
    RECOVERY,
    REFUSED,
    TIMEOUT,
    Cluster,
    changelog_of,
    cluster_errors,
    identity_group,
)
from streams.topology.flow import REJECTED, Edge, Stage, Topology

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

APPLY, OTHERS = "`harvest topics apply`", "other commands"
NAMING = frozenset({"frontier", "essence"})
"""Stages that need the Gatherer's name, and compare it with that of the latest summaries.

It is part of OIDs, and of the fingerprint that decides whether an object is made again.
"""


class Right(NamedTuple):
    """What `who`, a stage or a command, has to be allowed on a topic or a group (`kind`), by its name without the prefix."""

    who: str
    kind: str
    name: str
    operations: tuple[str, ...]


def rights(drawn: Topology) -> list[Right]:
    """Return the rights of all stages, in flow order, then those of commands."""
    return [*rights_of_stages(drawn), *_of_commands(drawn)]


def rights_of_stages(drawn: Topology) -> list[Right]:
    """Return the rights of all stages, in flow order."""
    return [right for stage in drawn.stages for right in rights_of_stage(stage)]


def rights_of_stage(stage: Stage[Any, Any] | Edge[Any, Any]) -> Iterator[Right]:
    """Yield the rights of a stage."""
    found: dict[str, list[str]] = {}
    ticks = stage.ticks if isinstance(stage, Stage) else None
    changelog = [changelog_of(stage.name)] if isinstance(stage, Stage) else []
    for name in (*(topic.name for topic in stage.inputs), *([ticks.name] if ticks else []), *changelog):
        found.setdefault(name, []).append("READ")
    for name in (*written_topics(stage), *changelog):
        # Stateful stages ask how large a record may be.
        found.setdefault(name, []).extend(["WRITE", *(["DESCRIBE_CONFIGS"] if changelog else [])])
    if stage.name in NAMING:
        found.setdefault("made", []).insert(0, "READ")
    # The ids of topics are stored as commits, which need READ (`topic_identity.py`).
    found[REJECTED.name].insert(0, "READ")
    yield from (Right(stage.name, "topic", name, tuple(dict.fromkeys(operations))) for name, operations in found.items())
    groups = [
        stage.name,
        identity_group(stage.name),
        *([RECOVERY, PROBE] if changelog else []),
        *([READER] if stage.name in NAMING else []),
    ]
    yield from (Right(stage.name, "group", name, ("READ",)) for name in groups)


def _of_commands(drawn: Topology) -> Iterator[Right]:
    changelogs = [changelog_of(stage.name) for stage in drawn.stages if isinstance(stage, Stage)]
    for name in (*(topic.name for topic in drawn.topics), *changelogs):
        yield Right(APPLY, "topic", name, ("CREATE", "DESCRIBE", "ALTER_CONFIGS"))
    yield from (Right(OTHERS, "topic", topic.name, ("READ", "WRITE")) for topic in drawn.topics)
    yield from (Right(OTHERS, "topic", name, ("READ", "WRITE")) for name in changelogs)
    groups = [READER, *(name for stage in drawn.stages for name in (stage.name, identity_group(stage.name)))]
    yield from (Right(OTHERS, "group", name, ("READ",)) for name in groups)


def table(drawn: Topology) -> str:
    """Return the rights as a Markdown table, one row for each stage or command, and each set of operations."""
    rows: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    for right in rights(drawn):
        rows.setdefault((right.who, right.operations), {"topic": [], "group": []})[right.kind].append(f"`{right.name}`")
    lines = [
        f"| {who} | {' '.join(operations)} | {' '.join(names['topic'])} | {' '.join(names['group'])} |\n"
        for (who, operations), names in rows.items()
    ]
    return "| who | operations | topics | groups |\n| --- | --- | --- | --- |\n" + "".join(lines)


def missing_rights(client: AdminClient, cluster: Cluster, wanted: Iterable[Right]) -> list[Right]:
    """Return the rights that this login does not have, each with the operations that are refused. Raises ClusterError.

    The brokers state what a login may do with a topic or a group; that needs no right but DESCRIBE, which all others imply.
    """
    found = list(wanted)
    topics = {cluster.topic(right.name) for right in found if right.kind == "topic"}
    groups = {cluster.group(right.name) for right in found if right.kind == "group"}
    with cluster_errors(cluster):
        asked: list[tuple[str, Mapping[str, Any]]] = []
        # The client refuses to ask about nothing.
        if topics:
            asked.append(("topic", client.describe_topics(TopicCollection(sorted(topics)), include_authorized_operations=True)))
        if groups:
            asked.append(("group", client.describe_consumer_groups(sorted(groups), include_authorized_operations=True)))
        allowed = {(kind, name): _allowed(future) for kind, answers in asked for name, future in answers.items()}
    lacking = []
    for right in found:
        full = cluster.topic(right.name) if right.kind == "topic" else cluster.group(right.name)
        refused = tuple(one for one in right.operations if one not in allowed[right.kind, full])
        lacking += [right._replace(operations=refused)] if refused else []
    return lacking


def _allowed(future: Any) -> set[str]:
    """Return the operations that are allowed; none where even the question is refused. Raises KafkaException."""
    try:
        return {operation.name for operation in future.result(TIMEOUT).authorized_operations or ()}
    except KafkaException as error:
        if error.args[0].code() in REFUSED:
            return set()
        raise
