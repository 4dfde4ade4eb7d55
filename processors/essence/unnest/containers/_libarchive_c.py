"""libarchive's C interface: its constants (archive.h), the functions that are used, and the locale for calling them.

libarchive-c finds and loads the library; its own reader is not used: it takes names as UTF-8 only, logs, and loses the bytes
before an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_int64, c_long, c_size_t, c_ssize_t, c_void_p, c_wchar_p
from typing import Any

from libarchive import ffi

EOF, OK, WARN, FATAL = 1, 0, -20, -30
LZIP, COMPRESS, LZ4 = 9, 3, 13
"""Filters (archive.h)."""
RAW, ISO9660, CAB, LHA, RAR, RAR5, SEVENZIP = 0x90000, 0x40000, 0xC0000, 0xB0000, 0xD0000, 0x100000, 0xE0000
"""Formats (archive.h)."""

Archive = c_void_p
Callback = ctypes.CFUNCTYPE(c_ssize_t, c_void_p, c_void_p, POINTER(c_void_p))
Seek = ctypes.CFUNCTYPE(c_int64, c_void_p, c_void_p, c_int64, c_int)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    # Access by index returns a function object of its own, without the error checks (and the log) of libarchive-c.
    found = ffi.libarchive[name]
    found.argtypes, found.restype = arguments, result
    return found


new = _function("archive_read_new", Archive)
free = _function("archive_read_free", c_int, Archive)
error = _function("archive_error_string", c_char_p, Archive)
set_format = _function("archive_read_set_format", c_int, Archive, c_int)
add_format = _function("archive_read_support_format_by_code", c_int, Archive, c_int)
add_filter = _function("archive_read_support_filter_by_code", c_int, Archive, c_int)
filters = _function("archive_filter_count", c_int, Archive)
set_option = _function("archive_read_set_option", c_int, Archive, c_char_p, c_char_p, c_char_p)
set_seek = _function("archive_read_set_seek_callback", c_int, Archive, Seek)
open_with = _function("archive_read_open", c_int, Archive, c_void_p, c_void_p, Callback, c_void_p)
next_header = _function("archive_read_next_header", c_int, Archive, POINTER(c_void_p))
data_block = _function("archive_read_data_block", c_int, Archive, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_int64))
name = _function("archive_entry_pathname", c_char_p, c_void_p)
name_w = _function("archive_entry_pathname_w", c_wchar_p, c_void_p)
symlink = _function("archive_entry_symlink", c_char_p, c_void_p)
hardlink = _function("archive_entry_hardlink", c_char_p, c_void_p)
mode = _function("archive_entry_mode", c_int, c_void_p)
sized = _function("archive_entry_size_is_set", c_int, c_void_p)
size = _function("archive_entry_size", c_int64, c_void_p)
encrypted = _function("archive_entry_is_data_encrypted", c_int, c_void_p)
timed = _function("archive_entry_mtime_is_set", c_int, c_void_p)
mtime = _function("archive_entry_mtime", c_int64, c_void_p)
mtime_ns = _function("archive_entry_mtime_nsec", c_long, c_void_p)
owner = _function("archive_entry_uname", c_char_p, c_void_p)
group = _function("archive_entry_gname", c_char_p, c_void_p)

_libc = ctypes.CDLL(None)
_libc.newlocale.restype = _libc.uselocale.restype = c_void_p
_libc.newlocale.argtypes, _libc.uselocale.argtypes = (c_int, c_char_p, c_void_p), (c_void_p,)
_UTF8 = _libc.newlocale(1, b"C.UTF-8", None)
"""The 1 is LC_CTYPE_MASK. None if the system lacks this locale: names are then in the charset of the process."""

BYTES = b"ISO-8859-1"
"""A charset of names in which every byte is the character of its number."""
_libc.iconv_open.restype, _libc.iconv_open.argtypes = c_void_p, (c_char_p, c_char_p)
_CONVERTERS = [_libc.iconv_open(b"UTF-8", charset) for charset in (BYTES, b"CP932", b"CP936", b"CP949", b"CP950", b"CP1252")]
"""Kept open, so that the converters that libarchive uses stay loaded: a sandbox denies their files."""


@contextmanager
def utf8() -> Iterator[None]:
    """Use a UTF-8 locale during calls of libarchive, which takes the charset of names from the locale of the thread."""
    before = _libc.uselocale(_UTF8) if _UTF8 else None
    try:
        yield
    finally:
        if before:
            _libc.uselocale(before)
