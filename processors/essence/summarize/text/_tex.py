"""Helpers that TeX, BibTeX and Texinfo share: arguments in braces, and text without TeX commands.

Laws: the search for a missing closing brace ends after MAX_ARGUMENT characters; `plain_tex` reads each character once.
"""

from __future__ import annotations

import re
import unicodedata

MAX_ARGUMENT = 4_096
"""Characters of one argument."""

_BRACE = re.compile(r"\\.|[{}\"]", re.DOTALL)
_DROPPED = (
    r"(?:label|ref|pageref|eqref|cite[a-z]?|nocite|index|glossary|bibliographystyle|usepackage|vspace|hspace|input|include|begin|end|"
    r"includegraphics|setcounter|addtocounter|setlength|newcommand|renewcommand|pagestyle|thispagestyle|hypersetup|color|thanks|"
    r"documentclass|documentstyle|addcontentsline|vskip|hskip|fontsize|selectfont|footnotemark|verb)"
)
_ARGUMENT = r"(?:[ \t]*+\[[^\]\n]{0,200}+\]|(?!))?+(?:[ \t]*+\{[^{}]{0,200}+\}|(?!))?+"
_TOKEN = re.compile(
    rf"~?\\{_DROPPED}(?![a-zA-Z@])\*?{_ARGUMENT}"
    r"|\\(['`^\"~=.]|[cuvHrdbk](?![a-zA-Z@]))[ \t]*+\{?\\?([a-zA-Z])(?:\}|(?<=\\i)\b|(?<=\\j)\b|)"
    r"|\\([a-zA-Z@]++)\*?[ \t]*+(?:\[[^\]\n]{0,80}+\])?"
    r"|\\(.)|(---?|``|''|[{}$~])",
    re.DOTALL,
)
_ACCENTS = dict(
    zip(
        "'`^\"~=.cuvHrdbk",
        "\u0301\u0300\u0302\u0308\u0303\u0304\u0307\u0327\u0306\u030c\u030b\u030a\u0323\u0331\u0328",
        strict=True,
    )
)
_SYMBOLS = {
    "ss": "\xdf", "ae": "\xe6", "AE": "\xc6", "oe": "\u0153", "OE": "\u0152", "o": "\xf8", "O": "\xd8", "aa": "\xe5", "AA": "\xc5",
    "l": "\u0142", "L": "\u0141", "i": "i", "j": "j", "LaTeX": "LaTeX", "TeX": "TeX", "LaTeXe": "LaTeX2e", "BibTeX": "BibTeX",
    "ldots": "...", "dots": "...", "textbackslash": "\\", "textasciitilde": "~", "copyright": "\xa9", "quad": " ", "qquad": " ",
    "and": ", ", "par": "\n\n", "newline": "\n", "textendash": "\u2013", "textemdash": "\u2014", "S": "\xa7", "item": "\n- ",
    "texttrademark": "\u2122", "textregistered": "\xae", "pounds": "\xa3", "slash": "/", "AmS": "AMS", "METAFONT": "METAFONT",
}  # fmt: skip
_SINGLE = {
    "\\": "\n",
    " ": " ",
    "\n": " ",
    ",": " ",
    ";": " ",
    ":": " ",
    "/": "",
    "-": "",
    "!": "",
    "(": "",
    ")": "",
    "[": "",
    "]": "",
}
_MARKS = {"---": "\u2014", "--": "\u2013", "``": "\u201c", "''": "\u201d", "~": " "}


def argument(text: str, at: int, limit: int = MAX_ARGUMENT) -> str:
    """Return the argument in the braces or quotes that open at `at`; the start of it if it is long."""
    close = text[at : at + 1].replace("{", "}")
    depth = 0
    for brace in _BRACE.finditer(text, at + 1, at + limit):
        if depth <= 0 and brace[0] == close:
            return text[at + 1 : brace.start()]
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
    return text[at + 1 : at + limit].partition("\n\n")[0]


def plain_tex(text: str) -> str:
    """Return text approximately as TeX prints it: accents become letters, commands are removed, their arguments stay."""
    if not any(mark in text for mark in "\\{}$~-`'"):
        return text
    return unicodedata.normalize("NFC", _TOKEN.sub(_printed, text))


def _printed(token: re.Match[str]) -> str:
    accent, letter, command, single, mark = token.groups()
    if accent:
        return letter + _ACCENTS[accent]
    if command:
        return _SYMBOLS.get(command, "")
    if single:
        return _SINGLE.get(single, single)
    return _MARKS.get(mark, "") if mark else ""
