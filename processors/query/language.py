"""Table of the query language: what each kind of query finds; the README and the help page of the gateway show it."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """An example of a query, and what it finds; `finds` is text with code between backquotes."""

    query: str
    finds: str


TABLE: tuple[Row, ...] = (
    Row(
        "whale",
        "with the word in any form (`whales`, `Whale`), accents or not (`resume`: `résumé`), in any"
        " attribute, annotations included",
    ),
    Row("white whale", "with both words, anywhere: AND is implied"),
    Row(
        "old white whale",
        "with most of the words, if there are three or more and no AND between; those with all of them come first",
    ),
    Row('"white whale"', "with the words next to each other within one value"),
    Row('"whale"', "with the word as it is written, but for its case"),
    Row("title:whale", "with the word in the attribute `title`; any name is allowed"),
    Row('title:"white whale"', "with the phrase in that attribute"),
    Row("whale OR squid", "with at least one of them; AND binds closer than OR"),
    Row("whale AND squid", "with both, as without AND"),
    Row("whale NOT squid", "with the first and without the second"),
    Row("whale -squid", "the same"),
    Row("(whale OR squid) -title:moby", "parentheses group"),
    Row(
        "type:HTML",
        "of the type; compared as whole values, case folded: `type`, `url`, `md5`, `gatherer`, `oid`, `object-url`, `content-type`",
    ),
    Row("site:example.org", "whose URL is on that host or one under it"),
    Row("in:docs/bundle.zip", 'that lie in that folder or archive, at any depth; also `in:file:///srv/docs/`, `in:"my docs"`'),
    Row("view:computing/unix", 'that are in that view of the Broker; also `view:"computing/unix shells"`'),
    Row("before:2024-03-05", "of a document's own date before that day; `after:2023`: after that year"),
    Row("during:2024-01..2024-06", "of a document's own date in these months; also `during:1995`, `during:2024-03-05`"),
    Row(
        "date:2024-03-05",
        "of that day, at any hour (`date`, `creation-date`, `modification-date`,"
        " `last-modification-time`); `date:2024-03` of that month",
    ),
    Row("date:2024-01..2024-06", "with a moment from January to the end of June (UTC); also `date:2024-03-05..`, `date:>2023`"),
    Row(
        "wha*",
        "with a word that begins so: `*` is any number of letters, `?` one, at least two letters beside"
        " them: `*ale`, `wh?le`, `title:*hal*`",
    ),
    Row(
        "whale~",
        "with at most one letter of the word inserted, deleted or replaced; `whale~2`, `leviathan~3`:"
        " with two or three, fewer than half",
    ),
    Row("white NEAR/5 whale", "with at most five words between, in either order, in one value; `NEAR` alone: ten"),
    Row('"white whale"~5', 'the same; also `title:"white whale"~5`'),
    Row(
        "/wh[ai]le?s/",
        "with a word that the regular expression describes; with a blank, `^` or `$` in it, anywhere in"
        " a value: `title:/white +whale/`",
    ),
    Row(
        "pages:10..20",
        "with a number of that range in the attribute; also `pages:10..`, `pages:..20`, `file-size:>1M`, `>=`, `<`, `<=`",
    ),
    Row("=Whale", 'with these very letters, case and accents; also `="White Whale"`, `title:=Whale`'),
    Row("author:*", "that have the attribute"),
    Row('author:=="Herman Melville"', "with this value as a whole, letter by letter, in any attribute"),
    Row("C++", "with that name, its signs included, in quotes, too; also `C#`, `.NET`"),
    Row("file-name:report.pdf", "with that file name, or with a copy of that name"),
    Row(
        "owner:root",
        "with the word in that attribute: `owner`, `group`, `mode`, `file-size` and"
        " `last-modification-time` are searched by name alone",
    ),
    Row("copy:archives", "with a copy whose URL has the word; `copy:*`: with any copy"),
    Row("url-references:example.org", "with a link to that host (`example.org:8080` if it has a port)"),
    Row("url-references:http://h/a.txt", "with a link to that URL; links are compared whole, not by word"),
    Row("Title : windsurfing", "as `Title:windsurfing`"),
    Row('"weird name":whale', "the same for a name with spaces, quotes, colons or parentheses"),
    Row('url:"http://h/a (1).txt"', "of the URL; quoted if it has spaces or parentheses"),
    Row('"AND"', 'quotes turn an operator into a word; within them `\\"` and `\\\\` escape a quote and a backslash'),
    Row("http://example.org/", "with these words next to each other: text before `://` or `::` is not a name"),
    Row("*", "all"),
)


def table() -> str:
    """Return the table in Markdown."""
    rows = "".join(f"| `{row.query}` | {row.finds} |\n" for row in TABLE)
    return f"| query | finds summaries |\n| --- | --- |\n{rows}"
