"""Decoding of bytes, with and without a declared charset, in the formats that declare one."""

import base64
import io
from collections.abc import Callable

import pytest

from processors.essence.formats.charsets import encode
from processors.essence.formats.mail.mime import message
from processors.essence.formats.text import decode, identify
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


JAPANESE = (
    "東京都は日本の首都であり、人口は約千四百万人である。",
    "会議の資料",
    "吾輩は猫である。名前はまだ無い。",
    "①番目は髙橋様です。",
    "カタカナ",
)
KOREAN = ("오늘 날씨가 좋습니다. 공원에 갑시다.", "다음 주 회의 자료를 보내 드립니다.", "서울특별시 강남구")
CHINESE = ("关于召开镕基同志座谈会的通知", "今天天气很好,我们去公园散步吧。", "中华人民共和国")
TAIWANESE = ("關於召開會議的通知", "中華民國", "請各位同事準時出席")
SHORT = [
    *((text, name) for text in JAPANESE for name in ("euc-jp", "cp932", "iso-2022-jp")),
    *((text, "cp949") for text in KOREAN),
    *((text, "gb18030") for text in CHINESE),
    *((text, "big5") for text in TAIWANESE),
]


@pytest.mark.parametrize(("text", "name"), SHORT)
def test_undeclared_sentence_of_the_far_east_is_recognized(text: str, name: str) -> None:
    """One sentence suffices to recognize its charset, also where its label is wrong or means ASCII."""
    assert identify(encode(text, name)) == (text, name)
    assert decode(encode(text, name), "utf-8") == text
    if name == "iso-2022-jp":
        assert decode(encode(text, name), "us-ascii") == text


@pytest.mark.parametrize("label", ["iso-8859-1", "us-ascii", "gb2312", "euc-jp", "shift_jis", "windows-1251", "big5"])
@pytest.mark.parametrize("text", [CZECH, RUSSIAN, *JAPANESE, *KOREAN])
def test_label_that_utf8_contradicts_gives_way(text: str, label: str) -> None:
    """Valid UTF-8 is UTF-8, whatever its label says."""
    assert identify(text.encode(), label) == (text, "utf-8")


@pytest.mark.parametrize(
    ("raw", "label", "text"),
    [
        ("SÍŤ".encode("iso-8859-2"), "iso-8859-2", "SÍŤ"),
        ("«МГВ»".encode("cp1251"), "windows-1251", "«МГВ»"),
        ("联通".encode("gb2312"), "gb2312", "联通"),
        (b"plain ASCII", "utf-16", "plain ASCII"),
        (b"\x1b(B\x1b[1mbold", "", "\x1b(B\x1b[1mbold"),
        ("会议通知".encode("gbk")[:-1], "gb2312", "会议通\ufffd"),
    ],
    ids=("Czech", "Russian", "Chinese", "UTF-16", "terminal", "cut"),
)
def test_label_without_contradiction_is_kept(raw: bytes, label: str, text: str) -> None:
    """Two bytes that could be UTF-8, a cut character or the escapes of a terminal are no evidence against a label."""
    assert decode(raw, label) == text


WIDER = [
    ("iso-2022-jp", "①会議の髙橋様"),
    ("shift_jis", "①会議の髙橋様"),
    ("euc-jp", "①会議の髙橋様"),
    ("gb2312", "朱镕基同志的会议"),
    ("big5", "裏面的 5€ 價格"),
    ("ks_c_5601-1987", "펲시 방각하 회의"),
    ("euc-kr", "똠방각하 똑똑한 회의"),
    ("iso-8859-9", "“Işık” yazısı"),
]


def _encoded(label: str, text: str) -> bytes:
    return encode(
        text, {"gb2312": "gbk", "shift_jis": "cp932", "iso-8859-9": "cp1254"}.get(label, "cp949" if "k" in label else label)
    )


def test_euro_of_chinese_big5_is_decoded() -> None:
    """The euro sign that Microsoft added to Big5 is decoded."""
    assert decode("價格 5€ 裏".encode("cp950"), "big5") == "價格 5€ 裏"


