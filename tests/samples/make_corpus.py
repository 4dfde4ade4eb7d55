"""Builds the sample corpus: the files of `corpus/`, and generated files (PDF, compressed files, copies, archives).

Laws:
- Every run produces the same bytes: names are sorted, all dates are equal, and there is no owner.
- Only `write` writes files; the other functions return bytes, or files as a mapping of relative path to bytes.
- `NESTED_WORD` occurs in one file only, three archives deep: a search that finds it has opened all three.

Run as a program, it writes the corpus into the folder given as its argument.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"

DATE = 786_240_000
"""Modification time of all files and members, in seconds since the epoch: 1 December 1994."""
ZIP_DATE = (1994, 12, 1, 0, 0, 0)

NESTED_WORD = "quillwort"
NESTED_PATH = "archives/bundle.zip#papers.tar.gz#deep/field.tar.bz2#field-notes.txt"
"""Where `NESTED_WORD` occurs: the path in the corpus, then the members, as in a member URL."""

FIELD_NOTES = f"""\
Field notes

On the third day the {NESTED_WORD} was found, a fern of the lake bed, which looks like grass to whoever does not dig for it.
Much of what is worth finding lies under two or three layers of something else.
"""

ABSTRACT = """\
Abstracts of three reports

Summaries are to documents what abstracts are to reports: short enough to be sent to everybody, long enough to tell who
should ask for the whole.
"""

SURVEY_TITLE = "A survey of resource discovery before 1995"
SURVEY = (
    "Archie collected listings, Veronica menus, WAIS words and the wanderers links.",
    "None of them shared what it had collected with the others.",
    "Harvest separated gathering from brokering, so that a server is read once",
    "however many indexes are made of it.",
)

Files = Mapping[str, bytes]
"""File contents by path relative to some folder."""


def tar(files: Files) -> bytes:
    """A POSIX tar archive of the files, in order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(body), DATE, 0o644
            archive.addfile(member, io.BytesIO(body))
    return out.getvalue()


def zipped(files: Files) -> bytes:
    """A zip archive of the files, in order; files that are already compressed are stored."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in files.items():
            member = zipfile.ZipInfo(name, ZIP_DATE)
            packed = name.endswith((".gz", ".bz2", ".xz", ".zip"))
            member.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            archive.writestr(member, body)
    return out.getvalue()


def ar(files: Files) -> bytes:
    """The files as an `ar` archive in its common form: names end with a slash, bodies are padded to even offsets."""
    parts = [b"!<arch>\n"]
    for name, body in files.items():
        parts.append(f"{name + '/':<16}{DATE:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode())
        parts.append(body + b"\n" * (len(body) % 2))
    return b"".join(parts)


def gzipped(body: bytes) -> bytes:
    """A gzip file without a file name in its header."""
    return gzip.compress(body, mtime=DATE)


def pdf(title: str, lines: tuple[str, ...]) -> bytes:
    """A PDF 1.4 file of one page in Helvetica (ISO 32000-1, 7.5); text in ASCII without parentheses and backslashes."""
    text = "\n".join(
        ["BT /F1 18 Tf 60 760 Td", f"({title}) Tj /F1 11 Tf 0 -30 Td", *(f"({line}) Tj 0 -16 Td" for line in lines), "ET"]
    )
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({title}) /Author (The Harvest project) /CreationDate (D:19941201000000Z) >>",
    )
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("ascii")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    xref = f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"{xref}{trailer}".encode("ascii")


def plain() -> dict[str, bytes]:
    """The files of `corpus/`, unchanged."""
    paths = sorted(path for path in CORPUS.rglob("*") if path.is_file())
    return {path.relative_to(CORPUS).as_posix(): path.read_bytes() for path in paths}


def bundle() -> bytes:
    """A tar.bz2 in a tar.gz in a zip; `NESTED_WORD` occurs in the innermost file."""
    field = bz2.compress(tar({"field-notes.txt": FIELD_NOTES.encode()}))
    papers = gzipped(tar({"abstracts.txt": ABSTRACT.encode(), "deep/field.tar.bz2": field}))
    return zipped({"CONTENTS.txt": b"One archive, with another one in it.\n", "papers.tar.gz": papers})


def members() -> dict[str, bytes]:
    """The whole corpus: the files of `corpus/` and the generated ones."""
    files = plain()
    pages = {name.removeprefix("pages/"): body for name, body in files.items() if name.startswith("pages/")}
    notes = {name: body for name, body in files.items() if name.startswith("notes/")}
    return files | {
        "archives/bundle.zip": bundle(),
        "archives/notes.tar.bz2": bz2.compress(tar(notes)),
        "archives/notes.tar.xz": lzma.compress(tar(notes)),
        "archives/pages.ar": ar(pages),
        "archives/pages.tar": tar(pages),
        "archives/reading-list.txt.xz": lzma.compress(files["notes/reading-list.txt"]),
        "copies/README": files["README"],
        "copies/gathering-again.txt": files["notes/gathering.txt"],
        "manual/chains.1.gz": gzipped(files["manual/chains.1"]),
        "survey.pdf": pdf(SURVEY_TITLE, SURVEY),
    }


def downloads() -> dict[str, bytes]:
    """The downloads of the web site of `site/`, by their path on the site."""
    return {
        "downloads/notes.tar.gz": gzipped(tar({"notes/abstracts.txt": ABSTRACT.encode()})),
        "downloads/survey.pdf": pdf(SURVEY_TITLE, SURVEY),
    }


def write(folder: Path, files: Files | None = None) -> None:
    """Write files (the whole corpus by default) into a folder, creating it if it is missing. Raises OSError."""
    for name, body in (members() if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (DATE, DATE))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the sample corpus of Harvest into a folder.")
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
