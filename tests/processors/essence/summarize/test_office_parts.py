"""Parts of Office Open XML packages: found by relationships, displayed in the document's order, imported and moved text."""

import io
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize import Facts, Found, SummaryError, summarize
from tests.processors.essence.summarize.packages import packed

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
R = f'xmlns:r="{OFFICE}"'
W = f'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" {R}'
SHEET = '<worksheet><sheetData><row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row></sheetData></worksheet>'
STRINGS = "<sst><si><t>Species</t></si><si><t>Wombat</t></si></sst>"


def related(*targets: tuple[str, str, str], vocabulary: str = OFFICE) -> str:
    """Return a part with relationships: (id, kind, target) each."""
    rows = (f'<Relationship Id="{i}" Type="{vocabulary}/{kind}" Target="{target}"/>' for i, kind, target in targets)
    return f"<Relationships>{''.join(rows)}</Relationships>"


def read(parts: Mapping[str, str | bytes], full: int = 0, kind: str = "OfficeDocument") -> tuple[Found, str]:
    """Return what is found in a package of the parts, and why it is rejected; "" if it is not."""
    body, found = packed(parts), Found(full)
    try:
        summarize(Facts(b"x", "http://example.org/x", kind, "", len(body), 0, ""), io.BytesIO(body), found)
    except SummaryError as error:
        return found, str(error)
    return found, ""


def workbook(main: str, sheet: str, strings: str, vocabulary: str = OFFICE) -> dict[str, str | bytes]:
    """Return the parts of a workbook under the given names, as stored; targets are relative to the main part's folder."""
    folder, slash, name = main.replace("\\", "/").rpartition("/")
    targets = [each.replace("\\", "/").removeprefix(folder + slash) for each in (sheet, strings)]
    return {
        "_rels/.rels": related(("a", "officeDocument", main.replace("\\", "/")), vocabulary=vocabulary),
        main: f'<workbook {R}><sheets><sheet name="Birds" sheetId="1" r:id="s"/></sheets></workbook>',
        f"{folder}{slash}_rels/{name}.rels": related(
            ("s", "worksheet", targets[0]), ("t", "sharedStrings", targets[1]), vocabulary=vocabulary
        ),
        sheet: SHEET,
        strings: STRINGS,
    }


