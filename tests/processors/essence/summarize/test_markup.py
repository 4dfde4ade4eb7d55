"""XML documents: people, languages, entities, embedded pages."""

from collections.abc import Callable

from processors.essence.summarize import Found

Make = Callable[..., Found]
BOOK = b"""<?xml version="1.0"?>
<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "http://example.org/docbook.dtd" [
<!ENTITY boat "Nixe">
<!ENTITY many "&boat;&boat;&boat;">
<!ENTITY file SYSTEM "file:///etc/passwd">
]>
<book xml:lang="de"><bookinfo><title>Of the &boat; &mdash; H<sub>2</sub>O</title>
<author><firstname>Ann</firstname><surname>Sea</surname><contrib>All of it</contrib></author><pubdate>1995</pubdate></bookinfo>
<para>She is the &boat;, and &many; and &file; too.</para></book>"""


def test_docbook_names_entities_and_language(summary: Make) -> None:
    """Names are words; entities declared in the document are expanded, others are not; the language is that of the root element."""
    found = summary(b"x.docbook", BOOK)
    assert found.text("title") == "Of the Nixe \u2014 H2O"
    assert found.attributes["author"] == ["Ann Sea"]
    assert found.text("language") == "de"
    assert found.text("date") == "1995"
    assert "She is the Nixe, and  and  too." in found.text("partial-text")


def test_nested_entities_are_not_expanded(summary: Make) -> None:
    """Entities within entities are not expanded."""
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 50 if n else "sea"}">' for n in range(9))
    found = summary(b"x.xml", f"<!DOCTYPE a [{declared}]><a><title>&e8;</title></a>".encode())
    assert len(found.text("title")) < 100


def test_html_in_feed_is_text(summary: Make) -> None:
    """A feed description in HTML gives the text that it displays."""
    page = b"&lt;p&gt;All &amp;amp; &lt;b&gt;boats&lt;/b&gt;&lt;/p&gt;"
    feed = b"<rss><channel><title>Sea</title><item><description>%b</description></item></channel></rss>" % page
    found = summary(b"x.rss", feed)
    assert found.attributes["description"] == ["All & boats"]
    assert "<p>" not in found.text("partial-text")


def test_drawing_format_is_not_text(summary: Make) -> None:
    """The Dublin Core format of a drawing is neither its text nor its title."""
    work = '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:format>image/svg+xml</dc:format><dc:type/></m><text>Ferns</text>'
    found = summary(b"lake.svg", f'<svg xmlns="http://www.w3.org/2000/svg">{work}</svg>'.encode())
    assert found.text("partial-text") == "Ferns"
    assert "svg+xml" not in found.text("title")
