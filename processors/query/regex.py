r"""Regular expressions of queries: a small grammar, written out for RE2 (which is the predicate), for Lucene and for tantivy.

    . [a-z] [^a-z] \d \w \s \D \W \S   ( ) |   * + ? {2} {2,} {2,5}   ^ $ at the ends   \ before a sign

Laws:
- An expression is one of words, which it describes as a whole; with a blank, `^` or `$` in it, it is one of values, in which it is
  found anywhere. A sign, `\s`, `\W` or a character that is a word by itself (東) counts as a blank: no longer word has one.
- Case does not matter: texts under test are folded, and so are literals and classes. Accents do matter.
- `\d` is 0 to 9. `\w` is a letter, mark, digit or `_`; of a word it is any character, as `.` is.
- All takes time in proportion to the length of the text: RE2 has no backtracking.
- What is written for an engine finds the same words as RE2 does; it is None where that is not possible, or too large.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import re2

from processors.query import regex_runs, regex_size
from processors.query.regex_parser import RegexError, parse_nodes
from processors.query.regex_tree import ANY, EMPTY, Chars, Edge, Either, Node, Repeat, Row, Text
from processors.query.words import MAX_WORD, fold, kind

MAX_MEMORY = 4 << 20
"""Maximum memory of RE2 for one expression in bytes."""
MAX_LUCENE = 1_000
"""Maximum length of what is written for Lucene: OpenSearch's index.max_regex_length."""
MAX_TANTIVY = 800
"""Maximum number of states for tantivy, which takes 1,000; the others are for what the caller puts before it."""

__all__ = ["Expression", "RegexError", "parse"]


@dataclass(frozen=True)
class _Dialect:
    r"""How an engine writes expressions: the opening of a group, any character, a sign, and `\w` within a class."""

    group: str
    any: str
    sign: Callable[[str], str]
    word: str = ""
    without: str = ""
    """Characters that classes of all others leave out, too."""
    bare_ends: bool = False
    """Whether the ends of a range cannot be escaped."""

    def write(self, node: Node) -> str:
        match node:
            case Text(text):
                return "".join(map(self.char, text)) or f"{self.group})"
            case Chars():
                return self.chars(node)
            case Edge(start):
                return r"\A" if start else r"\z"
            case Row(parts):
                return "".join(map(self.write, parts))
            case Either(parts):
                return f"{self.group}{'|'.join(map(self.write, parts))})"
            case Repeat(part, low, high):
                written = self.write(part)
                bare = isinstance(part, Chars | Either) or (isinstance(part, Text) and len(part.text) == 1)
                return (written if bare else f"{self.group}{written})") + _counts(low, high)

    def char(self, char: str) -> str:
        return char if char.isalnum() or not char.isascii() else self.sign(char)

    def chars(self, chars: Chars) -> str:
        if chars == ANY or (chars.word and not self.word):
            return self.any
        written = "".join(self.span(chr(low), chr(high)) for low, high in chars.ranges)
        written += self.word if chars.word else ""
        return f"[^{written}{self.without}]" if chars.negated else f"[{written}]"

    def span(self, low: str, high: str) -> str:
        """Write a range. Lucene takes no escaped sign at its ends, so these are written before and after it."""
        before = after = ""
        while self.bare_ends and low < high and self.char(low) != low:
            before, low = before + self.char(low), chr(ord(low) + 1)
        while self.bare_ends and low < high and self.char(high) != high:
            after, high = self.char(high) + after, chr(ord(high) - 1)
        return before + (self.char(low) if low == high else f"{self.char(low)}-{self.char(high)}") + after


def _counts(low: int, high: int | None) -> str:
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return simple.get((low, high)) or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")


def _hex(char: str) -> str:
    return f"\\x{{{ord(char):x}}}"


_VALUES = _Dialect("(?:", ".", _hex, word=r"\p{L}\p{M}\p{N}_")
_WORD = _Dialect("(?:", ".", _hex)
_SPACED = _Dialect("(?:", "[^ ]", _hex, without=" ")
_LUCENE = _Dialect("(", ".", lambda char: f"\\{char}" if char.isprintable() else char, bare_ends=True)
_TANTIVY = _Dialect("(?:", ".", _hex)


