from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
from collections.abc import Callable, Sequence

from processors.essence.member import BEHIND
from processors.essence.selection import Selection
from processors.essence.stage import Output
from processors.identity import oid
from schemas.records import Complete, Confirmed, CrawlEvent, File, Partial, Rejected, Summary, Validators

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]


def summaries(records: list[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


def test_plain_file_is_one_summary_then_complete(run: Run) -> None:
    """A file gives its summary with the common attributes, and Complete counts it."""
    headers = {"owner": "ann", "group": "staff", "mode": "644"}
    records = run(b"Some words.\n", "file:///d/a%20b.txt", headers=headers, validators=Validators(mtime=1_000_000_000_000_000_000))
    summary, end = records
    assert isinstance(summary, Summary)
    assert (summary.url, summary.path, summary.oid) == ("file:///d/a%20b.txt", "", oid("g", "file:///d/a%20b.txt"))
    assert (summary.type, summary.content_type, summary.size) == ("RawText", "text/plain", 12)
    for name, value in (("file-name", "a b.txt"), ("owner", "ann"), ("group", "staff"), ("mode", "0644")):
        assert summary.attributes[name] == (value,)
    assert summary.attributes["last-modification-time"] == ("2001-09-09T01:46:40Z",)
    assert isinstance(end, Complete)
    assert (end.count, end.attempt, end.reason) == (1, summary.attempt, "whole")


def test_compression_is_an_encoding(run: Run) -> None:
    """x.1.gz is one summary of its content, with the digest and size of the stored bytes."""
    data = gzip.compress(b".TH X 1\n.SH NAME\nx \\- a page\n", mtime=0)
    (summary,) = summaries(run(data, "file:///d/x.1.gz")).values()
    assert (summary.type, summary.attributes["encoding"]) == ("ManPage", ("gzip",))
    assert (summary.path, summary.size) == ("", len(data))
    assert (summary.md5, summary.sha256) == (hashlib.md5(data).hexdigest(), hashlib.sha256(data).hexdigest())


def test_encodings_may_be_stacked(run: Run) -> None:
    """Each encoding is decoded and listed, the outermost first."""
    data = bz2.compress(lzma.compress(gzip.compress(b"Some words.\n")))
    (summary,) = summaries(run(data, "file:///d/x.txt.gz.xz.bz2")).values()
    assert (summary.type, summary.attributes["encoding"]) == ("RawText", ("bzip2", "xz", "gzip"))


def test_members_of_compressed_tar_belong_to_object(run: Run, tar: Pack) -> None:
    """a.tar.gz has members a.tar.gz#m, and a summary of its own that lists them."""
    data = gzip.compress(tar([("doc/m.txt", b"Some words.\n"), ("n.txt", b"Others.\n")]))
    found = summaries(run(data, "file:///d/a.tgz"))
    assert list(found) == ["doc/m.txt", "n.txt", ""]
    assert found["doc/m.txt"].url == "file:///d/a.tgz#doc/m.txt"
    assert found["doc/m.txt"].oid == oid("g", "file:///d/a.tgz#doc/m.txt")
    own = found[""]
    assert (own.type, own.size) == ("Tar", len(data))
    assert own.attributes["member-count"] == ("2",)
    assert own.attributes["total-size"] == ("20",)
    assert own.attributes["contents"] == ("doc/m.txt\nn.txt",)


def test_archive_lists_unescaped_names(run: Run, tar: Pack) -> None:
    """An archive lists its members by their unescaped names, one per line."""
    data = tar([("50% of #1/k\u00e4se a.txt", b"Some words.\n"), ("two\nlines", b"Others.\n"), ("two\nlines", b"More.\n")])
    own = summaries(run(data, "file:///d/y.tar"))[""]
    assert own.attributes["contents"] == ("50% of #1/k\u00e4se a.txt\ntwo lines\ntwo lines;2",)
    bare = tar([("L\udce4ngen.csv", b"a,b\n1,2\n")])
    assert summaries(run(bare, "file:///d/x.tar"))[""].attributes["contents"] == ("L\ufffdngen.csv",)


def test_each_nesting_level_has_a_hash(run: Run, tar: Pack, zipped: Pack, ar: Pack) -> None:
    """Containers nest in any order, each level after its own #, with escaped names."""
    inner = zipped([("a#b%.txt", b"Some words.\n")])
    data = ar([("x.tar.xz", lzma.compress(tar([("in ner.zip", inner)]))), ("plain.txt", b"Others.\n")])
    found = summaries(run(data, "file:///d/x.a"))
    assert set(found) == {"x.tar.xz#in%20ner.zip#a%23b%25.txt", "x.tar.xz#in%20ner.zip", "x.tar.xz", "plain.txt", ""}
    member = found["x.tar.xz#in%20ner.zip"]
    assert (member.type, member.md5, member.size) == ("Zip", hashlib.md5(inner).hexdigest(), len(inner))
    assert found["x.tar.xz"].attributes["encoding"] == ("xz",)


def test_second_member_of_a_name_gets_a_number(run: Run, tar: Pack) -> None:
    """Members of one name get distinct paths, also from members that really have such a name."""
    found = summaries(run(tar([("m", b"1"), ("m;2", b"2"), ("m", b"3"), ("m", b"4"), ("", b"5")]), "file:///d/x.tar"))
    assert list(found) == ["m", "m;2", "m;3", "m;4", ";1", ""]
    assert found["m;3"].md5 == hashlib.md5(b"3").hexdigest()


def test_names_with_parent_folders_are_inert(run: Run, tar: Pack) -> None:
    """A member's name is not normalized, and never used to open a file."""
    found = summaries(run(tar([("../../etc/passwd", b"x"), ("/etc/shadow", b"y"), ("a/\x01\x7f", b"z")]), "file:///d/x.tar"))
    assert set(found) == {"../../etc/passwd", "/etc/shadow", "a/%01%7F", ""}


def test_links_and_devices_are_inert_records(run: Run) -> None:
    """A link gives a SymbolicLink summary with its target, a device a record that is never opened; a folder gives none."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target in (
            ("d", tarfile.DIRTYPE, ""),
            ("s", tarfile.SYMTYPE, "/etc/passwd"),
            ("h", tarfile.LNKTYPE, "../x"),
            ("c", tarfile.CHRTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    found = summaries(run(out.getvalue(), "file:///d/x.tar"))
    assert set(found) == {"s", "h", "c", ""}
    assert (found["s"].type, found["s"].attributes["target"], found["s"].sha256) == ("SymbolicLink", ("/etc/passwd",), "")
    assert (found["h"].type, found["h"].attributes["target"]) == ("SymbolicLink", ("../x",))
    assert found["c"].attributes["device"] == ("character device 0:0",)


def test_symbolic_link_of_a_folder_is_a_summary(run: Run) -> None:
    """An object of content type inode/symlink is never followed: its body is its target."""
    (summary, end) = run(b"../else\xff", "file:///d/l", content_type="inode/symlink")
    assert isinstance(summary, Summary)
    assert (summary.type, summary.content_type, summary.sha256) == ("SymbolicLink", "inode/symlink", "")
    assert summary.attributes["target"] == (b"../else\xff",)
    assert isinstance(end, Complete)


def test_compiled_code_beside_its_source_is_dropped(run: Run, tar: Pack) -> None:
    """A member dropped by a rule over the whole listing gives no summary, in any order; the archive counts it."""
    members = [
        ("a.o", b"\x7fELF"),
        ("a.c", b"int a;\n"),
        ("b.c", b"int b;\n"),
        ("b.o", b"\x7fELF"),
        ("c.o", b"\x7fELF"),
        ("t~", b"x"),
    ]
    records = run(tar(members), "file:///d/x.tar")
    found = summaries(records)
    assert list(found) == ["a.c", "b.c", "c.o", ""]
    assert found[""].attributes["not-selected"] == ("editor-backup 1", "object-beside-source 2")
    assert isinstance(records[-1], Complete)
    assert records[-1].count == 4


def test_rules_can_be_turned_off(run: Run, tar: Pack) -> None:
    """A rule that is turned off drops nothing."""
    off = Selection(off=("object-beside-source", "editor-backup"))
    members = [("a.o", b"\x7fELF"), ("a.c", b"int a;\n"), ("t~", b"x")]
    found = summaries(run(tar(members), "file:///d/x.tar", settings={"select": off}))
    assert set(found) == {"a.o", "a.c", "t~", ""}


def test_every_file_gives_its_facts(run: Run, tar: Pack) -> None:
    """With `files`, each file gives a record of its facts; an unselected one names the rule."""
    records = run(tar([("a.o", b"\x7fELF"), ("a.c", b"int a;\n"), ("t~", b"x")]), "file:///d/x.tar", settings={"files": True})
    facts = {r.path: (r.type, r.size, r.selected, r.reason) for r in records if isinstance(r, File)}
    assert facts == {
        "a.o": ("Binary", 4, False, "object-beside-source"),
        "a.c": ("C", 7, True, ""),
        "t~": ("Unrecognized", 1, False, "editor-backup"),
        "": ("Tar", 10240, True, ""),
    }


def test_links_of_page_are_grouped_by_host(run: Run) -> None:
    """The links of a page are canonical, once each, grouped by target host, with the page as their source."""
    page = (
        b"<title>P</title><a href=/b>1</a><a href='/b#x'>2</a><a href='//o.example/'>3</a><a href=c>4</a><a href='mailto:x@y'>5</a>"
    )
    records = run(page, "http://w.example/a/", content_type="text/html; charset=utf-8", depth=2)
    events = [r for r in records if isinstance(r, CrawlEvent)]
    assert [(e.kind, e.host, e.url, e.depth, e.version, [link.url for link in e.links]) for e in events] == [
        ("discovered", "http://w.example", "http://w.example/a/", 2, 7, ["http://w.example/b", "http://w.example/a/c"]),
        ("discovered", "http://o.example", "http://w.example/a/", 2, 7, ["http://o.example/"]),
    ]
    assert all(e.span is None and e.root for e in events)
    assert isinstance(records[-1], Complete)


def test_links_of_members_are_not_followed(run: Run, tar: Pack) -> None:
    """Links are followed only from web objects that belong to a root; links of members and of local files are not."""
    page = b"<html><title>P</title><a href=http://o.example/>1</a></html>"
    assert not [r for r in run(page, "file:///d/p.html") if isinstance(r, CrawlEvent)]
    assert not [r for r in run(tar([("p.html", page)]), "http://w.example/x.tar") if isinstance(r, CrawlEvent)]
    assert not [r for r in run(tar([("p.html", page)]), "file:///d/x.tar") if isinstance(r, CrawlEvent)]
    assert not [r for r in run(page, "http://w.example/", root=None) if isinstance(r, CrawlEvent)]


def test_same_input_gives_the_same_records(run: Run, tar: Pack, zipped: Pack) -> None:
    """The same object, settings and skip list give the same records in the same order."""
    data = zipped([("a.tar", tar([(f"f{n}.txt", b"words %d\n" % n) for n in range(50)])), ("b.html", b"<a href=x>")])
    assert run(data, "file:///d/x.zip") == run(data, "file:///d/x.zip")


def test_skipped_member_is_not_opened(run: Run, tar: Pack, zipped: Pack) -> None:
    """A skipped member is rejected with the given reason, others are read, and the attempt has another name."""
    data = tar([("a.zip", zipped([("x", b"1")])), ("b.txt", b"words\n")])
    seen: list[str] = []
    records = run(data, "file:///d/x.tar", skip={"a.zip": "timed out"}, progress=seen.append)
    found = summaries(records)
    assert set(found) == {"a.zip", "b.txt", ""}
    assert (found["a.zip"].type, found["a.zip"].attributes["reason"]) == ("Unrecognized", ("timed out",))
    assert [(r.path, r.reason, r.stage) for r in records if isinstance(r, Rejected)] == [("a.zip", "timed out", "essence")]
    assert isinstance(records[-1], Complete)
    plain = run(data, "file:///d/x.tar")[-1]
    assert isinstance(plain, Complete)
    assert plain.attempt != records[-1].attempt
    assert "a.zip" not in seen
    assert "b.txt" in seen


def test_whole_object_can_be_skipped(run: Run) -> None:
    """The empty path skips the object itself, with a crash as the default reason."""
    rejected, summary, end = run(b"x", "file:///d/x.txt", skip=frozenset({""}))
    assert isinstance(rejected, Rejected)
    assert isinstance(summary, Summary)
    assert isinstance(end, Complete)
    assert (rejected.reason, summary.type, summary.md5) == ("crashed", "Unrecognized", hashlib.md5(b"x").hexdigest())


def test_progress_reports_each_member_before_processing(run: Run, tar: Pack, zipped: Pack) -> None:
    """The last path reported as progress is the one that caused a crash."""
    seen: list[str] = []
    run(tar([("a.zip", zipped([("x", b"1")])), ("b", b"2")]), "file:///d/x.tar", progress=seen.append)
    # After each member its end is reported: a later crash is not attributed to it.
    assert seen == ["", "a.zip", "a.zip#x", f"{BEHIND}a.zip#x", f"{BEHIND}a.zip", "b", f"{BEHIND}b"]


def test_gone_and_expired_remove_everything(run: Run) -> None:
    """Gone and expired give an empty Complete, also for a folder's children."""
    for outcome in ("gone", "expired"):
        (end,) = run(b"", "file:///d/x", outcome=outcome)
        assert isinstance(end, Complete)
        assert (end.count, end.reason) == (0, outcome)
        event, end = run(b"", "file:///d/x/", outcome=outcome)
        assert isinstance(event, CrawlEvent)
        assert event.span is not None
        assert (event.host, event.links, event.span.low, event.span.high) == ("file:///d/x/", (), b"", b"\xff" * 16)
        assert isinstance(end, Complete)


def test_unchanged_is_confirmed(run: Run) -> None:
    """Unchanged gives one Confirmed of the object's version, with the time of the request, and nothing else."""
    assert run(b"", "file:///d/x", outcome="unchanged") == [Confirmed(object_url="file:///d/x", version=7, time=1_000)]


def test_empty_object_has_summary(run: Run) -> None:
    """An empty object has a summary of an empty file, excluded from dedup."""
    summary, end = run(b"", "file:///d/x")
    assert isinstance(summary, Summary)
    assert (summary.size, summary.content) == (0, "")
    assert not isinstance(end, Partial)
