"""`harvest rejected`: what could not be processed, and has not been since."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli.common import Config, Data, Failure, Json, printable, put, reading, settings

app = typer.Typer(no_args_is_help=True, help="What could not be processed.")


@app.command("list")
def list_rejected(data: Data = None, json: Json = False, config: Config = None) -> None:
    """List the latest rejection of each origin, if no later success has ended it."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.rejections import standing

    with reading(found) as store:
        for one in standing(store):
            if json:
                put(line({"stage": one.stage, "reason": one.reason, "url": one.url, "path": one.path, "time": one.time}))
            else:
                path = f"#{one.path}" if one.path else ""
                put(f"{one.stage:<8} {printable(one.url + path) or f'{one.topic}/{one.partition}@{one.offset}'}: {one.reason}")


@app.command()
def show(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), or a path.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show all that is known of the rejections of a URL and its members."""
    found = settings(config, data=data)
    from schemas.jsonform import line
    from streams.cli.asking import urls_of
    from streams.rejections import standing

    wanted = set(urls_of(url))
    with reading(found) as store:
        chosen = [one for one in standing(store) if wanted & {one.url, f"{one.url}#{one.path}"}]
    if not chosen:
        raise Failure(f"{printable(url)}: not rejected")
    for one in chosen:
        if json:
            put(line(one))
        else:
            put(f"{printable(one.url)}{'#' * bool(one.path)}{printable(one.path)}")
            put(f"  stage {one.stage}, version {one.version}, time {one.time}\n  {one.reason}")
            put("".join(f"  {printable(text)}\n" for text in one.detail.splitlines()).rstrip("\n") or "  no detail")
