"""The query tree: one language for all Brokers and engines.

The parser and the predicate on a single summary are in `processors/query`, the compilers in `sinks/`; a property test
checks that they agree. Text is compared word by word, case folded (the analysis is `processors/query/words.py`).
"""

from __future__ import annotations

import msgspec

TEXT_FIELDS = ("title", "description", "abstract", "keywords", "author", "partial-text", "full-text", "terms")
"""Attributes with an index field of their own; a word without an attribute is searched in all text except BY_NAME."""

EXACT_FIELDS = ("type", "url", "md5", "gatherer", "oid", "object-url", "content-type")
"""Properties of a summary that are compared whole: `type:HTML` (case folded, like all), `url:http://…`."""

LINKS = frozenset(("url-references",))
"""Attributes of URLs: a link is an identifier, not text. It is found by its whole value or its host, case folded:

`url-references:http://example.org/a.html`, `url-references:example.org`. The words of links would be most of the words of an
index page or a table of contents, and nobody searches for them.
"""

SETS = frozenset(("terms",))
"""Attributes that are sets of words: they match single words, but not phrases."""

WHOLE = frozenset(EXACT_FIELDS) | LINKS
"""Attributes and properties that are compared whole instead of word by word."""

COPY = "copy"
"""Attribute with the URLs of the copies, percent-decoded."""

BY_NAME = frozenset(("url-references", "owner", "group", "mode", "file-size", "last-modification-time", COPY))
"""Attributes that are searched only if a query names them.

A search for `root` should not find every file that root owns, nor a word every page with a link to a page of that name, or every
file in a folder of that name.
"""


DATES = frozenset(("date", "creation-date", "modification-date", "last-modification-time"))
"""Attributes of timestamps, which are also found by their days if the value is one."""


class Node(msgspec.Struct, frozen=True, tag=True):
    """A node of the tree."""


class Every(Node, frozen=True, tag=True):
    """Matches every summary: the query `*`."""


class Word(Node, frozen=True, tag=True):
    """A word in any of its forms, with an attribute (`title:whale`) only in that one; for names in WHOLE, the whole value.

    A text of several words (`x-ray`) is compared as a Phrase.
    """

    text: str
    attribute: str = ""


class Phrase(Node, frozen=True, tag=True):
    """Adjacent words as they are written, within one value of an attribute; without an attribute, of any: `"white whale"`."""

    text: str
    attribute: str = ""


class Verbatim(Node, frozen=True, tag=True):
    """Adjacent words with these very letters, case and accents: `=Whale`, `title:="White Whale"`."""

    text: str
    attribute: str = ""


class Whole(Node, frozen=True, tag=True):
    """Summaries with a value of the attribute that is this text as a whole, letter by letter: `author:=="Herman Melville"`.

    White space is compared as `processors.query.facets.plain` returns it.
    """

    text: str
    attribute: str


class Wildcard(Node, frozen=True, tag=True):
    """Words that a pattern describes, case folded: `*` stands for any number of letters, `?` for one: `wha*`, `wh?le`."""

    text: str
    attribute: str = ""


class Fuzzy(Node, frozen=True, tag=True):
    """Words with at most so many letters inserted, deleted or replaced (agrep's errors, 1 to 3): `whale~`, `whale~2`."""

    text: str
    errors: int = 1
    attribute: str = ""


class Regex(Node, frozen=True, tag=True):
    """Words that a regular expression describes as a whole, case folded: `/wh[ai]le?s/`.

    With a blank, a sign, `^` or `$` in it, values in which it is found anywhere: `title:/white +whale/`. The grammar is in
    `processors/query/regex.py`.
    """

    text: str
    attribute: str = ""


class Near(Node, frozen=True, tag=True):
    """Words as they are written, in any order, within one value and near each other: `white NEAR/5 whale`, `"white whale"~5`.

    At most `distance` other words stand between the first and the last of them. A word that is asked twice must be there twice.
    """

    words: tuple[str, ...]
    distance: int
    attribute: str = ""


class NumberRange(Node, frozen=True, tag=True):
    """Summaries with a value of the attribute that is a number within the bounds, both included: `pages:10..20`."""

    attribute: str
    low: float | None = None
    high: float | None = None


class MomentRange(Node, frozen=True, tag=True):
    """Summaries with a value of the attribute that is a moment within the bounds, both included: `date:2024-01..2024-06`.

    Bounds are seconds since the epoch. Without an attribute it is the document's own date: `before:2024-03-05`, `after:2023`.
    """

    attribute: str = ""
    low: int | None = None
    high: int | None = None


class Site(Node, frozen=True, tag=True):
    """Summaries whose URL is on a host or on one under it: `site:example.org`."""

    host: str


class Inside(Node, frozen=True, tag=True):
    """Summaries that lie in a folder or an archive, at any depth: `in:docs/bundle.zip`, `in:file:///srv/docs/`."""

    place: str


class Exists(Node, frozen=True, tag=True):
    """Matches summaries that have the attribute: `author:*`."""

    attribute: str


class And(Node, frozen=True, tag=True):
    """Matches if all parts match."""

    parts: tuple[Node, ...]


class Most(Node, frozen=True, tag=True):
    """Terms typed one after the other: matches if every part that is no bare word does, and enough of the bare words do.

    A bare word is a Word without an attribute; `processors.query.predicate.enough` returns how many are enough. What has all of
    them comes before what has some.
    """

    parts: tuple[Node, ...]


class Or(Node, frozen=True, tag=True):
    """Matches if at least one part matches."""

    parts: tuple[Node, ...]


class Not(Node, frozen=True, tag=True):
    """Matches if the part does not."""

    part: Node


Query = Node
