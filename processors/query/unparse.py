"""Query trees as text that `processors.query.parser` reads.

Laws:
- `parse(unparse(tree)) == tree` for every tree that `parse` returned.
- For any other tree that can be written (no name or text without a letter) the text means the same: a Word that could not
  be typed as one is written as a phrase, which is compared in the same way; And(()) matches everything, Or(()) nothing.
"""

from __future__ import annotations

import re

from processors.query.parser import NAME, OPERATORS, RUN
from processors.query.words import attribute as known
from schemas.query import WHOLE, And, Every, Exists, Not, Or, Phrase, Query, Word

_PLAIN_NAME = re.compile(r'[^\s"():*\-][^\s"():*]*')


def unparse(query: Query) -> str:
    """Return the text of a query."""
    match query:
        case And(parts):
            return _joined(parts, " ") if parts else "*"
        case Or(parts):
            return _joined(parts, " OR ") if parts else "NOT *"
        case Not(part):
            return f"NOT {_inner(part)}"
        case Exists(attribute):
            return f"{_name(attribute)}:*"
        case Phrase(text, attribute):
            return f"{_name(attribute)}:{_quoted(text)}" if attribute else _quoted(text)
        case Word(text, attribute):
            return f"{_name(attribute)}:{_value(text, attribute)}" if attribute else _word(text)
        case Every():
            return "*"
    raise TypeError(f"no node of a query: {type(query).__name__}")


def _joined(parts: tuple[Query, ...], between: str) -> str:
    return unparse(parts[0]) if len(parts) == 1 else between.join(map(_inner, parts))


def _inner(part: Query) -> str:
    text = unparse(part)
    return f"({text})" if isinstance(part, And | Or) and len(part.parts) > 1 else text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _name(attribute: str) -> str:
    return attribute if _PLAIN_NAME.fullmatch(attribute) else _quoted(attribute)


def _word(text: str) -> str:
    denied = text.startswith("-") and not text.startswith("--")
    typed = RUN.fullmatch(text) and "*" not in text and text not in OPERATORS and not denied and not NAME.match(text)
    return text if typed else _quoted(text)


def _value(text: str, attribute: str) -> str:
    starred = text == "*" or ("*" in text and known(attribute) not in WHOLE)
    return text if RUN.fullmatch(text) and not starred and not text.startswith(("//", ":")) else _quoted(text)
