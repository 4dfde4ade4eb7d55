"""Subtitles: the spoken text; of SubRip and WebVTT also the number of cues and the duration."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all

MAX_READ = 1 << 20
MAX_TEXT = 12_288

_TIME = re.compile(
    r"^[ \t]*(?:\d{1,3}:)?\d\d:\d\d[.,]\d{1,3}[ \t]*-->[ \t]*((?:\d{1,3}:)?\d\d:\d\d)[.,]\d{1,3}[^\n]*$", re.MULTILINE
)
_TITLE = re.compile(r"\AWEBVTT[ \t]+(?:-+[ \t]*)?([^\n]{1,300})")
_FIELD = re.compile(r"^(Kind|Language|Title|Author)[ \t]*:[ \t]*([^\n]{1,200})", re.MULTILINE)
_TAG = re.compile(r"<[^<>\n]{0,200}>|\{(?:\\|[a-zA-Z]:)[^{}\n]{0,200}\}")
_SPEAKER = re.compile(r"<v(?:\.[\w.]{1,40})? ([^<>\n]{1,100})>")
_STAMP = re.compile(
    r"^[ \t]*(?:(?:\{\d{1,9}\}){2}|(?:\[\d{1,9}\]){2}|\[[A-Z ]{3,40}\][^\n]*|[\d:.,; \t-]{1,60}$|\w{1,20}=[^\n]{0,60}$)",
    re.MULTILINE,
)
"""Frames, times and fields, which are not spoken text, in lines of MicroDVD, MPL2, MPSub and SubViewer."""
_DIALOGUE = re.compile(r"^Dialogue:(?:[^,\n]{0,100},){9}([^\n]{1,2000})", re.MULTILINE)
_NOTE = re.compile(r"^(?:NOTE|STYLE|REGION)\b[^\n]*(?:\n[^\n]+)*", re.MULTILINE)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, language, speakers, cues (their number), duration and partial-text."""
    text = read_text(body, facts.charset, MAX_READ)
    title = _TITLE.match(text)
    found.add("title", squeeze(title[1]) if title else "", 300)
    for name, value in _FIELD.findall(text[:2_000]) if text.startswith("WEBVTT") else ():
        (found.set if name == "Title" else found.add)(name.lower(), value.strip())
    times = list(_TIME.finditer(text))
    found.add("cues", str(len(times)) if times else "")
    found.add("duration", times[-1][1] if times else "")
    add_all(found, "speakers", _SPEAKER.findall(text))
    found.set("title", facts.name.decode("utf-8", "replace"), 300)
    if not times:
        found.body(_said(text), MAX_TEXT)
        return
    said: list[str] = []
    room = found.most(MAX_TEXT)
    ends = [*(m.start() for m in times[1:]), len(text)]
    for mark, end in zip(times, ends, strict=True):
        # An empty line ends a cue; the number of the next cue follows it.
        cue = squeeze(
            _TAG.sub("", _NOTE.sub("", text[mark.end() : min(end, mark.end() + 2_000)].lstrip("\n").partition("\n\n")[0]))
        )
        if cue and (not said or said[-1] != cue):
            said.append(cue)
            room -= len(cue) + 1
        if room < 0:
            break
    found.body("\n".join(said), MAX_TEXT)


def _said(text: str) -> str:
    """Return the spoken text of formats without SubRip's times: SubStation Alpha, SAMI, MicroDVD, MPL2, MPSub, SubViewer."""
    lines = _DIALOGUE.findall(text) or _STAMP.sub("", _body(text)).splitlines()
    plain = (squeeze(_TAG.sub("", line).replace("|", " ").replace("\\N", " ").replace("&nbsp;", " ")) for line in lines)
    return "\n".join(line for line in plain if line)


def _body(text: str) -> str:
    """Return the text after the head of a SAMI file."""
    end = text.lower().find("</head>")
    return text if end < 0 else text[end + len("</head>") :]


SUMMARIZER = Summarizer(types=("Subtitles",), run=run)
