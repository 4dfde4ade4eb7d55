"""The PostScript machine: effects of operators, and programs that never end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.essence.formats.postscript import Page, Source, page
from processors.essence.formats.postscript.machine import Machine, Operators
from processors.essence.formats.postscript.objects import END, Fault, LimitReached, Procedure, Text, Word


def stack_after(program: bytes, steps: int = 10_000) -> list[object]:
    """Return the operand stack that a program leaves: strings as bytes, names and numbers unchanged."""
    machine = page(100, steps)
    machine.run(Source(program))
    return [bytes(value.data) if isinstance(value, Text) else value for value in machine.operands]


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
        (b"/b //add def 1 3 bitshift 8 -1 bitshift 196 24 bitshift -1 32 bitshift", [8, 4, -1006632960, 0]),
        (b"1 0 div 255 16 10 string cvrs", [1, 0, b"FF"]),
        (b"{1 (exit) cvx exec} loop 2 (3 exit 4) cvx exec exit 5", [1, 2, 3, 5]),
        (b"//nothing //true {//false} exec", [True, False]),
        (b"/p {1} def /q /p load def q 2 array 0 get xcheck {p} xcheck", [1, False, True]),
    ],
)
def test_operators_follow_reference_manual(program: bytes, stack: list[object]) -> None:
    """Operators follow the reference manual; a failing operator leaves the operands that it has not popped on the stack."""
    given = stack_after(program)
    assert given == stack or (b"div" in program and given[-1] == stack[-1])


def test_programs_are_isolated_from_each_other() -> None:
    """Changes that one program makes to its initial objects are invisible to other programs."""
    wrote = b"StandardEncoding 65 /B put /Times-Roman findfont /Encoding get 66 /C put currentpagedevice /PageSize get 0 7 put "
    stack_after(wrote + b"currentdash pop 0 get currenthalftone /x 1 put /a 2 def systemdict /b 3 put")
    again = stack_after(b"StandardEncoding dup 65 get exch 66 get currentpagedevice /PageSize get 0 get currenthalftone length a b")
    assert again == ["A", "B", 612, 0]


@pytest.mark.parametrize(
    "program",
    [
        *(
            b"1e300 dup mul",
            b"1e999",
            b"1e308 10 mul neg",
            b"0 0 atan 1 0 div",
            b"1e200 dup scale 1e200 dup scale 1 1 transform add",
        ),
        *(b"1e200 dup scale 1e200 dup scale 1 1 moveto (a)show", b"[1e200 1 0 0 1 1] concat matrix currentmatrix setmatrix"),
        b"0 0 moveto 1e200 dup scale (a)[1e200 1e200]xshow currentpoint 8 8 8 matrix {()} image",
    ],
)
def test_oversized_numbers_are_program_errors(program: bytes) -> None:
    """A number that exceeds the limits is an error of the program, wherever it comes from."""
    assert stack_after(program + b" clear 1 2 add") == [3]


def test_points_are_transformed_to_device_space() -> None:
    """Points and distances are transformed to device space and back."""
    x, y, a, b = stack_after(b"10 20 translate 2 3 scale 1 1 transform 1 1 dtransform")
    assert (x, y, a, b) == (12, 23, 2, 3)
    assert stack_after(b"10 20 translate 2 3 scale 12 23 itransform 2 3 idtransform") == [pytest.approx(1)] * 4
    turned = stack_after(b"90 rotate 1 0 dtransform")
    assert turned == [pytest.approx(0), pytest.approx(1)]
    assert stack_after(b"gsave 5 5 translate grestore 0 0 transform save 5 5 translate restore 0 0 transform") == [0, 0, 0, 0]
    assert stack_after(b"1 1 moveto 2 3 rmoveto 1 1 rlineto currentpoint") == [4, 5]


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
def test_endless_program_stops_at_step_limit(program: bytes) -> None:
    """An endless program stops when its steps are used up, and uses no more than those."""
    machine = page(100, 20_000)
    with suppress(Fault):
        assert uses_up_steps(machine, program)
    assert len(machine.operands) <= 20_000


def uses_up_steps(machine: Page, program: bytes) -> bool:
    """Return whether a program has used up its steps."""
    try:
        machine.run(Source(program))
    except LimitReached:
        return True
    return False


@pytest.mark.parametrize(
    "program",
    [
        *(b"/a {a} def a", b"/a (a) cvx def a", b"/a {(a) cvx exec} def a", b"/a {{a} stopped} def a"),
        *(b"/a {true {{a} exec} if} def a", b"/a {[1] {pop a} forall} def a", b"/b {a} def /a /b load def a"),
        *(b"/a {(61) /ASCIIHexDecode filter cvx exec} def a", b"[" * 900 + b"{" * 900, b"{" * 90 + b"}" * 90 + b" exec"),
        b"/F {<</FontType 3 /FontMatrix matrix /BuildChar {pop pop F 0 0 moveto (a) show}>> setfont} def F 0 0 moveto (a) show",
    ],
)
def test_recursion_hits_machine_limit(program: bytes) -> None:
    """Recursion of a program hits the limit of the machine, never Python's recursion limit."""
    machine = page(100, 20_000)
    with suppress(LimitReached, Fault):
        machine.run(Source(program))
    assert (machine.files, machine.depth, machine.guarded) == ([], 0, 0)


_WORDS = sorted(str(name) for name in page(1, 1).system if isinstance(name, str))
_TOKENS = st.sampled_from(
    [*_WORDS, "(a)", "(b c)", "/a", "/F", "0", "1", "2", "-1", "1.5", "{", "}", "[", "]", "<<", ">>", "65535"]
)


@settings(max_examples=300)
@given(st.lists(_TOKENS, max_size=60))
def test_any_program_ends_with_declared_errors(tokens: list[str]) -> None:
    """Any program ends, and raises only the machine's declared exceptions."""
    machine = page(100, 3_000)
    try:
        machine.run(Source(b"/Times-Roman findfont setfont 0 0 moveto " + " ".join(tokens).encode()))
    except (LimitReached, Fault):
        assert machine.steps < 3_000
    assert machine.room >= -200
    assert (machine.files, machine.depth, machine.guarded) == ([], 0, 0)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_scanned_once(raw: bytes) -> None:
    """The scanner reads any bytes to the end, each byte once."""
    source = Source(raw)
    machine = Machine(Operators(), 1_000)
    seen = 0
    while machine.read(source) is not END:
        seen += 1
    assert source.at == len(raw)
    assert seen <= len(raw)


def test_procedures_and_names_are_scanned() -> None:
    """The scanner reads nested procedures and both literal and executable names."""
    source = Source(b"{1 {a} /b} /c c")
    machine = Machine(Operators(), 100)
    procedure = machine.read(source)
    assert procedure == Procedure([1, Procedure([Word("a")]), "b"])
    assert [type(machine.read(source)).__name__ for _ in range(2)] == ["Name", "Word"]
