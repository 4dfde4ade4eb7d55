"""`harvest broker`: the definitions of Brokers, as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli.common import USAGE, Config, Data, Failure, Json, counted, note, printable, put, settings

if TYPE_CHECKING:
    from processors.broker.definition import Broker
    from streams.config.settings import Settings
    from streams.logs import LogAccess
    from streams.operations.brokers import BrokerState

app = typer.Typer(no_args_is_help=True, help="Create, list, show, check and remove the definitions of Brokers.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a Broker: small letters, digits and hyphens.")]


@app.command()
def create(
    name: Name,
    query: Annotated[str, typer.Option("--query", metavar="QUERY", help="The summaries that it accepts (default: all).")] = "",
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="SOURCE", help="summaries (the default), broker:NAME or the URL of a stream; repeatable."),
    ] = None,
    ttl: Annotated[str, typer.Option("--ttl", metavar="TIME", help="Time-to-live: 8w, 3d, 12h, or seconds.")] = "",
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title for people.")] = "",
    example: Annotated[str, typer.Option("--example", metavar="EXAMPLE", help="Start from a definition of sinks/examples.")] = "",
    data: Data = None,
    config: Config = None,
) -> None:
    """Define a Broker by a new file NAME.toml, which the next start of a runner or worker takes."""
    from streams.brokers import ENDING, definition_text, name_mistake
    from streams.config.topology import definitions_folder

    found = settings(config, data=data)
    if wrong := name_mistake(name):
        raise Failure(f"{printable(name)}: {wrong}", USAGE)
    given: dict[str, Any] = {"title": title, "from": sources, "query": query, "ttl": ttl}
    text = _example(example) if example else ""
    if example and (options := [f"--{key}" for key, value in given.items() if value]):
        raise Failure(f"{', '.join(options)}: with --example, the definition says it; edit the file afterwards", USAGE)
    _write(found, definitions_folder(found) / f"{name}{ENDING}", text or definition_text(given))
    _tell(found, f"{definitions_folder(found) / name}{ENDING}: written")


def _example(name: str) -> str:
    from importlib import resources

    from streams.brokers import ENDING

    folder = resources.files("sinks").joinpath("examples")
    paths = folder.iterdir() if folder.is_dir() else ()
    known = sorted(path.name.removesuffix(ENDING) for path in paths if path.name.endswith(ENDING))
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there are none in this installation"
        raise Failure(f"--example {printable(name)}: no such example ({there})", USAGE)
    return folder.joinpath(f"{name}{ENDING}").read_text("utf-8")


def _write(found: Settings, path: Path, text: str) -> None:
    """Write a new definition; one with a mistake is removed again. Raises Failure."""
    from streams.config.topology import definitions_of

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise Failure(f"{path}: it is there already: edit the file, or harvest broker remove {path.stem}") from None
    for mistake in definitions_of(found).mistakes:
        if mistake.broker == path.stem:
            path.unlink()
            raise Failure(mistake.line, USAGE)


def _tell(found: Settings, done: str) -> None:
    """Say what was done, and from when on it holds."""
    from streams.store.locks import runner_of

    runner = 0 if found.kafka.brokers else runner_of(found.data)
    if found.kafka.brokers:
        note(f"{done}; it holds after harvest topics apply, from the next start of the workers")
    elif runner:
        note(f"{done}; the runner at work (process {runner}) does not know of it: it holds from the next start")
    else:
        note(f"{done}; it holds from the next harvest gather or harvest run")


@app.command("list")
def list_brokers(data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the Brokers: name, title, summaries, records that its stages have not read yet, last change, mistakes."""
    from schemas.jsonform import line
    from streams.config.topology import definitions_of
    from streams.operations.brokers import states

    found = settings(config, data=data)
    defined = definitions_of(found)
    with _log(found) as log:
        for state in states(found, defined, log):
            put(line(state._asdict()) if json else _shown(state))
    for mistake in defined.mistakes:
        if not mistake.broker:
            note(mistake.line)


@contextmanager
def _log(found: Settings) -> Iterator[LogAccess | None]:
    """Open the log; None where there is no data folder yet."""
    from streams.cli.common import open_log
    from streams.store.data_folder import known

    with ExitStack() as stack:
        if not found.kafka.brokers and stack.enter_context(known(found.data)) is None:
            yield None
            return
        yield stack.enter_context(open_log(found))


def _shown(state: BrokerState) -> str:
    changed = state.changed or "never filled"
    said = f"{counted(state.summaries, 'summary', 'summaries')}, {state.lag:,} to be read, {changed}"
    return printable("  ".join(filter(None, (state.name, state.title, said, *state.problems))))


