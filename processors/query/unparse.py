"""Query trees as text that `processors.query.parser` reads.

Laws:
- `parse(unparse(tree)) == tree` for every tree that `parse` returned.
- For any other tree that can be written the text means the same: a Word that could not be typed as one is written as its words,
  And(()) matches everything, Or(()) nothing. Not to be written are: a name or text without a letter, a pattern that `parse`
  refuses, a Near of fewer than two words, a NumberRange of one of DATES, patterns and ranges of attributes that are compared
  whole, and trees beyond the limits of `parse`.
"""

from __future__ import annotations

import math
import re

from processors.query.bounds import FIRST, LAST, moment_texts, number_text
from processors.query.mistakes import QueryError
from processors.query.parser import BARE_WORDS, is_bare, parse
from processors.query.terms import RUN, SPECIAL
from processors.query.words import attribute as known
from processors.query.words import words
from schemas.query import (
    DATES,
    WHOLE,
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Not,
    NumberRange,
    Or,
    Phrase,
    Query,
    Regex,
    Site,
    Verbatim,
    Whole,
    Wildcard,
    Word,
)

_PLAIN_NAME = re.compile(r'[^\s"():*=/\-][^\s"():*]*')
_OPEN_SLASH = re.compile(r"/(?!/)(?!(?:[^/\\]|\\.)+/)", re.DOTALL)
_QUESTION = re.compile(r"[^\W_]+\?+")
_PAIR = re.compile(r"\\.|/", re.DOTALL)
_NEVER = "NOT *"


def unparse(query: Query) -> str:
    """Return the text of a query."""
    match query:
        case And(parts) | Most(parts):
            return _chain(parts, most=isinstance(query, Most)) if parts else "*"
        case Or(parts):
            return (unparse(parts[0]) if len(parts) == 1 else " OR ".join(map(_inner, parts))) if parts else _NEVER
        case Not(part):
            return f"NOT {_inner(part)}"
        case Every():
            return "*"
        case Exists(attribute):
            return f"{_name(attribute)}:*"
        case Site(text):
            return _typed(query, f"site:{text}") or f"site:{_quoted(text)}"
        case Inside(text):
            return _typed(query, f"in:{text}") or f"in:{_quoted(text)}"
        case NumberRange(attribute, low, high):
            return _numbers(attribute, low, high)
        case MomentRange(attribute, low, high):
            return _moments(attribute, low, high)
    return _term(query)


def _term(query: Query) -> str:
    match query:
        case Word(text, attribute):
            return _word(text, attribute)
        case Phrase(text, attribute):
            return f"{_prefix(attribute)}{_quoted(text)}"
        case Verbatim(text, attribute):
            return _typed(query, f"{_prefix(attribute)}={text}") or f"{_prefix(attribute)}={_quoted(text)}"
        case Whole(text, attribute):
            return _typed(query, f"{_prefix(attribute)}=={text}") or f"{_prefix(attribute)}=={_quoted(text)}"
        case Wildcard(text, attribute):
            return f"{_prefix(attribute)}{text}"
        case Fuzzy(text, errors, attribute):
            return f"{_prefix(attribute)}{text}~{errors if errors > 1 else ''}"
        case Near(found, distance, attribute):
            return f"{_prefix(attribute)}{_quoted(' '.join(found))}~{distance}"
        case Regex(text, attribute):
            return f"{_prefix(attribute)}/{_slashed(text)}/"
    raise TypeError(f"no node of a query: {type(query).__name__}")


def _chain(parts: tuple[Query, ...], *, most: bool) -> str:
    """Return the parts of And or Most one after the other."""
    if len(parts) == 1:
        return unparse(parts[0])
    most &= sum(map(is_bare, parts)) >= BARE_WORDS
    explicit = not most and sum(is_bare(_reduced(part)) for part in parts) >= BARE_WORDS
    made = [_bare(part) if most else _inner(part) for part in parts]
    last = parts[-1]
    if isinstance(last, Wildcard) and not last.attribute and _QUESTION.fullmatch(last.text):
        made[-1] = f"({made[-1]})"  # or its question mark would be taken for that of a question
    return (" AND " if explicit else " ").join(made)


