"""Fields, weights and displayed parts of an indexed summary, independent of the engine.

Laws:
- All text is analysed by `processors.query.words` and passed on as words between spaces; an engine only splits at spaces. So the
  engines and the predicate cannot disagree about what matches.
- A field without words gets one word that no query can contain (ABSENT), so that each engine counts all documents
  in each field: BM25 then uses the same numbers, and the engines agree about the order too.
- BM25 with k1 = 1.2 and b = 0.75. A bare word scores by its form in the whole text and in the title, and a little by the word as
  it is written; words in quotes by the best field, of which the title weighs most, the others a tenth. Patterns, ranges and
  conditions do not score.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from urllib.parse import quote

import msgspec

from processors.query.forms import Analyzer, language_code, signed_names
from processors.query.snippet import Terms, plain, snippet
from processors.query.values import own_date
from processors.query.words import ANALYSIS, MAX_EXACT, all_spaced, links
from processors.query.words import attribute as known
from schemas.ports import Hit
from schemas.query import BY_NAME, EXACT_FIELDS, LINKS, SETS, TEXT_FIELDS, WHOLE, And, Most, Near, Or, Phrase, Query, Verbatim, Word
from schemas.records import Summary

FORMAT = f"7.{ANALYSIS}"
"""Version of the fields and of the analysis; an index with another version is rebuilt by replay."""

REST, ATTRIBUTES = "rest", "attributes"
WORDED = (*TEXT_FIELDS, REST, ATTRIBUTES)
"""Fields that hold words as they are written, in order."""
FORMS, TITLE_FORMS, NAMED_FORMS = "forms", "title-forms", "named-forms"
FORMED = (FORMS, TITLE_FORMS, NAMED_FORMS)
"""Fields that hold forms of words (`processors.query.forms`), without order: of all text that a bare word is looked for in; of the

title; and of every attribute, each form behind the `mark` of its name.
"""
UNCOUNTED = SETS | {NAMED_FORMS}
"""Fields whose words are present or not, and not counted."""
_TEXTS = frozenset(TEXT_FIELDS)

ABSENT = "-"
"""Word of a field without words: it has no letter, so no query can contain it."""

WEIGHTS: Mapping[str, float] = {field: 2.0 if field == "title" else 1.0 for field in (*TEXT_FIELDS, REST)}
"""Weights of the fields, for words in quotes without an attribute."""
OTHER_FIELDS_SHARE = 0.1

SHOWN_TEXT = 1_000
"""Maximum characters of text stored for snippets, of all attributes together."""
SHOWN_FULL = 65_536
"""Maximum characters stored if a full text is indexed, so that snippets can show matches far into it."""
SNIPPET_FIELDS = ("description", "abstract", "partial-text", "full-text")
MAX_TITLE = 500
"""Maximum characters of a title that are stored for display."""

MAX_SUGGESTIONS, MAX_SUGGESTED = 100, 30
"""Maximum number of suggestions of a summary, and the maximum length of one in characters."""
SUGGESTING = ("title", "keywords", "author")
"""Attributes whose words are suggested while a user types, and to one who mistyped."""

COPY, HIDDEN = "copy", "hidden"
"""Roles: of a copy; of a document that is no summary (stored removals, and the state of the index)."""

REMEMBERED = 90 * 86_400_000
"""Retention of removals in ms of the removals' own time (law 2: the removal retention)."""
SWEEP = 86_400_000
"""Interval in ms at which old removals are deleted."""

_HEX = re.compile("[0-9a-f]{64}")
_UNSAFE = re.compile(r"[\s%=]")
_NO_HEX = b"=" * 33


class _Quoted(dict[str, str]):
    """Cache of percent-encoded forms of unsafe characters."""

    def __missing__(self, char: str) -> str:
        self[char] = made = quote(char)
        return made


_QUOTED = _Quoted()


class StoredHit(msgspec.Struct, frozen=True, array_like=True):
    """Stored part of a summary, for display as a hit."""

    oid: bytes
    url: str
    title: str
    type: str
    copies: tuple[str, ...]
    copies_count: int
    text: tuple[str, ...]
    date: int | None = None
    """The document's own date in seconds since the epoch."""


def key(oid: str) -> bytes:
    """Return an OID as stored: 32 bytes if it is a hex digest, more if not."""
    return bytes.fromhex(oid) if is_plain(oid) else _NO_HEX + oid.encode("utf-8", "surrogatepass")


def is_plain(oid: str) -> bool:
    """Return whether an OID is a hex digest as Harvest makes it; only such an OID has a `key` of 32 bytes."""
    return _HEX.fullmatch(oid) is not None


def oid_of(kept: bytes) -> str:
    """Return the OID that `key` encoded."""
    return kept.hex() if len(kept) == 32 else kept[len(_NO_HEX) :].decode("utf-8", "surrogatepass")


@lru_cache(4_096)
def mark(name: str) -> str:
    """Return the prefix of each word of an attribute: a digest of its name, since long names would be most of the index."""
    return base64.urlsafe_b64encode(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest())[:6].decode()


