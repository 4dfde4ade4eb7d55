"""File systems by their mount points (/proc/self/mountinfo, proc(5)): which of them report changes.

A file system whose content other machines or programs change (NFS, SMB, FUSE), or whose files are copied from one layer to another
(overlay), reports only a part of the changes, or none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

SILENT = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "vboxsf", "vmhgfs", "drvfs", "prl_fs"),
        *("afs", "coda", "ceph", "glusterfs", "lustre", "beegfs", "gpfs", "ocfs2", "gfs2", "pvfs2"),
        *("overlay", "aufs", "unionfs", "fuse"),
    }
)
"""Types of file systems that are polled; besides these all types `fuse.NAME`."""
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """The mounted file systems at one time."""

    def __init__(self, kinds: Mapping[bytes, str]) -> None:
        """`kinds`: the type of the file system by mount point."""
        self._kinds = dict(kinds)

    @classmethod
    def read(cls) -> Mounts:
        """Return the file systems that are mounted now; none where the system does not tell."""
        kinds: dict[bytes, str] = {}
        with suppress(OSError), open("/proc/self/mountinfo", "rb") as lines:
            for line in lines:
                fields, _, rest = line.partition(b" - ")
                # Of several mounts at one point the last one is seen.
                kinds[_unescaped(fields.split(b" ")[4])] = rest.split(b" ")[0].decode("ascii", "replace")
        return cls(kinds)

    def kind_of(self, path: bytes) -> str:
        """Return the type of the file system that a path is on; "": unknown."""
        at = path
        while at not in self._kinds and at not in (b"", b"/"):
            at = at.rpartition(b"/")[0]
        return self._kinds.get(at or b"/", "")

    def is_silent(self, path: bytes) -> bool:
        """Return whether a path is on a file system that does not report all changes."""
        kind = self.kind_of(path)
        return kind in SILENT or kind.startswith("fuse.")

    def silent_below(self, path: bytes) -> list[bytes]:
        """Return the mount points below a folder at which such a file system begins."""
        below = path.rstrip(b"/") + b"/"
        points = sorted(point for point in self._kinds if point.startswith(below) and self.is_silent(point))
        return [point for point in points if not any(point.startswith(other + b"/") for other in points)]

    def about(self, path: bytes) -> frozenset[tuple[bytes, str]]:
        """Return the mounts that a folder depends on: its own, and those below it."""
        below = path.rstrip(b"/") + b"/"
        found = {(point, kind) for point, kind in self._kinds.items() if point.startswith(below)}
        return frozenset(found | {(path, self.kind_of(path))})


def _unescaped(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), field)
