"""Cost of summarizers: the time grows at most linearly with the input, for any input."""

import gc
import io
import os
import re
import resource
import struct
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial

import pytest

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.xls import Sheets
from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, SummaryError, summarize, summarizers
from processors.essence.summarize.pages import _nesting
from processors.essence.summarize.source import javascript, pascal
from processors.essence.summarize.text import tex
from tests.processors.essence.summarize.compound import record
from tests.processors.essence.summarize.packages import document

pytestmark = pytest.mark.slow

SIZE = 1 << 18
HEAD = 4_096
CPU = 60
"""CPU seconds allowed for all fragments of a type together, which take 4 at most; a quadratic pattern takes minutes

for one of them.
"""

COMMON = ("\n", " ", "\t", " \n", "a ", "1.", "a.", "=", "# ", "*", "(", "[", "{", "<", "a(", '"', "'", '"\\')
"""Fragments repeated for every type."""
OWN = {
    "AsciiDoc": ("== a\n", "a\n--\n", "----\n", "include::", "link:a[", "<<a,", "*a", ":a: b\n", "= A\nB C <d>\n"),
    # TXXX is an ID3 frame for user-defined text.
    "Audio": ("\xff\xfb", "\xff\xe0", "OggS\0", "\0\0\0\x08free", "\0\0\0\x08moov", "ID3\3", "TXXX\0\0\0\1\0\0a"),
    "Binary": ("\1\0\0\0", "\0", "\1", "\x7fELF", "MZ", "abcdef ", "copyright "),
    "Bibliographic": (
        "@a{b,",
        "@a{b, title={",
        '@a{b, title="{',
        "@a{b, title=c, ",
        "@string{a={b}}\n",
        "TY  - \n",
        "title=",
        "{",
        "}",
    ),
    "C": ("a() \n", "a()A\n", "a(\n", "a()a;", "/*", "//\n", "struct a:", "typedef ", "~:", "a a(a)\n", "a((", "())"),
    "ChangeLog": (" -- a <", "2020-01-01  a <", "a (1) ; urgency", "v1.1", "x\b"),
    "CSV": (",", '"a', "a;b\n", "\t", '""', "|a", "#\n"),
    "Configuration": ("[a]\n", "[[", "a=b\n", "a: ", "#\n", "export a", 'name = "', "authors=[{name="),
    "CSharp": ("public ", "a a ", '@"', "<a>", "using a", "class a", "public a a(", "///\n", '<see a="'),
    "DebianCopyright": (
        *("(c)", "copyright \t", "copyright 1999- ", "License:\t", "1999, ", "1999,\n ", "Copyright: 1999\n", "Copyright:\n a\n"),
        *("Copyright 1999 a ", "Copyright 1999 a, 2000, ", "(c) (c) by "),
    ),
    "DebianPackages": ("Package: a\n", "Depends: a,\n", "Description: a\n b\n", "A: ", " a\n", "\n\t"),
    "Dvi": ("\x8b", "\x7f", "\xf3", "a\x93", "\0", "\xab"),
    "FAQ": ("Q:\t", "Q: A", "1.1.", "\t\n"),
    "Font": ("COMMENT a\n", 'FONT "', "/Notice (", "/Notice(\\", "Notice a\n", "\0\1", "\0"),
    "Fortran": ("C\n", "!a\n", "real ", "integer(", "type, ", "type a\n", "use a\n", "\\brief", "<a", "module ("),
    "FlatOpenDocument": ("<office:document ", "<text:p>a", "<text:h>a</text:h>", "<office:meta>", "</office:meta>", "<text:s/>"),
    "FrameMaker": (
        "<Para ",
        "<String `",
        "<String `\\x",
        "<TextFlow\n <PgfTag `Title'><String `a'><Para ",
        "<Key `Title'><Value `a'>",
    ),
    "GitBundle": ("\0", "\x90", "\x9fx\x9c\x03\0\0\0\0\1", "PACK", "a" * 40 + " a\n"),
    "Go": ("//\n", "package a\n", "import (", 'import "a"\n', "func (", "`", "\ta ", "type a["),
    "HTML": (
        "<div>",
        "<table><td>",
        "<b x=%d><p>",
        "<a href=%d>",
        "<svg>",
        "<meta name=keywords content='a,'>",
        "<meta http-equiv=refresh content='0;url=a%d'>",
        "<link rel=canonical href=a%d>",
        "<ruby> \n<rt>",
        "<ruby> <rt></rt></ruby>",
        '<script type="application/ld+json">{"@type":"Article","author":{"@id":"a"}}</script>',
        "<h1><div>",
        "<!--",
    ),
    "OtherDocument": (
        "\xd0\0\0\0",
        "\xf1\0\0\0\xf1",
        "\xf0\1\1\xf0",
        "\xd4\1\5\0\0",
        "\x0f\0\7\0\xff\0\0\0\0'a",
        "\x08/#SYSTEM\0\1\1",
        "\r\n",
    ),
    "Video": (
        *("\xec\x80", "\x73\x73\x80", "\xae\x81", "\x67\xc8\x84\x45\xa3\x81a", "\x1f\x43\xb6\x75\x80"),
        *("\0\0\0\x08moov", "\0\0\0\0trak", "AVI LIST\4\0\0\0hdrl", "FLV\1\2\0\x0aonMetaData\x08\0\0\0\1", "\0\1a\2\0\0"),
        *("\0\0\x01\xb3", "G\0\0\x01\xb3", ".RMF\0\0\0\x0a", "\x80theora", "OggS"),
    ),
    "Image": ("\xff\xfe\0\4ab", "\xff\xe1\0\2", "<rdf:li>a", "<dc:title>", "\0\0\0\0iTXt", "\x69\x87\4\0\1\0\0\0\x08\0\0\0"),
    "Java": (" a ", " a<", " a a(", "class ", "fun <", '"""', "{@a b", "package a\n", "public class A{", "@"),
    "JavaScript": (
        "a=",
        "a=(",
        "a: (",
        "import ",
        "import a,",
        "`",
        "function a",
        " a(",
        " async ",
        "export class a",
        "exports.a",
        "/a/",
    ),
    "JSON": ("[", '{"a":', "[1],"),
    "Mail": (
        "=?a?q?",
        "=?a?b?a?=",
        "<",
        "A: b\n",
        'Content-Type: a/b; a=";";',
        "\n\n--a\nContent-Type: multipart/mixed; boundary=a%d",
        "\n--a\n",
        "\n--\n",
        ">",
        "\tx\n",
    ),
    "FileIndex": ("a.b  c\n", "a.b\n\ta\n", "a.b 1 1 1 1 1 1 ", "a.", '"a', "\t- a\n", " 1-1-1", "a/b "),
    "IAFA": ("Title: a\n", " a\n", "Keywords: a,", "A-", "Template-Type: A\n", "A-A-A-v1"),
    "LSM": ("Title: a\n", " a\n", "Keywords: a,", "A-", "Begin3\n"),
    "Lisp": (";\n", ";;; Commentary:\n", ";; Author: a\n", "(defun a", "(define (", "#|", "(require '", "(a b ", ";;; a --- b"),
    "Makefile": ("a: ", "a ", "include\t", "\\\n"),
    "ManPage": (".SH \\[", "\\[", "\\h'", "\\*[", ".so", '.\\"\n', ".\t", '"', ".SH a\n", '.B "\n'),
    "Markdown": ("```\n", "```x\n", "~~~\n", "[a](", "![", "# a\n", "`", "a\n===\n"),
    "EPUB": ("<text>", "<a href=x>", "<item>", "<nav>", "<p>a</p>", "<title>"),
    "Notebook": ("# a\\n", "<h1", "import a\\n", "[a](", "\\n", "x"),
    "OfficeDocument": ("<p>", "<t>a</t>", "<pStyle val='title'/>", "<p><pStyle val='heading'/><t>a</t></p>", "<tab/>", "<a><t>"),
    "OpenDocument": ("<p>a", "<h>a</h>", "<span>a</span>", "<s/>", "<table><table-row><table-cell>", "<p/>"),
    "Pascal": ("(*", "{", "uses a,", "uses\n", "a = ", "a<", "procedure a", "{$I a", "unit a\n", "//\n"),
    "Patch": ("Subject: [", "#\n", "From: a@", "\n \t", "--- a\n+++ a\n", "Index: "),
    "Perl": ("=a\n", "=head1 NAME\n", "=head1 DESCRIPTION\n\n", "=head1\t", "A<", "=cut\n", "package "),
    "PostScript": ("(a)1 ", "(a", "%%Title:\t", "(\\a", "((", "{", "}", "<<", "//a ", "%%BeginData: 1\n", "1 1 roll ", "gsave "),
    "Python": ("#\n", "x y\n", "'''", "f'{", "lambda:", "def a():\n"),
    "README": ("http://", "http://a.b/", "x\b"),
    "RTF": ("{", "}", "\\'e9", "\\u8212?", "\\par ", "\\a", "{\\title a}", "\\bin9 ", "\\uc99", "\\*"),
    "RCS": ("@", "@@", "1.1\nlog\n@@\n", "desc\n@", "symbols ", "1.1\ndate 1.1; author a;", "1.", "log\n", "head 1"),
    "RFC": ("[Page 1]\n", "\n\n[Page 1]\n\f", "RFC", "Abstract\n", "A. ", "1.1 A", "draft-a", "Obsoletes: 1\n", "   a\n", "July 1"),
    "ReStructuredText": (".. a::\n :", ".. a\n", "a\n---\n", ":a: b\n", ":a:`", "`a <", "``", "*a", "|a", ".. a:: b\n", "---\n"),
    "Ruby": ("=begin\n", "#\n", "def ", "class A::", "require '", "a.name = ['", "def self.", "__END__"),
    "SCCS": ("\x01d D 1.1 94/05/03 10:11:12 a 1 0\n", "\x01c a\n", "\x01t\na", "\x01I 1\na\n", "\x01c date and time created "),
    "Rust": ("//!\n", 'r#"', "r##", "pub(", "use a::", "pub fn a", "/*", "'a", "unsafe "),
    "SQLite": ("\0", "\x05", "\r", "\1", "CREATE TABLE a(", "a,"),
    "SQL": ("--\n", "CREATE ", "CREATE\n", "create table ", "'a''", "insert into a ", "/*", "alter table only "),
    "ShellScript": ("function ", "usage:", "a()\n", ". "),
    "SourceCode": ("pub ", "export\tdef\t", "/*", "#\n", "  \n#", "fn a", "#if\n", "- (a) ", "-(a", "@interface "),
    "Subtitles": ("00:00:00,000 --> 00:00:00,000\n", "NOTE\n", "<v a", "<", "{\\", "1\n", "00:00.000 --> 00:00.000\na\n\n"),
    "TeX": (
        "\\title{",
        "\\title[",
        "\\section{a}",
        "{",
        "}",
        "\\begin{figure}",
        "\\begin{abstract}",
        "\\author a",
        "\\bibitem{a}",
        "%\n",
        "\\'",
        "\\cite[",
        "\\ProvidesPackage{a}[",
        "\\a",
        "~",
        "\\usepackage{",
    ),
    "Texinfo": ("@tex\n", "@copying\n", "@c", "@set a b\n", "@value{a}", "@uref{", "@{", "@chapter a\n", "* a: (", '@"', "@code{"),
    "Info": (
        *("\x1f\n", "* a: (b)", "* a: (b)c. d\n      e\n", "START-INFO-DIR-ENTRY\n", "\0\x08[image ", "\0\x08["),
        *("a\n***\n", "***\n", "* a", "* Menu:", "*Note ", "File: a\n", "INFO-DIR-SECTION a\n", "\n\n"),
    ),
    "Troff": (".TL\n", ".AU\n", ".NH\n", ".de a\n", ".TS\n", '.B "', ".H 1 a\n", "\\[", "\\h'", ".so a\n", ".\n", '.\\"\n'),
    "Translation": (
        'msgid "',
        "#, fuzzy\n",
        'msgid "a"\nmsgstr "b"\n',
        '"\\',
        "<source>",
        "<message><source>a</source></message>",
        "\0\1\0\0",
    ),
    "YAML": ("a:\n", "a: b\n", "- a: >\n", "name: >\n", "name:\n- a\n", "  \n", "#\n", "metadata:\n", "tags: [a,"),
    "XML": ("<a>", "<title>", "<a b='c'>"),
}
BEGINS = {
    "HTML": "<html>",
    "DebianCopyright": "Copyright: ",
    "ManPage": ".TH A 1\n.SH NAME\n",
    "PostScript": "%!PS\n",
    "Perl": "=head1 DESCRIPTION",
    "XML": "<a>",
    "TeX": "\\documentclass{a}\\begin{document}",
    "Texinfo": "\\input texinfo\n",
    "Info": "This is a, produced by makeinfo from b.\n",
    "Troff": ".TL\n",
    "Bibliographic": "@a{b, title =",
    "Audio": "ID3\3\0\0\0\x0f\x7f\x7f",
    "Binary": "\x7fELF\2\1\1" + "\0" * 57,
    "Dvi": "\xf7\2" + "\0" * 12,
    "Font": "STARTFONT 2.1\n",
    "Image": "\xff\xd8",
    "OtherDocument": "\xffWPC\x10\0\0\0\1\x0a\2" + "\0" * 5,
    "Video": "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01" + "\xff" * 7 + "\x12\x54\xc3\x67\x10\x10\0\0",
    "FlatOpenDocument": "<office:document>",
    "FrameMaker": "<MIFFile 7.00>\n<TextFlow\n",
    "GitBundle": "# v2 git bundle\n\nPACK\0\0\0\2\0\1\0\0",
    "SCCS": "\x01h1\n",
    "Translation": "\xde\x12\x04\x95\0\0\0\0\0\x7f\0\0\x1c\0\0\0\x1c\0\0\0" + "\0" * 8,
    "SQLite": "SQLite format 3\0\2\0\1\1\0" + "\1" * 79,
    "CHeader": "a()",
    "ChangeLog": "2020-01-01",
    "Patch": "From:",
    "FAQ": "Q:",
    "Mail": "From: a\nContent-Type: multipart/mixed; boundary=a",
    "News": "Newsgroups: a\nFrom: =?",
    "Markdown": "# ",
    "C": "typedef",
    "RTF": "{\\rtf1{\\info",
    "PDF": "%PDF-1.4\n",
    "RCS": "head 1.1;\n\ndesc\n@",
    "RFC": "Network Working Group   A. B\n",
    "Subtitles": "WEBVTT\n\n",
    "Makefile": "a",
    "EPUB": "<html><nav>",
    "Notebook": '{"cells":[{"cell_type":"markdown","source":"',
    "OfficeDocument": "<document>",
    "OpenDocument": "<document-content>",
}
"""Text before the fragments, in half of all cases."""
ENDS = {"Notebook": '"}]}'}
"""Text after the fragments in those cases."""
KINDS = sorted({*summarizers(), "CHeader"})


