"""Retrieves files by the adapters of the fetch edge, one after the other: python -m tests.bench.gatherer.retrievals ROOT FOLDER.

ROOT is the URL of a folder, by `file:` or `ftp:`; the paths below it come from standard input, separated by NUL bytes. FOLDER is
for the bodies that are too large for the log. Prints the number of files and the seconds of CPU that they took, as one JSON line;
start-up does not count. Files of this machine are read as a runner does, without an event loop; those of an FTP server over one
control connection, which is kept.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from processors.identity import frontier_key
from schemas.records import FetchedObject, FetchRequest, Record, Root
from streams.clock import now_ms
from streams.fetch import Fetcher, FetchSettings
from streams.fetch.adapters.local import fetch_local
from streams.fetch.adapters.places import Places
from streams.store.blobs import FolderBlobs


class Retrieved(msgspec.Struct):
    """The number of files that were retrieved, and the seconds of CPU of this process."""

    objects: int
    cpu: float


def requests(root: str, paths: Sequence[bytes]) -> list[FetchRequest]:
    """Return a request for each path below a root."""
    given = Root(url=root, run="bench")
    urls = (root + quote(path) for path in paths)
    return [FetchRequest(url=url, host=frontier_key(url), version=1, time=now_ms(), root=given) for url in urls]


def from_disk(asked: Sequence[FetchRequest], blobs: FolderBlobs) -> list[Record]:
    """Read files of this machine."""
    with Places() as places:
        return [record for one in asked for record in fetch_local(one, blobs, now_ms(), places=places)]


async def by_ftp(asked: Sequence[FetchRequest], blobs: FolderBlobs) -> list[Record]:
    """Fetch files of an FTP server."""
    async with Fetcher(FetchSettings(pause=0.0, allow=("127.0.0.0/8",)), blobs, now_ms) as fetcher:
        return [record for one in asked for record in await fetcher.fetch(one)]


def main(root: str, folder: str) -> None:
    """Retrieve the files, and print what it took."""
    asked = requests(root, sys.stdin.buffer.read().split(b"\0"))
    blobs = FolderBlobs(Path(folder))
    began = time.process_time()
    found = asyncio.run(by_ftp(asked, blobs)) if root.startswith("ftp:") else from_disk(asked, blobs)
    cpu = time.process_time() - began
    objects = sum(isinstance(record, FetchedObject) and record.outcome == "fetched" for record in found)
    print(msgspec.json.encode(Retrieved(objects, cpu)).decode(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
