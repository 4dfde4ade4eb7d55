"""The window over one partition of an edge's input."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from schemas.ports import Logged
from streams.edges.window import Window
from streams.store import Offsets

END = 30


def read(offset: int, limit: int) -> Sequence[Logged]:
    """Read from a partition of END records."""
    return [Logged("t", 0, at, 0, b"%d" % (at % 3), b"") for at in range(offset, min(offset + limit, END))]


@given(st.data(), st.integers(0, END), st.booleans())
def test_each_unfinished_record_is_started_once(data: st.DataObject, start: int, ordered: bool) -> None:
    """After a restart each unfinished record is started once, and no other; at the end all offsets are below the committed one."""
    above = st.integers(start + 1, END - 1) if start < END - 1 else st.nothing()
    done = data.draw(st.frozensets(above))
    window = Window(Offsets(start, done), 10, ordered=ordered)
    begun: list[int] = []
    flying: list[int] = []
    while taken := window.take(data.draw(st.integers(1, 5)), read) or flying:
        flying += [logged.offset for logged in taken if isinstance(logged, Logged)]
        finished = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
        window.finish(finished)
        begun.append(finished)
    assert sorted(begun) == [offset for offset in range(start, END) if offset not in done]
    assert window.flying == 0
    assert window.offsets() == Offsets(END, frozenset())


def test_offsets_after_the_last_record_count_as_finished() -> None:
    """At the end of a partition the offsets after its last record count as finished, but not while records are unread."""
    window = Window(Offsets(0, frozenset()), 10, ordered=True)
    assert [logged.offset for logged in window.take(3, read)] == [0, 1, 2]
    assert not window.reach(3)
    assert window.reach(7)
    assert window.offsets() == Offsets(0, frozenset(range(3, 7)))
    for offset in (1, 0, 2):
        window.finish(offset)
    assert window.offsets() == Offsets(7, frozenset())
    assert [logged.offset for logged in window.take(2, read)] == [7, 8]
    assert not window.reach(8)
