"""Metadata that a software package declares: PKG-INFO, package.json, Cargo.toml, debian/control and the like, and build files.

Each reader takes the text of a file and yields pairs of an attribute and a value. A `sure` reader yields a name only if the file
can be nothing else than the declaration of a package.

Laws:
- At most MAX_READ bytes of a file are read, at most MAX_PAIRS pairs are returned, and nothing in the file is executed.
- If a reader raises, the file declares nothing.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from processors.essence.formats.debian_control import fields_of
from processors.essence.formats.text import decode, squeeze
from processors.essence.formats.xml import local, tree
from processors.essence.summarize import Facts, Found
from processors.essence.summarize.catalogues import debiancontrol, lsm

MAX_READ = 65_536
"""Maximum number of bytes that are read of a file."""
MAX_PAIRS = 200
MAX_VALUE = 2_000
MAX_README = 32_768
MAX_PARTS = 50
"""Maximum parts of a dotted TOML key: the time to parse a key grows with their square."""

Pairs = Iterator[tuple[str, str]]

_FIELDS = {
    "name": "name", "package": "name", "version": "version", "summary": "summary", "title": "summary", "synopsis": "summary",
    "abstract": "summary", "description": "description", "author": "author", "maintainer": "author", "author-email": "author",
    "license": "license", "license-expression": "license", "keywords": "keywords", "category": "keywords", "classifier": "topics",
    "home-page": "url-references", "homepage": "url-references", "url": "url-references", "bug-reports": "url-references",
    "requires-dist": "depends", "depends": "depends", "imports": "depends", "build-depends": "depends",
}  # fmt: skip
_DEPENDENCY = re.compile(r"[A-Za-z0-9][\w.+-]*+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_RUNS = re.compile(r"[\w. \t-]+")
# Matches setup(name="x"), s.name = "x", NAME => 'x', version: '1.0', name: "x".
_ARGUMENT = re.compile(
    r"(?<![\w-])(name|version|summary|synopsis|abstract|description|authors?|maintainer|homepage|url|licen[sc]e|keywords)"
    r"[\"']?[ \t]{0,8}(?:=>|[=:])[ \t]{0,8}\[?[\"']([^\"'\n]{1,300})[\"']",
    re.IGNORECASE,
)
_ARGUMENTS = {
    "authors": "author", "maintainer": "author", "homepage": "url-references", "url": "url-references", "licence": "license",
    "synopsis": "summary", "abstract": "summary",
}  # fmt: skip
_INIT = re.compile(r"\bAC_INIT[ \t]*\([ \t\n]*\[?([^\[\],)\n]{1,100})\]?[ \t\n]*(?:,[ \t\n]*\[?([^\[\],)\n]{1,60})\]?)?")
_CMAKE = re.compile(r"^[ \t]*project[ \t]*\([ \t\n]*([\w.+-]{1,100})([^()]{0,2000})\)", re.IGNORECASE | re.MULTILINE)
_CMAKE_VERSION = re.compile(r"\bVERSION[ \t\n]+([\w.]{1,60})")
_CMAKE_DESCRIPTION = re.compile(r"\bDESCRIPTION[ \t\n]+\"([^\"]{1,500})\"")
_MESON = re.compile(r"\bproject[ \t]*\([ \t\n]*'([^'\n]{1,100})'")
_MODULE = re.compile(r"^module[ \t]+(\S{1,200})", re.MULTILINE)


def _depends(names: list[str]) -> Pairs:
    """Yield the package names of dependencies such as "name>=1.0; marker"."""
    yield from (("depends", found[0]) for found in map(_DEPENDENCY.search, names[:MAX_PAIRS]) if found)


def _fields(text: str) -> Pairs:
    """Read mail-like fields: PKG-INFO, METADATA, DESCRIPTION of R, cabal. In the first two, the README follows the header."""
    header, _, rest = text.partition("\n\n") if text.startswith("Metadata-Version:") else (text, "", "")
    for field, value in fields_of(header):
        name = _FIELDS.get(field, "")
        if name == "depends" and field == "requires-dist":
            # One dependency per field (core metadata, 2.1); dependencies of extras are optional, so they are left out.
            yield from _depends([value] if "extra ==" not in value else [])
        elif name == "depends":
            yield from _depends(value.split(","))
        elif name == "keywords":
            yield from (("keywords", word) for word in re.split(r"[,;]", value))
        elif name and not (field == "author-email" and "<" not in value):
            yield name, value if name == "description" else squeeze(value)
    yield "readme", rest


def _complete(text: str) -> Pairs:
    """Read the same fields, but only from a file with a name and a version; other files may have such fields by chance."""
    found = list(_fields(text))
    if {"name", "version"} <= {name for name, _ in found}:
        yield from found


def _strings(value: Any, *keys: str) -> Iterator[str]:
    """Yield the strings of a JSON or TOML value: the value itself, its items, or those under the given keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value[:MAX_PAIRS]:
            yield from _strings(item, *keys) if not isinstance(item, list) else ()
    elif isinstance(value, Mapping):
        yield from (str(v) for key in keys if isinstance(v := value.get(key), str))


