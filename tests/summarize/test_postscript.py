"""PostScript: words as word processors show them, each in its own way; what comments and pdfmark say; programs that never end."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.summarize import Facts, Found
from processors.summarize._postscript import END, Enough, Fault, Machine, Procedure, Source, Text, Word
from processors.summarize._postscript_page import Page
from processors.summarize.postscript import DOS, run


def said(program: bytes, full: int = 0) -> Found:
    """What is found in a program, which gets the first line that makes it one."""
    raw = program if program.startswith((b"%!", DOS, b"\x1b")) else b"%!PS-Adobe-3.0\n%%EndComments\n" + program
    found = Found(full)
    run(Facts(b"x.ps", "file:///x.ps", "PostScript", "application/postscript", len(raw), 0, ""), io.BytesIO(raw), found)
    return found


def left(program: bytes, steps: int = 10_000) -> list[object]:
    """What a program leaves on the stack: strings as bytes, names and numbers as they are."""
    page = Page(100, steps)
    page.run(Source(program))
    return [bytes(value.data) if isinstance(value, Text) else value for value in page.operands]


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
"""A prologue whose procedures have one letter: positions are absolute for a line, distances behind that; kerns cut words."""

GROFF = b"""
/SC 32 def /E{0 rmoveto show}bind def /C{0 exch ashow}bind def /H{0 rmoveto 0 exch 0 SC 5 2 roll awidthshow}bind def
/Q{moveto show}bind def /S{moveto 0 exch ashow}bind def /R{moveto 0 SC 3 -1 roll widthshow}bind def
/Times-Roman findfont 10 scalefont setfont
3(AM)72 700 S(emo on K)-3 E(erning)-.3 E
2.5(1. Intr)72 688 R(oduction)-.18 E
(W)72 676 Q -2.25 -.2(av e)-.8 H(s)-.2 E
"""
"""Spaces as distances between letters; a space that is narrowed to nothing, to kern (groff does both)."""

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
def test_words(program: bytes, lines: list[str]) -> None:
    """Words are whole, and apart from each other, whatever procedures show them."""
    assert said(program).text("partial-text").split("\n") == lines


def test_encodings() -> None:
    """What a code says is what the font's encoding has for it, which programs write anew."""
    anew = b"/Times-Roman findfont dup length dict begin{1 index/FID ne{def}{pop pop}ifelse}forall /Encoding ISOLatin1Encoding def "
    program = anew + b"currentdict end /T exch definefont pop /T findfont 10 scalefont setfont 0 0 moveto (Gr\xf6\\337e)show"
    assert said(program).text("partial-text") == "Gr\xf6\xdfe"

    own = b"/E 256 array def 0 1 255{E exch /.notdef put}for E 1 /T put E 2 /fi put E 3 /uni00E9 put E 65 /a65 put E 5 /g17 put "
    font = b"<</FontType 1 /FontMatrix [.001 0 0 .001 0 0] /Encoding E /FontName /Own>> 10 scalefont setfont 0 0 moveto "
    assert said(own + font + b"<0102034105>show").text("partial-text") == "Tfi\xe9A"

    parts = b"/FDepVector [/Times-Roman findfont /Symbol findfont]"
    two = b"<</FontType 0 /FMapType 2 /FontMatrix [10 0 0 10 0 0] /Encoding [0 1] " + parts + b">> "
    assert said(two + b"setfont 0 0 moveto <00410161>show").text("partial-text") == "A\u03b1"


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
def test_fonts_of_tex(font: str, codes: bytes, text: str) -> None:
    """Fonts of bitmaps have no names for their characters: what they say is told by the name of the font, in a comment."""
    program = BITMAPS + b"%DVIPSBitmapFont: Fa " + font.encode() + b" 10 3\n10 dict begin F setfont 0 0 moveto ("
    assert said(program + codes.replace(b" ", b")show 3 0 rmoveto (") + b")show").text("partial-text") == text


