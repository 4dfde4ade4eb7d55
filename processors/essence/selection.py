"""Candidate selection: which entries of a container's listing deserve a summary (Essence, seed 003, "Candidate Selection").

Pure functions over names: the listing of a folder before anything is fetched, that of an archive at its end. Three kinds
of rules, in rising cost: by a name alone (before typing), by the names beside it, by the type (after typing). Each rule has
a name, which is the reason reported for the entries that it drops; `Selection.off` turns it off. Which files are redundant depends
on the place (seed 003: "customizing the choices based on the environment"), so a profile defines the initial set of rules.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec

PACKAGE_RULE = "source-distribution"
NOT_SELECTED = "not-selected"
"""Attribute of an archive: for each rule, its name and the number of members that it dropped."""
RULES: Mapping[str, str] = {
    "stop-name": "its name is on the stop list",
    "editor-backup": "a backup or lock that an editor left, or a backup beside its original",
    "version-control": "the insides of a version control system",
    "object-beside-source": "compiled code, where its source is beside it",
    "print-beside-source": "PostScript or DVI, where the TeX or troff that it was made from is beside it",
    "pdf-beside-source": "PDF, where the document that it was made from is beside it: TeX, troff, Markdown, a word processor's",
    "compressed-twin": "PostScript, DVI or PDF, where the same is beside it compressed",
    "archive-twin": "a tar, where a folder has the same in another compression: of `.gz` `.zst` `.xz` `.bz2` ... the first is kept",
    "signature": "a signature or checksum, where the file that it is of is beside it",
    "special-file": "a device, fifo or socket of a folder",
    "stop-type": "its type is on the stop list",
    PACKAGE_RULE: "what is in an archive that is a software package: that is one unit, with one summary",
}
"""All rules by name, with a description of what each drops."""

Profile = Literal["file-server", "software-archive", "web"]
PROFILES: Mapping[Profile, frozenset[str]] = {
    # On an unorganized file server people may look for a signature itself, and two archives of one name may differ.
    "file-server": frozenset({"archive-twin", "signature"}),
    "software-archive": frozenset(),
    # A web site that offers several forms does so on purpose, and its pages link to the printed form.
    "web": frozenset({"print-beside-source", "pdf-beside-source", "compressed-twin", "archive-twin", "signature"}),
}
"""Environments, with the rules that do not apply in each."""


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of selection. Raises ValueError for an unknown rule or profile."""

    profile: Profile = "file-server"
    """Environment, which determines the initial set of rules."""
    stop_names: tuple[str, ...] = (".DS_Store", "._*", "Thumbs.db", "desktop.ini", ".nfs*", "*.part", "*.crdownload")
    """Shell patterns for the last component of a name."""
    stop_types: tuple[str, ...] = ("Core",)
    """Names of types that are not selected."""
    off: tuple[str, ...] = ()
    """Rules to turn off, in addition to those that the profile leaves out."""

    def applies(self, rule: str) -> bool:
        """Whether a rule is in force."""
        return rule not in self.off and rule not in PROFILES[self.profile]

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"no such selection profile: {self.profile} (known: {', '.join(PROFILES)})")
        if unknown := sorted(set(self.off) - set(RULES)):
            raise ValueError(f"no such selection rule: {', '.join(unknown)} (known: {', '.join(RULES)})")


VERSION_CONTROL = frozenset({b".git", b".svn", b".hg", b".bzr", b"_darcs", b"CVS"})
"""Names of folders. RCS and SCCS files are not in this list: they hold the documents themselves, and have summarizers."""
_DROPPED = re.compile(r"([a-z-]{1,40}) (\d{1,9})", re.ASCII)
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
_WRITTEN = (
    *(b".md", b".markdown", b".rst", b".adoc", b".asciidoc", b".org", b".lyx", b".typ", b".Rmd", b".qmd", b".ipynb"),
    *(b".odt", b".fodt", b".odp", b".sxw", b".doc", b".docx", b".ppt", b".pptx", b".rtf", b".svg", b".fig", b".dot"),
)
_PRINTS = (b".ps", b".eps", b".dvi")
_PACKED = (b".gz", b".zst", b".xz", b".bz2", b".lz", b".lzma", b".Z", b".z", b".lz4")
"""Suffixes of compressions, in order of preference: the first is kept."""
_SHORT: Mapping[bytes, bytes] = {
    b".tgz": b".tar.gz",
    b".tzst": b".tar.zst",
    b".txz": b".tar.xz",
    b".tbz2": b".tar.bz2",
    b".tbz": b".tar.bz2",
    b".taz": b".tar.Z",
}
_SIGNATURES = (b".asc", b".sig", b".sign", b".md5", b".sha1", b".sha256", b".sha512", b".md5sum", b".sha256sum")


@cache
def _stop_names(patterns: tuple[str, ...]) -> re.Pattern[bytes] | None:
    if not patterns:
        return None
    # translate() returns a text pattern; latin-1 maps every byte to one character and back.
    return re.compile("|".join(fnmatch.translate(p.encode().decode("latin-1")) for p in patterns).encode("latin-1"), re.DOTALL)


