"""Parser of Glimpse's own patterns (manual of Glimpse 4, "PATTERNS" and "STRUCTURED QUERIES") into the query tree.

    query    = { "-" options } expr
    expr     = operand { ";" operand } | operand { "," operand }        ; is AND, `,` is OR
    operand  = "~" operand | "{" expr "}" | name ( "=" | " : " ) operand | pattern
    options  = "i" (ignore case) | "w" (whole words) | "W" (no effect) | "1" to "3" (errors)

In a pattern `#` stands for any number of any characters, `.` for one, `[a-z]` and `[^a-z]` for one of a class, `^` and `$` for the
ends; `|`, `*` and parentheses are those of regular expressions, `<…>` has no errors, and a backslash makes any sign a character.

Laws:
- Any input yields a tree or a QueryError with the position.
- The scope is the document (Glimpse: the line), and `^` and `$` are the ends of a value. `#` stays within a word where a pattern
  has letters only.
- A pattern is found inside words, too, as by Glimpse; with -w only as whole words. Only with -w is case compared, unless -i is
  given or `case` is False: what is found inside words is found in any case.
- With errors and without -w, found is what has the pattern inside a word, or a word that is the pattern with errors.
"""

from __future__ import annotations

import math
import re
from itertools import combinations_with_replacement
from typing import NamedTuple

from processors.query import terms
from processors.query.limits import Budget, check_depth, check_length
from processors.query.mistakes import QueryError
from processors.query.words import attribute as known
from schemas.query import WHOLE, And, Not, Or, Phrase, Query, Verbatim, Wildcard

MAX_VARIANTS = 150
"""Maximum number of ways to put errors into the inexact part of a pattern with `<exact>` parts."""

_OPTION = re.compile(r"-(\S*)\s*")
_NAMED = re.compile(r"([^\W_][\w.-]*)(?:\s*=|\s*:\s+|\s+:)")
_BLANKS = re.compile(r"\s*")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_SPECIAL = re.compile(r"[\\.\[\](){}|*+?^$]")

LETTER, ANY, ONE, CLASS, SIGN, ANCHOR = "letter", "any", "one", "class", "sign", "anchor"


class _Atom(NamedTuple):
    """Part of a pattern."""

    kind: str
    text: str
    exact: bool = False


def parse_glimpse(text: str, *, case: bool = True) -> Query:
    """Return the tree of a pattern of Glimpse; `case`: compare case with -w unless -i is given. Raises QueryError."""
    check_length(text)
    parser = _Glimpse(text, case=case)
    parser.options()
    tree = parser.expression("", 0)
    if parser.at < len(text):
        raise QueryError("this } has no opening {", parser.at)
    return tree


