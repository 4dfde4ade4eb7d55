"""Lists of Debian packages (Packages, Sources, the status file of dpkg): each stanza is a member, NAME-VERSION (deb-control(5))."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Member, Reader
from processors.essence.unnest import Container
from processors.essence.unnest.lists._entries import field, members, named, stanzas


def _name(body: bytes) -> bytes:
    return named(field(body, b"Package"), field(body, b"Version"))


def open_packages(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the packages of a list."""
    return members(stanzas(body, b"package:"), _name, "text/prs.debian.control")


UNNESTER = Container(("DebianPackages",), open_packages, summarized=True, entries=True)
