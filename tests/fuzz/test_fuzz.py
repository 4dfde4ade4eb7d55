from __future__ import annotations

import io
import os
import random
import signal
import zipfile
import zlib
from collections.abc import Callable, Hashable
from contextlib import suppress
from itertools import count

import pytest

import tests.fuzz.hunt
from tests.fuzz.hunt import hunt, once, written
from tests.fuzz.laws import Broken
from tests.fuzz.mutate import Mutator
from tests.fuzz.targets import SAVED, Target, names, targets

RUNS = 120
"""Number of inputs generated for each target, the same in every run of the tests."""


@pytest.mark.parametrize("name", names())
def test_no_input_breaks_a_law(name: str) -> None:
    """No input of the corpus, and none of a hundred generated from it, breaks a law of its parser."""
    report = hunt(targets()[name], "harvest", RUNS)
    assert not report.found, "\n".join(map(written, report.found))


def test_every_parser_is_a_target() -> None:
    """Each unnester and each summarizer is a target, and each folder of saved inputs belongs to a target."""
    assert set(names()) == set(targets())
    assert {path.name for path in SAVED.iterdir()} <= set(names())


def _dies(data: bytes) -> Hashable:
    if b"\xff" in data:
        os.kill(os.getpid(), signal.SIGSEGV)
    return data


def _raises(data: bytes) -> Hashable:
    return 1 // (b"\xff" not in data)


def _breaks(data: bytes) -> Hashable:
    if b"\xff" in data:
        raise Broken("a law")
    return data


def _turns(data: bytes) -> Hashable:
    while b"\xff" in data:
        _dies(b"")
    return data


_counted = count()


def _forgets(data: bytes) -> Hashable:
    return next(_counted) if b"\xff" in data else 0


PLANTED: dict[str, tuple[Callable[[bytes], Hashable], str]] = {
    "dies": (_dies, "the process dies of it"),
    "raises": (_raises, "ZeroDivisionError"),
    "breaks": (_breaks, "a law"),
    "turns": (_turns, "more than"),
    "forgets": (_forgets, "another outcome"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found_and_reduced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash, an exception, a violated law, an endless loop and a changing outcome are found, reduced, and reproduced."""
    monkeypatch.setattr(tests.fuzz.hunt, "STEPS", 5_000)
    monkeypatch.setattr(tests.fuzz.hunt, "STEPS_A_BYTE", 1)
    run, why = PLANTED[name]
    target = Target(f"planted-{name}", run, (b"some text of no meaning " * 8,), (b"\xff",))
    (found,) = hunt(target, "harvest", 300).found
    assert why in found.why
    assert found.data == b"\xff"
    assert why in once(target, found.data)
    assert f"target=planted-{name} " in written(found)


def test_quadratic_work_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that grows with the square of the repeated fragment is reported; linear work is not."""
    monkeypatch.setattr(tests.fuzz.hunt, "FLOOR", 0)

    def square(data: bytes) -> Hashable:
        return sum(1 for _ in data for _ in range(len(data) // 2_000))

    def linear(data: bytes) -> Hashable:
        return sum(1 for _ in data for _ in range(9))

    found = [hunt(Target("planted", run, (b"abc",), (b"de",)), "harvest", 30).found for run in (square, linear)]
    assert [one.why.partition(":")[0] for one in found[0]] == ["no linear work"]
    assert "seed=harvest runs=" in written(found[0][0])
    assert not found[1]


def test_same_seed_generates_the_same_inputs() -> None:
    """The same seed generates the same inputs; another seed generates others."""
    target = targets()["unnest-zip"]
    made = []
    for seed in ("a", "a", "b"):
        mutator = Mutator(random.Random(seed), target.words, target.corpus)
        made.append([mutator.mutate(target.corpus[0]) for _ in range(50)])
    assert made[0] == made[1] != made[2]


def test_parts_of_zips_are_mutated() -> None:
    """The parts of a zip are mutated, with their checksums updated."""
    target = targets()["summarize-opendocument"]
    mutator = Mutator(random.Random(1), target.words, target.corpus)
    whole = 0
    for _ in range(100):
        made = io.BytesIO(mutator.mutate(target.corpus[0]))
        # zipfile raises NotImplementedError for a method or a version that it does not know.
        damage = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError, OSError)
        with suppress(*damage), zipfile.ZipFile(made) as archive:
            whole += archive.testzip() is None
    assert whole > 40
