from __future__ import annotations

import errno

import pytest

from streams.faults import EFFECTS, Faults, parse


def test_nth_passage() -> None:
    """A fault has its effect at the passage that it names, once, and no other point has any."""
    faults = Faults(parse("a:2:enospc"))
    faults("a")
    faults("b")
    with pytest.raises(OSError, match="No space") as caught:
        faults("a")
    assert caught.value.errno == errno.ENOSPC
    faults("a")


def test_several() -> None:
    """A setting may plan several faults; an empty one plans none."""
    assert parse("a:1:kill,b.c:20:enospc") == {"a": (1, EFFECTS["kill"]), "b.c": (20, EFFECTS["enospc"])}
    assert parse("") == {}


@pytest.mark.parametrize("text", ["a", "a:x:kill", "a:1:explode", "a:1:kill:2"])
def test_malformed(text: str) -> None:
    """A malformed setting is a ValueError that shows it."""
    with pytest.raises(ValueError, match="expected point:count"):
        parse(text)