@lru_cache(4_096)
def term(name: str) -> str:
    """Return an attribute's name as a term of the index, without spaces."""
    return f"{_UNSAFE.sub(_quoted, name)}="


def words_by_field(values: Mapping[str, Sequence[str]], analyzer: Analyzer) -> dict[str, list[str]]:
    """Return the texts of each of WORDED and FORMED, from the values that `searchable_values` returned.

    Words may be separated by several spaces. Each text is a value, but for the forms, which have no order: one text.
    """
    found: dict[str, list[str]] = {}
    language = language_code(values)
    texts = [(name, text) for name, texts in values.items() if name not in LINKS for text in texts]
    formed: dict[str, list[str]] = {}
    for (name, text), words in zip(texts, all_spaced([text for _, text in texts]), strict=True):
        split = words.split()
        if split:
            _add_words(found, name, words, split)
        formed.setdefault(name, []).extend(chain(analyzer.forms(split, language), signed_names(text)))
    for name, forms in formed.items():
        _add_forms(found, name, forms)
    for name in SETS & found.keys():
        found[name] = [" ".join(dict.fromkeys(" ".join(found[name]).split()))]
    for field in filter(found.__contains__, FORMED):
        found[field] = [" ".join(found[field])]
    for field in (*WORDED, *FORMED):
        if field not in found:
            found[field] = [ABSENT]
    return found


def _add_words(found: dict[str, list[str]], name: str, words: str, split: list[str]) -> None:
    if name in _TEXTS:
        found.setdefault(name, []).append(words)
        return
    if name not in BY_NAME:
        found.setdefault(REST, []).append(words)
    before = mark(name)
    found.setdefault(ATTRIBUTES, []).append(before + f" {before}".join(split))


def _add_forms(found: dict[str, list[str]], name: str, forms: list[str]) -> None:
    if not forms:
        return
    text = " ".join(forms)
    if name not in BY_NAME:
        found.setdefault(FORMS, []).append(text)
    if name == "title":
        found.setdefault(TITLE_FORMS, []).append(text)
    before = mark(name)
    found.setdefault(NAMED_FORMS, []).append(before + f" {before}".join(dict.fromkeys(forms)))


def facet_field(facet: str) -> str:
    """Return the name of the field of a facet."""
    return f"facet-{facet}"


def suggestions(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return words that are suggested to users, each once; `found`: as `words_by_field` returned it. Numbers are left out."""
    made = (word for name in SUGGESTING for text in found.get(name, ()) for word in text.split())
    fitting = dict.fromkeys(word for word in made if 1 < len(word) <= MAX_SUGGESTED and not word.isdigit())
    return list(fitting)[:MAX_SUGGESTIONS]


def link(name: str, target: str) -> str:
    """Return the term for a link: the `mark` of its attribute and the target, without spaces."""
    return mark(name) + (_UNSAFE.sub(_quoted, target) if _UNSAFE.search(target) else target)


def _quoted(found: re.Match[str]) -> str:
    return _QUOTED[found.group()]


def linked(values: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the terms for the links among the values that `searchable_values` returned for a summary."""
    # A set, because most links of a page lead to a few hosts.
    return {link(name, target) for name, target in set(links(values))}


def name_terms(names: Iterable[str], properties: Iterable[str]) -> Iterator[str]:
    """Iterate over the terms that `attribute:*` finds a summary by."""
    return map(term, set(names).difference(EXACT_FIELDS).union(properties))


def sortable(url: str) -> str:
    """Return the sort key of a URL."""
    return url[:MAX_EXACT].encode("utf-8", "replace").decode()


def shown(summary: Summary, values: Mapping[str, Sequence[str]]) -> StoredHit:
    """Return the part of a summary to store for display; `values`: of `searchable_values`."""
    room, kept = SHOWN_FULL if "full-text" in values else SHOWN_TEXT, list[str]()
    for text in (text for name in SNIPPET_FIELDS for text in values.get(name, ())):
        if room > 0 and text:
            kept.append(text[:room])
            room -= len(text)
    title = next(iter(values.get("title", ())), "")[:MAX_TITLE]
    known = key(summary.oid), summary.shown_url, title, summary.type, summary.copies, summary.copies_count, tuple(kept)
    return StoredHit(*known, own_date(values))


def hit(score: float, kept: StoredHit, wanted: Terms) -> Hit:
    """Return a hit with a snippet that marks the `wanted` terms."""
    text = snippet(kept.text, wanted)
    return Hit(oid_of(kept.oid), kept.url, plain(kept.title), kept.type, score, text, kept.copies, kept.copies_count, kept.date)


def scores(query: Query) -> bool:
    """Return whether a query ranks by score; other queries only filter."""
    match query:
        case And(parts) | Or(parts) | Most(parts):
            return any(map(scores, parts))
        case Word(_, attribute) | Phrase(_, attribute) | Verbatim(_, attribute) | Near(_, _, attribute):
            return known(attribute) not in WHOLE
    return False


def rounded(score: float) -> float:
    """Return a score rounded for comparison: its last bits depend on the order of addition."""
    return float(f"{score:.5g}")
