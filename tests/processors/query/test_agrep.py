"""Patterns of Glimpse find the same values as agrep of Glimpse 4.18, the program of 1994, wherever both mean the same.

Left out, since agrep means something else there (each difference was found by running it):
- Errors with case compared: agrep counts a letter of another case as an error, our words with errors have no case. Here, such
  patterns have -i.
- Errors without -w: agrep finds whatever has the pattern with errors within it, ours only whole words with errors (and what has the
  pattern itself within it), so all that ours find is found by agrep. Without -w and -i agrep misses some words with two errors.
- Errors may turn a blank into a letter for agrep (`wh ale` is `whale` with one error), words are separate for ours. Values have
  more signs between two words than there are errors.
- `#` and `.` may be blanks for agrep, and `[^a]` also the end of a line. Values for them are single words, and no pattern for parts
  of words begins or ends with such a class.
- In `<exact>` parts agrep prevents no insertions (its manual: "This option is buggy at the moment"). Both must agree about
  words that are too short for an insertion; all that ours find is found by agrep.
- Patterns of `;` and errors: agrep finds values that lack one of the words. (glimpse does not: tests/sinks/index/test_glimpse.py.)
- agrep has no -w with `|`, `*` and `()`, no patterns of more than 32 characters, no braces, and no characters but bytes.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from processors.query import parse_glimpse, predicate
from schemas.records import Summary

NAMES = ("harvest", "gatherer", "broker", "Whale", "leviathan", "concordance", "archive", "Windsurfing", "science", "essence")
SEPARATORS = ("    ", " -- ", ", ; ", "\t/\t ", " (_) ")
"""Each of at least four signs."""
LONGEST = 30
"""Characters of a pattern at most."""


def misspelled(chance: random.Random, word: str, errors: int) -> str:
    """Return a word with letters inserted, deleted and replaced."""
    letters = list(word)
    for _ in range(errors):
        at = chance.randrange(len(letters))
        letters[at : at + chance.randrange(2)] = chance.choice(("", "a", "E", "s", "x"))
    return "".join(letters)


def vocabulary() -> list[str]:
    """Return the names, as they are and with up to five errors, and words that have them within."""
    chance = random.Random(1994)
    made = [misspelled(chance, word, errors) for word in NAMES for errors in (0, 1, 1, 2, 2, 3, 3, 4, 5) for _ in range(3)]
    made += [chance.choice(("un", "Re", "e2")) + word + chance.choice(("", "s", "ES", "4")) for word in made[::4]]
    return sorted({word for word in made if word} | {word.swapcase() for word in made[::5]})


WORDS = vocabulary()
LEAST = {1: 3, 2: 5, 3: 7}
"""Letters that a word needs for so many errors."""


def values(separators: Sequence[str]) -> list[str]:
    """Return values of one to five words."""
    chance = random.Random(1993)
    return [chance.choice(separators).join(chance.sample(WORDS, chance.choice((1, 2, 3, 5)))) for _ in range(250)]


class Values:
    """Values, as summaries and as lines of a file."""

    def __init__(self, glimpse: Path, folder: Path, lines: Sequence[str]) -> None:
        self.lines = lines
        self._agrep = glimpse / "agrep"
        self._path = folder / "lines"
        self._path.write_text("".join(f"{line}\n" for line in lines), "ascii")
        about: dict[str, Any] = {"oid": "0" * 32, "url": "http://h/", "object_url": "http://h/", "gatherer": "g", "type": ""}
        self._summaries = [Summary(**about, version=1, time=1, attributes={"title": (line,)}, published=1) for line in lines]

    def ours(self, pattern: str) -> list[str]:
        """Return the values that the predicate of a pattern accepts."""
        accepts = predicate(parse_glimpse(pattern))
        return [line for line, summary in zip(self.lines, self._summaries, strict=True) if accepts(summary)]

    def agrep(self, pattern: str, *options: str) -> list[str]:
        """Return the lines that agrep finds."""
        command = [str(self._agrep), *options, "-e", pattern, str(self._path)]
        answer = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert answer.returncode < 2, command
        assert answer.stderr == "", command
        return answer.stdout.splitlines()


@pytest.fixture(scope="session")
def single(glimpse: Path, tmp_path_factory: pytest.TempPathFactory) -> Values:
    """Values of one word."""
    return Values(glimpse, tmp_path_factory.mktemp("single"), WORDS)


@pytest.fixture(scope="session")
def several(glimpse: Path, tmp_path_factory: pytest.TempPathFactory) -> Values:
    """Values of some words with many signs between them."""
    return Values(glimpse, tmp_path_factory.mktemp("several"), values(SEPARATORS))


@pytest.fixture(scope="session")
def blanks(glimpse: Path, tmp_path_factory: pytest.TempPathFactory) -> Values:
    """Values of some words with a blank between them."""
    return Values(glimpse, tmp_path_factory.mktemp("blanks"), values((" ",)))


FEW = settings(max_examples=40)
asked = st.sampled_from([*NAMES, *map(str.upper, NAMES), *WORDS])
long = asked.filter(lambda word: len(word) > 4)
parts = st.tuples(long, st.integers(0, 2), st.integers(2, 5)).map(lambda drawn: drawn[0][drawn[1] :][: drawn[2]])
case = st.sampled_from(((), ("-i",)))


@FEW
@given(word=asked, case=case)
def test_whole_words(several: Values, word: str, case: tuple[str, ...]) -> None:
    """With -w a word is found as a whole, with -i in any case."""
    assert several.ours(" ".join(("-w", *case, word))) == several.agrep(word, "-w", *case)


@FEW
@given(word=asked, errors=st.integers(1, 3))
def test_whole_words_with_errors(several: Values, word: str, errors: int) -> None:
    """With -w, -i and errors, words are found that differ by so many letters, inserted, deleted or replaced."""
    assume(len(word) >= LEAST[errors])
    assert several.ours(f"-w -i -{errors} {word}") == several.agrep(word, "-w", "-i", f"-{errors}")


@FEW
@given(word=asked, errors=st.integers(1, 3))
def test_parts_of_words_with_errors(several: Values, word: str, errors: int) -> None:
    """Without -w, all that is found with errors is found by agrep."""
    assume(len(word) >= LEAST[errors])
    assert set(several.ours(f"-i -{errors} {word}")) <= set(several.agrep(word, "-i", f"-{errors}"))


@FEW
@given(part=parts)
def test_parts_of_words(several: Values, part: str) -> None:
    """Without -w, a pattern is found within words."""
    assert several.ours(f"-i {part}") == several.agrep(part, "-i")


@st.composite
def changed(draw: st.DrawFn, forms: Sequence[str], *, inner: bool = False) -> str:
    """Draw a word, and put other forms of one to three letters instead of them; `inner`: not at the ends."""
    letters = list(draw(long))
    places = st.integers(int(inner), len(letters) - 1 - inner)
    for at in draw(st.sets(places, min_size=1, max_size=3)):
        letters[at] = draw(st.sampled_from(forms)).format(letters[at])
    return "".join(letters)


@FEW
@given(pattern=changed(("#", ".", "#{}", "{}#", ".{}")), whole=st.booleans())
def test_any_letters(single: Values, pattern: str, whole: bool) -> None:
    """`#` is any number of letters and `.` is one, in whole words and in parts of them."""
    options = ("-w", "-i") if whole else ("-i",)
    assert single.ours(" ".join((*options, pattern))) == single.agrep(pattern, *options)


CLASSES = ("[{}x]", "[a-m]", "[^a-m]", "[^{}]", "[aeiou]", "[r-w0-9]")


@FEW
@given(pattern=changed(CLASSES, inner=True))
def test_classes_in_parts_of_words(single: Values, pattern: str) -> None:
    """A class is one of its letters, or one of all others."""
    assert single.ours(f"-i {pattern}") == single.agrep(pattern, "-i")


@FEW
@given(pattern=changed(CLASSES).map(str.lower))
def test_classes_in_whole_words(single: Values, pattern: str) -> None:
    """Classes are found in whole words, also at the ends."""
    assert single.ours(f"-w -i {pattern}") == single.agrep(pattern, "-w", "-i")


@FEW
@given(pattern=changed(("{}*", "({}|x)", "({}|xx|e)", "(a|e|i|o|u)", "[a-m]", "({}s)*"), inner=True))
def test_regular_expressions(single: Values, pattern: str) -> None:
    """`|`, `*` and parentheses are those of regular expressions."""
    assume(len(pattern) <= LONGEST)
    assert single.ours(f"-i {pattern}") == single.agrep(pattern, "-i")


LINES = values((" ",))


@FEW
@given(line=st.sampled_from(LINES), start=st.integers(0, 12), length=st.integers(8, LONGEST), ends=st.tuples(*[st.booleans()] * 2))
def test_texts_of_several_words(blanks: Values, line: str, start: int, length: int, ends: tuple[bool, bool]) -> None:
    """A text with blanks in it is found within values, with `^` at their start and with `$` at their end."""
    text = line[start:][:length].strip()
    assume(len(text) > 3)
    pattern = f"{'^' * ends[0]}{text}{'$' * ends[1]}"
    assert blanks.ours(f"-i {pattern}") == blanks.agrep(pattern, "-i")


@FEW
@given(line=st.sampled_from(LINES), first=st.integers(0, 3), case=case)
def test_whole_words_that_follow_each_other(blanks: Values, line: str, first: int, case: tuple[str, ...]) -> None:
    """With -w, several words are found next to each other."""
    pattern = " ".join(line.split()[first : first + 2])
    assume(pattern)
    assert blanks.ours(" ".join(("-w", *case, pattern))) == blanks.agrep(pattern, "-w", *case)


@FEW
@given(words=st.lists(asked, min_size=2, max_size=3), sign=st.sampled_from(";,"), case=case)
def test_whole_words_combined(several: Values, words: list[str], sign: str, case: tuple[str, ...]) -> None:
    """`;` is AND, `,` is OR."""
    pattern = sign.join(words)
    assert several.ours(" ".join(("-w", *case, pattern))) == several.agrep(pattern, "-w", *case)


@FEW
@given(words=st.lists(parts, min_size=2, max_size=4), sign=st.sampled_from(";,"))
def test_parts_of_words_combined(several: Values, words: list[str], sign: str) -> None:
    """`;` and `,` combine parts of words, too."""
    pattern = sign.join(words)
    assert several.ours(f"-i {pattern}") == several.agrep(pattern, "-i")


INEXACT = {1: 8, 2: 3, 3: 2}
"""Letters before or after an `<exact>` part at most, by errors: the language refuses longer patterns."""


@FEW
@given(word=asked, inexact=st.integers(1, 9), errors=st.integers(1, 3), kind=st.sampled_from(("before", "after", "around")))
def test_exact_parts(single: Values, word: str, inexact: int, errors: int, kind: str) -> None:
    """What is between < and > has no errors, the rest has them; agrep finds the same but for insertions between < and >."""
    length = min(inexact, INEXACT[errors], len(word) - 1)
    if kind == "around":
        word, errors = word[:9], 1
    before, after = {"before": (length, 0), "after": (0, length), "around": (1, 1)}[kind]
    end = len(word) - after
    pattern = f"{word[:before]}<{word[before:end]}>{word[end:]}"
    ours, found = single.ours(f"-w -i -{errors} {pattern}"), single.agrep(pattern, "-w", "-i", f"-{errors}")
    assert set(ours) <= set(found)
    # A longer word can have one insertion, and its other errors can be deletions.
    shorter = len(word) + 1 - errors
    assert [one for one in ours if len(one) <= shorter] == [one for one in found if len(one) <= shorter]
