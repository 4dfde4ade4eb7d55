"""SourceDistribution: an archive that is a software package is ONE unit (Essence, seed 003, "Candidate Selection" and table 3).

Strategy: members are read in order, and the evidence for a package may come last. So the walk makes the members' records and holds
them back, while a `Unit` observes the members. The end of the archive decides: a package gives one summary, of the data gathered in
the Unit; for anything else, the held records are emitted as if nothing had been held. If more than WAITING bytes are held, the
decision is made at once; if the first PATIENCE members show no sign of a package, the archive is none.

An archive is a package if, directly below its one top folder, or at its top, there is
- a file that declares one (`package_metadata.py`: PKG-INFO, package.json, Cargo.toml, debian/control, a Linux Software Map entry
  ...), or
- a README or INSTALL beside a build file, and program source somewhere below (a paper with its README and Makefile is none), or
- the manifest of a jar, if at least half of its files are compiled classes, not counting files about the jar and resources of the
  classes (a jar of pages, or of sources, is none by that rule).

Laws:
- The gathered data is bounded, however many members there are, and so are the names of what they define (`package_definitions.py`).
- It depends on the members and their order alone.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from processors.essence import package_metadata
from processors.essence.formats.container import Reader
from processors.essence.formats.text import squeeze
from processors.essence.package_definitions import DEFINES, Definitions
from processors.essence.selection import PACKAGE_RULE
from processors.essence.summarize import Facts, Found
from processors.essence.summarize._general import complete
from processors.essence.summarize._text import first_sentence, paragraphs
from processors.essence.summarize.source._source import LEGAL, bare
from processors.essence.summarize.text.license import license_of
from processors.identity import member_path
from schemas.records import Summary

RULE = PACKAGE_RULE
TYPE = "SourceDistribution"
CONTAINERS = frozenset(("Tar", "Zip", "Cpio", "SevenZip", "Rar", "Lha", "Cabinet"))
"""Types of archives that may be packages. Binary packages (deb, rpm) declare themselves."""
WAITING = 32 << 20
"""Maximum bytes of records held back before the decision whether an archive is a package."""

PATIENCE = 1_000
"""Number of members within which an archive must show a sign of a package: a file at its top that packages have."""

README, INSTALL, SOURCES, COMMENT, PAGES, TEXT = 32_768, 2_048, 20, 400, 100, 65_536
NAMES, LISTING = 16_384, 5_120
"""Maximum bytes of the names that the sources define, and the bytes of the summary that are left for the listing of members."""
_BUILD = re.compile(
    rb"(?i)(?:gnu)?makefile(?:[._-][\w.-]+)?|imakefile|configure(?:\.(?:ac|in))?|cmakelists\.txt|meson\.build|sconstruct|wscript|"
    rb"setup\.(?:py|cfg|hs)|(?:makefile|build)\.pl|build\.(?:xml|gradle|gradle\.kts|sh|bat|zig|sbt)|go\.mod|rakefile|gemfile|jamfile|"
    rb"jamroot|autogen\.sh|mix\.exs|rebar\.config|project\.clj|dune-project|stack\.yaml|descrip\.mms|make\.com|module\.bazel|justfile"
)
_ABOUT = re.compile(rb"(?i)read[._-]?me(?:[._-][^/]*)?|[^/]+[._-]readme|install(?:ation|ing)?(?:[._-][^/]*)?")
_SIGN = re.compile(
    rb"(?i)(?:copying|licen[cs]e|unlicense|authors|news|change(?:s|log)|manifest|todo|contributing|\.git\w+)(?:[._-].*)?"
)
_INSTALL = re.compile(rb"(?i)install(?:ation|ing)?(?:[._-][^/]*)?")
_BADGE = re.compile(r"\[?!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)(?:\]\([^)\n]{0,500}\))?")
"""A picture in Markdown, with its link."""
_BOILERPLATE = re.compile(r"(?i)basic installation|`?\./configure[,;' ]++make|these are generic installation instructions")
_SOURCE = re.compile(
    rb"(?i)\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|m|mm|s|asm|y|l|f|f77|f90|f95|for|pas|pp|p|adb|ads|go|rs|py|pyx|pl|pm|rb|tcl|lua|"
    rb"java|kt|scala|cs|fs|vb|js|mjs|ts|el|lisp|lsp|scm|ml|mli|hs|erl|ex|clj|php|sh|awk|m4|zig|nim|d|swift|v|vhd|vhdl|r|jl)"
)
_ASIDE = re.compile(
    r"(?i)(?:^|[/_.-])(?:tests?|testsuite|examples?|samples?|contrib|docs?|demos?|third_?party|vendor|compat|lib|gnulib)(?:[/_.-]|$)"
)
_SUFFIX = re.compile(rb"(?i)(?:\.orig|\.debian)?\.(?:tar|zip|cpio|7z|rar|lzh|lha|cab|whl|jar|war|ear|aar)$")
_VERSIONED = re.compile(r"(.+?)[-_]v?(\d[\w.+~-]*)")
_COPYRIGHT = re.compile(r"(?i)\bcopyright\b[ \t]*+(?:\(c\)|©)?[ \t]*+((?:\d{4})[-, \d]{0,200}[^\n\d(,-][^\n]{2,120})")
_TYPES = "C CHeader Python Perl ShellScript Ruby Tcl Awk JavaScript Java CSharp Go Rust Lisp Fortran Pascal SourceCode"
_CODE = frozenset(_TYPES.split())
_AIDS = re.compile(
    rb"(?i)(?:.*/)?(?:configure(?:\.(?:ac|in))?|config\.(?:guess|sub|rpath|h\.in)|depcomp|compile|missing|ltmain\.sh|libtool|install-sh|"
    rb"mkinstalldirs|test-driver|ylwrap|mdate-sh|ar-lib|bootstrap|autogen\.sh|setup\.py|[^/]*\.(?:m4|am|in|d\.ts))"
)
"""Files that build a program rather than belong to it."""
_RESOURCE = re.compile(
    rb"(?:META-INF|OSGI-INF)/.*|.*\.(?:properties|xml|xsd|dtd|gif|png|svg|json|so|dll|dylib|jnilib|policy|proto|conf)", re.DOTALL
)
"""Files about a jar, and resources of its classes."""
_MAIN = frozenset((b"main", b"index", b"__init__", b"__main__", b"lib", b"mod"))


class Kept:
    """A stream that keeps a copy of its first bytes as they are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.data = b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        data = self._reader.read(size)
        if len(self.data) < package_metadata.MAX_READ:
            self.data += data[: package_metadata.MAX_READ - len(self.data)]
        return data


