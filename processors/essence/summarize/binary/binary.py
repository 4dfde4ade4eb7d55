"""Programs, libraries and objects: format, machine, needed libraries, defined symbols, strings (seed 003, table 3, Binary).

ELF (gABI 4.1), PE (Microsoft, PE Format), Mach-O (mach-o/loader.h) and Java classes have a reader each, which follows the tables of
the format and reads a bounded part of each. Of other types that extend Binary, only the strings are added.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import name_at, read_at, unpack
from processors.essence.summarize.binary._classfile import FIRST, add_class

TABLE = 131_072
"""Bytes of a table that are read; of a table of names, four times as many."""
SECTIONS = 2_000
COMMANDS = 500
SYMBOLS = 150

ELF_TYPES = {1: "object", 2: "executable", 3: "shared object", 4: "core"}
ELF_MACHINES = {
    2: "SPARC", 3: "x86", 4: "68000", 8: "MIPS", 15: "PA-RISC", 20: "PowerPC", 21: "PowerPC64", 22: "S390", 40: "ARM", 42: "SuperH",
    43: "SPARC v9", 50: "IA-64", 62: "x86-64", 94: "Xtensa", 183: "AArch64", 189: "MicroBlaze", 243: "RISC-V", 247: "BPF",
    258: "LoongArch", 0x9026: "Alpha",
}  # fmt: skip
PE_MACHINES = {
    0x14C: "x86",
    0x8664: "x86-64",
    0x1C0: "ARM",
    0x1C4: "ARM",
    0xAA64: "AArch64",
    0x200: "IA-64",
    0x5064: "RISC-V",
    0xEBC: "EFI",
}
MACH_MACHINES = {7: "x86", 0x1000007: "x86-64", 12: "ARM", 0x100000C: "AArch64", 18: "PowerPC", 0x1000012: "PowerPC64"}
MACH_TYPES = {
    1: "object",
    2: "executable",
    4: "core",
    6: "shared library",
    8: "bundle",
    9: "shared library stub",
    10: "debug symbols",
}
VERSION_KEYS = {
    "FileDescription": "description", "ProductName": "product", "CompanyName": "organization", "FileVersion": "version",
    "LegalCopyright": "copyright", "InternalName": "internal-name",
}  # fmt: skip
_COMPILER = re.compile(rb"[\x20-\x7e]{6,120}")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add format, machine, libraries, soname, symbols, and the attributes of Unrecognized: title, strings."""
    head = body.read(64)
    if head.startswith(b"\xca\xfe\xba\xbe") and (unpack(">H", head, 6) or (0,))[0] > FIRST:
        add_class(body, found)
        found.set("title", facts.name.decode("utf-8", "replace"), 300)
        return
    if head.startswith(b"\x7fELF"):
        _elf(body, head, found)
    elif head.startswith(b"MZ"):
        _pe(body, head, found)
    elif head[:4] in (b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf"):
        _mach(body, head, found)
    body.seek(0)
    unrecognized.run(facts, body, found)


def _elf(body: BinaryIO, head: bytes, found: Found) -> None:
    wide, order = head[4:5] == b"\2", ">" if head[5:6] == b"\2" else "<"
    kind = unpack(f"{order}HH", head, 16)
    tables = unpack(f"{order}QI6H" if wide else f"{order}II6H", head, 40 if wide else 32)
    if not kind or not tables:
        return
    found.add("format", f"ELF {64 if wide else 32}-bit {ELF_TYPES.get(kind[0], 'file')}")
    found.add("machine", ELF_MACHINES.get(kind[1], str(kind[1])))
    place, size, count = tables[0], tables[5], min(tables[6], SECTIONS)
    form = f"{order}IIQQQQIIQQ" if wide else f"{order}10I"
    raw = read_at(body, place, size * count)
    # Fields of a section: 0 name, 1 type, 4 offset, 5 size, 6 link.
    sections = [s for n in range(count) if (s := unpack(form, raw, n * size))]
    symbols: list[str] = []
    for section in sections:
        names = sections[section[6]] if section[6] < len(sections) else section
        if section[1] == 6:
            _dynamic(body, section, names, f"{order}qQ" if wide else f"{order}iI", found)
        elif section[1] in (11, 2) and not symbols:
            symbols = _elf_symbols(body, section, names, f"{order}IBBHQQ" if wide else f"{order}IIIBBH")
        elif section[1] == 1 and section[5] < 1_000 and not section[2] & 2:
            for comment in _COMPILER.findall(read_at(body, section[4], section[5])):
                if comment.startswith((b"GCC: ", b"clang", b"rustc", b"Linker: ")):
                    found.add("compiler", comment.decode("ascii"))
    for name in symbols[:SYMBOLS]:
        found.add("symbols", name, 200)


def _dynamic(body: BinaryIO, section: tuple[int, ...], names: tuple[int, ...], form: str, found: Found) -> None:
    """Add the needed libraries, the soname and the library path from the dynamic section (gABI, 5)."""
    raw, text = read_at(body, section[4], min(section[5], TABLE)), read_at(body, names[4], min(names[5], 4 * TABLE))
    size = 16 if "q" in form else 8
    for at in range(0, len(raw), size):
        tag, value = unpack(form, raw, at) or (0, 0)
        if not tag:
            break
        meant = {1: "libraries", 14: "soname", 15: "library-path", 29: "library-path"}.get(tag, "")
        if meant:
            found.add(meant, name_at(text, value), 300)


def _elf_symbols(body: BinaryIO, section: tuple[int, ...], names: tuple[int, ...], form: str) -> list[str]:
    """Return the names of functions and objects that are defined here and visible to other files (gABI, 4)."""
    raw, text = read_at(body, section[4], min(section[5], TABLE)), read_at(body, names[4], min(names[5], 4 * TABLE))
    wide = "Q" in form
    defined = []
    for at in range(0, len(raw), 24 if wide else 16):
        symbol = unpack(form, raw, at)
        if symbol:
            name, info, index = (symbol[0], symbol[1], symbol[3]) if wide else (symbol[0], symbol[3], symbol[5])
            if index and info >> 4 in (1, 2, 10) and info & 15 in (1, 2, 10):
                defined.append(name_at(text, name))
    return [name for name in defined if name]


def _pe(body: BinaryIO, head: bytes, found: Found) -> None:
    place = unpack("<I", head, 60)
    header = read_at(body, place[0], 24 + 240) if place else b""
    coff = unpack("<HHIIIHH", header, 4)
    if not header.startswith(b"PE\0\0") or not coff:
        found.add("format", "DOS executable")
        return
    wide = header[24:26] == b"\x0b\x02"
    found.add("format", f"PE{64 if wide else 32} {'library' if coff[6] & 0x2000 else 'executable'}")
    found.add("machine", PE_MACHINES.get(coff[0], str(coff[0])))
    raw = read_at(body, place[0] + 24 + coff[5], 40 * min(coff[1], 96))
    # Fields of a section: address in memory, size in the file, offset in the file.
    sections = [s for at in range(0, len(raw), 40) if (s := unpack("<III", raw, at + 12))]
    tables = [t for n in range(3) if (t := unpack("<II", header, 24 + (112 if wide else 96) + 8 * n))]

    def at(address: int, size: int) -> bytes:
        """Return the bytes at an address in memory."""
        for start, length, offset in sections:
            if start <= address < start + length:
                return read_at(body, offset + address - start, min(size, start + length - address))
        return b""

    if len(tables) == 3:
        exports = unpack("<5I", at(tables[0][0], 40), 12) if tables[0][0] else ()
        if exports:
            found.add("soname", name_at(at(exports[0], 300), 0))
            addresses = at((unpack("<I", at(tables[0][0] + 32, 4)) or (0,))[0], 4 * min(exports[3], SYMBOLS))
            for n in range(len(addresses) // 4):
                found.add("symbols", name_at(at(unpack("<I", addresses, 4 * n)[0], 300), 0), 200)
        imports = at(tables[1][0], 20 * 200) if tables[1][0] else b""
        for n in range(len(imports) // 20):
            name = unpack("<I", imports, 20 * n + 12)[0]
            if not name:
                break
            found.add("libraries", name_at(at(name, 300), 0), 300)
        _version(at(tables[2][0], 4 * TABLE) if tables[2][0] else b"", found)


def _version(resources: bytes, found: Found) -> None:
    """Add the texts of the version resource: UTF-16, a key and its value, each padded to four bytes."""
    for key, meant in VERSION_KEYS.items():
        place = resources.find(key.encode("utf-16-le") + b"\0\0")
        if place >= 0:
            raw = resources[place + 2 * len(key) + 2 :][:800]
            value = raw[: len(raw) & ~1].decode("utf-16-le", "replace").lstrip("\0").partition("\0")[0]
            found.add(meant, value, 300)


def _mach(body: BinaryIO, head: bytes, found: Found) -> None:
    base = 0
    if head.startswith(b"\xca\xfe\xba\xbe"):
        count = unpack(">I", head, 4)
        # A Java class begins with the same four bytes; in place of the count it has its version, which is 45 or more.
        if not count or not 0 < count[0] < 40:
            return
        for cpu, *_ in filter(None, (unpack(">5I", read_at(body, 8, 800), 20 * n) for n in range(count[0]))):
            found.add("machine", MACH_MACHINES.get(cpu, str(cpu)))
        base = (unpack(">I", head, 16) or (0,))[0]
        head = read_at(body, base, 64)
    order = "<" if head[:1] in (b"\xce", b"\xcf") else ">"
    wide = head[:4] in (b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf")
    header = unpack(f"{order}6I", head, 4)
    if not header:
        return
    found.add("format", f"Mach-O {64 if wide else 32}-bit {MACH_TYPES.get(header[2], 'file')}")
    found.add("machine", MACH_MACHINES.get(header[0], str(header[0])))
    raw = read_at(body, base + (32 if wide else 28), min(header[4], TABLE))
    at = 0
    for _ in range(min(header[3], COMMANDS)):
        command = unpack(f"{order}6I", raw, at)
        if not command or command[1] < 8:
            break
        meant = {0xC: "libraries", 0x80000018: "libraries", 0x8000001F: "libraries", 0xD: "soname", 0xE: "interpreter"}.get(
            command[0], ""
        )
        if meant:
            found.add(meant, name_at(raw[: at + command[1]], at + command[2]), 300)
        elif command[0] == 2:
            _mach_symbols(body, base, command, order, wide=wide, found=found)
        at += command[1]


def _mach_symbols(body: BinaryIO, base: int, command: tuple[int, ...], order: str, *, wide: bool, found: Found) -> None:
    """Add the external symbols that are defined in some section (mach-o/nlist.h)."""
    size = 16 if wide else 12
    raw = read_at(body, base + command[2], min(command[3] * size, TABLE))
    text = read_at(body, base + command[4], min(command[5], 4 * TABLE))
    given = 0
    for at in range(0, len(raw), size):
        symbol = unpack(f"{order}IBB", raw, at)
        if symbol and given < SYMBOLS and symbol[1] & 0xEF == 0x0F:
            found.add("symbols", name_at(text, symbol[0]), 200)
            given += 1


SUMMARIZER = Summarizer(types=("Binary",), run=run)
