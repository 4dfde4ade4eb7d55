"""Archives that are software packages: recognized as one unit, or not. Golden samples are in tests/samples/packages."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence import package_buffer, package_metadata
from processors.essence.formats.container import UnnestLimits
from processors.essence.selection import Selection
from processors.essence.software_package import RULE, TYPE
from processors.essence.stage import Output
from processors.essence.summarize.text.license import license_of
from schemas.records import Complete, File, Partial, Rejected, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

SAMPLES = sorted((Path(__file__).parents[2] / "samples" / "packages").glob("*.json"))
OFF = {"select": Selection(off=(RULE,))}
PACKAGE = [
    ("oar-1/Makefile", b"all: oar\n"),
    ("oar-1/oar.c", b"/* Rows. */\nint main() { return 0; }\n"),
    ("oar-1/doc/words.txt", b"The paddlewheel.\n"),
    ("oar-1/README", b"Oar rows a boat over the river, as often as it is asked to.\n"),
]


def summaries(records: list[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


def paths(records: list[Output]) -> list[str]:
    """Return the paths of summaries, in order."""
    return list(summaries(records))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.stem)
def test_sample_package_gives_expected_summary(
    sample: Path, run: Run, tar: Pack, zipped: Pack, request: pytest.FixtureRequest
) -> None:
    """Each sample package gives one summary, equal to the expected one beside it."""
    whole = json.loads(sample.read_text("utf-8"))
    name, members = whole["name"], [(path, text.encode()) for path, text in whole["members"].items()]
    data = zipped(members) if name.endswith((".zip", ".whl")) else tar(members)
    records = run(gzip.compress(data, mtime=0) if name.endswith("gz") else data, f"file:///d/{name}")
    (summary,) = summaries(records).values()
    made = {"type": summary.type, "content_type": summary.content_type, "attributes": json.loads(json.dumps(summary.attributes))}
    if request.config.getoption("--regenerate", default=False):
        sample.write_text(json.dumps({**whole, "summary": made}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert made == json.loads(sample.read_text("utf-8"))["summary"]
    assert isinstance(records[-1], Complete)
    assert records[-1].count == 1


@pytest.mark.parametrize("order", [1, -1])
def test_order_of_members_does_not_matter(order: int, run: Run, tar: Pack) -> None:
    """The members that identify a package may come first or last."""
    (summary,) = summaries(run(tar(PACKAGE[::order]), "file:///d/oar-1.tar")).values()
    assert (summary.type, summary.attributes["title"]) == (TYPE, ("oar 1",))
    assert summary.attributes["not-selected"] == (f"{RULE} 4",)


MANIFEST = (
    b"Manifest-Version: 1.0\r\nImplementation-Title: Oars of a \r\n boat\r\nImplementation-Version: 1.2\r\n"
    b"Main-Class: org.example.Oar\r\nBundle-License: MIT;link=x\r\nBundle-Vendor: ${vendor}\r\nClass-Path: lib/hull.jar\r\n\r\n"
    b"Name: org/example/\r\nBundle-Name: x\r\n"
)


def test_manifest_lines_are_unfolded(run: Run, zipped: Pack) -> None:
    """Manifest lines are folded within a character, and placeholders that a build did not fill in are ignored."""
    folded = b"Implementation-Title: " + ("a" * 49 + "é caf").encode()
    manifest = folded[:72] + b"\r\n " + folded[72:] + b"\r\nImplementation-Version: @VERSION@\r\n"
    members = [("META-INF/MANIFEST.MF", manifest), *((f"{name}.class", b"\xca\xfe\xba\xbe\0\0\0\x34") for name in "AB")]
    (summary,) = summaries(run(zipped(members), "file:///d/oar.jar")).values()
    assert summary.attributes["name"] == ("a" * 49 + "é caf",)
    assert "version" not in summary.attributes


def test_jar_of_classes_is_a_package(run: Run, zipped: Pack) -> None:
    """A jar with a manifest and mostly classes is a package; a jar of pages or sources, or without a manifest, is a zip."""
    classes = [(f"org/example/{name}.class", b"\xca\xfe\xba\xbe\0\0\0\x34") for name in ("Oar", "Blade")]
    whole = [("META-INF/MANIFEST.MF", MANIFEST), *classes]
    for members in (whole, whole[::-1]):
        (summary,) = summaries(run(zipped(members), "file:///d/oar-1.2.jar")).values()
        assert (summary.type, summary.content_type) == (TYPE, "application/java-archive")
        said = {name: summary.attributes[name] for name in ("name", "version", "title", "programs", "license", "depends")}
        assert said == {
            "name": ("Oars of a boat",),
            "version": ("1.2",),
            "title": ("Oars of a boat 1.2",),
            "programs": ("org.example.Oar",),
            "license": ("MIT",),
            "depends": ("hull",),
        }
        assert "author" not in summary.attributes
    pages = [(f"{name}.html", b"<title>Oars</title>") for name in "abc"]
    # The classes come last.
    rest = [*((f"{n}.res", b"x") for n in range(1_100)), *((f"org/{n}.class", classes[0][1]) for n in range(1_200))]
    (late,) = summaries(run(zipped([whole[0], *rest]), "file:///d/oar-1.2.jar")).values()
    assert late.type == TYPE
    # A jar without its own name is titled by its file name; resources of classes and jar metadata do not count.
    beside = [(f"org/{n}.properties", b"a=b") for n in range(9)] + [("META-INF/maven/pom.properties", b"a=b")]
    (unnamed,) = summaries(
        run(zipped([(whole[0][0], b"Manifest-Version: 1.0\n"), *beside, *classes]), "file:///d/oar-1.2.jar")
    ).values()
    assert (unnamed.type, unnamed.attributes["title"]) == (TYPE, ("oar 1.2",))
    for none in ([*whole, *pages], classes):
        assert len(summaries(run(zipped(none), "file:///d/oar-1.2.jar"))) == len(none) + 1


def without(*names: str) -> list[tuple[str, bytes]]:
    """Return the package without the named members."""
    return [member for member in PACKAGE if member[0] not in names]


@pytest.mark.parametrize(
    "members",
    [
        without("oar-1/README"),
        without("oar-1/Makefile"),
        without("oar-1/oar.c"),
        [*PACKAGE, ("other/letter.txt", b"Dear Ann,\n")],
        [*PACKAGE, ("letter.txt", b"Dear Ann,\n")],
        [("a/" + name, data) for name, data in PACKAGE],
        [("package/package.json", b'{"name": "x"}'), ("package/index.js", b"//\n")],
        [("x/DESCRIPTION", b"Name: the river\n"), ("x/river.txt", b"Words.\n")],
        [("Cargo.toml", b"[package\n"), ("x.rs", b"//\n")],
    ],
    ids=[
        "no README",
        "nothing to build",
        "no source",
        "beside a folder",
        "beside a file",
        "deeper",
        "no version",
        "fields",
        "broken",
    ],
)
def test_archive_that_is_no_package_gives_its_members(members: list[tuple[str, bytes]], run: Run, tar: Pack) -> None:
    """An archive that is not a package gives all its members, in order, as with the rule turned off."""
    data = tar(members)
    records = run(data, "file:///d/oar-1.tar")
    off = run(data, "file:///d/oar-1.tar", settings=OFF)
    shorn = [[(type(r), getattr(r, "path", ""), getattr(r, "attributes", None)) for r in some] for some in (records, off)]
    assert shorn[0] == shorn[1]
    assert set(paths(records)) == {"", *(name for name, _ in members)}


def test_rule_can_be_turned_off(run: Run, tar: Pack) -> None:
    """With the rule turned off, a package is an ordinary archive."""
    found = summaries(run(tar(PACKAGE), "file:///d/oar-1.tar", settings=OFF))
    assert list(found) == [*(name for name, _ in PACKAGE), ""]
    assert found[""].type == "Tar"


def test_files_of_a_package_give_their_facts(run: Run, tar: Pack) -> None:
    """With `files`, each file of a package gives its facts, unselected by this rule or by the one that dropped it first."""
    members = [*PACKAGE, ("oar-1/oar.o", b"\x7fELF"), ("oar-1/oar.c~", b"x")]
    records = run(tar(members), "file:///d/oar-1.tar", settings={"files": True})
    facts = {r.path: (r.selected, r.reason) for r in records if isinstance(r, File)}
    assert facts.pop("oar-1/oar.o") == (False, "object-beside-source")
    assert facts.pop("oar-1/oar.c~") == (False, "editor-backup")
    assert facts.pop("") == (True, "")
    assert facts == {name: (False, RULE) for name, _ in PACKAGE}


def test_badges_are_not_description(run: Run, tar: Pack) -> None:
    """The description of a package is the first sentence of its README after the status badges."""
    badge = "[![Build](https://watch.example/oar/oar.svg?branch=main)](https://watch.example/oar/oar) ![x](y.png)"
    told = f"{badge}\n\n{badge} Oar rows a boat over the river, as often as it is asked to, and back.\n"
    (made,) = summaries(run(tar([*PACKAGE[:3], ("oar-1/README", told.encode())]))).values()
    assert made.attributes["description"] == ("Oar rows a boat over the river, as often as it is asked to, and back.",)


def test_package_in_archive_is_a_unit(run: Run, tar: Pack, zipped: Pack) -> None:
    """A collection of packages is not a package: each is a unit under its own path; other archives keep their members."""
    plain = tar([("words.txt", b"The quillwort.\n")])
    data = zipped([("a/oar-1.tar", tar(PACKAGE)), ("b/raft.tgz", gzip.compress(plain)), ("README", b"Boats.\n")])
    found = summaries(run(data, "file:///d/boats.zip"))
    assert list(found) == ["a/oar-1.tar", "b/raft.tgz#words.txt", "b/raft.tgz", "README", ""]
    assert [s.type for s in found.values()] == [TYPE, "RawText", "Tar", "README", "Zip"]


def test_nested_archive_belongs_to_package(run: Run, tar: Pack) -> None:
    """A nested archive belongs to its package, and its damage does not make the object damaged."""
    inner = tar([("x.txt", b"words\n" * 500)])
    records = run(tar([*PACKAGE, ("oar-1/tests/cut.tar", inner[:1_000])]), "file:///d/oar-1.tar")
    assert paths(records) == [""]
    assert isinstance(records[-1], Complete)
    assert not [r for r in records if isinstance(r, Rejected)]


def test_truncated_package_gives_readable_members(run: Run, tar: Pack) -> None:
    """A truncated archive gives all readable members, even if they identify a package."""
    data = tar([*PACKAGE, ("oar-1/long.txt", b"words\n" * 5_000)])
    records = run(data[:-25_000], "file:///d/oar-1.tar")
    assert set(paths(records)) == {*(name for name, _ in PACKAGE), "oar-1/long.txt", ""}
    assert isinstance(records[-1], Partial)


def test_exhausted_budget_gives_readable_members(run: Run, tar: Pack) -> None:
    """All readable members are also given where the budget of the object runs out."""
    members = [*PACKAGE, *((f"oar-1/{n}.txt", b"") for n in range(20))]
    records = run(tar(members), "file:///d/oar-1.tar", settings={"limits": UnnestLimits(entries=10)})
    assert len(paths(records)) == 11
    assert isinstance(records[-1], Partial)


def test_skipped_member_of_package_is_not_opened(run: Run, tar: Pack) -> None:
    """A member to be skipped is not opened in a package either, and reported; the package is still one."""
    records = run(tar(PACKAGE), "file:///d/oar-1.tar", skip={"oar-1/doc/words.txt": "crashed"})
    assert paths(records) == ["oar-1/doc/words.txt", ""]
    assert [(r.path, r.reason) for r in records if isinstance(r, Rejected)] == [("oar-1/doc/words.txt", "crashed")]
    assert summaries(records)[""].type == TYPE


def test_waiting_members_are_bounded(run: Run, tar: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit of waiting members the archive is judged by those seen: a package with all its folder, or none."""
    monkeypatch.setattr(package_buffer, "WAITING", 400_000)
    texts = [(f"oar-1/{n:04}.txt", b"Words of %d.\n" % n * 20) for n in range(1_500)]
    found = paths(run(tar([("oar-1/COPYING", b"Do."), *texts, *PACKAGE]), "file:///d/oar-1.tar"))[1:]
    assert found == [*(name for name, _ in [*texts, *PACKAGE]), ""]
    stray = [("oar-2/words.txt", b"Others.\n")]
    records = run(tar([*PACKAGE, *texts, *stray]), "file:///d/oar-1.tar", settings={"files": True})
    assert paths(records) == ["oar-2/words.txt", ""]
    assert [r.path for r in records if isinstance(r, File) and r.selected] == ["oar-2/words.txt", ""]
    assert summaries(records)[""].attributes["not-selected"] == (f"{RULE} 1504",)


