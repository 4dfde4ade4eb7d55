"""Generates the table of types for README.md from the rules and the plug-ins; a test fails if the README differs."""

from __future__ import annotations

from processors.essence.recognize import UNRECOGNIZED, TypeRule, table
from processors.essence.summarize import summarizer_for, summarizers

BEGIN = "<!-- types: generated, see below -->"
END = "<!-- types: end -->"


def type_table() -> str:
    """A table with one row per type: its media type, how it is recognized, and its summarizer."""
    lines = ["| type | media type | names | by content | summarizer |", "| --- | --- | --- | --- | --- |"]
    for name, rule in table().rules.items():
        lines.append(f"| {name} | {rule.media} | {_names(rule)} | {_content(rule)} | {_served(name, rule)} |")
    return "\n".join(lines)


def with_table(readme: str) -> str:
    """The text of a README with the table between its two marks rewritten. Raises ValueError if a mark is missing."""
    begin, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    return f"{readme[:begin]}\n{type_table()}\n{readme[end:]}"


def _names(rule: TypeRule) -> str:
    claimed = (s for many in rule.claims for s in many.split())
    suffixes = list(dict.fromkeys(f"`.{s.partition('=')[0]}`" for s in (*rule.suffixes, *claimed)))
    shown = " ".join(suffixes[:8]) + (" …" if len(suffixes) > 8 else "")
    return f"{shown} and whole names".removeprefix(" and ") if rule.names else shown


def _content(rule: TypeRule) -> str:
    ways = (("signature", rule.starts), ("pattern", rule.patterns), ("program", rule.program))
    return ", ".join(way for way, used in ways if used)


def _served(name: str, rule: TypeRule) -> str:
    if name in summarizers():
        return summarizers()[name].run.__module__.rpartition(".")[2]
    module = summarizer_for(name).run.__module__.rpartition(".")[2]
    return module if rule.extends == UNRECOGNIZED else f"{module}, by {rule.extends}"
