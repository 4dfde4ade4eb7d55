"""Full text on request: it replaces the partial text, and nothing else of a summary changes."""

import io
import json
from pathlib import Path

import pytest

from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from processors.query.words import words
from tests.processors.essence.summarize.conftest import SAMPLES as FOLDER
from tests.processors.essence.summarize.packages import document

FULL = 1 << 20
SAMPLES = sorted(path for path in FOLDER.iterdir() if path.suffix != ".json")
TEXTLESS = {"Audio", "Font", "GitBundle", "Image", "SQLite", "ScientificData", "Video", "Binary", "Unrecognized"}
"""Types of samples that have no text."""
OTHER: dict[str, list[str | bytes]] = {"language": [], "terms": []}
"""Attributes derived from the text that is kept, or left out."""


def summarize_sample(path: Path, full: int) -> tuple[str, Found]:
    """Return the type of a sample and its summary."""
    body, name = path.read_bytes(), path.name.encode()
    kind, found = recognize(name, body[:65_536]), Found(full)
    try:
        summarize(Facts(name, "http://example.org/x", kind.type, kind.content_type, len(body), 0, ""), io.BytesIO(body), found)
    except SummaryError as error:
        found.add("error", str(error))
    return kind.type, found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_full_text_contains_partial_text(path: Path) -> None:
    """The full text has every word of the partial text that it replaces; the other attributes are unchanged."""
    kind, part = summarize_sample(path, 0)
    _, whole = summarize_sample(path, FULL)
    full = whole.attributes.pop("full-text", [])
    partial = part.attributes.pop("partial-text", [])
    assert not {"partial-text", "full-text"} & (whole.attributes.keys() | part.attributes.keys())
    assert len(full) == (kind not in TEXTLESS)
    assert set(words("".join(map(str, partial)))) <= set(words("".join(map(str, full))))
    assert {**whole.attributes, **OTHER} == {**part.attributes, **OTHER}


@pytest.mark.parametrize(("name", "kind"), [("x.txt", "RawText"), ("x.html", "HTML"), ("x.py", "Python"), ("x.json", "JSON")])
def test_distant_word_is_in_full_text(name: str, kind: str) -> None:
    """A word far beyond the partial text is in the full text, up to the limit; no text is longer than requested."""
    middle = "".join(f"some words of paragraph {number}.\n\n" for number in range(3_000))
    body = {
        "RawText": f"{middle} serendipity\n",
        "HTML": f"<html><body><nav>menu of it</nav><main>{middle} serendipity</main></body></html>",
        "Python": "".join(f"number_{number} = {number}\n" for number in range(8_000)) + "serendipity = 1\n",
        "JSON": '{"a": [' + ", ".join(map(str, range(20_000))) + ', "serendipity"]}',
    }[kind].encode()
    for full in (0, 1_000, FULL):
        found = Found(full)
        summarize(Facts(name.encode(), "http://example.org/x", kind, "", len(body), 0, ""), io.BytesIO(body), found)
        assert ("serendipity" in found.said) == (full == FULL)
        assert len(found.said.encode()) <= (full or 65_536)


