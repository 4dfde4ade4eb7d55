"""Width and height of images, from their first bytes, at the offsets of each format's specification.

Most formats have both at a fixed offset (`HEADERS`, `STATED`), some as text (`_TEXTS`); the others have a function each
(`READERS`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

from processors.essence.summarize.binary._binary import unpack

Size = tuple[int, int]
"""Width and height in pixels."""

HEADERS: tuple[tuple[bytes, str, int], ...] = (
    *((b"\x89PNG", ">II", 16), (b"\x8aMNG", ">II", 16), (b"\x8bJNG", ">II", 16), (b"GIF8", "<HH", 6), (b"gimp xcf", ">II", 14)),
    *((b"qoif", ">II", 4), (b"\x59\xa6\x6a\x95", ">II", 4), (b"\x01\xda", ">HH", 6), (b"SDPX", ">II", 772), (b"XPDS", "<II", 772)),
    *((b"\xabKTX 11", "<II", 36), (b"\xabKTX 20", "<II", 20), (b"PGF", "<II", 8), (b"FOVb", "<II", 28), (b"KiSS", "<HH", 8)),
)
"""Signature, and format and offset of width and height."""
TALL: tuple[tuple[bytes, str, int], ...] = ((b"8BPS", ">II", 14), (b"DDS ", "<II", 12))
"""Formats with the height first."""
STATED: Mapping[str, tuple[str, int]] = {
    "image/x-tga": ("<HH", 12), "image/x-xwindowdump": (">II", 16), "image/x-gimp-gbr": (">II", 8), "image/x-gimp-pat": (">II", 8),
    "image/x-pix": (">HH", 0), "image/x-mrc": ("<II", 0),
}  # fmt: skip
"""Formats without a signature, by media type."""
ICONS = {
    b"ic10": 1_024, b"ic14": 512, b"ic09": 512, b"ic13": 256, b"ic08": 256, b"ic07": 128, b"it32": 128, b"ic12": 64, b"icp6": 64,
    b"ih32": 48, b"ic11": 32, b"icp5": 32, b"il32": 32, b"icp4": 16, b"is32": 16, b"ICN#": 32, b"icl8": 32, b"ics8": 16,
}  # fmt: skip
"""Width and height in pixels by element of an Apple icon."""
ELEMENTS = 100
TEXT = 4_096
"""Maximum bytes before the size in a text format."""
_GAP = rb"(?:\s|\#[^\n]*\n|(?!))++"
_TEXTS = tuple(
    re.compile(pattern, re.VERBOSE)
    for pattern in (
        rb"\AP[1-6Ff]" + _GAP + rb"(?P<width>\d+)" + _GAP + rb"(?P<height>\d+)",
        rb"\AP7\n(?:[^\n]*\n){0,50}?WIDTH\ (?P<width>\d+)\s+HEIGHT\ (?P<height>\d+)",
        rb"\A\#\?R(?:[^\n]*\n){0,50}?[-+]Y\ (?P<height>\d+)\ [-+]X\ (?P<width>\d+)\n",
        rb"\Aid=ImageMagick(?=[^\x1a]*?\bcolumns=(?P<width>\d+))(?=[^\x1a]*?\brows=(?P<height>\d+))",
        rb"\A/\*\ XPM\ \*/[^\"]*\"\s*(?P<width>\d+)\s+(?P<height>\d+)\s",
        rb"\A!\ XPM2[^\n]*\n\s*(?P<width>\d+)\s+(?P<height>\d+)\s",
        rb"\A(?:/\*.*?\*/\s*)?\#define\s+\w*width\s+(?P<width>\d+)\s+\#define\s+\w*height\s+(?P<height>\d+)",
    )
)
"""Netpbm and its float maps, PAM, Radiance, MIFF, XPM, XPM 2 and XBM."""


def size_of(raw: bytes, media: str = "") -> Size | None:
    """Return the size of an image from its first bytes and media type; None if they do not contain it."""
    if media in STATED:
        form, at = STATED[media]
        return _positive(unpack(form, raw, at))
    for starts, turned in ((HEADERS, False), (TALL, True)):
        for start, form, at in starts:
            if raw.startswith(start):
                return _positive(unpack(form, raw, at)[:: -1 if turned else 1])
    for start, place, reader in READERS:
        if raw.startswith(start, place):
            return _positive(reader(raw) or ())
    if media == "image/vnd.wap.wbmp":
        return _positive(_counted(raw, 2, 0))
    if media == "image/x-pict":
        return _positive(_pict(raw))
    text = next(filter(None, (pattern.match(raw[:TEXT]) for pattern in _TEXTS)), None)
    return _positive((int(text["width"]), int(text["height"]))) if text and len(text["width"] + text["height"]) <= 20 else None


def _positive(size: tuple[int, ...]) -> Size | None:
    """Return a size if both numbers are positive; an unknown size is stored as zeros."""
    return (size[0], size[1]) if len(size) == 2 and min(size) > 0 else None


def jpeg_size(raw: bytes) -> Size | None:
    """Return the size in the frame header (ITU T.81, B.2.2), found by following the markers."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker, length = struct.unpack_from(">xBH", raw, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp(raw: bytes) -> Size | None:
    """Return the size in the first chunk (RFC 9649, 2.5 to 2.7): of the canvas, a lossless image, or a VP8 key frame."""
    kind = raw[12:16]
    if kind == b"VP8X" and len(raw) >= 30:
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if kind == b"VP8L" and len(raw) >= 25:
        bits = int.from_bytes(raw[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and raw[23:26] == b"\x9d\x01\x2a":
        width, height = unpack("<HH", raw, 26) or (0, 0)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _bmp(raw: bytes) -> tuple[int, ...]:
    """Return the size of a BMP: OS/2 1.x has two bytes each; a picture stored from the top has a negative height."""
    if unpack("<I", raw, 14) == (12,):
        return unpack("<HH", raw, 18)
    return tuple(map(abs, unpack("<ii", raw, 18)))


def _icon(raw: bytes) -> tuple[int, ...]:
    """Return the size of the largest picture of a Windows icon or cursor: one byte each, 0 means 256."""
    count = min((unpack("<H", raw, 4) or (0,))[0], ELEMENTS)
    sizes = [pair for n in range(count) if (pair := unpack("BB", raw, 6 + 16 * n))]
    return max(((width or 256, height or 256) for width, height in sizes), default=())


def _apple_icon(raw: bytes) -> tuple[int, ...]:
    """Return the size of the largest element of an icon (icns); elements have a name and their length."""
    at, widest = 8, 0
    for _ in range(ELEMENTS):
        name, length = unpack(">4sI", raw, at) or (b"", 0)
        widest = max(widest, ICONS.get(name, 0))
        at += max(length, 8)
    return widest, widest


def _pcx(raw: bytes, at: int = 0) -> tuple[int, ...]:
    """Return the size from the first and last column and row, both inclusive."""
    window = unpack("<4H", raw, at + 4)
    return (window[2] - window[0] + 1, window[3] - window[1] + 1) if window else ()


def _dcx(raw: bytes) -> tuple[int, ...]:
    """Return the size of the first picture in a DCX, a list of PCX."""
    return _pcx(raw, (unpack("<I", raw, 4) or (len(raw),))[0])


def _boxed(raw: bytes) -> tuple[int, ...]:
    """Return the size of the largest picture in a HEIF or AVIF (ISO/IEC 23008-12, 6.5.3), which also has tiles and thumbnails."""
    sizes = (unpack(">II", raw, each.end()) for each in re.finditer(rb"ispe\0\0\0\0", raw))
    return max(filter(None, sizes), key=lambda size: size[0] * size[1], default=())


def _jpeg2000(raw: bytes) -> tuple[int, ...]:
    """Return the size in the image header (ISO/IEC 15444-1, I.5.3.1), stored height first."""
    at = raw.find(b"ihdr")
    return unpack(">II", raw, at + 4)[::-1] if at >= 0 else ()


def _codestream(raw: bytes) -> tuple[int, ...]:
    """Return the size of JPEG 2000's grid minus the image's offset in it (ISO/IEC 15444-1, A.5.1)."""
    grid = unpack(">4I", raw, 8)
    return (grid[0] - grid[2], grid[1] - grid[3]) if grid else ()


class _Bits:
    """Reads numbers of a few bits each, the lowest bits first."""

    def __init__(self, raw: bytes) -> None:
        self._left = int.from_bytes(raw, "little")

    def take(self, count: int) -> int:
        value = self._left & (1 << count) - 1
        self._left >>= count
        return value


_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))


