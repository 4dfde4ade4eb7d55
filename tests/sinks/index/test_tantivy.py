"""Guarantees of the embedded engine beyond BrokerIndex: folder, lock, and kills."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from processors.query import parse
from processors.query.forms import Analyzer
from schemas.query import Every
from schemas.records import Removed, Summary
from sinks.index.errors import IndexOutdated
from sinks.index.tantivy import index as tantivy_index
from sinks.index.tantivy.checksums import damage
from sinks.index.tantivy.index import IndexBusy, IndexDamaged, IndexMissing, TantivyIndex

HEAP = 15_000_000
DAY = 86_400_000
BATCH = 40

Make = Callable[..., Summary]
Remove = Callable[..., Removed]

CHILD = """
import os, resource, signal, sys
from pathlib import Path
from schemas.records import Summary
from sinks.index.tantivy import index as tantivy_index

def batch(number, size=40):
    about = {"gatherer": "g", "version": 1, "time": 1, "type": "Text", "published": 1}
    names = [f"{number}-{at}" for at in range(size)]
    return [Summary(oid=n, url=n, object_url=n, attributes={"title": (f"whale {n}",)}, **about) for n in names]

index = tantivy_index.TantivyIndex(Path(sys.argv[1]), heap=15_000_000)
"""
"""Start of a program that works on an index in its own process."""

KILLED_BEFORE_COMMIT = """
index.apply(batch(0), {0: 1})
tantivy_index.state_document = lambda state: os.kill(os.getpid(), signal.SIGKILL)
index.apply(batch(1), {0: 2})
"""

MERGED = 8
"""Number of segments that the engine merges into one."""

UNMERGED = f"""
for number in range({MERGED}):
    index.apply(batch(number), {{0: number + 1}})
os.kill(os.getpid(), signal.SIGKILL)
"""

ENDLESS = """
number = index.offsets().get(0, 0)
while True:
    index.apply(batch(number), {0: number + 1})
    number += 1
    print(number, flush=True)
"""

DISK_FULL = """
index.apply(batch(0), {0: 1})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, unlimited[1]))
try:
    index.apply(batch(1, 3_000), {0: 2})
