"""Forms of words: stems, accents, names with signs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.query.forms import LANGUAGES, Analyzer, language_code, signed_name, signed_names, without_accents
from processors.query.words import fold, words

ENGLISH = Analyzer(["en"])


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("whales", "whale"),
        ("Whale", "whales"),
        ("résumé", "resume"),
        ("résumés", "resume"),
        ("İstanbul", "istanbul"),
        ("DİYARBAKIR", "diyarbakır"),
        ("diyarbakır", "DIYARBAKIR"),
        ("зелёный", "зеленый"),
        ("وَصَلَ", "وصل"),
        ("الكِتَابُ", "الكتاب"),
        ("كـتـاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("Orléans", "Orleans"),
        ("Übergröße", "ubergrosse"),
        ("Łódź", "lodz"),
        ("ΆΛΦΑ", "αλφα"),
        ("e\u0301te\u0301", "ete"),
    ],
)
def test_words_that_people_type_have_the_form_of_the_text(text: str, typed: str) -> None:
    """A word is found as people type it: in another form, without accents, in any case, and the other way round."""
    for one, other in ((text, typed), (typed, text)):
        [form] = ENGLISH.forms(words(one), "")
        assert form in ENGLISH.query_forms(words(other)[0])


@pytest.mark.parametrize(("one", "other"), [("が", "か"), ("हिन्दी", "हनद"), ("й", "и"), ("universe", "universal")])
def test_marks_that_make_another_letter_are_kept(one: str, other: str) -> None:
    """A mark of Japanese or Devanagari, and the Cyrillic short i, make another letter; other words are other words."""
    assert without_accents(fold(one)) == fold(one)
    assert without_accents(fold(one)) != without_accents(fold(other))


def test_text_is_stemmed_by_its_language() -> None:
    """Texts of an unknown language have stems of the first one; texts of a language that is not among them have none."""
    both = Analyzer(["en", "de"])
    assert both.forms(["houses"], "") == both.forms(["houses"], "en") == ["hous"]
    assert both.forms(["häuser"], "de") == ["haus"]
    assert both.forms(["maisons"], "fr") == ["maisons"]
    assert Analyzer([]).forms(["houses"], "en") == ["houses"]
    assert both.query_forms("houses") == ("hous", "houses")


def test_language_without_stems_is_an_error() -> None:
    """An unknown language is refused when the Analyzer is made, and every known one has an algorithm."""
    with pytest.raises(ValueError, match="'xx'"):
        Analyzer(["xx"])
    assert all(Analyzer([language]).forms(["a"], language) for language in LANGUAGES)


@pytest.mark.parametrize(("stated", "code"), [("en-US", "en"), ("EN", "en"), ("de_DE.UTF-8", "de"), ("", ""), ("fr, en", "fr")])
def test_language_of_a_summary_is_its_code(stated: str, code: str) -> None:
    """The language is the first part of what a summary states."""
    assert language_code({"language": [stated]}) == code
    assert language_code({}) == ""


def test_names_with_signs_are_forms() -> None:
    """`C++`, `C#` and `.NET` are found in text as names of their own; `C` is none, nor is what only looks like one."""
    assert list(signed_names("C++ and c#, .NET; g++. C++11, a##b, 1.5, end.")) == ["c++", "c#", "g++", ".net"]
    assert [signed_name(text) for text in ("C++", "C#", ".NET", "C", "c+", "#c", "1.5")] == ["c++", "c#", ".net", "", "", "", ""]


@given(text=st.text(st.sampled_from("aB+# .1\u00e9_\n")) | st.text("a#", min_size=18))
def test_names_with_signs_are_those_of_an_expression(text: str) -> None:
    """A name with signs is up to 20 letters before `++` or `#`, or 2 to 20 after a dot, and stands alone."""
    signed = re.findall(r"(?<![A-Za-z])[A-Za-z]{1,20}(?:\+\+|#)(?![\w+#])", text)
    dotted = re.findall(r"(?:(?<=\s)|^)\.[A-Za-z]{2,20}(?![\w.])", text)
    assert list(signed_names(text)) == [name.lower() for name in (*signed, *dotted)]
