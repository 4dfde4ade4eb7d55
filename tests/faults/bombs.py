"""Files that exhaust memory, disk or time of their reader, and archives whose names point outside."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache

from tests.processors.essence.test_quine import solved

ZEROS = bytes(1 << 20)


def zipped(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Build a zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Build a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def overlapping() -> bytes:
    """A zip whose entries share one body."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kernel", ZEROS)
        (info,) = archive.infolist()
        for number in range(500):
            copy = zipfile.ZipInfo(f"{number}")
            for field in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                setattr(copy, field, getattr(info, field))
            archive.filelist.append(copy)
    return out.getvalue()


def itself() -> bytes:
    """A zip whose only entry starts at the start of the zip."""
    name, head = b"x.zip", struct.pack("<4s5HIIIHH", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 5, 0)
    size = len(head) + len(name) + 46 + len(name) + 22
    central = struct.pack("<4s6HIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, size, size, 5, 0, 0, 0, 0, 0, 0)
    end = struct.pack("<4s4HIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central) + 5, len(head) + 5, 0)
    return head + name + central + name + end


def nested(levels: int) -> bytes:
    """Bombs nested in bombs."""
    data = zipped((f"z{n}", ZEROS * 4) for n in range(8))
    for _ in range(levels):
        data = zipped((f"n{n}.zip", data) for n in range(8))
    return data


def deep(levels: int) -> bytes:
    """Nested archives, each with a text beside the next one."""
    data = b"the end\n"
    for level in range(levels):
        data = tarred([(f"{level}.tar", data), (f"{level}.txt", b"level %d\n" % level)])
    return data


def deeply_compressed(levels: int) -> bytes:
    """Data that is compressed repeatedly."""
    data = b"words\n"
    for _ in range(levels):
        data = gzip.compress(data, mtime=0)
    return data


@cache
def bombs() -> Mapping[str, tuple[bytes, str]]:
    """Files by name, each with a part of the reason for its rejection."""
    return {
        "bomb.zip": (zipped((f"z{n}", ZEROS * 2) for n in range(12)), "times its own size"),
        "bomb.gz": (gzip.compress(ZEROS * 100, 9, mtime=0), "times its own size"),
        "bomb.tar.xz": (lzma.compress(tarred((f"z{n}", ZEROS * 4) for n in range(6))), "times its own size"),
        "nested.zip": (nested(3), "times its own size"),
        "quine.gz": (solved(), "nested more than 8 deep"),
        "quine.zip": (itself(), "overlap"),
        "overlapping.zip": (overlapping(), "overlap"),
        "many.zip": (zipped((f"{n}", b"") for n in range(1_200)), "more than 1000 members"),
        "many.tar": (tarred((f"{n}", b"") for n in range(1_200)), "more than 1000 members"),
        "deep.gz": (deeply_compressed(20), "nested more than 8 deep"),
    }


def leading_out() -> bytes:
    """A tar with names and links that point outside of it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("../../outside.txt", "/outside.txt", "a/../../outside.txt", "nul.txt"):
            info = tarfile.TarInfo(name)
            info.size = 6
            archive.addfile(info, io.BytesIO(b"words\n"))
        for name, kind, target in (("link", tarfile.SYMTYPE, "/etc/passwd"), ("hard", tarfile.LNKTYPE, "../../outside.txt")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
        under = tarfile.TarInfo("link/outside.txt")
        under.size = 6
        archive.addfile(under, io.BytesIO(b"words\n"))
        device = tarfile.TarInfo("device")
        device.type, device.devmajor, device.devminor = tarfile.BLKTYPE, 8, 0
        archive.addfile(device)
    return out.getvalue()
