"""Names that the sources of a software package define: which are in its summary, in which order, and how many."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.package_definitions import DEFINES, KEPT, Definitions
from processors.essence.selection import Selection
from processors.essence.software_package import CONTAINERS, NAMES, RULE, TYPE
from processors.essence.stage import Output
from schemas.records import Complete, File, Partial, Rejected, Summary
from tests.processors.essence.summarize.java_class import java

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

ABOUT = [("oar-1/PKG-INFO", b"Metadata-Version: 2.1\nName: oar\nVersion: 1\n")]
KEEPING = {"packages_members": True}
OFF = {"select": Selection(off=(RULE,))}
SAMPLES = sorted((Path(__file__).parents[2] / "samples" / "packages").glob("*.json"))


def summaries(records: Sequence[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


def defined(records: Sequence[Output]) -> list[str]:
    """Return the lines of definitions in the only summary, that of a package."""
    (summary,) = summaries(records).values()
    assert summary.type == TYPE
    (text,) = summary.attributes.get(DEFINES, ("",))
    assert isinstance(text, str)
    return text.splitlines()


SOURCES = {
    "boat.py": (b"class Oar:\n def row(self): 1\n def _pull(self): 1\ndef launch(): 1\n", "Oar row launch"),
    "boat.c": (b"struct hull {\n int x;\n};\ntypedef int hull_t;\nint row_boat(void)\n{\n}\n", "hull hull_t row_boat"),
    "boat.h": (b"#define OARS_OF(x) 8\nint row_boat(int side);\n", "row_boat OARS_OF"),
    "Boat.java": (b"package org.river;\nclass Boat {\n  public void row() {\n  }\n}\n", "org.river row"),
    "boat.js": (b"export class Boat {\n  row() {\n  }\n}\nfunction launch() {}\n", "Boat row launch"),
    "boat.go": (b"package river\n\ntype Boat struct {\n}\n\nfunc Launch() {\n}\n", "Boat river Launch"),
    "boat.rs": (b"pub struct Boat;\npub fn launch() {}\nmacro_rules! row {}\n", "Boat launch row"),
    "boat.rb": (b"module River\n  class Boat\n    def row\n    end\n  end\nend\n", "Boat River row"),
    "Boat.pm": (b"package River::Boat;\nsub row { 1 }\n", "River::Boat row"),
    "boat.sh": (b"#!/bin/sh\nlaunch() {\n  :\n}\n", "launch"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_package_has_names_that_its_sources_define(name: str, run: Run, tar: Pack) -> None:
    """A package has the names that each of its sources defines, behind the path of the source: types before functions."""
    source, expected = SOURCES[name]
    lines = defined(run(tar([*ABOUT, (f"oar-1/src/{name}", source)]), "file:///d/oar-1.tar"))
    assert lines == [*(["src/: Boat"] if name == "Boat.java" else []), f"src/{name}: {expected}"]


def test_jar_has_names_of_its_classes(run: Run, zipped: Pack) -> None:
    """A jar has the names of its compiled classes and of their methods; a class without a name has no line of its own."""
    classes = [(f"sea/{name}.class", java()) for name in ("Whale", "Whale$Calf", "Whale$1")]
    lines = defined(run(zipped([("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n"), *classes]), "file:///d/sea-1.jar"))
    assert lines == ["sea/: Whale Calf", "sea/Whale.class: spout"]


def test_classes_in_files_of_their_own_share_a_line(run: Run, tar: Pack) -> None:
    """Classes with the names of their files stand behind the folder, once for all of them; other names behind their file."""
    members = [
        (f"oar-1/org/river/{n}.java", b"class %s {\n}\nclass %sAid {\n}\n" % (n.encode(), n.encode())) for n in ("Oar", "Raft")
    ]
    lines = defined(run(tar([*ABOUT, *members]), "file:///d/oar-1.tar"))
    assert lines == ["org/river/: Oar Raft", "org/river/Oar.java: OarAid", "org/river/Raft.java: RaftAid"]


def test_names_of_a_package_are_there_once(run: Run, tar: Pack) -> None:
    """A name that several files define stands with the first of them; files without another name have no line."""
    members = [
        ("oar-1/one.py", b"def row(): 1\n"),
        ("oar-1/two.py", b"def row(): 1\n"),
        ("oar-1/sub/a.py", b"def row(): 1\ndef cry(): 1\n"),
    ]
    assert defined(run(tar([*ABOUT, *members]), "file:///d/oar-1.tar")) == ["one.py: row", "sub/a.py: cry"]


def test_tests_and_examples_come_last(run: Run, tar: Pack) -> None:
    """The program's own files come first, the nearest to the top before others; tests, examples and build files come last."""
    paths = ["tests/test_oar.py", "setup.py", "src/deep/b.py", "examples/one.py", "t/x.py", "a.py"]
    members = [(f"oar-1/{path}", b"class Name%d: 1\n" % n) for n, path in enumerate(paths)]
    lines = defined(run(tar([*ABOUT, *members]), "file:///d/oar-1.tar"))
    assert [line.partition(":")[0] for line in lines] == [
        "a.py",
        "src/deep/b.py",
        "setup.py",
        *sorted(["tests/test_oar.py"]),
        "examples/one.py",
        "t/x.py",
    ]


