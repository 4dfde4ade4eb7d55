"""`harvest annotate`: attributes that people add to a URL."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.common import Config, Data, Failure, note, printable, reading, settings

if TYPE_CHECKING:
    from streams.config.settings import Settings
    from streams.store import Store

MAX_NAME = 200
"""Maximum length of an attribute's name in bytes."""


def annotate(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), or a path.")],
    values: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Attributes; NAME= removes one.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Describe a URL by hand. The attributes are added to its summary, now and whenever it is made again."""
    found = settings(config, data=data)
    from processors.query.words import attribute
    from schemas.query import EXACT_FIELDS
    from streams.config.settings import is_text

    attributes: dict[str, list[str | bytes]] = {}
    for value in values:
        name, mark, text = value.partition("=")
        if not mark or not name.strip():
            raise typer.BadParameter(f"{value!r} is not NAME=VALUE")
        if not name.isprintable() or len(name.encode()) > MAX_NAME:
            raise typer.BadParameter(f"{value!r:.40}: a name is printable text of at most {MAX_NAME} bytes")
        if attribute(name) in EXACT_FIELDS:
            raise typer.BadParameter(f"{value!r:.40}: no description changes what a summary is ({', '.join(EXACT_FIELDS)})")
        attributes.setdefault(name, []).extend([text if is_text(text) else os.fsencode(text)] if text else [])
    from processors.identity import split_url
    from processors.schemes import is_listing
    from schemas.records import Annotation
    from streams.cli.common import open_log
    from streams.store.database import clock_ms

    target, known = _target(found, url)
    object_url = split_url(target)[0]
    record = Annotation(url=target, object_url=object_url, time=clock_ms(), attributes={n: tuple(v) for n, v in attributes.items()})
    if not known and is_listing(object_url):
        raise Failure(f"{printable(url)}: a folder has no summary to describe: what is in it has")
    with open_log(found, writing=True) as log:
        log.append("annotations", [(object_url.encode(), record)])
    if not known:
        note(f"{printable(target)}: unknown URL; the annotation is stored until it is gathered")
    from streams.cli.gathering import settle

    settle(found)


def _target(found: Settings, what: str) -> tuple[str, bool]:
    """Return the URL to annotate, and whether it has, or had, a summary.

    The first URL with a summary is preferred, else the canonical form. The annotation belongs to a link itself, not to its target,
    unless the target is a root: then the link was only another name for it.
    """
    from processors.identity import split_url
    from streams.cli.objectnames import urls_of
    from streams.embedded import runs

    itself = urls_of(what, followed=False)
    canonical = itself[1 if "://" in what and len(itself) > 1 else 0]
    if found.kafka.brokers:
        return canonical, True  # the rows that tell are the workers' own
    with reading(found) as store:
        roots = {root.url for root in runs.roots(store)}
        urls = [*itself, *(url for url in urls_of(what) if split_url(url)[0] in roots)]
        known = next((url for url in urls if _is_cataloged(store, url)), None)
    return known or canonical, known is not None


def _is_cataloged(store: Store, url: str) -> bool:
    """Return whether the Gatherer's database has, or had, a summary of a URL, whatever Brokers accept."""
    from processors.gatherer.catalog import knows
    from processors.identity import split_url
    from streams.store import partition
    from streams.topology.flow import MADE

    if (count := store.topics().get(MADE.name)) is None:
        return False
    object_url, path = split_url(url)
    rows = store.rows("catalog", partition(object_url.encode(), count))
    return rows is not None and knows(rows, object_url, path)