def _described(found: Mapping[str, Any], *depends: str) -> Pairs:
    """Read the keys that package.json, Cargo.toml and similar files have in common."""
    for key in ("name", "version", "license"):
        yield from ((key, value) for value in _strings(found.get(key), "type", "text"))
    for key in ("abstract", "description"):
        yield from (("summary", value) for value in _strings(found.get(key)))
    for key in ("author", "authors", "contributors", "maintainers"):
        yield from (("author", value) for value in _strings(found.get(key), "name"))
    for key in ("keywords", "categories"):
        yield from (("keywords", value) for value in _strings(found.get(key)))
    for key in ("homepage", "repository", "urls", "documentation"):
        yield from (("url-references", v) for v in _strings(found.get(key), "url", "Homepage", "homepage", "Repository", "Source"))
    for key in depends:
        value = found.get(key)
        names = list(value) if isinstance(value, Mapping) else list(_strings(value))
        yield from _depends(names)


def _json(text: str) -> Pairs:
    """Read package.json of npm, composer.json, or META.json of CPAN."""
    found = msgspec.json.decode(text)
    if isinstance(found, dict) and isinstance(found.get("name"), str) and ("version" in found or "require" in found):
        yield from _described(found, "dependencies", "require")


def _toml(text: str) -> Mapping[str, Any]:
    if any(sum(bool(part.strip()) for part in run.split(".")) > MAX_PARTS for run in _RUNS.findall(_QUOTED.sub("s", text))):
        return {}
    return tomllib.loads(text)


def _pyproject(text: str) -> Pairs:
    found = _toml(text)
    tool = found.get("tool", {})
    project = found.get("project") or tool.get("poetry") or {}
    if project.get("name"):
        yield from _described(project, "dependencies")


def _cargo(text: str) -> Pairs:
    found = _toml(text)
    if found.get("package", {}).get("name"):
        yield from _described(found["package"])
        yield from _described({"dependencies": found.get("dependencies")}, "dependencies")


def _run(kind: str, run: Callable[[Facts, io.BytesIO, Found], None], text: str) -> Found:
    found, raw = Found(), text.encode()
    run(Facts(b"", "", kind, "", len(raw), 0, "utf-8"), io.BytesIO(raw), found)
    return found


def _given(found: Found, means: Mapping[str, str]) -> Pairs:
    for name, values in found.attributes.items():
        yield from ((means.get(name, name), v) for v in values if isinstance(v, str))


def _lsm(text: str) -> Pairs:
    found = _run("LSM", lsm.run, text)
    if text.startswith("Begin") and "title" in found.attributes:
        yield from _given(found, {"title": "name", "maintainer": "author"})


def _debian(text: str) -> Pairs:
    if text.startswith("Source:") or "\nSource:" in text:
        for name, value in _given(_run("DebianControl", debiancontrol.run, text), {}):
            # The title is computed from the name; the name of the package is taken from the place that also states its version.
            if name not in ("title", "package", "architecture"):
                yield name, value


def _xml(text: str) -> Pairs:
    """Read pom.xml of Maven, nuspec of NuGet, or package.xml of PEAR: elements directly below the root, or in its metadata."""
    means = {
        "artifactid": "name", "id": "name", "name": "name", "version": "version", "description": "description", "tags": "keywords",
        "summary": "summary", "url": "url-references", "projecturl": "url-references", "authors": "author", "license": "license",
    }  # fmt: skip
    root = tree(text.encode())
    if root is None or local(root).lower() not in ("project", "package"):
        return
    for child in islice(root, MAX_PAIRS):
        inner = local(child) in ("metadata", "licenses")
        for element in islice(child, MAX_PAIRS) if inner else [child]:
            value = "".join(map(str, islice(element.itertext(), 10)))[:MAX_VALUE]
            name = "license" if local(child) == "licenses" else means.get(local(element).lower(), "")
            yield from ((name, squeeze(each)) for each in (value.split() if name == "keywords" else [value]) if name)


def _arguments(text: str) -> Pairs:
    """Find named string arguments: setup.py, gemspec, Makefile.PL, META.yml, opam. Nothing is evaluated."""
    for name, value in _ARGUMENT.findall(text):
        attribute = _ARGUMENTS.get(name.lower(), name.lower())
        yield attribute, value


def _settings(text: str) -> Pairs:
    """Read lines of keys and values without quotes: setup.cfg, META.yml."""
    for name, value in re.findall(
        r"^(name|version|description|abstract|summary|author|url|license)[ \t]*[=:][ \t]*(\S[^\n]{0,300})", text, re.MULTILINE
    ):
        attribute = {"abstract": "summary", "description": "summary", "url": "url-references"}.get(name, name)
        yield attribute, value.strip(" \t'\"")


def _configure(text: str) -> Pairs:
    if found := _INIT.search(text):
        yield "name", found[1]
        yield "version", "" if "(" in (found[2] or "(") else found[2]


