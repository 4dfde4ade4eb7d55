"""`harvest rejected`: unresolved rejections, and their retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, counted, note, printable, put, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.records import Rejected
    from streams.config.settings import Settings

app = typer.Typer(no_args_is_help=True, help="List, show and retry rejected records.")


@app.command("list")
def list_rejected(data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the latest rejection of each origin, unless a later success has ended it."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.common import open_log
    from streams.operations.dead_letters import standing

    with open_log(found) as log:
        for one in standing(log):
            if json:
                put(line({"stage": one.stage, "reason": one.reason, "url": one.url, "path": one.path, "time": one.time}))
            else:
                put(printable(f"{one.stage:<8} {rejection_name(one)}: {one.reason}"))


@app.command()
def show(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), a path, or TOPIC/PARTITION@OFFSET.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show all details of the rejections of a URL and its members, or of a value that was not a record."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.common import open_log
    from streams.operations.dead_letters import standing
    from streams.operations.history import format_time

    with open_log(found) as log:
        chosen = choose_rejections(standing(log), [url])
    for one in chosen:
        if json:
            put(line(one))
        else:
            put(printable(rejection_name(one)))
            version = f", version {one.version}" if one.version else ""
            put(f"  {format_time(one.time)} UTC, stage {one.stage}{version}\n  {printable(one.reason)}")
            if one.topic:
                size = "no bytes" if one.value is None else counted(len(one.value), "byte")
                put(f"  from {one.topic}/{one.partition}@{one.offset}, {size}")
            for text in one.detail.splitlines():
                put(f"  {printable(text)}")


@app.command()
def retry(
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL...]", help="URLs, paths, or TOPIC/PARTITION@OFFSET.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All unresolved rejections.")] = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Retry rejections: put the original bytes back into their topic. If they fail again, they are rejected again."""
    if bool(urls) == everything:
        raise Failure("name the URLs to retry, or give --all", 2)
    found = settings(config, data=data)
    from streams.cli.common import open_log
    from streams.cli.gathering import settle
    from streams.operations.dead_letters import standing

    before, chosen, lost = put_back(found, lambda before: before if everything else choose_rejections(before, urls or []))
    for one in lost:
        again = "it is tried again when its object is fetched again (harvest roots add, of its root)"
        note(f"{printable(rejection_name(one))}: nothing to put back; {again}")
    note(f"{counted(len(chosen) - len(lost), 'record')} put back")
    if len(chosen) > len(lost) and settle(found):
        with open_log(found) as log:
            others = {rejection_name(one) for one in before} - (
                {rejection_name(one) for one in chosen} - {rejection_name(one) for one in lost}
            )
            fresh = [one for one in standing(log) if rejection_name(one) not in others]
        for one in fresh:
            note(f"{printable(rejection_name(one))}: {printable(one.reason)}")
        note(f"{len(fresh) or 'none'} of them rejected again")
    if lost:
        raise typer.Exit(1)


def put_back(
    found: Settings, choose: Callable[[list[Rejected]], list[Rejected]]
) -> tuple[list[Rejected], list[Rejected], list[Rejected]]:
    """Put rejected records back into their topics.

    `choose`: returns those to put back, of all that are unresolved. Returns all, those chosen, and those of them of which there is
    nothing left to put back. Raises Failure as `choose` does.
    """
    from streams.cli.common import open_log
    from streams.operations.dead_letters import retry as put_back_one
    from streams.operations.dead_letters import standing

    with open_log(found, writing=True) as log:
        before = standing(log)
        chosen = choose(before)
        return before, chosen, [one for one in chosen if not put_back_one(log, one)]


def rejection_name(one: Rejected) -> str:
    """Return the name of a rejection: a URL with its member, or TOPIC/PARTITION@OFFSET."""
    return (f"{one.url}#{one.path}" if one.path else one.url) or f"{one.topic}/{one.partition}@{one.offset}"


def choose_rejections(standing: list[Rejected], names: list[str]) -> list[Rejected]:
    """Return the rejections that the names refer to. Raises Failure for a name without a rejection."""
    from streams.cli.objectnames import urls_of

    chosen: dict[str, Rejected] = {}
    for name in names:
        meant = {name, *urls_of(name)}
        found = {rejection_name(one): one for one in standing if meant & {one.url, rejection_name(one)}}
        if not found:
            raise Failure(f"{printable(name)}: not rejected")
        chosen |= found
    return list(chosen.values())
