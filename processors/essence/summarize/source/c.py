"""C, C++ and their headers: procedures, includes, types, comments (Essence, seed 003, table 3: C, CHeader).

Bounded regular expressions search the text without comments and strings: the front end of a compiler would need the headers.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, inner

# An unclosed string ends with its line, so that the search does not start again at each quote inside it.
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*+(?:\n[ \t]*+//[^\n]*+|(?!))*+|\"(?:[^\"\\\n]++|\\(?:.|\Z)|(?!))*+\"?|'(?:[^'\\\n]|\\.){1,8}'",
    re.DOTALL,
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[ \t]*[<\"]([^>\"\n]{1,200})[>\"]", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w{1,80})\(", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:typedef[ \t]+)?(?:struct|union|enum|class|namespace)[ \t]+(?:class[ \t]+)?([A-Za-z_]\w{1,80}+)"
    r"\s*+(?:final\b[^;{]{0,80}+|:[^;{]{1,200}+)?\{",
    re.MULTILINE,
)
_TYPEDEF = re.compile(r"^(typedef\b[^;{}()]{1,280}+|\}[ \t]*+\w{2,81}+[ \t]*+);", re.MULTILINE)
_LAST = re.compile(r"(?<!\w)[A-Za-z_]\w{1,80}+[ \t]*+\Z")
# Parentheses are matched to a depth of three, so that each is scanned once: parameters that are function pointers contain some.
_ARGUMENTS = r"\((?:[^;{}()]++|\((?:[^;{}()]++|\([^;{}()]*+\)|(?!))*+\)|(?!)){0,60}+\)\s*+"
_HEAD = rf"^(?:[A-Za-z_][\w \t*:&<>,~]{{0,120}}[\s*&:])?([A-Za-z_~][\w:~]{{0,80}}+)[ \t]*+{_ARGUMENTS}"
# Declarations of parameters may precede the body: C before 1989 was written this way.
_PROCEDURE = re.compile(
    _HEAD + r"(?:const\b\s*+|noexcept\b\s*+)?(?:[A-Za-z_][\w \t*,\[\]]{0,80}+;\s*+|(?!)){0,12}+\{", re.MULTILINE
)
_PROTOTYPE = re.compile(_HEAD + rf"(?:[A-Z_]\w*+\s*+(?:{_ARGUMENTS})?)?;", re.MULTILINE)
_WRAPPED = re.compile(r"(?<!\w)([A-Za-z_]\w{1,80}+)[ \t]++(?:OF|__P|PROTO|ARGS)[ \t]*+\(\(")
"""A function whose parameters a macro hides from old compilers."""
_EXPORTED = re.compile(r"(?<!\w)PyAPI_(?:FUNC|DATA)\(([^()\n]{1,80}+)\)")
_NO_PROCEDURE = frozenset(("if", "for", "while", "switch", "return", "else", "do", "sizeof", "defined", "catch", "__attribute__"))


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add procedures, includes, types, macros (of headers), comments; description from the first comment with a purpose."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    header = facts.type == "CHeader"
    add_all(found, "includes", _INCLUDE.findall(text))
    comments: list[str] = []
    code = _TOKEN.sub(lambda token: _blank(token, comments), text)
    code = _WRAPPED.sub(r"\1((", _EXPORTED.sub(r"\1", code)) if header else code
    names = _PROCEDURE.findall(code) + (_PROTOTYPE.findall(code) if header else [])
    add_all(found, "procedures", (n for n in names if n not in _NO_PROCEDURE and not (n[0] == "_" and n.isupper())))
    add_all(found, "types", _TYPE.findall(code) + [m[0].rstrip() for d in _TYPEDEF.findall(code) if (m := _LAST.search(d))])
    if header:
        add_all(found, "macros", _MACRO.findall(code))
    add_comments(found, comments)


def _blank(token: re.Match[str], comments: list[str]) -> str:
    """Return the replacement of a comment or a string; a comment is appended to `comments`."""
    if not token[0].startswith("/"):
        return '""'
    comments.append(inner(token[0], token.string, token.start()))
    return " "


SUMMARIZER = Summarizer(types=("C",), run=run)
