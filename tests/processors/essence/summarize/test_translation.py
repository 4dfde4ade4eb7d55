"""Message catalogs: project, progress and texts, in each of their formats."""

import io
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from processors.essence.summarize import Facts, Found, SummaryError, summarize

Make = Callable[..., Found]
SEEDS = Path(__file__).resolve().parents[3] / "samples" / "fuzz" / "summarize-translation"
COUNTS = [("sea.po", "5", "3", "1"), ("big.mo", "3", "3", "0"), ("linguist.ts", "3", "2", "0"), ("xliff.xlf", "3", "1", "1")]


@pytest.mark.parametrize(("name", "messages", "translated", "fuzzy"), COUNTS)
def test_messages_are_counted(summary: Make, name: str, messages: str, translated: str, fuzzy: str) -> None:
    """All messages, translated ones and fuzzy ones are counted; obsolete ones are not."""
    found = summary(name.encode(), (SEEDS / name).read_bytes())
    assert [found.text(key) for key in ("messages", "translated", "fuzzy")] == [messages, translated, fuzzy]
    assert "Boje" not in found.text("partial-text")


def test_header_gives_project_translator_and_date(summary: Make) -> None:
    """The header gives project, translator and date; placeholders that nobody filled in are left out."""
    found = summary(b"sea.po", (SEEDS / "sea.po").read_bytes())
    assert found.text("project") == "seacharts 1.2"
    assert found.text("author") == "Ute Meer <ute@example.org>"
    assert found.text("date") == "1995-04-02T10:30:00Z"
    assert found.text("title") == "seacharts 1.2: de"
    template = b'msgid ""\nmsgstr ""\n"Project-Id-Version: PACKAGE VERSION\\n"\n"Last-Translator: FULL NAME <EMAIL@ADDRESS>\\n"\n'
    found = summary(b"sea.pot", template + b'\nmsgid "Sea"\nmsgstr ""\n')
    assert "author" not in found.attributes
    assert found.text("title") == "sea.pot"


@pytest.mark.parametrize(
    ("url", "language"),
    [
        ("file:///usr/share/locale/pt_BR/LC_MESSAGES/sea.mo", "pt_BR"),
        ("file:///sea/de.po", "de"),
        ("file:///sea/sea_sr@latin.po", "sr@latin"),
        ("file:///sea/messages.po", ""),
    ],
)
def test_language_falls_back_to_path_or_name(url: str, language: str) -> None:
    """Without a language in the header, the path or the name of the file gives it."""
    name, found = url.rpartition("/")[2].encode(), Found()
    body = b'msgid "sea"\nmsgstr "See"\n'
    summarize(Facts(name, url, "Translation", "text/x-gettext-translation", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("language") == language


def test_charset_of_header_is_used(summary: Make) -> None:
    """The charset in the header is that of the messages."""
    head = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-2\\n"\n\n'
    found = summary(b"cs.po", head + 'msgid "sea"\nmsgstr "moře"\n'.encode("iso-8859-2"))
    assert "moře" in found.text("partial-text")


@pytest.mark.parametrize("order", ["<", ">"])
def test_invalid_offsets_are_damage(order: str) -> None:
    """Tables beyond the end are damage; messages beyond it are empty; a message of 4 GB is read as far as it exists."""

    def made(*numbers: int, rest: bytes = b"") -> Found:
        body, found = struct.pack(f"{order}7I", 0x950412DE, *numbers, 0, 0) + rest, Found()
        summarize(Facts(b"x.mo", "http://example.org/x.mo", "Translation", "", len(body), 0, ""), io.BytesIO(body), found)
        return found

    for numbers in ((0, 0xFFFFFFFF, 28, 28), (0, 1, 0xFFFFFFF0, 28), (0, 2, 28, 28), (0x20000, 0, 28, 28)):
        with pytest.raises(SummaryError, match="Translation: "):
            made(*numbers)
    found = made(0, 1, 28, 36, rest=struct.pack(f"{order}4I", 0xFFFFFFFF, 44, 9, 0xFFFFFFF0) + b"a message")
    assert found.text("partial-text") == "a message"
    assert found.text("messages") == "1"


def test_overlapping_messages_take_bounded_time() -> None:
    """A catalog whose messages each span the whole file takes no longer than another."""
    count = 100_000
    table = struct.pack("<II", 4_000_000, 0) * count
    body = struct.pack("<7I", 0x950412DE, 0, count, 28, 28, 0, 0) + table
    began = time.process_time()
    summarize(Facts(b"x.mo", "http://example.org/x.mo", "Translation", "", len(body), 0, ""), io.BytesIO(body), Found())
    assert time.process_time() - began < 5
