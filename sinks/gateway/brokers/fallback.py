"""Hits of the fallback of the Broker that is served: they stand behind its own, where there are few."""

from __future__ import annotations

import logging
from typing import NamedTuple

from fastapi import Request

from processors.query import QueryError
from processors.query.routing.merging import behind
from schemas.ports import Hit
from schemas.query import Or
from sinks.gateway.answers import Answer
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.gateway import Gateway

LOG = logging.getLogger("harvest.gateway")


class Completion(NamedTuple):
    """Hits of another Broker, which stand behind the others."""

    broker: str
    hits: list[Hit]


async def completion(gateway: Gateway, brokers: Brokers | None, request: Request, answer: Answer | None) -> Completion | None:
    """Return the hits that complete an answer; None if it has enough, or there are none. Raises BusyError.

    Only the first page is completed. A fallback whose index cannot be read completes nothing.
    """
    fallback = None if brokers is None else brokers.fallback()
    if brokers is None or fallback is None or answer is None or answer.asked.tree == Or(()):
        return None
    state, tree = answer.state, answer.asked.tree
    if state.is_empty or state.page > 1 or answer.total >= fallback.below:
        return None
    try:
        found = await gateway.ask(request, tree, lambda: brokers.search(fallback.broker, tree, state.size))
    except (KeyError, OSError, RuntimeError, QueryError) as error:
        LOG.warning("the fallback %s: %s", fallback.broker, error)
        return None
    own = [(hit.oid, hit.url) for hit in answer.hits]
    others = behind(own, found.hits)[: max(0, state.size - len(own))]
    return Completion(fallback.broker, others) if others else None
