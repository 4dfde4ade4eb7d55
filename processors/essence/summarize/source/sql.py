"""SQL: tables, views, functions and other objects that a script creates, tables that it changes, comments."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import BLOCK, add_remarks, split
from processors.essence.summarize.source._source import MAX_SOURCE, add_all

_TOKEN = re.compile(rf"{BLOCK}|--[^\n]*+(?:\n[ \t]*+--[^\n]*+|(?!))*+|'(?:[^'\\]++|''|\\(?:.|\Z)|(?!))*+'?", re.DOTALL)
_MADE = re.compile(
    r"\bCREATE[ \t\n]+(?:OR[ \t\n]+(?:REPLACE|ALTER)[ \t\n]+)?(?:(?:GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|UNIQUE|"
    r"MATERIALIZED|VIRTUAL|"
    r"FOREIGN|CONSTRAINT|RECURSIVE|FULLTEXT|AGGREGATE|DEFINER=\S{1,80}|TRUSTED)[ \t\n]+){0,4}"
    r"(TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|INDEX|TYPE|DOMAIN|SEQUENCE|SCHEMA|DATABASE|EXTENSION|PACKAGE|ROLE|USER|"
    r"OPERATOR|AGGREGATE)"
    r"[ \t\n]+(?:IF[ \t\n]+NOT[ \t\n]+EXISTS[ \t\n]+|BODY[ \t\n]+|CONCURRENTLY[ \t\n]+)?(\"[^\"\n]{1,100}\"|"
    r"[\w.\"`\[\]$@:-]{1,150})",
    re.IGNORECASE,
)
_FILLED = re.compile(
    r"\b(?:INSERT[ \t\n]+(?:IGNORE[ \t\n]+)?INTO|REPLACE[ \t\n]+INTO|COPY|UPDATE|"
    r"ALTER[ \t\n]+TABLE(?:[ \t\n]+ONLY)?)[ \t\n]+([\w.\"`\[\]]{2,150})",
    re.IGNORECASE,
)
_NAMES = {
    "table": "tables", "view": "views", "function": "functions", "aggregate": "functions", "procedure": "procedures",
    "trigger": "triggers",
    "index": "indices", "type": "types", "domain": "types",
    "schema": "schemas", "database": "schemas", "package": "packages",
}  # fmt: skip
_WORDS = "to set cascade no restrict of on or and from then the statement only if skip nowait as where each row action"
_NO_TABLE = frozenset(_WORDS.split())
"""Words that occur in place of a table name: in rules, keys, locks and triggers."""
_QUOTES = str.maketrans("", "", '"`[]')


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add tables, views, functions, procedures, triggers, types, schemas and others, tables-changed, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    code, comments = split(text, _TOKEN, opens="/ --")
    for kind, name in _MADE.findall(code):
        found.add(_NAMES.get(kind.lower(), "others"), name.translate(_QUOTES), 150)
    add_all(found, "tables-changed", (n.translate(_QUOTES) for n in _FILLED.findall(code) if n.lower() not in _NO_TABLE))
    add_remarks(found, comments)


SUMMARIZER = Summarizer(types=("SQL",), run=run)
