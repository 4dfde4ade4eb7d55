"""The bytes of objects and members, as the gateway sends them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import pytest

from processors.essence.formats.container import UnnestLimits
from processors.essence.stage import EssenceSettings, essence
from processors.identity import file_url, member_url, oid
from schemas.records import FetchedObject, Root, Summary
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
from streams.store.blobs import FolderBlobs
from streams.store.errors import StoreError
from tests.samples.make_corpus import FIELD_NOTES, NESTED_PATH, members, tar, write, zipped

SETTINGS = EssenceSettings(gatherer="g")


def url_of(path: Path, *, folder: bool = False) -> str:
    """Return the URL of a file."""
    return file_url(os.fsencode(path), folder=folder)


def fetched(path: Path) -> FetchedObject:
    """Return a file as an object."""
    data = path.read_bytes()
    digests: dict[str, Any] = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    return FetchedObject(url=url_of(path), version=1, time=1, outcome="fetched", size=len(data), body=data, **digests)


def summaries(path: Path) -> dict[str, Summary]:
    """Return the summaries of a file by member path, as Essence makes them."""
    return {r.path: r for r in essence(fetched(path), None, SETTINGS) if isinstance(r, Summary)}


def summary(url: str, data: bytes, path: str = "", **fields: Any) -> Summary:
    """Return a summary of bytes."""
    digests: dict[str, Any] = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    return Summary(
        oid=oid("g", member_url(url, path)),
        url=member_url(url, path),
        object_url=url,
        path=path,
        gatherer="g",
        version=1,
        time=1,
        type="Text",
        **({"size": len(data)} | digests | fields),
    )


class Place(NamedTuple):
    """A root with the corpus, a secret beside it, and the bodies of its Gatherer."""

    root: Path
    secret: Path
    bodies: ObjectBodies
    blobs: FolderBlobs

    def read(self, wanted: Summary) -> bytes:
        """Return the bytes of a summary; their number is the one that was announced."""
        file, size = self.bodies.open(wanted)
        with file:
            data = file.read()
        assert len(data) == size
        return data

    def status(self, wanted: Summary) -> int:
        """Return the status with which a summary is refused."""
        with pytest.raises(ObjectError) as raised:
            self.bodies.open(wanted)
        text = str(raised.value)
        assert text
        assert text.isprintable()
        return raised.value.status


@contextmanager
def made(folder: Path, root: Path) -> Iterator[Place]:
    """Make a place: a root, a data folder and a secret in one folder."""
    secret = folder / "secret"
    secret.write_bytes(b"a secret")
    blobs = FolderBlobs(folder / "data" / "blobs")
    roots = [Root(url=url_of(root, folder=True), run="1"), Root(url="https://example.org/", run="1")]
    bodies = ObjectBodies(BodySources(lambda: roots, blobs, folder / "data"), BodyLimits.of(SandboxLimits(), SETTINGS, 1 << 30))
    yield Place(root, secret, bodies, blobs)
    bodies.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Iterator[Place]:
    """A place over the corpus, for tests that change nothing in it."""
    with made(tmp_path_factory.mktemp("place"), corpus) as place:
        yield place


@pytest.fixture
def place(tmp_path: Path, corpus: Path) -> Iterator[Place]:
    """A place with a corpus of its own."""
    shutil.copytree(corpus, tmp_path / "root")
    with made(tmp_path, tmp_path / "root") as place:
        yield place


def test_file_has_its_bytes(shared: Place) -> None:
    """A plain file is sent whole, and a compressed one as it is stored."""
    for name in ("README", "manual/chains.1.gz", "archives/bundle.zip"):
        assert shared.read(summaries(shared.root / name)[""]) == members()[name]


def test_member_has_its_bytes(shared: Place) -> None:
    """A member three archives deep is taken out of them; so is the innermost archive."""
    name, _, path = NESTED_PATH.partition("#")
    found = summaries(shared.root / name)
    assert shared.read(found[path]) == FIELD_NOTES.encode()
    inner = found[path.rpartition("#")[0]]
    assert hashlib.md5(shared.read(inner)).hexdigest() == inner.md5


def test_members_of_documents_and_lists_have_their_bytes(place: Place) -> None:
    """A message of a mailbox, its attachment and an entry of a bibliography are sent as they were summarized."""
    samples = Path(__file__).parents[2] / "samples" / "unnest"
    for sample in (samples / "mbox" / "three.mbox", *(samples / "bibtex").glob("*.bib")):
        copy = Path(shutil.copy(sample, place.root))
        found = [one for one in summaries(copy).values() if one.path]
        assert found
        for one in found:
            assert hashlib.md5(place.read(one)).hexdigest() == one.md5


def test_requests_of_threads_do_not_mix(shared: Place) -> None:
    """Objects and members that are opened at once have each their own bytes."""
    found = [one for path in (shared.root / "archives").iterdir() for one in summaries(path).values()]
    assert len(found) > 20
    with ThreadPoolExecutor(6) as threads:
        for one, data in zip(found, threads.map(shared.read, found), strict=True):
            assert hashlib.md5(data).hexdigest() == one.md5


def test_changed_object_is_refused(place: Place) -> None:
    """An object whose content was changed since it was gathered is a conflict, whether or not its length changed."""
    path = place.root / "README"
    found = summaries(path)[""]
    path.write_bytes(path.read_bytes().swapcase())
    assert place.status(found) == 409
    path.write_bytes(b"other")
    assert place.status(found) == 409


@pytest.mark.parametrize("content", [b"One", b"one more", b"on"])
def test_changed_member_is_refused(content: bytes, place: Place) -> None:
    """A member whose content was changed since it was gathered is a conflict."""
    path = place.root / "x.tar"
    path.write_bytes(tar({"a": b"one", "b": b"two"}))
    found = summaries(path)
    path.write_bytes(tar({"a": content, "b": b"two"}))
    assert place.status(found["a"]) == 409
    assert place.read(found["b"]) == b"two"


def test_removed_object_or_member_is_missing(place: Place) -> None:
    """A file, a folder or a member that was removed is not found; neither is a member of what is no archive now."""
    path = place.root / "archives" / "x.tar"
    path.write_bytes(tar({"a": b"one", "b": b"two"}))
    found = summaries(path)
    path.write_bytes(tar({"b": b"two"}))
    assert place.status(found["a"]) == 404
    path.write_bytes(b"Some words.")
    assert place.status(found["a"]) == 404
    path.unlink()
    assert [place.status(found[one]) for one in ("", "a")] == [404, 404]
    shutil.rmtree(path.parent)
    assert place.status(found[""]) == 404


def test_link_in_place_of_file_is_not_followed(place: Place) -> None:
    """A link in place of a file, or of a folder above it, does not lead to a file outside the root."""
    secret = place.secret.read_bytes()
    (place.root / "file").symlink_to(place.secret)
    (place.root / "folder").symlink_to(place.secret.parent)
    assert place.status(summary(url_of(place.root / "file"), secret)) == 409
    assert place.status(summary(url_of(place.root / "folder" / "secret"), secret)) == 404


def test_other_kinds_of_files_are_not_opened(place: Place) -> None:
    """A fifo in place of a file blocks nothing; a folder or a gathered link has no bytes."""
    os.mkfifo(place.root / "fifo")
    assert place.status(summary(url_of(place.root / "fifo"), b"x")) == 409
    assert place.status(summary(url_of(place.root, folder=True), b"x")) == 409
    assert place.status(summary(url_of(place.root / "link"), b"x", content_type="inode/symlink")) == 404


@pytest.mark.parametrize("kind", ["outside", "up", "encoded", "beside", "other root", "none"])
def test_only_files_below_a_root_are_opened(kind: str, place: Place) -> None:
    """A summary that claims a file outside the roots is refused, whatever the form of its URL."""
    base, data = url_of(place.root, folder=True), place.secret.read_bytes()
    url = {
        "outside": "file:///etc/passwd",
        "up": f"{base}../secret",
        "encoded": f"{base}%2e%2e%2Fsecret",
        "beside": f"{base[:-1]}-2",
        "other root": url_of(place.secret),
        "none": f"{base}a%00b",
    }[kind]
    assert place.status(summary(url, data)) == 403
    assert place.status(summary(url, data, "member")) == 403


def test_file_of_the_data_folder_is_refused(place: Place) -> None:
    """The data folder is not sent, even if a root contains it."""
    data = place.root / "data"
    data.mkdir()
    (data / "key").write_bytes(b"a secret")
    sources = BodySources(lambda: [Root(url=url_of(place.root, folder=True), run="1")], place.blobs, data)
    bodies = ObjectBodies(sources, BodyLimits())
    assert place._replace(bodies=bodies).status(summary(url_of(data / "key"), b"a secret")) == 403
    bodies.close()


def test_root_may_be_a_single_file(place: Place) -> None:
    """A root that is a file allows that file alone."""
    sources = BodySources(lambda: [Root(url=url_of(place.secret), run="1")], place.blobs)
    one = place._replace(bodies=ObjectBodies(sources, BodyLimits()))
    assert one.read(summary(url_of(place.secret), b"a secret")) == b"a secret"
    assert one.status(summary(url_of(place.root / "README"), b"x")) == 403


def test_object_of_a_server_comes_from_the_blob_store(place: Place) -> None:
    """A body that is kept is sent, members too; for others the answer names the URL."""
    url, body = "https://example.org/x.tar", tar({"a": b"one"})
    whole, member = summary(url, body), summary(url, b"one", "a")
    with pytest.raises(ObjectError, match=r"fetch https://example\.org/x\.tar$") as raised:
        place.bodies.open(whole)
    assert raised.value.status == 404
    place.blobs.put(io.BytesIO(body))
    assert place.read(whole) == body
    assert place.status(member) == 404
    sources = BodySources(lambda: (), place.blobs, find={whole.oid: whole}.get)
    bodies = ObjectBodies(sources, BodyLimits())
    assert place._replace(bodies=bodies).read(member) == b"one"
    bodies.close()


@pytest.mark.parametrize("url", ["ftp://example.org/x", "javascript:alert(1)", "", "FILE:///etc/passwd", "../x", "blob"])
def test_other_urls_open_nothing(url: str, shared: Place) -> None:
    """Nothing is opened for a URL of another scheme."""
    assert shared.status(summary(url, b"x")) == 404


def test_bomb_is_not_unpacked(place: Place) -> None:
    """Bombs put in place of an archive end at the limits: on the way to a member, and as the member itself."""
    path = place.root / "x.tgz"
    path.write_bytes(gzip.compress(tar({"z": b"zero", "a": b"one"})))
    found = summaries(path)
    path.write_bytes(gzip.compress(tar({"z": bytes(80 << 20), "a": b"one"})))
    with pytest.raises(ObjectError, match="200 times its own size") as raised:
        place.bodies.open(found["a"])
    assert raised.value.status == 502
    assert place.status(found["z"]) == 409
    (place.root / "x.zip").write_bytes(zipped({"a": bytes(80 << 20)}))
    claimed = summary(url_of(place.root / "x.zip"), b"", "a", size=80 << 20)
    assert place.status(claimed) == 502


def test_damaged_archive_is_reported(place: Place) -> None:
    """A member that cannot be read any more is an error with its reason."""
    path = place.root / "x.tar"
    path.write_bytes(tar({"a": b"x" * 4_000}))
    found = summaries(path)["a"]
    path.write_bytes(path.read_bytes()[:2_000])
    with pytest.raises(ObjectError, match=r"^cannot be taken out of its archive: truncated") as raised:
        place.bodies.open(found)
    assert raised.value.status == 502


def test_large_object_and_member_are_refused(place: Place) -> None:
    """Above the limits nothing is opened; an object that has grown above them is not given to a child."""
    path = place.root / "x.tar"
    path.write_bytes(tar({"a": b"x" * 4_000}))
    found = summaries(path)
    sources = BodySources(lambda: [Root(url=url_of(place.root, folder=True), run="1")], place.blobs)
    small = place._replace(bodies=ObjectBodies(sources, BodyLimits(unnest=UnnestLimits(member=3_999), max_file=8_000)))
    assert [small.status(found[one]) for one in ("", "a")] == [413, 413]
    assert small.status(summary(url_of(path), b"x", "a")) == 413


def test_summary_without_bytes_is_refused(shared: Place) -> None:
    """A member that was not read when it was summarized cannot be compared, and is not sent."""
    assert shared.status(summary(url_of(shared.root / "archives" / "bundle.zip"), b"", "CONTENTS.txt", md5="")) == 404


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