@app.command()
def show(name: Name, data: Data = None, config: Config = None) -> None:
    """Show the definition of a Broker, with what it has by default."""
    from streams.brokers import definition_text, values_of
    from streams.config.topology import broker_defined

    put(definition_text(values_of(broker_defined(settings(config, data=data), name))).rstrip("\n"))


@app.command()
def check(data: Data = None, config: Config = None) -> None:
    """Print all mistakes of all definitions; exit code 2 if there are any."""
    from streams.config.topology import definitions_of

    defined = definitions_of(settings(config, data=data))
    for mistake in defined.mistakes:
        put(printable(mistake.line))
    if defined.mistakes:
        raise typer.Exit(USAGE)
    note(f"{counted(len(defined.brokers), 'Broker')}, no mistakes")


@app.command()
def collect(data: Data = None, config: Config = None) -> None:
    """Collect the URLs that Brokers are made from: each becomes a root, as `harvest collect` makes it.

    `harvest gather` and `harvest run` do that by themselves, and end those that no Broker names any more. On Kafka this command
    adds them, and names those that no Broker has: `harvest roots remove` ends them.
    """
    from streams.cli.broker_sources import collect_sources, needed_sources, source_root
    from streams.cli.commands.roots import add_source_roots

    found = settings(config, data=data)
    if not found.kafka.brokers:
        collect_sources(found)
        return
    add_source_roots(found, [source_root(found, url) for url in needed_sources(found)])


@app.command()
def remove(
    name: Name,
    forget: Annotated[bool, typer.Option("--forget", help="Delete its topics, rows, index and stream, too.")] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Remove the definition of a Broker; its topics, rows and index stay, and serve again if it is created again.

    With --forget they are deleted, also those of a Broker whose definition was removed before: no summary of the Gatherer is.
    """
    from processors.broker.definition import MAIN
    from streams.brokers import name_mistake
    from streams.config.topology import definitions_folder, definitions_of
    from streams.store.locks import runner_of

    found = settings(config, data=data)
    defined = definitions_of(found)
    if name == MAIN and name not in defined.files:
        raise Failure(f"{MAIN} cannot be removed: it is there without a definition", USAGE)
    if name not in defined.files and not (forget and not name_mistake(name)):
        raise Failure(f"{printable(name)}: no definition in {definitions_folder(found)}", USAGE)
    if name == MAIN and forget:
        raise Failure(f"{MAIN} cannot be forgotten: it is there without a definition", USAGE)
    if name != MAIN and (users := [broker.name for broker in defined.brokers if _needs(broker, name)]):
        raise Failure(f"{name}: {', '.join(users)} is made from it, or falls back on it: change or remove that one first")
    if not found.kafka.brokers and (runner := runner_of(found.data)):
        raise Failure(f"{name}: a runner is at work on {found.data} (process {runner}): stop it first")
    if forget:
        _refuse_used(found, name, {broker.name for broker in defined.brokers})
        _forget(found, name, defined.files.get(name))
        return
    defined.files[name].unlink()
    _tell(found, f"{defined.files[name]}: removed; its topics, rows and index stay (--forget deletes them)")


def _refuse_used(found: Settings, name: str, others: set[str]) -> None:
    """Raise Failure if something is left of a Broker that is made from this one, and is not among those that are defined."""
    from streams.operations.brokers import readers_of

    used = [] if found.kafka.brokers else [one for one in readers_of(found, name) if one not in others]
    if used:
        left = f"what is left of {used[0]}, whose definition is removed or wrong, is made from it"
        raise Failure(f"{name}: {left}: harvest broker remove {used[0]} --forget, or correct that definition")


def _forget(found: Settings, name: str, definition: Path | None) -> None:
    """Delete all that there is of a Broker, and then its definition, if it has one. Raises Failure where there is nothing."""
    from streams.operations.brokers import forget_in_folder

    done = _forget_on_kafka(found, name) if found.kafka.brokers else forget_in_folder(found, name)
    if definition is None and not done:
        raise Failure(f"{name}: no definition, and nothing is left of such a Broker", USAGE)
    for one in done:
        put(f"{one}: deleted")
    if definition is not None:
        definition.unlink()
        _tell(found, f"{definition}: removed")


def _forget_on_kafka(found: Settings, name: str) -> list[str]:
    from streams.kafka.client.broker_removal import forget_on_cluster
    from streams.kafka.client.cluster import Cluster
    from streams.operations.brokers import Owned, forget_files

    # First what its workers may be at work on: they are found on the cluster alone.
    done = forget_on_cluster(Cluster.of(found.kafka), Owned.of(name))
    return [*done, *forget_files(found, name)]


def _needs(broker: Broker, name: str) -> bool:
    return name in broker.local_sources or (broker.fallback is not None and broker.fallback.broker == name)
