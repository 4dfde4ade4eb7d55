"""Detection of static members that lost their instance id to another member.

Cause: aiokafka takes the coordinator's answer that it is no member for an expired session, and rejoins. If another member has its
instance id, it takes the id back, and the other one does the same, for ever, so that neither makes progress. A static member that
gets this answer therefore ends; a supervisor restarts it.

Source, read in the released code: aiokafka, consumer/group_coordinator.py (`_do_heartbeat`, `_do_commit_offsets`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka.errors import UnknownMemberIdError  # type: ignore[import-untyped]
from aiokafka.protocol.commit import OffsetCommitRequest  # type: ignore[import-untyped]
from aiokafka.protocol.group import HeartbeatRequest  # type: ignore[import-untyped]


def watch_membership(consumer: Any, taken: Callable[[], None]) -> None:
    """Call `taken`, in the consumer's thread, when the group does not know this started aiokafka consumer."""
    coordinator = consumer._coordinator  # noqa: SLF001 - no public API
    ask = coordinator._send_req  # noqa: SLF001

    async def heeded(request: Any) -> Any:
        member = coordinator.member_id
        answer, said = await ask(request), set[int]()
        if isinstance(request, HeartbeatRequest):
            said.add(answer.error_code)
        elif isinstance(request, OffsetCommitRequest):
            said.update(code for _, parts in answer.topics for _, code in parts)
        # Ignored: requests without a member id (between two generations), and answers about the id before a rejoin.
        if member and member == coordinator.member_id and UnknownMemberIdError.errno in said:
            taken()
        return answer

    coordinator._send_req = heeded  # noqa: SLF001
