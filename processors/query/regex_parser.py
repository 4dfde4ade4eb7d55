r"""Parser of regular expressions, from text to nodes (`processors/query/regex_tree.py`).

    whole      = [ "^" ] row [ "$" ] { "|" [ "^" ] row [ "$" ] }
    either     = row { "|" row }
    row        = { atom [ repetition ] }
    atom       = character | "." | class | "\" sign | "\d" | "\w" | "\s" | "\D" | "\W" | "\S" | "(" either ")"
    class      = "[" [ "^" ] { character [ "-" character ] | "\" sign | "\d" | "\w" | "\s" | "\D" | "\S" } "]"
    repetition = "*" | "+" | "?" | "{" low [ "," [ high ] ] "}"

Laws:
- Any text yields nodes or a RegexError with the position; no other error is raised.
- Literal text is folded with its neighbours, since the text under test is folded as a whole; a repetition is of one character
  together with its combining marks. White space is one blank.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NoReturn

from processors.query.regex_tree import (
    ANY,
    SURROGATES,
    Chars,
    Edge,
    Either,
    Node,
    Ranges,
    Text,
    complement,
    folded,
    merged,
    repeat,
    row,
    size,
)
from processors.query.words import fold, kind

MAX_LENGTH = 200
"""Maximum length of an expression in characters."""
MAX_REPEAT = 20
"""Maximum number in a repetition."""
MAX_SIZE = 1_000
"""Maximum number of characters and classes when repetitions are written out."""
FEW = 100
"""Maximum number of characters of a class that are looked at one by one."""

_BLANK = ((0x20, 0x20),)
_DIGITS = ((0x30, 0x39),)
_CLASSES = {
    "d": Chars(_DIGITS),
    "D": Chars(_DIGITS, negated=True),
    "w": Chars((), word=True),
    "W": Chars((), negated=True, word=True),
    "s": Chars(_BLANK),
    "S": Chars(_BLANK, negated=True),
}
_COUNTS = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_SIMPLE = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_UNKNOWN = {
    **dict.fromkeys("bBAzZ", r"\{} is not known: a word is matched as a whole; ^ and $ are the ends of a value"),
    **dict.fromkeys("123456789", r"back references such as \{} are not possible: they take too long"),
    **dict.fromkeys("pP", r"\{} is not known: write the letters as a class, such as [a-zà-ÿ]"),
    **dict.fromkeys("xuUN", r"\{} is not known: write the character itself"),
}
_GROUPS = (
    (("(?=", "(?!", "(?<=", "(?<!"), "look-around is not possible: use two terms, or NOT"),
    (("(?P=",), "back references are not possible: they take too long"),
    (("(?P<", "(?<"), "names of groups are not known: write ( )"),
    (("(?",), "flags are not known: case never matters; for a question mark write \\?"),
)


class RegexError(ValueError):
    """Syntax error in a regular expression: `message` says what is wrong, `position` where (in code points, from 0)."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def parse_nodes(text: str) -> tuple[Node, bool]:
    """Return the nodes of an expression, and whether it is one of values instead of words. Raises RegexError."""
    if len(text) > MAX_LENGTH:
        raise RegexError(f"the regular expression is longer than {MAX_LENGTH} characters", MAX_LENGTH)
    for at, char in enumerate(text):
        if SURROGATES[0] <= ord(char) <= SURROGATES[1]:
            raise RegexError("this is no character", at)
    if not text:
        raise RegexError("the regular expression is empty", 0)
    parser = _Parser(text)
    node = parser.whole()
    if parser.at < len(text):
        parser.fail("this parenthesis has no opening one; for the sign itself write \\)")
    return node, parser.of_values