def test_types_have_precedence_over_functions() -> None:
    """In too little room, the types of all files have precedence over functions, and functions over macros and private names."""
    made = Definitions()
    made.take(b"a.py", {"functions": ("one_function", "_private"), "classes": ("OneClass",)})
    made.take(b"b.py", {"classes": ("OtherClass",), "macros": ("MACRO",)})
    assert made.text(32) == "a.py: OneClass\nb.py: OtherClass"
    assert made.text(45) == "a.py: OneClass one_function\nb.py: OtherClass"
    assert made.text(1_000) == "a.py: OneClass one_function _private\nb.py: OtherClass MACRO"
    assert made.text(-1) == ""


def test_files_of_little_interest_are_dropped_first() -> None:
    """Of more names than are kept, those of the deepest files are dropped, whichever order the files have."""
    for order in (1, -1):
        made = Definitions()
        for n in range(1_000)[::order]:
            made.take(b"d/" * (n % 10) + b"%d.py" % n, {"classes": tuple(f"Class{n}x{i}" for i in range(200))})
        assert made._size <= KEPT
        assert {line.partition(":")[0].count("/") for line in made.text(NAMES).splitlines()} == {0}


def test_definitions_of_100_000_files_are_bounded() -> None:
    """Of 100,000 files no more than a fixed number of bytes is kept, and the file at the top is still first."""
    made = Definitions()
    for n in range(100_000):
        made.take(b"src/%d.js" % n, {"functions": (f"function{n}", "run")})
    made.take(b"top.js", {"functions": ("launch",)})
    assert made._size <= KEPT
    assert len(made._sources) < KEPT // 20
    assert made.text(NAMES).startswith("top.js: launch\nsrc/0.js: function0 run\nsrc/1.js: function1\n")


names = st.lists(
    st.one_of(st.text(max_size=120), st.binary(max_size=5), st.sampled_from(["main", "__init__", "a b", "\ud800"])), max_size=30
)
kinds = st.sampled_from(["classes", "types", "functions", "procedures", "macros", "title", "description"])


@given(st.lists(st.tuples(st.binary(max_size=300), st.dictionaries(kinds, names))), st.integers(-5, 3_000))
def test_any_summaries_give_bounded_text(files: list[tuple[bytes, dict[str, list[str | bytes]]]], limit: int) -> None:
    """Any summaries of any files give text within the limit that UTF-8 can encode, and the same text again."""
    texts = []
    for _ in range(2):
        made = Definitions()
        for path, attributes in files:
            made.take(path, attributes)
        texts.append(made.text(limit))
    assert texts[0] == texts[1]
    assert len(texts[0].encode()) <= max(limit, 0)


def test_damaged_and_giant_sources_give_what_they_have(run: Run, tar: Pack) -> None:
    """A source that Python rejects, a giant one and one of noise: names by patterns, a bounded number of them, and no rejection."""
    giant = b"".join(b"class Giant%d: pass\n" % n for n in range(50_000))
    members = [
        ("oar-1/broken.py", b"class Broken(:\n def swim(self:\n"),
        ("oar-1/giant.py", giant),
        ("oar-1/deep.py", b"(" * 100_000 + b"\nclass Deep: pass\n"),
        ("oar-1/noise.py", bytes(range(256)) * 400),
    ]
    records = run(tar([*ABOUT, *members]), "file:///d/oar-1.tar")
    lines = dict(line.split(": ") for line in defined(records))
    assert lines["broken.py"] == "Broken swim"
    assert len(lines["giant.py"].split()) == 200
    assert lines["deep.py"] == "Deep"
    assert isinstance(records[-1], Complete)


@pytest.mark.slow(20)
def test_package_of_many_sources_is_bounded(run: Run, tar: Pack) -> None:
    """A package of 10,000 sources has a bounded summary with the names of those near its top, and still counts them all."""
    many = [(f"oar-1/src/{n}.py", b"class Class%d: pass\ndef function%d(): pass\n" % (n, n)) for n in range(10_000)]
    top = [("oar-1/oar.py", b"class HTTPAdapter: pass\n")]
    (summary,) = summaries(run(tar([*ABOUT, *many, *top]), "file:///d/oar-1.tar")).values()
    (text,) = summary.attributes[DEFINES]
    assert isinstance(text, str)
    assert text.startswith("oar.py: HTTPAdapter\n")
    assert NAMES - 100 < len(text) <= NAMES
    assert summary.attributes["not-selected"] == (f"{RULE} 10002",)


