"""Corpora of other projects, with the label that those projects give to each file.

Laws:
- No label is Harvest's own: labels come from a project's own list (shared-mime-info), its expected answers (file), the folder of a
  language (Pygments, bat), the name patterns of Apache Tika's registry, and the paths of Debian's files. Only `labels.toml` maps
  labels to Harvest's types; it also has the few names that no registry knows.
- A file without a label from its project is not judged; it is summarized all the same.
"""

from __future__ import annotations

import fnmatch
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.bench.packages import debian_source, files, jar, opened, sdist
from tests.bench.placed import placed

REGISTRY = "org.apache.tika:tika-core:1.28.5"
LIST = "tests/mime-detection/list"
UNKNOWN = "application/octet-stream"
"""The registry's media type for patterns without a better one."""
SAMPLES = {
    "patool==4.0.7": "tests/data/",
    "hachoir==3.4.0": "tests/files/",
    "filetype==1.2.0": "tests/fixtures/",
    "puremagic==1.30": "test/resources/",
}
"""Source distributions whose tests have samples, and the folders of these."""
DISGUISE = ".foo"
"""The suffix that patool appends to names, so that only the content identifies the file."""


class Labelled(NamedTuple):
    """A file of a corpus."""

    corpus: str
    path: Path
    label: str
    """A media type, "lexer NAME" or "description TEXT"; "" if the project does not say."""


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `labels.toml`, which documents its tables."""

    types: dict[str, list[str]]
    finer: dict[str, list[str]]
    descriptions: dict[str, str]
    names: dict[str, str]
    places: dict[str, str]

    def wanted(self, label: str) -> str:
        """The type that a label means; "" if it means none."""
        kind, _, rest = label.partition(" ")
        if kind == "description":
            return next((t for start, t in self.descriptions.items() if rest.startswith(start)), "")
        media = label.lower()
        exact = next((name for name, own in self.types.items() if media in own), "")
        if exact or kind == "lexer":
            return exact or "SourceCode"
        return next((name for name, own in self.types.items() if any(fnmatch.fnmatchcase(media, one) for one in own)), "")

    def right(self, wanted: str, found: str) -> bool:
        """Whether the type found is the wanted one, or a finer one."""
        return found == wanted or found in self.finer.get(wanted, ())


@cache
def labels() -> Labels:
    """The table of labels."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_name("labels.toml").read_text("utf-8")), Labels)


class Registry:
    """The name patterns of Apache Tika's registry of media types."""

    def __init__(self, folder: Path) -> None:
        packed = jar(folder, REGISTRY)
        where = opened(packed, folder / "opened", ("org/apache/tika/mime/",)) / "org/apache/tika/mime/tika-mimetypes.xml"
        # The registry is from a released jar, fetched by Maven: as trustworthy as the code beside it.
        root = ET.parse(where).getroot()  # noqa: S314
        self.globs = {
            glob.attrib["pattern"]: media.attrib["type"]
            for media in root.iter("mime-type")
            for glob in media.iter("glob")
            if "isregex" not in glob.attrib and media.attrib["type"] != UNKNOWN
        }

    def media(self, name: str) -> str:
        """The media type of a name: that of the longest pattern that matches it unchanged, else in lower case."""
        for tried in (name, name.lower()):
            found = [glob for glob in self.globs if fnmatch.fnmatchcase(tried, glob)]
            if found:
                return self.globs[max(found, key=len)]
        return ""


def shared_mime_info(folder: Path) -> Iterator[Labelled]:
    """The regression tests of freedesktop's database: a list of files with their media types."""
    root = opened(debian_source(folder, "shared-mime-info"), folder / "opened", ("tests/mime-detection/",))
    lines = (line.split() for line in (root / LIST).read_text("utf-8").splitlines() if line.strip() and not line.startswith("#"))
    said = {words[0]: words[1] for words in lines if len(words) > 1}
    for path in files(root):
        if path.name != "list":
            yield Labelled("shared-mime-info", path, said.get(path.name, ""))


