import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.text import decode
from processors.essence.summarize import Facts, Found, SummaryError, summarize, summarizers
from processors.essence.summarize._base import MAX_LINKS, MAX_REFERENCES, MAX_SUMMARY, MAX_VALUES
from processors.essence.summarize._general import keywords, language
from processors.essence.summarize._text import first_sentence

Make = Callable[..., Found]


def _size(found: Found) -> int:
    return sum(len(v if isinstance(v, bytes) else v.encode()) for values in found.attributes.values() for v in values)


def _try(kind: str, body: bytes, name: bytes = b"name") -> Found:
    found = Found()
    reason = "none"
    try:
        summarize(Facts(name, "http://example.org/name", kind, "x/y", len(body), 0, ""), io.BytesIO(body), found)
    except SummaryError as error:
        reason = str(error)
    assert 0 < len(reason) <= 200
    return found


@pytest.mark.parametrize("kind", sorted(summarizers()))
def test_damage_raises_only_summary_error(kind: str, samples: Path) -> None:
    """Any damage to its sample makes a summarizer raise SummaryError or nothing, and there is a title."""
    module = summarizers()[kind].run.__module__.rpartition(".")[2]
    sample = next(p for p in samples.glob(f"{module}.*") if p.suffix != ".json").read_bytes()
    chance = random.Random(kind)
    for _ in range(30):
        damaged = bytearray(sample[: chance.randrange(len(sample) + 1)])
        for _ in range(chance.randrange(8)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        assert _try(kind, bytes(damaged)).text("title")
    for body in (b"", b"\0", b"\xff\xfe", b"\xff" * 100, b"\n" * 1_000):
        assert _try(kind, body).text("title")


@pytest.mark.parametrize("kind", ["HTML", "JSON", "Python", "XML", "Perl", "C"])
def test_deep_nesting_never_crashes(kind: str) -> None:
    """Nesting deeper than any stack is damage, or is summarized, and never crashes."""
    opening = {"HTML": b"<b>", "JSON": b'{"a":', "Python": b"(", "XML": b"<a>", "Perl": b"{", "C": b"{"}[kind]
    assert _try(kind, opening * 2_000).text("title")


def test_summary_is_bounded() -> None:
    """A summary stays below 64 kB, 200 values an attribute and 10,000 links, whatever is added."""
    found = Found()
    for number in range(20_000):
        found.add(f"name-{number % 50}", f"{number} " + "ü" * 500)
        found.add("many", str(number))
        found.link(f"http://example.org/{number}", "text " * 100)
    assert _size(found) <= MAX_SUMMARY
    assert len(found.attributes["many"]) <= MAX_VALUES
    assert len(found.links) == MAX_LINKS
    for full, most in ((0, MAX_VALUES), (1, MAX_REFERENCES)):
        found = Found(full)
        for number in range(2 * MAX_REFERENCES):
            found.add("url-references", f"ftp://a/{number}")
            found.add("headings", str(number))
        assert (len(found.attributes["url-references"]), len(found.attributes["headings"])) == (most, MAX_VALUES)


@given(st.lists(st.text(max_size=50)), st.integers(0, 20))
def test_text_is_utf8(values: list[str], limit: int) -> None:
    """Found holds only text that encodes as UTF-8, within the requested limit."""
    found = Found()
    for value in [*values, "\ud800 x", "a\0b"]:
        found.add("x", value, limit)
    assert all(isinstance(v, str) and 0 < len(v.encode()) <= limit and "\0" not in v for v in found.attributes.get("x", []))


@given(
    st.binary(max_size=300), st.sampled_from(["", "utf-8", "iso-8859-1", "utf-16", "utf-7", "no such", "base64", "rot13", "idna"])
)
def test_decode_never_raises(raw: bytes, declared: str) -> None:
    """Bytes are decoded to text under any declared charset."""
    assert isinstance(decode(raw, declared), str)


@pytest.mark.parametrize(
    ("charset", "declared"),
    [
        ("utf-8", ""),
        ("utf-8", "iso-8859-1x"),
        ("utf-8-sig", "latin-1"),
        ("utf-16", ""),
        ("latin-1", "ISO-8859-1"),
        ("koi8-r", "koi8-r"),
    ],
)
def test_text_is_decoded_by_mark_declaration_or_utf8(charset: str, declared: str) -> None:
    """Text is decoded correctly by its byte order mark, its declared charset, or as UTF-8."""
    text = "Übergröße für Möwen" if charset != "koi8-r" else "Привет"
    assert decode(text.encode(charset), declared) == text


def test_page_charset_declaration_counts(summary: Make) -> None:
    """A page's own charset declaration counts if the source declares none."""
    page = '<meta charset="windows-1251"><title>Привет</title>'.encode("windows-1251")
    assert summary(b"a.html", page).text("title") == "Привет"


def test_robots_meta_is_obeyed(summary: Make) -> None:
    """A page that forbids indexing keeps only its name; one that forbids following has no links."""
    link = b"<title>Secret plans</title><p>text of the page <a href=b.html>b</a>"
    noindex = summary(b"a.html", b'<meta name="robots" content="noindex">' + link)
    assert noindex.attributes == {"robots": ["noindex"], "title": ["a.html"]}
    assert len(noindex.links) == 1
    nofollow = summary(b"a.html", b'<meta name="ROBOTS" content="NoFollow">' + link)
    assert (nofollow.links, nofollow.text("title")) == ([], "Secret plans")
    assert summary(b"a.html", b'<meta name="robots" content="none">' + link).links == []


def test_links_are_absolute_and_unique(summary: Make) -> None:
    """Links are absolute, each listed once with its text; fragments, scripts and mail addresses are left out."""
    body = b"<a href='../b.html#c'>the <b>b</b></a><a href='#x'>x</a><a href='../b.html'>again</a><a href='mailto:a@b'>m</a><a href='http://[/'>"
    assert [(k.url, k.text, k.kind) for k in summary(b"a.html", body, "http://example.org/d/x").links] == [
        ("http://example.org/b.html", "the b", "page")
    ]


def test_entities_are_not_expanded(summary: Make, tmp_path: Path) -> None:
    """An XML document cannot include another file in its summary, nor expand its entities."""
    secret = tmp_path / "secret"
    secret.write_text("kept for ourselves")
    outside = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{secret.as_uri()}">]><a>&e;</a>'
    assert b"ourselves" not in repr(summary(b"a.xml", outside.encode()).attributes).encode()
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]><a>&l9;</a>'
    assert _size(summary(b"a.xml", bomb.encode())) < 1_000


