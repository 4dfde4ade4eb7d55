"""What a file of PostScript shows: `read` runs it."""

from __future__ import annotations

from contextlib import suppress

from processors.essence.formats.postscript.containers import CONTAINERS
from processors.essence.formats.postscript.files import FILES
from processors.essence.formats.postscript.graphics import GRAPHICS
from processors.essence.formats.postscript.machine import Operators
from processors.essence.formats.postscript.numbers import NUMBERS
from processors.essence.formats.postscript.objects import Enough, Fault
from processors.essence.formats.postscript.operators import LANGUAGE
from processors.essence.formats.postscript.page import Page
from processors.essence.formats.postscript.scan import Source
from processors.essence.formats.postscript.showing import SHOWING

__all__ = ["Page", "Source", "page", "read"]


def page(room: int, steps: int) -> Page:
    """A machine that has all operators, and room for so many characters."""
    return Page(Operators(LANGUAGE | NUMBERS | CONTAINERS | FILES | GRAPHICS | SHOWING), room, steps)


def read(source: Source, room: int, steps: int) -> Page:
    """What a file shows, up to `room` characters and so many steps: strings by page, and what it says by pdfmark."""
    machine = page(room, steps)
    # What has been shown until the machine ends is what there is.
    with suppress(Enough, Fault):
        machine.run(source)
    return machine
