"""The latest version by OID, for more OIDs than fit into memory."""

from __future__ import annotations

import random
from contextlib import closing

from streams.operations.latest_versions import LatestVersions

OIDS = 20_000


def test_latest_version_with_a_small_cache() -> None:
    """In any order of records, each OID has the value of its highest counter, and of equal counters the last one."""
    choose = random.Random(1)
    noted = [(f"{choose.randrange(OIDS):064x}", choose.randrange(3), number % 2) for number in range(3 * OIDS)]
    expected: dict[str, tuple[int, int]] = {}
    for oid, counter, said in noted:
        if counter >= expected.get(oid, (0, 0))[0]:
            expected[oid] = counter, said
    with closing(LatestVersions(cache=100)) as newest:
        for at in range(0, len(noted), 2_000):
            newest.note(noted[at : at + 2_000])
        assert newest.count(1) == sum(said for _, said in expected.values())
        assert [newest.get(oid) for oid in expected] == [said for _, said in expected.values()]
        assert newest.get("another") is None


def test_added_oids_are_new_once() -> None:
    """Of OIDs that are added, those are returned that were neither noted nor added before, each once."""
    with closing(LatestVersions()) as newest:
        newest.note([("a", 1, 1)])
        assert newest.add(["a", "b", "c", "b"]) == {"b", "c"}
        assert newest.add(["c", "d"]) == {"d"}
        assert (newest.get("a"), newest.get("b")) == (1, 0)
