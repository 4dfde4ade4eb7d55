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
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="Gateways (harvest serve), or Brokers there: …/brokers/NAME?q=QUERY.")
    ],
    every: Annotated[str, typer.Option("--every", metavar="TIME", help="How often harvest run asks again: 30m, 1h, 7d.")] = "1h",
    data: Data = None,
    pause: Pause = None,
    allow: Allow = None,
    gatherer: Gatherer = None,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Collect the summaries of other Gatherers and Brokers: they are searched like our own, and go when they go there.

    Nothing that they describe is fetched. Each URL becomes a root: `harvest gather` and `harvest run` ask again for what has
    changed, `harvest roots remove` ends it. On Kafka the roots are added, and the workers collect.
    """
    roots = [collected_url(url) for url in urls]
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


def collected_url(text: str) -> str:
    """Return the URL of the listing of parts that a URL means: of a gateway, or of what it serves. Raises Failure."""
    from processors.collector import listing_of

    if "@" in text.partition("://")[2].partition("/")[0]:
        raise Failure("a gateway is asked without name and password: give its URL without them", USAGE)
    found = listing_of(text)
    if found is None:
        raise Failure(
            f"{printable(text)}: not the URL of a gateway (http://HOST:8380/), or of a Broker there (…/brokers/NAME)", USAGE
        )
    return found


def seconds(text: str) -> int:
    """Return the seconds of a duration such as 30m. Raises Failure."""
    found = _EVERY.fullmatch(text)
    if found is None:
        raise Failure(f"--every: a number with s, m, h, d or w is expected, not {printable(text)!r:.40}", USAGE)
    return int(found[1]) * SECONDS[found[2]]
