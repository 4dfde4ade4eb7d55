import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from tests.processors.essence.summarize.packages import AROUND, MAIN, Forward, document, packed

Make = Callable[..., Found]

WORKBOOK = {
    "xl/workbook.xml": '<workbook><sheets><sheet name="Boats" id="b"/><sheet name="Crews" id="a"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": (
        '<Relationships><Relationship Id="a" Type="x/worksheet" Target="worksheets/sheet1.xml"/>'
        '<Relationship Id="b" Type="x/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>'
    ),
    "xl/sharedStrings.xml": "<sst><si><t>name</t></si><si><t>len</t><t>gth</t><rPh><t>x</t></rPh></si><si><t>barge</t></si></sst>",
    "xl/worksheets/sheet2.xml": (
        '<worksheet><sheetData><row/><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>9</v></c></row>'
        '<row><c t="s"><v>2</v></c><c><f>1+1</f><v>38</v></c></row></sheetData></worksheet>'
    ),
    "xl/worksheets/sheet1.xml": '<worksheet><row><c t="inlineStr"><is><t>crew</t></is></c></row></worksheet>',
    "docProps/app.xml": "<Properties><Application>a pencil</Application></Properties>",
}
SLIDE = (
    "<sld><sp><nvSpPr><nvPr><ph type='{}'/></nvPr></nvSpPr><txBody><p><r><t>{}</t></r></p></txBody></sp>"
    "<sp><txBody><p><r><t>some</t></r><r><t> words</t></r></p></txBody></sp></sld>"
)


def test_undeclared_prefix_is_ignored(summary: Make) -> None:
    """An element with an undeclared prefix is treated by its name, like one with a namespace."""
    found = summary(b"x.xml", b'<a:book xmlns="u"><b:title>Of boats</b:title></a:book>')
    assert found.attributes["root-element"] == ["book"]
    assert found.text("title") == "Of boats"


def test_workbook_has_sheet_names_and_first_rows(summary: Make) -> None:
    """The summary of a workbook has its sheet names and the first rows of each sheet, in order."""
    found = summary(b"x.xlsx", packed(WORKBOOK))
    assert found.attributes["headings"] == ["Boats", "Crews"]
    assert found.attributes["columns"] == ["name", "length", "crew"]
    assert found.text("partial-text") == "name length\nbarge 38\ncrew"
    assert found.text("generator") == "a pencil"
    assert found.text("title") == "x.xlsx", "what its columns are called is no title"


def test_presentation_has_slide_titles_and_text(summary: Make) -> None:
    """The summary of a presentation has the slide titles and texts in order; its title is the first slide's."""
    slides = {f"ppt/slides/slide{n}.xml": SLIDE.format("ctrTitle" if n == 1 else "title", f"Title {n}") for n in (10, 1, 2)}
    found = summary(b"x.pptx", packed(slides))
    assert found.attributes["headings"] == ["Title 1", "Title 2", "Title 10"]
    assert found.text("title") == "Title 1"
    assert found.text("partial-text").split("\n")[:3] == ["Title 1", "some words", "Title 2"]


def test_epub_2_contents_are_read(summary: Make, samples: Path) -> None:
    """A book without a navigation document is read through the EPUB 2 table of contents."""
    ncx = "<ncx><docTitle><text>Boats</text></docTitle><navMap><navLabel><text>Rowing</text></navLabel></navMap></ncx>"
    opf = '<package><manifest><item id="t" href="../toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine/></package>'
    book = {"META-INF/container.xml": '<container><rootfile full-path="a/b.opf"/></container>', "a/b.opf": opf, "toc.ncx": ncx}
    assert summary(b"x.epub", packed(book)).attributes["headings"] == ["Boats", "Rowing"]
    assert (
        summary(b"x.epub", packed({"META-INF/container.xml": "<container/>"})).text("error").startswith("EPUB: no package document")
    )


def test_encrypted_opendocument_is_reported(summary: Make) -> None:
    """An OpenDocument that needs a password gives its unencrypted parts and reports the encryption."""
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": "\0\1\2",
        "meta.xml": "<meta><title>Boats</title></meta>",
        "META-INF/manifest.xml": "<manifest><encryption-data/></manifest>",
    }
    found = summary(b"x.odt", packed(parts))
    assert (found.text("title"), found.text("encrypted"), found.text("error")) == ("Boats", "a password is needed", "")


