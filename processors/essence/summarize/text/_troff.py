"""Converts troff escapes to characters (groff_char(7)) and expands strings that a file defines, for manual pages and papers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import islice

_LONG = r"\[[^\]\n]{0,80}+\]"
_CALLED = r"\[([^\]\n]{0,80}+)\]"
_ESCAPE = re.compile(
    rf"\\(?:f(?:\(..|{_LONG}|.)|s(?:[+-]?\d|\([+-]?..|{_LONG})|\*(?:\((..)|{_CALLED}|(.))|\((..)|{_CALLED}|"
    rf"[mMFYV](?:\(..|{_LONG}|.)|[hvwlLNCuDobZXx]'[^'\n]{{0,300}}+'|[nkg](?:[+-]?\(..|[+-]?{_LONG}|.)|\".*+|#.*+|(.)|$)"
)
"""Names in brackets are bounded: otherwise a page of unclosed brackets would be read once for each of them."""
_CHARACTERS = {
    "bu": "\u2022", "em": "\u2014", "en": "\u2013", "hy": "-", "co": "\xa9", "rg": "\xae", "tm": "\u2122",
    "lq": "\u201c", "rq": "\u201d", "oq": "\u2018", "cq": "\u2019", "aq": "'", "dq": '"', "ga": "`", "ha": "^",
    "ti": "~", "mu": "\xd7", "->": "\u2192", "<-": "\u2190", ">=": "\u2265", "<=": "\u2264", "+-": "\xb1", "R": "\xae",
    "Tm": "\u2122", 'L"': '"', 'R"': '"', "C`": "", "C'": "", "--": "-", "PI": "\u03c0", "at": "@", "sh": "#",
    "Do": "$", "rs": "\\", "sl": "/", "ba": "|", "or": "|", "mi": "-", "pl": "+", "eq": "=", "de": "\xb0",
    "dg": "\u2020", "dd": "\u2021", "sc": "\xa7", "Lq": "\u201c", "Rq": "\u201d", "Bq": "\u201e", "bq": "\u201a", "Fo": "\xab",
    "Fc": "\xbb", "fo": "\u2039", "fc": "\u203a", "r!": "\xa1", "r?": "\xbf", "ss": "\xdf", "AE": "\xc6", "ae": "\xe6",
    "OE": "\u0152", "oe": "\u0153", "/O": "\xd8", "/o": "\xf8", "/L": "\u0141", "/l": "\u0142", "-D": "\xd0", "Sd": "\xf0",
    "TP": "\xde", "Tp": "\xfe", "IJ": "\u0132", "ij": "\u0133", ".i": "\u0131", ".j": "\u0237", "ff": "ff", "fi": "fi", "fl": "fl",
    "Fi": "ffi", "Fl": "ffl", "ct": "\xa2", "Po": "\xa3", "Ye": "\xa5", "Eu": "\u20ac", "eu": "\u20ac", "Cs": "\xa4", "ps": "\xb6",
    "pc": "\xb7", "12": "\xbd", "14": "\xbc", "34": "\xbe", "S1": "\xb9", "S2": "\xb2", "S3": "\xb3", "di": "\xf7", "no": "\xac",
    "!=": "\u2260", "==": "\u2261", "~=": "\u2245", "~~": "\u2248", "if": "\u221e", "sr": "\u221a", "su": "\u2211", "mo": "\u2208",
    "<>": "\u2194", "ua": "\u2191", "da": "\u2193", "rA": "\u21d2", "lA": "\u21d0", "la": "\u27e8", "ra": "\u27e9", "lB": "[",
    "rB": "]", "lC": "{", "rC": "}", "sq": "\u25a1", "OK": "\u2713", "Of": "\xaa", "Om": "\xba", "fm": "\u2032", "md": "\u22c5",
}  # fmt: skip
for _accent, _mark, _letters in (
    ("'", "\u0301", "ACEIOUYaceiouy"),
    ("`", "\u0300", "AEIOUaeiou"),
    ("^", "\u0302", "AEIOUaeiou"),
    (":", "\u0308", "AEIOUYaeiouy"),
    ("~", "\u0303", "ANOano"),
    ("v", "\u030c", "SZsz"),
    (",", "\u0327", "Cc"),
    ("o", "\u030a", "Aa"),
):
    _CHARACTERS |= {_accent + letter: unicodedata.normalize("NFC", letter + _mark) for letter in _letters}
for _name, _greek in zip("abgdezyhiklmncoprstufxqw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True):
    _CHARACTERS |= {f"*{_name}": _greek, f"*{_name.upper()}": _greek.upper()}
_NUMBERED = re.compile(r"u([0-9A-F]{4,6})")
"""A character by its Unicode code point."""
_SINGLE = {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "t": "\t", "'": "'", "`": "`", ".": ".", "\\": "\\"}


MAX_STRING = 100
"""Characters of a string: a file may use it any number of times."""
MAX_STRINGS = 500
_DEFINED = re.compile(
    r"^[.'][ \t]*+(?:(?:if|ie|el)(?![a-z])([^\n]{0,60}?)[.'][ \t]*+)?ds1?[ \t]++(\S{1,80}+)[ \t]*+\"?([^\n]{0,300}+)", re.MULTILINE
)
"""The definition of a string, after its condition."""
_NAMED = re.compile(rf"(\\{{1,2}}+)\*(?:\((..)|{_CALLED}|([^\s(\[]))")
_DRAWS = re.compile(r"\\[hvkozw]")
_DRAWN = {
    "'": "\u0301", "`": "\u0300", ":": "\u0308", "^": "\u0302", "~": "\u0303", ",": "\u0327", "/": "\u0338", "o": "\u030a",
    "8": "\xdf", "Th": "\xde", "th": "\xfe", "D-": "\xd0", "d-": "\xf0", "Ae": "\xc6", "ae": "\xe6",
}  # fmt: skip
"""Characters for the strings that pod2man and -ms draw by moving the pen."""
_PRINTED = frozenset(("--", "PI", 'L"', 'R"', "C`", "C'"))
"""Strings of pod2man that are defined first for a terminal, and better for print: `_CHARACTERS` contains the latter."""


def expand(text: str) -> str:
    r"""Replace references to strings that the text itself defines with their values (groff(7), "Strings").

    Of several definitions the first counts, which is that of groff and of a terminal (`.ie \n(.g`, `.ie n`): conditions are not
    evaluated, except that of a printer (`t`), whose definitions come last.
    """
    if "\\*" not in text or "ds" not in text:
        return text
    strings: dict[str, str] = {}
    for _condition, name, value in sorted(islice(_DEFINED.findall(text), MAX_STRINGS), key=lambda each: each[0].strip() == "t"):
        if _DRAWS.search(value):
            strings[name] = _DRAWN.get(name, "")
        elif name not in strings and name not in _PRINTED:
            strings[name] = _named(value, strings).partition('\\"')[0][:MAX_STRING]
    expanded = _named(text, strings) if strings else text
    return unicodedata.normalize("NFC", expanded) if "#[" in strings else expanded


def _named(text: str, strings: Mapping[str, str]) -> str:
    """Replace references to strings with their values; references to unknown strings stay."""

    def value(name: re.Match[str]) -> str:
        kept = strings.get(name[2] or name[3] or name[4] or "")
        return name[0] if kept is None else kept

    return _NAMED.sub(value, text)


def unescape(text: str) -> str:
    """Replace the escapes of troff with characters."""
    return _ESCAPE.sub(_escape, text) if "\\" in text else text


def _escape(match: re.Match[str]) -> str:
    *long, single = match.groups()
    name = next((g for g in long if g is not None), None)
    if name is not None:
        numbered = _NUMBERED.fullmatch(name)
        return chr(min(int(numbered[1], 16), 0x10FFFF)) if numbered else _CHARACTERS.get(name, "")
    return _SINGLE.get(single, "") if single else ""
