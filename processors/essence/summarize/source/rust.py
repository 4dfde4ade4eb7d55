"""Rust: inner documentation (`//!`), modules, uses, types, traits, functions, macros."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import first_sentence
from processors.essence.summarize.source._code import BLOCK, CHARACTER, DOUBLE, SLASHES, add_remarks, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(
    rf"{BLOCK}|{SLASHES}|\br(#{{1,8}})\".*?(?:\"\1|\Z)|\br\"[^\"]*+\"?|{DOUBLE.replace(chr(92) + 'n', '')}|"
    rf"{CHARACTER}",
    re.DOTALL,
)
_INNER = re.compile(r"^[ \t]*//! ?([^\n]*)$", re.MULTILINE)
_USE = re.compile(r"^[ \t]*(?:pub(?:\([^()\n]{1,40}\))?[ \t]+)?(?:use|extern[ \t]+crate)[ \t]+([\w:]{1,200})", re.MULTILINE)
_VISIBLE = r"^[ \t]*(?:pub(?:\([^()\n]{1,40}\))?[ \t]+)?(?:(?:default|const|async|unsafe|extern|auto|\"\")[ \t]+){0,5}"
_FUNCTION = re.compile(rf"{_VISIBLE}fn[ \t]+(\w{{1,100}})", re.MULTILINE)
_TYPE = re.compile(rf"{_VISIBLE}(?:struct|enum|union|trait|type)[ \t]+([A-Z]\w{{0,100}})", re.MULTILINE)
_MODULE = re.compile(rf"{_VISIBLE}mod[ \t]+(\w{{1,100}})", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*(?:pub[ \t]+)?(?:macro_rules![ \t]*|macro[ \t]+)(\w{1,100})", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add description and abstract (of the inner documentation), modules, imports, types, functions, macros and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    inner = "\n".join(_INNER.findall(text))[:8_192].strip()
    found.add("abstract", inner)
    found.add("description", first_sentence(squeeze(inner.partition("\n\n")[0]).lstrip("# ")))
    code, comments = split(text, _TOKEN)
    add_all(found, "modules", _MODULE.findall(code))
    add_all(found, "imports", (name.rstrip(":") for name in _USE.findall(code)))
    add_all(found, "types", _TYPE.findall(code))
    add_all(found, "functions", _FUNCTION.findall(code))
    add_all(found, "macros", _MACRO.findall(code))
    add_remarks(found, (c for c in comments if not c.lstrip().startswith("//!")))


SUMMARIZER = Summarizer(types=("Rust",), run=run)