BINARY = frozenset(
    (
        "Audio",
        "Binary",
        "Database",
        "Dvi",
        "Ebook",
        "PropertyList",
        "ScientificData",
        "Font",
        "GitBundle",
        "Image",
        "OtherDocument",
        "SQLite",
        "Translation",
        "Video",
    )
)
"""Types whose fragments are bytes, not text."""


def fill(fragment: str, size: int) -> str:
    """Return a fragment repeated to a size, with a new number in each repetition where it has a placeholder."""
    times = size // len(fragment)
    return "".join(fragment % n for n in range(times)) if "%d" in fragment else fragment * times


def run(kind: str) -> None:
    """Summarize a file of each fragment."""
    for fragment in (*COMMON, *OWN.get(kind, OWN["C"] if kind == "CHeader" else ())):
        for begin, end in (("", ""), (BEGINS.get(kind, "x y\n"), ENDS.get(kind, "!"))):
            text = begin + fill(fragment, SIZE) + end
            body = text.encode("latin-1") if kind in BINARY else document(kind, text)
            try:
                summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), Found())
            except SummaryError:
                continue


def bounded(work: Callable[[], None], cpu: int = CPU) -> int:
    """Run the work in a process limited to `cpu` CPU seconds; return its wait status."""
    pid = os.fork()
    if pid == 0:
        try:
            # The child must not collect garbage of earlier tests: the threads that own it do not exist there.
            gc.freeze()
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


