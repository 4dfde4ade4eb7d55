"""`harvest search`, `harvest show` and `harvest annotate`: what there is, asked and described."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli.common import Config, Data, Failure, Json, give, printable, put, reading, settings

if TYPE_CHECKING:
    from schemas.ports import Hit, Page
    from schemas.query import Query
    from schemas.records import Summary
    from streams.store import Store

OID = re.compile(r"[0-9a-f]{64}")
AGAIN = (0.05, 0.2)
"""Seconds after which a search looks again: the index may be swapped just then."""
MARKS = str.maketrans("", "", "\x02\x03")
NAME = re.compile(r"[!-~]{1,200}")


def search(
    query: Annotated[str, typer.Argument(help='Words, "phrases", attribute:value, AND OR NOT, parentheses.')],
    data: Data = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Hits at the most.")] = 10,
    copies: Annotated[bool, typer.Option("--copies", help="Copies too, each as a hit of its own.")] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Search the index: best hits first."""
    page = _found(settings(config, data=data).data, query, limit, copies)
    if json:
        from schemas.jsonform import line

        for hit in page.hits:
            put(line(_hit(hit)))
        return
    for hit in page.hits:
        _print(hit)
    typer.echo(f"{page.total:,} found" + (f", {len(page.hits)} shown" if len(page.hits) < page.total else ""), err=True)


def _found(folder: Path, query: str, limit: int, copies: bool) -> Page:
    from processors.query import parse
    from sinks.errors import IndexDamaged, IndexMissing

    tree = parse(query)
    for pause in (*AGAIN, None):
        try:
            return _searched(folder, tree, limit, copies)
        except (IndexDamaged, IndexMissing) as error:
            if pause is None and isinstance(error, IndexMissing):
                raise Failure(f"{folder}: no index here; gather something first, or rebuild it: harvest index rebuild") from None
            if pause is None:
                raise Failure(f"{error} (make it anew: harvest index rebuild)") from None
            time.sleep(pause)
    raise Failure("the index is being swapped again and again")


def _searched(folder: Path, tree: Query, limit: int, copies: bool) -> Page:
    from sinks.tantivy_index import TantivyIndex
    from streams.folder import index_folder

    index = TantivyIndex(index_folder(folder), writable=False)
    try:
        return index.search(tree, limit=limit, copies=copies)
    finally:
        index.close()


def _hit(hit: Hit) -> dict[str, Any]:
    """A hit as JSON; its copies where it has any."""
    found: dict[str, Any] = {name: getattr(hit, name) for name in ("oid", "url", "title", "type", "score")}
    found["snippet"] = hit.snippet.translate(MARKS)
    if hit.copies_count:
        found |= {"copies": list(hit.copies), "copies_count": hit.copies_count}
    return found


def _print(hit: Hit) -> None:
    title = printable(hit.title)
    put(f"{printable(hit.url)}\n  {title or '(no title)'} [{printable(hit.type)}, {hit.score:.2f}]")
    if hit.snippet:
        put("  " + _marked(hit.snippet))
    for copy in hit.copies[:3]:
        put(f"  copy: {printable(copy)}")
    if hit.copies_count > 3:
        put(f"  and {hit.copies_count - 3:,} more copies")


def _marked(snippet: str) -> str:
    """A snippet with its matches in bold, where that can be seen."""
    import os

    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    parts = re.split("[\x02\x03]", snippet)
    return "".join(f"\x1b[1m{printable(p)}\x1b[0m" if bold and n % 2 else printable(p) for n, p in enumerate(parts))


def show(
    what: Annotated[str, typer.Argument(metavar="URL-or-OID", help="A URL (of a member: object#path), a path, or an OID.")],
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show a whole summary, as SOIF."""
    found = settings(config, data=data)
    with reading(found) as store:
        summary = _summary(store, what, found.gatherer)
    if json:
        from schemas.jsonform import line

        put(line(summary))
        return
    from schemas.soif import dumps
    from schemas.soif_summary import to_template

    give(dumps([to_template(summary)]))


def _summary(store: Store, what: str, gatherer: str) -> Summary:
    """The summary as the Broker holds it. Raises Failure."""
    import msgspec

    from processors.register import Entry
    from schemas.codec import decode
    from streams.store import partition

    for oid in _oids(store, what, gatherer):
        rows = store.rows("register.main", partition(oid.encode(), store.topics()["broker.main"]))
        value = rows.get(b"r|" + oid.encode()) if rows is not None else None
        entry = msgspec.msgpack.decode(value, type=Entry) if value is not None else None
        if entry is not None and entry.summary:
            summary: Any = decode(entry.summary)
            role = {"copy_of": entry.copy_of, "copies": entry.copies, "copies_count": entry.count}
            return msgspec.structs.replace(summary, published=entry.published, **role)  # type: ignore[no-any-return]
        if entry is not None:
            raise Failure(f"{printable(what)}: its summary was removed (harvest why tells more)")
    raise Failure(f"{printable(what)}: no summary of it")


def _oids(store: Store, what: str, gatherer: str) -> list[str]:
    """The OIDs that may be meant: of the words as they stand, and of the path or URL that they are."""
    if OID.fullmatch(what):
        return [what]
    from processors.identity import oid
    from streams.folder import gatherer as remembered

    name = remembered(store) or gatherer
    return [oid(name, url) for url in dict.fromkeys(urls_of(what))]


def urls_of(what: str) -> list[str]:
    """The URLs that a user may mean, member path included: as written first."""
    from processors.identity import member_url
    from streams.cli.rootnames import url_of

    found = [what] if "://" in what else []
    if "://" not in what and Path(what).exists():
        return [*found, url_of(what)]
    base, _, path = what.partition("#")
    return [*found, member_url(url_of(base), path)]


def annotate(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL (of a member: object#path), or a path.")],
    values: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Attributes; NAME= takes one away.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Describe a URL by hand. What is said is joined to its summary, now and after every new one."""
    found = settings(config, data=data)
    attributes: dict[str, list[str]] = {}
    for value in values:
        name, mark, text = value.partition("=")
        if not mark or not NAME.fullmatch(name):
            raise typer.BadParameter(f"{value!r} is not NAME=VALUE")
        attributes.setdefault(name, []).extend([text] if text else [])
    from processors.identity import split_url
    from schemas.records import Annotation
    from streams.logs import opened
    from streams.store.database import clock_ms

    target = _target(url)
    object_url = split_url(target)[0]
    record = Annotation(url=target, object_url=object_url, time=clock_ms(), attributes={n: tuple(v) for n, v in attributes.items()})
    with opened(found, writing=True) as log:
        log.append("annotations", [(object_url.encode(), record)])
    from streams.cli.gathering import settle

    settle(found)


def _target(url: str) -> str:
    """The URL in its canonical form."""
    return urls_of(url)[-1]
