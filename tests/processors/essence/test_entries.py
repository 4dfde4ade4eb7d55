"""Lists whose entries have their own summaries: packages, software maps, templates, bibliographies, hand-written indexes."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from processors.essence.formats.container import FEW, SPARSE, UnnestLimits
from processors.essence.stage import EssenceSettings, Output, essence
from processors.identity import oid
from schemas.records import Complete, FetchedObject, Partial, Rejected, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

SETTINGS = EssenceSettings(gatherer="g")
SAMPLES = Path(__file__).parents[2] / "samples" / "unnest"
LISTS = [
    ("debianpackages/three.packages", "Packages", "DebianPackages", {"oar-1.2-1": ("DebianControl", "oar: move boats by oars")}),
    ("lsm/two.lsm", "x.lsm", "LSM", {"oar-1.2": ("LSM", "oar"), "sail": ("LSM", "sail"), "anchor-0.1": ("LSM", "anchor")}),
    ("iafa/three.iafa", "boats.txt", "IAFA", {"oar-1.2": ("IAFA", "oar"), "doc-7": ("IAFA", "Rowing upstream")}),
    ("bibtex/boats.bib", "x.bib", "Bibliographic", {"jerome89": ("Bibliographic", "Three Men in a Boat")}),
    ("bibtex/boats.ris", "x.ris", "Bibliographic", {"entry-2": ("Bibliographic", "Three Men in a Boat")}),
    (
        "fileindex/00-INDEX",
        "00-INDEX",
        "FileIndex",
        {"boats/": ("FileIndex", "boats/: directory with boats of all kinds, some of which float.")},
    ),
    ("fileindex/FILES.BBS", "FILES.BBS", "FileIndex", {"SAIL.ARJ": ("FileIndex", "SAIL.ARJ: Moves boats by the wind.")}),
]


def summaries(records: list[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


@pytest.mark.parametrize(("sample", "name", "kind", "wanted"), LISTS, ids=[sample for sample, *_ in LISTS])
def test_each_entry_is_a_summary(
    sample: str, name: str, kind: str, wanted: dict[str, tuple[str, str]], run: Run, request: pytest.FixtureRequest
) -> None:
    """A list has its own summary, and each entry one under its name, with the list as source and excluded from dedup."""
    url = f"file:///d/{name}"
    records = run((SAMPLES / sample).read_bytes(), url)
    found = summaries(records)
    assert list(found)[-1] == ""
    assert found[""].type == kind
    assert found[""].attributes["member-count"] == (str(len(found) - 1),)
    assert {path: (found[path].type, found[path].attributes["title"][0]) for path in wanted} == wanted
    entries = [s for path, s in found.items() if path]
    assert {(s.attributes["source"], s.sha256, s.content) for s in entries} == {((url,), "", "")}
    assert all(s.md5 and s.size and s.oid == oid("g", s.url) for s in entries)
    assert isinstance(records[-1], Complete)
    assert not [r for r in records if isinstance(r, Rejected)]


def test_entry_has_the_digest_of_its_bytes(run: Run) -> None:
    """Size and MD5 of an entry are those of its bytes in the list."""
    data = b"Package: a\nVersion: 1\n\nPackage: b\nVersion: 2\n"
    found = summaries(run(data, "file:///d/Packages"))
    assert (found["a-1"].size, found["a-1"].md5) == (22, hashlib.md5(data[:22]).hexdigest())


@pytest.mark.parametrize(("sample", "name"), [("lsm/two.lsm", "x.lsm"), ("bibtex/boats.bib", "x.bib")])
def test_entries_can_be_turned_off(sample: str, name: str, run: Run) -> None:
    """With entries turned off, a list is one summary."""
    assert list(summaries(run((SAMPLES / sample).read_bytes(), f"file:///d/{name}", settings={"entries": False}))) == [""]


def test_single_entry_is_not_a_member(run: Run) -> None:
    """A file with one entry has no members, as the entry would equal the file."""
    for name, data in (
        ("x.lsm", b"Begin3\nTitle: oar\nEnd\n"),
        ("x.bib", b"@book{a, title={Boats}}\n"),
        ("x.iafa", b"Template-Type: SOFTWARE\nTitle: oar\n"),
        ("Packages", b"Package: oar\nVersion: 1\n"),
        ("00-INDEX", b"oar.txt\n\t- how to row\n"),
    ):
        (summary,) = summaries(run(data, f"file:///d/{name}")).values()
        assert not {"member-count", "contents", "source"} & set(summary.attributes)


def test_abbreviations_apply_to_entries(run: Run) -> None:
    """An entry of a bibliography is read with the abbreviations that the file defines."""
    found = summaries(run((SAMPLES / "bibtex" / "boats.bib").read_bytes(), "file:///d/x.bib"))
    assert found["bjork94"].attributes["journals"] == ("Journal of Boats",)
    assert found["jerome89"].attributes["author"] == ("Jerome K. Jerome",)
    assert set(found) == {"bjork94", "jerome89", "broken", "last", ""}


def test_entries_in_archive_have_paths_below_list(run: Run, tar: Pack) -> None:
    """Entries of a list in an archive have paths below it and the list as source; equal names are numbered."""
    data = b"Package: a\nVersion: 1\n\nPackage: a\nVersion: 1\n"
    found = summaries(run(tar([("d/Packages.gz", gzip.compress(data))]), "file:///d/x.tar"))
    assert list(found) == ["d/Packages.gz#a-1", "d/Packages.gz#a-1;2", "d/Packages.gz", ""]
    assert found["d/Packages.gz#a-1"].attributes["source"] == ("file:///d/x.tar#d/Packages.gz",)


def packages(count: int) -> bytes:
    """Return a list of `count` packages."""
    return b"\n".join(
        b"Package: p%d\nVersion: 1\nMaintainer: Ann <ann@example.org>\nDescription: boat %d\n" % (n, n) for n in range(count)
    )


def test_long_list_leaves_budget_for_later_members(run: Run, tar: Pack) -> None:
    """A list in an archive uses at most half of the object's remaining budget; the cut is reported, and later files are read."""
    data = tar([("Packages", packages(60)), ("b/Packages", packages(60)), ("words.txt", b"Some words.\n")])
    records = run(data, "file:///d/x.tar", settings={"limits": UnnestLimits(entries=80)})
    found = summaries(records)
    assert found["Packages"].attributes["member-count"] == ("39",)
    assert found["Packages"].attributes["entries-left-out"] == ("21",)
    assert found["Packages"].attributes["package-count"] == ("60",)
    assert found["b/Packages"].attributes["entries-left-out"] == ("41",)
    assert found["words.txt"].type == "RawText"
    assert isinstance(records[-1], Complete)
    assert not [r for r in records if isinstance(r, Rejected)]