def test_pdf_damage_is_reported(summary: Make, samples: Path) -> None:
    """A PDF that needs a password says so; an invalid or truncated one is damaged or summarized in part."""
    whole = (samples / "pdf.pdf").read_bytes()
    locked = whole.replace(
        b"/Info 6 0 R",
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >> /ID [<41> <41>]",
    )
    assert summary(b"a.pdf", locked).attributes["encrypted"] == ["a password is needed"]
    assert summary(b"a.pdf", b"%PDF-1.4\nnothing").text("error").startswith("PDF: ")
    assert _try("PDF", b"no PDF at all").text("title") == "name"


def test_subtype_uses_summarizer_of_its_parent(summary: Make) -> None:
    """A type without its own summarizer uses that of the type it extends."""
    assert summary(b"x.hpp", b'#include "y.h"\nint f(int);\n').attributes["procedures"] == ["f"]
    assert summary(b"x.rst", b"Title here\n==========\n\nText.\n").text("title") == "Title here"
    assert summary(b"x.flac", b"fLaC" + bytes(40)).attributes["title"] == ["x.flac"]


def test_every_summary_has_title(summary: Make) -> None:
    """Every summary has a title: from the document, its first line, or its name."""
    assert summary(b"a.html", b"<title>A  title</title>").text("title") == "A title"
    assert summary(b"a.txt", b"\n-----\n  First line\nsecond").text("title") == "First line"
    assert summary(b"empty.txt", b"").text("title") == "empty.txt"


def test_python_with_syntax_errors_gives_names(summary: Make) -> None:
    """A source with syntax errors still gives its names."""
    found = summary(b"old.py", b'"""Old. Very."""\nimport string\nclass A:\n    def f(self):\n        print "x"\n')
    assert (found.text("description"), found.attributes["classes"], found.attributes["functions"]) == ("Old.", ["A"], ["f"])


def test_mdoc_and_man_give_same_attributes(summary: Make) -> None:
    """An -mdoc page gives the same attributes as a -man page."""
    page = b".Dd July 1, 1994\n.Dt OAR 1\n.Os\n.Sh NAME\n.Nm oar\n.Nd row a boat\n.Sh SEE ALSO\n.Xr boat 5 ,\n.Xr sea 7\n"
    found = summary(b"oar.1", page)
    assert found.text("title") == "oar - row a boat"
    assert found.attributes["see-also"] == ["boat(5)", "sea(7)"]
    assert found.attributes["date"] == ["1994-07-01"]


