"""Operators of arrays, strings and dictionaries (PLRM, 8.1)."""

from __future__ import annotations

from processors.essence.formats.postscript.machine import Machine, Operators
from processors.essence.formats.postscript.objects import LARGEST, MARK, NESTED, STACK, Fault, LimitReached, Procedure, Text, key
from processors.essence.formats.postscript.operators import pop_to_mark
from processors.essence.formats.postscript.scan import Source

CONTAINERS = Operators()


@CONTAINERS.named("array")
def _array(m: Machine) -> None:
    m.push([None] * m.count())


@CONTAINERS.named("string")
def _string(m: Machine) -> None:
    m.push(Text(bytes(m.count())))


@CONTAINERS.named("dict")
def _dict(m: Machine) -> None:
    m.whole()
    # dvips names the font that it defines next only in a comment.
    source = m.files[-1] if m.files else Source(b"")
    m.push({"TeX": source.bitmaps} if source.bitmaps else {})
    source.bitmaps = ""


CONTAINERS |= {"[": lambda m: m.push(MARK), "<<": lambda m: m.push(MARK), "]": lambda m: m.push(pop_to_mark(m))}


@CONTAINERS.named(">>")
def _dict_of(m: Machine) -> None:
    part = pop_to_mark(m)
    m.push({key(name): value for name, value in zip(part[::2], part[1::2], strict=False)})


@CONTAINERS.named("packedarray")
def _packedarray(m: Machine) -> None:
    many = m.count()
    part = m.operands[len(m.operands) - many :] if many else []
    del m.operands[len(m.operands) - many :]
    m.push(part)


@CONTAINERS.named("aload")
def _aload(m: Machine) -> None:
    array = m.array()
    m.pay(len(array))
    if len(array) + len(m.operands) > STACK:
        raise LimitReached
    m.operands += (*array, array)


@CONTAINERS.named("astore")
def _astore(m: Machine) -> None:
    array = m.array()
    if len(array) > len(m.operands):
        raise Fault("stackunderflow")
    m.pay(len(array))
    at = len(m.operands) - len(array)
    array[:] = m.operands[at:]
    m.operands[at:] = [array]


@CONTAINERS.named("length")
def _length(m: Machine) -> None:
    value = m.pop()
    if isinstance(value, Text):
        m.push(len(value.data))
    elif isinstance(value, dict | list | str):
        m.push(len(value))
    else:
        raise Fault("typecheck")


CONTAINERS["maxlength"] = lambda m: m.push(LARGEST) if isinstance(m.pop(), dict) else None


@CONTAINERS.named("get")
def _get(m: Machine) -> None:
    at, of = m.pop(), m.pop()
    if isinstance(of, dict):
        if key(at) not in of:
            raise Fault("undefined")
        m.push(of[key(at)])
        return
    values = of.data if isinstance(of, Text) else m.listed(of)
    if not isinstance(at, int) or not 0 <= at < len(values):
        raise Fault("rangecheck")
    m.push(values[at])


@CONTAINERS.named("put")
def _put(m: Machine) -> None:
    value, at, of = m.pop(), m.pop(), m.pop()
    if isinstance(of, dict):
        of[key(at)] = value
        return
    values = of.data if isinstance(of, Text) else m.listed(of)
    if not isinstance(at, int) or not 0 <= at < len(values):
        raise Fault("rangecheck")
    if not isinstance(of, Text):
        m.listed(of)[at] = value
    elif isinstance(value, int):
        of.data[at] = value & 0xFF


@CONTAINERS.named("getinterval")
def _getinterval(m: Machine) -> None:
    many, at, of = m.count(), m.whole(), m.pop()
    if at < 0:
        raise Fault("rangecheck")
    if isinstance(of, Text):
        m.push(Text(of.data[at : at + many]))
    else:
        part = m.listed(of)[at : at + many]
        m.push(Procedure(part) if isinstance(of, Procedure) else part)


@CONTAINERS.named("putinterval")
def _putinterval(m: Machine) -> None:
    part, at, of = m.pop(), m.whole(), m.pop()
    if isinstance(of, Text) and isinstance(part, Text):
        m.pay(len(part.data) >> 4)
        if not 0 <= at <= len(of.data) - len(part.data):
            raise Fault("rangecheck")
        of.data[at : at + len(part.data)] = part.data
    else:
        m.pay(len(m.listed(part)) >> 4)
        if not 0 <= at <= len(m.listed(of)) - len(m.listed(part)):
            raise Fault("rangecheck")
        m.listed(of)[at : at + len(m.listed(part))] = m.listed(part)


@CONTAINERS.named("search")
def _search(m: Machine) -> None:
    what, of = m.text(), m.text()
    m.pay(len(of.data) >> 4)
    before, found, behind = of.data.partition(what.data) if what.data else (b"", b"", of.data)
    m.operands += (Text(behind), Text(found), Text(before), True) if found or not what.data else (of, False)


@CONTAINERS.named("anchorsearch")
def _anchorsearch(m: Machine) -> None:
    what, of = m.text(), m.text()
    m.pay(len(of.data) >> 4)
    m.operands += (Text(of.data[len(what.data) :]), what, True) if of.data.startswith(what.data) else (of, False)


@CONTAINERS.named("begin")
def _begin(m: Machine) -> None:
    if len(m.names) > NESTED:
        raise Fault("dictstackoverflow")
    m.names.append(m.dictionary(m.pop()))


@CONTAINERS.named("end")
def _end(m: Machine) -> None:
    if len(m.names) <= 2:
        raise Fault("dictstackunderflow")
    m.names.pop()


@CONTAINERS.named("def")
def _def(m: Machine) -> None:
    value, name = m.pop(), m.pop()
    m.names[-1][key(name)] = value


@CONTAINERS.named("store")
def _store(m: Machine) -> None:
    value, name = m.pop(), key(m.pop())
    names = m.known(name)
    (m.names[-1] if names is None else names)[name] = value


@CONTAINERS.named("load")
def _load(m: Machine) -> None:
    m.push(m.find(key(m.pop())))


@CONTAINERS.named("where")
def _where(m: Machine) -> None:
    name = key(m.pop())
    holder = m.known(name)
    m.operands += (False,) if holder is None else (holder, True)


@CONTAINERS.named("known")
def _known(m: Machine) -> None:
    name, names = key(m.pop()), m.dictionary(m.pop())
    m.push(name in names)


@CONTAINERS.named("undef")
def _undef(m: Machine) -> None:
    name, names = key(m.pop()), m.dictionary(m.pop())
    names.pop(name, None)


CONTAINERS["currentdict"] = lambda m: m.push(m.names[-1])
CONTAINERS["countdictstack"] = lambda m: m.push(len(m.names))


@CONTAINERS.named("cleardictstack")
def _cleardictstack(m: Machine) -> None:
    del m.names[2:]


@CONTAINERS.named("dictstack")
def _dictstack(m: Machine) -> None:
    m.array()
    m.push(list(m.names))
