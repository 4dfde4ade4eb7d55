"""The number of repeats that the farm allows: a bound that allowed any number would prove nothing."""

from __future__ import annotations

import pytest

from schemas.records import FetchedObject, FetchRequest, Record, Root
from tests.streams.kafka.repeats import LINES, Fault, repeats

SAID = 100_000
"""Time of the first write of a record (ms)."""
ROOT = Root(url="file:///", run="1")


@pytest.mark.parametrize(
    ("faults", "allowed"),
    [
        ([], 0),
        ([Fault("fetch", SAID + 1_200, SAID + 1_250)], 2),
        ([Fault("fetch", SAID + 1_600, SAID + 1_650)], 1),
        ([Fault("fetch", SAID - 200, SAID - 100)], 0),
        ([Fault("essence", SAID + 100, SAID + 200)], 0),
        ([Fault("frontier", SAID + 100, SAID + 200)], 1),
    ],
)
def test_only_repeats_explained_by_faults_are_allowed(faults: list[Fault], allowed: int) -> None:
    """A repeat is allowed for a fault of its writer within a commit interval, or for a repeat of its source."""
    request = FetchRequest(url="file:///a", host="file:///", version=1, time=1, root=ROOT)
    other = FetchRequest(url="file:///b", host="file:///", version=2, time=1, root=ROOT)
    objects = [
        FetchedObject(url=one.url, version=one.version, time=1, outcome="fetched", root=ROOT) for one in (request, other, request)
    ]
    records: dict[str, list[tuple[bytes, Record]]] = {line.topic: [] for line in LINES}
    times: dict[str, list[int]] = {line.topic: [] for line in LINES}
    hit = any(fault.stage == "frontier" for fault in faults)
    records["fetches"] = [(b"", one) for one in (request, other, *([request] if hit else []))]
    times["fetches"] = [SAID - 50, SAID - 50, *([SAID + 900] if hit else [])]
    records["objects"] = [(b"", one) for one in objects]
    times["objects"] = [SAID, SAID + 500, SAID + 9_000]
    found = {one.name: one for one in repeats(records, times, faults, commit=0.3)}
    assert (found["objects"].records, found["objects"].repeated, found["objects"].most) == (3, 1, allowed)
    assert found["fetches"].repeated <= found["fetches"].most
