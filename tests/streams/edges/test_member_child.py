"""Children that take members out of archives: what they answer, how they end, how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest

from schemas.records import Root
from sinks.gateway.ports import ObjectError
from streams.edges import object_body
from streams.edges.extensions import read
from streams.edges.member_job import COMPLETE, DATA, LONGER, MISSING, UNREADABLE
from streams.edges.object_body import BodyLimits, BodySources, ObjectBodies
from streams.sandbox.shared import SharedPool
from streams.sandbox.values import (
    Crashed,
    Done,
    Failed,
    Flooded,
    Lost,
    Outcome,
    OutOfMemory,
    SandboxError,
    SandboxLimits,
    TimedOut,
)
from streams.store.errors import StoreError
from tests.samples.make_corpus import NESTED_PATH, tar
from tests.streams.edges.object_places import Place, summaries, summary, url_of


class Scripted:
    """A substitute for a pool: it sends frames, and ends with an outcome."""

    def __init__(self, frames: Sequence[bytes], outcome: Outcome | Exception) -> None:
        self.frames, self.outcome = frames, outcome

    def run(self, request: bytes, body: int, on_frame: Callable[[bytes], None]) -> Outcome:
        """Same signature as `SharedPool.run`."""
        for frame in self.frames:
            on_frame(frame)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def close(self) -> None:
        """Do nothing."""


def scripted(place: Place, *frames: bytes, outcome: Outcome | Exception | None = None) -> Place:
    """Return a place whose child sends the given frames."""
    sources = BodySources(lambda: [Root(url=url_of(place.root, folder=True), run="1")], place.blobs)
    bodies = ObjectBodies(sources, BodyLimits())
    bodies._pool = cast("SharedPool", Scripted(frames, outcome or Done()))
    return place._replace(bodies=bodies)


def test_answer_of_a_child_is_taken(shared: Place) -> None:
    """Bytes in several frames are joined."""
    wanted = summary(url_of(shared.root / "README"), b"words", "a")
    assert scripted(shared, DATA + b"wo", DATA + b"rds", COMPLETE).read(wanted) == b"words"


@pytest.mark.parametrize(
    ("frames", "status"),
    [
        ([], 502),
        ([b""], 502),
        ([b"\xff"], 502),
        ([DATA + b"words"], 502),
        ([DATA + b"words and more", COMPLETE], 502),
        ([COMPLETE, DATA + b"words"], 502),
        ([COMPLETE, COMPLETE], 502),
        ([COMPLETE], 409),
        ([DATA + b"Words", COMPLETE], 409),
        ([DATA + b"words", LONGER], 409),
        ([MISSING + "not there\n\u202e".encode() + b"\xff" * 500], 404),
        ([UNREADABLE + b"damaged\r\n\r\n<script>"], 502),
    ],
)
def test_false_answer_of_a_child_is_refused(frames: list[bytes], status: int, shared: Place) -> None:
    """Whatever a compromised child sends, only the bytes of the summary are sent on; its texts are cut to one line."""
    wanted = summary(url_of(shared.root / "README"), b"words", "a")
    assert scripted(shared, *frames).status(wanted) == status


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Crashed(11, 0, "x"), 502),
        (TimedOut("x"), 502),
        (OutOfMemory("x"), 502),
        (Flooded("x", "total"), 413),
        (Failed("Traceback\nValueError: a bug", "x"), 502),
        (Lost("the pool was closed"), 503),
        (SandboxError("no library"), 502),
        (OSError(28, "No space left on device"), 502),
    ],
)
def test_end_of_a_child_is_reported(outcome: Outcome | Exception, status: int, shared: Place) -> None:
    """A child that is ended by an archive gives an error in one line, even if all bytes have arrived."""
    wanted = summary(url_of(shared.root / "README"), b"words", "a")
    assert scripted(shared, DATA + b"words", COMPLETE, outcome=outcome).status(wanted) == status


def test_archive_that_needs_too_much_memory_is_reported(place: Place) -> None:
    """A real child has the limits of memory that a parser has; the next request is served."""
    (place.root / "x.tar").write_bytes(tar({"a": b"one"}))
    sources = BodySources(lambda: [Root(url=url_of(place.root, folder=True), run="1")], place.blobs)
    small = place._replace(bodies=ObjectBodies(sources, BodyLimits(sandbox=SandboxLimits(memory=1 << 20))))
    hungry = next(one for one in summaries(place.root / "archives" / "notes.tar.xz").values() if one.path)
    with pytest.raises(ObjectError, match=r"(?i)memory") as raised:
        small.bodies.open(hungry)
    assert raised.value.status == 502
    assert small.read(summaries(place.root / "x.tar")["a"]) == b"one"
    small.bodies.close()


def test_types_of_the_operator_are_loaded(place: Place, tmp_path: Path) -> None:
    """A type that the operator assigns to a place is opened as in Essence; additions that cannot be loaded are reported."""
    own, odd = tmp_path / "own", place.root / "odd"
    own.mkdir()
    odd.mkdir()
    # Its name and its first bytes are those of no bibliography.
    text = b"\n".join(b"@book{key%d,\n title = {Title %d}\n}" % (n, n) for n in range(3))
    for path in (odd / "list", tmp_path / "x.bib"):
        path.write_bytes(b"x" * 5_000 + b"\n" + text)
    known = summaries(tmp_path / "x.bib")["key0"]
    (own / "rules.toml").write_text('[[places]]\nurl = "*/odd/*"\ntype = "Bibliographic"\n')
    sources = BodySources(lambda: [Root(url=url_of(place.root, folder=True), run="1")], place.blobs)
    wanted = summary(url_of(odd / "list"), b"", "key0", size=known.size, md5=known.md5, sha256="")
    assert place.status(wanted) == 404
    added = read(own)
    for extensions, status in ((added, 0), (msgspec.structs.replace(added, digest="other"), 502)):
        bodies = ObjectBodies(sources, BodyLimits(), extensions)
        if status:
            assert place._replace(bodies=bodies).status(wanted) == status
        else:
            assert place._replace(bodies=bodies).read(wanted).startswith(b"@book{key0")
        bodies.close()


def test_waiting_request_is_refused_in_the_end(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """While others are being opened, a request waits for its turn, and is then told to try again."""
    monkeypatch.setattr(object_body, "PATIENCE_S", 0.0)
    found = summaries(shared.root / "README")[""]
    for _ in range(object_body.CHILDREN):
        assert shared.bodies._turns.acquire(blocking=False)
    assert shared.status(found) == 503
    for _ in range(object_body.CHILDREN):
        shared.bodies._turns.release()
    assert shared.read(found)


def test_unreadable_data_folder_is_reported(shared: Place) -> None:
    """If the roots are not known, nothing is sent."""

    def none() -> list[Root]:
        raise StoreError("locked")

    bodies = ObjectBodies(BodySources(none, shared.blobs), BodyLimits())
    assert shared._replace(bodies=bodies).status(summaries(shared.root / "README")[""]) == 503


def test_closed_bodies_open_no_member(place: Place) -> None:
    """After the end no child is started any more."""
    name, _, path = NESTED_PATH.partition("#")
    place.bodies.close()
    assert place.status(summaries(place.root / name)[path]) == 503
