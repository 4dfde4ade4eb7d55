"""Documents in zip packages are recognized by what declares them, whatever their first member is."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.recognize import recognize
from tests.processors.essence.summarize.packages import Forward

OFFICE, ODF = "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."
EXCEL, WORD = f"{OFFICE}spreadsheetml.sheet", f"{OFFICE}wordprocessingml.document"
MACRO = "application/vnd.ms-excel.sheet.macroEnabled"
VISIO = "application/vnd.ms-visio.drawing.main+xml"
RELATED = '<Relationship Type="http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument" Target="b.xml"/>'
BOOK = '<container><rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></container>'


def zipped(parts: dict[str, str | bytes], *, streamed: bool = False) -> bytes:
    """Return a zip of the parts with deflated data, sizes before or behind it."""
    out = io.BytesIO()
    with zipfile.ZipFile(Forward(out) if streamed else out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def types(main: str) -> str:
    """Return content types that declare a main part."""
    return f'<Types><Default Extension="rels" ContentType="x/y"/><Override PartName="/b.xml" ContentType="{main}"/></Types>'


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("parts", "kind", "media"),
    [
        ({"b.xml": "<workbook/>", "[Content_Types].xml": types(f"{EXCEL}.main+xml")}, "OfficeDocument", EXCEL),
        ({"[Content_Types].xml": types(f"{EXCEL}.main+xml"), "b.xml": "x"}, "OfficeDocument", EXCEL),
        ({"[Content_Types].xml": types(f"{MACRO}.main+xml"), "b.xml": "x"}, "OfficeDocument", f"{MACRO.lower()}.12"),
        ({"b.xml": "x", "[Content_Types].xml": types(VISIO)}, "OfficeDocument", VISIO),
        ({"b.xml": "<workbook/>", "_rels/.rels": RELATED}, "OfficeDocument", WORD),
        ({"b.xml": "<workbook/>", "_rels\\.rels": RELATED}, "OfficeDocument", WORD),
        ({"xl\\workbook.xml": "<workbook/>", "_rels\\.rels": "x"}, "OfficeDocument", EXCEL),
        ({"XL/Workbook.xml": "<workbook/>", "[content_types].XML": "x"}, "OfficeDocument", EXCEL),
        ({"a.xhtml": "<html/>", "META-INF/container.xml": BOOK}, "EPUB", "application/epub+zip"),
        ({"mimetype": "application/epub+zip", "a.xhtml": "x"}, "EPUB", "application/epub+zip"),
        ({"meta.xml": "x", "mimetype": f"{ODF}spreadsheet"}, "OpenDocument", f"{ODF}spreadsheet"),
        ({"meta.xml": "x", "META-INF/manifest.xml": "x", "content.xml": "x"}, "OpenDocument", f"{ODF}text"),
        ({"b.xml": "x", "word/document.xml": "x"}, "Zip", "application/zip"),
        (
            {"b.xml": "x", "_rels/.rels": "<Relationship Type='http://schemas.microsoft.com/packaging/manifest'/>"},
            "Zip",
            "application/zip",
        ),
        ({"b.txt": "x", "site/META-INF/container.xml": BOOK}, "Zip", "application/zip"),
        (
            {"b.txt": "x", "META-INF/container.xml": "<container><rootfile media-type='text/xml'/></container>"},
            "Zip",
            "application/zip",
        ),
    ],
)
def test_packages_are_recognized_by_declaration(parts: dict[str, str | bytes], kind: str, media: str, streamed: bool) -> None:
    """A document is recognized by its relationships, content types, container or manifest, without help from its name."""
    assert recognize(b"x", zipped(parts, streamed=streamed))[:2] == (kind, media)


@pytest.mark.parametrize("streamed", [False, True])
def test_archive_of_documents_is_an_archive(streamed: bool) -> None:
    """A zip that contains documents, even incompressible ones, is not a document."""
    inner = zipped(
        {"b.xml": "<workbook/>", "[Content_Types].xml": types(f"{EXCEL}.main+xml"), "_rels/.rels": RELATED}, streamed=streamed
    )
    out = io.BytesIO()
    with zipfile.ZipFile(Forward(out) if streamed else out, "w") as archive:
        archive.writestr("a.bin", inner)
        archive.writestr("b.bin", inner)
    assert recognize(b"x", out.getvalue()).type == "Zip"


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_zip_is_recognized(junk: bytes, at: int) -> None:
    """Damaged headers and data raise nothing."""
    whole = zipped({"b.xml": "<workbook/>", "[Content_Types].xml": types(f"{EXCEL}.main+xml")}, streamed=at % 2 == 0)
    assert recognize(b"x", b"PK\x03\x04" + junk).type
    assert recognize(b"x", whole[:at] + junk + whole[at + len(junk) :]).type