def libmagic(folder: Path) -> Iterator[Labelled]:
    """The tests of file(1), each with its expected description; file names carry no information."""
    root = opened(debian_source(folder, "file"), folder / "opened", ("tests/",))
    for path in files(root):
        if path.suffix == ".testfile":
            answer = path.with_suffix(".result")
            yield Labelled("file", path, f"description {answer.read_text('utf-8', 'replace').strip()}" if answer.is_file() else "")


def _by_registry(corpus: str, root: Path, registry: Registry) -> Iterator[Labelled]:
    """Samples labeled by their names."""
    special = labels().names
    for path in files(root):
        name = path.name.removesuffix(DISGUISE)
        media = next((media for glob, media in special.items() if fnmatch.fnmatchcase(name, glob)), "")
        yield Labelled(corpus, path, media or registry.media(name))


def tika(folder: Path) -> Iterator[Labelled]:
    """The test documents of Apache Tika's parsers."""
    archive = jar(folder, "org.apache.tika:tika-parsers:1.28.5:jar:tests")
    yield from _by_registry("tika", opened(archive, folder / "opened", ("test-documents/",)), Registry(folder))


def media_samples(folder: Path) -> Iterator[Labelled]:
    """Images, sound and video from the tests of ExifTool and mutagen."""
    registry = Registry(folder)
    exiftool = opened(debian_source(folder, "libimage-exiftool-perl"), folder / "opened", ("t/images/",))
    yield from _by_registry("exiftool", exiftool, registry)
    yield from _by_registry("mutagen", opened(sdist(folder, "mutagen==1.48.1"), folder / "opened", ("tests/data/",)), registry)


def samples(folder: Path) -> Iterator[Labelled]:
    """Archives, disk images, programs, documents and media from the tests of programs that identify or open them."""
    registry = Registry(folder)
    for requirement, part in SAMPLES.items():
        root = opened(sdist(folder, requirement), folder / "opened", (part,))
        yield from _by_registry(requirement.partition("=")[0], root, registry)


def _by_folder(corpus: str, root: Path) -> Iterator[Labelled]:
    """Samples of programming languages, labeled by their folder."""
    for path in files(root):
        parts = path.relative_to(root).parts
        if len(parts) > 1 and path.suffix != ".output":
            named = not path.name.startswith(("LICENSE", "NOTICE"))
            yield Labelled(corpus, path, f"lexer {parts[0].lower()}" if named else "")


def languages(folder: Path) -> Iterator[Labelled]:
    """Samples of the languages of Pygments' lexers and bat's syntaxes."""
    part = "tests/examplefiles/"
    yield from _by_folder("pygments", opened(sdist(folder, "pygments==2.21.0"), folder / "opened", (part,)) / part)
    part = "tests/syntax-tests/source/"
    yield from _by_folder("bat", opened(debian_source(folder, "rust-bat"), folder / "opened", (part,)) / part)


def debian(folder: Path) -> Iterator[Labelled]:
    """Files of Debian packages, labeled by their paths."""
    for path, label in placed(folder, labels().places):
        yield Labelled("debian", path, label)


CORPORA: Sequence[Callable[[Path], Iterator[Labelled]]] = (
    shared_mime_info,
    libmagic,
    tika,
    media_samples,
    samples,
    languages,
    debian,
)


def all_labelled(folder: Path) -> list[Labelled]:
    """Every file of every corpus. Raises BenchError."""
    folder.mkdir(parents=True, exist_ok=True)
    return [one for corpus in CORPORA for one in corpus(folder)]


def by_suffix(folder: Path) -> list[Labelled]:
    """The generated files of `--quick`, labeled by their names."""
    media = {".html": "text/html", ".txt": "text/plain", ".gz": "application/gzip"}
    return [Labelled("made", path, media.get(path.suffix, "")) for path in files(folder)]
