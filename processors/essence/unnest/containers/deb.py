"""Debian packages: an ar archive of two compressed tars, both of which are members and are opened as such (deb(5)).

The control file, which is near the start, becomes attributes of the package itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping

from processors.essence.formats.container import Budget, Reader, UnnestError, UnnestLimits
from processors.essence.formats.debian_control import MAX_READ, attributes
from processors.essence.formats.streams import exact
from processors.essence.formats.text import read_text
from processors.essence.unnest import Container
from processors.essence.unnest.containers.ar import open_ar
from processors.essence.unnest.containers.tar import open_tar
from processors.essence.unnest.encodings.gzip import open_gzip
from processors.essence.unnest.encodings.xz import open_xz
from processors.essence.unnest.encodings.zstandard import open_zstandard

MAX_CONTROL = 1 << 20
"""Maximum bytes of the control archive that are searched."""
ARCHIVES: Mapping[bytes, Callable[[Reader, Budget], Reader]] = {
    b"control.tar": lambda body, _: body,
    b"control.tar.gz": open_gzip,
    b"control.tar.xz": open_xz,
    b"control.tar.zst": open_zstandard,
}


def _control(head: bytes) -> bytes:
    """Return the control file from the first bytes of a package; b"" if it is not there. Raises UnnestError."""
    budget = Budget(UnnestLimits(), len(head))
    for archive in open_ar(io.BytesIO(head), budget):
        decode = ARCHIVES.get(archive.name.rstrip(b"/"))
        if decode and archive.body:
            for member in open_tar(io.BytesIO(exact(decode(archive.body, budget), MAX_CONTROL)), budget):
                if member.name in (b"./control", b"control") and member.body:
                    return exact(member.body, MAX_CONTROL)
    return b""


def about_deb(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield attributes from the control file: title, name, version, summary, description, author, depends and the like."""
    try:
        control = _control(head)
    except UnnestError:
        return
    yield from attributes(read_text(io.BytesIO(control), "", MAX_READ))


UNNESTER = Container(("DebianPackage",), open_ar, about_deb)
