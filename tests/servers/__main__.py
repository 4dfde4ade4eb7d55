"""`make servers`: runs Kafka and OpenSearch until Ctrl-C. Also `needs` and `install`, for make, and `keep`, for tests.

python -m tests.servers [run | needs | install | keep NAME FOLDER PID]
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.servers import containers, kafka, opensearch, sharing
from tests.servers.artefacts import NAMES, ArtefactError, install, installed
from tests.servers.process import ServerError

FOR_PERSONS = ("kafka", "opensearch")


def needs() -> None:
    """Print the missing system packages, by their Debian names, without which `install` or a test would fail."""
    if shutil.which("mvn") is None and not all(map(installed, NAMES)):
        print("maven")
    # An independent Kafka client, for the example of the README.
    if shutil.which("kcat") is None:
        print("kcat")


def get() -> None:
    """Install images where a Docker engine answers and can pull them; otherwise jars.

    Tika, which has no image here, is always installed as a jar.
    """
    if all(map(installed, NAMES)):
        return
    wanted = ("tika",) if containers.pull(kafka.IMAGE, opensearch.IMAGE) else NAMES
    print(f"installing {', '.join(wanted)} into .venv/servers", file=sys.stderr)
    install(wanted)


def run() -> None:
    """Start both servers, print their addresses, and stop them at Ctrl-C."""
    for how in (signal.SIGINT, signal.SIGTERM):
        signal.signal(how, signal.default_int_handler)
    sharing.begin()
    try:
        with contextlib.suppress(KeyboardInterrupt), ThreadPoolExecutor() as pool:
            for name, where in zip(FOR_PERSONS, pool.map(sharing.address, FOR_PERSONS), strict=True):
                print(f"{name:10} {where}", flush=True)
            at = {name: sharing.address(name) for name in FOR_PERSONS}
            print(f"export HARVEST_KAFKA_BROKERS={at['kafka']} HARVEST_INDEX_URL={at['opensearch']}", file=sys.stderr)
            print("Ctrl-C stops both, and what they hold is gone", file=sys.stderr, flush=True)
            signal.pause()
    finally:
        sharing.end()


def main(words: list[str]) -> int:
    """Run a subcommand and return the exit code."""
    try:
        match words:
            case ["needs"]:
                needs()
            case ["install"]:
                get()
            case ["keep", name, folder, controller]:
                sharing.keep(name, Path(folder), int(controller))
            case [] | ["run"]:
                run()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (ArtefactError, ServerError) as error:
        print(f"tests.servers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
