"""`harvest search`: hits of a query, or of what is similar to a summary; facets, counts, and the parts of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, get_args

import typer

from streams.cli.common import USAGE, BrokerName, Config, Data, Failure, Json, note, printable, put, settings
from streams.cli.common import broker as named
from streams.cli.routed import search_routed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from processors.query.terms import Views
    from schemas.ports import BrokerIndex, Hit, Page, Part, Sort
    from schemas.query import Query
    from streams.config.settings import Settings

SYNTAXES = ("harvest", "glimpse")
ALL = "all"
"""Name that means all facets."""
OWN = "own"
"""Name that means those of the Broker's definition."""


class Request(NamedTuple):
    """What a user asks for."""

    tree: Query | None
    """The query; None if it is made of the summary named by `similar`."""
    similar: str
    limit: int
    offset: int
    sort: Sort
    facets: tuple[str, ...]
    copies: bool
    explain: bool
    typed: str
    """The text of the query."""
    spelled: bool
    """Whether words of the query may be misspelled."""


class Answer(NamedTuple):
    """Answer of an index."""

    tree: Query
    page: Page
    parts: Mapping[str, Sequence[Part]] | None
    """The parts of the score of each hit, by OID; None if they were not asked for."""
    hints: list[str]
    matched: Mapping[str, Sequence[tuple[str, str]]]
    """Attributes with their snippets of the hits that do not show a match otherwise, by OID."""
    fallback: str = ""
    """The Broker that completes the hits, because there are few."""
    behind: Sequence[Hit] = ()
    """Its hits, which stand behind the others."""


def search(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY...",
            help='Words, "phrases", attribute:value, wha*, whale~, AND OR NOT, parentheses; -- before one that begins with -.',
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Maximum number of hits.")] = 10,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Number of hits to skip.")] = 0,
    sort: Annotated[
        str, typer.Option("--sort", metavar="ORDER", help="Order of the hits: relevance, newest, oldest, largest or url.")
    ] = "relevance",
    facets: Annotated[
        str,
        typer.Option(
            "--facets",
            metavar="NAMES",
            help="Also count the hits by type, site, language, author, year, gatherer, view: one or more of these names with"
            " commas between, all (but view), or own: those of the Broker's definition.",
        ),
    ] = "",
    copies: Annotated[bool, typer.Option("--copies", help="Also list copies, each as a hit of its own.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each hit's score.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Print the number of hits alone.")] = False,
    similar: Annotated[
        str, typer.Option("--similar", metavar="URL-or-OID", help="Instead of a QUERY: find what is similar to this summary.")
    ] = "",
    syntax: Annotated[
        str,
        typer.Option("--syntax", metavar="NAME", help="Language of the QUERY: harvest, or glimpse for the patterns of Glimpse."),
    ] = "harvest",
    broker: BrokerName = "",
    routed: Annotated[
        bool,
        typer.Option("--routed", help="Ask the Brokers that answer the QUERY best, here and on the gateways of routing.servers."),
    ] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Search the index, and print the best hits first."""
    if count and (explain or facets or offset or sort != "relevance"):
        raise Failure("--count prints a number alone: it goes with none of --explain, --facets, --offset and --sort", USAGE)
    order = _sort(sort)
    if explain and order != "relevance":
        raise Failure(f"--explain tells the parts of a score, but --sort {order} orders by no score", USAGE)
    from processors.query.routing.in_views import NamedViews

    found = settings(config, data=data)
    shown = _facets(facets, lambda: _own(found, broker))
    every = NamedViews()
    tree = _tree(query, similar, syntax, lambda: every if routed else _views(found, named(found, broker)))
    if routed:
        if tree is None or broker or copies or explain or offset or shown or order != "relevance":
            raise Failure("--routed goes with --limit, --count, --syntax and --json only, and takes a QUERY", USAGE)
        search_routed(found, tree, 0 if count else limit, every.of(" ".join(query or ())), count=count, json=json)
        return
    spelled = tree is not None and syntax == "harvest"
    request = Request(tree, similar, 0 if count else limit, offset, order, shown, copies, explain, " ".join(query or ()), spelled)
    answer = _answer(found, named(found, broker), request)
    if tree is None:
        note(f"the query for what is similar: {_written(answer.tree)}")
    if count:
        _print_count(answer.page.total, json=json)
    else:
        _print(answer, request, json=json)
    for hint in answer.hints:
        note(hint)


def _sort(name: str) -> Sort:
    """Return the order with a name. Raises Failure."""
    from schemas.ports import Sort

    order: Sort | None = next((order for order in get_args(Sort) if order == name), None)
    if order is None:
        raise Failure(f"--sort {printable(name)}: no such order (there are {', '.join(get_args(Sort))})", USAGE)
    return order


def _facets(names: str, own: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the facets with names that commas separate, in the order in which they are shown. Raises Failure.

    `own`: those of the Broker's definition, in its order; none: all.
    """
    from processors.query.facets import COUNTED, FACETS

    asked = [name.strip() for name in names.split(",") if name.strip()]
    if asked == [OWN]:
        return own() or FACETS
    for name in asked:
        if name not in (*COUNTED, ALL):
            known = f"there are {', '.join(COUNTED)}; {ALL} means all but view, {OWN} alone those of the Broker's definition"
            raise Failure(f"--facets {printable(name)}: no such facet ({known})", USAGE)
    return tuple(name for name in COUNTED if name in asked or (ALL in asked and name in FACETS))


def _own(found: Settings, broker: str) -> tuple[str, ...]:
    from streams.config.topology import broker_defined

    return broker_defined(found, named(found, broker)).facets


