"""`harvest collect`: the summaries of other Gatherers."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from streams.cli.commands.gather import Allow, Gatherer, Pause, Quiet
from streams.cli.common import USAGE, Config, Data, Failure, printable, settings

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EVERY = re.compile(r"([1-9][0-9]{0,8})([smhdw]?)")


def collect(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Gateways of other Gatherers (harvest serve).")],
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often harvest run asks again: 30m, 1h, 7d.")] = "1h",
    data: Data = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Collect the summaries of other Gatherers: they are searched like our own, and go when they go there.

    Nothing that they describe is fetched. Each URL becomes a root: `harvest gather` and `harvest run` ask again for what has
    changed, `harvest roots remove` ends it. On Kafka the roots are added, and the workers collect.
    """
    from processors.collector import COLLECTED

    roots = [collected_url(url, COLLECTED) for url in urls]
    # A gateway is made to be asked: a collection is 17 requests at most.
    flags = {"fetch__pause": pause or 0.0, "fetch__allow": allow or None, "gatherer": gatherer, "roots__refresh": seconds(every)}
    found = settings(config, data=data, **flags)
    if found.kafka.brokers:
        from streams.cli.commands.roots import add_roots

        add_roots(found, roots, depth=1)
        return
    from streams.cli.gathering import Gathering

    code = Gathering(found, quiet=quiet, json=False).gather(roots, 1, None)
    if code:
        raise typer.Exit(code)


def collected_url(text: str, ending: str) -> str:
    """Return the URL of the listing of a gateway's parts; the gateway is named by its own URL, or by one of its database.

    `ending`: the path of the listing below the gateway. Raises Failure.
    """
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() not in ("http", "https") or not rest.strip("/") or "?" in rest or "#" in rest:
        raise Failure(f"{printable(text)}: not the URL of a gateway (http://HOST:8380/)", USAGE)
    host, _, path = rest.partition("/")
    if "@" in host:
        raise Failure("a gateway is asked without name and password: give its URL without them", USAGE)
    path = f"/{path}".rstrip("/")
    named = (ending.rstrip("/"), ending.rstrip("/").rpartition("/")[0])
    below = next((path.removesuffix(each) for each in named if path.endswith(each)), path)
    return f"{scheme}://{host}{below}{ending}"


def seconds(text: str) -> int:
    """Return the seconds of a duration such as 30m. Raises Failure."""
    found = _EVERY.fullmatch(text)
    if found is None:
        raise Failure(f"--every: a number with s, m, h, d or w is expected, not {printable(text)!r:.40}", USAGE)
    return int(found[1]) * SECONDS[found[2]]