@pytest.mark.parametrize(("kind", "head"), [("RawText", ""), ("Python", ""), ("Mail", "Subject: x\nFrom: y\n\n")])
def test_full_text_reaches_its_limit(kind: str, head: str) -> None:
    """A full text reaches its limit also where that exceeds what is read without a full text."""
    body = (head + "some words of it\n" * 150_000 + "serendipity\n").encode()
    found = Found(len(body))
    summarize(Facts(b"x", "http://example.org/x", kind, "", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("full-text").endswith("serendipity")


def test_markup_does_not_count_against_limit() -> None:
    """Of a book's chapter, markup does not count against the limit of the text."""
    head = f"<html><head><style>{'p {} ' * 2_000}</style></head><body><p>serendipity</p></body></html>"
    body = document("EPUB", head)
    found = Found(1_000)
    summarize(Facts(b"x", "http://example.org/x", "EPUB", "", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("full-text") == "serendipity"


@pytest.mark.parametrize("body", ['<meta name="robots" content="noindex"><p>serendipity', '<p><img src="serendipity.png">'])
def test_page_without_text_has_no_full_text(body: str) -> None:
    """A page that forbids indexing, or has no text, has no full text: markup is not text."""
    found = Found(FULL)
    facts = Facts(b"x.html", "http://example.org/x", "HTML", "text/html", len(body), 0, "")
    summarize(facts, io.BytesIO(body.encode()), found)
    assert found.attributes.pop("title") == ["x.html"]
    assert found.attributes == ({"robots": ["noindex"]} if "noindex" in body else {})


def test_words_beyond_partial_text_are_terms() -> None:
    """Words of a long document beyond its partial text are its terms, the most frequent first, in bounds."""
    rare = "".join(f"term{number} " for number in range(1_000))
    body = f"{'The whale swims. ' * 1_000}\n\n{rare * 2} krill krill krill plankton plankton plankton plankton".encode()
    found = Found()
    summarize(Facts(b"x.txt", "http://example.org/x", "RawText", "text/plain", len(body), 0, ""), io.BytesIO(body), found)
    terms = found.text("terms").split()
    assert terms[:2] == ["plankton", "krill"]
    assert len(set(terms)) == len(terms) > 200
    assert not {"the", "whale", "swims"} & set(terms)
    assert len(found.text("terms").encode()) <= 2_048


@pytest.mark.parametrize("kind", ["HTML", "ManPage"])
def test_markup_is_not_a_term(kind: str) -> None:
    """Tags and scripts, and troff requests and fonts, are not terms; their contents are."""
    prose = "".join(f"Some words of paragraph number {number}.\n" for number in range(500))
    body = {
        "HTML": f"<html><style>hidden</style><p>{prose}</p><script>unseen()</script>sea<b>anemone</b></html>",
        "ManPage": f'.TH X 1\n.SH NAME\nx \\- y\n.SH DESCRIPTION\n{prose}.\\" unseen\n.B anemone\n\\fBcoral\\fP\n',
    }[kind].encode()
    found = Found()
    summarize(Facts(b"x", "http://example.org/x", kind, "", len(body), 0, ""), io.BytesIO(body), found)
    terms = set(found.text("terms").split())
    assert "anemone" in terms
    assert not {"hidden", "unseen", "script", "fbcoral"} & terms


def test_card_addresses_are_in_full_text_only() -> None:
    """Addresses of a card are in the full text only."""
    card = b"BEGIN:VCARD\nVERSION:3.0\nFN:Ann Oar\nADR:;;1 Quay St;Rowtown;;99;\nEMAIL:ann@example.org\nTEL:+1 555\nEND:VCARD\n"
    for full, text in ((FULL, "Ann Oar\n1 Quay St, Rowtown, 99\nann@example.org\n+1 555"), (0, "Ann Oar")):
        found = Found(full)
        summarize(Facts(b"x.vcf", "http://h/x", "Calendar", "", len(card), 0, ""), io.BytesIO(card), found)
        assert found.said == text


def test_notebook_code_is_in_full_text() -> None:
    """The code of a notebook is in the full text between its prose; keywords come from the prose only."""
    prose = {"cell_type": "markdown", "source": ["# Oars\n", "Rowing, rowing."]}
    code = {"cell_type": "code", "source": "row(oars, oars, oars)"}
    summarize_sample = {}
    for full in (0, FULL):
        found = Found(full)
        body = json.dumps({"cells": [prose, code], "metadata": {}}).encode()
        summarize(Facts(b"x.ipynb", "", "Notebook", "application/json", len(body), 0, ""), io.BytesIO(body), found)
        summarize_sample[full] = found
    assert summarize_sample[FULL].text("full-text") == "# Oars\nRowing, rowing.\n\nrow(oars, oars, oars)"
    assert summarize_sample[0].text("partial-text") == "# Oars\nRowing, rowing."
    assert summarize_sample[FULL].attributes["keywords"] == summarize_sample[0].attributes["keywords"]
