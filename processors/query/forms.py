"""Forms of words: what a bare word of a query and a word of a text are compared by.

Laws:
- The form of a word is the stem of its letters without accents: `whales` and `Whale` have the form `whale`, `résumé` has that of
  `resume`. Both engines and the predicate compare the forms made here.
- A text is stemmed by its summary's language, if it is one of the Analyzer's; a text of unknown language by the first of them; a
  text of another language is not stemmed.
- A query has no language: a word of it is found by any form that one of the languages gives it, or by its plain letters.
- Accents are taken from letters of Latin, Greek, Cyrillic, Arabic and Hebrew, where people leave them out when they type. In
  Devanagari, Thai or Japanese a mark makes another letter.
- A name with signs in it (`C++`, `C#`, `.NET`) is a form of its own, beside those of its parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import Stemmer

LANGUAGES: Mapping[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "yi": "yiddish",
}  # fmt: skip
"""Snowball's algorithm by language (ISO 639-1)."""

DEFAULT_LANGUAGES = ("en",)

CACHED = 200_000
"""Maximum number of words whose forms a process keeps, of each language."""

_ACCENTED = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW")
"""First word of the Unicode names of the letters that lose their accents."""
_LETTERS = str.maketrans({"\u0131": "i", "ø": "o", "đ": "d", "ł": "l", "ħ": "h", "æ": "ae", "œ": "oe", "\u0640": None})
"""Letters that Unicode does not decompose, and the Arabic tatweel, which only stretches a word."""
_SHORT_I = "\u0438\u0306"
"""The Cyrillic short i, a letter of its own: stems end in it."""

_NAMED = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,20}(?:\+\+|#)(?![\w+#])")
_SIGN = re.compile(r"(?:\+\+|#)(?![\w+#])")
_BEFORE_SIGN = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,20}\Z")
NAME = 20
"""Maximum number of letters of a name with signs."""
_DOTTED = re.compile(r"\.(?<!\S\.)[A-Za-z]{2,20}(?![\w.])")
"""Looks behind the dot, not before it: the engine searches for a pattern that begins with a letter or a sign much faster."""


def without_accents(word: str) -> str:
    """Return a folded word without the accents of its letters."""
    if word.isascii():
        return word
    kept: list[str] = []
    base = ""
    for char in unicodedata.normalize("NFD", word):
        if unicodedata.category(char) != "Mn":
            base = char
            kept.append(char)
        elif not _loses_accents(base) or base + char == _SHORT_I:
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept)).translate(_LETTERS)


@lru_cache(4_096)
def _loses_accents(letter: str) -> bool:
    return not letter or unicodedata.name(letter, "").startswith(_ACCENTED)


def signed_names(text: str) -> Iterator[str]:
    """Iterate over the names with signs in a text, folded: `c++`, `c#`, `.net`."""
    if "++" in text or "#" in text:
        # From the signs, which are few, and not from every letter.
        for sign in _SIGN.finditer(text):
            if letters := _BEFORE_SIGN.search(text[max(0, sign.start() - NAME - 1) : sign.start()]):
                yield (letters.group() + sign.group()).lower()
    if " ." in text or text.startswith("."):
        yield from (found.group().lower() for found in _DOTTED.finditer(text))


def signed_name(text: str) -> str:
    """Return the name with signs that a query's word is, folded; "" if it is none."""
    return text.lower() if _NAMED.fullmatch(text) or _DOTTED.fullmatch(text) else ""


def language_code(values: Mapping[str, Sequence[str]]) -> str:
    """Return the language (ISO 639-1, in small letters) of values that `words.searchable_values` returned; "" if unknown."""
    stated = next(iter(values.get("language", ())), "").strip().lower()
    return re.split("[-_.;, ]", stated, maxsplit=1)[0]


class _Stems(dict[str, str]):
    """Cache of the forms of words in one language."""

    def __init__(self, language: str) -> None:
        # Without a cache of its own; threads may share it, since it does not release the interpreter's lock.
        self._stemmer = Stemmer.Stemmer(LANGUAGES[language], 0) if language else None

    def __missing__(self, word: str) -> str:
        plain = without_accents(word)
        if self._stemmer is not None:
            plain = self._stemmer.stemWord(plain) or plain
        if len(self) >= CACHED:
            self.clear()
        self[word] = plain
        return plain


@lru_cache(64)
def _stems(language: str) -> _Stems:
    """Return the forms in a language, "" for those without stems."""
    return _Stems(language)


class Analyzer:
    """Makes forms for some languages (ISO 639-1, keys of LANGUAGES), the first of which is that of texts of unknown language."""

    def __init__(self, languages: Iterable[str] = DEFAULT_LANGUAGES) -> None:
        """Raises ValueError for a language that has no stems."""
        self.languages = tuple(dict.fromkeys(languages))
        for language in self.languages:
            if language not in LANGUAGES:
                raise ValueError(f"no stems are known for the language {language!r}")

    @property
    def version(self) -> str:
        """Part of an index's version: the languages that its forms were made for."""
        return "+".join(self.languages) or "none"

    def forms(self, words: Iterable[str], language: str) -> list[str]:
        """Return the form of each word of a text in a language (`language_code`)."""
        return list(map(self.table(language).__getitem__, words))

    def table(self, language: str) -> Mapping[str, str]:
        """Return the form by word, made on demand, of texts in a language (`language_code`); equal tables are one object."""
        used = language if language in self.languages else "" if language else next(iter(self.languages), "")
        return _stems(used)

    def with_forms(self, words: AbstractSet[str], forms: AbstractSet[str]) -> set[str]:
        """Return those of some folded words that a query with these forms finds, in a text of any language."""
        # The plain form of an ASCII word is the word itself.
        found = {word for word in words if word in forms or (not word.isascii() and without_accents(word) in forms)}
        for language in self.languages:
            stems = _stems(language)
            found.update(word for word in words if stems[word] in forms)
        return found

    def query_forms(self, word: str) -> tuple[str, ...]:
        """Return the forms by which one folded word of a query is found, those of the first language first."""
        return tuple(dict.fromkeys(_stems(language)[word] for language in (*self.languages, "")))


DEFAULT = Analyzer()
"""Analyzer of the default languages."""
