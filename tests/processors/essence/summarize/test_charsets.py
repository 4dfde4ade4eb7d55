"""Decoding of bytes without a declared charset."""

from collections.abc import Callable

import pytest

from processors.essence.formats.text import decode
from processors.essence.summarize import Found

Make = Callable[..., Found]

CZECH = "Žluťoučký kůň úpěl ďábelské ódy. Zažil jsem to včera večer."
RUSSIAN = "Съешь же ещё этих мягких французских булок"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("/* François Pinard */\n".encode("latin-1") + b"int a;\n" * 200, "/* François Pinard */\n" + "int a;\n" * 200),
        ("Größe, für François – “zu” klein".encode("cp1252"), "Größe, für François – “zu” klein"),
        (CZECH.encode("iso-8859-2"), CZECH),
        (RUSSIAN.encode("koi8-r"), RUSSIAN),
        ("“Quoted”, and a slip: ".encode() + b"\xe9" + b" among words" * 50, "“Quoted”, and a slip: \ufffd" + " among words" * 50),
        (b"word " * 60 + "é".encode()[:1], "word " * 60 + "\ufffd"),
    ],
    ids=("a name", "quotes", "Czech", "Russian", "slip", "cut"),
)
def test_undeclared_charset_is_detected(raw: bytes, text: str) -> None:
    """Text that is not UTF-8 gets another charset, Western European if evidence is weak; one stray byte changes nothing."""
    assert decode(raw) == text


def test_source_comment_is_decoded(summary: Make) -> None:
    """The comment of an old source is decoded to the letters that its author wrote."""
    source = (
        "/* Sorts boats, after an idea of François Pinard. */\n".encode("latin-1") + b"int sort(int a)\n{\n  return a;\n}\n" * 40
    )
    assert summary(b"a.c", source).text("description") == "Sorts boats, after an idea of François Pinard."
