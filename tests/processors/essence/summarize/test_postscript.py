"""PostScript: words as word processors show them, each in its own way; comments and pdfmark."""

from __future__ import annotations

import io

import pytest

from processors.essence.summarize import Facts, Found
from processors.essence.summarize.pages.postscript import DOS, run


def summarize_program(program: bytes, full: int = 0) -> Found:
    """Return the summary of a program, with the first line of PostScript prepended."""
    raw = program if program.startswith((b"%!", DOS, b"\x1b")) else b"%!PS-Adobe-3.0\n%%EndComments\n" + program
    found = Found(full)
    run(Facts(b"x.ps", "file:///x.ps", "PostScript", "application/postscript", len(raw), 0, ""), io.BytesIO(raw), found)
    return found


TIMES = b"/Times-Roman findfont 10 scalefont setfont 72 700 moveto "

DVIPS = b"""
/TeXDict 300 dict def TeXDict begin /N{def}def /B{bind def}N /X{exch N}B
/a{moveto}B /delta 0 N /tail{dup /delta X 0 rmoveto}B /M{exch p delta add tail}B /p{show}B
/b{3 copy pop pop exch p tail}B /w{0 rmoveto}B /l{p -4 w}B /y{3 2 roll p a}B
/ft{findfont 10 scalefont}B
/Fa /Times-Roman ft N /set{setfont}B
end
TeXDict begin Fa set
72 700 a (W)show -.8 w (e)show 2.6 w (con)p(sider)show 2.9 w(the)show
72 688 a (of\256ces)show
end
"""
"""A prologue with one-letter procedures: positions are absolute per line, relative within it; kerning splits words."""

GROFF = b"""
/SC 32 def /E{0 rmoveto show}bind def /C{0 exch ashow}bind def /H{0 rmoveto 0 exch 0 SC 5 2 roll awidthshow}bind def
/Q{moveto show}bind def /S{moveto 0 exch ashow}bind def /R{moveto 0 SC 3 -1 roll widthshow}bind def
/Times-Roman findfont 10 scalefont setfont
3(AM)72 700 S(emo on K)-3 E(erning)-.3 E
2.5(1. Intr)72 688 R(oduction)-.18 E
(W)72 676 Q -2.25 -.2(av e)-.8 H(s)-.2 E
"""
"""Spaces as distances between letters; a space reduced to zero by kerning (groff does both)."""

PDF = b"""
/Tj{show}def /TJ{{dup type/stringtype eq{show}{-.001 mul 10 mul 0 rmoveto}ifelse}forall}def
/Td{x y moveto rmoveto currentpoint /y exch def /x exch def}def /x 0 def /y 0 def
/Times-Roman findfont 10 scalefont setfont
72 700 Td [(W)80(e)-250(con)5(sider)-333(the)] TJ
0 -12 Td [(T)70(o)18(w)10(ers)] TJ
"""
"""Arrays of strings and of distances in thousandths of the size (pdftops, cairo)."""


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (DVIPS, ["We consider the", "offices"]),
        (GROFF, ["A Memo on Kerning", "1. Introduction", "Waves"]),
        (PDF, ["We consider the", "Towers"]),
        (TIMES + b"(one)show ( two)show", ["one two"]),
        (TIMES + b"(spelt)[6 6 6 6 6]xshow 3 0 rmoveto (out)[9 9 9]xshow", ["spelt out"]),
        (TIMES + b"(a)[9 0]xyshow 10 0 rmoveto (b)[1]yshow", ["a b"]),
        (TIMES + b"{pop pop}(kerned)kshow", ["kerned"]),
        (TIMES + b"/A glyphshow /germandbls glyphshow", ["A\xdf"]),
        (TIMES + b"5 0 32 (a b) widthshow 0 0 rmoveto (c)show", ["a bc"]),
        (TIMES + b"(bold)show 72.2 700 moveto (bold)show", ["bold"]),
        (TIMES + b"(one)show 300 700 moveto (two)show 72 688 moveto (three)show", ["one two", "three"]),
        (TIMES + b"(E = mc)show 0 3 rmoveto /Times-Roman 7 selectfont (2)show 0 -3 rmoveto (.)show", ["E = mc2."]),
        (TIMES + b"90 rotate 100 -72 moveto (up)show 3 0 rmoveto (wards)show", ["up wards"]),
        (TIMES + b"gsave 2 2 scale (x)show grestore (y)show", ["x", "y"]),
        (b"/Symbol findfont 10 scalefont setfont 0 0 moveto (abg\\341\\361)show", ["\u03b1\u03b2\u03b3\u27e8\u27e9"]),
    ],
)
def test_words_are_whole_and_separate(program: bytes, lines: list[str]) -> None:
    """Words are whole and separate, whatever procedures show them."""
    assert summarize_program(program).text("partial-text").split("\n") == lines


