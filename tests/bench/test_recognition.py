"""The bench of recognition, on some files of our own: what is right, what is left out, and what the table of labels must be."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from processors.essence.recognize import table
from schemas.records import Summary
from tests.bench.figures import BenchError
from tests.bench.labelled import Labelled, labels
from tests.bench.packages import complete, debian_source, files, opened, sdist
from tests.bench.placed import _copied, _label
from tests.bench.recognition import _specific, answers, by_label, by_type, recognized

FILES = {
    "a.html": ("text/html", b"<!DOCTYPE html><title>x</title>", "HTML"),
    "b.html": ("text/html", b"%PDF-1.4\n", "PDF"),
    "c.xml": ("application/xml", b"<svg xmlns='x'/>", "SVG"),
    "d.strange": ("lexer strange", b"words", "RawText"),
    "e.txt": ("", b"words", ""),
    "f.png": ("image/png", b"", ""),
    "g.x": ("application/x-unheard-of", b"words", ""),
}


@pytest.fixture
def made(tmp_path: Path) -> list[Labelled]:
    """Files with labels, two of them wrong."""
    for name, (_, body, _) in FILES.items():
        (tmp_path / name).write_bytes(body)
    return [Labelled("made", tmp_path / name, label) for name, (label, _, _) in FILES.items()]


def test_types_of_labels_are_there() -> None:
    """Each type in the table of labels is one of ours, and no label means two."""
    found = labels()
    kinds = {*found.types, *found.finer, *found.descriptions.values(), *(t for finer in found.finer.values() for t in finer)}
    assert kinds <= table().rules.keys()
    twice = [label for label, count in Counter(label for own in found.types.values() for label in own).items() if count > 1]
    assert not twice
    assert all(found.wanted(media) for media in (*found.names.values(), *found.places.values()))


def test_shares_are_of_types_and_of_labels(made: list[Labelled]) -> None:
    """A share is taken for each type; a finer type is right, an empty file is not asked, a label without a type is wrong as one."""
    found = answers(made, labels())
    assert {one.file.path.name: one.found for one in found} == {name: kind for name, (*_, kind) in FILES.items() if kind}
    assert by_type(found, labels()) == {"HTML": 50, "XML": 100, "SourceCode": 0}
    assert by_label(made, found, labels()) == {
        "text/html": 50,
        "application/xml": 100,
        "lexer strange": 0,
        "application/x-unheard-of": 0,
    }


def test_nothing_is_left_out_in_silence(made: list[Labelled]) -> None:
    """What is not judged is counted, with the reason; a type that is not always right is named with its files."""
    figures = {one.name.strip(): one for one in recognized(made)}
    assert [figures[f"not judged: {why}"].figure for why in ("no label", "no type", "empty")] == [1, 1, 1]
    assert figures["right, average of types"].figure == 50
    assert figures["right, average of types"].met is False
    assert figures["right, of files"].figure == 50
    assert figures["HTML"].against == "made/b.html: PDF"
    assert "XML" not in figures


def test_common_attributes_are_none_of_a_type() -> None:
    """A file has attributes of its type if it has others than any file may have, and its type is known."""
    summary = Summary(
        oid="x",
        url="file:///x",
        object_url="file:///x",
        path="",
        gatherer="x",
        version=1,
        time=1,
        type="HTML",
        content_type="text/html",
        size=1,
        md5="",
        sha256="",
        attempt="1",
        attributes={"title": ("x",), "file-name": ("x",)},
        ttl=1,
        refresh=1,
    )
    assert not _specific(summary)
    known = {**summary.attributes, "headings": ("y",)}
    assert _specific(Summary(**{**{f: getattr(summary, f) for f in summary.__struct_fields__}, "attributes": known}))
    unknown = {f: getattr(summary, f) for f in summary.__struct_fields__} | {"type": "Unrecognized", "attributes": known}
    assert not _specific(Summary(**unknown))


def test_archives_are_opened_once(tmp_path: Path) -> None:
    """Of a tarball the named parts come out, without its one folder and without links; of a zip too; what is there stays."""
    tarball, zipped, target = tmp_path / "a.tar.gz", tmp_path / "b.jar", tmp_path / "opened"
    with tarfile.open(tarball, "w:gz") as archive:
        for name in ("x-1/tests/a.txt", "x-1/src/b.txt"):
            info = tarfile.TarInfo(name)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"words"))
        link = tarfile.TarInfo("x-1/tests/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with zipfile.ZipFile(zipped, "w") as packed:
        packed.writestr("tests/c.txt", "words")
        packed.writestr("other/d.txt", "words")
    for path, name in ((tarball, "a.txt"), (zipped, "c.txt")):
        folder = opened(path, target, ("tests/",))
        assert [str(one.relative_to(folder)) for one in files(folder)] == [f"tests/{name}"]
        assert complete(target, path.name).is_file()
        (folder / "tests" / name).write_bytes(b"other")
        assert (opened(path, target, ("tests/",)) / "tests" / name).read_bytes() == b"other"


def test_what_was_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    """An archive that is there is taken, whatever was opened of it; no client is asked."""
    for name in ("x_1.orig.tar.gz", "some_name-1.tar.gz"):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo("x-1/a.txt"), io.BytesIO())
    for _ in range(2):
        assert debian_source(tmp_path, "x") == tmp_path / "x_1.orig.tar.gz"
        assert sdist(tmp_path, "some.name==1") == tmp_path / "some_name-1.tar.gz"
        assert len(files(opened(debian_source(tmp_path, "x"), tmp_path / "opened"))) == 1
        assert len(files(opened(sdist(tmp_path, "some.name==1"), tmp_path / "opened"))) == 1


def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    """A tarball whose file would lie outside of its folder is refused."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("x-1/../../out.txt"), io.BytesIO())
    with pytest.raises(BenchError, match="outside"):
        opened(tmp_path / "a.tar.gz", tmp_path / "opened")
    assert files(tmp_path) == [tmp_path / "a.tar.gz"]


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    """An archive that cannot be opened is named, and is tried again the next time."""
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    for _ in range(2):
        with pytest.raises(BenchError, match=r"x\.tar\.gz"):
            opened(tmp_path / "x.tar.gz", tmp_path / "opened")


def test_places_are_those_of_what_is_compressed(tmp_path: Path) -> None:
    """A file's place tells its label, the first that fits; it is decompressed."""
    assert _label("usr/share/man/man1/ls.1", labels().places) == "application/x-troff-man"
    assert _label("usr/share/nothing", labels().places) == ""
    (tmp_path / "a.1.gz").write_bytes(gzip.compress(b".TH A 1\n"))
    _copied(tmp_path / "a.1.gz", tmp_path / "below" / "a.1")
    assert (tmp_path / "below" / "a.1").read_bytes() == b".TH A 1\n"