def test_listing_of_members_has_room_beside_the_names(run: Run, tar: Pack) -> None:
    """A package with a long README, many pages and names still has the listing of its members and their number."""
    words = b" ".join(b"word%d" % n for n in range(20_000))
    pages = [(f"oar-1/man/{n}.1", b".TH X 1\n.SH NAME\nx%d \\- %s\n" % (n, b"a page " * 30)) for n in range(150)]
    sources = [(f"oar-1/{n:03}.py", b"".join(b"class C%03dx%03d: 1\n" % (n, i) for i in range(200))) for n in range(150)]
    (summary,) = summaries(run(tar([*ABOUT, ("oar-1/README", words), *pages, *sources]), "file:///d/oar-1.tar")).values()
    assert summary.attributes["member-count"] == ("302",)
    assert len(str(summary.attributes["contents"][0])) > 3_000
    assert len(str(summary.attributes[DEFINES][0])) > 2_000


# ---- packages_members --------------------------------------------------------------------------------------------------

FILES = [
    *ABOUT,
    ("oar-1/oar.py", b"class Oar:\n    pass\n"),
    ("oar-1/doc/words.txt", b"The paddlewheel.\n"),
    ("oar-1/oar.py~", b"x"),
]


def test_members_are_kept_beside_the_package(run: Run, tar: Pack) -> None:
    """With `packages_members`, each member has the summary that it has with the rule off, beside the package's own."""
    records = run(tar(FILES), "file:///d/oar-1.tar", settings={**KEEPING, "files": True})
    found = summaries(records)
    assert list(found) == ["oar-1/PKG-INFO", "oar-1/oar.py", "oar-1/doc/words.txt", ""]
    assert found["oar-1/oar.py"].attributes["classes"] == ("Oar",)
    (alone,) = summaries(run(tar(FILES), "file:///d/oar-1.tar")).values()
    assert alone.attributes["not-selected"] == ("editor-backup 1", f"{RULE} 3")
    assert found[""].attributes == {**alone.attributes, "not-selected": ("editor-backup 1",)}
    assert {r.path: r.reason for r in records if isinstance(r, File) and not r.selected} == {"oar-1/oar.py~": "editor-backup"}
    assert records[-1] == Complete(object_url="file:///d/oar-1.tar", version=7, time=1_000, attempt=found[""].attempt, count=4)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.stem)
def test_kept_members_are_those_of_the_archive(sample: Path, run: Run, tar: Pack, zipped: Pack) -> None:
    """Of each sample package, the kept members have the summaries that they have with the rule off, in the same order."""
    whole = json.loads(sample.read_text("utf-8"))
    members = [(path, text.encode()) for path, text in whole["members"].items()]
    data = zipped(members) if whole["name"].endswith((".zip", ".whl")) else tar(members)
    kept, off = (summaries(run(data, f"file:///d/{whole['name']}", settings=each)) for each in (KEEPING, OFF))
    assert (kept.pop("").type, off.pop("").type in CONTAINERS) == (TYPE, True)
    assert [(s.path, s.type, s.attributes) for s in kept.values()] == [(s.path, s.type, s.attributes) for s in off.values()]


def test_damage_of_a_kept_member_counts(run: Run, tar: Pack) -> None:
    """With `packages_members`, a damaged member is rejected and makes the object Partial: members that it had are not removed."""
    cut = tar([("x.txt", b"words\n" * 500)])[:1_000]
    records = run(tar([*ABOUT, ("oar-1/cut.tar", cut), ("oar-1/z.txt", b"Words.\n")]), "file:///d/oar-1.tar", settings=KEEPING)
    assert summaries(records)[""].type == TYPE
    assert "oar-1/z.txt" in summaries(records)
    assert {r.path for r in records if isinstance(r, Rejected)} >= {"oar-1/cut.tar"}
    assert isinstance(records[-1], Partial)


def test_package_in_a_package_keeps_its_members(run: Run, tar: Pack) -> None:
    """With `packages_members`, a package within a package is one, too, and both keep their members."""
    data = tar([*ABOUT, ("oar-1/inner.tar", tar(FILES))])
    found = summaries(run(data, "file:///d/oar-1.tar", settings=KEEPING))
    assert (found[""].type, found["oar-1/inner.tar"].type) == (TYPE, TYPE)
    assert "oar-1/inner.tar#oar-1/oar.py" in found


def test_archive_that_is_no_package_is_as_without_the_setting(run: Run, tar: Pack) -> None:
    """`packages_members` changes nothing for an archive that is no package, or that is cut."""
    plain = tar([("a/words.txt", b"Words.\n"), ("b/words.txt", b"Others.\n")])
    for data in (plain, tar(FILES)[:-9_000]):
        one, other = (summaries(run(data, "file:///d/oar-1.tar", settings=s)) for s in ({}, KEEPING))
        assert [(s.path, s.type, s.attributes) for s in one.values()] == [(s.path, s.type, s.attributes) for s in other.values()]