class _Glimpse:
    """Recursive-descent parser over one text."""

    def __init__(self, text: str, *, case: bool) -> None:
        self.text = text
        self.at = 0
        self.case = case
        self.whole_words = False
        self.errors = 0
        self.budget = Budget()

    def skip(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def following(self) -> str:
        return self.text[self.at : self.at + 1]

    def options(self) -> None:
        self.skip()
        while found := _OPTION.match(self.text, self.at):
            for at, sign in enumerate(found[1], self.at + 1):
                self.option(sign, at)
            if not found[1]:
                raise QueryError("an option is missing after -", self.at, "\\-")
            self.at = found.end()

    def option(self, sign: str, at: int) -> None:
        if sign in "123":
            self.errors = int(sign)
        elif sign.isdecimal():
            raise QueryError("a pattern can have 1 to 3 errors", at, "-3")
        elif sign == "w":
            self.whole_words = True
        elif sign == "i":
            self.case = False
        elif sign != "W":
            raise QueryError("the options are -i, -w, -W and -1 to -3; a pattern that begins with - is written \\-", at)

    def expression(self, name: str, depth: int) -> Query:
        parts, between = [self.operand(name, depth)], self.following()
        while (sign := self.following()) and sign in ";,":
            if sign != between:
                raise QueryError("where ; and , are mixed, { } must tell what belongs together", self.at, "{a,b};c")
            self.at += 1
            parts.append(self.operand(name, depth))
        if len(parts) == 1:
            return parts[0]
        return And(tuple(parts)) if between == ";" else Or(tuple(parts))

    def operand(self, name: str, depth: int) -> Query:
        check_depth(depth, self.at)
        self.skip()
        sign = self.following()
        if sign == "~":
            self.at += 1
            return Not(self.operand(name, depth + 1))
        if sign == "{":
            return self.group(name, depth)
        named = _NAMED.match(self.text, self.at)
        if named:
            self.at = named.end()
            return self.operand(named[1], depth + 1)
        return self.pattern(name)

    def group(self, name: str, depth: int) -> Query:
        opened = self.at
        self.at += 1
        inner = self.expression(name, depth + 1)
        if self.following() != "}":
            raise QueryError("this { is never closed", opened)
        self.at += 1
        self.skip()
        if self.following() not in ("", ";", ",", "}"):
            raise QueryError("; or , is expected after }", self.at)
        return inner

    def pattern(self, name: str) -> Query:
        start = self.at
        atoms = self.atoms()
        if not atoms:
            raise QueryError("a pattern is missing", start)
        return _Pattern(self, atoms, name, start).node()

    def atoms(self) -> list[_Atom]:
        """Parse the parts of a pattern, without blanks at its end."""
        found: list[_Atom] = []
        opened: int | None = None
        while (sign := self.following()) and sign not in ";,{}":
            if sign in "<>":
                if (sign == "<") == (opened is not None):
                    raise QueryError(f"this {sign} has no partner; the sign itself is written \\{sign}", self.at)
                opened = self.at if sign == "<" else None
                self.at += 1
            else:
                found.append(self.atom(sign, exact=opened is not None))
        if opened is not None:
            raise QueryError("this < is never closed; the sign itself is written \\<", opened)
        while found and found[-1].kind == LETTER and found[-1].text.isspace():
            found.pop()
        return found

    def atom(self, sign: str, *, exact: bool) -> _Atom:
        if sign == "[":
            found = _CLASS.match(self.text, self.at)
            if not found:
                raise QueryError("this [ is never closed", self.at)
            self.at = found.end()
            return _Atom(CLASS, found.group(), exact)
        escaped = sign == "\\"
        if escaped:
            sign = self.text[self.at + 1 : self.at + 2]
            if not sign:
                raise QueryError("a character is missing after \\", self.at)
        self.at += 1 + escaped
        kinds = {"#": ANY, ".": ONE, "^": ANCHOR, "$": ANCHOR, "|": SIGN, "*": SIGN, "(": SIGN, ")": SIGN}
        return _Atom(LETTER if escaped else kinds.get(sign, LETTER), sign, exact)


class _Pattern:
    """One pattern, and the options for it."""

    def __init__(self, parser: _Glimpse, atoms: list[_Atom], name: str, at: int) -> None:
        self.parser = parser
        self.atoms = atoms
        self.kinds = {atom.kind for atom in atoms}
        self.name = name
        self.at = at
        self.letters = "".join(atom.text for atom in atoms if atom.kind == LETTER)
        """The literal characters."""
        self.is_plain = self.kinds == {LETTER}

    def counted(self, term: Query) -> Query:
        return self.parser.budget.count(term, self.at)

    def node(self) -> Query:
        inexact = any(not atom.exact for atom in self.atoms)
        if known(self.name) in WHOLE:
            if not self.is_plain or (self.parser.errors and inexact):
                raise QueryError(f"{self.name[:40]} is compared whole, without patterns or errors", self.at)
            return self.counted(terms.checked(Phrase(self.letters, self.name), self.at))
        if self.parser.errors and inexact:
            return self.approximate()
        if self.is_plain and self.parser.whole_words:
            kind = Verbatim if self.parser.case else Phrase
            return self.counted(terms.checked(kind(self.letters, self.name), self.at))
        if self.kinds <= {LETTER, ANY, ONE} and terms.is_single(self.letters or "x"):
            return self.wildcard()
        return self.expression()

    def wildcard(self) -> Query:
        text = "".join({ANY: "*", ONE: "?"}.get(atom.kind, atom.text) for atom in self.atoms)
        if not self.parser.whole_words:
            text = f"*{text}*"
        found = terms.wildcard(re.sub(r"\*+", "*", text), self.name, self.at)
        if not isinstance(found, Wildcard):
            raise QueryError("a pattern needs at least two letters or digits", self.at)
        return self.counted(found)

    def expression(self) -> Query:
        """Return a regular expression; where it is more than a word, it is looked for anywhere in a value."""
        if not self.letters and CLASS not in self.kinds:
            raise QueryError("a pattern needs at least two letters or digits", self.at)
        text = "".join(_written(atom) for atom in self.atoms)
        anywhere = ANCHOR in self.kinds or any(c.isspace() for c in self.letters)
        of_word = not self.letters or terms.is_single(self.letters)
        if self.parser.whole_words and (anywhere or not of_word):
            raise QueryError("-w takes words, or a regular expression of one word", self.at)
        if not anywhere and not self.parser.whole_words:
            grouped = f"({text})" if any(atom.kind == SIGN and atom.text == "|" for atom in self.atoms) else text
            text = f".*{grouped}.*" if of_word else text  # with a sign in it, it is looked for anywhere in any case
        # Right after the slash of the query language no blank can be.
        return self.checked(f"[{text[0]}]{text[1:]}" if text[:1].isspace() else text)

    def checked(self, text: str) -> Query:
        try:
            return self.counted(terms.expression(text, self.name, self.at))
        except QueryError as error:
            raise QueryError(error.message, self.at) from error

    def approximate(self) -> Query:
        """Return the node of a pattern with errors."""
        if not self.is_plain:
            raise QueryError("errors go with letters only, not with # . [ ] ^ $ | * ( )", self.at)
        if not terms.is_single(self.letters):
            raise QueryError("only a single word can have errors", self.at, f"<{self.letters}>")
        if any(atom.exact for atom in self.atoms):
            return self.partly_exact()
        found = self.counted(terms.fuzzy(self.letters, self.parser.errors, self.name, self.at))
        return found if self.parser.whole_words else Or((self.wildcard(), found))

    def partly_exact(self) -> Query:
        """Return a regular expression with all ways to put the errors into the part that is not exact.

        A `.?` instead of a character is one more or one less or another, a `.?` before or after it is one more.
        """
        slots = [(at, instead) for at, atom in enumerate(self.atoms) if not atom.exact for instead in (False, True)]
        slots += [(at + 1, False) for at, atom in enumerate(self.atoms) if not atom.exact and (at + 1, False) not in slots]
        if math.comb(len(slots) + self.parser.errors - 1, self.parser.errors) > MAX_VARIANTS:
            raise QueryError("too many errors for so long an inexact part", self.at)
        variants = dict.fromkeys(map(self.variant, combinations_with_replacement(slots, self.parser.errors)))
        before, after = slots[0][0], max(at for at, instead in slots if instead) + 1
        text = f"{self.exact(0, before)}({'|'.join(variants)}){self.exact(after, len(self.atoms))}"
        return self.checked(text if self.parser.whole_words else f".*{text}.*")

    def exact(self, start: int, end: int) -> str:
        return "".join(map(_written, self.atoms[start:end]))

    def variant(self, errors: tuple[tuple[int, bool], ...]) -> str:
        """Return the part from the first to the last inexact character with some errors."""
        inexact = [at for at, atom in enumerate(self.atoms) if not atom.exact]
        made = []
        for at, atom in enumerate(self.atoms[inexact[0] : inexact[-1] + 1], inexact[0]):
            made.append(".?" * errors.count((at, False)))
            made.append(".?" if (at, True) in errors else _written(atom))
        made.append(".?" * errors.count((inexact[-1] + 1, False)))
        return "".join(made)


def _written(atom: _Atom) -> str:
    """Return a part of a pattern as a regular expression."""
    if atom.kind == ANY:
        return ".*"
    return _SPECIAL.sub(r"\\\g<0>", atom.text) if atom.kind == LETTER else atom.text