def test_widths_that_procedures_state() -> None:
    """How wide a character of a Type 3 font is its procedure says: here 5, so that what begins 5 to the right goes on."""
    program = BITMAPS + b"10 dict begin F setfont 0 0 moveto (a)show 5 0 moveto (b)show 16 0 moveto (c)show"
    assert said(program).text("partial-text") == "ab c"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (b"(T)show -.7 0 rmoveto gsave 1.1 0 rmoveto (\\302)show grestore 0 0 rmoveto (anner)show", "T\xe1nner"),
        (b"(T\\302)show -3.9 0 rmoveto (anner)show", "T\xe1nner"),
        (b"(na)show (\\310)show -2.9 0 rmoveto (\\365)show (ve)show", "na\xefve"),
        (b"(a`b)show", "a\u2018b"),
    ],
)
def test_accents(program: bytes, text: str) -> None:
    """An accent that is set above a letter makes one with it."""
    assert said(TIMES + program).text("partial-text") == text


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
        b"%%BeginData: 99 ASCII Bytes\n8 8 8 matrix {nothing} image )(((\n%%EndData\n",
        b"/s 64 string def currentfile s readstring " + 32 * b")(" + b" pop pop ",
    ],
)
def test_images(image: bytes) -> None:
    """What an image is made of is no text, and what follows it is."""
    assert said(TIMES + b"(before )show " + image + b" (behind)show").text("partial-text") == "before behind"


def test_encrypted_fonts() -> None:
    """The encrypted part of a Type 1 font is passed over; the font has the encoding that stands before it."""
    font = b"11 dict begin /FontName /Own def /FontType 1 def /FontMatrix [.001 0 0 .001 0 0] def /Encoding 256 array def "
    code = font + b"Encoding 1 /A put currentdict end currentfile eexec\n\x93(((\x02)<<{{\n" + b"0" * 512 + b"\ncleartomark\n"
    assert said(code + b"/Own findfont 10 scalefont setfont 0 0 moveto <01>show").text("partial-text") == "A"


def test_filtered_program() -> None:
    """A program may be in a filter, as each page is that Ghostscript writes."""
    page = b"72 700 moveto (inside)show"
    hexadecimal = page.hex().encode() + b">"
    run_it = b"currentfile /ASCIIHexDecode filter cvx exec " + hexadecimal
    assert said(TIMES + run_it).text("partial-text") == "inside"
    part = b"currentfile %d () /SubFileDecode filter cvx exec %s (after)show" % (len(page), page)
    assert said(TIMES + part).text("partial-text") == "insideafter"


def test_errors_are_passed_over() -> None:
    """A program goes on behind an error, and asks by `stopped` what a printer can do."""
    program = b"nothing (a) setlinewidth /x /y 1 div pop pop (shown)show"
    assert said(TIMES + program).text("partial-text") == "shown"
    asked = b"/ok {/CIDFont findresource} stopped {(without)show}{(with)show}ifelse"
    assert said(TIMES + asked).text("partial-text") == "without"
    own = b"/show{show}bind def /p{show}def (bound)p"
    assert said(TIMES + own).text("partial-text") == "bound"


@pytest.mark.parametrize(
    ("program", "stack"),
    [
        (b"1 2 add 7 2 idiv -7 2 mod 2 3 exp 16#FF -1.5 abs", [3, 3, -1, 8.0, 255, 1.5]),
        (b"3.5 round -3.5 truncate 3.2 ceiling 5 floor 2147483647 1 add", [4.0, -3.0, 4.0, 5, 2147483648.0]),
        (b"1 2 3 3 1 roll 4 index", [3, 1, 2]),
        (b"1 2 3 3 -1 roll 2 copy pop", [2, 3, 1, 3]),
        (b"1 2 exch dup count", [2, 1, 1, 3]),
        (b"mark 1 2 counttomark 3 1 roll cleartomark", []),
        (b"(abc) 1 1 getinterval (a(b)\\051\\\nc) length", [b"b", 6]),
        (b"(a.b) (.) search (abc) (x) search (abc) (ab) anchorsearch", [b"b", b".", b"a", True, b"abc", False, b"c", b"ab", True]),
        (b"/s 3 string def s 0 (xy) putinterval s 12 s cvs", [b"xy\0", b"12"]),
        (b"[1 2 3] aload length <</a 1>> /a known <</a 1>> /a get", [1, 2, 3, 3, True, 1]),
        (b"0 1 1 4 {add} for 0 [1 2] {add} forall 3 {1} repeat", [10, 3, 1, 1, 1]),
        (b"0 {1 add dup 5 eq {exit} if} loop", [5]),
        (b"{1 stop 2} stopped {nothing} stopped {3} stopped", [1, True, True, 3, False]),
        (b"/a 1 def /f {/a a 1 add store} def f f a 5 dict begin /a 9 def a end a", [3, 9, 3]),
        (b"1 2 lt (a) (b) ge true false or not /a (a) eq 1 1.0 eq", [True, False, False, True, True]),
        (b"/x where {pop 1} {2} ifelse /add where {pop 1} {2} ifelse", [2, 1]),
        (b"1 type (a) type /a type {} type true type", ["integertype", "stringtype", "nametype", "arraytype", "booleantype"]),
        (b"4 (1 2 add) cvx exec /add load exec", [7]),
        (b"(3 rest) token pop exch <48656C6C6F> <~87cURDZ~>", [3, b"rest", b"Hello", b"Hello"]),
        (b"/b //add def 1 3 bitshift 8 -1 bitshift", [8, 4]),
        (b"1 0 div 255 16 10 string cvrs", [1, 0, b"FF"]),
        (b"/p {1} def /q /p load def q 2 array 0 get xcheck {p} xcheck", [1, False, True]),
    ],
)
def test_language(program: bytes, stack: list[object]) -> None:
    """Operators do what the reference says; one that fails leaves what it has not taken."""
    given = left(program)
    assert given == stack or (b"div" in program and given[-1] == stack[-1])