LED = (
    ("Markdown", "---\na: b\n", "a: "),
    ("Markdown", "---\na: b\n", " a\n"),
    ("Markdown", "---\na: b\n", "'a"),
    ("Markdown", "+++\na = 1\n", "a."),
    ("Markdown", "+++\na = 1\n", "'a'."),
    ("Markdown", "+++\na = 1\n", "a"),
    ("Markdown", '{"a": ', '{"a": '),
    ("HTML", '<html><script type="application/ld+json">', " "),
    ("HTML", '<html><script type="application/ld+json">', '{"@graph":['),
    ("HTML", "<html><meta http-equiv=refresh content='0", " "),
    ("AsciiDoc", "= T\nAb", " "),
    ("AsciiDoc", "= T\nAb C", "\t<a> "),
    ("YAML", "kind: a\nmetadata:\n", " "),
    ("YAML", "kind: a\nmetadata:\n", " " * 99 + "a\n"),
    ("TeX", "\\documentclass", "\t"),
    ("TeX", "\\documentclass[a]", "\t"),
    ("FrameMaker", "<MIFFile 2015>\n", "<String`"),
    *(
        ("ManPage", ".TH A 1\n.ds a \\*b\\*b\n.SH AUTHORS\n", fragment)
        for fragment in (
            "Ab ",
            "Ab van ",
            "A. ",
            "A.A",
            "a@b ",
            "<a@",
            "Ab Ab <a@b.c>, ",
            "by ",
            "\\*a",
            ".MT a\n",
            ".An a , b\n",
            ".An a , ",
        )
    ),
    ("ManPage", ".TH A 1\n", ".ds b \\*b\\*b\n"),
    ("ManPage", ".TH A 1\n", ".if .ie "),
)
"""The start of a pattern, and what it could then scan repeatedly. A file holds SIZE bytes of it, 16 times as many where the

summarizer reads more.
"""
TIMES = {"FrameMaker": 16}


