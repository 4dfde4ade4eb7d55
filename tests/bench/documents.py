"""Documents of other projects, by kind: the common input for comparing document readers.

They come from the tests of Apache Tika (which were not chosen in favor of Harvest), pandoc, python-docx, python-pptx, odfpy,
notmuch and Python's own email package, and from Debian's manuals: pages, PDFs of LaTeX packages, books. Each is used unchanged,
including those that are damaged, encrypted or hostile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench import corpora
from tests.bench.packages import debian_source, files, jar, opened, sdist

KINDS: Mapping[str, Sequence[str]] = {
    "HTML": (".html", ".htm", ".xhtml"),
    "PDF": (".pdf",),
    "Office": (
        *(".doc", ".docx", ".docm", ".dotx", ".xls", ".xlsx", ".xlsm", ".xlsb", ".ppt", ".pptx"),
        ".odt",
        ".ods",
        ".odp",
        ".rtf",
    ),
    "mail": (".eml", ".msg"),
    "EPUB": (".epub",),
}
SAMPLES = "org.apache.tika:tika-parsers:1.28.5:jar:tests"
SDISTS = ("python-docx==1.2.0", "python-pptx==1.0.2", "odfpy==1.4.1")
MANUALS = ("openjdk-17-doc", "libboost1.81-doc", "texlive-latex-recommended-doc", "developers-reference", "debian-policy")
MAILS = "libpython3.11-testsuite"
MOST = {"HTML": 600, "PDF": 60}
"""Maximum number of documents of one kind from one manual."""


def _kind(name: str) -> str:
    return next((kind for kind, suffixes in KINDS.items() if name.lower().endswith(tuple(suffixes))), "")


def _found(cache: Path, unpacked: Path) -> Iterator[tuple[str, Path]]:
    """Every document with its kind. Raises BenchError."""
    archives = [jar(cache, SAMPLES), debian_source(cache, "pandoc"), *(sdist(cache, each) for each in SDISTS)]
    for archive in archives:
        yield from ((_kind(path.name), path) for path in files(opened(archive, unpacked)))
    yield from (("mail", path) for path in files(opened(debian_source(cache, "notmuch"), unpacked, ("test/corpora/",))))
    for package in corpora.unpacked(corpora.packages(cache, MANUALS), unpacked):
        yield from taken(package)
    (tests,) = corpora.unpacked(corpora.packages(cache, [MAILS]), unpacked)
    yield from (("mail", path) for path in files(tests) if path.parts[-3:-1] == ("test_email", "data") and path.suffix == ".txt")


def taken(package: Path) -> Iterator[tuple[str, Path]]:
    """The documents chosen from a manual, with their kinds.

    They are chosen by their names relative to the package, since the folder that it is unpacked into differs between runs.
    """
    for kind in KINDS:
        names = [os.fsencode(path.relative_to(package)) for path in files(package) if _kind(path.name) == kind]
        yield from ((kind, package / os.fsdecode(name)) for name in corpora.chosen(names, MOST.get(kind, len(names))))


def documents(cache: Path, work: Path) -> dict[str, Path]:
    """A folder for each kind, with copies of its documents under unique names. Raises BenchError."""
    folders = {kind: work / kind for kind in KINDS}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for number, (kind, path) in enumerate(_found(cache, work / "unpacked")):
        if kind and path.stat().st_size:
            name = path.name if _kind(path.name) == kind else f"{path.name}.eml"
            shutil.copyfile(path, folders[kind] / f"{number:05d}-{name}")
    shutil.rmtree(work / "unpacked")
    return folders


def made(work: Path, count: int) -> dict[str, Path]:
    """Create the input of `--quick`: pages and messages of random words."""
    pages = [path for path in files(corpora.synthetic(work / "made", 3 * count)) if path.suffix == ".html"]
    folders = {"HTML": work / "HTML", "mail": work / "mail"}
    for folder in folders.values():
        folder.mkdir()
    for number, page in enumerate(pages):
        shutil.copyfile(page, folders["HTML"] / page.name)
        head = f"From: a@example.org\nTo: b@example.org\nSubject: Number {number}\nDate: Thu, 1 Dec 1994 12:00:00 +0000\n"
        text = head + f"Content-Type: text/html; charset=utf-8\n\n{page.read_text()}\n"
        (folders["mail"] / f"{number}.eml").write_text(text)
    return folders