def _tree(query: Sequence[str] | None, similar: str, syntax: str, views: Callable[[], Views]) -> Query | None:
    """Return the tree of the query, None for `--similar`; `views` is called if one may be named. Raises Failure."""
    from processors.query import QueryError, parse, parse_glimpse

    if syntax not in SYNTAXES:
        raise Failure(f"--syntax {printable(syntax)}: no such language (there are {', '.join(SYNTAXES)})", USAGE)
    if similar:
        if query:
            raise Failure("--similar takes the place of a QUERY: give one of the two", USAGE)
        if syntax != SYNTAXES[0]:
            raise Failure("--syntax is the language of a QUERY, and --similar takes none", USAGE)
        return None
    if not query:
        raise Failure("a QUERY is missing (* finds all), or --similar URL", USAGE)
    text = " ".join(query)
    try:
        return parse_glimpse(text) if syntax == "glimpse" else parse(text, views() if "view" in text.casefold() else None)
    except QueryError as error:
        raise Failure(error.line(text), USAGE) from None


def _views(found: Settings, broker: str) -> Views:
    from streams.cli.common import open_log
    from streams.operations.views import written_out

    with open_log(found) as log:
        return written_out(log, broker)


def _answer(found: Settings, broker: str, request: Request) -> Answer:
    """Return the answer of a Broker's index. Raises Failure."""
    from sinks.index.matches import matches
    from streams.cli.hints import hints
    from streams.cli.index_access import ask_index

    def ask(index: BrokerIndex) -> Answer:
        tree = request.tree or _similar(found, index, request.similar)
        page = index.search(tree, request.limit, request.offset, request.copies, sort=request.sort, facets=request.facets)
        parts = index.explain(tree, [hit.oid for hit in page.hits]) if request.explain else None
        noted = [*page.left_out, *hints(index, tree, page.total, spelled=request.spelled)]
        return Answer(tree, page, parts, noted, matches(index, page.hits, tree))

    answer = ask_index(found, broker, ask)
    return _completed(found, broker, request, answer)


def _completed(found: Settings, broker: str, request: Request, answer: Answer) -> Answer:
    """Return an answer with the hits of the Broker's fallback, if it has one and few hits of its own. Raises Failure."""
    from processors.query.routing.merging import behind
    from streams.cli.index_access import ask_index
    from streams.config.topology import broker_defined

    fallback = broker_defined(found, broker).fallback
    if fallback is None or answer.page.total >= fallback.below or request.offset or request.explain:
        return answer
    try:
        page = ask_index(found, fallback.broker, lambda index: index.search(answer.tree, request.limit, copies=request.copies))
    except Failure as failed:
        return answer._replace(hints=[*answer.hints, f"the fallback {fallback.broker} was not asked: {failed}"])
    others = behind(((hit.oid, hit.url) for hit in answer.page.hits), page.hits)[: max(0, request.limit - len(answer.page.hits))]
    return answer._replace(fallback=fallback.broker, behind=others)


def _similar(found: Settings, index: BrokerIndex, what: str) -> Query:
    """Return the query for what is similar to a summary. Raises Failure."""
    from processors.query import QueryError
    from processors.query.forms import Analyzer
    from processors.query.similar import similar
    from schemas.query import Every
    from streams.cli.objectnames import indexed

    try:
        summary = indexed(found, index, what)
    except QueryError as error:
        # An index without the records: a folder that `replay --to` made.
        raise Failure(f"{printable(what)}: its summary cannot be read: {error}") from None
    try:
        return similar(summary, index.frequencies, index.count(Every()), Analyzer(index.languages))
    except ValueError as error:
        raise Failure(f"{printable(what)}: {error}") from None


def _print_count(total: int, *, json: bool) -> None:
    from schemas.jsonform import line

    put(line({"total": total}) if json else str(total))


def _print(answer: Answer, request: Request, *, json: bool) -> None:
    """Print hits and facets, and their number on standard error."""
    from schemas.jsonform import line
    from streams.cli.output.hits import facet_objects, hit_object, print_facet, print_hit

    page = answer.page
    for hit in page.hits:
        parts = None if answer.parts is None else answer.parts.get(hit.oid, ())
        if json:
            put(line(hit_object(hit, parts)))
        else:
            print_hit(hit, parts, answer.matched.get(hit.oid, ()))
    for hit in answer.behind:
        if json:
            put(line(hit_object(hit) | {"broker": answer.fallback}))
        else:
            print_hit(hit)
            put(f"  Broker: {answer.fallback} (fallback)")
    for facet in request.facets:
        if (values := page.facets.get(facet)) is None:
            continue  # a hint tells why it is not counted
        if json:
            for each in facet_objects(facet, values):
                put(line(each))
        else:
            print_facet(facet, values, answer.tree)
    more = f", and {len(answer.behind):,} of the fallback {answer.fallback}" if answer.behind else ""
    typer.echo(_counted(page, request.offset) + more, err=True)
    if request.facets:
        _print_base(answer.tree, request)


def _counted(page: Page, offset: int) -> str:
    """Return how many hits there are, and which of them are shown."""
    shown = len(page.hits)
    if offset and shown:
        return f"{page.total:,} found, {offset + 1:,} to {offset + shown:,} shown"
    return f"{page.total:,} found" + (f", {shown} shown" if shown < page.total else "")


def _print_base(tree: Query, request: Request) -> None:
    """Show the query that the terms of facets are added to, if that is not the text as it was typed."""
    from schemas.query import Or

    # A question mark would be one no more if a term stood behind it.
    asked = request.typed.rstrip().endswith("?")
    if isinstance(tree, Or) or asked or (request.tree is not None and not request.spelled):
        text = _written(tree)
        note(f"add a term of a facet to the query: {f'({text})' if isinstance(tree, Or) else text}")


def _written(tree: Query) -> str:
    from processors.query import unparse

    return printable(unparse(tree))
