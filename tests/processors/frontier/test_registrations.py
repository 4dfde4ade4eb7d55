"""Registrations of servers in the frontier: taken, renewed, withdrawn, expired; nothing is ever requested for them."""

from __future__ import annotations

import hashlib

import pytest

from processors.frontier.stage import deadline, outstanding, restore
from processors.registry.template import MEDIA, Registration
from schemas.records import FetchedObject, Record
from streams.operations.registrations import registration_event
from tests.processors.frontier.conftest import Partition
from tests.processors.registry.samples import server, withdrawal

TTL = 3_600_000


def give(partition: Partition, registration: Registration, *, offset: int = 0, time: int = 0) -> list[Record]:
    """Return the outputs of a registration, or of a withdrawal."""
    return partition.give(registration_event(registration, time or partition.now), offset=offset)


def only(given: list[Record]) -> FetchedObject:
    """Return the only output, an object."""
    (found,) = given
    assert isinstance(found, FetchedObject)
    return found


def test_registration_becomes_an_object(partition: Partition) -> None:
    """Its body is the template, its time-to-live that of the template, and nothing is requested or waited for."""
    found = only(give(partition, server(1)))
    body = server(1).encoded()
    assert (found.url, found.outcome, found.body, found.content_type) == (server(1).object_url, "fetched", body, MEDIA)
    assert (found.size, found.md5) == (len(body), hashlib.md5(body).hexdigest())
    assert found.root is not None
    assert found.root.ttl == 3600
    assert deadline(partition.rows) == partition.now + TTL
    assert not outstanding(partition.rows, partition.now + 2 * TTL)


def test_silent_server_expires_at_its_time(partition: Partition) -> None:
    """Without renewal it is removed when its time-to-live is over, not before; its row is gone then."""
    found = only(give(partition, server(1)))
    began = partition.now
    assert partition.tick(began + TTL - 1) == []
    gone = only(partition.tick(began + TTL))
    assert (gone.url, gone.outcome, gone.reason) == (found.url, "expired", "past its time-to-live")
    assert gone.version > found.version
    assert partition.state(found.url) is None
    assert deadline(partition.rows) is None


def test_renewal_puts_the_end_off(partition: Partition) -> None:
    """A renewal is a new version of the same object, and its time-to-live counts from then, also if it is another one."""
    first, began = only(give(partition, server(1))), partition.now
    partition.now += TTL // 2
    second = only(give(partition, server(1, time_to_live=7200)))
    assert (second.url, second.version > first.version) == (first.url, True)
    assert partition.tick(began + 2 * TTL) == []
    assert only(partition.tick(began + TTL // 2 + 2 * TTL)).outcome == "expired"


def test_withdrawal_removes_at_once(partition: Partition) -> None:
    """A withdrawal removes the server; a second one, or that of an unknown server, does nothing."""
    found = only(give(partition, server(1)))
    assert give(partition, withdrawal(server(2))) == []
    gone = only(give(partition, withdrawal(server(1))))
    assert (gone.url, gone.outcome, gone.reason) == (found.url, "gone", "withdrawn")
    assert give(partition, withdrawal(server(1))) == []
    assert only(give(partition, server(1))).version > gone.version


def test_redelivered_events_are_repeated(partition: Partition) -> None:
    """A redelivered registration is the same object, a redelivered withdrawal the same removal, a later one is not undone."""
    first, began = give(partition, server(1)), partition.now
    offset = partition.offset
    partition.now += 1_000
    assert give(partition, server(1), offset=offset, time=began) == first
    removed = give(partition, withdrawal(server(1)))
    ended = partition.offset
    again = only(give(partition, server(1)))
    assert give(partition, withdrawal(server(1)), offset=ended) == removed
    state = partition.state(again.url)
    assert state is not None
    assert state.version == again.version


def test_lapsed_registration_is_dropped(partition: Partition) -> None:
    """One whose time-to-live is over when it is read changes nothing."""
    partition.now += 2 * TTL
    partition.tick(partition.now)
    assert give(partition, server(1), time=partition.now - TTL) == []
    assert deadline(partition.rows) is None


def test_deadline_survives_a_restart(partition: Partition) -> None:
    """Derived rows are rebuilt from the row of the registration."""
    give(partition, server(1))
    restore(partition.rows)
    assert deadline(partition.rows) == partition.now + TTL
    assert only(partition.tick(partition.now + TTL)).outcome == "expired"


def test_runs_of_roots_leave_registrations_alone(partition: Partition) -> None:
    """A run of a root requests nothing for them, and a root that has the URL of one cannot end it."""
    found = only(give(partition, server(1)))
    partition.seed()
    state = partition.state(found.url)
    assert state is not None
    assert (state.state, state.roots) == ("registered", ())


def test_event_without_a_body_is_refused(partition: Partition) -> None:
    """It becomes a dead letter."""
    event = registration_event(server(1), partition.now)
    with pytest.raises(ValueError, match="without"):
        partition.give(event.__class__(kind="registered", host=event.host, time=event.time, url=event.url))