except OSError as error:
    print("OSError:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
from schemas.query import Every
print(index.count(Every()), dict(index.offsets()))
index.apply(batch(2), {0: 3})
print(index.count(Every()), dict(index.offsets()))
"""


def child(folder: Path, program: str) -> subprocess.Popen[str]:
    """Start a process that runs a program on the index in a folder."""
    return subprocess.Popen([sys.executable, "-c", CHILD + program, folder], stdout=subprocess.PIPE, text=True)


def opened(folder: Path, *, writable: bool = True) -> TantivyIndex:
    """Open the index of a folder, with little memory."""
    return TantivyIndex(folder, writable=writable, heap=HEAP)


def segments(folder: Path) -> tuple[set[str], set[str]]:
    """Return the segments that have files in a folder, and those in its last commit."""
    files = {path.name.partition(".")[0] for path in folder.iterdir() if path.suffix != ".json" and path.name[0] != "."}
    named = {entry["segment_id"].replace("-", "") for entry in json.loads((folder / "meta.json").read_text())["segments"]}
    return files, named


def test_batch_killed_before_commit_is_not_applied(tmp_path: Path) -> None:
    """A batch whose process is killed before the commit is not applied, and neither are its offsets."""
    with child(tmp_path, KILLED_BEFORE_COMMIT) as process:
        assert process.wait() == -9
    with closing(opened(tmp_path)) as index:
        assert index.offsets() == {0: 1}
        assert index.count(Every()) == BATCH


def test_offsets_match_contents_after_kills(tmp_path: Path) -> None:
    """After kills during batches, the offsets match the contents of the index, and no files are left over."""
    told = 0
    for lines in (1, 3, 2, 5):
        with child(tmp_path, ENDLESS) as process:
            assert process.stdout
            told = max(int(process.stdout.readline()) for _ in range(lines))
            process.kill()
        with closing(opened(tmp_path)) as index:
            applied = index.offsets()[0]
            assert applied >= told
            assert index.count(Every()) == index.count(parse("whale")) == BATCH * applied
    with closing(opened(tmp_path)) as index:
        index.apply([], {0: 1_000})
    files, named = segments(tmp_path)
    assert files == named


def test_full_disk_keeps_nothing_of_batch(tmp_path: Path) -> None:
    """On a full disk apply raises OSError, nothing of the batch is kept, and the next batch succeeds."""
    with child(tmp_path, DISK_FULL) as process:
        output, _ = process.communicate()
    error, before, after = output.splitlines()
    assert error == f"OSError: [Errno 27] File too large: '{tmp_path}'"
    assert (before, after) == ("40 {0: 1}", "80 {0: 3}")


def test_failing_batch_is_rolled_back(tmp_path: Path, summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any exception within a batch rolls all of it back, and reaches the caller."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with closing(opened(tmp_path)) as index:
        with monkeypatch.context() as patch:
            patch.setattr(tantivy_index, "state_document", interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.apply([summary("http://a/")], {0: 1})
        index.apply([summary("http://b/")], {})
        assert [hit.url for hit in index.search(Every()).hits] == ["http://b/"]
        assert index.offsets() == {}


def test_file_of_a_killed_commit_is_in_nobodys_way(tmp_path: Path, summary: Make, removed: Remove) -> None:
    """A commit that was killed leaves the file of its deletions; the same batch is applied again all the same."""
    with closing(opened(tmp_path / "sound")) as index:
        index.apply([summary("a"), summary("b")], {0: 1})
    shutil.copytree(tmp_path / "sound", tmp_path / "killed")
    before = set(os.listdir(tmp_path / "killed"))
    with closing(opened(tmp_path / "sound")) as index:
        index.apply([removed("a", published=2)], {0: 2})
        (left,) = (name for name in set(os.listdir(tmp_path / "sound")) - before if name.endswith(".del"))
    # The engine lists its files before it makes them.
    (tmp_path / "killed" / left).write_bytes(b"")
    managed = tmp_path / "killed" / ".managed.json"
    managed.write_text(json.dumps([*json.loads(managed.read_text()), left]))
    with closing(opened(tmp_path / "killed")) as index:
        index.apply([removed("a", published=2)], {0: 2})
        assert [hit.url for hit in index.search(Every()).hits] == [summary("b").url]


def test_second_writer_is_refused(tmp_path: Path) -> None:
    """A second writer of any process is refused in one line, until the first is closed."""
    with closing(opened(tmp_path)), pytest.raises(IndexBusy, match="another process"):
        opened(tmp_path)
    opened(tmp_path).close()


def test_reader_sees_commits_and_cannot_write(tmp_path: Path, summary: Make) -> None:
    """A reader beside the writer sees each commit, takes no lock, and cannot write."""
    with closing(opened(tmp_path)) as writer, closing(opened(tmp_path, writable=False)) as reader:
        for number in range(1, 4):
            writer.apply([summary(f"http://{number}/", title="whale")], {0: number})
            assert reader.count(parse("whale")) == reader.search(Every()).total == number
            assert reader.offsets() == {0: number}
        with pytest.raises(OSError, match="read-only"):
            reader.apply([], {0: 9})
    opened(tmp_path, writable=False).close()


def test_index_files_have_same_permissions(tmp_path: Path, summary: Make) -> None:
    """All files of the index have the same read permissions, after a batch and at the end."""

    def modes() -> set[int]:
        return {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "i").iterdir()}

    before = os.umask(0o027)
    try:
        with closing(TantivyIndex(tmp_path / "i")) as index:
            index.apply([summary("file:///a")], {0: 1})
            assert modes() == {0o640}
            for number in range(2, 20):  # Enough for merges, which write at their own times.
                index.apply([summary(f"file:///a{number}")], {0: number})
    finally:
        os.umask(before)
    assert modes() == {0o640}


def test_closed_index_cannot_be_written(tmp_path: Path, summary: Make) -> None:
    """A closed index cannot be written, and may be closed again."""
    index = opened(tmp_path)
    index.close()
    index.close()
    with pytest.raises(OSError, match="closed"):
        index.apply([summary("http://a/")], {})


def test_missing_index_is_not_created_by_reader(tmp_path: Path) -> None:
    """A reader of a folder without an index gets an error, and creates nothing."""
    with pytest.raises(IndexMissing):
        opened(tmp_path / "none", writable=False)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("what", ["meta.json", "meta", "store", "term", "idx", "emptied"])
@pytest.mark.parametrize("writable", [True, False])
def test_damaged_index_is_reported(tmp_path: Path, summary: Make, what: str, writable: bool) -> None:
    """An index with a missing or truncated file is reported as damaged when it is opened, or at the latest when it is read."""
    with closing(opened(tmp_path)) as index:
        index.apply([summary(f"http://{n}/", title="whale") for n in range(50)], {0: 1})
    if what == "meta":
        (tmp_path / "meta.json").unlink()
    for path in tmp_path.glob("meta.json" if what == "meta.json" else f"*.{what}"):
        path.write_bytes(path.read_bytes()[:-20])
    if what == "emptied":
        for path in tmp_path.glob("*.pos"):
            path.unlink()
    with pytest.raises(IndexDamaged, match="index"), closing(opened(tmp_path, writable=writable)) as index:
        index.search(parse('"whale whale" OR *'))


@pytest.mark.parametrize("what", ["store", "term", "idx", "pos", "fast", "fieldnorm", "del"])
def test_flipped_bit_is_detected_by_checksum(tmp_path: Path, summary: Make, removed: Remove, what: str) -> None:
    """A flipped bit that opening misses is detected by the file's checksum; files that are not the index's are ignored."""
    with closing(opened(tmp_path)) as index:
        index.apply([summary(f"http://{n}/", title="whale") for n in range(50)], {0: 1})
        index.apply([summary("http://7/", title="dolphin", published=9)], {0: 2})
    (tmp_path / "0123.term").write_bytes(b"half a segment")
    assert damage(tmp_path) == ""
    path = max(tmp_path.glob(f"*.{what}"), key=lambda p: p.stat().st_size)
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    assert damage(tmp_path) == f"{path.name}: its checksum is wrong"
    path.write_bytes(data[:-1])
    assert damage(tmp_path) == f"{path.name}: cut short, or not a file of the engine"


def test_foreign_folder_is_not_an_index(tmp_path: Path) -> None:
    """A folder with other files in it is not accepted as an index."""
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(IndexDamaged, match="no index"):
        opened(tmp_path)


def test_index_of_other_analysis_must_be_rebuilt(tmp_path: Path, summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index made with another text analysis must be rebuilt."""
    with closing(opened(tmp_path)) as index:
        index.apply([summary("http://a/")], {0: 1})
    monkeypatch.setattr(tantivy_index, "FORMAT", "0")
    with pytest.raises(IndexDamaged, match="format"):
        opened(tmp_path)


def test_removals_are_retained_for_90_days(tmp_path: Path, summary: Make, removed: Remove) -> None:
    """Removals are retained for 90 days of their own time, no longer and no shorter."""
    with closing(opened(tmp_path)) as index:
        index.apply([removed("http://a/", published=5, time=1_000 * DAY)], {})
        index.apply([removed("http://b/", published=5, time=1_089 * DAY)], {})
        index.apply([summary("http://a/", published=4), summary("http://b/", published=4)], {})
        assert index.count(Every()) == 0
        index.apply([removed("http://c/", published=5, time=1_091 * DAY)], {})
        index.apply([summary("http://a/", published=4), summary("http://b/", published=4)], {})
        assert [hit.url for hit in index.search(Every()).hits] == ["http://a/"]


def test_index_is_no_larger_than_text(tmp_path: Path, summary: Make) -> None:
    """An index of text is no larger than the text: only the beginning of a long value is stored for display."""
    text = " ".join(f"word{at * at % 997}" for at in range(5_000))
    with closing(opened(tmp_path)) as index:
        index.apply([summary(f"http://{n}/", partial_text=text) for n in range(100)], {})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100 * len(text)


def unmerged(folder: Path) -> Path:
    """Return an index whose writer was killed between committing enough segments for a merge and merging them."""
    for number in range(20):
        made = folder / str(number)
        with child(made, UNMERGED) as process:
            assert process.wait() == -9
        if len(segments(made)[1]) == MERGED:
            return made
    raise AssertionError("the merge always comes before the kill")


def test_first_change_of_new_writer_survives_merge(tmp_path: Path) -> None:
    """A new writer's first replacement takes effect, also while segments of its killed predecessor are merged."""
    folder = unmerged(tmp_path)
    about: dict[str, Any] = {"gatherer": "g", "version": 2, "time": 1, "type": "Text", "published": 2}
    # In a segment from which the last commit has deleted: an earlier state existed before.
    oid = f"{MERGED - 2}-5"
    with closing(opened(folder)) as index:
        index.apply([Summary(oid=oid, url=oid, object_url=oid, attributes={"title": ("squid",)}, **about)], {0: 99})
    # Closing waits for the merge that the commit started.
    with closing(opened(folder)) as index:
        assert index.count(parse("squid")) == 1
        assert index.count(Every()) == MERGED * BATCH
        assert index.offsets() == {0: 99}


def test_index_remembers_its_languages(tmp_path: Path, summary: Make) -> None:
    """A reader uses the languages that an index was made for; a writer for other languages is refused."""
    with closing(TantivyIndex(tmp_path / "index", heap=HEAP, analyzer=Analyzer(["de"]))) as index:
        index.apply([summary("http://a/", title="Häuser")], {})
    with closing(TantivyIndex(tmp_path / "index", writable=False)) as index:
        assert index.search(parse("haus")).total == 1
        assert index.search(parse("whales")).total == 0
    with pytest.raises(IndexOutdated, match="made for the languages de, not en"):
        TantivyIndex(tmp_path / "index", heap=HEAP, analyzer=Analyzer(["en"]))
    with closing(TantivyIndex(tmp_path / "index", heap=HEAP)) as index:
        index.apply([summary("http://b/", title="Haus")], {})
        assert index.search(parse("häuser")).total == 2
