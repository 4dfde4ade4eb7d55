"""PostScript interpreter that collects the text a file shows; `read` runs a file."""

from __future__ import annotations

from contextlib import suppress

from processors.essence.formats.postscript.containers import CONTAINERS
from processors.essence.formats.postscript.files import FILES
from processors.essence.formats.postscript.graphics import GRAPHICS
from processors.essence.formats.postscript.machine import Operators
from processors.essence.formats.postscript.numbers import NUMBERS
from processors.essence.formats.postscript.objects import Fault, LimitReached
from processors.essence.formats.postscript.operators import LANGUAGE
from processors.essence.formats.postscript.page import Page
from processors.essence.formats.postscript.scan import Source
from processors.essence.formats.postscript.showing import SHOWING

__all__ = ["Page", "Source", "page", "read"]


def page(room: int, steps: int) -> Page:
    """Return a machine that has all operators, and room for `room` characters."""
    return Page(Operators(LANGUAGE | NUMBERS | CONTAINERS | FILES | GRAPHICS | SHOWING), room, steps)


def read(source: Source, room: int, steps: int) -> Page:
    """Run a file until it has shown `room` characters or used `steps`; return the page with its strings and pdfmark records."""
    machine = page(room, steps)
    # What the file has shown before the machine ends is the result.
    with suppress(LimitReached, Fault):
        machine.run(source)
    return machine