def document(text: str, relations: str = "", **parts: str | bytes) -> dict[str, str | bytes]:
    """Return the parts of a text document with the given content of its body; `parts`: further ones in its folder."""
    found: dict[str, str | bytes] = {
        "_rels/.rels": related(("a", "officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {W}><w:body>{text}</w:body></w:document>",
    }
    if relations:
        found["word/_rels/document.xml.rels"] = relations
    return found | {f"word/{name.replace('_', '.')}": part for name, part in parts.items()}


def paragraph(text: str) -> str:
    """Return a paragraph of one run."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


@pytest.mark.parametrize(
    "parts",
    [
        workbook("xl/workbook2.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"),
        workbook("xl/workbook.xml", "xl/worksheets/sheet-1.xml", "xl/SharedStrings1.xml"),
        workbook("workbook.xml", "sheet1.xml", "strings.xml"),
        workbook("content/Book.xml", "content/S 1.xml", "content/text/t.xml"),
        workbook("content/Mappe.xml", "content/Übersicht.xml", "content/Texte.xml"),
        workbook("a/b/c/book", "a/b/c/d/sheet", "a/b/c/d/words", STRICT),
    ],
)
def test_parts_are_found_by_relationships(parts: dict[str, str | bytes]) -> None:
    """The sheets and strings of a workbook are found under any names, in any folder, in either vocabulary."""
    found, problem = read(parts)
    assert (found.text("partial-text"), problem) == ("Species\nWombat", "")
    assert found.attributes["headings"] == ["Birds"]


@pytest.mark.parametrize(
    "change",
    [
        lambda name: name.replace("/", "\\"),
        str.lower,
        str.upper,
        lambda name: "./" + name,
        lambda name: "/" + name,
        lambda name: name.replace("w", "%77"),
    ],
)
def test_equal_names_lead_to_the_same_part(change: object) -> None:
    """Names of parts are equal without regard to case, kind of slash, dots and percent-encoding."""
    assert callable(change)
    parts = workbook("xl/Workbook.xml", "xl/worksheets/Sheet1.xml", "xl/sharedStrings.xml")
    assert read({change(name): part for name, part in parts.items()})[0].text("partial-text") == "Species\nWombat"


@pytest.mark.parametrize("target", ["xl/worksheets/sheet1.xml", "/xl/worksheets/sheet1.xml", "../xl/./worksheets/sheet1.xml"])
def test_targets_are_resolved(target: str) -> None:
    """Targets are relative to their part, or to the root; even if the slash of an absolute one is left out."""
    parts = workbook("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml")
    parts["xl/_rels/workbook.xml.rels"] = related(("s", "worksheet", target), ("t", "sharedStrings", "sharedStrings.xml"))
    assert read(parts)[0].text("partial-text") == "Species\nWombat"


def test_content_type_declares_main_part() -> None:
    """Without relationships of the package, the main part is found by its content type."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = f'<Types><Default Extension="xml" ContentType="text/xml"/><Override PartName="/t/a.xml" ContentType="{main}"/></Types>'
    found, problem = read({"[Content_Types].xml": types, "t/a.xml": f"<w:x {W}>{paragraph('An echidna.')}</w:x>"})
    assert (found.text("partial-text"), problem) == ("An echidna.", "")


def test_missing_parts_are_reported() -> None:
    """A package whose displayed parts are missing is damaged, and the reason names them; what is there is kept."""
    parts = workbook("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml")
    parts["docProps/core.xml"] = "<coreProperties><title>Of birds</title></coreProperties>"
    sheets = {name: part for name, part in parts.items() if "sheet1" not in name}
    found, problem = read(sheets)
    assert problem == "damaged: parts are missing: xl/worksheets/sheet1.xml"
    assert (found.text("title"), found.attributes["headings"]) == ("Of birds", ["Birds"])
    assert read({n: p for n, p in parts.items() if n != "xl/workbook.xml"})[1] == "damaged: parts are missing: xl/workbook.xml"
    assert "xl/sharedstrings.xml" in read({n: p for n, p in parts.items() if "Strings" not in n})[1]
    parts["xl/_rels/workbook.xml.rels"] = related(("t", "sharedStrings", "sharedStrings.xml"))
    assert "sheet Birds" in read(parts)[1]


def test_package_without_main_part_is_reported() -> None:
    """A package in which nothing leads to a document is rejected."""
    assert "no known part" in read({"[Content_Types].xml": "<Types/>", "a/b.xml": "<a/>"})[1]


def test_many_relationships_are_bounded() -> None:
    """Any number of relationships is read up to a limit, without an error."""
    many = [(f"r{n}", "header", f"header{n}.xml") for n in range(60_000)]
    parts = document(paragraph("An emu."), related(*many)) | {f"word/header{n}.xml": "<w:hdr/>" for n in range(100)}
    found, _ = read(parts, 1 << 20)
    assert found.text("full-text") == "An emu."


def slide(title: str, text: str) -> str:
    """Return a slide with a title and a text."""
    shapes = (
        f'<p:sp><p:ph type="{kind}"/><a:p><a:t>{line}</a:t></a:p></p:sp>' for kind, line in (("title", title), ("body", text))
    )
    return f'<p:sld xmlns:p="p" xmlns:a="a">{"".join(shapes)}</p:sld>'


def presentation(order: list[int], folder: str = "ppt/slides") -> dict[str, str | bytes]:
    """Return a presentation of four slides with notes, of which those in `order` are in its list of slides."""
    listed = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in order)
    section = '<p:ext><p14:sldIdLst xmlns:p14="q"><p14:sldId id="258"/></p14:sldIdLst></p:ext>'
    parts: dict[str, str | bytes] = {
        "_rels/.rels": related(("a", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {R}><p:sldIdLst>{listed}</p:sldIdLst>{section}</p:presentation>',
        "ppt/_rels/presentation.xml.rels": related(*((f"r{n}", "slide", f"/{folder}/slide{n}.xml") for n in range(1, 5))),
    }
    for n in range(1, 5):
        parts[f"{folder}/slide{n}.xml"] = slide(f"Title {n}", f"text {n}")
        parts[f"{folder}/_rels/slide{n}.xml.rels"] = related(("n", "notesSlide", f"../notes/of-{5 - n}.xml"))
        parts[f"{folder.rpartition('/')[0]}/notes/of-{5 - n}.xml"] = slide("", f"note {n}")
    return parts


@pytest.mark.parametrize("order", [[3, 1], [4, 3, 2, 1], [2]])
@pytest.mark.parametrize("folder", ["ppt/slides", "show/pictures"])
def test_slides_are_in_the_order_shown(order: list[int], folder: str) -> None:
    """Slides are read in the order of the list of slides; a slide outside of it is left out with its notes."""
    found, problem = read(presentation(order, folder))
    assert problem == ""
    assert found.text("title") == f"Title {order[0]}"
    assert found.attributes["headings"] == [f"Title {n}" for n in order]
    assert found.text("partial-text").split("\n") == [line for n in order for line in (f"Title {n}", f"text {n}")]
    full = read(presentation(order, folder), 1 << 20)[0].text("full-text").split("\n")
    assert full[2 * len(order) :] == [f"note {n}" for n in order]


def test_missing_slide_is_reported() -> None:
    """A listed slide that is not in the package is damage; the others are read."""
    parts = presentation([1, 2])
    del parts["ppt/slides/slide1.xml"]
    found, problem = read(parts)
    assert (found.text("title"), problem) == ("Title 2", "damaged: parts are missing: ppt/slides/slide1.xml")


def test_slides_of_damaged_presentation_are_in_numeric_order() -> None:
    """Without the relationships of the presentation, slides are in the order of their numbers."""
    parts = presentation([3, 1])
    del parts["ppt/_rels/presentation.xml.rels"]
    assert read(parts)[0].attributes["headings"] == [f"Title {n}" for n in range(1, 5)]


HTML = "<html><head><title>T</title></head><body><h1>Ferry tariff</h1><p>The zebra finch pays nine crowns.</p></body></html>"
MHT = (
    "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\n\r\n" + HTML.replace("nine crowns", "nine=20crow=\r\nns") + "\r\n--b--\r\n"
)
RTF = rb"{\rtf1\ansi The zebra finch pays nine crowns.\par}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chunk_html", HTML.encode()),
        ("chunk_xhtml", b"<?xml version='1.0'?>" + HTML.encode()),
        ("chunk_html", "\ufeff".encode("utf-16-le") + HTML.encode("utf-16-le")),
        ("chunk_mht", MHT.encode()),
        ("chunk_dat", MHT.encode()),
        ("chunk_rtf", RTF),
        ("chunk_txt", b"The zebra finch pays nine crowns."),
        ("chunk_docx", packed(document(paragraph("The zebra finch pays nine crowns.")))),
        ("chunk_xml", f"<w:document {W}>{paragraph('The zebra finch pays nine crowns.')}</w:document>".encode()),
    ],
)
def test_imported_parts_are_text(name: str, content: bytes) -> None:
    """A part that Word imports is part of the text, at its place, in every format."""
    relations = related(("c", "aFChunk", f"/word/{name.replace('_', '.')}"))
    body = paragraph("Before.") + '<w:altChunk r:id="c"/>' + paragraph("Behind.")
    found, problem = read(document(body, relations, **{name: content}))
    lines = found.text("partial-text").split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("Before.", "The zebra finch pays nine crowns.", "Behind.")
    assert problem == ""


