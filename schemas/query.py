"""The query tree: one language for all Brokers, whatever engine answers.

The parser and the predicate on a single summary are in `processors/query`, the compilers in `sinks/`; a property test
says that they agree. Text is compared word by word, case folded (the analysis is `processors/query/words.py`).
"""

from __future__ import annotations

import msgspec

TEXT_FIELDS = ("title", "description", "abstract", "keywords", "author", "partial-text", "full-text", "terms")
"""Attributes with an index field of their own; a word without an attribute is looked for in all text but BY_NAME."""

EXACT_FIELDS = ("type", "url", "md5", "gatherer", "oid", "object-url", "content-type")
"""Properties of a summary that are compared whole: `type:HTML` (case folded, as all are), `url:http://…`."""

LINKS = frozenset(("url-references",))
"""Attributes of URLs: a link is an identifier, no text. It is found by the whole of it or by its host, as it is compared:
`url-references:http://example.org/a.html`, `url-references:example.org`. The words of a page's links are most of what a page of an
index or a table of contents holds, and nobody looks for them."""

SETS = frozenset(("terms",))
"""Attributes that are sets of words: a word is found in them, words in a row are not."""

WHOLE = frozenset(EXACT_FIELDS) | LINKS
"""What is compared whole, and not word by word."""

COPY = "copy"
"""Where the copies of a summary are: their URLs, as a person reads them."""

BY_NAME = frozenset(("url-references", "owner", "group", "mode", "last-modification-time", COPY))
"""Attributes that are searched only where a query names them: who looks for `root` does not mean every file that root owns, nor
who looks for a word every page with a link to a page of that name, nor all that lies in a folder of that name."""


DATES = frozenset(("date", "creation-date", "modification-date", "last-modification-time"))
"""Attributes whose values are moments, where they can be told: they are found by their days, too."""


class Node(msgspec.Struct, frozen=True, tag=True):
    """A node of the tree."""


class Every(Node, frozen=True, tag=True):
    """Matches every summary: the query `*`."""


class Word(Node, frozen=True, tag=True):
    """A word; with an attribute (`title:whale`) only there. Of what is WHOLE: the whole value."""

    text: str
    attribute: str = ""


class Phrase(Node, frozen=True, tag=True):
    """Words in a row within one value of an attribute; without an attribute, of any."""

    text: str
    attribute: str = ""


class Exists(Node, frozen=True, tag=True):
    """Summaries that have the attribute at all: `author:*`."""

    attribute: str


class And(Node, frozen=True, tag=True):
    """All of them."""

    parts: tuple[Node, ...]


class Or(Node, frozen=True, tag=True):
    """At least one of them."""

    parts: tuple[Node, ...]


class Not(Node, frozen=True, tag=True):
    """None of it."""

    part: Node


Query = Node