def by_name(name: bytes, settings: Selection, *, folder: bool = False) -> str:
    """Return the rule that drops a name by itself, or "".

    `name`: as its container lists it, with its folders if it is in an archive.
    """
    *above, last = name.rstrip(b"/").split(b"/")
    stop = _stop_names(settings.stop_names)
    inside = not VERSION_CONTROL.isdisjoint(above) or (folder and last in VERSION_CONTROL)
    if inside and settings.applies("version-control"):
        return "version-control"
    if folder:
        return ""
    if stop and stop.fullmatch(last) and settings.applies("stop-name"):
        return "stop-name"
    if _BACKUP.fullmatch(last) and settings.applies("editor-backup"):
        return "editor-backup"
    return ""


def by_type(kind: str, settings: Selection) -> str:
    """Return the rule that drops a type, or ""."""
    return "stop-type" if kind in settings.stop_types and settings.applies("stop-type") else ""


def dropped_members(attributes: Mapping[str, Sequence[str | bytes]]) -> Mapping[str, int]:
    """Return the number of members of an archive that were not selected, by rule, from the attributes of its summary."""
    stated = (_DROPPED.fullmatch(value) for value in attributes.get(NOT_SELECTED, ()) if isinstance(value, str))
    return {found[1]: int(found[2]) for found in stated if found and found[1] in RULES}


def _unpacked(name: bytes) -> tuple[bytes, bytes]:
    """Split a name into the part before its compression suffix and that suffix."""
    for suffix in _PACKED:
        if name.endswith(suffix):
            return name[: -len(suffix)], suffix
    return name, b""


def _rules(name: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the rules that could drop a name because of a neighbor, each with the names of neighbors that suffice."""
    folder, slash, last = name.rpartition(b"/")
    base = folder + slash
    if last.endswith(_BESIDE_BACKUP):
        yield "editor-backup", [base + last[: last.rindex(b".")]]
    if last.endswith(_SIGNATURES):
        yield "signature", [base + last[: last.rindex(b".")]]
    plain, packed = _unpacked(last)
    stem, dot, suffix = plain.rpartition(b".")
    if not (dot and stem):
        return
    suffix = b"." + suffix
    if not packed and suffix in _OBJECTS:
        # Python keeps compiled modules in a folder of their own, named NAME.cpython-311.pyc.
        if suffix == b".pyc" and (folder == b"__pycache__" or folder.endswith(b"/__pycache__")):
            base, stem = folder[: -len(b"__pycache__")], stem.partition(b".")[0]
        yield "object-beside-source", [base + stem + s for s in _OBJECTS[suffix]]
    if suffix in _PRINTS or suffix == b".pdf":
        rule, sources = ("pdf-beside-source", (*_SOURCES, *_WRITTEN)) if suffix == b".pdf" else ("print-beside-source", _SOURCES)
        yield rule, [base + stem + s + p for s in sources for p in (b"", *_PACKED)]
        yield "compressed-twin", [base + plain + better for better in _better(packed)]


def _better(packed: bytes) -> tuple[bytes, ...]:
    return _PACKED[: _PACKED.index(packed)] if packed else _PACKED


def _twin(name: bytes, names: Collection[bytes]) -> bool:
    """Whether the same folder is archived beside this file in a preferred compression."""
    short = next((s for s in _SHORT if name.endswith(s)), b"")
    plain, packed = _unpacked(name[: -len(short)] + _SHORT[short] if short else name)
    if not plain.endswith(b".tar") or plain == b".tar":
        return False
    better = [plain + b for b in _better(packed)]
    return any(b in names or any(b.endswith(full) and b[: -len(full)] + s in names for s, full in _SHORT.items()) for b in better)


def candidate(name: bytes, settings: Selection) -> bool:
    """Whether a rule could drop a name once the whole listing is known."""
    return any(settings.applies(rule) for rule, _ in _rules(name))


def beside(name: bytes, names: Collection[bytes], settings: Selection) -> str:
    """Return the rule that drops a name because of another one in the same listing, or ""."""
    return next((r for r, others in _rules(name) if settings.applies(r) and any(o in names for o in others)), "")


def _in_folder(name: bytes, names: Collection[bytes], settings: Selection) -> str:
    # Within an archive, all members of nested tars would have to wait for the end of the listing: too costly for a rare twin.
    return beside(name, names, settings) or ("archive-twin" if settings.applies("archive-twin") and _twin(name, names) else "")


def select(listing: Iterable[tuple[bytes, bool]], settings: Selection) -> Mapping[bytes, str]:
    """Return the names of a listing that are not selected, each with its rule. `listing`: pairs (name, whether it is a folder)."""
    entries = list(listing)
    names = {name for name, folder in entries if not folder}
    rules = {
        name: by_name(name, settings, folder=folder) or ("" if folder else _in_folder(name, names, settings))
        for name, folder in entries
    }
    return {name: rule for name, rule in rules.items() if rule}