def test_list_as_object_uses_whole_budget(run: Run) -> None:
    """An object that is a list gives as many entries as it may have members, and reports those left out."""
    records = run(packages(60), "file:///d/Packages", settings={"limits": UnnestLimits(entries=50)})
    found = summaries(records)
    assert len(found) == 51
    assert found[""].attributes["entries-left-out"] == ("10",)
    assert isinstance(records[-1], Complete)


@pytest.mark.slow
def test_list_of_sixty_thousand_fits_budget(fetched: Callable[..., FetchedObject]) -> None:
    """A list of 60,000 packages fits in the budget of its object, unless it is compressed at the ratio of a bomb."""
    data = packages(60_000)
    plain = [r for r in essence(fetched(data, "file:///d/Packages"), io.BytesIO(data), SETTINGS) if isinstance(r, Summary)]
    assert len(plain) == 60_001
    assert plain[-1].attributes["member-count"] == ("60000",)
    assert "entries-left-out" not in plain[-1].attributes
    packed = gzip.compress(data, mtime=0)
    few = max(FEW, len(packed) // SPARSE)
    *_, own, last = essence(fetched(packed, "file:///d/Packages.gz"), io.BytesIO(packed), SETTINGS)
    assert isinstance(own, Summary)
    assert own.attributes["member-count"] == (str(few),)
    assert own.attributes["entries-left-out"] == (str(60_000 - few),)
    assert isinstance(last, Complete)


def test_truncated_list_gives_readable_entries(run: Run) -> None:
    """A truncated compressed list gives the readable entries, and the loss is reported."""
    data = gzip.compress(packages(2_000), mtime=0)
    records = run(data[: len(data) // 2], "file:///d/Packages.gz")
    assert len(summaries(records)) > 500
    assert isinstance(records[-1], Partial)
