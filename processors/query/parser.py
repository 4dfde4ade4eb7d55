"""Parser of the query language, from text to tree (the tree is `schemas.query`).

    query     = either { "OR" either }
    either    = part { [ "AND" ] part }
    part      = { "NOT" | "-" } term
    term      = "(" query ")" | "*" | near | [ name ":" ] value | name ":" "*" | special ":" ( run | phrase )
    near      = run "NEAR" [ "/" digits ] run { "NEAR" [ "/" digits ] run }
    value     = run | phrase [ "~" digits ] | "=" phrase | "==" phrase | "/" expression "/"
    name      = word without ":" | phrase
    special   = "site" | "in" | "view" | "before" | "after" | "during"

What a run (word, wildcard, errors, range, ...) is, `terms.py` decides. Blanks around the colon of a plain name are allowed:
`Title : windsurfing`. Three or more words without AND between the parts are Most, all other chains And.

Laws:
- Any input yields a tree or a QueryError with the position; no other error is raised. (`lenient.py` raises none.)
- AND, OR, NOT and NEAR are operators in capitals only; quotes make any of them a word.
- `parse(unparse(tree)) == tree` for every tree that `parse` returned.
- A term without letter or digit cannot match. Signs alone between blanks are left out (`wings ?`, a last `.`), as are question
  marks behind the last word of three or more; any other such term is refused: a query never silently means less than was typed.
"""

from __future__ import annotations

import re
from typing import NoReturn

from processors.query import terms
from processors.query.bounds import document_date
from processors.query.definitions import Views, written_out
from processors.query.limits import MAX_DEPTH, MAX_LENGTH, Budget, check_depth, check_length
from processors.query.mistakes import QueryError
from processors.query.terms import NAME, NEAR, OPERATORS, REGEX, RUN, SPECIAL
from processors.query.words import attribute, words
from schemas.query import WHOLE, And, Every, Exists, Most, Not, Or, Phrase, Query, Verbatim, Word

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "QueryError", "parse"]

BARE_WORDS = 3
"""Number of words from which a chain of terms is Most."""

NOTHING = Or(())
"""What is left of a query in which nothing can be looked for."""

_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPACED_NAME = re.compile(r"([^\W_][\w.-]*)\s+:\s+(?=[^\s)])(?!(?:AND|OR|NOT)(?:\s|\Z))")
_QUESTION = re.compile(r"([^\W_]+)\?+\s*\Z")
_DISTANCE = re.compile(r'~([^\s"()]*)')


def parse(text: str, views: Views | None = None) -> Query:
    """Return the tree of a query; `view:PATH` is written out as what `views` has for it. Raises QueryError."""
    check_length(text)
    return Parser(text, views).whole()


def is_bare(node: Query) -> bool:
    """Return whether a node is a Word without an attribute."""
    return isinstance(node, Word) and not node.attribute


