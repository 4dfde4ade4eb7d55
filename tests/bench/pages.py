"""Measures pages/s of `harvest gather` on a synthetic web site, against Scrapy, Crawlee and a bare aiohttp loop.

All fetch the same pages from the same process on loopback, from one host and then from fifty, without pauses, with equal numbers
of requests at once. The crawlers find the pages by their links and write URL, title and text of each to a file; Harvest makes a
summary in its sandbox, logs and indexes it. The loop is given all URLs and parses nothing. Each is a whole process, start-up
included, in rounds of one directly after the other; a ratio is the median of those of the rounds. CPU time counts all processes but
the server.

The crawlers are installed by pip into a virtual environment of their own, which is kept between runs; `--quick` does without them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.objects import Timed, gathering, timed
from tests.bench.page_site import served

CRAWLERS = ("scrapy==2.19.0", "crawlee[beautifulsoup,parsel]==1.11.0")
RIVALS = {"scrapy": "Scrapy", "crawlee": "Crawlee, Parsel", "soup": "Crawlee, BeautifulSoup"}
BARE = "aiohttp"
HOSTS = (1, 50)
AT_ONCE = 32
"""Requests at once for each crawler, and for each host of Harvest."""
SETTINGS = {
    "HARVEST_FETCH_PAUSE": "0",
    "HARVEST_FETCH_ALLOW": "127.0.0.0/8",
    "HARVEST_FRONTIER_CREDIT": str(AT_ONCE),
    "HARVEST_ROOTS_URLS": "0",
    "HARVEST_ROOTS_DEPTH": "-1",
}
PROGRAM = Path(__file__).with_name("page_rivals.py")
INSTALL = 600
"""Maximum seconds for the installation."""


def crawlers(cache: Path) -> Path:
    """The Python of a virtual environment with the crawlers, installed if it is missing. Raises BenchError."""
    folder = cache / "crawlers"
    python, mark = folder / "bin" / "python", folder / "installed"
    wanted = "\n".join(CRAWLERS)
    if mark.is_file() and mark.read_text() == wanted:
        return python
    pip: list[str | Path] = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *CRAWLERS]
    try:
        venv: list[str | Path] = [sys.executable, "-m", "venv", "--clear", folder]
        for command in (venv, pip):
            subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=INSTALL)
    except subprocess.CalledProcessError as error:
        raise BenchError(f"the crawlers cannot be installed: {error.stderr.strip()[-1_000:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"the crawlers cannot be installed: {error}") from error
    mark.write_text(wanted)
    return python


def crawled(name: str, python: str | Path, starts: Sequence[str], pages: int, work: Path) -> Timed:
    """Run one of the other crawlers, or the loop. Raises BenchError."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        task = {"starts": starts, "pages": pages, "concurrency": AT_ONCE, "out": f"{folder}/out.jsonl"}
        run = timed([python, "-I", PROGRAM, name, msgspec.json.encode(task).decode()], Path(folder))
    return _whole(name, run, run.said["pages"], pages * len(starts))


def gathered(starts: Sequence[str], pages: int, work: Path) -> Timed:
    """Run `harvest gather`. Raises BenchError."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        data = Path(folder) / "data"
        command = ["env", *(f"{name}={value}" for name, value in SETTINGS.items()), *gathering([], data), *starts]
        run = timed(command, Path(folder))
    return _whole("harvest", run, run.said["objects"], pages * len(starts))


def _whole(name: str, run: Timed, found: int, count: int) -> Timed:
    # Scrapy fetches a start page again when it finds a link to it.
    if not count <= found <= count + HOSTS[-1]:
        raise BenchError(f"{name}: {found:,} of {count:,} pages")
    return run


def measured(count: int, rounds: int, cache: Path, work: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure so many pages of one host, and of all hosts together."""
    rivals = {} if quick else dict.fromkeys(RIVALS, crawlers(cache))
    programs: Mapping[str, str | Path] = {BARE: sys.executable, **rivals}
    for hosts in HOSTS:
        runs: dict[str, list[Timed]] = {name: [] for name in (*programs, "harvest")}
        pages = max(1, count // hosts)
        with served(pages, hosts) as starts:
            for _ in range(rounds):
                for name, python in programs.items():
                    runs[name].append(crawled(name, python, starts, pages, work))
                runs["harvest"].append(gathered(starts, pages, work))
        yield from _figures(f"pages, {hosts} host{'s' * (hosts > 1)}", runs, pages * hosts)


def _figures(group: str, runs: Mapping[str, Sequence[Timed]], count: int) -> Iterator[Figure]:
    names = {**RIVALS, BARE: "bare aiohttp loop", "harvest": "harvest gather"}
    for name, each in runs.items():
        cpu = median(run.cpu for run in each) * 1_000 / count
        rate = count / median(run.seconds for run in each)
        yield Figure(group, names[name], rate, "pages/s", f"{count:,} pages; {cpu:,.2f} ms of CPU a page")
    rivals = [name for name in runs if name in RIVALS]
    if rivals:
        ratio = median(min(runs[name][at].seconds for name in rivals) / ours.seconds for at, ours in enumerate(runs["harvest"]))
        yield Figure(group, "to the best crawler", ratio, "ratio", "the fastest of each round", Goal(">=", 2.5))
        cost = median(min(runs[name][at].cpu for name in rivals) / ours.cpu for at, ours in enumerate(runs["harvest"]))
        yield Figure(group, "CPU, the best crawler's to ours", cost, "ratio", "all processes of each, without the server")
    bare = median(loop.seconds / ours.seconds for loop, ours in zip(runs[BARE], runs["harvest"], strict=True))
    yield Figure(group, "to the bare loop", bare, "ratio", "which only fetches")
