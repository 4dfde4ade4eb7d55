"""Measures a crawl of many slow hosts at once, as their servers see it, and the frontier with many URLs, hosts and roots.

The hosts are addresses of 127.0.0.0/8 (`tests/samples/host_farm.py`), served by this process. One process of `harvest gather` is
killed in the middle, and a second one goes on.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.frontier_rows import Load
from tests.bench.objects import HARVEST, environment
from tests.samples.host_farm import Farm, event_kinds

GIB = 1 << 30
START = 60.0
"""Seconds after which all hosts are expected to have been asked once."""


def measured(hosts: int, pauses: tuple[float, float], seconds: float, urls: int, work: Path) -> Iterator[Figure]:
    """Measure a crawl of so many hosts, half of them with each pause, and the rows of so many URLs."""
    yield from crawl(hosts, pauses, seconds, work)
    yield from rows(urls, work)


def crawl(hosts: int, pauses: tuple[float, float], seconds: float, work: Path) -> Iterator[Figure]:
    """Measure the requests of a crawl through a kill, each process for `seconds` once every host was asked twice."""
    given = [pauses[n % 2] for n in range(hosts)]
    against = f"{hosts:,} hosts at {pauses[0]:g} and {pauses[1]:g} s"
    with Farm(given, int(4 * (seconds + START) / min(pauses))) as farm:
        shares = []
        for last in (False, True):
            process = gather(farm, work)
            try:
                begin = steady(farm, process, max(pauses))
                time.sleep(seconds)
                shares.append(farm.share(begin, begin + seconds))
            finally:
                process.send_signal(signal.SIGINT if last else signal.SIGKILL)
                process.communicate()
        events = event_kinds(work / "data")
        yield Figure("hosts", "of the sum of 1/pause", shares[0], "share", against, Goal(">=", 0.95))
        yield Figure("hosts", "after a kill", shares[1], "share", against, Goal(">=", 0.95))
        yield Figure("hosts", "requests", farm.requests(), "requests", "as counted at the servers")
        yield Figure("hosts", "pauses broken", len(farm.broken()), "pauses", "as measured at the servers", Goal("=", 0))
        yield Figure("hosts", "deferred", events["deferred"] / farm.requests(), "share", "of the requests", Goal("<", 0.05))


def gather(farm: Farm, work: Path) -> subprocess.Popen[bytes]:
    """Start `harvest gather` over all hosts of a farm."""
    command = [*HARVEST, "gather", *farm.urls, "--data", str(work / "data"), "--allow", "127.0.0.0/8", "--quiet"]
    return subprocess.Popen(command, cwd=work, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def steady(farm: Farm, process: subprocess.Popen[bytes], pause: float) -> float:
    """Wait until every host was asked again; return the time, one pause later."""
    before = {address: len(asked) for address, asked in farm.asked.items()}
    end = time.monotonic() + 10 * START
    while not all(len(farm.asked[address]) > before.get(address, 0) + 1 for address in farm.addresses):
        if process.poll() is not None or time.monotonic() > end:
            raise BenchError(f"hosts: not all were asked (exit code {process.poll()})")
        time.sleep(0.1)
    time.sleep(pause)
    return time.monotonic()


def rows(urls: int, work: Path) -> Iterator[Figure]:
    """Measure the memory and time of the frontier with many URLs of one host, many hosts, and two numbers of roots."""
    one, many = loaded("urls", urls, work), loaded("hosts", urls // 10, work)
    few, roots = loaded("roots", urls // 10_000, work), loaded("roots", urls // 1_000, work)
    below = Goal("<=", GIB)
    yield Figure("hosts", "memory, URLs of one host", one.peak, "bytes", f"{one.urls:,} URLs, found and begun anew", below)
    yield Figure("hosts", "memory, hosts", many.peak, "bytes", f"{many.urls:,} hosts with a URL each", below)
    yield Figure("hosts", "to find a URL", one.seconds / one.urls * 1e6, "us", f"{one.urls:,} URLs of one host")
    yield Figure("hosts", "to begin a run", roots.begun / roots.urls * 1e6, "us/URL", f"{urls // 1_000:,} roots of 1,000 URLs")
    ratio = roots.begun / roots.urls / (few.begun / few.urls)
    yield Figure(
        "hosts", "to begin a run of ten times", ratio, "ratio", "the cost of a URL with a tenth of the roots", Goal("<=", 2)
    )


def loaded(kind: str, number: int, work: Path) -> Load:
    """Measure a load in a process of its own. Raises BenchError."""
    folder = work / f"{kind}-{number}"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.bench.frontier_rows", str(folder), kind, str(number)]
    done = subprocess.run(command, env=environment(), check=False, capture_output=True)
    if done.returncode:
        raise BenchError(f"hosts: {done.stderr.decode(errors='replace')[-1_000:]}")
    return msgspec.json.decode(done.stdout, type=Load)
