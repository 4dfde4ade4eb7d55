"""Program sources of languages without their own summarizer: names that keywords define, imported modules, comments."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, add_comments, inner

_MODIFIES = r"(?:pub|export|default|async|static|public|private|protected|final|abstract|local|unsafe|partial|create)[ \t]+"
_PREFIX = rf"^[ \t]*(?:{_MODIFIES}|\(){{0,5}}"
_DEFINES = r"(?:def|fn|func|function|sub|proc|defun|defmacro|procedure|subroutine|define)[ \t]+"
_FUNCTION = re.compile(
    _PREFIX + _DEFINES + r"(?:\([^)\n]{0,80}\)[ \t]*)?\(?([A-Za-z_$][\w$:.!?*-]{0,80})", re.MULTILINE | re.IGNORECASE
)
_DECLARES = r"(?:class|interface|struct|enum|trait|type|module|impl|package|namespace|table|view|record|object)[ \t]+"
_TYPE = re.compile(_PREFIX + _DECLARES + r"([A-Za-z_][\w.]{1,80})", re.MULTILINE | re.IGNORECASE)
_OBJECTIVE = re.compile(r"^@(?:interface|implementation|protocol)[ \t]+([A-Za-z_]\w{1,80})", re.MULTILINE)
_METHOD = re.compile(r"^[+-][ \t]*+\([^()\n]{1,100}+\)[ \t]*+([A-Za-z_]\w{0,80})", re.MULTILINE)
"""Classes and methods of Objective-C."""
_MESSAGE = re.compile(
    r"^[ \t]*(?:message|service|input|scalar|union|query|mutation|subscription|fragment|contract|protocol|actor)[ \t]+"
    r"([A-Z]\w{1,80})",
    re.MULTILINE,
)
"""Declarations in interface definitions. Their keywords are common words, so that the name must begin with a capital."""
_FEATURE = re.compile(r"^[ \t]*(?:Feature|Ability|Business Need):[ \t]*(\S[^\n]*)", re.MULTILINE)
_SCENARIO = re.compile(r"^[ \t]*(?:Scenario|Scenario Outline|Scenario Template|Example|Rule):[ \t]*(\S[^\n]*)", re.MULTILINE)
"""Test scenarios in Gherkin."""
_IMPORT = re.compile(
    r"^[ \t]*#?(?:import|use|using|require|include|open|from|m4_include)[ \t(\"'<]{1,4}([\w./:@-]{2,120})", re.MULTILINE
)
_DIRECTIVE = r"(?:import|include|include_next|define|undef|if|ifn?def|elif|else|endif|pragma|error|warning|line)\b"
"""Directives of the C preprocessor, after their #: not comments."""
_COMMENT = re.compile(
    rf"/\*.*?(?:\*/|\Z)|(?:^[ \t]*(?:///?|#(?!!|{_DIRECTIVE})|;+|--|%|\"|!|dnl\b|@?(?i:rem)(?=[ \t\r\n])(?![ \t]*[=(:,]))"
    r"[^\n]*\n?)+",
    re.MULTILINE | re.DOTALL,
)
_REM = re.compile(r"^[ \t]*@?rem\b[ \t]?", re.MULTILINE | re.IGNORECASE)
"""The comment marker of batch files and Basic."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add functions, types, imports, description, comments, and headings (test scenarios)."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    add_all(found, "functions", (*_FUNCTION.findall(text), *_METHOD.findall(text)))
    add_all(found, "types", (*_OBJECTIVE.findall(text), *_TYPE.findall(text), *_MESSAGE.findall(text)))
    for feature in _FEATURE.findall(text)[:1]:
        found.add("description", squeeze(feature), 300)
        add_all(found, "headings", map(squeeze, _SCENARIO.findall(text)))
    add_all(found, "imports", _IMPORT.findall(text))
    add_comments(found, (inner(_REM.sub("", m[0]), text, m.start()) for m in _COMMENT.finditer(text)))


SUMMARIZER = Summarizer(types=("SourceCode",), run=run)
