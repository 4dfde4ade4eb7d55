"""Reads topics again from their first record, where the rows of a partition are of another definition (`Stage.restart`).

Strategy: while a partition is being taken over, before Faust looks up what the group has committed, its owner commits the first
offsets of these topics. From there on this is a partition of which nothing was read: nothing seeks, and commits rise as always.

Laws:
- Only the owner sets offsets back, as a member of the present generation: the broker refuses anyone else's commit.
- What `restart` writes is durable before an offset falls: a crash in between repeats the whole, whatever definition comes next.
- An owner that is killed before the stage has noted the definition sets the offsets back once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from faust.types import TP

from streams.kafka.decide.rows import durable

if TYPE_CHECKING:
    from streams.kafka.decide.agents import Decider

PAUSE = 0.5
"""Seconds between two attempts to commit, which the ACLs may refuse for a while."""


async def read_again(decider: Decider, partition: int, owned: Callable[[], bool]) -> bool:
    """Set back what the stage must read again in a partition; false if the partition is not `owned` any more meanwhile."""
    restart = decider.stage.restart
    if restart is None:
        return True
    settled = {name: await decider.following.settled(TP(topic, partition)) for topic, name in decider.names.items()}
    rows = decider.rows(partition)
    again = restart(rows, {name: offset + decider.owned.base(name, partition) for name, offset in settled.items()})
    durable(decider.table, await decider.sender.send(rows.written()))
    places = {TP(topic, partition) for topic, name in decider.names.items() if name in again}
    consumer: Any = decider.app.consumer
    first = await decider.following.earliest(*places) if places else {}
    while owned() and places <= consumer.assignment():
        if not first or await consumer.set_back(first):
            return True
        await asyncio.sleep(PAUSE)
    return False
