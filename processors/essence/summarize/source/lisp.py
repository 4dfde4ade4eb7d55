"""Lisp, Scheme, Emacs Lisp and Clojure: definitions, required modules, comments, headers of Emacs libraries.

A library for Emacs begins with `;;; NAME.el --- PURPOSE`, and has a section `;;; Commentary:` (Emacs Lisp, D.8).
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import add_remarks
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, bare

_NAME = r"([^\s()\[\]{}\"';`,|#]{1,100})"
_FUNCTION = re.compile(
    rf"^[ \t]*\((?:def(?:un|subst|alias|ine-minor-mode|generic|method|n-?|ine-inline)|cl-defun|cl-defmethod|"
    rf"cl-defgeneric|define\*?(?:-public)?[ \t]+\(|defknown|define-command)[ \t('(]{{0,4}}{_NAME}",
    re.MULTILINE,
)
_MACRO = re.compile(
    rf"^[ \t]*\((?:defmacro|define-syntax(?:-rule)?|defmacro\*|cl-defmacro|define-compiler-macro)[ \t(]+{_NAME}", re.MULTILINE
)
_TYPE = re.compile(
    rf"^[ \t]*\((?:defclass|defstruct|cl-defstruct|deftype|define-record-type|define-class|defrecord|defprotocol|"
    rf"define-condition)[ \t(]+{_NAME}",
    re.MULTILINE,
)
_MODULE = re.compile(
    r"^[ \t]*\((?:defpackage|define-module|define-library|ns|module|in-package)[ \t\n]+([^\s()][^\s()]{0,100}|\([^()\n]{1,100}\))",
    re.MULTILINE,
)
_REQUIRE = re.compile(
    r"^[ \t]*\((?:require|use-package|load|import|use-modules|:use|:require|"
    r":use-module)[ \t\n]+['(\"\[:]{0,3}([^\s()'\"\[\]]{1,100}(?:[ \t][^\s()]{1,60}){0,4})",
    re.MULTILINE,
)
_REMARK = re.compile(r"^#\|.*?(?:\|#|\Z)|(?:^[ \t]*;[^\n]*\n?|(?!))++", re.MULTILINE | re.DOTALL)
_FIRST = re.compile(r"\A;+[ \t]*(\S{1,100})[ \t]+--+[ \t]+([^\n]{2,200})")
_HEADER = re.compile(
    r"^;+[ \t]*(Author|Maintainer|Keywords|Version|URL|Homepage|Created|Package-Requires):[ \t]*([^\n]{1,300})", re.MULTILINE
)
_COMMENTARY = re.compile(r"^;;;+[ \t]*Commentary:[^\n]*\n((?:[ \t]*(?:;{1,2}(?!;)[^\n]*)?\n){1,400})", re.MULTILINE)
_HEADER_NAMES = {
    "Author": "author", "Maintainer": "maintainer", "Keywords": "keywords", "Version": "version", "URL": "url-references",
    "Homepage": "url-references", "Created": "creation-date", "Package-Requires": "imports",
}  # fmt: skip
HEAD = 65_536
"""Characters in which headers are searched."""


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add functions, macros, types, modules, imports and comments; from Emacs headers title, author, keywords and abstract."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    _headers(text[:HEAD], found)
    code = _REMARK.sub("", text)
    add_all(found, "modules", (name.strip("():\"'#") for name in _MODULE.findall(code)))
    add_all(found, "imports", (name.strip(":\"'") for name in _REQUIRE.findall(code)))
    add_all(found, "types", _TYPE.findall(code))
    add_all(found, "functions", _FUNCTION.findall(code))
    add_all(found, "macros", _MACRO.findall(code))
    add_remarks(found, (m[0].replace("#|", "").replace("|#", "") for m in _REMARK.finditer(text)))


def _headers(text: str, found: Found) -> None:
    first = _FIRST.match(text)
    if first:
        purpose = squeeze(first[2].partition("-*-")[0])
        found.add("title", f"{first[1]}: {purpose}", 300)
        found.add("description", purpose, 300)
    for name, value in _HEADER.findall(text)[:20]:
        for part in value.split(",") if name == "Keywords" else [value]:
            found.add(_HEADER_NAMES[name], squeeze(part), 300)
    commentary = _COMMENTARY.search(text)
    if commentary:
        found.add("abstract", bare(commentary[1]))


SUMMARIZER = Summarizer(types=("Lisp",), run=run)