def _bare(part: Query) -> str:
    """Return the text of a part of Most, which is a bare word only if the part is one."""
    if isinstance(part, Word) and not part.attribute:
        return _word(part.text, "", bare=True)
    text = _inner(part)
    return f"NOT NOT {text}" if isinstance(part, And | Or | Most) and is_bare(_reduced(part)) else text


def _reduced(query: Query) -> Query:
    """Return what is left of a group of one."""
    while isinstance(query, And | Or | Most) and len(query.parts) == 1:
        query = query.parts[0]
    return query


def _inner(part: Query) -> str:
    text = unparse(part)
    reduced = _reduced(part)
    return f"({text})" if isinstance(reduced, And | Or | Most) and len(reduced.parts) > 1 else text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _name(attribute: str) -> str:
    return attribute if _PLAIN_NAME.fullmatch(attribute) and known(attribute) not in SPECIAL else _quoted(attribute)


def _prefix(attribute: str) -> str:
    return f"{_name(attribute)}:" if attribute else ""


def _typed(node: Query, text: str) -> str:
    """Return a text if it is read as the node, else ""."""
    try:
        return text if parse(text) == node else ""
    except QueryError:
        return ""


def _word(text: str, attribute: str, *, bare: bool = False) -> str:
    """Return the text of a Word; `bare`: not as a phrase, which is no bare word."""
    prefix = _prefix(attribute)
    if RUN.fullmatch(text) and _typed(Word(text, attribute), prefix + text):
        # Signs that are left out keep a later slash from making this one begin a regular expression.
        return f"{prefix}{text} //" if _OPEN_SLASH.match(text) and known(attribute) not in WHOLE else prefix + text
    found = words(text)
    if known(attribute) in WHOLE or not found or (len(found) > 1 and not bare):
        return prefix + _quoted(text)
    written = "-".join(found)
    return prefix + written if _typed(Word(written, attribute), prefix + written) else prefix + _quoted(text)


def _slashed(text: str) -> str:
    """Return a regular expression as it stands between slashes."""
    escaped = _PAIR.sub(lambda found: "\\/" if found[0] == "/" else found[0], text)
    return f"[{escaped[0]}]{escaped[1:]}" if escaped[:1].isspace() else escaped


def _numbers(attribute: str, low: float | None, high: float | None) -> str:
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if not least <= most or least == math.inf or most == -math.inf:
        return _NEVER
    if least == -math.inf and most == math.inf:
        least = -math.nextafter(math.inf, 0)  # any number
    shown = [number_text(value) if math.isfinite(value) else "" for value in (least, most)]
    return f"{_name(attribute)}:{'..'.join(shown)}"


def _moments(attribute: str, low: int | None, high: int | None) -> str:
    first, last = None if low is None else max(low, FIRST), None if high is None else min(high, LAST)
    if (first is not None and first > LAST) or (last is not None and last < FIRST):
        return _NEVER
    if first is not None and last is not None and first > last:
        return _NEVER
    if not attribute:
        return _document_date(first, last)
    if first is None and last is None:
        first = FIRST
    begin, end = moment_texts(first, last, years=known(attribute) in DATES)
    return f"{_name(attribute)}:{begin}..{end}"


def _document_date(first: int | None, last: int | None) -> str:
    """Return the bounds of the document's own date; it is any date if there are none."""
    if first is not None and last is not None:
        begin, end = moment_texts(first, last, years=True)
        return f"during:{begin}" if begin == end else f"during:{begin}..{end}"
    # No moment is before the first or behind the last one, so that neither can be written with after: or before:.
    if first is not None and first > FIRST:
        return f"after:{moment_texts(None, first - 1, years=True)[1]}"
    if last is not None and last < LAST:
        return f"before:{moment_texts(last + 1, None, years=True)[0]}"
    return "during:0001.." if last is None else "during:..9999"
