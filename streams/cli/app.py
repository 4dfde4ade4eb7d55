"""The `harvest` application. Each command imports what it needs when it is called, so that `--help` answers at once.

Exit codes: 0 done, 1 failed, 2 usage error, 130 interrupted. Standard output is data; everything else goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from streams.cli.commands.annotate import annotate
from streams.cli.commands.backup import backup, restore
from streams.cli.commands.bodies import app as bodies
from streams.cli.commands.broker import app as broker
from streams.cli.commands.cat import cat
from streams.cli.commands.collect import collect
from streams.cli.commands.describe import describe
from streams.cli.commands.doctor import doctor
from streams.cli.commands.export_import import export, import_topic
from streams.cli.commands.gather import gather, run
from streams.cli.commands.index import app as index
from streams.cli.commands.rejected import app as rejected
from streams.cli.commands.replay import replay
from streams.cli.commands.roots import app as roots
from streams.cli.commands.search import search
from streams.cli.commands.serve import register, serve
from streams.cli.commands.show import show
from streams.cli.commands.soif import app as soif
from streams.cli.commands.summarize import summarize
from streams.cli.commands.top import top
from streams.cli.commands.topics import app as topics
from streams.cli.commands.view import app as view
from streams.cli.commands.why import why
from streams.cli.commands.worker import worker
from streams.cli.common import explained, note, put


class Harvest(TyperGroup):
    """Command group that reports a user's error in one line, and ends quietly when its output pipe is closed."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments, and run a command."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            # Only the output of `--help` can fail here; all other errors were reported by then.
            _silence_if_full(error)
            note(error.strerror or str(error))
            raise SystemExit(1) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of `PANELS`."""
        return [name for members in PANELS.values() for name in members]

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence()
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except Exception as error:
            mistake = explained(error)
            if mistake is None:
                raise
            _silence_if_full(error)
            note(mistake[0])
            raise typer.Exit(mistake[1]) from None
        return result


def _silence() -> None:
    """Redirect standard output to /dev/null: otherwise flushing buffered output at exit would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _silence_if_full(error: BaseException) -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _silence()


app = typer.Typer(
    cls=Harvest,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Discover information: gather, unnest, summarize, index and search files, archives and pages.",
)
PANELS: Mapping[str, Mapping[str, Callable[..., Any] | typer.Typer]] = {
    "Search": {"search": search, "show": show, "serve": serve, "view": view, "broker": broker, "register": register},
    "Gather": {"gather": gather, "run": run, "roots": roots, "collect": collect, "annotate": annotate, "summarize": summarize},
    "Look": {"why": why, "top": top, "rejected": rejected, "cat": cat, "describe": describe, "soif": soif},
    "Operate": {
        "doctor": doctor,
        "backup": backup,
        "restore": restore,
        "index": index,
        "replay": replay,
        "export": export,
        "import": import_topic,
    },
    "Kafka": {"worker": worker, "topics": topics, "bodies": bodies},
}
"""The groups of `harvest --help`, with the commands of each, in their order."""

for panel, members in PANELS.items():
    for name, command in members.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(command)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        put(f"harvest {version('harvest')}")
        raise typer.Exit


@app.callback()
def harvest(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options of all commands."""


def main() -> None:
    """Run the program. Exits by SystemExit."""
    app()
