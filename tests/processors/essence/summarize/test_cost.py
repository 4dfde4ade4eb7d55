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
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from processors.essence.summarize.pages import _nesting
from processors.essence.summarize.source import javascript, pascal
from processors.essence.summarize.text import tex
from tests.processors.essence.summarize.compound import record
from tests.processors.essence.summarize.fragments import BEGINS, BINARY, COMMON, ENDS, KINDS, OWN
from tests.processors.essence.summarize.packages import document

pytestmark = pytest.mark.slow

SIZE = 1 << 18
HEAD = 4_096
CPU = 60
"""CPU seconds allowed for all fragments of a type together, which take 4 at most; a quadratic pattern takes minutes

for one of them.
"""


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
