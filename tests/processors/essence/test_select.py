from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.selection import PROFILES, RULES, Selection, beside, by_name, by_type, candidate, select

PLAIN = Selection()

WORDS = {
    b"t" + s + p
    for s in (b".tex", b".ps", b".pdf", b".dvi", b".md", b".tar", b".c", b".o", b".bak")
    for p in (b"", b".gz", b".xz", b".asc")
}

NAMES = [
    (b"a.c", False, ""),
    (b"a.c~", False, "editor-backup"),
    (b"src/#a.c#", False, "editor-backup"),
    (b".#lock", False, "editor-backup"),
    (b".a.c.swp", False, "editor-backup"),
    (b"~", False, ""),
    (b"backup~", True, ""),
    (b".git", True, "version-control"),
    (b"CVS", True, "version-control"),
    (b"CVS", False, ""),
    (b"a/CVS/Entries", False, "version-control"),
    (b"p/.git/config", False, "version-control"),
    (b"RCS/a.c,v", False, ""),
    (b"SCCS/s.a.c", False, ""),
    (b"x/.DS_Store", False, "stop-name"),
    (b".DS_Store", True, ""),
    (b"\xff.part", False, "stop-name"),
]

BESIDE = [
    (b"a.o", b"a.c", "object-beside-source"),
    (b"d/a.o", b"d/a.cc", "object-beside-source"),
    (b"d/a.o", b"a.c", ""),
    (b"a.o", b"b.c", ""),
    (b"m.pyc", b"m.py", "object-beside-source"),
    (b"p/__pycache__/m.cpython-311.pyc", b"p/m.py", "object-beside-source"),
    (b"__pycache__/m.cpython-311.pyc", b"m.py", "object-beside-source"),
    (b"A.class", b"A.java", "object-beside-source"),
    (b"t.ps", b"t.tex", "print-beside-source"),
    (b"t.ps.gz", b"t.ms", "print-beside-source"),
    (b"t.dvi", b"t.texi.gz", "print-beside-source"),
    (b"t.ps", b"t.1", "print-beside-source"),
    (b"t.ps", b"t.txt", ""),
    (b"t.pdf", b"t.tex", "pdf-beside-source"),
    (b"d/t.pdf.gz", b"d/t.docx", "pdf-beside-source"),
    (b"t.pdf", b"t.md.gz", "pdf-beside-source"),
    (b"t.pdf", b"t.csv", ""),
    (b"t.ps", b"t.ps.gz", "compressed-twin"),
    (b"t.ps.bz2", b"t.ps.gz", "compressed-twin"),
    (b"t.ps.gz", b"t.ps", ""),
    (b"t.pdf", b"t.pdf.xz", "compressed-twin"),
    (b"t.txt", b"t.txt.gz", ""),
    (b"t.tar", b"t.tar.gz", ""),
    (b"a.bak", b"a", "editor-backup"),
    (b"a.txt.orig", b"a.txt", "editor-backup"),
    (b"a.bak", b"b", ""),
    (b".o", b".c", ""),
]


@pytest.mark.parametrize(("name", "folder", "rule"), NAMES)
def test_name_is_dropped_by_its_rule(name: bytes, folder: bool, rule: str) -> None:
    """A name is dropped by the rule in the table, and kept with that rule turned off."""
    assert by_name(name, PLAIN, folder=folder) == rule
    if rule:
        assert by_name(name, Selection(off=(rule,)), folder=folder) == ""


@pytest.mark.parametrize(("name", "other", "rule"), BESIDE)
def test_name_is_dropped_beside_another(name: bytes, other: bytes, rule: str) -> None:
    """A name is dropped beside another one by the rule in the table; candidates are known in advance."""
    assert beside(name, {name, other}, PLAIN) == rule
    assert beside(name, {name}, PLAIN) == ""
    if rule:
        assert candidate(name, PLAIN)
        assert candidate(name, Selection(off=tuple(set(RULES) - {rule})))
        assert not candidate(name, Selection(off=tuple(RULES)))
        assert beside(name, {name, other}, Selection(off=(rule,))) == ""


