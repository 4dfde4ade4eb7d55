"""Whether a text is prose in the language that a model takes it for.

Strategy: the model knows languages by groups of bytes, and gives one for whatever it reads: a list of names is Luxembourgish to it,
a log of changes among addresses and tags no language at all. So it reads what may be prose alone, and another language than English
is believed only where most words are no names, and where both halves of what is plain ASCII are in it.

Law: no language is better than a wrong one, and English, which most of what is gathered is in, may be given on less.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from processors.essence.formats.text import squeeze

FULL = 4_000
"""Characters of a text that are looked at."""
SLICE = 600
"""Characters that the model is asked about: 2,000 take 0.8 ms and decide the same but for one page in a hundred."""
LEAST = 120
"""Letters of words below which no other language than English is told; those that have no case, as in Chinese, count four times."""
ACCENTED = 100
"""One letter in so many that is none of ASCII tells that the text is neither English nor a list of names."""

_NO_PROSE = re.compile(r"<[^<>\n]{0,300}+>|(?<![!-~])(?=[!-~]{0,200}?(?:[@/\\_=\d]|\w[.:]\w))[!-~]++", re.ASCII)
"""Tags, addresses, paths, numbers, identifiers: of ASCII, since there are scripts without spaces."""
_LETTERS = re.compile(r"[^\W\d_]+")
_TELLING = {
    "lb": ("de", "vun fir ass och d\xe9i hunn net mat"),
    "pcm": ("en", "dey wey di sey pipol dem na"),
    "bcl": ("", "sa asin kan nin na mga"),
    "la": ("", "et est cum ut quod sed enim atque"),
    "yue": ("zh", "\u5605 \u5497 \u5514 \u55ba \u54cb \u5622 \u5572 \u55f0 \u5187 \u4f62"),
}
"""Languages that the model takes others for, each with that, and words which a text in it has."""
_KINDS = 3
_PLAINLY = {
    "de": "der die das und nicht ist mit wird oder werden eine", "nl": "het een niet voor wordt naar deze worden zijn",
    "fr": "les des est une dans pour que sont ou", "es": "los las una que para del con est\xe1",
    "pt": "n\xe3o uma que para os com do da",
    "it": "che per non una della il viene sono", "pl": "nie jest si\u0119 dla oraz lub do", "sl": "je za se ki ali ne so",
    "sv": "och att f\xf6r som inte \xe4r", "da": "og at som ikke er af til", "id": "yang dan untuk dari tidak dengan",
}  # fmt: skip
"""Function words that tell a language, where so many different ones are met: none of them are parts of names."""
_KIN = ("id ms jv", "bs hr sr sl", "da no nb nn", "es pt gl ca an ast ext oc")
"""Languages so near to each other that the model mistakes one for another."""


def prose(text: str) -> str:
    """The beginning of a text without what is in no language."""
    return _NO_PROSE.sub(" ", text[:FULL])


def middle(text: str) -> str:
    """A slice of a text that is prose rather than its heading."""
    start = min(max(len(text) - SLICE, 0), 100)
    return text[start : start + SLICE]


def told(text: str, ask: Callable[[str], str]) -> str:
    """The language of a text, by what `ask` says of it; "" where that is not sure."""
    plain = prose(text)
    part = middle(squeeze(plain))
    language = _meant(ask(part), plain)
    if language == "en" or (language not in ("", "zxx") and _worded(plain) and _known(language, plain, part, ask)):
        return language
    # A list may have its sentences elsewhere.
    return "en" if ask(plain) == "en" else ""


def _meant(language: str, text: str) -> str:
    """The language that a model means by one which few texts are in."""
    other, words = _TELLING.get(language, (language, ""))
    held = text if language == "yue" else frozenset(_LETTERS.findall(text.lower()))
    return language if not words or sum(word in held for word in words.split()) >= 2 else other


def _worded(text: str) -> bool:
    """Whether the words of a text are those of sentences: enough of them, and no more with a capital than without."""
    words = _LETTERS.findall(text)
    uncased = sum(len(word) for word in words if word.lower() == word.upper())
    capitals = sum(not word.islower() and word.lower() != word.upper() for word in words)
    return sum(map(len, words)) + 3 * uncased >= LEAST and 2 * capitals <= len(words)


def _accented(text: str) -> bool:
    """Whether many letters of a text are none of ASCII."""
    letters = "".join(_LETTERS.findall(text))
    return ACCENTED * sum(letter > "\x7f" for letter in letters) > len(letters)


def _known(language: str, text: str, part: str, ask: Callable[[str], str]) -> bool:
    """Whether more than one answer of the model tells a language."""
    words = frozenset(text.lower().split())
    return _accented(text) or sum(word in words for word in _PLAINLY.get(language, "").split()) >= _KINDS or _agreed(part, ask)


def _agreed(text: str, ask: Callable[[str], str]) -> bool:
    """Whether both halves of a text are in one language, as far as the model can tell those apart."""
    half = len(text) // 2
    answers = (ask(text[:half]), ask(text[half:]))
    return len({next((kin for kin in _KIN if answer in kin.split()), answer) for answer in answers}) == 1