def test_codes_are_decoded_by_font_encoding() -> None:
    """Character codes are decoded by the font's encoding, which programs may redefine."""
    anew = b"/Times-Roman findfont dup length dict begin{1 index/FID ne{def}{pop pop}ifelse}forall /Encoding ISOLatin1Encoding def "
    program = anew + b"currentdict end /T exch definefont pop /T findfont 10 scalefont setfont 0 0 moveto (Gr\xf6\\337e)show"
    assert summarize_program(program).text("partial-text") == "Gr\xf6\xdfe"

    own = b"/E 256 array def 0 1 255{E exch /.notdef put}for E 1 /T put E 2 /fi put E 3 /uni00E9 put E 65 /a65 put E 5 /g17 put "
    font = b"<</FontType 1 /FontMatrix [.001 0 0 .001 0 0] /Encoding E /FontName /Own>> 10 scalefont setfont 0 0 moveto "
    assert summarize_program(own + font + b"<0102034105>show").text("partial-text") == "Tfi\xe9A"

    parts = b"/FDepVector [/Times-Roman findfont /Symbol findfont]"
    two = b"<</FontType 0 /FMapType 2 /FontMatrix [10 0 0 10 0 0] /Encoding [0 1] " + parts + b">> "
    assert summarize_program(two + b"setfont 0 0 moveto <00410161>show").text("partial-text") == "A\u03b1"


BITMAPS = b"""
/F {/FontType 3 def /FontMatrix [1 0 0 -1 0 0] def /FontBBox [0 0 0 0] def /BitMaps 256 array def /Encoding E def
    /BuildChar {pop pop 5 0 0 0 5 5 setcachedevice 1 1 true [1 0 0 1 0 0] {<80>} imagemask} def currentdict end} def
/E 256 array def 0 1 255{E exch dup 3 string cvs cvn put}for
"""


@pytest.mark.parametrize(
    ("font", "codes", "text"),
    [
        ("cmr10", b'O\\016ce \\\\a" {', "Office \u201ca\u201d \u2013"),
        ("cmtt10", b'"{a}', '"{a}'),
        ("ecrm1000", b"\\262\\350\\377\\020", "\u0161\xe8\xdf\u201c"),
        ("cmmi10", b"\\013\\014x", "\u03b1\u03b2x"),
        ("cmsy10", b"\\017\\041", "\u2022\u2192"),
        ("cmex10", b"abc", ""),
    ],
)
def test_bitmap_font_codes_are_decoded_by_font_name(font: str, codes: bytes, text: str) -> None:
    """Bitmap fonts have no character names: their codes are decoded by the font's name in a comment."""
    program = BITMAPS + b"%DVIPSBitmapFont: Fa " + font.encode() + b" 10 3\n10 dict begin F setfont 0 0 moveto ("
    assert summarize_program(program + codes.replace(b" ", b")show 3 0 rmoveto (") + b")show").text("partial-text") == text


def test_type_3_width_joins_words() -> None:
    """The width of a Type 3 character is set by its procedure: here 5, so that text starting 5 to the right continues the word."""
    program = BITMAPS + b"10 dict begin F setfont 0 0 moveto (a)show 5 0 moveto (b)show 16 0 moveto (c)show"
    assert summarize_program(program).text("partial-text") == "ab c"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (b"(T)show -.7 0 rmoveto gsave 1.1 0 rmoveto (\\302)show grestore 0 0 rmoveto (anner)show", "T\xe1nner"),
        (b"(T\\302)show -3.9 0 rmoveto (anner)show", "T\xe1nner"),
        (b"(na)show (\\310)show -2.9 0 rmoveto (\\365)show (ve)show", "na\xefve"),
        (b"(a`b)show", "a\u2018b"),
    ],
)
def test_accent_is_combined_with_letter(program: bytes, text: str) -> None:
    """An accent set above a letter is combined with it."""
    assert summarize_program(TIMES + program).text("partial-text") == text


