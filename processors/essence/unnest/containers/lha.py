"""LHA with headers of level 0 to 3, by libarchive: stored files and the methods lh5 to lh7; other methods are refused.

Only the newest programs state the charset of names. The others write that of their machine, mostly Shift_JIS; libarchive hands over
the bytes of such names as characters of their number (`_libarchive_c.BYTES`), with slashes for backslashes, some of which are
halves of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.zip_names import charset_of, is_shift_jis
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c

EXAMINED = 2_048
"""Bytes of names from which the charset of an archive is determined."""
_PAIR = re.compile(rb"([\x81-\x9f\xe0-\xfc])(.)", re.DOTALL)


def open_lha(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    names = _Names()
    for member in libarchive.members(body, budget, c.LHA):
        yield member._replace(name=names.decode(member.name)) if not member.name.isascii() else member


class _Names:
    """Decodes the names of one archive by what its names so far show of their charset."""

    def __init__(self) -> None:
        self._doubtful: list[bytes] = []
        self._room = EXAMINED
        self._shift_jis = False

    def decode(self, name: bytes) -> bytes:
        """Return a name in UTF-8."""
        try:
            raw = name.decode().encode("latin-1")
        except ValueError:
            # The header states the charset.
            return name
        with suppress(UnicodeDecodeError):
            # Programs of today write UTF-8 without saying so.
            return raw.decode().encode()
        whole = _PAIR.sub(lambda pair: pair[1] + pair[2].replace(b"/", b"\\"), raw)
        if self._room > 0:
            self._room -= len(whole)
            self._doubtful += (part for part in whole.split(b"/") if not part.isascii())
            self._shift_jis = is_shift_jis(self._doubtful)
        if self._shift_jis:
            return whole.decode("cp932", "replace").encode()
        return raw.decode(charset_of(raw.split(b"/")), "replace").encode()


UNNESTER = Container(("Lha",), open_lha)