class Parser:
    """Recursive-descent parser over one text; `at` is always past any white space and lone signs."""

    def __init__(self, text: str, views: Views | None = None) -> None:
        self.text = text
        self.views = views
        self.at = 0
        self.opened = 0
        self.signs: int | None = None
        """Position of the signs that were left out right before `at`."""
        self.scopes: list[Query] = []
        """What views were written out as: no word of a chain stands in for them, so that they are never among those of Most."""
        self.budget = Budget()

    def fail(self, message: str, position: int | None = None, proposal: str = "") -> NoReturn:
        raise QueryError(message, self.at if position is None else position, proposal)

    def complain(self, message: str, position: int, proposal: str = "") -> None:
        """Report a mistake after which the parser could go on."""
        self.fail(message, position, proposal)

    def skip(self) -> None:
        """Go past white space and signs between blanks."""
        self.signs = None
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            run = self.peek()
            if not run or not terms.is_signs(run) or REGEX.match(self.text, self.at):
                return
            if self.text[self.at + len(run) : self.at + len(run) + 1] in ('"', "("):
                return
            self.signs = self.at
            self.at += len(run)

    def peek(self) -> str:
        """Return the characters up to the next white space, quote or parenthesis; "" if one of these is next."""
        found = RUN.match(self.text, self.at)
        return found.group() if found else ""

    def take(self, count: int) -> None:
        self.at += count
        self.skip()

    def ended(self) -> bool:
        return self.at == len(self.text) or self.text[self.at] == ")"

    def whole(self) -> Query:
        self.skip()
        if self.at == len(self.text) and self.signs is None:
            return self.empty()
        tree = self.query(0)
        if self.at < len(self.text):
            self.complain("this parenthesis has no opening one", self.at)
        return tree

    def empty(self) -> Query:
        self.fail("the query is empty", 0)

    def query(self, depth: int) -> Query:
        parts = [self.either(depth)]
        while self.peek() == "OR":
            self.take(2)
            parts.append(self.either(depth, "OR"))
        parts = [part for part in parts if part is not NOTHING]
        return Or(tuple(parts)) if len(parts) > 1 else parts[0] if parts else NOTHING

    def either(self, depth: int, after: str = "") -> Query:
        parts = [self.part(depth, after)]
        explicit = False
        while not self.ended() and self.peek() != "OR":
            joined = self.peek() == "AND"
            self.take(3 if joined else 0)
            explicit |= joined
            asked = None if explicit else self.question(parts)
            parts.append(asked or self.part(depth, "AND" if joined else ""))
        parts = [part for part in parts if part is not NOTHING]
        if len(parts) < 2:
            return parts[0] if parts else NOTHING
        scopes = [part for part in parts if any(part is scope for scope in self.scopes)]
        rest = [part for part in parts if not any(part is scope for scope in scopes)]
        if explicit or sum(map(is_bare, rest)) < BARE_WORDS:
            return And(tuple(parts))
        return And((*scopes, Most(tuple(rest)))) if scopes else Most(tuple(parts))

    def question(self, before: list[Query]) -> Query | None:
        """Parse the last word of a question: the question mark behind it is no wildcard."""
        found = _QUESTION.match(self.text, self.at)
        if not found or sum(map(is_bare, before)) < BARE_WORDS - 1 or found[1] in (*OPERATORS, "NEAR") or self.budget.is_spent():
            return None
        start, self.at = self.at, len(self.text)
        return self.budget.count(Word(found[1]), start)

    def part(self, depth: int, after: str = "") -> Query:
        check_depth(depth, self.at)
        run = self.peek()
        if self.ended() or run in ("AND", "OR"):
            self.missing(run, after)
        if run == "NOT":
            self.take(3)
            return self.denied(self.part(depth + 1, "NOT"))
        if self.text[self.at] == "-" and not run.startswith("--"):
            self.at += 1
            if self.at < len(self.text) and self.text[self.at].isspace():
                self.fail("a search term is missing right after -")
            return self.denied(self.part(depth + 1, "-"))
        if self.text[self.at] == "(":
            return self.group(depth)
        start = self.at
        return self.budget.count(self.term(run), start)

    def missing(self, run: str, after: str) -> NoReturn:
        if self.signs is not None:
            self.fail("a search term needs a letter or a digit", self.signs)
        if self.ended():
            self.fail(f"a search term is missing after {after}" if after else "a search term is missing")
        self.fail(f"a search term is missing before {run}")

    @staticmethod
    def denied(part: Query) -> Query:
        return part if part is NOTHING else Not(part)

    def group(self, depth: int) -> Query:
        opened = self.at
        self.opened += 1
        self.take(1)
        inner = self.query(depth + 1)
        self.opened -= 1
        if self.at == len(self.text):
            self.complain("this parenthesis is never closed", opened, f"{self.text[opened:].strip()})")
        else:
            self.take(1)
        return inner

    def term(self, run: str) -> Query:
        start = self.at
        if run == "*":
            self.take(1)
            return Every()
        if self.text[start] == '"':
            quoted = self.quoted()
            if not self.text.startswith(":", self.at):
                return self.phrase(quoted, "", start)
            self.at += 1
            return self.value(quoted, start)
        if NEAR.fullmatch(run):
            self.fail("NEAR needs a single word before it")
        if run.startswith("=") or REGEX.match(self.text, start):
            return self.pattern("", run)
        named = NAME.match(self.text, start) or _SPACED_NAME.match(self.text, start)
        if named:
            self.at = named.end()
            special = attribute(named[1])
            return self.special(special) if special in SPECIAL else self.value(named[1], start)
        return self.pattern("", run)

    def value(self, name: str, start: int) -> Query:
        """Parse the value after `name:`, which began at `start`."""
        if not attribute(name):
            self.fail("a name is missing before the colon", start)
        if self.ended() or self.text[self.at].isspace() or self.text.startswith(("(", ":", "//"), self.at):
            self.fail(f"right after {name[:40]}: a word, a phrase or * is expected", None, self.closed_up(start))
        if self.text[self.at] == '"':
            begun = self.at
            return self.phrase(self.quoted(), name, begun)
        run = self.peek()
        if run == "*":
            self.take(1)
            return Exists(name)
        return self.pattern(name, run)

    def closed_up(self, start: int) -> str:
        """Return a name and its value without the blanks between, "" if a value does not follow."""
        following = RUN.match(self.text, self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip()))
        return self.text[start : self.at] + following.group() if following and words(following.group()) else ""

    def special(self, special: str) -> Query:
        """Parse the value after `site:`, `in:`, `before:`, `after:` or `during:`."""
        start, run = self.at, self.peek()
        quoted = self.text[start : start + 1] == '"'
        if not run and not quoted:
            self.fail(f"a value is missing after {special} and its colon", None, self.closed_up(start - len(special) - 1))
        text = self.quoted() if quoted else run
        self.take(0 if quoted else len(run))
        if special == "view":
            self.scopes.append(written_out(self.views, text, start))
            return self.scopes[-1]
        if special in ("before", "after", "during"):
            return document_date(special, text, start)
        return terms.read_place(special, text, start, quoted=quoted)

    def pattern(self, name: str, run: str) -> Query:
        """Parse an unquoted value, a regular expression or a quoted value behind =."""
        start = self.at
        whole = attribute(name) in WHOLE
        found = None if whole else REGEX.match(self.text, start)
        if found:
            self.take(len(found.group()))
            return terms.read_expression(found[1], name, start)
        if run in ("=", "==") and self.text.startswith(f'{run}"', start):
            self.at += len(run)
            quoted = self.quoted()
            self.skip()
            if whole:
                self.fail(f"{name[:40]} is compared whole, without {run}", start)
            if run == "==" and name:
                return terms.read_whole(quoted, name, start + 2)
            if run == "==":
                self.fail("== needs the name of an attribute before it", start, f'="{quoted}"' if words(quoted) else "")
            return terms.checked(Verbatim(quoted, name), start + 1)
        self.take(len(run))
        term = terms.read_run(run, name, start)
        return self.near(term, start) if NEAR.fullmatch(self.peek()) else term

    def near(self, first: Query, start: int) -> Query:
        """Parse what follows the first word of `white NEAR/5 whale`."""
        found, distance = self.near_word(first, start), ""
        while near := NEAR.fullmatch(self.peek()):
            begun = self.at
            self.take(len(near.group()))
            asked = str(terms.DISTANCE) if near[1] is None else near[1]
            if distance not in ("", asked):
                self.fail("a chain of NEAR has one distance", begun, f"NEAR/{distance}")
            distance, at, run = asked, self.at, self.peek()
            if not run or run in OPERATORS or NEAR.fullmatch(run):
                self.fail("NEAR needs a single word after it")
            self.take(len(run))
            found += self.near_word(Word(run) if NAME.match(run) else terms.read_run(run, "", at), at)
        return terms.read_near(found, distance, "", start)

    def near_word(self, term: Query, at: int) -> tuple[str, ...]:
        """Return the word of a term of NEAR."""
        found = terms.near_words(term.text) if isinstance(term, Word) and is_bare(term) and not NAME.match(term.text) else ()
        if len(found) != 1:
            self.fail("NEAR stands between single words", at, f'"white whale"~{terms.DISTANCE}' if isinstance(term, Phrase) else "")
        return found

    def phrase(self, quoted: str, name: str, start: int) -> Query:
        """Return the node of a quoted text and the distance behind it."""
        near = _DISTANCE.match(self.text, self.at)
        self.take(len(near.group()) if near else 0)
        if near:
            return terms.read_near(terms.near_words(quoted), near[1], name, start)
        return terms.checked(Phrase(quoted, name), start)

    def quoted(self) -> str:
        found = _QUOTED.match(self.text, self.at)
        start, rest = self.at, self.text[self.at + 1 :]
        self.at = found.end() if found else len(self.text)
        if not found:
            shown = rest.strip()
            self.complain("this quote is never closed", start, f'"{shown}"' if words(shown) and '"' not in shown else "")
        return _ESCAPE.sub(r"\1", found.group(1) if found else rest)