HEX = b"00ff" * 32
"""An image of 8 lines of 8 bytes."""


@pytest.mark.parametrize(
    "image",
    [
        b"/s 8 string def 8 8 8 [8 0 0 8 0 0] {currentfile s readhexstring pop} image\n" + HEX + b"\n",
        b"/s 8 string def 8 8 8 [8 0 0 8 0 0] {currentfile s readhexstring pop} false 3 colorimage\n" + 3 * HEX + b"\n",
        b"8 8 8 [8 0 0 8 0 0] currentfile image " + 32 * b")(",
        b"<</Width 8 /Height 8 /BitsPerComponent 8 /Decode [0 1] /ImageMatrix matrix /DataSource currentfile>> image " + 32 * b")(",
        b'/f currentfile /ASCII85Decode filter /DCTDecode filter def 8 8 8 matrix f image\n87cURD]i,"Ebo80~>\n',
        b"8 8 8 matrix currentfile /ASCIIHexDecode filter image " + HEX + b">",
        b"/f currentfile /ASCIIHexDecode filter def 8 8 8 matrix {nothing} pop pop pop pop pop f flushfile\n" + HEX + b">",
        b"%%BeginData: 99 ASCII Bytes\n8 8 8 matrix {nothing} image )(((\n%%EndData\n",
        b"/s 64 string def currentfile s readstring " + 32 * b")(" + b" pop pop ",
    ],
)
def test_image_data_is_not_text(image: bytes) -> None:
    """Image data is not text, and the text after it is."""
    assert summarize_program(TIMES + b"(before )show " + image + b" (behind)show").text("partial-text") == "before behind"


@pytest.mark.parametrize("end", [b"0" * 512 + b"\ncleartomark\n", b"\n%%EndFont\n", b"\n%%EndResource\n"])
def test_encrypted_font_part_is_skipped(end: bytes) -> None:
    """The encrypted part of a Type 1 font is skipped; the font has the encoding given before it."""
    font = b"11 dict begin /FontName /Own def /FontType 1 def /FontMatrix [.001 0 0 .001 0 0] def /Encoding 256 array def "
    code = font + b"Encoding 1 /A put currentdict end currentfile eexec\n\x93(((\x02)<<{{\n" + end
    assert summarize_program(code + b"/Own findfont 10 scalefont setfont 0 0 moveto <01>show").text("partial-text") == "A"


def test_program_inside_filter_is_read() -> None:
    """A program may be inside a filter, like each page that Ghostscript writes."""
    page = b"72 700 moveto (inside)show"
    hexadecimal = page.hex().encode() + b">"
    run_it = b"currentfile /ASCIIHexDecode filter cvx exec " + hexadecimal
    assert summarize_program(TIMES + run_it).text("partial-text") == "inside"
    part = b"currentfile %d () /SubFileDecode filter cvx exec %s (after)show" % (len(page), page)
    assert summarize_program(TIMES + part).text("partial-text") == "insideafter"
    # A file in a dictionary is pushed on the stack when its name is executed, and read from.
    kept = (
        b"/f currentfile /ASCIIHexDecode filter def f 3 string readstring\n" + b"(in)".hex().encode() + b">pop pop f type =(on)show"
    )
    assert summarize_program(TIMES + kept).text("partial-text") == "on"
    given = b"/n 0 def {n 2 lt {/n n 1 add def (2828)}{()} ifelse} /ASCIIHexDecode filter 4 string readstring pop show"
    assert summarize_program(TIMES + given).text("partial-text") == "(((("


def test_program_continues_after_error() -> None:
    """A program continues after an error, and tests with `stopped` what a printer supports."""
    program = b"nothing (a) setlinewidth /x /y 1 div pop pop (shown)show"
    assert summarize_program(TIMES + program).text("partial-text") == "shown"
    asked = b"/ok {/CIDFont findresource} stopped {(without)show}{(with)show}ifelse"
    assert summarize_program(TIMES + asked).text("partial-text") == "without"
    own = b"/show{show}bind def /p{show}def (bound)p"
    assert summarize_program(TIMES + own).text("partial-text") == "bound"


