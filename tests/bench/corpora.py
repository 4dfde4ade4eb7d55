"""The input of the measurements: parts of the machine's documentation and large Debian packages, in separate folders.

Files are chosen by digests of their names, so that every run takes the same ones.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.figures import BenchError

DOCUMENTATION = (Path("/usr/share/doc"), Path("/usr/share/man"))
PACKAGES = ("openjdk-17-doc", "libboost1.81-doc")
"""Two large Debian documentation packages: 18,000 files of 370 MB, most of them HTML pages."""
HEAVY = 32 * 1024
"""Bytes from which a page, a text or a PDF takes some milliseconds."""
FULL = 10
"""Minimum files of a folder that counts as full."""
HEAVY_NAMES = (b".html", b".htm", b".pdf")


def cache() -> Path:
    """The folder that keeps packages between runs, outside the clone."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harvest-bench"


def packages(folder: Path, names: Sequence[str] = PACKAGES) -> list[Path]:
    """The files of Debian packages, downloaded by apt if they are missing. Raises BenchError."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not list(folder.glob(f"{name}_*.deb"))]
    if missing:
        try:
            subprocess.run(["apt-get", "--quiet", "download", *missing], cwd=folder, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = error.stderr.decode(errors="replace").strip() if isinstance(error, subprocess.CalledProcessError) else error
            raise BenchError(f"apt-get download {' '.join(missing)}: {said}") from error
    return [max(folder.glob(f"{name}_*.deb")) for name in names]


def unpacked(archives: Sequence[Path], folder: Path) -> list[Path]:
    """The unpacked files of packages, each package in its own folder."""
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        target = folder / archive.name.partition("_")[0]
        subprocess.run(["dpkg-deb", "--extract", archive, target], check=True)
        made.append(target)
    return made


def found(roots: Sequence[Path]) -> list[bytes]:
    """All files and links below some folders, as `find` lists them."""
    command: list[str | Path] = ["find", *filter(os.path.lexists, roots), "(", "-type", "f", "-o", "-type", "l", ")", "-print0"]
    return subprocess.run(command, check=True, capture_output=True).stdout.split(b"\0")[:-1]


def chosen(paths: Sequence[bytes], count: int) -> list[bytes]:
    """`count` of the paths, chosen by the digests of their names."""
    return sorted(paths, key=lambda path: hashlib.sha256(path).digest())[:count]


def neighbours(paths: Sequence[bytes], count: int) -> list[bytes]:
    """`count` of the paths in whole folders: a file alone in its folder would cost a listing each, which real files do not.

    Folders are ordered by the digests of their names; those with ten files or more come first.
    """
    folders: dict[bytes, list[bytes]] = defaultdict(list)
    for path in paths:
        folders[os.path.dirname(path)].append(path)
    order = sorted(folders, key=lambda folder: (len(folders[folder]) < FULL, hashlib.sha256(folder).digest()))
    return [path for folder in order for path in sorted(folders[folder])][:count]


def heavy(paths: Sequence[bytes]) -> Iterator[bytes]:
    """The files that take some milliseconds to process."""
    for path in paths:
        if path.endswith(HEAVY_NAMES) and not os.path.islink(path) and os.path.getsize(path) >= HEAVY:
            yield path


def synthetic(folder: Path, count: int) -> Path:
    """Create a tree of small files and large pages of random words from a fixed seed: the input of `--quick`."""
    chance = random.Random(1994)
    words = [f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{at:x}" for at in range(4_000)]

    def text(length: int) -> str:
        return " ".join(chance.choices(words, k=length))

    for at in range(count):
        parent = folder / f"part-{at // 50}"
        parent.mkdir(parents=True, exist_ok=True)
        if at % 3 == 0:
            paragraphs = "".join(f"<h2>{text(4)}</h2><p>{text(300)}</p>" for _ in range(12))
            (parent / f"{at}.html").write_text(f"<html><head><title>{text(5)}</title></head><body>{paragraphs}</body></html>")
        elif at % 3 == 1:
            page = f".TH {text(1)} 1\n.SH NAME\n{text(1)} \\- {text(8)}\n.SH DESCRIPTION\n{text(200)}\n"
            (parent / f"{at}.1.gz").write_bytes(gzip.compress(page.encode(), mtime=0))
        else:
            (parent / f"{at}.txt").write_text(f"{text(6).capitalize()}\n\n{text(150)}\n")
    return folder


def troubled(folder: Path) -> Path:
    """Create a tree of problem files: refused by each kind of rule, rejected, links, odd names, empty files."""
    (folder / "src" / ".git").mkdir(parents=True)
    sound = gzip.compress(b"It was the best of times.\n" * 200, mtime=0)
    bodies: dict[bytes, bytes] = {
        b"notes.txt": b"Notes.\n",
        b"notes.txt~": b"Older notes.\n",
        b"Thumbs.db": b"small pictures",
        b"src/.git/config": b"[core]\n",
        b"src/main.c": b"int main(void) { return 0; }\n",
        b"src/main.o": b"\x7fELF",
        b"empty.txt": b"",
        b"cut.txt.gz": sound[:-20],
        b"broken.zip": b"PK\x03\x04" + bytes(60),
        b"no-document.pdf": b"%PDF-1.4\nnothing\n",
        b"odd #1 100%.txt": b"An odd name.\n",
        b"gr\xfc\xdfe.txt": b"A name of Latin 1.\n",
        b"new\nline.txt": b"A name of two lines.\n",
    }
    for name, body in bodies.items():
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(body)
    (folder / "link.txt").symlink_to("notes.txt")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "folder").symlink_to("src")
    os.mkfifo(folder / "pipe")
    return folder


def copied(paths: Sequence[bytes], folder: Path) -> Path:
    """Copy files into a folder under their own paths; links stay links."""
    for path in paths:
        target = os.path.join(os.fsencode(folder), path.lstrip(b"/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    return folder
