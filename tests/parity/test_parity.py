"""Full text, links and metadata of the project's sample documents, compared with those of a real tika-server."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.parity.compare import Compared, Count, compared, f1, facts, links, same, text, tokens
from tests.parity.readings import Reading, Tika, TikaError, address, both, harvest, stated
from tests.processors.essence.summarize.packages import packed

LEAST = 0.9
SAMPLES = ("html.html", "pdf.pdf", "rtf.rtf", "epub.epub")
MORE = ("opendocument.odt", "mail.eml")
"""Samples of which Tika reads less than Harvest: an old embedded object in one, the text itself in the other."""
CELLS = "".join(
    f'<row><c t="inlineStr"><is><t>lock {n}</t></is></c><c><v>{n}.5</v></c><c s="1"><v>{34_000 + n}</v></c></row>'
    for n in range(90)
)
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEETS, WORDS = (f"http://schemas.openxmlformats.org/{kind}ml/2006/main" for kind in ("spreadsheet", "wordprocessing"))
MEDIA = "application/vnd.openxmlformats-officedocument."
PARTS = {
    "xl/workbook.xml": "spreadsheetml.sheet.main+xml",
    "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet+xml",
    "xl/styles.xml": "spreadsheetml.styles+xml",
    "word/document.xml": "wordprocessingml.document.main+xml",
    "word/header1.xml": "wordprocessingml.header+xml",
    "word/footnotes.xml": "wordprocessingml.footnotes+xml",
}


def related(*targets: tuple[str, str]) -> str:
    """A relationships part with the given kinds and targets."""
    outside = {True: ' TargetMode="External"', False: ""}
    rows = (
        f'<Relationship Id="r{n}" Type="{RELATION}/{kind}" Target="{target}"{outside[kind == "hyperlink"]}/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{"".join(rows)}</Relationships>'


def office(main: str, parts: dict[str, str]) -> bytes:
    """An Office Open XML document, from its main part and further parts."""
    kinds = "".join(f'<Override PartName="/{name}" ContentType="{MEDIA}{PARTS[name]}"/>' for name in parts if name in PARTS)
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    types = f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{rels}{kinds}</Types>'
    return packed({"[Content_Types].xml": types, "_rels/.rels": related(("officeDocument", main)), **parts})


WORKBOOK = {
    "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{RELATION}">'
    '<sheets><sheet name="Locks" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": related(("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml")),
    "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{CELLS}</sheetData></worksheet>',
    "xl/styles.xml": f'<styleSheet xmlns="{SHEETS}"><fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>'
    '<cellXfs><xf/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
}
LINES = "".join(f"<w:p><w:r><w:t>Lock {n} has gates.</w:t></w:r></w:p>" for n in range(400))
TEXT = f'xmlns:w="{WORDS}" xmlns:r="{RELATION}"'
DOCUMENT = {
    "word/document.xml": f"<w:document {TEXT}><w:body>{LINES}"
    '<w:p><w:hyperlink r:id="r1"><w:r><w:t>see there</w:t></w:r></w:hyperlink></w:p>'
    '<w:p><w:r><w:t>noted</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    '<w:sectPr><w:headerReference w:type="default" r:id="r2"/></w:sectPr></w:body></w:document>',
    "word/_rels/document.xml.rels": related(
        ("hyperlink", "http://example.org/"), ("header", "header1.xml"), ("footnotes", "footnotes.xml")
    ),
    "word/header1.xml": f"<w:hdr {TEXT}><w:p><w:r><w:t>Heading of pages</w:t></w:r></w:p></w:hdr>",
    "word/footnotes.xml": f'<w:footnotes {TEXT}><w:footnote w:id="2"><w:p><w:r>'
    "<w:t>A footnote stands below</w:t></w:r></w:p></w:footnote></w:footnotes>",
}


def lacking(one: Compared) -> list[str]:
    """The facts that only Tika finds. Links are compared by number: Tika ignores the base URL of a page."""
    return [*one.lacking(), *(["links"] if len(one.theirs.links) > len(one.ours.links) else [])]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_read_as_by_tika(name: str, samples: Path, client: Tika) -> None:
    """For a sample of each kind of document, Harvest reads the text that Tika reads, and all links and facts that it finds."""
    one = compared(name, *both(samples / "summarize" / name, client))
    assert one.theirs.text.strip()
    assert one.f1 >= LEAST
    assert not lacking(one)


@pytest.mark.parametrize("name", MORE)
def test_samples_read_more_fully_than_by_tika(name: str, samples: Path, client: Tika) -> None:
    """Harvest reads everything that Tika reads of these samples, and more."""
    one = compared(name, *both(samples / "summarize" / name, client))
    mine, theirs = tokens(one.ours.text), tokens(one.theirs.text)
    assert (mine & theirs).total() >= LEAST * theirs.total()
    assert mine.total() > theirs.total() > 0
    assert not lacking(one)


def test_linked_pages_read_as_by_tika(samples: Path, client: Tika) -> None:
    """In pages that link to each other, Harvest finds every link, title and description that Tika finds."""
    pages = sorted(samples.glob("site/*.html")) + sorted(samples.glob("corpus/pages/*.html"))
    found = [compared(page.name, *both(page, client)) for page in pages]
    assert len(found) > 10
    assert text(found).worst >= LEAST
    assert links(found).both == links(found).theirs > 20
    assert all(count.both == count.theirs for count in facts(found).values())


def test_all_rows_of_a_workbook_are_read(client: Tika, tmp_path: Path) -> None:
    """All rows of a workbook are read, with dates and fractions as they are displayed."""
    (tmp_path / "locks.xlsx").write_bytes(office("xl/workbook.xml", WORKBOOK))
    one = compared("locks.xlsx", *both(tmp_path / "locks.xlsx", client))
    assert one.theirs.text.count("lock") == 90
    assert one.f1 >= LEAST


def test_headers_footnotes_and_links_of_a_document_are_read(client: Tika, tmp_path: Path) -> None:
    """All text of a document is read, headers and footnotes included, and the targets of its links."""
    (tmp_path / "locks.docx").write_bytes(office("word/document.xml", DOCUMENT))
    one = compared("locks.docx", *both(tmp_path / "locks.docx", client))
    assert {"heading", "footnote", "gates"} <= tokens(one.theirs.text).keys() & tokens(one.ours.text).keys()
    assert one.f1 >= LEAST
    assert one.ours.links == one.theirs.links == {"http://example.org/"}


@pytest.mark.parametrize("subtype", ["plain", "html"])
def test_text_attachments_and_facts_of_a_message_are_read(subtype: str, client: Tika, tmp_path: Path) -> None:
    """The whole text of a message is read, plain or HTML, attachments included, and its author, date and subject."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Gates of the lock", "Ann <ann@example.org>", "Ben <ben@example.org>"
    message["Date"] = "Thu, 01 Dec 1994 12:00:00 +0100"
    paragraphs = [f"Gate {number} leaks, and the keeper knows. > quoted" for number in range(300)]
    message.set_content("\n\n".join(f"<p>{p}</p>" for p in paragraphs) if subtype == "html" else "\n\n".join(paragraphs), subtype)
    message.add_attachment("The drawings are in the attic.", filename="drawings.txt")
    (tmp_path / "gates.eml").write_bytes(message.as_bytes())
    one = compared("gates.eml", *both(tmp_path / "gates.eml", client))
    assert "attic" in one.theirs.text
    assert one.f1 >= LEAST
    assert not lacking(one)
    assert {"title", "author", "created"} <= one.theirs.facts.keys()


