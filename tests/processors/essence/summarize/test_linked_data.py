"""JSON-LD of a page: title, authors, dates, description and keywords, and the text of a page without any."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from processors.essence.summarize import Facts, Found, summarize

Make = Callable[..., Found]
ARTICLE = {
    "@context": "https://schema.org",
    "@type": "NewsArticle",
    "headline": "Dyke &amp; harbour",
    "author": [{"@type": "Person", "name": "Ann Sea"}, {"@type": "Organization", "name": ["Lake Press"]}],
    "datePublished": "2024-03-05T10:00:00+01:00",
    "dateModified": "2024-03-06",
    "description": "What the\nsea took.",
    "keywords": ["dyke", {"@type": "DefinedTerm", "name": "harbour"}],
    "inLanguage": "en-GB",
    "articleBody": "The sea came.\n\nThe dyke held.",
}


def page(*values: Any, head: str = "<title>Site</title>", body: str = "<div id=app></div>") -> bytes:
    """Return a page with scripts of JSON-LD."""
    scripts = "".join(f'<script type="application/ld+json">{json.dumps(value)}</script>' for value in values)
    return f"<!doctype html><html><head>{head}{scripts}</head><body>{body}</body></html>".encode()


@pytest.mark.parametrize(
    "values",
    [
        [ARTICLE],
        [[{"@type": "Organization", "name": "Press"}, ARTICLE]],
        [{"@context": "https://schema.org", "@graph": [{"@type": "WebSite", "name": "Site"}, ARTICLE]}],
        [{"@type": "WebPage", "name": "Site", "mainEntity": ARTICLE}],
        [ARTICLE | {"@type": ["BlogPosting", "http://schema.org/Article"]}, ARTICLE | {"@type": "schema:Article"}],
        [{"@type": "BreadcrumbList", "itemListElement": []}, {"@type": "VideoObject", "name": "Film"}, ARTICLE],
    ],
)
def test_article_gives_attributes_and_text_of_empty_page(values: list[Any], summary: Make) -> None:
    """The article of a page gives title, authors, dates, description, keywords, language, and the text that a script shows."""
    found = summary(b"x.html", page(*values))
    assert found.attributes == {
        "title": ["Dyke & harbour"],
        "author": ["Ann Sea", "Lake Press"],
        "date": ["2024-03-05T09:00:00Z"],
        "modification-date": ["2024-03-06"],
        "description": ["What the sea took."],
        "keywords": ["dyke", "harbour"],
        "language": ["en"],
        "partial-text": ["The sea came.\nThe dyke held."],
    }


@pytest.mark.parametrize("kind", ["Product", "Recipe", "Event", "https://schema.org/SoftwareApplication"])
def test_thing_is_subject_of_page_without_heading(kind: str, summary: Make) -> None:
    """The name of a product, recipe or event is the title of a page without headings, or of one that has it in title or heading."""
    thing = {"@type": kind, "name": "Ash oar", "description": "Two metres.", "brand": {"@type": "Brand", "name": "Lake"}}
    for body, title in (("", "Ash oar"), ("<h1>An Ash Oar for you</h1>", "Ash oar"), ("<h1>Rowing</h1>", "Site")):
        found = summary(b"x.html", page(thing, body=body))
        assert (found.text("title"), found.text("description")) == (title, "Two metres.")


def test_list_of_works_is_not_the_page(summary: Make) -> None:
    """Several works with different titles are a list: they give nothing, and the item of the page does."""
    works = [ARTICLE, ARTICLE | {"headline": "Other"}, {"@type": "CollectionPage", "name": "All", "description": "A list."}]
    found = summary(b"x.html", page({"@graph": works}))
    assert found.attributes == {"title": ["Site"], "description": ["A list."]}


def test_page_precedes_its_data(summary: Make) -> None:
    """Text, description, date and keywords that a page states are kept; the authors are those of both."""
    head = (
        '<title>Site</title><meta name=description content=Own><meta name=date content=2023-01-01><meta name=author content="Bob">'
    )
    found = summary(b"x.html", page(ARTICLE, head=head + "<meta name=keywords content=own>", body="<p>Own words.</p>"))
    assert found.text("partial-text") == "Own words."
    assert (found.text("description"), found.text("date"), found.attributes["keywords"]) == ("Own", "2023-01-01", ["own"])
    assert found.attributes["author"] == ["Bob", "Ann Sea", "Lake Press"]
    assert found.text("title") == "Dyke & harbour"


def test_full_text_has_body_of_empty_page() -> None:
    """A full text has the article of a page whose own text is navigation alone, beside that."""
    body = page(ARTICLE | {"articleBody": "<p>The <b>sea</b> came.</p><p>Held.</p>"}, body="<nav>Home</nav>")
    found = Found(1 << 20)
    summarize(Facts(b"x.html", "http://example.org/x", "HTML", "text/html", len(body), 0, ""), io.BytesIO(body), found)
    assert found.text("full-text") == "Home\nThe sea came.\nHeld."


@pytest.mark.parametrize(
    ("author", "names"),
    [
        ("Ann Sea", ["Ann Sea"]),
        ({"@id": "#ann"}, ["Ann Sea"]),
        ("https://example.org/#bob", ["Bob Lake"]),
        ("https://www.facebook.com/thepaper", []),
        ([{"@type": "Person", "url": "https://example.org/ann"}, {"name": "//example.org/x"}, "www.example.org"], []),
        ([None, 7, {"@id": [{}]}, {"name": {"@value": "x"}}, {"name": " Ann\n Sea "}, "Ann Sea"], ["Ann Sea"]),
    ],
)
def test_author_is_a_name(author: Any, names: list[str], summary: Make) -> None:
    """An author is a name, stated or referred to by an identifier, never a URL."""
    people = [{"@type": "Person", "@id": "#ann", "name": "Ann Sea"}, {"@id": "https://example.org/#bob", "name": "Bob Lake"}]
    found = summary(b"x.html", page({"@graph": [*people, {"@type": "Article", "headline": "A", "author": author}]}))
    assert found.attributes.get("author", []) == names


@pytest.mark.parametrize("name", ["article:author", "author", "dc.creator"])
@pytest.mark.parametrize(
    "value", ["https://www.facebook.com/thepaper", "//example.org/ann", "www.example.org/a", "facebook.com/ann"]
)
def test_url_is_no_author(name: str, value: str, summary: Make) -> None:
    """A URL in the metadata of a page is no author; names beside it are."""
    body = f'<title>T</title><meta property="{name}" content="{value}"><meta name="author" content="Ann / Bob"><p>x'
    assert summary(b"x.html", body.encode()).attributes["author"] == ["Ann / Bob"]
    assert "author" not in summary(b"x.json", json.dumps({"author": value}).encode()).attributes
    assert "author" not in summary(b"x.md", f"---\nauthor: {value}\n---\nText.\n".encode()).attributes


@pytest.mark.parametrize(
    ("script", "title"),
    [
        ('<script type="application/ld+json">//<![CDATA[\n{"@type":"Article","headline":"A\n B"}\n//]]></script>', "A B"),
        ('<script type="Application/LD+JSON; charset=utf-8"><!-- {"@type":"Article","headline":"A"} --></script>', "A"),
        ('<script type="application/ld&#x2B;json">{"@type":"Article","headline":"A"};</script>', "A"),
        ('<script type="application/ld+json">{"@type":"Article","headline":"A"</script>', "Site"),
        ('<script type="application/ld+json">{"@type":"Article","headline":7,"author":[[1]],"keywords":{}}</script>', "Site"),
        ('<script type="application/ld+json">' + "[" * 50_000 + "</script>", "Site"),
        ('<script type="application/ld+json">{"n":' + "9" * 5_000 + "}</script>", "Site"),
        ('<script type="application/ld+json">' + " " * 200_000 + ";</script>" * 2, "Site"),
        ('<script type="application/ld+json">' + json.dumps({"@graph": [{"@graph": [{}] * 999}] * 999}) + "</script>", "Site"),
        ('<script type="application/json">{"@type":"Article","headline":"A"}</script> ld+json', "Site"),
        ('<script type="application/ld+json"></script><svg><script type="application/ld+json"/></svg>', "Site"),
    ],
)
def test_malformed_data_is_skipped(script: str, title: str, summary: Make) -> None:
    """Data in wrappers is read; what is malformed, too deep, too much, or of another type is skipped."""
    found = summary(b"x.html", f"<html><title>Site</title>{script}<body>".encode())
    assert found.text("title") == title
    assert "error" not in found.attributes


def test_unindexed_page_keeps_no_data(summary: Make) -> None:
    """A page that forbids indexing keeps nothing of its JSON-LD."""
    found = summary(b"x.html", page(ARTICLE, head="<meta name=robots content=noindex>"))
    assert found.attributes == {"robots": ["noindex"], "title": ["x.html"]}


@pytest.mark.parametrize("script", ["", "{}"])
def test_many_scripts_are_read_in_linear_time(script: str, summary: Make) -> None:
    """Many scripts take no more time for each than a few do, and leave the page's title."""
    many = f'<script type="application/ld+json">{script}</script>' * 200_000
    assert summary(b"x.html", f"<html><title>Locks</title>{many}<p>text".encode()).text("title") == "Locks"
