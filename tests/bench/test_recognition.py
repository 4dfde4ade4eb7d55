"""The benchmark of recognition on some small files: right answers, files left out, and the rules of the table of labels."""

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
    """Labeled files, two of them with wrong labels."""
    for name, (_, body, _) in FILES.items():
        (tmp_path / name).write_bytes(body)
    return [Labelled("made", tmp_path / name, label) for name, (label, _, _) in FILES.items()]


def test_types_of_labels_exist() -> None:
    """Each type in the table of labels exists, and no label means two types."""
    found = labels()
    kinds = {*found.types, *found.finer, *found.descriptions.values(), *(t for finer in found.finer.values() for t in finer)}
    assert kinds <= table().rules.keys()
    twice = [label for label, count in Counter(label for own in found.types.values() for label in own).items() if count > 1]
    assert not twice
    assert all(found.wanted(media) for media in (*found.names.values(), *found.places.values()))


def test_shares_are_by_type_and_by_label(made: list[Labelled]) -> None:
    """Shares are by type and by label: a finer type is right, empty files do not count, a label without a type counts as wrong."""
    found = answers(made, labels())
    assert {one.file.path.name: one.found for one in found} == {name: kind for name, (*_, kind) in FILES.items() if kind}
    assert by_type(found, labels()) == {"HTML": 50, "XML": 100, "SourceCode": 0}
    assert by_label(made, found, labels()) == {
        "text/html": 50,
        "application/xml": 100,
        "lexer strange": 0,
        "application/x-unheard-of": 0,
    }


def test_files_left_out_are_counted_with_reasons(made: list[Labelled]) -> None:
    """Files that are not judged are counted with the reason; a type below 100 per cent is listed with its files."""
    figures = {one.name.strip(): one for one in recognized(made)}
    assert [figures[f"not judged: {why}"].figure for why in ("no label", "no type", "empty")] == [1, 1, 1]
    assert figures["right, average of types"].figure == 50
    assert figures["right, average of types"].met is False
    assert figures["right, of files"].figure == 50
    assert figures["HTML"].against == "made/b.html: PDF"
    assert "XML" not in figures


def test_common_attributes_are_not_specific() -> None:
    """A file has specific attributes if its type is known and it has others than those of any file."""
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


def test_archives_are_extracted_once(tmp_path: Path) -> None:
    """The named parts of a tarball (without its top folder and links) or a zip are extracted once; existing files are kept."""
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


def test_existing_archive_is_not_fetched_again(tmp_path: Path) -> None:
    """An archive that exists is used without calling a client, even if it has been extracted."""
    for name in ("x_1.orig.tar.gz", "some_name-1.tar.gz"):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo("x-1/a.txt"), io.BytesIO())
    for _ in range(2):
        assert debian_source(tmp_path, "x") == tmp_path / "x_1.orig.tar.gz"
        assert sdist(tmp_path, "some.name==1") == tmp_path / "some_name-1.tar.gz"
        assert len(files(opened(debian_source(tmp_path, "x"), tmp_path / "opened"))) == 1
        assert len(files(opened(sdist(tmp_path, "some.name==1"), tmp_path / "opened"))) == 1


def test_tarball_with_an_outside_path_is_refused(tmp_path: Path) -> None:
    """A tarball with a file outside its folder is refused."""
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("x-1/../../out.txt"), io.BytesIO())
    with pytest.raises(BenchError, match="outside"):
        opened(tmp_path / "a.tar.gz", tmp_path / "opened")
    assert files(tmp_path) == [tmp_path / "a.tar.gz"]


def test_broken_archive_is_named_and_tried_again(tmp_path: Path) -> None:
    """An archive that cannot be opened is named in the error, and opened again on the next run."""
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    for _ in range(2):
        with pytest.raises(BenchError, match=r"x\.tar\.gz"):
            opened(tmp_path / "x.tar.gz", tmp_path / "opened")


def test_label_is_that_of_the_decompressed_path(tmp_path: Path) -> None:
    """The first pattern that matches a path gives its label; the file is decompressed."""
    assert _label("usr/share/man/man1/ls.1", labels().places) == "application/x-troff-man"
    assert _label("usr/share/nothing", labels().places) == ""
    (tmp_path / "a.1.gz").write_bytes(gzip.compress(b".TH A 1\n"))
    _copied(tmp_path / "a.1.gz", tmp_path / "below" / "a.1")
    assert (tmp_path / "below" / "a.1").read_bytes() == b".TH A 1\n"