class Gathered:
    """Evidence and metadata of a package, gathered from the files below one folder."""

    def __init__(self) -> None:
        self._declared: list[tuple[int, list[tuple[str, str]]]] = []
        self._sure = self._about = self._read = self._build = self._source = self._named = self._manifest = False
        self._files = self._classes = 0
        """Number of files, without resources of compiled classes; and the number of these classes."""
        self.sign = False
        """Whether there is a file typical of packages at the top (other archives may have one too), or a manifest."""
        self._texts: dict[bool, list[tuple[bytes, str]]] = {False: [], True: []}
        """Texts of README files (False) and of installation instructions (True), with their paths."""
        self._sources: list[tuple[int, int, str]] = []
        self._types: Counter[str] = Counter()
        self._definitions = Definitions()
        self._rest = Found()

    @property
    def shown(self) -> bool:
        """Whether the files so far make it a package."""
        jar = self._manifest and 2 * self._classes >= self._files and (self._classes > 0 or self._named)
        return self._sure or jar or (self._read and self._build and self._source)

    def enter(self, path: bytes) -> None:
        """Register a file."""
        self._files += not _RESOURCE.fullmatch(path)
        self._classes += path.endswith(b".class")
        if b"/" not in path:
            self._about = self._about or bool(_ABOUT.fullmatch(path))
            self._build = self._build or bool(_BUILD.fullmatch(path))
            self.sign = self.sign or self._about or self._build or bool(_SIGN.fullmatch(path))
        if not self._source:
            dot = path.rfind(b".")
            self._source = dot > path.rfind(b"/") and bool(_SOURCE.fullmatch(path[dot:]))

    def declare(self, number: int, raw: bytes) -> None:
        """Read a file that may declare a package with READERS[number] of `package_metadata`."""
        pairs = package_metadata.declared(number, raw)
        # A manifest without these attributes counts as well: all classes of a jar may follow it.
        told = bool(pairs) or raw.startswith(b"Manifest-Version:")
        self._manifest = self._manifest or (number == package_metadata.MANIFEST and told)
        self.sign = self.sign or self._manifest
        if pairs and len(self._declared) < SOURCES:
            self._declared.append((number, pairs))
            named = any(name == "name" for name, _ in pairs)
            self._sure = self._sure or (package_metadata.READERS[number].sure and named)
            self._named = self._named or (number == package_metadata.MANIFEST and named)

    def take(self, path: bytes, summary: Summary) -> None:
        """Gather data from the summary of a file."""
        kind, attributes, depth = summary.type, summary.attributes, path.count(b"/")
        text = _text(attributes.get("full-text") or attributes.get("partial-text", ()))
        # The README must have been readable: of an archive with encrypted members only names are known, too little for a package.
        self._read = self._read or (depth == 0 and "reason" not in attributes and bool(_ABOUT.fullmatch(path)))
        self.define(path, summary)
        if kind in _CODE:
            self._take_source(path, summary)
        elif kind == "ManPage":
            self._add("manual-pages", (t for t in attributes.get("title", ()) if isinstance(t, str) and " - " in t), PAGES)
        elif kind == "Makefile" and depth < 2 and "generated by automake" not in _text(attributes.get("comments", ())):
            for name in ("targets", "programs"):
                self._add(name, attributes.get(name, ()), PAGES)
            self._add("comments", (_text(attributes.get("comments", ()))[:1_000],), SOURCES)
        elif kind == "License" and depth == 0:
            self._add("license", license_of(text), SOURCES)
        elif kind == "DebianCopyright":
            self._add("license", attributes.get("license", ()), SOURCES)
            self._add("copyright", attributes.get("author", ()), SOURCES)
        elif depth == 0 and _ABOUT.fullmatch(path):
            install = bool(_INSTALL.fullmatch(path))
            if text and not text.startswith("#!") and len(self._texts[install]) < 2:
                self._texts[install].append((path, text))
            self._add("url-references", attributes.get("url-references", ()), SOURCES)

    def define(self, path: bytes, summary: Summary) -> None:
        """Gather the names that a source or a compiled class defines."""
        if summary.type in _CODE or path.endswith(b".class"):
            self._definitions.take(path, summary.attributes, aid=bool(_AIDS.fullmatch(path)))

    def _take_source(self, path: bytes, summary: Summary) -> None:
        self._types[summary.type] += 1
        comments = _text(summary.attributes.get("comments", ()))
        self._add("copyright", (squeeze(m[1]).rstrip(" .*/") for m in _COPYRIGHT.finditer(comments.replace(",\n", ", "))), SOURCES)
        said = _text(summary.attributes.get("description", ())) or bare(comments)
        if not said or _AIDS.fullmatch(path):
            return
        name = path.decode("utf-8", "replace")
        # The main files rank first: near the top, not in side folders (tests, examples), not headers.
        rank = name.count("/") + 4 * bool(_ASIDE.search(name)) + (summary.type == "CHeader") - self._main(path)
        item = (-rank, -self._types.total(), f"{name.rpartition('/')[2]}: {squeeze(said[:COMMENT])}")
        (heapq.heappush if len(self._sources) < SOURCES else heapq.heappushpop)(self._sources, item)

    def _main(self, path: bytes) -> bool:
        return path.rpartition(b"/")[2].partition(b".")[0].lower() in _MAIN

    def _add(self, name: str, values: Iterable[str | bytes], most: int) -> None:
        for value in values:
            if len(self._rest.attributes.get(name, ())) < most:
                self._rest.add(name, value, 1_000)

    def tell(self, found: Found, folder: str) -> None:
        """Add the gathered data to the summary of the package. `folder`: name of its top folder, or of the archive."""
        readmes = [text for _, text in sorted(self._texts[False], key=lambda t: (len(t[0]), t[0]))]
        pairs = [pair for _, some in sorted(self._declared, key=lambda d: d[0]) for pair in some]
        for name, value in pairs:
            if name in ("name", "version", "summary", "description"):
                found.set(name, value, 2_000)
            elif name == "readme":
                readmes.append(value)
        versioned = _VERSIONED.fullmatch(folder)
        found.set("name", versioned[1] if versioned else folder, 200)
        found.set("version", versioned[2] if versioned else "", 100)
        found.set("title", f"{found.text('name')} {found.text('version')}", 300)
        for name, value in pairs:
            if name not in ("name", "version", "summary", "description", "readme"):
                found.add(name, value, 500)
        self._tell_texts(found, readmes[0] if readmes else "")
        for name, values in self._rest.attributes.items():
            for one in values:
                found.add(name, one)
        found.add("source-comments", "\n".join(text for _, _, text in sorted(self._sources, reverse=True)), TEXT // 8)
        for kind, count in self._types.most_common(10):
            found.add("programming-language", f"{kind} {count}")
        found.add(DEFINES, self._definitions.text(min(NAMES, found.room - LISTING)), NAMES)

    def _tell_texts(self, found: Found, readme: str) -> None:
        found.set("description", found.text("summary") or _first(readme), 2_000)
        found.add("partial-text", readme, README)
        for _, text in self._texts[True][:1]:
            found.add("partial-text", "" if _BOILERPLATE.search(text[:4_096]) else text, INSTALL)
        complete(Facts(b"", "", TYPE, "", -1, 0, ""), found)


class Unit:
    """Observes the members of an archive for signs of a package, at its top and below its one top folder."""

    def __init__(self) -> None:
        self._top: bytes | None = None
        self._one = True
        """Whether all files so far are below one folder."""
        self._flat, self._beneath = Gathered(), Gathered()
        self._settled = False
        self._seen = 0

    @property
    def hopeful(self) -> bool:
        """Whether it may still be a package. Most archives are none, and need not be held back until their end."""
        return self._seen < PATIENCE or self._flat.sign or self._flat.shown or (self._one and self._beneath.sign) or self.shown

    @property
    def shown(self) -> bool:
        """Whether the members so far make it a package."""
        return self._flat.shown or (self._one and self._beneath.shown)

    def settle(self) -> None:
        """Fix the decision that it is a package: later members no longer change which folder is its top."""
        self._settled = True
        self._one = self._one and self._beneath.shown

    def holds(self, path: str) -> bool:
        """Whether a path, as in the records of members, is within the package."""
        tops = (member_path(self._top or b"") + "/", "__MACOSX/")
        return not self._one or path.lstrip("/").removeprefix("./").startswith(tops)

    def enter(self, name: bytes) -> None:
        """Register a member that is not a folder."""
        path = _plain(name)
        self._seen += 1
        top, slash, rest = path.partition(b"/")
        if not self._settled and top != b"__MACOSX":
            # The folder that macOS adds beside the top folder does not count.
            self._one = self._one and bool(slash) and self._top in (None, top)
            self._top = top
        self._flat.enter(path)
        if self._one and top == self._top:
            self._beneath.enter(rest)

    def _places(self, name: bytes) -> Iterator[tuple[Gathered, bytes]]:
        path = _plain(name)
        yield self._flat, path
        top, slash, rest = path.partition(b"/")
        if self._one and slash and top == self._top:
            yield self._beneath, rest

    def wants(self, name: bytes) -> bool:
        """Whether a member may declare a package."""
        return any(package_metadata.reader_of(path) >= 0 for _, path in self._places(name))

    def declare(self, name: bytes, raw: bytes) -> None:
        """Read the first bytes of a member that may declare a package."""
        for gathered, path in self._places(name):
            if (number := package_metadata.reader_of(path)) >= 0:
                gathered.declare(number, raw)

    def take(self, name: bytes, summary: Summary) -> None:
        """Gather data from the summary of a member."""
        for gathered, path in self._places(name):
            gathered.take(path, summary)

    def define(self, name: bytes, summary: Summary) -> None:
        """Gather only the names that a member defines."""
        for gathered, path in self._places(name):
            gathered.define(path, summary)

    def tell(self, found: Found, archive: bytes) -> None:
        """Add the gathered data to the summary of the package. `archive`: its name, without the suffix of its compression."""
        stem = _SUFFIX.sub(b"", archive)
        versioned = self._one and self._top and _VERSIONED.fullmatch(self._top.decode("latin-1"))
        folder = self._top if versioned or not stem else stem
        (self._beneath if self._one else self._flat).tell(found, (folder or b"").decode("utf-8", "replace"))


def _plain(name: bytes) -> bytes:
    """Return the name of a member without the "./" that some archives put before it."""
    return name.lstrip(b"/").removeprefix(b"./")


def _text(values: Iterable[str | bytes]) -> str:
    return next((v for v in values if isinstance(v, str)), "")


def _first(readme: str) -> str:
    """Return the first sentence of prose in a README, without preceding badges."""
    shown = (_BADGE.sub("", p).lstrip() for p in paragraphs(readme[:8_192]))
    prose = (p for p in shown if len(p) > 60 and sum(map(str.isalpha, p)) * 2 > len(p) and not LEGAL.search(p))
    return first_sentence(next(prose, ""))