class _Parser:
    """Recursive-descent parser over one text; `of_values` becomes true when something is asked for that no word has."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.of_values = False

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise RegexError(message, self.at if position is None else position)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def took(self, char: str) -> bool:
        found = self.peek() == char
        self.at += found
        return found

    def whole(self) -> Node:
        parts = [self.anchored()]
        while self.took("|"):
            parts.append(self.anchored())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def anchored(self) -> Node:
        start = [Edge(start=True)] if self.took("^") else []
        inner = self.row(top=True)
        end = [Edge(start=False)] if self.took("$") else []
        self.of_values |= bool(start or end)
        if end and self.peek() not in ("", "|"):
            self.fail("$ is possible only at the end of the expression; for the sign itself write \\$", self.at - 1)
        return row([*start, inner, *end])

    def either(self) -> Node:
        parts = [self.row()]
        while self.took("|"):
            parts.append(self.row())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def row(self, *, top: bool = False) -> Node:
        parts: list[Node] = []
        literal = ""
        while (char := self.peek()) not in ("", "|", ")") and not (top and char == "$"):
            start = self.at
            atom = self.atom(char)
            counts = self.repetition()
            if isinstance(atom, str) and counts is None:
                literal += atom
                continue
            parts += [self.literal(literal), self.repeated(atom, counts, start)]
            literal = ""
        return row([*parts, self.literal(literal)])

    def repeated(self, atom: Node | str, counts: tuple[int, int | None] | None, start: int) -> Node:
        node = self.literal(atom) if isinstance(atom, str) else atom
        made = node if counts is None else repeat(node, *counts)
        if size(made) > MAX_SIZE:
            self.fail(f"these repetitions multiply to more than {MAX_SIZE:,} characters", start)
        return made

    def literal(self, text: str) -> Text:
        """Return literal text, folded and without invisible characters."""
        kinds = [(char, kind(ord(char))) for char in fold(text)]
        self.of_values |= any(found in (" ", "c") for _, found in kinds)
        return Text("".join(char for char, found in kinds if found))

    def atom(self, char: str) -> Node | str:
        """Parse what a repetition can follow; literal text is returned as it is, because it is folded with its neighbours."""
        if char == "(":
            return self.group()
        if char == "[":
            return self.chars()
        if char in "*+?{":
            self.fail(f"there is nothing before {char} to repeat; for the sign itself write \\{char}")
        if char in "^$":
            self.fail(f"{char} is possible only at an end of the expression; for the sign itself write \\{char}")
        if char == "\\":
            return self.escape()
        self.at += 1
        return ANY if char == "." else self.character(char)

    def character(self, char: str) -> str:
        """Take the rest of a literal character: further white space, or combining marks."""
        if char.isspace():
            while self.peek().isspace():
                self.at += 1
            return " "
        start = self.at
        while self.peek() and unicodedata.combining(self.peek()):
            self.at += 1
        return char + self.text[start : self.at]

    def escape(self) -> Node | str:
        start = self.at
        self.at += 2
        char = self.text[start + 1 : self.at]
        if char in _CLASSES and char:
            self.of_values |= char in "sW"
            return _CLASSES[char]
        return self.character(self.escaped(char, start))

    def escaped(self, char: str, start: int) -> str:
        if not char:
            self.fail("a character is missing after the backslash; for the sign itself write \\\\", start)
        if char in "tnrfv":
            return " "
        if char.isalnum():
            self.fail(_UNKNOWN.get(char, "\\{} is not known: only signs are escaped").format(char), start)
        return char

    def group(self) -> Node:
        start = self.at
        self.at += 1
        if self.text.startswith("?:", self.at):
            self.at += 2
        for openings, message in _GROUPS:
            if self.text.startswith(openings, start) and self.at == start + 1:
                self.fail(message, start)
        node = self.either()
        if not self.took(")"):
            self.fail("this parenthesis is never closed; for the sign itself write \\(", start)
        return node

    def repetition(self) -> tuple[int, int | None] | None:
        start = self.at
        char = self.peek()
        if char not in ("*", "+", "?", "{"):
            return None
        self.at += 1
        counts = self.counts(start) if char == "{" else _SIMPLE[char]
        following = self.peek()
        if following == "?":
            self.fail("repetitions that take as little as possible are not known, and find the same: leave out the ?")
        if following and following in "*+{":
            self.fail(f"{following} follows another repetition: put that in parentheses")
        return counts

    def counts(self, start: int) -> tuple[int, int | None]:
        found = _COUNTS.match(self.text, start)
        if not found:
            self.fail("numbers are expected, such as {2} {2,} or {2,5}; for the sign itself write \\{", start)
        self.at = found.end()
        low = int(found[1])
        high = int(found[3]) if found[3] else None if found[2] else low
        if max(low, high or 0) > MAX_REPEAT:
            self.fail(f"a repetition is limited to {MAX_REPEAT}", start)
        if high is not None and high < low:
            self.fail("the first number is greater than the second", start)
        return low, high

    def chars(self) -> Node:
        """Parse a class. A member that folds to several characters becomes an alternative beside the class."""
        start = self.at
        self.at += 1
        negated = self.took("^")
        ranges: list[tuple[int, int]] = []
        texts: list[str] = []
        word = False
        while not self.took("]"):
            if not self.peek():
                self.fail("this class is never closed; for the sign itself write \\[", start)
            begun = self.at
            low = self.member(negated=negated)
            if isinstance(low, Chars):
                word |= low.word
                ranges += complement(low.ranges) if low.negated else low.ranges
                continue
            high = self.range_end(low, begun)
            ranges += folded(ord(low), ord(high))
            if low == high and len(several := fold(low)) > 1:
                texts.append(several)
        made = Chars(merged(ranges), negated, word)
        if not (made.ranges or word) or (negated and made.ranges == ANY.ranges):
            self.fail("no character is in this class", start)
        self.of_values |= word if negated else not word and _is_signs(made.ranges)
        return Either((made, *map(Text, texts))) if texts and not negated else made

    def range_end(self, low: str, begun: int) -> str:
        start = self.at
        if self.peek() != "-" or self.text[start + 1 : start + 2] in ("]", ""):
            return low
        self.at += 1
        high = self.member(negated=True)
        if isinstance(high, Chars):
            self.fail("a range ends with a character", start + 1)
        if high < low:
            self.fail(f"this range is empty: {high} comes before {low}", begun)
        return high

    def member(self, *, negated: bool) -> Chars | str:
        r"""Parse a character or a class such as `\d` within a class."""
        start, char = self.at, self.peek()
        self.at += 1
        if char == "[" and self.peek() in (":", ".", "="):
            self.fail("classes such as [:alpha:] are not known: write [a-z]", start)
        if char == "\\":
            char = self.peek()
            self.at += 1
            if char == "W":
                self.fail("\\W is not possible in a class: write [^\\w]", start)
            if char and char in _CLASSES:
                self.of_values |= char == "s" and not negated
                return _CLASSES[char]
            char = self.escaped(char, start)
        if char.isspace():
            self.of_values |= not negated
            return " "
        return char


def _is_signs(ranges: Ranges) -> bool:
    """Return whether a small set has only characters that separate words."""
    few = sum(high - low + 1 for low, high in ranges) <= FEW
    return few and all(kind(code) == " " for low, high in ranges for code in range(low, high + 1))
