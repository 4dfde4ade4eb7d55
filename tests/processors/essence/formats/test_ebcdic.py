"""Texts of mainframes."""

import os
import random

import pytest

from processors.essence.formats.charsets import ebcdic
from processors.essence.formats.text import identify
from processors.essence.recognize import recognize
from processors.essence.recognize.predicates import is_text

TEXTS = {
    "cp037": "The manatee eats 150 pounds of plants a day!\nIt sleeps (half of it) under water [see the list].\n",
    "cp500": "Stop! The list [of names] is complete! Nothing else is to be done here, as we said before!\n",
    "cp273": "Die Größe der Übung hängt von den Wünschen der Schüler ab. Köln und Düsseldorf sind größer als Öhringen.\n",
    "cp424": "שלום עולם, מה שלומך היום? הספר הזה עוסק בבעלי חיים שחיים במים ובנהרות הגדולים.\n",
    "cp875 capitals": "ΑΥΤΟ ΤΟ ΒΙΒΛΙΟ ΕΙΝΑΙ ΓΙΑ ΤΑ ΖΩΑ ΠΟΥ ΖΟΥΝ ΣΤΟ ΝΕΡΟ ΚΑΙ ΣΤΑ ΠΟΤΑΜΙΑ ΤΗΣ ΧΩΡΑΣ.\n",
    "cp875": "Καλημέρα κόσμε, πώς είσαι σήμερα; Το βιβλίο αυτό είναι για τα ζώα που ζουν στο νερό.\n",
}


@pytest.mark.parametrize("page", TEXTS)
def test_text_in_ebcdic_is_recognized_and_decoded(page: str) -> None:
    """A text in EBCDIC is a text, in the code page in which it makes words; its line ends are line feeds."""
    raw = TEXTS[page].encode(page.partition(" ")[0])
    for line_end in (b"\x25", b"\x15", b"\x0d\x25"):
        whole = raw.replace(b"\x25", line_end) * 3
        assert is_text(whole)
        assert recognize(b"LETTER", whole).type == "RawText"
        text = identify(whole).text.replace("\r", "")
        assert text == TEXTS[page] * 3


def test_cards_without_line_ends_are_recognized() -> None:
    """Records of 80 columns in capitals, without line ends, are a text."""
    cards = "".join(line.ljust(80) for line in ("MOVE THE TOTAL TO THE REPORT LINE.", "WRITE REPORT AFTER ADVANCING 2 LINES."))
    assert identify(cards.encode("cp037")) == (cards, "cp037")


def test_arabic_of_mainframes_is_decoded() -> None:
    """Code page 420 has a letter in the forms of its places in a word; decoded they are one letter."""
    page = {char: bytes((number,)) for number, char in reversed(list(ebcdic._table("cp420").items()))}
    text = "مرحبا بكم في المكتبة العامة، هذا الكتاب عن الحيوانات التي تعيش في الماء\n" * 2
    assert identify(b"".join(page[char] for char in text)) == (text, "cp420")


@pytest.mark.parametrize(
    "raw",
    [
        b"root@example.org,admin@example.org,guest@example.org,nobody@example.org",
        "　日本語の　文章です。　全角の　空白が　あります。".encode("cp932") * 3,
        "Привет, мир! ".encode("koi8-r") * 9,
        b"@" * 400,
        b"M@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n" * 5,
        b"\x40\x59\0\0\0\0\0\0" * 50,
    ],
    ids=("addresses", "Shift_JIS", "Cyrillic", "signs", "uuencode", "numbers"),
)
def test_other_bytes_are_not_ebcdic(raw: bytes) -> None:
    """Bytes with many 0x40 that make no words in EBCDIC are not in it."""
    assert ebcdic.page_of(raw) == ""


def test_random_bytes_are_not_ebcdic() -> None:
    """Random bytes are no text, also without controls."""
    chance = random.Random(5)
    for _ in range(200):
        raw = bytes(chance.choice((0x40, chance.randrange(0x40, 0x100))) for _ in range(400))
        assert ebcdic.page_of(raw) == ""
    assert not is_text(os.urandom(4_096))
