"""A gateway in a process of its own, over a made index: `python -m tests.sinks.gateway.serving FOLDER [NAME=VALUE...]`.

Prints the URL of the search page when it answers. As a module it starts such a process. A token opens the
administration page, too, unless that has one of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from processors.identity import oid
from sinks.feed.feed import Feed
from sinks.gateway import guard, server
from sinks.gateway.options import GatewayOptions
from tests.sinks.gateway.admin_double import AdministrationDouble
from tests.sinks.gateway.doubles import SUMMARIES, BrokersDouble, CollectionDouble, Made, RegistryDouble, summary

ROOT = Path(__file__).resolve().parents[3]
MANY = 30
"""Copies of SUMMARIES under other URLs that the index has beside them, so that there are several pages."""
KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("objects", "registry"), lambda text: text == "True"),
    **dict.fromkeys(("port", "searches", "queue"), int),
    **dict.fromkeys(("rate", "timeout"), float),
    "proxies": lambda text: tuple(text.split(",")),
}


@contextmanager
def gateway(folder: Path, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a gateway on a free port; yields its process and the URL of its search page. It is stopped at the end."""
    arguments = [f"{name}={value}" for name, value in {"port": 0, "rate": 0, **options}.items()]
    command = [sys.executable, "-m", "tests.sinks.gateway.serving", str(folder), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), "the gateway did not start"
            yield process, url
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def main(folder: Path, *given: str) -> None:
    """Serve until stopped."""
    pairs = dict(text.split("=", 1) for text in given)
    server.PATIENCE = float(pairs.pop("patience", server.PATIENCE))
    guard.PATIENCE = float(pairs.pop("unread", guard.PATIENCE))
    heavy = [
        summary(f"http://heavy.example/{at}", partial_text="heavy", weight="x" * 1_000_000)
        for at in range(int(pairs.pop("heavy", 0)))
    ]
    more = [
        one.__class__(**{name: getattr(one, name) for name in one.__struct_fields__} | {"oid": oid("tests", url), "url": url})
        for at in range(MANY)
        for one in SUMMARIES[:5]
        if (url := f"{one.url}-{at}")
    ]
    made = Made(folder, [*SUMMARIES, *more, *heavy])
    collection = CollectionDouble(float(pairs.pop("slow", 0)))
    collection.bodies = {one.oid: b"the bytes of a member" for one in SUMMARIES if one.path}
    with closing(Feed(folder.with_name(f"{folder.name}.feed"), "tests")) as feed:
        feed.apply(SUMMARIES, {})
        collection.feed_path = feed.path
    with closing(Feed(folder.with_name(f"{folder.name}.stream"), "tests", broker="main")) as feed:
        feed.apply(SUMMARIES, {})
    pairs.setdefault("admin_token", pairs.get("token", ""))
    options = GatewayOptions(**{name: KINDS.get(name, str)(value) for name, value in pairs.items()})
    brokers, administration = BrokersDouble(made), AdministrationDouble()
    brokers.stream_path = feed.path
    server.serve(options, made.open, collection, lambda url: print(url, flush=True), brokers, administration, RegistryDouble())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