@pytest.mark.parametrize(("kind", "begin", "fragment"), LED)
def test_repetition_after_pattern_start_is_scanned_once(kind: str, begin: str, fragment: str) -> None:
    """A repetition after the single start of a pattern is scanned once, however it could be divided."""

    def work() -> None:
        body = (begin + fill(fragment, TIMES.get(kind, 1) * SIZE) + "!").encode()
        with suppress(SummaryError):
            summarize(Facts(b"x", "http://example.org/x", kind, "x/y", len(body), 0, ""), io.BytesIO(body), Found())

    assert bounded(work, 10) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_repetition_is_summarized_in_linear_time(kind: str) -> None:
    """Any fragment repeated to 256 kB is summarized in the CPU time of a few reads."""
    assert bounded(partial(run, kind)) == 0


CLAUSES = (
    (pascal._USES, ("uses\n", "uses a,\n", "uses\n\n\n")),
    (javascript._IMPORT, ("import\n", "import {\n", "export a\n")),
)


@pytest.mark.parametrize(("pattern", "fragments"), CLAUSES, ids=("Pascal", "JavaScript"))
def test_unterminated_clauses_are_searched_once(pattern: re.Pattern[str], fragments: tuple[str, ...]) -> None:
    """Text searched for the end of a clause is not searched again: few matches cover the whole text."""
    for fragment in fragments:
        for size in (SIZE, 4 * SIZE, 16 * SIZE):
            matches = [m.end() - m.start() for m in pattern.finditer(fill(fragment, size))]
            assert len(matches) < size / 1_000
            assert sum(matches) > 0.98 * size