def test_transformations() -> None:
    """Places and distances go to the device's space, and back."""
    x, y, a, b = left(b"10 20 translate 2 3 scale 1 1 transform 1 1 dtransform")
    assert (x, y, a, b) == (12, 23, 2, 3)
    assert left(b"10 20 translate 2 3 scale 12 23 itransform 2 3 idtransform") == [pytest.approx(1)] * 4
    turned = left(b"90 rotate 1 0 dtransform")
    assert turned == [pytest.approx(0), pytest.approx(1)]
    assert left(b"gsave 5 5 translate grestore 0 0 transform save 5 5 translate restore 0 0 transform") == [0, 0, 0, 0]
    assert left(b"1 1 moveto 2 3 rmoveto 1 1 rlineto currentpoint") == [4, 5]


def test_comments() -> None:
    """What the comments at the beginning say; what they put off stands at the end; those of a document within say nothing."""
    head = b"%!PS-Adobe-3.0\r\n%%Title: (A (nested\\051) title)\r\n%%+ goes on\r\n%%For: root\r\n%%Creator: \xfe\xff\0A\0\xe9\r\n"
    rest = b"%%Pages: (atend)\n%%CreationDate: D:20240305090000Z\n%%EndComments\n%%BeginDocument: a\n%%Title: inner\n%%Pages: 7\n"
    found = said(head + rest + b"%%EndDocument\n%%Trailer\n%%Pages: 3 1\n%%EOF\n")
    assert found.attributes["title"] == ["(A (nested\\051) title) goes on"]
    assert found.attributes["pages"] == ["3"]
    assert found.attributes["date"] == ["2024-03-05T09:00:00Z"]
    assert found.attributes["generator"] == ["A\xe9"]
    assert "author" not in found.attributes
    assert said(b"%!PS\n%%Title: (A \\(good\\) one)\n%%For: (Ada)\n").attributes == {"title": ["A (good) one"], "author": ["Ada"]}


@pytest.mark.parametrize("stated", ["paper.dvi", "stdin", "/lake/x.ps", "Enscript Output", "-"])
def test_titles(stated: str) -> None:
    """What stands in the largest type is the title where a program states only the name of a file; that, where there is none."""
    head = b"%%!PS-Adobe-3.0\n%%%%Title: %s\n%%%%EndComments\n" % stated.encode()
    large = b"/Times-Roman 20 selectfont 72 700 moveto (On the Height)show 72 680 moveto (of Lighthouses)show "
    small = b"/Times-Roman 10 selectfont 72 650 moveto (by nobody in)show 72 640 moveto (particular)show"
    assert said(head + large + small).text("title") == "On the Height of Lighthouses"
    assert said(head + small).text("title") in (stated, "")


