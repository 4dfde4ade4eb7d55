"""`harvest search`, `harvest show` and `harvest annotate`: queries, summaries and manual attributes."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli.common import (
    USAGE,
    BrokerName,
    Config,
    Data,
    Failure,
    Json,
    counted,
    note,
    printable,
    put,
    reading,
    rebuild_command,
    settings,
    write_bytes,
)
from streams.cli.common import broker as named

if TYPE_CHECKING:
    from schemas.ports import BrokerIndex, Hit, Page
    from schemas.query import Query
    from schemas.records import Summary
    from streams.config.settings import Settings
    from streams.store import Store

OID = re.compile(r"[0-9a-f]{64}")
RAW = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
"""Characters that are escaped in the path of a member."""
AGAIN = (0.05, 0.2)
"""Pauses in seconds before a search is repeated: the index may have been swapped at that moment."""
MARKS = str.maketrans("", "", "\x02\x03")
MAX_PARTS = 20
"""Maximum number of parts of a query that are counted one by one."""
MAX_NAME = 200
"""Maximum length of an attribute's name in bytes."""


def search(
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY...",
            help='Words, "phrases", attribute:value, wha*, whale~, AND OR NOT, parentheses; -- before one that begins with -.',
        ),
    ],
    data: Data = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum number of hits.")] = 10,
    copies: Annotated[bool, typer.Option("--copies", help="Also list copies, each as a hit of its own.")] = False,
    broker: BrokerName = "",
    json: Json = False,
    config: Config = None,
) -> None:
    """Search the index, and print the best hits first."""
    found = settings(config, data=data)
    page, notes = _found(found, named(found, broker), " ".join(query), limit, copies)
    from schemas.jsonform import line

    for hit in page.hits:
        if json:
            put(line(_hit(hit)))
        else:
            _print(hit)
    typer.echo(f"{page.total:,} found" + (f", {len(page.hits)} shown" if len(page.hits) < page.total else ""), err=True)
    for line_ in notes:
        note(line_)


def _found(found: Settings, broker: str, query: str, limit: int, copies: bool) -> tuple[Page, list[str]]:
    from processors.query import QueryError, parse
    from sinks.index.errors import IndexDamaged, IndexMissing, IndexOutdated

    try:
        tree = parse(query)
    except QueryError as error:
        raise Failure(error.line(query), USAGE) from None
    for pause in (*AGAIN, None):
        try:
            return _searched(found, broker, tree, limit, copies)
        except IndexOutdated as error:
            _make_anew(found, broker, error)
        except (IndexDamaged, IndexMissing) as error:
            if pause is None and isinstance(error, IndexMissing):
                raise Failure(_missing(found, broker, printable(str(error)))) from None
            if pause is None:
                raise Failure(f"{error} (rebuild it: {rebuild_command(broker)})") from None
            time.sleep(pause)
    raise Failure("the index is being swapped again and again")


def _make_anew(found: Settings, broker: str, error: Exception) -> None:
    """Make the index of another version anew from its topic. Raises Failure if that cannot be done here."""
    from streams.cli.commands.index import rebuild_serving_index
    from streams.operations.selection import Selection
    from streams.store.errors import StoreError
    from streams.topology.flow import archive

    note(f"the index of {broker} was made by another version: it is made anew from its topic")
    try:
        rebuild_serving_index(found, broker, Selection(archive(broker).name), lambda _: None)
    except (OSError, StoreError, Failure) as failed:
        raise Failure(f"{error} (rebuild it: {rebuild_command(broker)}; now: {failed})") from failed


def _missing(found: Settings, broker: str, error: str) -> str:
    """Return the error for a missing index."""
    fill = f"harvest worker index.{broker} fills it" if found.kafka.brokers else "gather something first"
    if not found.index.url and not found.data.is_dir():
        return f"{found.data}: no such data folder; {fill}, or name another one: --data DIR"
    if not found.kafka.brokers and not _has_topic(found, broker):
        return f"the Broker {broker} has no topic yet: harvest run, or the next harvest gather, makes it and its index"
    return f"{error if found.index.url else f'{found.data}: no index here'}; {fill}, or rebuild it: {rebuild_command(broker)}"


