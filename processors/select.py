"""Candidate selection: what of a container's listing is worth a summary (Essence, seed 003, "Candidate Selection").

Pure functions over names: the listing of a folder before anything is fetched, that of an archive at its end. Three kinds
of rules, in rising cost: by a name alone (before typing), by the names beside it, by the type (after typing). Each rule has
a name, which is the reason given for what it drops; `Selection.off` turns it off.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

import msgspec

RULES: Mapping[str, str] = {
    "stop-name": "its name is on the stop list",
    "editor-backup": "a backup or lock that an editor left, or a backup beside its original",
    "version-control": "the insides of a version control system",
    "object-beside-source": "compiled code, where its source is beside it",
    "print-beside-source": "PostScript or DVI, where the TeX or troff that it was made from is beside it",
    "special-file": "a device, fifo or socket of a folder",
    "stop-type": "its type is on the stop list",
    "source-distribution": "what is in an archive that is a software package: that is one unit, with one summary",
}
"""Every rule by its name, with what it drops."""


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of selection. Raises ValueError for a rule that is not known."""

    stop_names: tuple[str, ...] = (".DS_Store", "Thumbs.db", "desktop.ini", ".nfs*", "*.part", "*.crdownload")
    """Shell patterns for the last component of a name."""
    stop_types: tuple[str, ...] = ("Core",)
    """Essence's names of types."""
    off: tuple[str, ...] = ()
    """Rules that do not apply."""

    def applies(self, rule: str) -> bool:
        """Whether a rule is not turned off."""
        return rule not in self.off

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.off) - set(RULES)):
            raise ValueError(f"no such selection rule: {', '.join(unknown)} (known: {', '.join(RULES)})")


VERSION_CONTROL = frozenset({b".git", b".svn", b".hg", b".bzr", b"_darcs", b"CVS"})
"""Folders. RCS and SCCS files are no insides: they hold the documents themselves, and have summarizers."""
_BACKUP = re.compile(rb".+~|#.*#|\.#.*|\..*\.sw[a-p]", re.DOTALL)
_BESIDE_BACKUP = (b".bak", b".orig", b".old")

_C = (
    b".c",
    b".cc",
    b".cpp",
    b".cxx",
    b".c++",
    b".C",
    b".m",
    b".mm",
    b".s",
    b".S",
    b".f",
    b".F",
    b".f90",
    b".for",
    b".pas",
    b".go",
    b".rs",
)
_OBJECTS: Mapping[bytes, tuple[bytes, ...]] = {
    b".o": _C,
    b".lo": _C,
    b".obj": _C,
    b".pyc": (b".py",),
    b".pyo": (b".py",),
    b".class": (b".java",),
    b".elc": (b".el",),
    b".cmo": (b".ml",),
    b".cmx": (b".ml",),
    b".hi": (b".hs", b".lhs"),
    b".beam": (b".erl",),
}
_TROFF = (b".ms", b".me", b".mm", b".mom", b".man", b".mdoc", b".roff", b".troff", b".nr", b".t", b".tr")
_SOURCES = (b".tex", b".ltx", b".latex", b".texi", b".texinfo", b".txi", *_TROFF, *(b".%d" % n for n in range(1, 9)))
_PRINTS: Mapping[bytes, tuple[bytes, ...]] = {b".ps": _SOURCES, b".eps": _SOURCES, b".dvi": _SOURCES}
_PACKED = (b".gz", b".bz2", b".xz", b".Z", b".lzma", b".z", b".zst", b".lz4", b".lz")


@cache
def _stop_names(patterns: tuple[str, ...]) -> re.Pattern[bytes] | None:
    if not patterns:
        return None
    # translate() gives text patterns; latin-1 maps every byte to one character and back.
    return re.compile("|".join(fnmatch.translate(p.encode().decode("latin-1")) for p in patterns).encode("latin-1"), re.DOTALL)


def by_name(name: bytes, settings: Selection, *, folder: bool = False) -> str:
    """The rule that drops a name by itself, or "". `name`: as its container lists it, with the folders above it in an archive."""
    *above, last = name.rstrip(b"/").split(b"/")
    stop = _stop_names(settings.stop_names)
    inside = not VERSION_CONTROL.isdisjoint(above) or (folder and last in VERSION_CONTROL)
    if inside and "version-control" not in settings.off:
        return "version-control"
    if folder:
        return ""
    if stop and stop.fullmatch(last) and "stop-name" not in settings.off:
        return "stop-name"
    if _BACKUP.fullmatch(last) and "editor-backup" not in settings.off:
        return "editor-backup"
    return ""


def by_type(kind: str, settings: Selection) -> str:
    """The rule that drops a type, or ""."""
    return "stop-type" if kind in settings.stop_types and "stop-type" not in settings.off else ""


def _unpacked(name: bytes) -> bytes:
    for suffix in _PACKED:
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name


def _rule(name: bytes, settings: Selection) -> tuple[str, list[bytes]]:
    """The rule that could drop a name because of another one beside it, and the other ones that would do; ("", []) if none."""
    folder, slash, last = name.rpartition(b"/")
    base = folder + slash
    if last.endswith(_BESIDE_BACKUP):
        return "editor-backup", [base + last[: last.rindex(b".")]]
    plain = _unpacked(last)
    stem, dot, suffix = plain.rpartition(b".")
    if not (dot and stem):
        return "", []
    suffix = b"." + suffix
    if plain == last and suffix in _OBJECTS:
        # Python keeps compiled modules in a folder of their own, named NAME.cpython-311.pyc.
        if suffix == b".pyc" and (folder == b"__pycache__" or folder.endswith(b"/__pycache__")):
            base, stem = folder[: -len(b"__pycache__")], stem.partition(b".")[0]
        return "object-beside-source", [base + stem + s for s in _OBJECTS[suffix]]
    if suffix in _PRINTS:
        return "print-beside-source", [base + stem + s + p for s in _PRINTS[suffix] for p in (b"", *_PACKED)]
    return "", []


def candidate(name: bytes, settings: Selection) -> bool:
    """Whether a rule could drop a name once the whole listing is known."""
    rule = _rule(name, settings)[0]
    return bool(rule) and rule not in settings.off


def beside(name: bytes, names: Collection[bytes], settings: Selection) -> str:
    """The rule that drops a name because of another one in the same listing, or ""."""
    rule, others = _rule(name, settings)
    if not rule or rule in settings.off:
        return ""
    return rule if any(o in names for o in others) else ""


def select(listing: Iterable[tuple[bytes, bool]], settings: Selection) -> Mapping[bytes, str]:
    """What of a listing, given as (name, whether it is a folder), is not selected: rules by name."""
    entries = list(listing)
    names = {name for name, folder in entries if not folder}
    rules = {
        name: by_name(name, settings, folder=folder) or ("" if folder else beside(name, names, settings))
        for name, folder in entries
    }
    return {name: rule for name, rule in rules.items() if rule}
