"""`harvest doctor`: checks of this machine and of its safety layers."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from streams.cli.common import Config, Data, Json, folder, put, settings

Backup = Annotated[
    Path | None, typer.Option("--backup", metavar="FOLDER", help="Also read and verify the latest backup in it.", parser=folder)
]


def doctor(data: Data = None, backup: Backup = None, json: Json = False, config: Config = None) -> None:
    """Check this machine, its safety layers and the data folder; exit code 1 if a check fails."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.checks import backup_check, checks

    wrong = False
    for check in chain(checks(found), () if backup is None else (backup_check(backup),)):
        wrong = wrong or not check.ok
        put(line(check._asdict()) if json else f"{'ok' if check.ok else 'NOT OK':<7} {check.check}: {check.detail}")
        sys.stdout.flush()
    if wrong:
        raise typer.Exit(1)
