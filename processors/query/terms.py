"""Single terms of the query language: which node a run of characters is, and what is wrong with it.

Laws:
- A term whose attribute is compared whole (WHOLE) is a Word, whatever signs it has.
- `*`, `?` and `~` belong to one word of letters and digits. A run that has other signs, too, is a Word, as addresses are
  (`a/b?c=1`, `/~user/`), but not with `*`, which is a mistake there.
- Words of Near are kept as the analysis writes them; all other texts as they were typed, without invisible characters in patterns.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from typing import NoReturn

from processors.query.bounds import check_day, read_range
from processors.query.mistakes import QueryError
from processors.query.regex import RegexError
from processors.query.regex import parse as parse_expression
from processors.query.words import MAX_WORD, fold, kind, spaced, words
from processors.query.words import attribute as known
from schemas.query import WHOLE, Fuzzy, Inside, Near, Phrase, Query, Regex, Site, Verbatim, Whole, Wildcard, Word

MAX_ERRORS = 3
MAX_DISTANCE = 1_000
"""Maximum number of other words between those of Near."""
MAX_NEAR = 20
"""Maximum number of words of Near."""
DISTANCE = 10
"""Number of words between those of `white NEAR whale`."""

Views = Mapping[str, Query]
"""What each view of a Broker holds, by path: the queries of its path, joined with AND."""

OPERATORS = ("AND", "OR", "NOT")
SPECIAL = ("site", "in", "view", "before", "after", "during")
"""Names that are no attributes unless they are quoted."""

RUN = re.compile(r'[^\s"()]+')
NAME = re.compile(r'([^\s"():*]+):(?!//|:)')
NEAR = re.compile(r"NEAR(?:/(\w*))?")
REGEX = re.compile(r"/(?!\s)((?:[^/\\]|\\.)+)/(?=[\s)]|\Z)", re.DOTALL)
_FUZZY = re.compile(r"(.*[^~])~(\d*)", re.DOTALL | re.ASCII)
_PAIR = re.compile(r"\\(.)", re.DOTALL)
_STARS = re.compile(r"[*?]")
_TOO_SHORT = "at least two letters or digits are needed beside * and ?"
_NO_LETTER = "a search term needs a letter or a digit"


def read_run(run: str, name: str, at: int) -> Query:
    """Return the node of an unquoted run of characters, the value of an attribute if `name` is one. Raises QueryError."""
    if known(name) in WHOLE:
        if run.startswith("=="):
            raise QueryError(f"{name[:40]} is compared whole, without ==", at, f"{name}:{run[2:]}" if run[2:] else "")
        return checked(Word(run, name), at)
    if name and run.startswith("=="):
        return read_whole(run[2:], name, at + 2)
    if run.startswith("=") and len(run) > 1:
        return read_verbatim(run, name, at)
    found = (read_range(run, name, at) if name else None) or _fuzzy(run, name, at) or wildcard(run, name, at)
    if found:
        return found
    check_day(run, name, at)
    return checked(Word(run, name), at)


def checked(term: Word | Phrase | Verbatim, at: int) -> Word | Phrase | Verbatim:
    """Return a term. Raises QueryError if there is nothing to look for in its text."""
    if not (term.text.strip() if known(term.attribute) in WHOLE else words(term.text)):
        raise QueryError(_NO_LETTER, at)
    return term


def is_signs(run: str) -> bool:
    """Return whether a run has neither letters or digits nor signs of the language, so that it is left out between terms."""
    return run != "-" and "*" not in run and not words(run)


def read_verbatim(run: str, name: str, at: int) -> Query:
    """Return the node of `=Whale`. Raises QueryError."""
    text = run[1:]
    named = NAME.match(text)
    if named and not name:
        value = text[named.end() :]
        raise QueryError("= belongs right before the word", at, f"{named[1]}:={value}" if value else "")
    if "*" in text:
        raise QueryError("* has no meaning in a term with =", at + run.index("*"), f'="{text}"' if words(text) else "")
    return checked(Verbatim(text, name), at)


def read_whole(text: str, name: str, at: int) -> Query:
    """Return the node of `author:==Melville`. Raises QueryError."""
    if not text.strip():
        raise QueryError("the value is missing after ==", at)
    return Whole(text, name)


def _visible(text: str) -> str:
    """Return a text without the invisible characters that the analysis drops."""
    return text if text.isascii() else "".join(c for c in text if kind(ord(c)))


def is_single(text: str) -> bool:
    """Return whether a text is one word of the analysis and nothing else."""
    folded = fold(text)
    return len(folded) <= MAX_WORD and len(words(text)) == 1 and all(kind(ord(c)).strip() for c in folded)


def letters(text: str) -> int:
    """Return the number of letters and digits."""
    return sum(unicodedata.category(c)[0] in "LN" for c in fold(text))


def _fuzzy(run: str, name: str, at: int) -> Query | None:
    """Return the node of `whale~2`, None if the run is something else."""
    found = _FUZZY.fullmatch(run)
    if not found:
        return None
    text, digits = _visible(found[1]), found[2]
    if not is_single(text):
        if text[-1:].isalnum() and not NAME.match(text) and "/" not in text:
            raise QueryError("only a single word can have errors", at, f'"{text}"')
        return None
    return fuzzy(text, int(digits[:9] or 1), name, at)


def fuzzy(text: str, errors: int, name: str, at: int) -> Fuzzy:
    """Return the node of one word with errors. Raises QueryError if it allows too many."""
    most = min(MAX_ERRORS, (len(fold(text)) - 1) // 2)
    proposal = f"{text}~{most}" if most > 0 else f'"{text}"'
    if not 1 <= errors <= MAX_ERRORS:
        raise QueryError("a word can have 1 to 3 errors", at, proposal)
    if errors > most:
        needed = 2 * errors + 1
        raise QueryError(f"for {errors} error{'s'[: errors - 1]} a word needs at least {needed} letters", at, proposal)
    return Fuzzy(text, errors, name)


def wildcard(run: str, name: str, at: int) -> Query | None:
    """Return the node of `wh*le`, None if the run is something else."""
    if not _STARS.search(run):
        return None
    text = _visible(run)
    rest = _STARS.sub("", text)
    single = is_single(_STARS.sub("x", text))
    if not single and "*" not in run:
        return None
    if rest and not single:
        pieces = [piece for piece in re.split(r"[^\w*?]+", text) if letters(piece) > 1 and is_single(_STARS.sub("x", piece))]
        first = at + (run.index("*") if "*" in run else 0)
        raise QueryError("* and ? stand for letters within one word", first, pieces[0] if len(pieces) == 1 else "")
    if letters(rest) < 2:
        raise QueryError(_TOO_SHORT, at, f'"{rest}"' if words(rest) else "")
    return Wildcard(text, name)


def read_expression(raw: str, name: str, at: int) -> Query:
    """Return the node of the text between the slashes of a regular expression. Raises QueryError."""
    return expression(_PAIR.sub(lambda pair: "/" if pair[1] == "/" else pair[0], raw), name, at + 1)


def expression(text: str, name: str, at: int) -> Regex:
    """Return the node of a regular expression whose text begins at `at`. Raises QueryError."""
    try:
        parse_expression(text)
    except RegexError as error:
        place = min(max(error.position, 0), len(text))
        message = str(error.args[0]) if error.args else str(error)
        raise QueryError(message, at + place + text[:place].count("/")) from error
    return Regex(text, name)


def near_words(text: str) -> tuple[str, ...]:
    """Return the words of a text, written so that analysing them again does not change them."""
    made = spaced(text)
    while (again := spaced(made)) != made:
        made = again
    return tuple(made.split())


def read_near(found: tuple[str, ...], distance: str, name: str, at: int) -> Near:
    """Return the node of words near each other; `distance` are digits. Raises QueryError."""
    shown = '"' + " ".join(found)
    if not (distance.isascii() and distance.isdecimal()):
        raise QueryError("the greatest number of words between is missing", at, f'{shown}"~{DISTANCE}')
    if int(distance[:9]) > MAX_DISTANCE:
        raise QueryError(f"at most {MAX_DISTANCE:,} words can be between", at, f'{shown}"~{MAX_DISTANCE}')
    if len(found) > MAX_NEAR:
        raise QueryError(f"at most {MAX_NEAR} words can be near each other", at)
    if len(found) < 2:
        raise QueryError("nearness needs at least two words", at, f'{shown}"' if found else "")
    if known(name) in WHOLE:
        raise QueryError(f"{name[:40]} is compared whole, not by its words", at)
    return Near(found, int(distance), name)


def read_place(special: str, text: str, at: int, *, quoted: bool) -> Query:
    """Return the node of `site:` or `in:`. Raises QueryError."""
    if special == "in":
        if not text.strip():
            raise QueryError("the name of a folder or an archive is missing", at)
        if "*" in text and not quoted:
            plain = text.rstrip("*")
            raise QueryError("in: takes no *; it finds what lies at any depth", at, f"in:{plain}" if plain.strip("/") else "")
        return Inside(text)
    if not words(text) or re.search(r"[\s/*]|^\.", text):
        host = re.sub(r"^\w+://|^[*.]+", "", text.strip()).partition("/")[0]
        proposal = f"site:{host}" if words(host) and not re.search(r"[\s/*]|^\.", host) else ""
        raise QueryError("site: takes the name of a host", at, proposal)
    return Site(text)


def written_out(views: Views | None, path: str, at: int) -> Query:
    """Return the query of a view that a query names at a position. Raises QueryError if there is none."""
    if views is None:
        raise QueryError("view: names a view of a Broker, and cannot be used here", at)
    found = views.get(path.strip("/").casefold())
    if found is None:
        _unknown(views, path, at)
    return found


def _unknown(views: Views, path: str, at: int) -> NoReturn:
    close = difflib.get_close_matches(path.casefold(), views, 1)
    raise QueryError("there is no such view", at, view_term(close[0]) if close else "")


def view_term(path: str) -> str:
    """Return the term that names a view."""
    return f'view:"{path}"' if " " in path else f"view:{path}"