def _jxl(raw: bytes) -> tuple[int, ...]:
    """Return the size in JPEG XL's size header (ISO/IEC 18181-1, D.2), which is bit-packed; in a container it is in a box."""
    if not raw.startswith(b"\xff\x0a"):
        box = re.search(rb"jxl(?:c|p.{4})(?=\xff\x0a)", raw, re.DOTALL)
        raw = raw[box.end() :] if box else b""
    if len(raw) < 12:
        return ()
    bits = _Bits(raw[2:14])
    eighths = bits.take(1)

    def side() -> int:
        return 8 * (bits.take(5) + 1) if eighths else bits.take((9, 13, 18, 30)[bits.take(2)]) + 1

    height = side()
    ratio = bits.take(3)
    # The width follows from a common ratio, or is stored like the height.
    return (height * _RATIOS[ratio - 1][0] // _RATIOS[ratio - 1][1] if ratio else side()), height


def _djvu(raw: bytes) -> tuple[int, ...]:
    """Return the size of the first page (DjVu 3, 8.3.2)."""
    at = raw.find(b"INFO")
    return unpack(">HH", raw, at + 8) if at >= 0 else ()


def _counted(raw: bytes, at: int, more: int) -> tuple[int, ...]:
    """Return two numbers stored in 7-bit groups, with `more` added to each."""
    found: list[int] = []
    value = 0
    for byte in raw[at : at + 10]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value + more)
            value = 0
    return tuple(found[:2])


