"""What an index holds of a summary, whatever its engine: fields of words, and what a hit shows; and how much a hit counts.

Laws:
- All text is analysed by `processors.query.words` and handed over as words between spaces; an engine only splits at spaces. So the
  engines and the predicate cannot disagree about what is found.
- A document that has none of a field's words has one that nobody can ask for (ABSENT), so that each engine counts all documents
  in each field: BM25 then rests on the same numbers, and the engines agree about the order too.
- BM25 with k1 = 1.2 and b = 0.75; the best field counts, the others a tenth. Title, keywords, abstract and description weigh above
  the rest (Nebula's domain-specific ranking, seed 000). Conditions (exact fields, `attribute:*`, NOT, `*`) do not score.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote

import msgspec

from processors.query.snippet import Terms, plain, snippet
from processors.query.words import ANALYSIS, MAX_EXACT, all_spaced, links
from processors.query.words import attribute as known
from schemas.ports import Hit
from schemas.query import BY_NAME, EXACT_FIELDS, LINKS, SETS, TEXT_FIELDS, WHOLE, And, Or, Phrase, Query, Word
from schemas.records import Summary

FORMAT = f"4.{ANALYSIS}"
"""Version of the fields and of the analysis; an index of another one is rebuilt by replay."""

REST, ATTRIBUTES = "rest", "attributes"
WORDED = (*TEXT_FIELDS, REST, ATTRIBUTES)
"""The fields that hold words."""
_TEXTS = frozenset(TEXT_FIELDS)

ABSENT = "-"
"""Stands in a field that has no words: no letter, so no query can ask for it."""

WEIGHTS: Mapping[str, float] = {
    "title": 6.0,
    "keywords": 3.0,
    "abstract": 2.5,
    "description": 2.5,
    "author": 1.5,
    "partial-text": 1.0,
    "full-text": 1.0,
    "terms": 1.0,
    REST: 1.0,
}
"""How much a hit in each field counts, where a query names none."""
OTHER_FIELDS_SHARE = 0.1

SHOWN_TEXT = 1_000
"""Characters of text kept for snippets, of all its attributes together."""
SHOWN_FULL = 65_536
"""Characters kept of a full text: who has it indexed wants to see where in it the words are."""
SNIPPET_FIELDS = ("description", "abstract", "partial-text", "full-text")
MAX_TITLE = 500
"""Characters of a title that are kept to be shown."""

COPY, HIDDEN = "copy", "hidden"
"""Roles: of a copy; of what is no summary (remembered removals, and what the index knows of itself)."""

REMEMBERED = 90 * 86_400_000
"""How long removals are remembered, ms of the removals' own time (law 2: the removal retention)."""
SWEEP = 86_400_000
"""How often removals are forgotten, ms."""

_HEX = re.compile("[0-9a-f]{64}")
_UNSAFE = re.compile(r"[\s%=]")
_NO_HEX = b"=" * 33


class _Quoted(dict[str, str]):
    """What stands for a character that divides; learned as they come."""

    def __missing__(self, char: str) -> str:
        self[char] = made = quote(char)
        return made


_QUOTED = _Quoted()


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a summary to show it as a hit."""

    oid: bytes
    url: str
    title: str
    type: str
    copies: tuple[str, ...]
    copies_count: int
    text: tuple[str, ...]


def key(oid: str) -> bytes:
    """The OID as it is kept: 32 bytes where it is hex, more where it is not."""
    return bytes.fromhex(oid) if is_plain(oid) else _NO_HEX + oid.encode("utf-8", "surrogatepass")


def is_plain(oid: str) -> bool:
    """Whether an OID is the digest that ours are, in hex: nothing else has its `key`."""
    return _HEX.fullmatch(oid) is not None


def oid_of(kept: bytes) -> str:
    """The OID that `key` was given."""
    return kept.hex() if len(kept) == 32 else kept[len(_NO_HEX) :].decode("utf-8", "surrogatepass")


@lru_cache(4_096)
def mark(name: str) -> str:
    """What stands before each word of an attribute: a digest of its name, since long names would be most of the index."""
    return base64.urlsafe_b64encode(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest())[:6].decode()


@lru_cache(4_096)
def term(name: str) -> str:
    """The name of an attribute as it stands by itself."""
    return f"{_UNSAFE.sub(_quoted, name)}="


def worded(values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The words of each of WORDED, of a summary whose values are `named`: a text for each value, one space between, or several."""
    found: dict[str, list[str]] = {}
    names = [name for name, texts in values.items() if name not in LINKS for _ in texts]
    all_words = all_spaced([text for name, texts in values.items() if name not in LINKS for text in texts])
    for name, words in zip(names, all_words, strict=True):
        if not words or words.isspace():
            continue
        if name in _TEXTS:
            found.setdefault(name, []).append(words)
        else:
            if name not in BY_NAME:
                found.setdefault(REST, []).append(words)
            before = mark(name)
            found.setdefault(ATTRIBUTES, []).append(before + f" {before}".join(words.split()))
    for name in SETS & found.keys():
        found[name] = [" ".join(dict.fromkeys(" ".join(found[name]).split()))]
    for field in WORDED:
        if field not in found:
            found[field] = [ABSENT]
    return found


def link(name: str, target: str) -> str:
    """What a link is found by, as it stands in an index: behind the `mark` of its attribute, without a space in it."""
    return mark(name) + (_UNSAFE.sub(_quoted, target) if _UNSAFE.search(target) else target)


def _quoted(found: re.Match[str]) -> str:
    return _QUOTED[found.group()]


def linked(values: Mapping[str, Sequence[str]]) -> set[str]:
    """What the links of a summary are found by, whose values are `named`."""
    # Most links of a page lead to a few hosts: each is looked at once.
    return {link(name, target) for name, target in set(links(values))}


def present(names: Iterable[str], properties: Iterable[str]) -> Iterator[str]:
    """The names that `attribute:*` finds a summary by, each as its `term`."""
    return map(term, set(names).difference(EXACT_FIELDS).union(properties))


def sortable(url: str) -> str:
    """The URL as it is sorted."""
    return url[:MAX_EXACT].encode("utf-8", "replace").decode()


def shown(summary: Summary, values: Mapping[str, Sequence[str]]) -> Shown:
    """What a hit will need of a summary, whose values are `named`."""
    room, kept = SHOWN_FULL if "full-text" in values else SHOWN_TEXT, list[str]()
    for text in (text for name in SNIPPET_FIELDS for text in values.get(name, ())):
        if room > 0 and text:
            kept.append(text[:room])
            room -= len(text)
    title = next(iter(values.get("title", ())), "")[:MAX_TITLE]
    return Shown(key(summary.oid), summary.url, title, summary.type, summary.copies, summary.copies_count, tuple(kept))


def hit(score: float, kept: Shown, wanted: Terms) -> Hit:
    """A hit of a query whose `terms` are wanted."""
    text = snippet(kept.text, wanted)
    return Hit(oid_of(kept.oid), kept.url, plain(kept.title), kept.type, score, text, kept.copies, kept.copies_count)


def scores(query: Query) -> bool:
    """Whether a query tells summaries apart by score, or only chooses them."""
    match query:
        case And(parts) | Or(parts):
            return any(map(scores, parts))
        case Word(_, attribute) | Phrase(_, attribute):
            return known(attribute) not in WHOLE
    return False


def rounded(score: float) -> float:
    """A score as it is compared: its last bits depend on the order of addition."""
    return float(f"{score:.5g}")
