"""Debian copyright files, of the machine-readable format (DEP-5) and of the free one before it."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.summarize._base import Facts, Found, Summarizer
from processors.summarize._source import add_all
from processors.summarize._text import add_references, read_text

MAX_READ = 65_536
MAX_TEXT = 2_048
HOLDERS = 20

_NAME = re.compile(r"^Upstream-Name:[ \t]*(\S.*)$", re.MULTILINE)
_CONTACT = re.compile(r"^Upstream-Contact:[ \t]*(\S.*)$", re.MULTILINE)
_LICENSE = re.compile(r"^License:[ \t]*(\S.{0,100})$", re.MULTILINE)
_FAMILY = re.compile(r"/usr/share/common-licenses/([\w.+-]*\w)")
_HOLDER = re.compile(
    r"(?i)(?<![\w/-])(?:copyright|\(c\)|©)(?![\w/-])[ :]{0,3}(?:\(c\)|©)?[ \t]*((?:\d{4}[-, \d]*)?[ \t]*(?:by )?[^\n]{3,150})"
)
_YEARS = re.compile(r"^[\d, -]+(?:by )?")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author (the copyright holders), license, url-references and partial-text."""
    text = read_text(body, facts.charset, MAX_READ)
    name = _NAME.search(text)
    found.add("title", f"{name[1].strip()}: copyright" if name else "", 200)
    add_all(found, "author", _CONTACT.findall(text))
    holders = (_YEARS.sub("", h).strip(" .,") for h in _HOLDER.findall(text))
    add_all(found, "author", list(dict.fromkeys(h for h in holders if len(h) > 2))[:HOLDERS])
    add_all(found, "license", (*_LICENSE.findall(text), *_FAMILY.findall(text)))
    add_references(found, text[:8_192])
    found.body(text[: 2 * MAX_TEXT], MAX_TEXT, whole=text)


SUMMARIZER = Summarizer(types=("DebianCopyright",), run=run)
