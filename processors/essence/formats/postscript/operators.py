"""Operators of the stack, control flow and types (PLRM, 8.1)."""

from __future__ import annotations

import operator
from collections.abc import Iterator

from processors.essence.formats.postscript.machine import Machine, Operators
from processors.essence.formats.postscript.objects import (
    LARGEST,
    MARK,
    STACK,
    WORD,
    Exit,
    Fault,
    Halt,
    LimitReached,
    Mark,
    Name,
    Procedure,
    Text,
    Word,
    bounded,
    key,
)
from processors.essence.formats.postscript.scan import Program, Source, number

LANGUAGE = Operators()

LANGUAGE.ignore("flush executive prompt startjob pstack quit", 0)
LANGUAGE.ignore("run = == print closefile resetfile srand setglobal setpacking setvmthreshold vmreclaim echo", 1)
LANGUAGE.ignore("setpagedevice setuserparams setsystemparams setobjectformat undefineuserobject deletefile", 1)
LANGUAGE.ignore("write writestring writehexstring undefineresource defineuserobject renamefile printobject setdevparams", 2)
LANGUAGE.ignore("resourceforall", 4)
LANGUAGE.ignore("filenameforall internaldict", 3)
LANGUAGE.ignore("countexecstack", 0, (0,))
LANGUAGE.ignore("currentglobal currentpacking", 0, (False,))
LANGUAGE.ignore("gcheck", 1, (True,))
LANGUAGE.ignore("rcheck wcheck", 1, (True,))
LANGUAGE.ignore("executeonly noaccess readonly", 0)
LANGUAGE.ignore("status", 1, (False,))
LANGUAGE.ignore("rand realtime usertime", 0, (0,))
LANGUAGE.ignore("vmstatus", 0, (0, 0, LARGEST))
LANGUAGE.ignore("bytesavailable", 1, (-1,))
LANGUAGE.ignore("resourcestatus", 2, (False,))
LANGUAGE.ignore("currentuserparams currentsystemparams", 0, ({},))


# The stack (PLRM, 8.1).


@LANGUAGE.named("pop")
def _pop(m: Machine) -> None:
    m.pop()


@LANGUAGE.named("exch")
def _exch(m: Machine) -> None:
    top, below = m.pop(), m.pop()
    m.operands += (top, below)


@LANGUAGE.named("dup")
def _dup(m: Machine) -> None:
    top = m.pop()
    m.operands.append(top)
    m.push(top)


@LANGUAGE.named("copy")
def _copy(m: Machine) -> None:
    top = m.pop()
    if isinstance(top, dict):
        top.update(m.dictionary(m.pop()))
        m.pay(len(top))
        m.push(top)
    elif isinstance(top, Text | list):
        m.push(top)
        _copy_part(m)
    else:
        m.push(top)
        many = m.count()
        if many > len(m.operands):
            raise Fault("stackunderflow")
        if len(m.operands) + many > STACK:
            raise LimitReached
        m.operands += m.operands[len(m.operands) - many :]


def _copy_part(m: Machine) -> None:
    into, of = m.pop(), m.pop()
    if isinstance(into, Text) and isinstance(of, Text):
        into.data[: len(of.data)] = of.data
        m.pay(len(of.data) >> 4)
        m.push(Text(of.data))
    else:
        m.listed(into)[: len(m.listed(of))] = m.listed(of)
        m.pay(len(m.listed(of)))
        m.push(m.listed(into)[: len(m.listed(of))])


@LANGUAGE.named("index")
def _index(m: Machine) -> None:
    at = m.whole()
    if not 0 <= at < len(m.operands):
        raise Fault("rangecheck")
    m.push(m.operands[-1 - at])


@LANGUAGE.named("roll")
def _roll(m: Machine) -> None:
    by = m.whole()
    many = m.count()
    if many > len(m.operands):
        raise Fault("stackunderflow")
    if many:
        part = m.operands[-many:]
        at = -by % many
        m.operands[-many:] = part[at:] + part[:at]


@LANGUAGE.named("clear")
def _clear(m: Machine) -> None:
    m.operands.clear()


@LANGUAGE.named("count")
def _count(m: Machine) -> None:
    m.push(len(m.operands))


@LANGUAGE.named("counttomark")
def _counttomark(m: Machine) -> None:
    m.push(len(m.operands) - 1 - _marked(m))


@LANGUAGE.named("cleartomark")
def _cleartomark(m: Machine) -> None:
    del m.operands[_marked(m) :]


def _marked(m: Machine) -> int:
    """Return the index of the topmost mark."""
    try:
        above = operator.indexOf(reversed(m.operands), MARK)
    except ValueError:
        m.pay(len(m.operands) >> 4)
        raise Fault("unmatchedmark") from None
    m.pay(above >> 4)
    return len(m.operands) - 1 - above


def pop_to_mark(m: Machine) -> list[object]:
    """Pop the topmost mark and the operands above it; return these."""
    at = _marked(m)
    part = m.operands[at + 1 :]
    del m.operands[at:]
    return part


# Control flow (PLRM, 8.1).


@LANGUAGE.named("exec")
def _exec(m: Machine) -> None:
    m.execute(m.pop())