def test_header_comments_are_read() -> None:
    """Header comments are read; deferred ones are at the end; those of an embedded document are ignored."""
    head = b"%!PS-Adobe-3.0\r\n%%Title: (A (nested\\051) title)\r\n%%+ goes on\r\n%%For: root\r\n%%Creator: \xfe\xff\0A\0\xe9\r\n"
    rest = b"%%Pages: (atend)\n%%CreationDate: D:20240305090000Z\n%%EndComments\n%%BeginDocument: a\n%%Title: inner\n%%Pages: 7\n"
    found = summarize_program(head + rest + b"%%EndDocument\n%%Trailer\n%%Pages: 3 1\n%%EOF\n")
    assert found.attributes["title"] == ["(A (nested\\051) title) goes on"]
    assert found.attributes["pages"] == ["3"]
    assert found.attributes["date"] == ["2024-03-05T09:00:00Z"]
    assert found.attributes["generator"] == ["A\xe9"]
    assert "author" not in found.attributes
    assert summarize_program(b"%!PS\n%%Title: (A \\(good\\) one)\n%%For: (Ada)\n").attributes == {
        "title": ["A (good) one"],
        "author": ["Ada"],
    }


@pytest.mark.parametrize("stated", ["paper.dvi", "stdin", "/lake/x.ps", "Enscript Output", "-"])
def test_largest_text_replaces_file_name_as_title(stated: str) -> None:
    """Text in the largest type is the title if the declared title is only a file name, which is used if there is no such text."""
    head = b"%%!PS-Adobe-3.0\n%%%%Title: %s\n%%%%EndComments\n" % stated.encode()
    large = b"/Times-Roman 20 selectfont 72 700 moveto (On the Height)show 72 680 moveto (of Lighthouses)show "
    small = b"/Times-Roman 10 selectfont 72 650 moveto (by nobody in)show 72 640 moveto (particular)show"
    assert summarize_program(head + large + small).text("title") == "On the Height of Lighthouses"
    assert summarize_program(head + small).text("title") in (stated, "")


def test_pdfmark_metadata_is_read() -> None:
    """The pdfmark metadata of a file is read."""
    info = b"[ /Title (Towers) /Author <FEFF004100E9> /Keywords (wave, light) /Subject (All of them) /DOCINFO pdfmark "
    outline = b"[ /Title (First) /Page 1 /OUT pdfmark [ /Title (Second) /OUT pdfmark [ /Rect [1 2 3 4] /ANN pdfmark"
    found = summarize_program(b"/pdfmark where{pop}{userdict/pdfmark/cleartomark load put}ifelse " + info + outline)
    assert found.attributes["title"] == ["Towers"]
    assert found.attributes["author"] == ["A\xe9"]
    assert found.attributes["keywords"] == ["wave", "light"]
    assert found.attributes["description"] == ["All of them"]
    assert found.attributes["headings"] == ["First", "Second"]


def test_dos_header_and_printer_commands_are_skipped() -> None:
    """A DOS header, whose preview image is skipped, and printer commands around the program are allowed."""
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%Title: A tower\n%%EndComments\n" + TIMES + b"(inside)show\n"
    dos = DOS + (32).to_bytes(4, "little") + len(program).to_bytes(4, "little") + bytes(20) + program + b"II*\0 (outside)show"
    for raw in (dos, b"\x1b%-12345X@PJL JOB\n@PJL ENTER LANGUAGE=POSTSCRIPT\n" + program + b"\x1b%-12345X"):
        found = summarize_program(raw)
        assert (found.text("title"), found.text("partial-text")) == ("A tower", "inside")


def test_full_text_has_all_shown_text() -> None:
    """The full text has all shown text on request, otherwise the usual part."""
    program = TIMES + b"0 1 999 {72 exch -12 mul 700 add moveto (a line of words)show} for"
    assert summarize_program(program).text("partial-text").count("\n") < 300
    assert summarize_program(program, 1_000_000).text("full-text").count("\n") == 999
