"""Language of a text: text that is not prose has none, and a language other than English is given only if it is certain."""

from collections.abc import Callable

import pytest

from processors.essence.summarize import Found
from processors.essence.summarize._general import language
from processors.essence.summarize.text._prose import prose, told

Make = Callable[..., Found]

NAMES = (
    "Alban Crequy <alban.crequy@collabora.co.uk>\nAlexander Larsson <alexl@redhat.com>\nAntoine Jacoutot <ajacoutot@gnome.org>\n"
)
FIELDS = (
    "Files: *\nCopyright: 1997-2022, Daniel Stenberg\n 2004 Göran Weinholt <goran@w.se>\n 2011 Bastien Nocera\nLicense: curl\n\n"
)
LOG = (
    "commit 2e9f8a511dc01ef9ffc59c90f1cb5082e052da06\nAuthor: Alan Coopersmith <a@b.com>\n\n    Fix a crash when reading files\n\n"
)
TABLE = '<table>\n<tr>\n<th>Current</th>\n</tr>\n<td valign="top">\n<a href="#11.15.0">11.15.0</a><br/>\n'
LISTING = "int_fast8_t\tuint_least16_t INT_FAST8_MIN UINT8_WIDTH /usr/include/stdint.h c99 ISO-9899 "


@pytest.mark.parametrize("text", [NAMES * 9, FIELDS * 6, LISTING * 12, "Ben Laenen\nBesarion Gugushvili\nBhikkhu Pesala\n" * 9])
def test_lists_and_identifiers_have_no_language(text: str) -> None:
    """Lists of names, fields, identifiers and tags have no language."""
    assert told(text, language) == ""


@pytest.mark.parametrize(
    "text",
    [
        LOG * 9,
        f"{TABLE * 4}* build: make sure that the files are found\n* deps: update them when they change\n" * 3,
        NAMES * 3 + LOG * 12,
    ],
)
def test_english_among_addresses_and_names_is_english(text: str) -> None:
    """English text among addresses, hashes, tags and names is English."""
    assert told(text, language) == "en"


PROSE = {
    "de": "Das Programm liest eine Datei und gibt aus, was darin steht; ohne Namen einer Datei liest es, was man eingibt. ",
    "nl": "Dit programma leest een bestand en toont wat erin staat; zonder de naam van een bestand leest het wat je typt. ",
    "it": "Questo programma legge un file e mostra il suo contenuto; senza il nome di un file legge quello che viene scritto. ",
    "fr": "Ce programme lit un fichier et affiche ce que contient le fichier; sans nom de fichier, il lit ce que vous tapez. ",
    "zh": "这个程序读取文件并显示其内容；如果没有给出文件名，则读取用户输入的内容。",
    "ru": "Программа читает файл и выводит его содержимое; если имя файла не указано, читается то, что вводит пользователь. ",
    "ja": "このプログラムはファイルを読み込み、/etc/passwd などの内容を表示します。ファイル名がない場合は標準入力を読みます。",
}


@pytest.mark.parametrize("tongue", PROSE)
def test_sentences_have_their_language(tongue: str) -> None:
    """Sentences have their language despite names and options among them; so do words of scripts without spaces."""
    assert told(PROSE[tongue] * 4, language) == tongue
    assert told("".join(f"{line}\n--help /etc/x.conf\n" for line in [PROSE[tongue]] * 5), language) == tongue


@pytest.mark.parametrize(
    ("answer", "text", "meant"),
    [
        ("yue", "命令修改系統帳號檔, 刪除所有會參考的部份。使用者名稱必須存在。" * 4, "zh"),
        ("yue", "佢話唔知點解個檔案會喺嗰度, 你哋睇下啦。" * 6, "yue"),
        ("lb", "Benutzer können mit diesem Programm gelöscht werden, wenn sie keine Prozesse mehr haben. " * 3, "de"),
        ("lb", "Dëse Programm liest e Fichier vun engem Benotzer, an et ass fir all d'Leit. " * 3, "lb"),
        ("zxx", "Ein Satz, der in einer Sprache ist, von der das Modell nichts weiss. " * 3, ""),
    ],
)
def test_rare_language_needs_its_own_words(answer: str, text: str, meant: str) -> None:
    """A rare language is identified by its own words; otherwise the language that the model confuses with it is given."""
    assert told(text, lambda _: answer) == meant


def test_text_of_two_languages_has_none() -> None:
    """ASCII text whose two halves differ in language has none, unless the languages are closely related."""
    text = "some words that nobody has met before are repeated here and there " * 10

    def asked(*answers: str) -> Callable[[str], str]:
        left = list(answers)
        return lambda _: left.pop(0)

    assert told(text, asked("la", "so", "sn", "la")) == ""
    assert told(text, asked("ms", "id", "ms")) == "ms"
    assert told(text, asked("so", "so", "so")) == "so"


def test_tags_addresses_and_identifiers_are_removed() -> None:
    """Tags, addresses, paths and identifiers are removed completely, words are kept."""
    assert prose("a <b c='d'> e f@g.h /i/j k_l m9 www.n.o p-q, r. s/t").split() == ["a", "e", "p-q,", "r."]


def test_directive_language_is_not_document_language(summary: Make) -> None:
    """The language of a directive's code is not the language of the document."""
    text = "Reply\n=====\n\n.. literalinclude:: a.json\n   :language: json\n\n.. code::\n\n   x\n\nText.\n"
    assert "language" not in summary(b"a.7.rst", text.encode()).attributes
    assert summary(b"a.rst", b":language: de\n\nTitel\n=====\n\nText.\n").text("language") == "de"