def _cmake(text: str) -> Pairs:
    if found := _CMAKE.search(text):
        yield "name", found[1]
        for name, pattern in (("version", _CMAKE_VERSION), ("summary", _CMAKE_DESCRIPTION)):
            yield from ((name, m[1]) for m in [pattern.search(found[2])] if m)


def _meson(text: str) -> Pairs:
    if found := _MESON.search(text):
        yield "name", found[1]
        yield from (pair for pair in _arguments(text[found.start() : found.start() + 2_000]) if pair[0] != "name")


def _go(text: str) -> Pairs:
    yield from (("name", name) for name in _MODULE.findall(text)[:1])


_MANIFEST = {
    "implementation-title": "name", "bundle-name": "name", "specification-title": "name", "automatic-module-name": "name",
    "bundle-symbolicname": "name", "implementation-version": "version", "bundle-version": "version",
    "specification-version": "version", "bundle-description": "summary", "implementation-vendor": "author",
    "bundle-vendor": "author", "bundle-license": "license", "main-class": "programs", "bundle-docurl": "url-references",
    "implementation-url": "url-references",
}  # fmt: skip
"""Attributes of the main section of a manifest (JAR File Specification; OSGi Core 8, 3.2.1), the most informative first."""


def _manifest(text: str) -> Pairs:
    main = re.split(r"\n[ \t]*\n", text, maxsplit=1)[0]
    stated = {name.lower(): value.strip() for name, colon, value in (line.partition(":") for line in main.split("\n")) if colon}
    for field, name in _MANIFEST.items():
        # A value that starts with such a sign is a placeholder that the build did not fill in; directives follow a semicolon.
        if (value := stated.get(field, "")) and not value.startswith(("${", "%", "@")):
            yield name, value.partition(";")[0] if name in ("name", "license") else value
    yield from _depends([part.rpartition("/")[2].removesuffix(".jar") for part in stated.get("class-path", "").split()])


class Reader(NamedTuple):
    """A kind of declaration file."""

    path: re.Pattern[bytes]
    """Pattern for the path of the file within its package."""
    sure: bool
    """Whether such a file, if it states a name, is enough to make its archive a package."""
    read: Callable[[str], Pairs]


def _reader(path: bytes, read: Callable[[str], Pairs], *, sure: bool = True) -> Reader:
    return Reader(re.compile(path), sure, read)


READERS = (
    _reader(rb"PKG-INFO|[^/]+\.dist-info/METADATA|(?:src/)?[^/]+\.egg-info/PKG-INFO", _complete),
    _reader(rb"pyproject\.toml", _pyproject),
    _reader(rb"package\.json|composer\.json|META\.json", _json),
    _reader(rb"Cargo\.toml", _cargo),
    _reader(rb"DESCRIPTION|[^/]+\.cabal", _complete),
    _reader(rb"[^/]+\.gemspec", _arguments),
    _reader(rb"pom\.xml|[^/]+\.nuspec|package\.xml", _xml),
    _reader(rb"[^/]+\.lsm", _lsm),
    _reader(rb"debian/control", _debian),
    _reader(rb"setup\.cfg|META\.yml", _settings, sure=False),
    _reader(rb"setup\.py|(?:Makefile|Build)\.PL|opam|[^/]+\.opam", _arguments, sure=False),
    _reader(rb"configure\.(?:ac|in)", _configure, sure=False),
    _reader(rb"CMakeLists\.txt", _cmake, sure=False),
    _reader(rb"meson\.build", _meson, sure=False),
    _reader(rb"go\.mod", _go, sure=False),
    _reader(rb"META-INF/MANIFEST\.MF", _manifest, sure=False),
)
"""The most informative readers come first."""
MANIFEST = len(READERS) - 1
"""Index of the manifest reader. A manifest declares a package only where most files are compiled classes: jars also hold pages and
sources.
"""
_ANY = re.compile(b"|".join(b"(?:" + reader.path.pattern + b")" for reader in READERS))


def reader_of(path: bytes) -> int:
    """Return the index in READERS of the reader for a path within a package; -1: the file declares nothing."""
    if not _ANY.fullmatch(path):
        return -1
    return next(n for n, reader in enumerate(READERS) if reader.path.fullmatch(path))


def declared(number: int, raw: bytes) -> list[tuple[str, str]]:
    """Return the attributes that a file declares, as read by READERS[number]. Never raises."""
    pairs: list[tuple[str, str]] = []
    if number == MANIFEST:
        # Lines of a manifest are folded after 72 bytes, possibly within a character.
        raw = raw[:MAX_READ].replace(b"\r\n ", b"").replace(b"\n ", b"")
    try:
        for name, value in READERS[number].read(decode(raw[:MAX_READ]).replace("\r\n", "\n")):
            kept = value.strip()[: MAX_README if name == "readme" else MAX_VALUE]
            if kept and len(pairs) < MAX_PAIRS:
                pairs.append((name, kept))
    except Exception:  # noqa: BLE001 - the parsers raise what they like, and a stranger wrote the file
        return []
    return pairs
