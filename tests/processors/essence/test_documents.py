"""Documents that contain files: both the document and its files are summarized."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from processors.essence.stage import Output
from schemas.records import Complete, File, Partial, Rejected, Summary
from tests.processors.essence.summarize.packages import packed

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]
SAMPLES = Path(__file__).parents[2] / "samples"


def summaries(records: list[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


def test_message_has_a_summary_and_members(run: Run) -> None:
    """A message is summarized by its type and lists its attachments, which are summarized by theirs, inner messages included."""
    data = (SAMPLES / "summarize" / "mail.eml").read_bytes()
    records = run(data, "file:///d/x.eml")
    found = summaries(records)
    assert list(found) == ["Längen.csv", "part-4", ""]
    assert found[""].attributes["title"] == ("The oars für the böats",)
    assert found[""].attributes["contents"] == ("Längen.csv\npart-4",)
    assert found[""].attributes["member-count"] == ("2",)
    assert (found["Längen.csv"].type, found["Längen.csv"].content_type) == ("CSV", "text/csv")
    assert (found["part-4"].type, found["part-4"].attributes["title"]) == ("Mail", ("Oars?",))
    assert isinstance(records[-1], Complete)


def test_message_without_attachments_has_no_member_list(run: Run) -> None:
    """A document that contains no files has no list of members."""
    (summary,) = summaries(run(b"From: a@b\nTo: c@d\nSubject: x\nDate: y\n\nText.\n", "file:///d/x")).values()
    assert summary.type == "Mail"
    assert not {"member-count", "total-size", "contents"} & set(summary.attributes)


@pytest.mark.parametrize(
    ("stated", "known"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000_000_000),
        ("Sun Nov  6 08:49:37 1994", 784_111_777_000_000_000),
        ("Sun, 06 Nov 1994 08:49:37 -0000", 784_111_777_000_000_000),
        ("Sun, 06 Nov 2994 08:49:37 GMT", 0),
        ("soon", 0),
    ],
)
def test_server_times_are_gmt(run: Run, monkeypatch: pytest.MonkeyPatch, stated: str, known: int) -> None:
    """The time of last modification is in GMT whatever the local time zone, or absent where no record can hold it."""
    monkeypatch.setenv("TZ", "XYZ+7")
    time.tzset()
    records = run(b"text", "http://example.org/x", {"files": True}, headers={"last-modified": stated})
    monkeypatch.undo()
    time.tzset()
    assert [r.mtime for r in records if isinstance(r, File)] == [known]


def test_mailbox_messages_are_members(run: Run) -> None:
    """Each message of a mailbox is a member with its own summary, and its attachments are members of it."""
    mail = (SAMPLES / "summarize" / "mail.eml").read_bytes().replace(b"\r\n", b"\n")
    box = (
        b"From a@b Fri Jul  1 10:00:00 1994\n" + mail + b"\n\nFrom a@b Fri Jul  1 10:00:00 1994\nFrom: a@b\nSubject: Two\n\nText.\n"
    )
    found = summaries(run(box, "file:///d/x.mbox"))
    assert list(found) == ["oars.2@example.org#Längen.csv", "oars.2@example.org#part-4", "oars.2@example.org", "message-2", ""]
    assert [s.type for s in found.values()] == ["CSV", "Mail", "Mail", "Mail", "Mailbox"]
    assert found["message-2"].attributes["title"] == ("Two",)


def test_nested_messages_end_at_depth_limit(run: Run) -> None:
    """Messages nested beyond the depth limit are cut there, and the outer ones are summarized."""
    data = b"From: a@b\nTo: c@d\nDate: x\nContent-Type: message/rfc822\n\n" * 40 + b"Text.\n"
    records = run(data, "file:///d/x.eml")
    assert len(summaries(records)) == 17
    assert any(isinstance(r, Rejected) and "nested" in r.reason for r in records)


def test_warc_pages_are_members(run: Run) -> None:
    """A page in a WARC is a member named by its URI, with the type from its server; its references are relative to the URI."""
    found = summaries(run((SAMPLES / "unnest" / "warc" / "crawl.warc").read_bytes(), "file:///d/x.warc"))
    page = found["http://example.org/boats/"]
    assert page.url == "file:///d/x.warc#http://example.org/boats/"
    assert (page.type, page.attributes["title"], page.attributes["target-uri"]) == (
        "HTML",
        ("Boats",),
        ("http://example.org/boats/",),
    )
    assert page.attributes["url-references"] == ("http://example.org/boats/oars",)
    oars = found["http://example.org/boats/oars?long=1%23x"]
    assert (oars.attributes["title"], oars.location) == (("Oars",), "http://example.org/boats/oars?long=1")
    assert (page.location, found["file:///notes/rivers.txt"].location, found[""].location) == (page.path, "", "")
    assert found[""].attributes["member-count"] == ("4",)


def test_damaged_document_keeps_attributes_and_members(run: Run) -> None:
    """A truncated office document is rejected as damaged, keeping its attributes; embedded files are still members."""
    data = (SAMPLES / "summarize" / "officedocument.docx").read_bytes()
    records = run(data[: data.index(b"PK\x01\x02")], "file:///d/x.docx")
    found = summaries(records)
    assert list(found) == ["word/embeddings/table.csv", ""]
    assert found["word/embeddings/table.csv"].type == "CSV"
    assert (found[""].type, found[""].attributes["title"]) == ("OfficeDocument", ("Boats of the lower river",))
    assert isinstance(records[-1], Partial)


TABLE = b"name,length\nbarge,38\nraft,12\n"
ROWS = '<Relationships><Relationship Id="a" Type="x/{}" Target="{}"/></Relationships>'
ENTRY = '<manifest><file-entry full-path="{}" media-type="{}"/></manifest>'


@pytest.mark.parametrize(
    ("name", "parts", "path"),
    [
        ("x.docx", {"word/_rels/document.xml.rels": ROWS.format("package", "../files/Boats.csv")}, "files/Boats.csv"),
        ("x.xlsx", {"_rels/.rels": ROWS.format("oleObject", "boats.csv")}, "Boats.csv"),
        ("x.pptx", {}, "Show/Embeddings/boats.csv"),
        ("x.odt", {"META-INF/manifest.xml": ENTRY.format("Boats.csv", "application/vnd.sun.star.oleobject")}, "boats.csv"),
    ],
)
@pytest.mark.parametrize("slash", ["/", "\\"])
def test_embedded_files_are_found_by_relationships(run: Run, name: str, parts: dict[str, str], path: str, slash: str) -> None:
    """Embedded files are members wherever the relationships or the manifest of a document say they are."""
    body = packed({"word/document.xml": "<document/>", "content.xml": "<p/>"} | parts | {path.replace("/", slash): TABLE})
    found = summaries(run(body, f"file:///d/{name}"))
    assert found[path].type == "CSV"
    assert not [other for other in found if other not in (path, "")]