def _exr(raw: bytes) -> tuple[int, ...]:
    """Return the size of the data window, whose last column and row are inclusive."""
    at = raw.find(b"dataWindow\0box2i\0\x10\0\0\0")
    window = unpack("<4i", raw, at + 21) if at >= 0 else ()
    return (window[2] - window[0] + 1, window[3] - window[1] + 1) if window else ()


def _wmf(raw: bytes) -> tuple[int, ...]:
    """Return the size of a placeable metafile's box, at 96 dots an inch (MS-WMF, 2.3.2.3)."""
    left, top, right, bottom, inch = unpack("<4hH", raw, 6) or (0, 0, 0, 0, 0)
    return (abs(right - left) * 96 // inch, abs(bottom - top) * 96 // inch) if inch else ()


def _emf(raw: bytes) -> tuple[int, ...]:
    """Return the size of the bounds in device dots, the last ones inclusive (MS-EMF, 2.2.9)."""
    bounds = unpack("<4i", raw, 8)
    return (bounds[2] - bounds[0] + 1, bounds[3] - bounds[1] + 1) if bounds else ()


def _pict(raw: bytes) -> tuple[int, ...]:
    """Return the size of a QuickDraw picture's frame, which in a file follows 512 arbitrary bytes."""
    at = 2 if raw.startswith(b"\0\x11\x02\xff", 10) else 514
    top, left, bottom, right = unpack(">4h", raw, at) or (0, 0, 0, 0)
    return right - left, bottom - top


def _iff(raw: bytes) -> tuple[int, ...]:
    """Return the size in the bitmap header of an IFF."""
    at = raw.find(b"BMHD", 8)
    return unpack(">HH", raw, at + 8) if at >= 0 else ()


def _jbig2(raw: bytes) -> tuple[int, ...]:
    """Return the size in the first segment, if it is page information (ITU T.88, 7.4.8).

    The number of pages precedes it, if it is known.
    """
    at = 9 if raw[8:9] and raw[8] & 2 else 13
    return unpack(">II", raw, at + 11) if raw[at + 4 : at + 5] == b"0" else ()


def _astc(raw: bytes) -> tuple[int, ...]:
    return int.from_bytes(raw[7:10], "little"), int.from_bytes(raw[10:13], "little")


READERS: tuple[tuple[bytes, int, Callable[[bytes], tuple[int, ...] | None]], ...] = (
    *((b"\xff\xd8", 0, jpeg_size), (b"BM", 0, _bmp), (b"WEBP", 8, _webp), (b"\0\0\1\0", 0, _icon), (b"\0\0\2\0", 0, _icon)),
    *((b"ACON", 8, lambda raw: _icon(raw[raw.find(b"icon") + 8 :])), (b"\x97JB2\r\n\x1a\n", 0, _jbig2)),
    *((b"icns", 0, _apple_icon), (b"\x3a\xde\x68\xb1", 0, _dcx), (b"\xb1\x68\xde\x3a", 0, _dcx), (b"\x0a", 0, _pcx)),
    *((b"ftypjp2 ", 4, _jpeg2000), (b"\0\0\0\x0cjP", 0, _jpeg2000), (b"\xff\x4f\xff\x51", 0, _codestream)),
    *((b"ftypcrx", 4, lambda _: ()), (b"ftyp", 4, _boxed), (b"\xff\x0a", 0, _jxl), (b"\0\0\0\x0cJXL ", 0, _jxl)),
    *((b"AT&TFORM", 0, _djvu), (b"BPG\xfb", 0, lambda raw: _counted(raw, 6, 0)), (b"FLIF", 0, lambda raw: _counted(raw, 6, 1))),
    *(
        (b"v/1\x01", 0, _exr),
        (b"\xd7\xcd\xc6\x9a", 0, _wmf),
        (b" EMF", 40, _emf),
        (b"FORM", 0, _iff),
        (b"\x13\xab\xa1\x5c", 0, _astc),
    ),
)
"""Signature, its offset, and the function that returns the size."""