def test_headings_are_searched_only_up_to_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only as many sections with unclosed braces are searched for their end as headings are kept."""
    read: list[int] = []

    def argument(text: str, at: int, limit: int) -> str:
        read.append(at)
        return text[at : at + limit]

    monkeypatch.setattr(tex, "argument", argument)
    for size in (SIZE, 4 * SIZE):
        read.clear()
        tex._headings(fill("\\section{", size))
        assert len(read) == tex.HEADINGS


SCRIPT = """
import a from "a"
import "b";
export * from 'c'
import {
  d,
  e as f
} from "d"
export default App
import './g.css'
export const h = "no"
const i = await import("i"), j = require( 'j' )
  import("k")
export default require("l")
export default import('m')
import n, { o } from "n"; import "no"
export class P {
}
import q from 'q'
"""


def test_modules_come_from_statements_and_require_calls() -> None:
    """Modules are those named by statements, wherever these end, and those required in expressions."""
    assert list(javascript._modules(SCRIPT)) == ["a", "b", "c", "d", "./g.css", "i", "j", "k", "l", "m", "n", "q"]


def test_split_workbook_string_is_skipped_in_linear_time() -> None:
    """A string of an old workbook that continues over a million records is skipped in linear time."""
    book = record(0x809, struct.pack("<HH", 0x600, 5))
    book += record(0xFC, struct.pack("<IIHBI", 1, 1, 1, 4, 0xFFFF_FF00)) + record(0x3C, b"12345678") * 1_000_000
    assert bounded(lambda: Sheets(Text(HEAD)).read(book)) == 0


HEADS = (
    ("", "<!---->"),
    ("", "--><!--"),
    ("<?xml?>", "<!---->"),
    ("<!--", "--><!--"),
    ("Mon Jan " + " " * 40, " <@"),
    ("2020-01-01  a", "  <"),
    ("From a ", "1"),
    ("", "int a("),
    ("--- a", "a"),
    ("--- a\n+++ ", "a"),
    ("*** a\n--- ", "a"),
    ("Path: a", "!"),
    ("", "A: b\n"),
    ("A: b\n", " \n"),
    ("A: b\n", "A:"),
    (".LP", ".\n"),
    ('.\\"', '\n.\\"'),
    ("Network Working Group", "\nExpire"),
    ("unit a", " "),
    ("Package: a\n", "A: b\n"),
    ("Package: a\n", "A:\n b\n"),
    ("1\n", "\n1\n"),
    *(("", fragment) for fragment in COMMON),
)
"""Starts of files, and repetitions after them that a pattern of `types.toml` could scan repeatedly."""


def test_recognition_takes_bounded_time() -> None:
    """Recognizing 50 files of any such first 4 kB takes seconds."""

    def work() -> None:
        for begin, fragment in HEADS:
            for _ in range(50):
                recognize(b"x", (begin + fragment * (HEAD // len(fragment))).encode()[:HEAD])

    assert bounded(work) == 0


def test_deep_page_is_cut_before_parsing() -> None:
    """A too deeply nested page is summarized as far as possible, as damaged; end tags invisible to the parser hide no depth."""
    page = "<html><title>Deep</title><p>Some words.</p>{}"
    for fragment in (
        "<div>",
        "<div><!--</div>-->",
        '<div title="</div>">',
        "<span><div></span>",
        "<div><table></div>",
        "<u x=%d><p>",
        # A check that takes the first for a complete element misses that its quote continues.
        '<u "x%d="> a</u>"><p>',
        # A `=` at the start of a name, and what counts as a comment.
        '<u ="x%d="> a</u>"><p>',
        "<u x=%d><!x </u>><p>",
        "<u x=%d><?x </u>><p>",
        "<u x=%d></ </u>><p>",
    ):
        found = Found()
        body = page.format(fill(fragment, 20 * _nesting.FEW)).encode()
        with pytest.raises(SummaryError, match="nested too deep"):
            summarize(Facts(b"x", "http://example.org/x", "HTML", "text/html", len(body), 0, ""), io.BytesIO(body), found)
        assert found.text("title") == "Deep"
        assert "Some words." in found.text("partial-text")


def test_attributes_are_counted_before_parsing() -> None:
    """A page with too many attributes in an element is summarized up to it, as damaged; long values do not count as attributes."""
    for between in (" ", "/", ' x="a b"'):
        for many in (_nesting.ATTRIBUTES // 2, 8 * _nesting.ATTRIBUTES):
            crowd = "<p " + between.join(f"a{number}" for number in range(many)) + ">Behind it."
            body = f"<html><title>Crowd</title><p>Some words.</p>{crowd}".encode()
            found = Found()
            facts = Facts(b"x", "http://example.org/x", "HTML", "text/html", len(body), 0, "")
            with pytest.raises(SummaryError, match="attributes") if many > _nesting.ATTRIBUTES else nullcontext():
                summarize(facts, io.BytesIO(body), found)
            assert found.text("title") == "Crowd"
            assert "Some words." in found.text("partial-text")
    for crowd in (
        *(
            "<a {}>".format(" ".join(f"a{number}={value}" for number in range(2 * _nesting.ATTRIBUTES)))
            for value in ('"<"', "'>'", "<")
        ),
        *(f"<a {begin} {' '.join(f'a{number}' for number in range(2 * _nesting.ATTRIBUTES))}>" for begin in ('="x', 'x=">"', "<")),
    ):
        assert _nesting.parsable(f"<p>{crowd}".encode())[0] == b"<p>", crowd[:20]
    values = ("x y=z/ " * _nesting.ATTRIBUTES, "<" * 9 + " a=b" * 3 * _nesting.ATTRIBUTES)
    for page in ('<img src="{}">', "<p title='{}'", "<pre>{}"):
        for value in values[: 1 if page == "<pre>{}" else 2]:
            assert _nesting.parsable(page.format(value).encode()) == (page.format(value).encode(), ""), page


def test_large_pages_are_not_deep() -> None:
    """A page of many elements is read whole if their end tags are usual, or optional."""
    row = "<tr><td><font color=red>a <b class=x>b</b><td><p>c<br><ul><li>d<li><a href=%d>e</a></ul><!-- <div> -->\n"
    body = ("<html><body><table>" + fill(row, 20 * _nesting.FEW) + "</table><h1>Last</h1>").encode()
    found = Found()
    summarize(Facts(b"x", "http://example.org/x", "HTML", "text/html", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("headings") == "Last"