def test_profile_leaves_rules_out() -> None:
    """A profile leaves rules out; its remaining rules can still be turned off."""
    names = {b"t.pdf", b"t.tex", b"t.tar.gz", b"t.tar.gz.asc"}
    dropped = {profile: select([(n, False) for n in names], Selection(profile=profile)) for profile in PROFILES}
    assert dropped == {
        "file-server": {b"t.pdf": "pdf-beside-source"},
        "software-archive": {b"t.pdf": "pdf-beside-source", b"t.tar.gz.asc": "signature"},
        "web": {},
    }
    off = Selection(profile="software-archive", off=("signature",))
    assert beside(b"t.tar.gz.asc", names, off) == ""
    assert not candidate(b"t.tar.gz.asc", off)
    assert all(Selection(profile=profile).applies("source-distribution") for profile in PROFILES)
    with pytest.raises(ValueError, match="no such selection profile: moon"):
        Selection(profile="moon")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ("a.tar a.tar.gz a.tar.bz2 a.tar.xz", "a.tar.gz"),
        ("a.tgz a.tar.bz2 a.tar.xz", "a.tgz"),
        ("a.txz a.tbz2 a.tar", "a.txz"),
        ("a.tar b.tar.gz c.zip c.tar.gz", "a.tar b.tar.gz c.tar.gz c.zip"),
        ("a.tgz a.tar.gz", "a.tar.gz a.tgz"),
        (".tar .tar.gz tar.gz", ".tar .tar.gz tar.gz"),
    ],
)
def test_one_of_several_compressions_is_selected(names: str, kept: str) -> None:
    """Of one archive in several compressions one is selected, in any order of names."""
    listing = [(name.encode(), False) for name in names.split()]
    for some in (listing, listing[::-1]):
        dropped = select(some, Selection(profile="software-archive"))
        assert " ".join(sorted(name.decode() for name, _ in some if name not in dropped)) == kept
        assert set(dropped.values()) <= {"archive-twin"}
    assert select(listing, PLAIN) == {}


@given(st.lists(st.sampled_from(sorted(WORDS)), unique=True))
def test_one_name_per_stem_is_selected(names: list[bytes]) -> None:
    """At least one name per stem is selected: no two names drop each other, in any profile."""
    for profile in PROFILES:
        dropped = select([(n, False) for n in names], Selection(profile=profile))
        assert len(dropped) < len(names) or not names


def test_type_on_stop_list_is_dropped() -> None:
    """A type is dropped if it is on the stop list."""
    stop = Selection(stop_types=("Binary",))
    assert by_type("Binary", stop) == "stop-type"
    assert by_type("C", stop) == ""
    assert by_type("Binary", Selection(stop_types=("Binary",), off=("stop-type",))) == ""


def test_unselected_names_of_listing_are_returned() -> None:
    """The unselected names of a listing are returned; a folder does not count as the source of a file."""
    listing = [(b"a.o", False), (b"a.c", True), (b"b.o", False), (b"b.c", False), (b".git", True), (b"c~", False)]
    assert select(listing, PLAIN) == {b"b.o": "object-beside-source", b".git": "version-control", b"c~": "editor-backup"}


def test_order_does_not_matter() -> None:
    """Selection is a function of the set of names."""
    listing = [(b"a.o", False), (b"a.c", False), (b"t.ps", False), (b"t.tex", False)]
    assert select(listing, PLAIN) == select(listing[::-1], PLAIN)


def test_system_files_are_on_stop_list() -> None:
    """Resource forks and thumbnails of macOS and Windows, in archives too, are on the stop list."""
    for name in (b"__MACOSX/notes/._a.txt", b"._a.txt", b"notes/Thumbs.db"):
        assert by_name(name, PLAIN) == "stop-name"
    assert by_name(b"notes/.a.txt", PLAIN) == by_name(b"_.txt", PLAIN) == ""


def test_empty_stop_list_stops_nothing() -> None:
    """An empty stop list drops nothing."""
    assert by_name(b".DS_Store", Selection(stop_names=())) == ""


def test_unknown_rule_is_an_error() -> None:
    """Turning off an unknown rule is an error."""
    with pytest.raises(ValueError, match="no such selection rule: none-such"):
        Selection(off=("none-such", *RULES))
