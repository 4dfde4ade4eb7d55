"""A tree of files that changes step by step: copies, nested archives, damage, links, odd names; all derived from a seed."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable

WORDS = [a + b for a in ("ba", "ke", "lo", "mi", "nu", "ro", "sa", "te") for b in ("dan", "fel", "gor", "hin", "kus", "lam", "pir")]
SUFFIXES = (b".txt", b".txt", b".txt", b".html", b".c", b".py", b".1", b"")
TARS, ZIPS, GZIPS = (b".tar", b".tar.gz"), (b".zip",), (b".txt.gz",)
TOO_LARGE = 1 << 30
"""Size in bytes of sparse files, above the limit of the runs under test."""
Members = list[tuple[bytes, bytes]]


def packed(kind: bytes, members: Members) -> bytes:
    """Build an archive; the same members give the same bytes."""
    out = io.BytesIO()
    if kind in ZIPS:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, data in members:
                zipped.writestr(zipfile.ZipInfo(name.decode()), data, zipfile.ZIP_DEFLATED)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name.decode())
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), 1, mtime=0) if kind == b".tar.gz" else out.getvalue()


def damaged(kind: bytes, members: Members, rng: random.Random) -> bytes:
    """Build a damaged archive: truncated within a text, or with a wrong checksum."""
    if kind in ZIPS:
        data, last = packed(kind, members), members[-1][0]
        at = data.index(last) - 16  # CRC-32 in the local header ...
        end = data.rindex(last) - 30  # ... and in the directory
        return data[:at] + b"\xde\xad\xbe\xef" + data[at + 4 : end] + b"\xde\xad\xbe\xef" + data[end + 4 :]
    data = packed(b".tar", members)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        texts = [info for info in tar if info.name.endswith(".txt") and info.size > 1]
    cut = rng.choice(texts)
    data = data[: cut.offset_data + cut.size // 2]
    if kind == b".tar":
        return data
    encoder = zlib.compressobj(1, wbits=31)
    return encoder.compress(data) + encoder.flush(zlib.Z_SYNC_FLUSH)


class Corpus:
    """The tree under `root`, and the state needed to change it."""

    def __init__(self, root: bytes, seed: int, count: int = 5_000) -> None:
        self.root = root
        self.count = count
        self.rng = random.Random(seed)
        self.contents = [self._text() for _ in range(60)]
        self.archives: dict[bytes, tuple[bytes, Members]] = {}
        """Kind and members by path, also of damaged archives, as they should be."""
        self.broken: set[bytes] = set()
        self.large: set[bytes] = set()
        self._names = 0

    # ---- content -------------------------------------------------------------------------------------------------

    def _text(self) -> bytes:
        words = self.rng.choices(WORDS, k=self.rng.randrange(8, 60))
        return (" ".join(words) + f"\nnumber {self.rng.randrange(1 << 40)}\n").encode()

    def content(self) -> bytes:
        """A text: mostly new, often a copy, sometimes empty, sometimes too long to be inline in the log."""
        chance = self.rng.random()
        if chance < 0.02:
            return b""
        if chance < 0.27:
            return self.rng.choice(self.contents)
        if chance < 0.285:
            return self._text() * 400
        return self._text()

    def members(self, depth: int) -> Members:
        """Members of an archive, with archives and gzip files among them."""
        made: Members = []
        for number in range(self.rng.randrange(2, 6)):
            chance = self.rng.random()
            if chance < 0.15 and depth < 3:
                kind = self.rng.choice((*TARS, *ZIPS))
                made.append((b"in%d%s" % (number, kind), packed(kind, self.members(depth + 1))))
            elif chance < 0.3:
                made.append((b"m%d.txt.gz" % number, gzip.compress(self.content(), mtime=0)))
            elif chance < 0.35:
                made.append((b"old%d.txt~" % number, self.content()))
            else:
                made.append((b"sub dir/m%d#%d.txt" % (number, depth), self.content()))
        if self.rng.random() < 0.2:
            made.append((b"broken.txt.gz", gzip.compress(self._text(), mtime=0)[:-9]))
        made.append((b"last.txt", self._text()))
        return made

    # ---- writing -------------------------------------------------------------------------------------------------

    def _fresh(self, folder: bytes, suffix: bytes) -> bytes:
        self._names += 1
        odd = self.rng.choice((b"", b"", b"", b"", b" ", b"#", b"%", b"\xff", b";")) if suffix != b"" else b""
        return os.path.join(folder, b"f%05d%s%s" % (self._names, odd, suffix))

    def _write(self, path: bytes, data: bytes) -> None:
        with open(path, "wb") as file:
            file.write(data)

    def _archive(self, path: bytes, kind: bytes, members: Members, *, broken: bool = False) -> None:
        self.archives[path] = (kind, members)
        self.broken.discard(path)
        if broken:
            self.broken.add(path)
        self._write(path, damaged(kind, members, self.rng) if broken else packed(kind, members))

    def add(self, folder: bytes) -> None:
        """Add a file, link or archive."""
        chance = self.rng.random()
        if chance < 0.01:
            os.symlink(b"../" + self.rng.choice((b"f00001.txt", b"nowhere")), self._fresh(folder, b".lnk"))
        elif chance < 0.05:
            kind = self.rng.choice((*TARS, *ZIPS))
            self._archive(self._fresh(folder, kind), kind, self.members(1), broken=self.rng.random() < 0.2)
        elif chance < 0.10:
            data = gzip.compress(self.content() or b"x", mtime=0)
            self._write(self._fresh(folder, b".txt.gz"), data[: len(data) - 5 * (self.rng.random() < 0.2)])
        elif chance < 0.11:
            self._write(self._fresh(folder, b".txt~"), self.content())
        elif chance < 0.1105:
            self.enlarge(self._fresh(folder, b".txt"))
        else:
            self._write(self._fresh(folder, self.rng.choice(SUFFIXES)), self.content())

    def enlarge(self, path: bytes) -> None:
        """Make a file too large to be read; it is sparse."""
        self._write(path, b"")
        os.truncate(path, TOO_LARGE)
        self.large.add(path)

    def build(self) -> None:
        """Create the first state of the tree."""
        folders = [self.root]
        for number in range(max(8, self.count // 120)):
            folders.append(os.path.join(self.rng.choice(folders), b"d%d" % number))
            os.makedirs(folders[-1])
        for _ in range(self.count):
            self.add(self.rng.choice(folders))
        self._archive(
            os.path.join(self.root, b"twice.tar"), b".tar", [(b"m.txt", b"one\n"), (b"m.txt", b"two\n"), (b"n.txt", b"\n")]
        )
        self.enlarge(os.path.join(self.root, b"large.txt"))

    # ---- changing ------------------------------------------------------------------------------------------------

    def files(self) -> list[bytes]:
        """All files and links, sorted."""
        return sorted(os.path.join(top, name) for top, _, names in os.walk(self.root) for name in names)

    def folders(self) -> list[bytes]:
        """All folders but the root, sorted."""
        return sorted(top for top, _, _ in os.walk(self.root) if top != self.root)

    def disturb(self) -> None:
        """Take one step: change, remove, rename, add, shrink, damage and repair files."""
        for path in self.files():
            if path in self.archives:
                self._disturb_archive(path)
            elif path in self.large:
                if self.rng.random() < 0.5:
                    self._change(path)
            elif self.rng.random() < 0.12:
                self.rng.choice((self._change, self._change, self._remove, self._rename))(path)
        self._disturb_folders()
        folders = [self.root, *self.folders()]
        for _ in range(self.count // 40):
            self.add(self.rng.choice(folders))

    def _disturb_archive(self, path: bytes) -> None:
        kind, members = self.archives[path]
        doings: list[Callable[[], None]] = [
            lambda: self._archive(path, kind, members[1:] if len(members) > 2 else members, broken=False),
            lambda: self._archive(path, kind, members, broken=path not in self.broken),
            lambda: self._archive(path, kind, members[1:] if len(members) > 2 else members, broken=path not in self.broken),
            lambda: self._remove(path),
            lambda: self._rename(path),
        ]
        if self.rng.random() < 0.4:
            self.rng.choice(doings)()

    def _disturb_folders(self) -> None:
        """Remove a folder, rename another, and replace a file by a folder."""
        folders = self.folders()
        leaves = [f for f in folders if not any(other.startswith(f + b"/") for other in folders)]
        gone, moved = self.rng.sample(leaves, 2)
        shutil.rmtree(gone)
        os.rename(moved, moved + b" moved")
        self._forget(gone)
        for path in [p for p in self.archives if p.startswith(moved + b"/")]:
            self._moved(path, moved + b" moved" + path[len(moved) :])
        self._forget(moved)
        turned = self.rng.choice([p for p in self.files() if p.endswith(b".txt")])
        self._remove(turned)
        os.mkdir(turned)
        self._write(os.path.join(turned, b"inside.txt"), self.content())

    def _change(self, path: bytes) -> None:
        if os.path.islink(path):
            os.unlink(path)
            os.symlink(b"elsewhere", path)
        elif self.rng.random() < 0.03 and path.endswith(b".txt"):
            self.enlarge(path)
        else:
            data = self.content()
            self._write(path, gzip.compress(data, mtime=0) if path.endswith(b".gz") else data)
            self.large.discard(path)

    def _remove(self, path: bytes) -> None:
        os.unlink(path)
        self.archives.pop(path, None)
        self.large.discard(path)

    def _rename(self, path: bytes) -> None:
        folder, name = os.path.split(path)
        target = os.path.join(self.rng.choice((folder, self.root)), b"r" + name)
        os.rename(path, target)
        self._moved(path, target)

    def _moved(self, path: bytes, target: bytes) -> None:
        if path in self.archives:
            self.archives[target] = self.archives.pop(path)
            if path in self.broken:
                self.broken.add(target)

    def _forget(self, folder: bytes) -> None:
        inside = folder + b"/"
        self.archives = {p: a for p, a in self.archives.items() if not p.startswith(inside)}
        self.large = {p for p in self.large if not p.startswith(inside)}
