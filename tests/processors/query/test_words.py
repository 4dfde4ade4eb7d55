from __future__ import annotations

from itertools import count
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from processors.query import words as module
from processors.query.words import MAX_EXACT, MAX_WORD, Recent, all_spaced, attribute, exact, fold, kind, spaced, spans, words
from schemas.records import Summary


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Hello, World!", ["hello", "world"]),
        ("foo_bar x-ray don't", ["foo", "bar", "x", "ray", "don", "t"]),
        ("C++ 3.14", ["c", "3", "14"]),
        ("Straße ﬁn Ⅷ ２", ["strasse", "fin", "viii", "2"]),
        ("e\u0301", ["é"]),
        ("हिन्दी", ["हिन्दी"]),
        ("東京へ行く", list("東京へ行く")),
        ("Linuxカーネル", ["linux", *"カーネル"]),
        ("co\u00adop zero\u200bwidth \ufeffbom", ["coop", "zero", "width", "bom"]),
        ("ΣΊΣΥΦΟΣ Σίσυφος", ["σίσυφοσ", "σίσυφοσ"]),
        ("\ud800a\x00b", ["a", "b"]),
    ],
)
def test_words_are_folded_runs(text: str, found: list[str]) -> None:
    """Words are runs of letters, marks and numbers, folded; characters of scripts without spaces are words."""
    assert words(text) == found


@given(st.text())
def test_spaced_text_has_same_words(text: str) -> None:
    """Spaced text is the words separated by spaces; no word is empty or contains white space."""
    assert spaced(text) == " ".join(words(text))
    assert all(word and word.split() == [word] for word in words(text))


@given(st.lists(st.text(st.characters() | st.characters(max_codepoint=0x7F) | st.sampled_from("\x01\u0301\u1161")), max_size=6))
def test_texts_spaced_together_have_same_words(texts: list[str]) -> None:
    """Texts spaced together have the words of each text alone, whatever their first and last characters."""
    for several in (texts, [*texts, "x" * 200]):
        assert [" ".join(filter(None, made.split(" "))) for made in all_spaced(several)] == [spaced(text) for text in several]


COMBINING = st.sampled_from("e\u0301\u0323\u030a\u1100\u1161\u11a8\u0915\u093c")


@given(st.text(st.characters() | st.characters(max_codepoint=0x7F) | COMBINING), st.sampled_from([0, 2, 40]))
def test_words_match_definition(text: str, few: int) -> None:
    """The words match the definition, character by character over the whole text, with few or many characters outside ASCII."""
    marks = {"w": "{}", "c": " {} ", "": "", " ": " "}
    plain = "".join(marks[kind(ord(char))].format(char) for char in fold(text))
    with patch.object(module, "FEW", few):
        assert words(text) == [word[:MAX_WORD] for word in plain.split(" ") if word]


@given(st.text(), st.text())
def test_separator_separates_words(first: str, second: str) -> None:
    """The words of two texts joined by a separator are the words of each."""
    assert words(f"{first}\n{second}") == words(first) + words(second)


@given(st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("東京 \u00ad")))
def test_spans_contain_words(text: str) -> None:
    """Spans are in order, within the text, and contain the words of the analysed text."""
    found = list(spans(text))
    assert all(0 <= start < end <= len(text) for start, end, _ in found)
    assert [start for start, _, _ in found] == sorted(start for start, _, _ in found)
    if text.isascii():
        assert [word for _, _, word in found] == words(text)


def test_long_words_and_values_are_cut() -> None:
    """A long word is cut; a long value keeps its beginning and gets a suffix that depends on the rest."""
    assert words("x" * 500 + " y") == ["x" * MAX_WORD, "y"]
    assert spaced("x" * 500 + " y") == "x" * MAX_WORD + " y"
    one, other = exact("x" * 5_000), exact("x" * 5_001)
    assert one != other
    assert one[:MAX_EXACT] == other[:MAX_EXACT] == "x" * MAX_EXACT
    assert len(one) == MAX_EXACT + 64


def test_attribute_names_ignore_case_and_space() -> None:
    """Attribute names are compared without regard to case and surrounding white space."""
    assert attribute(" Last-Modification-Time\n") == "last-modification-time"


@pytest.mark.parametrize("before", ["", "é ", "a b ", "y" * 70 + " "])
@pytest.mark.parametrize("length", [127, 128, 129, 191, 192, 300])
def test_word_is_cut_after_128_characters(before: str, length: int) -> None:
    """A word is cut after 128 characters at any position, and a shorter one is not."""
    assert spaced(f"{before}{'x' * length}!z") == f"{before}{'x' * min(length, MAX_WORD)} z"


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_ascii_fast_path_equals_general_path(text: str) -> None:
    """The fast path for ASCII gives the result of the general one."""
    assert words(text) == words(text + " é")[:-1]


def test_what_is_made_from_equal_values_is_made_once() -> None:
    """Equal values of an OID are analysed once, also in another publication; any other value, order or key, anew."""
    recent = Recent[int]()
    numbers = count(1)

    def made(summary: Summary, also: str = "en") -> int:
        return recent.of(summary, also, lambda _: next(numbers))

    first = Summary(
        oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="Text", attributes={"a": ("x",), "b": ("y",)}
    )
    assert made(first) == made(replace(first, version=2, views=("v",), attributes=dict(first.attributes))) == 1
    others: list[dict[str, Any]] = [
        {"attributes": {"b": ("y",), "a": ("x",)}}, {"attributes": {"a": ("x",)}}, {"annotations": {"a": ("x",)}},
        {"copies": ("http://h/c",)}, {"size": 1}, {"type": "Server"}, {"oid": "p"},
    ]  # fmt: skip
    assert [made(replace(first, **other)) for other in others] == list(range(2, 2 + len(others)))
    assert made(first, "de") == 2 + len(others)


def test_what_was_made_is_dropped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary before the present generation and the last one is made anew; those of both generations are not."""
    monkeypatch.setattr(Recent, "CHARACTERS", 1)
    recent = Recent[list[int]]()
    made = [Summary(oid=str(n), url="u", object_url="u", gatherer="g", version=1, time=1, type="Text") for n in range(3)]
    kept = [recent.of(one, "", lambda _: []) for one in made]
    assert [recent.of(one, "", lambda _: []) is old for one, old in zip(made[::-1], kept[::-1], strict=True)] == [True, True, False]


def test_what_is_kept_is_bounded_by_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that are no text count as well: the statistics of 4,000 registered servers would be 1 GB."""
    monkeypatch.setattr(Recent, "CHARACTERS", 1_000)
    recent = Recent[list[int]]()
    server = Summary(
        oid="0", url="u", object_url="u", gatherer="g", version=1, time=1, type="Server", attributes={"statistics": (bytes(1_000),)}
    )
    kept = [recent.of(replace(server, oid=str(n)), "", lambda _: []) for n in range(3)]
    assert recent.of(server, "", lambda _: []) is not kept[0]
