"""Subtitles in formats other than SubRip, which were once rejected."""

from __future__ import annotations

import io

import pytest

from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, summarize

SAMI = "<SAMI><HEAD><STYLE>P { color: white }</STYLE></HEAD><BODY><SYNC Start=10><P>Good morning.\n<SYNC Start=900><P>&nbsp;\n"
SSA = "[Script Info]\nTitle: x\n\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\i1}Good{\\i0} morning.\n"

FORMATS = [
    ("x.smi", SAMI, "Good morning."),
    ("x.ssa", SSA, "Good morning."),
    ("x.sub", "{10}{90}Good|morning.\n{100}{140}{y:i}Good night.\n", "Good morning.\nGood night."),
    ("x.txt", "[10][90]Good morning.\n", "Good morning."),
    ("x.sub", "[INFORMATION]\n[TITLE] x\n[SUBTITLE]\n00:00:01.00,00:00:02.00\nGood morning.\n", "Good morning."),
    ("x.sub", "FORMAT=TIME\n\n15 3\nGood morning.\n", "Good morning."),
    ("x.srt", "", None),
    ("x.srt", "nothing that has a time\n", "nothing that has a time"),
]


@pytest.mark.parametrize(("name", "text", "said"), FORMATS)
def test_subtitle_markup_is_removed(name: str, text: str, said: str | None) -> None:
    """Frames, times, fields and markup are left out; a text without a format's markup is kept unchanged."""
    body = text.encode()
    kind = recognize(name.encode(), body)
    found = Found()
    summarize(Facts(name.encode(), f"file:///{name}", "Subtitles", kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
    assert said is None or found.attributes["partial-text"] == [said]
    assert found.attributes["title"]