def test_document_that_tika_cannot_read_raises_an_error(client: Tika) -> None:
    """A document that the server does not read raises TikaError, and the next one is read."""
    with pytest.raises(TikaError, match=r"broken\.docx: org"):
        client.read("broken.docx", b"PK\x03\x04" + bytes(40))
    assert client.read("after.txt", b"It goes on.").text.strip() == "It goes on."


def test_f1_depends_on_token_counts() -> None:
    """F1 depends on the counts of tokens, not on order or punctuation; two texts without tokens are alike."""
    assert f1("One, two: THREE", "three one two") == 1
    assert f1("ﬁne", "fine") == 1
    assert f1("one one", "one") == pytest.approx(2 / 3)
    assert f1("", "one") == 0
    assert f1("", "...") == 1


@pytest.mark.parametrize(
    ("kind", "ours", "theirs", "alike"),
    [
        ("title", ("The Locks",), ("the locks",), True),
        ("title", ("Locks",), ("Gates",), False),
        ("title", ("...",), ("...",), True),
        ("author", ("Ann", "Ben"), ("Ben",), True),
        ("created", ("1994-12-01T11:00:00Z",), ("1994-12-01T12:00:00",), True),
        ("created", ("1994-12-01T11:00:00Z",), ("1994-12-11T12:00:00Z",), False),
        ("created", ("2007-06-12T22:21:34Z",), ("Wed Jun 13 00:21:34 +0200 2007",), True),
        ("created", ("2007-06-10T22:21:34Z",), ("Wed Jun 13 00:21:34 +0200 2007",), False),
        ("created", ("some day",), ("1994-12-11T12:00:00Z",), False),
        ("created", ("1994", "Thu Dec  1 1994"), ("Thu Dec 1 1994",), True),
        ("language", ("en",), ("en-GB",), True),
    ],
)
def test_facts_are_compared_by_meaning(kind: str, ours: tuple[str, ...], theirs: tuple[str, ...], alike: bool) -> None:
    """Facts are compared by meaning: case, punctuation and time zones do not matter."""
    assert same(kind, ours, theirs) is alike