@pytest.mark.parametrize(("label", "text"), WIDER, ids=[label for label, _ in WIDER])
def test_message_in_the_superset_of_its_label_is_readable(label: str, text: str, summary: Make) -> None:
    """Encoded words, the name of an attachment and the text of a message are decoded as mail programs do."""
    raw = _encoded(label, text)
    coded = base64.b64encode(raw).decode()
    head = f"From: a@example.org\r\nSubject: =?{label}?B?{coded}?=\r\nContent-Type: text/plain; charset={label}\r\n\r\n"
    found = summary(b"x.eml", head.encode() + raw + b"\r\n")
    assert (found.text("title"), found.text("partial-text").strip()) == (text, text)
    bare = head.replace(f"=?{label}?B?{coded}?=", "@").encode().replace(b"@\r", raw + b"\r")
    assert summary(b"x.eml", bare + b"text\r\n").text("title") == text
    escaped = "".join(f"%{byte:02X}" for byte in raw)
    for name in (f"filename*={label}''{escaped}", f'filename="=?{label}?B?{coded}?="'):
        attached = f"Content-Disposition: attachment; {name}\r\n\r\nx".encode()
        assert [part.filename for part in message(io.BytesIO(attached))[1]] == [text]


@pytest.mark.parametrize(("label", "text"), WIDER, ids=[label for label, _ in WIDER])
def test_page_in_the_superset_of_its_label_is_readable(label: str, text: str, summary: Make) -> None:
    """A page that declares its charset in a meta element, an XML declaration or by HTTP is decoded as browsers do."""
    page = b"<title>" + _encoded(label, text) + b"</title><p>" + _encoded(label, text) + b"</p>"
    whole = (
        f'<!doctype html><meta charset="{label}">'.encode() + page,
        f"<?xml version='1.0' encoding='{label}'?>".encode() + page,
    )
    for raw, charset in ((whole[0], ""), (whole[1], ""), (page, label), (whole[0], "utf-8")):
        found = summary(b"x.html", raw, charset=charset)
        assert (found.text("title"), found.text("partial-text")) == (text, text)


@pytest.mark.parametrize(("label", "text"), WIDER, ids=[label for label, _ in WIDER])
def test_xml_in_the_superset_of_its_label_is_readable(label: str, text: str, summary: Make) -> None:
    """An XML document is decoded by its declaration, or by the one of HTTP, which counts before it."""
    feed = "<rss version='2.0'><channel><title>" + text + "</title></channel></rss>"
    for declared, charset in ((label, ""), ("utf-8", label)):
        raw = f"<?xml version='1.0' encoding='{declared}'?>".encode() + _encoded(label, feed)
        assert summary(b"x.xml", raw, charset=charset).text("title") == text


@pytest.mark.parametrize(("label", "text"), WIDER, ids=[label for label, _ in WIDER])
def test_text_in_the_superset_of_its_label_is_readable(label: str, text: str, summary: Make) -> None:
    """A text file is decoded by the label that its source declares."""
    found = summary(b"x.txt", _encoded(label, f"{text}\n\n{text}\n"), charset=label)
    assert text in found.text("partial-text")


def test_html_part_of_a_message_may_declare_its_charset_itself(summary: Make) -> None:
    """An HTML part without a charset in its header has the one of its meta element."""
    page = b'<html><meta charset="shift_jis"><p>' + "①髙橋".encode("cp932") + b"</p></html>"
    assert summary(b"x.eml", b"Subject: x\r\nContent-Type: text/html\r\n\r\n" + page).text("partial-text") == "①髙橋"


def test_raw_name_of_an_attachment_has_the_charset_of_its_part() -> None:
    """Bytes that are not UTF-8 in the name of an attachment are in the charset that its part declares."""
    raw = "报告镕.txt".encode("gbk")
    head = b'Content-Type: text/plain; charset=gb2312\r\nContent-Disposition: attachment; filename="' + raw + b'"\r\n\r\nx'
    assert [part.filename for part in message(io.BytesIO(head))[1]] == ["报告镕.txt"]


def test_summary_of_a_text_in_ebcdic_is_readable(summary: Make) -> None:
    """A text file of a mainframe is summarized like any other."""
    text = "The manatee and the dugong\n\nBoth of them live in shallow waters and eat plants.\n"
    found = summary(b"LETTER", text.encode("cp037") * 2)
    assert found.text("title") == "The manatee and the dugong"
    assert "shallow waters" in found.text("partial-text")


@pytest.mark.parametrize("label", ["utf-16", "utf-16le", "utf-32"])
def test_wide_label_of_narrow_bytes_gives_way(label: str) -> None:
    """Text in UTF-8 without any zero byte is not in an encoding of several bytes for each letter."""
    assert decode("body café words".encode(), label) == "body café words"
    assert decode("body café".encode("utf-16-le"), "utf-16le") == "body café"