@pytest.mark.parametrize("kind", sorted(MAIN))
def test_parts_are_read_up_to_limit(kind: str) -> None:
    """A part that unpacks to a hundred megabytes is read up to the limit, and its beginning is summarized."""
    text = "<html><p><t>The beginning.</t></p>" + " " * 100_000_000 + "</html>"
    body = packed(dict(AROUND.get(kind, {})) | {MAIN[kind]: text})
    assert len(body) < 200_000
    found = Found()
    summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    assert "partial-text" in found.attributes or kind == "OpenDocument"


@pytest.mark.parametrize("kind", sorted(MAIN))
def test_truncated_document_gives_parts_before_cut(kind: str, samples: Path) -> None:
    """A truncated document gives the parts before the cut, as damaged; a bomb is abandoned."""
    sample = next(p for p in samples.glob(f"{kind.lower()}.*") if p.suffix != ".json").read_bytes()
    cut = sample[: sample.index(b"PK\x01\x02")]
    found = Found()
    with pytest.raises(SummaryError, match="damaged: truncated"):
        summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(cut), 0, ""), io.BytesIO(cut), found)
    assert found.text("title").startswith(("Boats", "A book"))
    # Sizes follow the data: the entry must be unpacked to find the next one.
    out = io.BytesIO()
    with zipfile.ZipFile(Forward(out), "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x", "w", force_zip64=False) as member:
        for _ in range(100):
            member.write(bytes(1 << 20))
    bomb = out.getvalue()
    bomb = bomb[: bomb.index(b"PK\x01\x02")]
    with pytest.raises(SummaryError, match="its own size"):
        summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(bomb), 0, ""), io.BytesIO(bomb), Found())


@given(
    st.sampled_from(sorted(MAIN)),
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<t>",
                "</t>",
                "a",
                "<h>",
                "</h>",
                "<pStyle val='title'/>",
                "<table name='x'>",
                "</table>",
                "<table-row>",
                "&x;",
                "<!DOCTYPE a [<!ENTITY x 'y'>]>",
                "<?xml version='1.0'?>",
                "<itemref idref='c'/>",
                "<a:b>",
                "<nav><a>",
                "\0",
                "<![CDATA[",
                "\ufffe",
            ]
        ),
        max_size=30,
    ),
)
def test_any_markup_has_title(kind: str, pieces: list[str]) -> None:
    """Any content in the parts of a document raises nothing but SummaryError, and there is a title."""
    body, found, problem = document(kind, "".join(pieces)), Found(), ""
    try:
        summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    except SummaryError as error:
        problem = str(error)
    assert "Error:" not in problem
    assert found.text("title")


def test_version_3_notebook_is_read(summary: Make) -> None:
    """A version 3 notebook has its cells in worksheets; a truncated one is summarized as the text of its beginning."""
    old = b'{"metadata": {"name": "x"}, "worksheets": [{"cells": [{"cell_type": "heading", "level": 1, "source": ["Rivers"]}, \
{"cell_type": "code", "input": ["import csv"], "outputs": []}]}], "nbformat": 3}'
    found = summary(b"x.ipynb", old)
    assert (found.text("title"), found.attributes["imports"]) == ("Rivers", ["csv"])
    assert "Rivers" in summary(b"x.ipynb", old[:150]).text("partial-text")
    assert recognize(b"x", old).type == recognize(b"x", b'{"cells": [{"cell_type": "code"}]}').type == "Notebook"
    for odd in (b"[]", b'{"cells": [{"source": {"a": 1}}], "metadata": {"authors": [1, {"name": 2}], "kernelspec": []}}'):
        assert summary(b"x.ipynb", odd).text("title") == "x.ipynb"


@pytest.mark.parametrize(
    ("name", "kind", "text", "versions"),
    [
        (
            "README.md",
            "README",
            "[![build](https://ci.example/b.svg)](https://ci.example/b)\n\n# Soup\n\nCooks.\n\n## Installing\n\nStir.\n",
            [],
        ),
        ("readme.rst", "README", "====\nSoup\n====\n\nCooks.\n\nInstalling\n==========\n\nStir.\n", []),
        ("CHANGES.adoc", "ChangeLog", "= Soup\n\n== 1.2.0\n\n* Salt.\n\n== Installing\n\nStir.\n", ["1.2.0"]),
    ],
)
def test_whole_name_and_markup_suffix_combine_summarizers(
    summary: Make, name: str, kind: str, text: str, versions: list[str]
) -> None:
    """A file typed by its whole name with a markup suffix has the attributes found by both summarizers."""
    found = summary(name.encode(), text.encode())
    assert recognize(name.encode(), text.encode()).type == kind
    assert found.attributes["title"] == ["Soup"]
    assert "Installing" in found.attributes["headings"]
    assert "Stir." in found.said
    assert found.attributes.get("version", []) == versions