def test_pdfmark() -> None:
    """What a file says for the PDF that is to be made of it."""
    info = b"[ /Title (Towers) /Author <FEFF004100E9> /Keywords (wave, light) /Subject (All of them) /DOCINFO pdfmark "
    outline = b"[ /Title (First) /Page 1 /OUT pdfmark [ /Title (Second) /OUT pdfmark [ /Rect [1 2 3 4] /ANN pdfmark"
    found = said(b"/pdfmark where{pop}{userdict/pdfmark/cleartomark load put}ifelse " + info + outline)
    assert found.attributes["title"] == ["Towers"]
    assert found.attributes["author"] == ["A\xe9"]
    assert found.attributes["keywords"] == ["wave", "light"]
    assert found.attributes["description"] == ["All of them"]
    assert found.attributes["headings"] == ["First", "Second"]


def test_what_surrounds_it() -> None:
    """A header for DOS, whose picture is left out; orders to a printer."""
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%Title: A tower\n%%EndComments\n" + TIMES + b"(inside)show\n"
    dos = DOS + (32).to_bytes(4, "little") + len(program).to_bytes(4, "little") + bytes(20) + program + b"II*\0 (outside)show"
    for raw in (dos, b"\x1b%-12345X@PJL JOB\n@PJL ENTER LANGUAGE=POSTSCRIPT\n" + program + b"\x1b%-12345X"):
        found = said(raw)
        assert (found.text("title"), found.text("partial-text")) == ("A tower", "inside")


def test_full_text() -> None:
    """All that is shown, where it is asked for; what is usual, otherwise."""
    program = TIMES + b"0 1 999 {72 exch -12 mul 700 add moveto (a line of words)show} for"
    assert said(program).text("partial-text").count("\n") < 300
    assert said(program, 1_000_000).text("full-text").count("\n") == 999


@pytest.mark.parametrize(
    "program",
    [
        *(b"{} loop", b"{1} loop", b"/a {a a} def a", b"2 {dup mul} loop", b"1 {2 bitshift} loop", b"{65535 array} loop"),
        *(b"{65535 string cvx exec} loop", b"(a) {dup length string copy} loop", b"1e300 {} repeat"),
        *(b"/s 65535 string def {s (b) search} loop", b"/s 9999 string def {s /RunLengthDecode filter} loop", b"{gsave} loop"),
        *(b"/d 9 dict def 0 1 9999 {d exch 1 put} for {d d copy pop} loop", b"/a [1] def a 0 a put {a aload pop} loop"),
        *(b"{<<>> begin} loop", b"{(%s) token} loop", b"{mark} loop", b"{1 1 roll} loop"),
        b"<</FontType 3 /FontMatrix matrix /BuildChar {pop pop {} loop}>> setfont 0 0 moveto {(abc)show} loop",
    ],
)
def test_programs_that_never_end(program: bytes) -> None:
    """The steps are used up, and no more than these: a machine that has them paid ends."""
    page = Page(100, 20_000)
    with suppress(Fault):
        assert _ended(page, program)
    assert len(page.operands) <= 20_000


def _ended(page: Page, program: bytes) -> bool:
    """Whether a program's steps were used up."""
    try:
        page.run(Source(program))
    except Enough:
        return True
    return False


_WORDS = sorted(str(name) for name in Page(1, 1).system if isinstance(name, str))
_TOKENS = st.sampled_from(
    [*_WORDS, "(a)", "(b c)", "/a", "/F", "0", "1", "2", "-1", "1.5", "{", "}", "[", "]", "<<", ">>", "65535"]
)


@settings(max_examples=300)
@given(st.lists(_TOKENS, max_size=60))
def test_any_program(tokens: list[str]) -> None:
    """Whatever a program says, it ends, and nothing but what the machine declares leaves it."""
    page = Page(100, 3_000)
    try:
        page.run(Source(b"/Times-Roman findfont setfont 0 0 moveto " + " ".join(tokens).encode()))
    except (Enough, Fault):
        assert page.steps < 3_000
    assert page.room >= -200
    assert len(page.files) == 0


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    """A scanner reads any bytes to their end, and each of them once."""
    source = Source(raw)
    machine = Machine({}, 1_000)
    seen = 0
    while machine.read(source) is not END:
        seen += 1
    assert source.at == len(raw)
    assert seen <= len(raw)


def test_objects() -> None:
    """Procedures within each other; names, literal or not."""
    source = Source(b"{1 {a} /b} /c c")
    machine = Machine({}, 100)
    procedure = machine.read(source)
    assert procedure == Procedure([1, Procedure([Word("a")]), "b"])
    assert [type(machine.read(source)).__name__ for _ in range(2)] == ["Name", "Word"]
