from __future__ import annotations

import errno

import pytest

from streams.faults import EFFECTS, Faults, parse


def test_fault_takes_effect_at_its_nth_passage() -> None:
    """A fault takes effect once, at the planned passage of its point, and at no other point."""
    faults = Faults(parse("a:2:enospc"))
    faults("a")
    faults("b")
    with pytest.raises(OSError, match="No space") as caught:
        faults("a")
    assert caught.value.errno == errno.ENOSPC
    faults("a")


def test_setting_plans_several_faults() -> None:
    """A setting may plan several faults; an empty one plans none."""
    assert parse("a:1:kill,b.c:20:enospc") == {"a": (1, EFFECTS["kill"]), "b.c": (20, EFFECTS["enospc"])}
    assert parse("") == {}


@pytest.mark.parametrize("text", ["a", "a:x:kill", "a:1:explode", "a:1:kill:2"])
def test_malformed_setting_is_quoted(text: str) -> None:
    """A malformed setting raises a ValueError that quotes it."""
    with pytest.raises(ValueError, match="expected point:count"):
        parse(text)