def _has_topic(found: Settings, broker: str) -> bool:
    """Return whether the data folder has the Broker's topic, or no topics at all: then it holds an index alone."""
    from streams.store.data_folder import known
    from streams.topology.flow import archive

    with known(found.data) as store:
        return store is None or archive(broker).name in store.topics()


def _searched(found: Settings, broker: str, tree: Query, limit: int, copies: bool) -> tuple[Page, list[str]]:
    """Return a page of hits; if it is empty, also notes on what no summary has, and on how many summaries have each part."""
    from streams.operations.indexes import open_index

    index = open_index(found, broker)
    try:
        page = index.search(tree, limit=limit, copies=copies)
        return page, [] if page.total else [*_unknown(index, tree), *_parts(index, tree)]
    finally:
        index.close()


def _unknown(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over notes on the attributes in a query that no summary has."""
    from schemas.query import Exists
    from schemas.soif_summary import NAMES

    for name in dict.fromkeys(_asked(tree)):
        if not index.count(Exists(name)):
            shown = "; `harvest show` prints it, but it is not searchable" if name in NAMES else ""
            yield f"no summary has the attribute {printable(name)}{shown}"


def _parts(index: BrokerIndex, tree: Query) -> Iterator[str]:
    """Iterate over notes on how many summaries each part of a query finds by itself, if it has several that must match."""
    from processors.query import unparse
    from schemas.query import And, Most, Not

    if isinstance(tree, And | Most):
        parts = [part for part in dict.fromkeys(tree.parts) if not isinstance(part, Not)][:MAX_PARTS]
        if len(parts) > 1:
            yield "found by itself: " + ", ".join(f"{printable(unparse(part))} {index.count(part):,}" for part in parts)


def _asked(tree: Query) -> Iterator[str]:
    """Yield the attributes that a query names."""
    if name := getattr(tree, "attribute", ""):
        yield name
    for part in (*getattr(tree, "parts", ()), *([tree.part] if hasattr(tree, "part") else [])):
        yield from _asked(part)


def _hit(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON, with its copies if it has any."""
    found: dict[str, Any] = {name: getattr(hit, name) for name in ("oid", "url", "title", "type", "score")}
    found["snippet"] = hit.snippet.translate(MARKS)
    if hit.copies_count:
        found |= {"copies": list(hit.copies), "copies_count": hit.copies_count}
    return found


def _print(hit: Hit) -> None:
    title = printable(hit.title)
    put(f"{printable(hit.url)}\n  {title or '(no title)'} [{printable(hit.type)}, {hit.score:.2f}]")
    text = _without_title(hit.snippet, title)
    if text:
        put("  " + _marked(text))
    for copy in hit.copies[:3]:
        put(f"  copy: {printable(copy)}")
    if hit.copies_count > 3:
        put(f"  and {counted(hit.copies_count - 3, 'more copy', 'more copies')}")


def _without_title(snippet: str, title: str) -> str:
    """Return a snippet without the title at its start: a text whose title is its first line would repeat it."""
    rest = re.match("[\x02\x03]*".join(map(re.escape, title)) + r"(?!\w)[\x03\s]*", snippet.lstrip("\x02")) if title else None
    return snippet.lstrip("\x02")[rest.end() :] if rest else snippet


def _marked(snippet: str) -> str:
    """Return a snippet with its matches in bold, if the terminal shows it."""
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    parts = re.split("[\x02\x03]", snippet)
    return "".join(f"\x1b[1m{printable(p)}\x1b[0m" if bold and n % 2 else printable(p) for n, p in enumerate(parts))


def show(
    what: Annotated[str, typer.Argument(metavar="URL-or-OID", help="A URL (of a member: object#path), a path, or an OID.")],
    broker: BrokerName = "",
    data: Data = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show a complete summary, as SOIF."""
    found = settings(config, data=data)
    broker = named(found, broker)
    if found.index.url:
        from sinks.index.errors import IndexMissing

        try:
            summary = _indexed(found, broker, what)
        except IndexMissing as error:
            raise Failure(_missing(found, broker, printable(str(error)))) from None
    else:
        with reading(found) as store:
            summary = _summary(store, broker, what, found.gatherer)
    if json:
        from schemas.jsonform import line

        put(line(summary))
        return
    from schemas.soif import dumps
    from schemas.soif_summary import to_template

    write_bytes(dumps([to_template(summary)]))


def _summary(store: Store, broker: str, what: str, gatherer: str) -> Summary:
    """Return the Broker's version of a summary. Raises Failure."""
    from streams.operations.registered import entry, summary_of

    for oid in _oids(store, what, gatherer):
        found = entry(store, broker, oid)
        if found is not None and (summary := summary_of(found)) is not None:
            return summary
        if found is not None:
            raise _removed(what)
    raise _none(what)


def _none(what: str) -> Failure:
    """Return the error for a missing summary, with the reason if it is a folder or a missing file."""
    import os

    hint = ""
    if os.path.isdir(what) and not os.path.islink(what):
        hint = ": folders have no summary, their files have"
    elif "://" not in what and not OID.fullmatch(what) and not os.path.lexists(what.partition("#")[0]):
        hint = ", and no such file"
    return Failure(f"{printable(what)}: no summary of it{hint}")


def _removed(what: str) -> Failure:
    return Failure(f"{printable(what)}: its summary was removed (harvest why tells more)")


def _indexed(found: Settings, broker: str, what: str) -> Summary:
    """Return the summary from the index on a server: of this Gatherer, or else of any with that URL. Raises Failure."""
    from contextlib import closing

    from schemas.query import Word
    from schemas.records import Removed
    from sinks.index.opensearch.index import OpenSearchIndex
    from streams.operations.indexes import alias

    with closing(OpenSearchIndex(found.index.url, alias(found, broker), writable=False)) as index:
        meant = _named(what, found.gatherer)
        for url in urls_of(what) if not OID.fullmatch(what) else ():
            hits = index.search(Word(url, "url"), copies=True).hits
            meant += [hit.oid for hit in hits if hit.url == url]
        records = [record for record in map(index.applied, meant) if record is not None]
    for record in records:
        if isinstance(record, Removed):
            raise _removed(what)
        return record
    raise _none(what)


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


def _oids(store: Store, what: str, gatherer: str) -> list[str]:
    """Return the OIDs that the argument may mean: itself, or those of the path or URL."""
    return _named(what, _gatherer(store, gatherer))


def _named(what: str, gatherer: str) -> list[str]:
    if OID.fullmatch(what):
        return [what]
    from processors.identity import oid

    return [oid(gatherer, url) for url in dict.fromkeys(urls_of(what))]


def _gatherer(store: Store, name: str) -> str:
    """Return the Gatherer's name in the OIDs: that of the data folder, if it has one."""
    from streams.store.data_folder import gatherer

    return gatherer(store) or name


def urls_of(what: str, *, followed: bool = True) -> list[str]:
    """Return the URLs that an argument may mean, member path included: as written first, then as by `meant`. Raises Failure.

    A member may be named as in its archive, even where that cannot be a URL: with spaces, controls, or bytes that are no text.
    """
    from processors.identity import member_path, member_url
    from streams.cli.rootnames import meant

    if "://" not in what and os.path.lexists(what):
        return meant(what, followed=followed)
    base, mark, path = what.partition("#")
    path = "#".join(member_path(os.fsencode(part)) if RAW.search(part) else part for part in path.split("#"))
    what = f"{base}{mark}{path}"
    found = [member_url(url, path) for url in meant(base, followed=followed)]
    return list(dict.fromkeys([what, *found] if "://" in what else found))


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