def test_placeholders_are_not_facts() -> None:
    """A program's default title and a time of zero are not facts; values that only resemble them are."""
    said = {"title": ("Untitled",), "created": ("1601-01-01T00:00:00Z",), "modified": ("1601-01-02T00:00:00Z",)}
    assert stated(said) == {"modified": ("1601-01-02T00:00:00Z",)}
    assert stated({"title": ("Presentation1", "Document", "at.dvi", "Documents", "On at.dvi"), "author": ("Untitled",)}) == {
        "title": ("Documents", "On at.dvi"),
        "author": ("Untitled",),
    }


def test_counts_are_over_documents() -> None:
    """Mean, median and worst are over documents; facts that Harvest derives are not counted beyond what Tika found."""
    silent = Reading("one", frozenset(), {})
    ours = Reading("one", frozenset({"http://a.example/"}), {"title": ("made",), "author": ("Ann",)})
    found = [compared("a", ours, silent), compared("b", silent, Reading("two", frozenset(), {"author": ("Ben",)}))]
    assert (text(found).mean, text(found).median, text(found).worst, text(found).above) == (0.5, 0.5, 0, 0.5)
    assert links(found) == Count(1, 0, 0)
    assert (facts(found)["title"], facts(found)["author"]) == (Count(0, 0, 0), Count(1, 1, 0))
    assert found[1].lacking() == ["author"]


@pytest.mark.parametrize(
    ("href", "name", "target"),
    [
        ("b.html#top", "a.html", "http://documents.example/b.html"),
        ("#top", "a.html", ""),
        ("mailto:a@example.org", "a.html", ""),
        ("part.xhtml", "a.epub", ""),
        ("HTTP://Example.org/", "a.pdf", "http://example.org/"),
    ],
)
def test_relative_links_are_resolved_in_pages_only(href: str, name: str, target: str) -> None:
    """Only links to other documents count; relative links are resolved in pages only."""
    assert address(href, name) == target


def test_harvest_reading_is_the_output_of_essence() -> None:
    """Harvest's reading is the output of essence: full text, resolved links, facts of the document itself."""
    head = b'<html lang="en"><title>Locks</title><meta name="author" content="Ann">'
    found = harvest("a.html", head + b'<body><p>Gates.</p><a href="b.html">b</a></body></html>')
    assert found.text.split() == ["Gates.", "b"]
    assert found.links == {"http://documents.example/b.html"}
    assert (found.facts["title"], found.facts["author"], found.facts["language"]) == (("Locks",), ("Ann",), ("en",))