def test_unreadable_readme_makes_no_package(run: Run, tar: Pack) -> None:
    """If the README cannot be opened, names alone do not make a package: each member gives its reason."""
    records = run(tar(PACKAGE), "file:///d/oar-1.tar", skip={name: "encrypted" for name, _ in PACKAGE})
    assert len([r for r in records if isinstance(r, Rejected)]) == len(PACKAGE)
    assert summaries(records)[""].type == "Tar"


def test_archive_without_package_signs_does_not_wait(run: Run, tar: Pack) -> None:
    """An archive without a sign of a package in its first thousand members is not one, even if a README follows."""
    texts = [(f"oar-1/texts/{n:04}.txt", b"") for n in range(1_000)]
    assert len(paths(run(tar([*texts, *PACKAGE]), "file:///d/oar-1.tar"))) == 1_005
    assert paths(run(tar([*texts[1:], *PACKAGE]), "file:///d/oar-1.tar")) == [""]


def test_waiting_members_of_nested_archive_are_bounded(run: Run, tar: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large nested archive does not wait in full; all of it is released in order."""
    monkeypatch.setattr(package_buffer, "WAITING", 100_000)
    inner = [(f"{n:04}.txt", b"Words of %d.\n" % n * 20) for n in range(1_000)]
    data = tar([("a.tar", tar(inner)), ("words.txt", b"Others.\n")])
    records = run(data, "file:///d/x.tar")
    assert paths(records) == [*(f"a.tar#{name}" for name, _ in inner), "a.tar", "words.txt", ""]


def test_waiting_records_are_unchanged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that waited in a file are unchanged: text, bytes that are not UTF-8, rejections, facts."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        for number, (kind, data) in enumerate(
            [(tarfile.REGTYPE, b"W\xf6rter.\n"), (tarfile.SYMTYPE, b""), (tarfile.REGTYPE, b"PK\3\4x")]
        ):
            info = tarfile.TarInfo(f"d/{number}\xff.zip")
            info.type, info.linkname, info.size = kind, "../\xff", len(data)
            archive.addfile(info, io.BytesIO(data))
    monkeypatch.setattr(package_buffer, "FIRST", 0)
    plain = {"files": True}
    records = run(out.getvalue(), "file:///d/x.tar", settings=plain)[:-1]
    off = run(out.getvalue(), "file:///d/x.tar", settings={**plain, **OFF})[:-1]
    assert [unlike_attempt(r) for r in records] == [unlike_attempt(r) for r in off]
    assert {type(r) for r in records} == {File, Summary, Rejected}
    assert any(isinstance(v, bytes) for r in records if isinstance(r, Summary) for vs in r.attributes.values() for v in vs)


def unlike_attempt(record: Output) -> Output:
    """Return a record without its attempt's name, which depends on the settings."""
    return msgspec.structs.replace(record, attempt="") if isinstance(record, Summary) else record


def test_macosx_folder_does_not_hide_package(run: Run, zipped: Pack) -> None:
    """The __MACOSX folder beside the single folder of a package does not hide the package, and belongs to it."""
    (summary,) = summaries(run(zipped([*PACKAGE, ("__MACOSX/oar-1/._README", b"\0\5\x16\7")]), "file:///d/oar.zip")).values()
    assert (summary.type, summary.attributes["title"]) == (TYPE, ("oar 1",))


def test_summary_of_a_large_package_is_bounded(run: Run, tar: Pack) -> None:
    """The summary of a large package is bounded, for any number of pages, targets and sources."""
    many = [
        *((f"oar-1/man/{n}.1", b".TH X%d 1\n.SH NAME\nx%d \\- a page\n" % (n, n)) for n in range(300)),
        *((f"oar-1/src/{n}.c", b"/* The source %d, Copyright 1994 Ann %d. */\nint x;\n" % (n, n) * 50) for n in range(300)),
        ("oar-1/src/Makefile", b"".join(b"target%d:\n" % n for n in range(500))),
    ]
    (summary,) = summaries(run(tar([*PACKAGE, *many]), "file:///d/oar-1.tar")).values()
    counts = {name: len(values) for name, values in summary.attributes.items()}
    assert counts["manual-pages"] == counts["targets"] == 100
    assert sum(len(v) for values in summary.attributes.values() for v in values) < 65_536


def test_licences_are_identified_by_their_texts() -> None:
    """The usual licences are identified by their texts; other texts are not."""
    assert license_of("GNU LESSER GENERAL PUBLIC LICENSE\n  Version 2.1, February 1999") == ["LGPL-2.1"]
    assert license_of("Apache License\nVersion 2.0, January 2004") == ["Apache-2.0"]
    assert license_of("Permission is hereby granted, free of charge, to any person obtaining") == ["MIT"]
    assert license_of("Do what you like.") == []


@given(st.integers(0, len(package_metadata.READERS) - 1), st.binary(max_size=400), st.sampled_from(SAMPLES), st.integers(0, 20))
def test_any_declaration_is_bounded(number: int, noise: bytes, sample: Path, at: int) -> None:
    """For any bytes in a package declaration, a reader gives bounded pairs of text, and raises nothing."""
    texts = list(json.loads(sample.read_text("utf-8"))["members"].values())
    raw = texts[at % len(texts)].encode()
    cut = len(noise) * 7 % (len(raw) + 1)
    for body in (noise, raw[:cut] + noise, raw[:cut] + noise + raw[cut:]):
        assert all(name and value for name, value in package_metadata.declared(number, body))


NESTED = [
    b"[",
    b'{"a":',
    b"a.a=1\n",
    b"a." * 30_000 + b"a=1",
    b"<a>",
    b"A: b\n",
    b"name=[",
    b"project(",
    b"\n ",
    b"[a.",
    b"a=[[",
    b"AC_INIT(",
]


@pytest.mark.parametrize("number", range(len(package_metadata.READERS)))
def test_hostile_declaration_takes_bounded_time(number: int) -> None:
    """Deep nesting, long keys and backtracking inputs are read in bounded time, with few or no declarations."""
    for part in NESTED:
        for body in (
            part * (package_metadata.MAX_READ // len(part)),
            b"<project>" + part * 5_000,
            b"Metadata-Version: 1\n" + part * 5_000,
        ):
            assert len(package_metadata.declared(number, body)) <= package_metadata.MAX_PAIRS
