"""Parts of books and OpenDocuments: found by the container and the manifest, in any spelling of their names."""

import unicodedata
from collections.abc import Callable

import pytest

from tests.processors.essence.summarize.test_office_parts import read

CHAPTER = "<html><body><p>Of the {} bird.</p></body></html>"
MANIFEST = '<manifest:manifest xmlns:manifest="m">{}</manifest:manifest>'
CONTENT = "<document-content><p>Of birds.</p></document-content>"


def book(opf: str, hrefs: list[str], names: list[str]) -> dict[str, str | bytes]:
    """Return a book: the path of its package document, references to its chapters, and their names in the zip."""
    items = "".join(f'<item id="i{n}" href="{href}" media-type="application/xhtml+xml"/>' for n, href in enumerate(hrefs))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in reversed(range(len(hrefs))))
    roots = '<rootfile full-path="x.pdf" media-type="application/pdf"/>'
    roots += f'<rootfile full-path="{opf}" media-type="application/oebps-package+xml"/>'
    parts: dict[str, str | bytes] = {"META-INF/container.xml": f"<container><rootfiles>{roots}</rootfiles></container>"}
    parts[opf] = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    return parts | {name: CHAPTER.format(n) for n, name in enumerate(names)}


@pytest.mark.parametrize(
    ("hrefs", "names"),
    [
        (["one.xhtml", "two.xhtml"], ["OPS/one.xhtml", "OPS/two.xhtml"]),
        (["text/chap%201.xhtml", "text/chap 2.xhtml"], ["OPS/text/chap 1.xhtml", "OPS/text/chap%202.xhtml"]),
        (["Text/One.XHTML", "TEXT/two.xhtml"], ["ops/text/one.xhtml", "OPS/Text/Two.xhtml"]),
        (["../one.xhtml", "/OPS/../two.xhtml#top"], ["one.xhtml", "two.xhtml"]),
        (["a\\one.xhtml", "a/two.xhtml"], ["OPS/a/one.xhtml", "OPS\\a\\two.xhtml"]),
        (["caf%C3%A9.xhtml", "Ärger.xhtml"], ["OPS/café.xhtml", unicodedata.normalize("NFD", "OPS/ärger.xhtml")]),
    ],
)
def test_chapters_are_found_in_any_spelling(hrefs: list[str], names: list[str]) -> None:
    """Chapters are read in the order of the spine, whatever the case, encoding and accents of their names are in the zip."""
    found, problem = read(book("OPS/book.opf", hrefs, names), kind="EPUB")
    assert (found.text("partial-text"), problem) == ("Of the 1 bird.\nOf the 0 bird.", "")


@pytest.mark.parametrize("change", [str.upper, str.lower, lambda name: name.replace("/", "\\")])
def test_container_is_found_in_any_spelling(change: Callable[[str], str]) -> None:
    """The container and the package document are found whatever the case and the slashes of their names are."""
    parts = book("OPS/Inner/book.OPF", ["one.xhtml"], ["OPS/Inner/one.xhtml"])
    found, problem = read({change(name): part for name, part in parts.items()}, kind="EPUB")
    assert (found.text("partial-text"), problem) == ("Of the 0 bird.", "")


def test_missing_chapters_are_reported() -> None:
    """A chapter of the spine that is not in the book is damage; one on the network is not."""
    found, problem = read(book("book.opf", ["one.xhtml", "two.xhtml"], ["one.xhtml"]), kind="EPUB")
    assert (found.text("partial-text"), problem) == ("Of the 0 bird.", "damaged: parts are missing: two.xhtml")
    assert read(book("book.opf", ["one.xhtml", "https://example.org/two.xhtml"], ["one.xhtml"]), kind="EPUB")[1] == ""


@pytest.mark.parametrize("change", [str.upper, lambda name: "./" + name, lambda name: name.replace("/", "\\")])
def test_opendocument_parts_are_found_in_any_spelling(change: Callable[[str], str]) -> None:
    """The parts of an OpenDocument are found whatever the case and the slashes of their names are."""
    parts = {"content.xml": CONTENT, "meta.xml": "<meta><title>Birds</title></meta>", "META-INF/manifest.xml": MANIFEST.format("")}
    found, problem = read({change(name): part for name, part in parts.items()}, kind="OpenDocument")
    assert (found.text("title"), found.text("partial-text"), problem) == ("Birds", "Of birds.", "")
    parts["META-INF/manifest.xml"] = MANIFEST.format("<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>")
    assert read({change(name): part for name, part in parts.items()}, kind="OpenDocument")[0].text("encrypted")


def test_missing_content_is_reported() -> None:
    """An OpenDocument without its content is damaged; a template that has only styles is not."""
    entry = '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
    listed, styles = {"META-INF/manifest.xml": MANIFEST.format(entry)}, {"styles.xml": "<document-styles/>"}
    reason = "damaged: parts are missing: content.xml"
    assert read({"meta.xml": "<meta/>"}, kind="OpenDocument")[1] == reason
    assert read(listed | styles, kind="OpenDocument")[1] == reason
    assert read(styles, kind="OpenDocument")[1] == ""
