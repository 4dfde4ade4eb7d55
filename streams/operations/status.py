"""Stages with their lag and rejections by reason, as a status page shows them, from either engine's log.

Every list is bounded; what is left out is said in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.records import Rejected
from sinks.gateway.ports import Rejection, Root, Stage
from sinks.index.errors import IndexDamaged
from streams.logs import LogAccess
from streams.operations.dead_letters import standing
from streams.topology.flow import Topology

SHOWN = 200
"""Maximum length of each list."""
NEWEST = 10_000
"""Number of rejections that are read, the newest ones."""
STATES = ("in doubt", "failed", "paused", "active")
"""States of a root, those that need attention first."""


def stages(log: LogAccess, drawn: Topology) -> tuple[list[Stage], list[str]]:
    """Return the lag of each stage, all its topics together, in flow order, and notes."""
    names = sorted((stage.name for stage in drawn.stages), key=len, reverse=True)
    lags: Counter[str] = Counter()
    notes = []
    try:
        for one in log.lags(drawn):
            # On Kafka a group has a prefix before the name of its stage.
            lags[next((name for name in names if one.group.endswith(name)), one.group)] += max(0, one.lag)
    except IndexDamaged as error:
        notes.append(f"the lag of an index is not known: {error}")
    return [Stage(name, lag) for name, lag in lags.items()], notes


def rejections(log: LogAccess) -> tuple[list[Rejection], list[str]]:
    """Return the unresolved rejections by reason, the most frequent first, each with the latest example, and notes."""
    if "rejected" not in log.topics():
        return [], []
    written = sum(log.ends("rejected")) - sum(log.starts("rejected"))
    notes = [f"rejections: of the newest {NEWEST:,} records"] if written > NEWEST else []
    counts: Counter[str] = Counter()
    latest: dict[str, Rejected] = {}
    for one in standing(log, NEWEST):
        counts[one.reason] += 1
        if one.reason not in latest or one.time >= latest[one.reason].time:
            latest[one.reason] = one
    found = [Rejection(reason, count, _name(latest[reason])) for reason, count in counts.most_common(SHOWN)]
    return found, notes + left_out("reasons of rejections", len(counts) - len(found))


def shown_roots(found: Iterable[Root]) -> tuple[list[Root], list[str]]:
    """Return the roots to show, those that need attention first, and notes."""
    ordered = sorted(found, key=lambda root: (STATES.index(root.state), root.url))
    return ordered[:SHOWN], left_out("roots", len(ordered) - SHOWN)


def left_out(what: str, number: int) -> list[str]:
    """Return a note that a number of them is left out; none if that is not above 0."""
    return [f"{what}: {number:,} more"] if number > 0 else []


def _name(one: Rejected) -> str:
    """Return the URL of a rejection, member path included; of a value that was no record its position."""
    return (f"{one.url}#{one.path}" if one.path else one.url) or f"{one.topic}/{one.partition}@{one.offset}"


def joined(*notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of several parts, in order."""
    return tuple(note for part in notes for note in part)
