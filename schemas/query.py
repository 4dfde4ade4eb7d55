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

BY_NAME = frozenset(("url-references", "owner", "group", "mode", "last-modification-time", COPY))
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
    """A word, with an attribute (`title:whale`) only in that one; for names in WHOLE, the whole value."""

    text: str
    attribute: str = ""


class Phrase(Node, frozen=True, tag=True):
    """Adjacent words within one value of an attribute; without an attribute, of any."""

    text: str
    attribute: str = ""


class Exists(Node, frozen=True, tag=True):
    """Matches summaries that have the attribute: `author:*`."""

    attribute: str


class And(Node, frozen=True, tag=True):
    """Matches if all parts match."""

    parts: tuple[Node, ...]


class Or(Node, frozen=True, tag=True):
    """Matches if at least one part matches."""

    parts: tuple[Node, ...]


class Not(Node, frozen=True, tag=True):
    """Matches if the part does not."""

    part: Node


Query = Node
