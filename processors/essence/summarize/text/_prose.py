"""Language of a text, if it is certain: checks the language model's answers.

Strategy: the model distinguishes languages by groups of bytes, and returns one for any input: Luxembourgish for a list of names,
an arbitrary one for a change log with addresses and tags. So the model gets only what may be prose, and a language other than
English is accepted only if most words are not names and, for a text in plain ASCII, if function words or both halves confirm it.

Law: no language is better than a wrong one; English, the most frequent language, is accepted on less evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from processors.essence.formats.text import squeeze

FULL = 4_000
"""Characters of a text that are examined."""
SLICE = 600
"""Characters that the model reads: 2,000 take 0.8 ms and change the answer for one page in a hundred."""
LEAST = 120
"""Letters of words; a shorter text can only be English. Letters without case, as in Chinese, count four times."""
ACCENTED = 100
"""A text with more than one non-ASCII letter in so many is neither English nor a list of names."""

_NO_PROSE = re.compile(r"<[^<>\n]{0,300}+>|(?<![!-~])(?=[!-~]{0,200}?(?:[@/\\_=\d]|\w[.:]\w))[!-~]++", re.ASCII)
"""Tags, addresses, paths, numbers, identifiers: only ASCII, since some scripts have no spaces."""
_LETTERS = re.compile(r"[^\W\d_]+")
_TELLING = {
    "lb": ("de", "vun fir ass och d\xe9i hunn net mat"),
    "pcm": ("en", "dey wey di sey pipol dem na"),
    "bcl": ("", "sa asin kan nin na mga"),
    "la": ("", "et est cum ut quod sed enim atque"),
    "yue": ("zh", "\u5605 \u5497 \u5514 \u55ba \u54cb \u5622 \u5572 \u55f0 \u5187 \u4f62"),
}
"""Languages that the model wrongly reports: for each, the language to report instead, and words of texts that really are in it."""
_KINDS = 3
_PLAINLY = {
    "de": "der die das und nicht ist mit wird oder werden eine", "nl": "het een niet voor wordt naar deze worden zijn",
    "fr": "les des est une dans pour que sont ou", "es": "los las una que para del con est\xe1",
    "pt": "n\xe3o uma que para os com do da",
    "it": "che per non una della il viene sono", "pl": "nie jest si\u0119 dla oraz lub do", "sl": "je za se ki ali ne so",
    "sv": "och att f\xf6r som inte \xe4r", "da": "og at som ikke er af til", "id": "yang dan untuk dari tidak dengan",
}  # fmt: skip
"""Function words that identify a language, if _KINDS different ones occur: none of them are parts of names."""
_KIN = ("id ms jv", "bs hr sr sl", "da no nb nn", "es pt gl ca an ast ext oc")
"""Groups of languages so similar that the model confuses them."""


def prose(text: str) -> str:
    """Return the beginning of a text without parts that are in no language."""
    return _NO_PROSE.sub(" ", text[:FULL])


def middle(text: str) -> str:
    """Return a slice of a text that contains prose rather than the heading."""
    start = min(max(len(text) - SLICE, 0), 100)
    return text[start : start + SLICE]


def told(text: str, ask: Callable[[str], str]) -> str:
    """Return the language of a text, from the answers of the model `ask`; "" if it is uncertain."""
    plain = prose(text)
    part = middle(squeeze(plain))
    language = _meant(ask(part), plain)
    if language == "en" or (language not in ("", "zxx") and _worded(plain) and _known(language, plain, part, ask)):
        return language
    # A list may contain sentences elsewhere.
    return "en" if ask(plain) == "en" else ""


def _meant(language: str, text: str) -> str:
    """Return the language that the model's answer probably means: few texts are in some of the languages that it reports."""
    other, words = _TELLING.get(language, (language, ""))
    held = text if language == "yue" else frozenset(_LETTERS.findall(text.lower()))
    return language if not words or sum(word in held for word in words.split()) >= 2 else other


def _worded(text: str) -> bool:
    """Whether a text has the words of sentences: enough letters, and at most as many words with a capital as without."""
    words = _LETTERS.findall(text)
    uncased = sum(len(word) for word in words if word.lower() == word.upper())
    capitals = sum(not word.islower() and word.lower() != word.upper() for word in words)
    return sum(map(len, words)) + 3 * uncased >= LEAST and 2 * capitals <= len(words)


def _accented(text: str) -> bool:
    """Whether more than one letter in ACCENTED is outside ASCII."""
    letters = "".join(_LETTERS.findall(text))
    return ACCENTED * sum(letter > "\x7f" for letter in letters) > len(letters)


def _known(language: str, text: str, part: str, ask: Callable[[str], str]) -> bool:
    """Whether there is evidence for a language besides the model's first answer."""
    words = frozenset(text.lower().split())
    return _accented(text) or sum(word in words for word in _PLAINLY.get(language, "").split()) >= _KINDS or _agreed(part, ask)


def _agreed(text: str, ask: Callable[[str], str]) -> bool:
    """Whether the model reports the same language, or similar ones, for both halves of a text."""
    half = len(text) // 2
    answers = (ask(text[:half]), ask(text[half:]))
    return len({next((kin for kin in _KIN if answer in kin.split()), answer) for answer in answers}) == 1
