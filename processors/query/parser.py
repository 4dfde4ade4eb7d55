"""Parser of the query language, from text to tree (the tree is `schemas.query`).

    query     = either { "OR" either }
    either    = part { [ "AND" ] part }
    part      = { "NOT" | "-" } term
    term      = "(" query ")" | "*" | [ name ":" ] ( word | phrase ) | name ":" "*"
    name      = word without ":" | phrase

Laws:
- Any input yields a tree or a QueryError with the position; no other error is raised.
- AND, OR and NOT are operators in capitals only; quotes make any of them a word.
- `parse(unparse(tree)) == tree` for every tree that `parse` returned.
- A term without letter or digit cannot match and is refused: a query never silently means less than was typed.
"""

from __future__ import annotations

import re
from typing import NoReturn

from processors.query.words import attribute, words
from schemas.query import WHOLE, And, Every, Exists, Not, Or, Phrase, Query, Word

MAX_LENGTH = 4_000
"""Maximum length of a query in characters."""
MAX_DEPTH = 50
"""Maximum nesting of parentheses and NOTs."""

OPERATORS = ("AND", "OR", "NOT")

_SPACE = re.compile(r"\s*")
RUN = re.compile(r'[^\s"()]+')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
NAME = re.compile(r'([^\s"():*]+):(?!//|:)')


class QueryError(ValueError):
    """Syntax error in a query: `message` says what is wrong, `position` where (in code points, from 0)."""

    def __init__(self, message: str, position: int) -> None:
        self.message = _printable(message)
        super().__init__(self.message)
        self.position = position

    def line(self, query: str) -> str:
        """Return the error on one line: the message, and the query with a caret before the position."""
        low, high = max(0, self.position - 40), self.position + 40
        before, after = query[low : self.position], query[self.position : high]
        shown = f"{'…' if low else ''}{before}^{after}{'…' if len(query) > high else ''}"
        return f"{self.message}: {_printable(shown)}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def parse(text: str) -> Query:
    """Return the tree of a query. Raises QueryError."""
    if len(text) > MAX_LENGTH:
        raise QueryError(f"the query is longer than {MAX_LENGTH:,} characters", MAX_LENGTH)
    parser = _Parser(text)
    parser.skip()
    if parser.at == len(text):
        raise QueryError("the query is empty", 0)
    tree = parser.query(0)
    if parser.at < len(text):
        parser.fail("this parenthesis has no opening one")
    return tree


class _Parser:
    """Recursive-descent parser over one text; `at` is always past any white space."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise QueryError(message, self.at if position is None else position)

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        """Return the characters up to the next white space, quote or parenthesis; "" if one of these is next."""
        found = RUN.match(self.text, self.at)
        return found.group() if found else ""

    def take(self, count: int) -> None:
        self.at += count
        self.skip()

    def ended(self) -> bool:
        return self.at == len(self.text) or self.text[self.at] == ")"

    def query(self, depth: int) -> Query:
        parts = [self.either(depth)]
        while self.peek() == "OR":
            self.take(2)
            parts.append(self.either(depth, "OR"))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def either(self, depth: int, after: str = "") -> Query:
        parts = [self.part(depth, after)]
        while not self.ended() and self.peek() != "OR":
            joined = self.peek() == "AND"
            self.take(3 if joined else 0)
            parts.append(self.part(depth, "AND" if joined else ""))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def part(self, depth: int, after: str = "") -> Query:
        if depth > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} nested parentheses or NOTs")
        if self.ended():
            self.fail(f"a search term is missing after {after}" if after else "a search term is missing")
        run = self.peek()
        if run in ("AND", "OR"):
            self.fail(f"a search term is missing before {run}")
        if run == "NOT":
            self.take(3)
            return Not(self.part(depth + 1, "NOT"))
        if self.text[self.at] == "-" and not run.startswith("--"):
            self.at += 1
            if self.at < len(self.text) and self.text[self.at].isspace():
                self.fail("a search term is missing right after -")
            return Not(self.part(depth + 1, "-"))
        return self.group(depth) if self.text[self.at] == "(" else self.term(run)

    def group(self, depth: int) -> Query:
        opened = self.at
        self.take(1)
        inner = self.query(depth + 1)
        if self.at == len(self.text):
            self.fail("this parenthesis is never closed", opened)
        self.take(1)
        return inner

    def term(self, run: str) -> Query:
        if run == "*":
            self.take(1)
            return Every()
        if self.text[self.at] == '"':
            start = self.at
            quoted = self.quoted()
            if not self.text.startswith(":", self.at):
                self.skip()
                return self.checked(Phrase(quoted), start)
            self.at += 1
            return self.value(quoted, start)
        named = NAME.match(self.text, self.at)
        if named:
            start = self.at
            self.at = named.end()
            return self.value(named.group(1), start)
        return self.word("")

    def value(self, name: str, start: int) -> Query:
        """Parse the value after `name:`, which began at `start`."""
        if not attribute(name):
            self.fail("a name is missing before the colon", start)
        if self.ended() or self.text[self.at].isspace() or self.text.startswith(("(", ":", "//"), self.at):
            self.fail(f"right after {name[:40]}: a word, a phrase or * is expected")
        if self.text[self.at] == '"':
            begun = self.at
            phrase = Phrase(self.quoted(), name)
            self.skip()
            return self.checked(phrase, begun)
        if self.peek() == "*":
            self.take(1)
            return Exists(name)
        return self.word(name)

    def word(self, name: str) -> Query:
        run, start = self.peek(), self.at
        self.take(len(run))
        if "*" in run and attribute(name) not in WHOLE:
            self.fail("* is only allowed alone or right after a name and its colon", start + run.index("*"))
        return self.checked(Word(run, name), start)

    def checked(self, term: Word | Phrase, start: int) -> Query:
        if not (term.text.strip() if attribute(term.attribute) in WHOLE else words(term.text)):
            self.fail("a search term needs a letter or a digit", start)
        return term

    def quoted(self) -> str:
        found = _QUOTED.match(self.text, self.at)
        if not found:
            self.fail("this quote is never closed")
        self.at = found.end()
        return _ESCAPE.sub(r"\1", found.group(1))
