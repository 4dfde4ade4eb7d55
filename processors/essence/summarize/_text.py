"""Helpers for text that all text summarizers share: paragraphs, sentences, titles, references."""

from __future__ import annotations

import re
from urllib.parse import unquote

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Found

REFERENCES = 100

SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')\]]|$)")
_URL = re.compile(r"\bhttps?://[^\s<>\"`{}|\\^\[\]]{4,500}")
_MARKUP = re.compile(
    r"(?i)</?(?:h[1-6]|p|div|span|a|b|i|u|s|em|strong|small|big|code|kbd|tt|pre|sub|sup|br|hr|img|center|font|picture|source|table|t[rdh]|"
    r"details|summary)(?:\s[^<>]*+)?/?>|-\*-.*?-\*-"
)
_HEAD = re.compile(r"\A(?:[\s#=~;|%!]++|[*_]{2,}+(?!\w)|\*+(?!\*)(?=\s)|//+|/\*++[*!]?|--++(?!\w)|-(?=\s)|<--*+|>(?=\s)|(?!))*+")
_FOOT = re.compile(r"(?: [#=*~;%|_/<>-]++|(?<![=~_-])[=~_-]{3,}+|\*/)\Z")
"""Ornament after a title; _HEAD is that before it."""
_BACKSPACE = re.compile(".\b")


def plain(text: str) -> str:
    """Return text without overstriking (which nroff uses to print bold) and form feeds."""
    return _BACKSPACE.sub("", text).replace("\f", "\n") if "\b" in text or "\f" in text else text


_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}:)?//\S*+|www\.\S*+|(?:[\w-]{1,63}\.){1,8}[a-z]{2,20}/\S*+", re.IGNORECASE)


def is_url(value: str) -> bool:
    """Whether a value is a URL, with or without its scheme, and nothing else."""
    return _ADDRESS.fullmatch(value.strip()) is not None


def first_sentence(paragraph: str, limit: int = 300) -> str:
    """Return the first sentence of a paragraph, on one line, at most `limit` characters."""
    start = squeeze(paragraph[: limit * 2])
    end = _SENTENCE_END.search(start)
    return start[: end.end() if end else None][:limit]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines separate."""
    return [p for p in text.split("\n\n") if not p.isspace() and p]


def add_references(found: Found, text: str) -> None:
    """Add the first REFERENCES URLs of a text as url-references, without duplicates."""
    for url in list(dict.fromkeys(_URL.findall(text)))[:REFERENCES]:
        found.add("url-references", url.rstrip(".,;:!?)'*_"), 500)


_MADE = re.compile(r"(?i)do not edit|\b(?:created|generated) (?:by|from|with) \S{1,100}\.\w{1,4}\b")
"""Notices that a program generated the file: not titles."""


_HELP = re.compile(
    r"\*[^\s*]{1,60}\.(?:txt|\w\wx)\*[ \t]+(?:For Vim version[^\n]*|([^\n]{0,200}?)(?:[ \t]+Last change:[^\n]*)?)(?:\n|\Z)"
)
_MANUAL = re.compile(r"^[ \t]*VIM (?:REFERENCE|USER) MANUAL\b[^\n]*\n(?:[ \t]*\S[^\n]*\n)?", re.MULTILINE)
_TAG = re.compile(r"(?<![ \t])[ \t]++\*[^\s*]{1,80}\*(?=\s)")


def title_line(text: str) -> str:
    """Return the first line that is a title rather than ornament or markup, on one line; "" if there is none."""
    if text.startswith(SIGNED):
        # The name of the digest precedes an empty line (RFC 9580, 7).
        text = text.partition("\n\n")[2] or text
    elif text.startswith("*") and (first := _HELP.match(text)):
        # A Vim help file begins with its name, marks link targets, and is one of Vim's manuals or states its subject.
        text = _TAG.sub("", f"{first[1] or ''}\n{_MANUAL.sub('', text[first.end() : 8_192])}")
    for line in text[:8_192].split("\n"):
        # Badges, comments, directives and editors' mode lines precede the title in many READMEs.
        if not line.lstrip().startswith(("[!", "<!", ".. ", "-*-", "---", "%")) and not _MADE.search(line):
            title = _undressed(line)
            if sum(map(str.isalpha, title)) >= 2:
                return title[:200]
    return ""


def _undressed(line: str) -> str:
    """Return a line without tags and surrounding ornament; characters that belong to the words (paths, addresses, C#) stay."""
    title = _FOOT.sub("", squeeze(_HEAD.sub("", _MARKUP.sub("", line[:2_000]))))
    for mark in "*_`\"'":
        inside = title.strip(mark)
        if title.startswith(mark) and title.endswith(mark) and mark not in inside:
            title = inside
    return title


def in_folder(url: str, name: str) -> str:
    """Return a title for a file with a generic name: the folder that contains it, if there is one, and the name."""
    path = url.partition("//")[2].replace("#", "/").partition("/")[2]
    folder = unquote(path.rpartition("/")[0].rpartition("/")[2])
    return f"{folder}: {name}" if folder else name