@pytest.mark.parametrize(
    ("line", "date"),
    [
        (b'.TH OAR 1 "1 July 1994" "oar 1.2" "A manual"', ["1994-07-01"]),
        (b".TH OAR 1 1994-07-01", ["1994-07-01"]),
        (b'.TH "OAR" "1" "July 1994"', ["1994-07"]),
        (b'.TH OAR 1 "1994 Sept 3"', ["1994-09-03"]),
        (b'.TH OAR 1 "04/07/1994"', ["04/07/1994"]),
        (b'.\\" Generator: DocBook XSL Stylesheets v1.79\n.TH "OAR" "1" "04/07/1994" "oar 1.2"', ["1994-04-07"]),
        (b'.\\" Generator: DocBook XSL Stylesheets v1.79\n.TH "OAR" "1" "13/07/1994" "oar 1.2"', ["1994-07-13"]),
        (b'.TH OAR 1 "20 April 1994 (v3)"', ["20 April 1994 (v3)"]),
        (b'.TH OAR 1 "" "oar 1994"', []),
        (b'.TH OAR 1 "oar 1.2"', []),
        (b'.TH OAR 1 "Version 2010"', []),
        (b".TH OAR 1\n.SH NAME\noar \\- row\n.SH EXAMPLE\n.nf\n.TH BAR 8 2001-01-01\n.fi", []),
        (b".TH OAR 1", []),
        (b".Dd $Mdocdate: July 1 1994 $\n.Dt OAR 1", ["1994-07-01"]),
    ],
)
def test_manual_page_date_is_iso_8601_if_certain(summary: Make, line: bytes, date: list[str]) -> None:
    """A page has the date that it states: in ISO 8601 if certain, else as written; a date without a year is left out."""
    found = summary(b"oar.1", line + b"\n.SH NAME\noar \\- row a boat\n")
    assert found.attributes.get("date", []) == date


def test_manual_page_characters_are_decoded(summary: Make) -> None:
    """Characters are decoded by name and number; indentation after printed text is removed."""
    page = rb"""
.TH OAR 1
.SH NAME
oar \- row \(:Uber Stra\[ss]e to \[u00C5]land, \(vSibenik and \(*a\(*W; 20 \(Eu
.SH OPTIONS
.HP 4
.B fast
now
.TP 8
slow
.IP \(bu 2
never
"""
    found = summary(b"oar.1", page.replace(b"\\\\", b"\\"))
    assert found.text("description") == "row Über Straße to Åland, Šibenik and αΩ; 20 €"
    assert found.text("partial-text") == "OPTIONS\nfast\nnow\nslow\n•\nnever"


def test_manual_page_without_sections_has_text(summary: Make) -> None:
    """A manual page without sections has its own title, and all of its content as text."""
    found = summary(b"oar.1", b".TH OAR 1 1994-07-01\nRows a boat.\n.PP\nUpstream, too.\n")
    assert "error" not in found.attributes
    assert (found.text("title"), found.text("date")) == ("OAR", "1994-07-01")
    assert found.text("partial-text") == "Rows a boat.\nUpstream, too."


def test_alias_page_names_its_target(summary: Make) -> None:
    """A manual page that only sources another names that page."""
    assert summary(b"vi.1", b'.\\" alias\n.so man1/vim.1\n').attributes["see-also"] == ["man1/vim.1"]


def test_keywords_are_most_frequent_words() -> None:
    """Keywords are the most frequent words without function words; the language is that of the text."""
    assert keywords("The boat and the river. A boat on a river with a boat.") == ["boat", "river"]
    assert language("the cat and the dog are in the house of the king") == "en"
    assert language("Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald zurück.") == "de"
    assert first_sentence("One. Two.\nThree") == "One."


def test_no_file_is_opened_after_preload(samples: Path) -> None:
    """After preload no summarizer opens a file or imports a module, since a child may have no file system access."""
    script = """
import io, sys
from pathlib import Path
from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, preload, summarize
preload()
bodies = [(p.name, p.read_bytes()) for p in Path(sys.argv[1]).iterdir() if p.suffix != ".json"] + [("x", bytes(range(200)))]
def audit(event, args):
    if event in ("open", "import"):
        print("after preload:", event, args[0], file=sys.stderr)
sys.addaudithook(audit)
for name, body in bodies:
    kind = recognize(name.encode(), body)
    facts = Facts(name.encode(), "http://e.org/" + name, kind.type, kind.content_type, len(body), 0, "")
    summarize(facts, io.BytesIO(body), Found())
"""
    done = subprocess.run([sys.executable, "-c", script, str(samples)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