@dataclass(frozen=True)
class Expression:
    """Parsed regular expression; `of_words` if it describes a whole word, else it is found anywhere in a value."""

    text: str
    node: Node = field(repr=False)
    of_words: bool
    exact_lucene: bool = True
    """Whether Lucene finds the same words as `test`, if `lucene` returns anything."""
    exact_tantivy: bool = True
    """Whether tantivy finds the same words as `test`, if `tantivy` returns anything."""

    def test(self) -> Callable[[str], bool]:
        """Return a test of a whole folded word, or of a value (which is folded here)."""
        if not self.of_words:
            search = self.compiled.search
            return lambda value: search(spread(value).encode("utf-8", "replace")) is not None
        match = self.compiled.fullmatch
        return lambda word: match(word.encode("utf-8", "replace")) is not None

    def test_spaced(self) -> Callable[[str], bool]:
        """Return a test whether any word matches, of all the words of a value at once, between blanks. Only if `of_words`.

        It is much faster than to test word by word.
        """
        test = self.test()
        try:
            search = _compile(f" {_SPACED.write(self.node)} ").search
        except re2.error:  # a little larger than `compiled`
            return lambda spaced: any(map(test, spaced.split()))
        if not test(""):
            return lambda spaced: search(f" {spaced} ".encode("utf-8", "replace")) is not None
        # The empty text is found between two blanks, so there must be none.
        return lambda spaced: (
            bool(found := " ".join(spaced.split())) and search(f" {found} ".encode("utf-8", "replace")) is not None
        )

    def among(self, words: Sequence[str]) -> list[str]:
        """Return those of some folded words that match. Only if `of_words`."""
        test = self.test()
        try:
            found = _compile(f" {_SPACED.write(self.node)} ").finditer
        except re2.error:  # a little larger than `compiled`
            return list(filter(test, words))
        if test(""):
            return list(filter(test, words))
        # Between two words there are two blanks, since each match takes the one before it and the one behind it.
        spread = f" {'  '.join(words)} ".encode("utf-8", "replace")
        return [match.group().decode().strip(" ") for match in found(spread)]

    def lucene(self) -> str | None:
        """Return the expression for Lucene with the flags NONE, for whole words; None if that is not possible."""
        if not self.of_words or self._states is None:
            return None
        written = _LUCENE.write(self.node)
        return written if len(written) <= MAX_LUCENE else None

    def tantivy(self) -> str | None:
        """Return the expression for tantivy, for whole terms; None if that is not possible.

        Literal text of up to 200 bytes may be put before it.
        """
        if not self.of_words or self._states is None or self._states[1] > MAX_TANTIVY:
            return None
        written = _TANTIVY.write(self.node)
        return f"(?s:{written})" if "." in written else written  # without the flag "." leaves out the line feed, for more states

    def required(self) -> tuple[str, ...]:
        """Return runs of letters that every match has within words, in order; () if there is none of two letters."""
        return regex_runs.required(self.node)

    @cached_property
    def _states(self) -> tuple[int, int] | None:
        return regex_size.states(self.node)

    @cached_property
    def compiled(self) -> re2._Regexp:
        """The expression as RE2 runs it."""
        return _compile((_WORD if self.of_words else _VALUES).write(self.node))


def parse(text: str) -> Expression:
    """Return a regular expression. Raises RegexError."""
    node, of_values = parse_nodes(text)
    made = Expression(text, node, not of_values)
    try:
        made.compiled  # noqa: B018
    except re2.error:
        raise RegexError("the regular expression is too large: shorten it, or repeat less", 0) from None
    return made


def wildcards(text: str) -> Expression:
    """Return the expression of a wildcard on whole words: `*` is any number of letters, `?` one letter."""
    parts = [part for part in re.split(r"([*?])", fold(text)) if part]
    made: list[Node] = []
    for part in parts:
        kept = "".join(char for char in part if kind(ord(char)))
        many = Repeat(ANY, 0, None)
        if part != "*" or made[-1:] != [many]:
            made.append(many if part == "*" else ANY if part == "?" else Text(kept))
    return Expression(text, Row(tuple(made)) if made else EMPTY, of_words=True)


def _compile(written: str) -> re2._Regexp:
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    options.dot_nl = True
    return re2.compile(written, options=options)


class _Visible(dict[int, str]):
    """Table for str.translate that leaves out invisible characters; filled on demand."""

    def __missing__(self, code: int) -> str:
        self[code] = made = chr(code) if kind(code) else ""
        return made


class _Kinds(dict[int, str]):
    """Table for str.translate: code point to its kind; filled on demand."""

    def __missing__(self, code: int) -> str:
        self[code] = made = kind(code) or " "
        return made


_VISIBLE = _Visible()
_KINDS = _Kinds()
_WORDS = re.compile("w+")


def spread(value: str) -> str:
    """Return a value as expressions of values test it: folded, with single blanks, without what the index leaves out.

    Those are invisible characters, and the rest of a word of more than MAX_WORD characters: by the runs that an expression
    requires, an engine must find every value that matches.
    """
    folded = fold(value) if value.isascii() else fold(value).translate(_VISIBLE)
    pieces = folded.split()
    if any(len(piece) > MAX_WORD for piece in pieces):
        pieces = [_cut(piece) if len(piece) > MAX_WORD else piece for piece in pieces]
    return " ".join(pieces)


def _cut(piece: str) -> str:
    """Return a text without white space whose words are cut."""
    made, at = [], 0
    for found in _WORDS.finditer(piece.translate(_KINDS)):
        made.append(piece[at : min(found.end(), found.start() + MAX_WORD)])
        at = found.end()
    return "".join([*made, piece[at:]])
