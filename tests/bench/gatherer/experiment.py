"""Measures the Gatherer's experiment of 1995: what one collection costs the server of a site, by each way of gathering.

The paper compares the time of (a) retrieving an object by FTP, (b) retrieving it from the local file system, and (c) the whole
stream from the Gatherer's cache: (a) is 7.0 times (b), and 2.7 to 2.9 times (c), which contains all objects. For a site of 2,300
files, collecting the stream is then 6,631 times cheaper than fetching each file. Keeping connections made FTP 7.0 times cheaper.
It measured empty files; they are measured here, too. Its 59.4 is another measurement: bytes of documents to bytes of the stream.

Here the cost is CPU time of the server's processes (proc(5): stat), not the time that passes: other work of the machine does not
count. For (b) it is that of the whole retrieval, since it runs at the site, and that of all of `harvest gather` beside.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.bench.corpora import chosen
from tests.bench.cpu import spent
from tests.bench.figures import BenchError, Figure
from tests.bench.gatherer.retrievals import Retrieved
from tests.bench.gatherer.robot import Traffic, fetch_each, files
from tests.bench.gatherer.web_servers import Answer, Server, content, gateway, get
from tests.bench.objects import environment, gathering, timed
from tests.servers.ftp import FtpServer, Name, ftp_server

MS = 1_000
SOME = 10
"""One in so many files is fetched from proftpd."""
CHANGED = 100
"""One in so many files is changed."""


class Site(NamedTuple):
    """A site: the name of its figures, its files, and a folder to work in."""

    name: str
    tree: Path
    work: Path
    paths: Sequence[bytes]
    size: int
    """Bytes of the files."""


class Cost(NamedTuple):
    """What a way of gathering costs a server: seconds of CPU, and traffic."""

    cpu: float
    traffic: Traffic


class Stream(NamedTuple):
    """What the stream costs the server: the whole, the changes of one file in a hundred, and the answer that nothing changed."""

    whole: Cost
    changes: Cost
    nothing: Cost
    body: bytes
    """The whole stream, compressed."""


def site(name: str, tree: Path, work: Path) -> Site:
    """Return the site of a tree."""
    paths = files(tree)
    work.mkdir(parents=True, exist_ok=True)
    return Site(f"gatherer, {name}", tree, work, paths, sum(os.path.getsize(_file(tree, path)) for path in paths))


def experiment(here: Site, requests: int) -> Generator[Figure, None, Stream]:
    """Measure each way of gathering a site, and return its stream; `requests`: of a stream, for an average. Raises BenchError."""
    count = len(here.paths)
    yield Figure(here.name, "files", count, "files", f"{here.size:,} bytes")
    robot, some = by_robot("vsftpd", here, here.paths), here.paths[::SOME]
    how = f"vsftpd; proftpd, of {len(some)} files: {by_robot('proftpd', here, some).cpu / len(some) * MS:.2f}"
    yield Figure(here.name, "FTP, a connection each", robot.cpu / count * MS, "ms/object", how)
    connections = robot.traffic.connections
    yield Figure(here.name, "FTP, connections", connections, "connections", f"{robot.traffic.bytes:,} bytes both ways")
    kept, used = on_kept_connection(here)
    yield Figure(here.name, "FTP, connection kept", kept / count * MS, "ms/object", f"vsftpd; {used:,} connections")
    yield Figure(here.name, "FTP to connection kept", robot.cpu / kept, "ratio", "1995: 7.0")
    local = retrieved(f"file://{here.tree}/", here).cpu
    yield Figure(here.name, "local access", local / count * MS, "ms/object", "all of the retrieval, digests included")
    yield Figure(here.name, "FTP to local access", robot.cpu / local, "ratio", "1995: 7.0")
    gathered = timed(gathering([here.tree], here.work / "data"), here.work)
    how = f"all of harvest gather, start-up included: {gathered.said['summaries']:,} summaries"
    yield Figure(here.name, "gathered locally", gathered.cpu / count * MS, "ms/object", how)
    found = streamed(here, requests)
    yield from _figures(here, robot, found)
    return found


def _figures(here: Site, robot: Cost, found: Stream) -> Iterator[Figure]:
    count, one = len(here.paths), robot.cpu / len(here.paths)
    whole, changes = found.whole, found.changes
    for name, cost in (("whole stream", whole), ("changes of 1 per cent", changes), ("nothing changed", found.nothing)):
        how = f"{cost.traffic.bytes:,} bytes both ways, {cost.traffic.connections} connection"
        yield Figure(here.name, name, cost.cpu * MS, "ms", how)
    yield Figure(here.name, "one object by FTP to stream", one / whole.cpu, "ratio", "CPU at the server; 1995: 2.7 to 2.9")
    yield Figure(here.name, "all objects by FTP to stream", robot.cpu / whole.cpu, "ratio", "CPU at the server; 1995: 6,631")
    yield Figure(here.name, "all objects by FTP to changes", robot.cpu / changes.cpu, "ratio", f"CPU; {count // CHANGED} changed")
    if here.size:
        yield Figure(here.name, "bytes of files to stream", here.size / whole.traffic.bytes, "ratio", "1995: 59.4")
    yield Figure(here.name, "bytes by FTP to stream", robot.traffic.bytes / whole.traffic.bytes, "ratio", "both ways")
    yield Figure(here.name, "bytes of stream to changes", whole.traffic.bytes / changes.traffic.bytes, "ratio", "both ways")


# ---- FTP, and local access -------------------------------------------------------------------------------------------


@contextmanager
def _ftp(name: Name, here: Site, label: str) -> Iterator[FtpServer]:
    folder = here.work / f"{name}-{label}"
    folder.mkdir()
    with ftp_server(name, folder, here.tree) as running:
        yield running


def by_robot(name: Name, here: Site, paths: Sequence[bytes]) -> Cost:
    """Fetch files, each over connections of its own; return the cost at the server."""
    with _ftp(name, here, "robot") as server:
        before = spent(server.pid)
        traffic = fetch_each(server.url, paths)
        return Cost(spent(server.pid) - before, traffic)


def on_kept_connection(here: Site) -> tuple[float, int]:
    """Fetch each file by Harvest's adapter; return seconds of CPU at the server, and connections. Raises BenchError."""
    with _ftp("vsftpd", here, "kept") as server:
        before = spent(server.pid)
        retrieved(server.url, here)
        # The process of the connection is waited for by its parent, or still there.
        cpu = spent(server.pid) - before
        return cpu, len(server.commands("USER", "EPSV", "PASV"))


