"""Names in a zip without a declared charset."""

from __future__ import annotations

import codecs
import io
import zipfile
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.container import Budget, Damaged, UnnestLimits
from processors.essence.formats.zip import open_zip
from processors.essence.formats.zip_names import charset_of

NAMES: dict[str, Sequence[str]] = {
    "cp437": ("Übersicht.doc", "Straße und Hausnummer.txt", "Mädchen/Größe.html"),
    "cp850": ("São Paulo.txt", "Informações.doc", "Ærø/Ødegård.txt"),
    "cp866": ("Отчет.doc", "Новая папка/", "Новая папка/ПРАЙС.XLS", "№ 5.txt"),
    "cp1251": ("Отчет за год.doc", "Новая папка/", "Приложение №1.txt"),
    "cp852": ("Žádost o příspěvek.doc", "Účetní závěrka/", "Účetní závěrka/Výkaz zisků.xls"),
    "cp1252": ("Œuvres complètes – l’index.txt", "Naïveté.doc"),
    "cp932": ("新しいフォルダー/", "新しいフォルダー/資料一覧.xls", "お知らせ.txt"),
    "gb18030": ("新建文件夹/", "新建文件夹/说明文档.txt", "使用帮助.doc"),
    "cp950": ("新增資料夾/", "新增資料夾/使用說明.txt", "會議記錄.doc"),
    "cp949": ("새 폴더/", "새 폴더/사용 설명서.txt", "보고서.hwp"),
}


def packed(names: Sequence[str], charset: str) -> bytes:
    """Return a zip as Windows writes it: names in a charset that is not declared."""
    out, raw = io.BytesIO(), [name.encode(charset) for name in names]
    with zipfile.ZipFile(out, "w") as archive:
        for number, name in enumerate(raw):
            info = zipfile.ZipInfo(chr(ord("A") + number) * len(name))
            info.create_system = 0
            archive.writestr(info, b"" if name.endswith(b"/") else b"x")
    made = out.getvalue()
    for number, name in enumerate(raw):
        made = made.replace(bytes([ord("A") + number]) * len(name), name)
    return made


@pytest.mark.parametrize("charset", NAMES)
def test_charset_of_names_is_detected(charset: str) -> None:
    """The charset of names is determined from all of them together, for each charset of Windows."""
    names = NAMES[charset]
    data = packed(names, charset)
    members = list(open_zip(io.BytesIO(data), Budget(UnnestLimits(), len(data))))
    assert [member.name.decode() for member in members] == list(names)


@pytest.mark.parametrize("charset", NAMES)
def test_zip_without_directory_has_same_names(charset: str) -> None:
    """A zip with a lost directory has the same names: otherwise each member would become another one of the same content."""
    names = NAMES[charset]
    data = packed(names, charset)
    torn = data[: data.index(b"PK\x01\x02")]
    members = open_zip(io.BytesIO(torn), Budget(UnnestLimits(), len(torn)))
    assert [next(members).name.decode() for _ in names] == list(names)
    with pytest.raises(Damaged):
        next(members)


@pytest.mark.parametrize("raw", [b"a\xb0\xb1\xb2", b"\xb3a\xc3 b\xc4", bytes(range(128, 256))])
def test_unexplained_names_are_in_dos_code_page(raw: bytes) -> None:
    """Names that make no words in any charset are read in the first PC's code page, which has a character for each byte."""
    assert charset_of([raw]) == charset_of([]) == "cp437"


@given(st.lists(st.binary(max_size=12), max_size=4))
def test_any_names_get_a_python_charset(names: list[bytes]) -> None:
    """Any bytes as names are assigned a charset that Python has."""
    assert codecs.lookup(charset_of(names))