def test_imported_page_has_headings_and_links() -> None:
    """The headings and links of an imported page are those of the document."""
    page = HTML.replace("nine", '<a href="http://example.org/nine">nine</a>')
    relations = related(("c", "aFChunk", "a.html"))
    found, _ = read(document('<w:altChunk r:id="c"/>', relations, a_html=page))
    assert found.attributes["headings"] == ["Ferry tariff"]
    assert found.attributes["url-references"] == ["http://example.org/nine"]


def test_missing_imported_part_is_reported() -> None:
    """An imported part that is not in the package is damage."""
    body = '<w:altChunk r:id="c"/>'
    assert "word/a.html" in read(document(body, related(("c", "aFChunk", "a.html"))))[1]
    assert "imported part c" in read(document(body))[1]


def test_nested_imports_are_bounded() -> None:
    """Documents imported into each other, and a part imported many times, are read up to a limit."""
    chunk = '<w:altChunk r:id="c"/>'
    inner = packed(document(paragraph("deep")))
    for level in range(8):
        inner = packed(document(paragraph(f"level {level}") + chunk, related(("c", "aFChunk", "a.docx")), a_docx=inner))
    found, problem = read(document(chunk * 1_000, related(("c", "aFChunk", "a.docx")), a_docx=inner))
    assert found.text("partial-text").split("\n")[:3] == ["level 7", "level 6", "level 5"]
    assert (problem, found.text("partial-text").count("level 7") < 100, "deep" in found.text("partial-text")) == ("", True, False)


def test_moved_text_is_read_at_its_new_place() -> None:
    """Moved text is read once, where it was moved to; deleted text is not read."""
    moved = "<w:r><w:t>Quagga paragraph.</w:t></w:r>"
    body = (
        f"<w:p><w:pPr><w:rPr><w:moveFrom/></w:rPr></w:pPr><w:moveFromRangeStart/><w:moveFrom>{moved}</w:moveFrom></w:p>"
        + paragraph("Middle.")
        + f"<w:p><w:moveTo>{moved}</w:moveTo></w:p>"
        + "<w:p><w:r><w:t>It </w:t></w:r><w:del><w:r><w:delText>was </w:delText><w:tab/></w:r>"
        "<m:oMath><m:t>x</m:t></m:oMath></w:del><w:ins><w:r><w:t>is</w:t></w:r></w:ins></w:p>"
    )
    found, _ = read(document(body))
    assert found.text("partial-text") == "Middle.\nQuagga paragraph.\nIt is"
    assert found.text("title") == "Middle."


