"""The escapes of troff as characters (groff_char(7)): what manual pages and papers share."""

from __future__ import annotations

import re

_LONG = r"\[[^\]\n]{0,80}+\]"
_CALLED = r"\[([^\]\n]{0,80}+)\]"
_ESCAPE = re.compile(
    rf"\\(?:f(?:\(..|{_LONG}|.)|s(?:[+-]?\d|\([+-]?..|{_LONG})|\*(?:\((..)|{_CALLED}|(.))|\((..)|{_CALLED}|"
    rf"[mMFYV](?:\(..|{_LONG}|.)|[hvwlLNCuDobZXx]'[^'\n]{{0,300}}+'|[nkg](?:[+-]?\(..|[+-]?{_LONG}|.)|\".*+|#.*+|(.)|$)"
)
"""Names within brackets are bounded: a page of brackets that nobody closes would be read once for each of them."""
_CHARACTERS = {
    "bu": "\u2022", "em": "\u2014", "en": "\u2013", "hy": "-", "co": "\xa9", "rg": "\xae", "tm": "\u2122",
    "lq": "\u201c", "rq": "\u201d", "oq": "\u2018", "cq": "\u2019", "aq": "'", "dq": '"', "ga": "`", "ha": "^",
    "ti": "~", "mu": "\xd7", "->": "\u2192", "<-": "\u2190", ">=": "\u2265", "<=": "\u2264", "+-": "\xb1", "R": "\xae",
    "Tm": "\u2122", 'L"': '"', 'R"': '"', "C`": "", "C'": "", "--": "-", "PI": "\u03c0", "at": "@", "sh": "#",
    "Do": "$", "rs": "\\", "sl": "/", "ba": "|", "or": "|", "mi": "-", "pl": "+", "eq": "=", "de": "\xb0",
    "dg": "\u2020", "sc": "\xa7", "Lq": "\u201c", "Rq": "\u201d", "ss": "\xdf", ":a": "\xe4", ":o": "\xf6",
    ":u": "\xfc", "'e": "\xe9", "`e": "\xe8", "^e": "\xea", "'a": "\xe1", "~n": "\xf1", ",c": "\xe7",
}  # fmt: skip
_SINGLE = {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "t": "\t", "'": "'", "`": "`", ".": ".", "\\": "\\"}


def unescape(text: str) -> str:
    """Text with the escapes of troff made characters."""
    return _ESCAPE.sub(_escape, text) if "\\" in text else text


def _escape(match: re.Match[str]) -> str:
    *long, single = match.groups()
    name = next((g for g in long if g is not None), None)
    if name is not None:
        return _CHARACTERS.get(name, "")
    return _SINGLE.get(single, "") if single else ""
