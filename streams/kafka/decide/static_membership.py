"""Members of a group that have a name (static membership), of whom each name has one.

Cause: aiokafka takes a coordinator's word that it is no member for one that its session is over, and joins anew. Where another
member was given its name it takes that back, and has it taken again, for ever, and neither does anything. So whoever has a name
and is told that ends instead; a supervisor starts it again.

Source, read in the released code: aiokafka, consumer/group_coordinator.py (`_do_heartbeat`, `_do_commit_offsets`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka.errors import UnknownMemberIdError  # type: ignore[import-untyped]
from aiokafka.protocol.commit import OffsetCommitRequest  # type: ignore[import-untyped]
from aiokafka.protocol.group import HeartbeatRequest  # type: ignore[import-untyped]


def heed(consumer: Any, taken: Callable[[], None]) -> None:
    """Have `taken` called, in the consumer's thread, where its group does not know it: a consumer of aiokafka that has begun."""
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way to what it is told
    ask = coordinator._send_req  # noqa: SLF001

    async def heeded(request: Any) -> Any:
        member = coordinator.member_id
        answer, said = await ask(request), set[int]()
        if isinstance(request, HeartbeatRequest):
            said.add(answer.error_code)
        elif isinstance(request, OffsetCommitRequest):
            said.update(code for _, parts in answer.topics for _, code in parts)
        # One that left its generation asks without a name for a moment, and one that has joined anew is answered about before.
        if member and member == coordinator.member_id and UnknownMemberIdError.errno in said:
            taken()
        return answer

    coordinator._send_req = heeded  # noqa: SLF001