def test_moved_heading_is_one_heading() -> None:
    """A heading that was moved is in the headings once, at its new place."""
    style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    head = "<w:r><w:t>Boats</w:t></w:r>"
    other = f"<w:p>{style}<w:r><w:t>Oars</w:t></w:r></w:p>"
    body = f"<w:p>{style}<w:moveFrom>{head}</w:moveFrom></w:p>{other}<w:p>{style}<w:moveTo>{head}</w:moveTo></w:p>"
    assert read(document(body))[0].attributes["headings"] == ["Oars", "Boats"]


def test_moved_table_row_and_note_are_read_once() -> None:
    """Text moved within a table or a note is read at its new place."""
    run = "<w:r><w:t>{}</w:t></w:r>"
    row = "<w:tr><w:tc><w:p><w:{0}>" + run.format("cell") + "</w:{0}></w:p></w:tc></w:tr>"
    moved = "".join(f"<w:{name}>{run.format('note')}</w:{name}>" for name in ("moveFrom", "moveTo"))
    note = f"<w:footnotes {W}><w:p>{moved}</w:p></w:footnotes>"
    table = f"<w:tbl>{row.format('moveFrom')}{row.format('moveTo')}</w:tbl>"
    parts = document(table, related(("f", "footnotes", "n.xml")), n_xml=note)
    assert read(parts, 1 << 20)[0].text("full-text") == "cell\nnote"


def ruby(base: str, reading: str) -> str:
    """Return a run with a phonetic reading."""
    inner = "".join(f"<w:{n}><w:r><w:t>{text}</w:t></w:r></w:{n}>" for n, text in (("rt", reading), ("rubyBase", base)))
    return f'<w:r><w:ruby><w:rubyPr><w:hps w:val="10"/></w:rubyPr>{inner}</w:ruby></w:r>'


def test_phonetic_readings_are_not_text() -> None:
    """Readings beside words are no part of the text of documents, headings, notes and cells."""
    word = ruby("東", "とう") + ruby("京", "きょう")
    heading = f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{ruby("漢", "かん")}{ruby("字", "じ")}</w:p>'
    note = f"<w:footnotes {W}><w:p>{ruby('本', 'ほん')}</w:p></w:footnotes>"
    parts = document(heading + f"<w:p>{word}<w:r><w:t>へ行く</w:t></w:r></w:p>", related(("f", "footnotes", "n.xml")), n_xml=note)
    found, _ = read(parts, 1 << 20)
    assert found.text("full-text") == "漢字\n東京へ行く\n本"
    assert found.attributes["headings"] == ["漢字"]
    cell = '<worksheet><row><c t="inlineStr"><is><t>東京</t><rPh><t>トウキョウ</t></rPh></is></c></row></worksheet>'
    book = workbook("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml") | {"xl/worksheets/sheet1.xml": cell}
    assert read(book)[0].text("partial-text") == "東京"


@given(
    st.lists(st.sampled_from(["/", "\\", "..", ".", "a", "%", "%2f", "é", "_rels", ".rels", "xl", "#", "?", "\0"]), max_size=8),
    st.sampled_from(["officeDocument", "worksheet", "slide", "aFChunk"]),
)
def test_any_target_is_bounded(pieces: list[str], kind: str) -> None:
    """Any name and target of a part raises nothing but SummaryError."""
    name = "".join(pieces) or "x"
    target = name.replace("\0", "").replace("&", "")
    rels = related(("a", "officeDocument", target), ("c", kind, target))
    read({"_rels/.rels": rels, name: f'<w:document {W}><w:altChunk r:id="c"/></w:document>', "_rels/a.rels": rels})


@pytest.mark.parametrize("target", ["_rels/.rels", "docProps/app.xml"])
def test_main_relationship_to_something_else_is_passed_over(target: str) -> None:
    """A package whose main part is no document is read by the names of its parts; without any it has a reason."""
    parts = document("<w:p><w:r><w:t>Wombats</w:t></w:r></w:p>") | {
        "_rels/.rels": related(("a", "officeDocument", target)),
        "docProps/app.xml": "<Properties/>",
    }
    found, reason = read(parts)
    assert (found.said, reason) == ("Wombats", "")
    del parts["word/document.xml"]
    assert "no known part" in read(parts)[1]