@LANGUAGE.named("if")
def _if(m: Machine) -> None:
    body, asked = m.array(), m.pop()
    if asked is True:
        m.call(body)


@LANGUAGE.named("ifelse")
def _ifelse(m: Machine) -> None:
    other, body, asked = m.array(), m.array(), m.pop()
    m.call(body if asked is True else other)


@LANGUAGE.named("for")
def _for(m: Machine) -> None:
    body, (first, by, last) = m.array(), m.numbers(3)

    def values() -> Iterator[tuple[object, ...]]:
        value = first
        while value <= last if by > 0 else value >= last:
            yield (value,)
            value = bounded(value + by)

    m.repeated(values(), body)


@LANGUAGE.named("repeat")
def _repeat(m: Machine) -> None:
    body, many = m.array(), m.whole()
    m.repeated((() for _ in range(many)), body)


@LANGUAGE.named("loop")
def _loop(m: Machine) -> None:
    m.repeated(iter(tuple, None), m.array())


@LANGUAGE.named("forall")
def _forall(m: Machine) -> None:
    body, of = m.array(), m.pop()
    if isinstance(of, dict):
        m.pay(len(of))
        m.repeated(((Name(k) if isinstance(k, str) else k, v) for k, v in list(of.items())), body)
    elif isinstance(of, Text):
        m.repeated(((each,) for each in bytes(of.data)), body)
    else:
        m.pay(len(m.listed(of)))
        m.repeated(((each,) for each in list(m.listed(of))), body)


@LANGUAGE.named("exit")
def _exit(m: Machine) -> None:
    raise Exit


@LANGUAGE.named("stop")
def _stop(m: Machine) -> None:
    raise Halt


@LANGUAGE.named("stopped")
def _stopped(m: Machine) -> None:
    m.push(m.stopped(m.pop()))


@LANGUAGE.named("bind")
def _bind(m: Machine) -> None:
    body = m.pop()
    waiting = [body] if isinstance(body, Procedure) else []
    while waiting:
        procedure = waiting.pop()
        if procedure.bound:
            continue
        procedure.bound = True
        m.pay(len(procedure))
        for at, item in enumerate(procedure):
            if isinstance(item, Procedure):
                waiting.append(item)
            elif isinstance(item, Word):
                names = m.known(item)
                value = names[item] if names is not None else None
                procedure[at] = value if callable(value) else item
    m.push(body)


# Types (PLRM, 8.1).

_TYPES = {
    bool: "boolean", int: "integer", float: "real", Text: "string", Name: "name", Word: "name", dict: "dict", Mark: "mark",
    Program: "file", list: "array", Procedure: "array", type(None): "null",
}  # fmt: skip


@LANGUAGE.named("type")
def _type(m: Machine) -> None:
    value = m.pop()
    usual = "file" if isinstance(value, Source) else "operator" if callable(value) else "save"
    m.push(Word(f"{_TYPES.get(value.__class__, usual)}type"))


@LANGUAGE.named("cvx")
def _cvx(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.pay(len(value.data) >> 4)
        m.push(Text(value.data, code=True))
    elif isinstance(value, list):
        m.pay(len(value) >> 2)
        m.push(value if isinstance(value, Procedure) else Procedure(value))
    else:
        m.push(Word(value) if isinstance(value, str) else Program(value) if isinstance(value, Source) else value)


@LANGUAGE.named("cvlit")
def _cvlit(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.pay(len(value.data) >> 4)
        m.push(Text(value.data))
    elif isinstance(value, list):
        m.pay(len(value) >> 2)
        m.push(list(value))
    else:
        m.push(Name(value) if isinstance(value, str) else value.source if isinstance(value, Program) else value)


@LANGUAGE.named("xcheck")
def _xcheck(m: Machine) -> None:
    value = m.pop()
    m.push(isinstance(value, Procedure | Word | Program) or callable(value) or (isinstance(value, Text) and value.code))


@LANGUAGE.named("cvn")
def _cvn(m: Machine) -> None:
    value = m.text()
    name = str(key(value))
    m.push(Word(name) if value.code else Name(name))


def _converted(m: Machine) -> float:
    value = m.pop()
    if isinstance(value, Text):
        value = number(bytes(value.data[:WORD]).strip())
    if isinstance(value, int | float):
        return bounded(value)
    raise Fault("typecheck")


LANGUAGE["cvi"] = lambda m: m.push(bounded(int(_converted(m))))
LANGUAGE["cvr"] = lambda m: m.push(float(_converted(m)))


@LANGUAGE.named("cvs")
def _cvs(m: Machine) -> None:
    m.text()
    m.push(Text(_shown(m.pop()).encode("latin-1", "replace")))


def _shown(value: object) -> str:
    """Return an object in the notation of `cvs`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if value != int(value) else f"{value:.1f}"
    return str(key(value)) if isinstance(value, Text | str | int) else "--nostringval--"


@LANGUAGE.named("cvrs")
def _cvrs(m: Machine) -> None:
    m.text()
    radix, value = m.whole(), m.whole()
    digits = ""
    while value > 0 and 2 <= radix <= 36:
        value, digit = divmod(value, radix)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit] + digits
    m.push(Text((digits or "0").encode()))