def retrieved(root: str, here: Site) -> Retrieved:
    """Retrieve each file by the adapter of a root in a process of its own. Raises BenchError."""
    command = [sys.executable, "-m", "tests.bench.gatherer.retrievals", root, str(here.work / "bodies")]
    done = subprocess.run(command, env=environment(), input=b"\0".join(here.paths), capture_output=True, check=False)
    if done.returncode:
        raise BenchError(f"{root}: {done.stderr.decode(errors='replace')[-1_000:]}")
    found = msgspec.json.decode(done.stdout, type=Retrieved)
    if found.objects != len(here.paths):
        raise BenchError(f"{root}: {found.objects:,} of {len(here.paths):,} files")
    return found


# ---- the stream ------------------------------------------------------------------------------------------------------


def streamed(here: Site, requests: int) -> Stream:
    """Collect the stream of a data folder: all of it, and what has changed since. Raises BenchError."""
    data = here.work / "data"
    with gateway(data) as server:
        # From the feed; so is the second one, which makes the file that the others are sent from.
        tag, body = _answer(server, 200).tag, content(server)
        whole = _average(server, 200, requests)
        nothing = _average(server, 304, requests, f"If-None-Match: {tag}")
    for path in chosen(here.paths, max(1, len(here.paths) // CHANGED)):
        with open(_file(here.tree, path), "ab") as file:
            file.write(b"\nChanged.\n")
    timed(gathering([], data), here.work)
    with gateway(data) as server:
        asked = (f"If-None-Match: {tag}", "A-IM: soif")
        _answer(server, 226, *asked)
        return Stream(whole, _average(server, 226, requests, *asked), nothing, body)


def _average(server: Server, status: int, requests: int, *headers: str) -> Cost:
    before = spent(server.pid)
    total = sum(_answer(server, status, *headers).bytes for _ in range(requests))
    return Cost((spent(server.pid) - before) / requests, Traffic(1, total // requests))


def _answer(server: Server, status: int, *headers: str) -> Answer:
    found = get(server, *headers)
    if found.status != status:
        raise BenchError(f"{server.path}: {found.status} instead of {status}")
    return found


def _file(tree: Path, path: bytes) -> bytes:
    return os.path.join(os.fsencode(tree), path)
