"""Removes killed members from a consumer group on their behalf.

A broker reassigns the partitions of a silent member only when its session times out. Tests that kill workers give them a long
session, so that no pause of the machine ends it, and call `bury` so that nobody has to wait for the timeout.
"""

from __future__ import annotations

import asyncio

from aiokafka.client import AIOKafkaClient, CoordinationType  # type: ignore[import-untyped]
from aiokafka.protocol.group import LeaveGroupRequest  # type: ignore[import-untyped]

from tests.servers.fixtures import TIMEOUT
from tests.streams.kafka.conftest import Broker


def bury(broker: Broker, group: str) -> None:
    """Make all members of a group leave it; their processes are dead."""
    told = broker.topics.client.describe_consumer_groups([group], request_timeout=TIMEOUT)[group].result(TIMEOUT)
    asyncio.run(_leave(broker.address, group, [member.member_id for member in told.members]))


async def _leave(address: str, group: str, members: list[str]) -> None:
    client = AIOKafkaClient(bootstrap_servers=address)
    await client.bootstrap()
    try:
        node = await client.coordinator_lookup(CoordinationType.GROUP, group)
        for member in members:
            answer = await client.send(node, LeaveGroupRequest(group, member))
            assert answer.error_code == 0, answer
    finally:
        await client.close()
