"""The bytes of objects and members, as the gateway sends them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from processors.essence.formats.container import UnnestLimits
from schemas.records import Root
from sinks.gateway.ports import ObjectError
from streams.edges.object_body import BodyLimits, BodySources, ObjectBodies
from tests.samples.make_corpus import FIELD_NOTES, NESTED_PATH, members, tar, zipped
from tests.streams.edges.object_places import Place, summaries, summary, url_of


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


def test_location_of_a_collected_summary_opens_nothing(place: Place) -> None:
    """Another Gatherer may state that a summary is of a local file below a root, with its digests: the file is not opened."""
    url = url_of(place.root / "README")
    own = summary(url, members()["README"])
    part = "http://source.example/gatherer/soif/3"
    collected = replace(own, url=f"{part}#{'0' * 64}", object_url=part, path="0" * 64, location=url)
    assert place.read(own) == members()["README"]
    assert place.status(collected) == 404


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
