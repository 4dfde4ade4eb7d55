"""`harvest doctor`: checks of this machine and of its safety layers."""

from __future__ import annotations

import sys

import typer

from streams.cli.common import Config, Data, Json, put, settings


def doctor(data: Data = None, json: Json = False, config: Config = None) -> None:
    """Check this machine, its safety layers and the data folder; exit code 1 if a check fails."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.checks import checks

    wrong = False
    for check in checks(found):
        wrong = wrong or not check.ok
        put(line(check._asdict()) if json else f"{'ok' if check.ok else 'NOT OK':<7} {check.check}: {check.detail}")
        sys.stdout.flush()
    if wrong:
        raise typer.Exit(1)
