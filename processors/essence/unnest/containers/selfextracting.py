"""Self-extracting archives: a zip, 7z or RAR behind a program (PE, ELF), a script or padding.

The program is summarized by its type first. A file without such an archive has no members.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.formats.streams import seekable
from processors.essence.formats.zip import open_zip
from processors.essence.unnest import Container
from processors.essence.unnest.containers._appended import behind, find_appended
from processors.essence.unnest.containers.rar import open_rar
from processors.essence.unnest.containers.sevenzip import open_sevenzip

OPEN = {"Zip": open_zip, "SevenZip": open_sevenzip, "Rar": open_rar}


def open_selfextracting(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of the archive in a program or script. Raises UnnestError."""
    with seekable(body, budget.limits, damaged=True) as file:
        if place := find_appended(file):
            yield from OPEN[place.kind](behind(file, place.at), budget)


UNNESTER = Container(("Binary", "ShellScript", "Unrecognized"), open_selfextracting, summarized=True)