def test_plain_readme_has_no_headings(summary: Make) -> None:
    """Without title markup, the first line that resembles a title is the title; a plain-text README has no headings."""
    found = summary(b"README", b"Soup\n====\n\nCooks.\n")
    assert found.attributes["title"] == ["Soup"]
    assert "headings" not in found.attributes


CITED = """cff-version: 1.2.0
title: Soup
authors:
  - family-names: Beethoven
    name-particle: van
    given-names: "Ludwig"
    affiliation: Vienna
  - name: The Cooks
  - alias: ladle
version: 2.1
"""


def test_citation_authors_are_names(summary: Make) -> None:
    """People and entities are authors by name; a list of plain names is kept as it is."""
    found = summary(b"CITATION.cff", CITED.encode())
    assert found.attributes["author"] == ["Ludwig van Beethoven", "The Cooks", "ladle"]
    assert summary(b"x.yaml", b"title: Soup\nauthors:\n  - Ann\n  - Bob\n").attributes["author"] == ["Ann", "Bob"]
    tools = b"    tools:\n      - name: spoon\n      - alias: ladle\n"
    mixed = b"title: Soup\nauthor:\n  - name: Ann Lee # cook\n" + tools + b"    alias: al\n  - Bob Poe\n"
    assert summary(b"x.yaml", mixed).attributes["author"] == ["Ann Lee", "Bob Poe"]
    one = b"title: Soup\nauthor:\n  name: Ann Lee\n  email: a@example.org\n"
    assert summary(b"x.yaml", one).attributes["author"] == ["Ann Lee"]


def test_armor_is_not_title(summary: Make) -> None:
    """The armor around a signed text is not its title."""
    signed = b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nA new soup\n\nIt is hot.\n"
    for name in (b"announcement.txt", b"README"):
        assert summary(name, signed).text("title") == "A new soup"


def test_info_marks_are_not_binary() -> None:
    """Node separators and image marks do not make an Info file a binary; the same bytes elsewhere do."""
    manual = "This is a.info, produced by makeinfo from a.texi.\n\n\x1f\nFile: a.info,  Node: Top\n\nÄ\n\0\b[index\0\b]\n"
    assert recognize(b"a.info", manual.encode()).type == "Info"
    assert recognize(b"a.info-12", manual.encode()).type == "Info"
    assert recognize(b"x", manual.encode()).type == "Info"
    assert recognize(b"a.info", manual.replace("\0\b", "\0\0").encode()).type == "Unrecognized"
    # Any offset at which the inspected bytes may end.
    for filled in range(4_096 - 200, 4_096):
        assert recognize(b"a.info", (manual[:-20].ljust(filled, "x") + manual[-20:] * 9).encode()).type == "Info"


def info(first: str, heading: str, preamble: str = "This is oar.info, produced by makeinfo version 6.8 from oar.texi.") -> bytes:
    """Return an Info file, or a part of one, whose first node has the given name and heading."""
    entry = "START-INFO-DIR-ENTRY\n* Oars: (oar).   All of oars.\nEND-INFO-DIR-ENTRY"
    node = f"File: oar.info,  Node: {first},  Up: (dir)\n\n{heading}\n{'*' * len(heading)}\n\nOf wood.\n"
    return f"{preamble}\n\n{entry}\n\n\x1f\n{node}\n\x1f\nTag Table:\n\x1f\nEnd Tag Table\n".encode()


def test_info_manual_is_titled_by_first_node(summary: Make) -> None:
    """An Info manual is titled by its first node's heading, if that is informative; a part by the manual and its first node."""
    assert summary(b"oar.info", info("Top", "The Book of Oars")).text("title") == "The Book of Oars"
    assert summary(b"oar.info", info("Top", "Introduction")).text("title") == "Oars"
    tagged = info("Top", "The Book of Oars").replace(b"\x1f\nFile:", b"\x1f\nTag Table:\n(Indirect)\n\x1f\nFile:", 1)
    assert summary(b"oar.info", tagged).text("title") == "The Book of Oars"
    assert summary(b"oar.info-2", info("Paddles", "3 Paddles")).text("title") == "Oars: 3 Paddles"


def test_info_is_recognized_by_content(summary: Make) -> None:
    """Info is recognized by the first line that makeinfo versions write, or by a node's line."""
    olds = {
        "This is Info file oar.info, produced by Makeinfo-1.55 from the input\nfile oar.texi.": "Makeinfo-1.55",
        "This is boats/of/a/long/name/oar.info,\nproduced by makeinfo version 6.8 from oar.texi.": "makeinfo version 6.8",
    }
    for old, generator in olds.items():
        found = summary(b"manual", info("Top", "The Book of Oars", old))
        assert found.text("title") == "The Book of Oars"
        assert (found.text("generator"), found.text("source-file")) == (generator, "oar.texi")
    assert recognize(b"manual", b"\n\x1f\nFile: oar,  Node: Top,  Up: (dir)\n\nOf oars.\n").type == "Info"


@pytest.mark.parametrize(
    ("first", "title", "authors", "versions"),
    [
        ("2022-04-15  Jane Fern  <jane@example.org>\n\n\t* all: New.", "lake: ChangeLog", ["Jane Fern"], []),
        ("2022-04-15 12:26  Jane Fern <jane@example.org>\n\n\t* all: New.", "lake: ChangeLog", ["Jane Fern"], []),
        ("commit a919700fbde28c29ccdb1d2a\nAuthor: Jane Fern <jane@example.org>\n\n    New.", "lake: ChangeLog", ["Jane Fern"], []),
        ("# Generated by a tool. Do not edit.\n\ncommit a919700fbde", "lake: ChangeLog", [], []),
        ("Changelog\n=========\n\nVersion v7.88.1 (20 Feb 2023)\n", "lake: Changelog", [], ["7.88.1"]),
        ("Changes in version 2.40:\n\n* New.\n\nChanges in version 2.39:\n", "Changes in version 2.40:", [], ["2.40", "2.39"]),
        ("- New in all lakes\n", "lake: ChangeLog", [], []),
        ("fern-2.4.44\n\nNew.\n", "fern-2.4.44", [], ["2.4.44"]),
    ],
)
def test_change_log_is_titled_by_heading_or_folder(
    summary: Callable[..., Found], first: str, title: str, authors: list[str], versions: list[str]
) -> None:
    """A change log is titled by its heading; if that is an entry or generic, by its folder."""
    found = summary(b"ChangeLog", first.encode(), "file:///usr/lake/ChangeLog")
    assert found.text("title") == title
    assert (found.attributes.get("author", []), found.attributes.get("version", [])) == (authors, versions)


@pytest.mark.parametrize(
    ("text", "title", "authors"),
    [
        ("Jane Fern <jane@example.org>\nJohn O'Lake  <john@example.org> - boats\n", "lake: AUTHORS", ["Jane Fern", "John O'Lake"]),
        ("Authors of the GNU lake.\n\n\tJane Fern <jane@example.org> (2006-)\n", "Authors of the GNU lake.", ["Jane Fern"]),
        (
            "Authors\n=======\n\nJane Fern\n---------\n\nJohn Lake\n---\n\n- boats\n\nAda Björk\n",
            "lake: Authors",
            ["Jane Fern", "John Lake", "Ada Björk"],
        ),
        (
            "Ferns were counted by Jane. Others\nhelped. A list:\n\nJane Fern     jane at example.org\n",
            "lake: AUTHORS",
            ["Jane Fern"],
        ),
        ("Program: Lake\nMaintainer: Jane Fern <jane@example.org>\n", "lake: AUTHORS", ["Jane Fern"]),
        ("Nobody knows.\n", "lake: AUTHORS", []),
    ],
)
def test_authors_are_names_or_lines_of_names(summary: Callable[..., Found], text: str, title: str, authors: list[str]) -> None:
    """Authors are names before addresses, or lines of names; the title is a heading naming a project, or the folder."""
    found = summary(b"AUTHORS", text.encode(), "file:///usr/lake/AUTHORS")
    assert (found.text("title"), found.attributes.get("author", [])) == (title, authors)


def test_json_list_is_not_titled_by_first_entry(summary: Callable[..., Found]) -> None:
    """The title of a JSON list's first entry is not the title of the list."""
    assert summary(b"a.json", b'[{"name": "Fern"}, {"name": "Oar"}]').text("title") == "a.json"
    assert summary(b"a.json", b'{"name": "Fern"}').text("title") == "Fern"
