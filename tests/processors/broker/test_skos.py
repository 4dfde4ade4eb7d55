"""Taxonomies in SKOS as RDF/XML: concepts as views, and mistakes in one line each."""

from __future__ import annotations

import pytest

from processors.broker.outline import imported, read_taxonomy
from processors.broker.views import ViewError, as_name

OPEN = (
    '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ' xmlns:skos="http://www.w3.org/2004/02/skos/core#" xml:base="http://example.org/">\n'
)


def skos(*lines: str) -> bytes:
    """A file with these lines within rdf:RDF, from line 3 on."""
    return f"{OPEN}{chr(10).join(lines)}</rdf:RDF>".encode()


def concept(about: str, inner: str = "", label: str = "") -> str:
    """A concept on one line, by default with its identifier as label."""
    return f'<skos:Concept rdf:about="{about}"><skos:prefLabel>{label or about}</skos:prefLabel>{inner}</skos:Concept>'


def broader(about: str) -> str:
    """The property that names a concept above."""
    return f'<skos:broader rdf:resource="{about}"/>'


def views(data: bytes, *languages: str) -> dict[str, str]:
    """The queries of the views by path."""
    return {path: query for _, path, query in read_taxonomy(data, languages or ("en",))}


def test_concepts_are_views_below_the_broader_ones() -> None:
    """`broader` and `narrower`, in each of the notations of RDF/XML, say what is below what; parents are first."""
    data = skos(
        concept("unix", broader("computing")),
        concept("computing"),
        '<rdf:Description rdf:about="#shells" skos:prefLabel="shells"><skos:broader rdf:resource="unix"/></rdf:Description>',
        '<rdf:Description rdf:ID="shells"><rdf:type rdf:resource="http://www.w3.org/2004/02/skos/core#Concept"/></rdf:Description>',
        "<skos:Concept><skos:prefLabel>sea</skos:prefLabel><skos:narrower>"
        "<skos:Concept><skos:prefLabel>whales</skos:prefLabel></skos:Concept></skos:narrower></skos:Concept>",
        '<skos:ConceptScheme rdf:about="all"><skos:hasTopConcept rdf:resource="computing"/></skos:ConceptScheme>',
        concept("alone", broader("elsewhere")),
    )  # fmt: skip
    found = read_taxonomy(data)
    paths = [path for _, path, _ in found]
    assert set(paths) == {"computing", "computing/unix", "computing/unix/shells", "sea", "sea/whales", "alone"}
    assert all(path.rpartition("/")[0] in ("", *paths[:at]) for at, path in enumerate(paths))
    assert found[0] == (4, "computing", '"computing"')
    assert {view.path for view in imported({}, data, 1)} == set(paths)


def test_labels_and_notations_name_views() -> None:
    """The label in a language of the Broker is the name, alternative ones of it or of none are asked for; notations help out."""
    labels = '<skos:prefLabel xml:lang="de">Wale</skos:prefLabel><skos:prefLabel xml:lang="en-GB">Whales (all)</skos:prefLabel>'
    more = '<skos:altLabel xml:lang="en-GB">Cetacea "sea"</skos:altLabel><skos:altLabel xml:lang="de">Wal</skos:altLabel>'
    whales = skos(f'<skos:Concept rdf:about="w">{labels}{more}</skos:Concept>')
    assert views(whales) == {"Whales all": '"Whales (all)" OR "Cetacea  sea "'}
    assert views(whales, "de") == {"Wale": '"Wale" OR "Wal"'}
    assert views(whales, "fr") == {"Wale": '"Wale" OR "Wal"'}
    free = '<skos:prefLabel xml:lang="en">Ferns</skos:prefLabel><skos:altLabel>quillwort</skos:altLabel>'
    assert views(skos(f'<skos:Concept rdf:about="f">{free}</skos:Concept>')) == {"Ferns": '"Ferns" OR "quillwort"'}
    assert views(skos('<skos:Concept rdf:about="w" skos:notation="QL 737"/>')) == {"QL 737": '"QL 737"'}
    same = [concept(about, f"<skos:notation>{about}</skos:notation>", "Java") for about in ("1", "2")]
    assert views(skos(*same)) == {"Java 1": '"Java"', "Java 2": '"Java"'}


def test_concept_below_two_others_is_two_views() -> None:
    """A concept with two broader ones is a view below each, and so is what is below it."""
    data = skos(concept("a"), concept("b"), concept("c", broader("a") + broader("b")), concept("d", broader("c")))
    assert set(views(data)) == {"a", "b", "a/c", "a/c/d", "b/c", "b/c/d"}


ENTITY = "<!DOCTYPE rdf:RDF [<!ENTITY x {}>]>\n<rdf:RDF"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (skos(), "there is no skos:Concept in it"),
        (skos(concept("a", broader("b")), concept("b", broader("a"))), "a circle: a below b below a: no concept is at its top"),
        (skos(concept("t"), concept("a", broader("b") + broader("t")), concept("b", broader("a"))), "line 4: a circle: a below"),
        (skos(concept("t"), concept("a", broader("b")), concept("b", broader("b"))), "line 5: a circle: b below b"),
        (skos(*(concept(f"c{n}", broader(f"c{n - 1}") if n else "") for n in range(20))), "line 19: a path has at most 16 names"),
        (skos(*(concept(f"c{n}") for n in range(1_001))), "line 1003: a Broker has at most 1,000 views"),
        (skos(*(concept(about, label="same") for about in "ab")), "line 4: same is in line 3, too"),
        (skos('<skos:Concept rdf:about="a"/>'), "line 3: a concept without a prefLabel"),
        (skos(concept("a", label="(-)")), "line 3: a concept without a prefLabel"),
        (skos(concept("http://[")), "line 3: 'http://[' is no URI"),
        (skos(concept("a"))[:-5], "cannot be read as XML"),
        (skos("<a>" * 300), "Excessive depth"),
        (b"<" + b" " * (4 << 20), "a taxonomy in SKOS has at most 4,194,304 bytes"),
        (b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .", "SKOS is read as RDF/XML"),
        (b'{"@context": {}}', "SKOS is read as RDF/XML"),
        (b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>', "'x' not defined"),
        (b'<!DOCTYPE r SYSTEM "http://127.0.0.1:1/"><r>&x;</r>', "'x' not defined"),
        (b'<!DOCTYPE r [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><r/>', "cannot be read as XML"),
    ],
)  # fmt: skip
def test_mistake_is_one_line(data: bytes, told: str) -> None:
    """What is no taxonomy in SKOS is refused in one line, without opening anything else."""
    with pytest.raises(ViewError) as caught:
        imported({}, data, 1)
    assert told in str(caught.value)
    assert str(caught.value).isprintable()


def test_entities_of_the_file_are_read_within_bounds() -> None:
    """Files abbreviate URIs by entities of their own; entities that grow without bound are refused."""
    declared = ENTITY.format('"http://example.org/"').encode()
    data = skos(concept("&x;a"), concept("b", broader("&x;a"))).replace(b"<rdf:RDF", declared, 1)
    assert set(views(data)) == {"http example.org a", "http example.org a/b"}
    laughs = "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 20}">' for n in range(1, 9))
    bomb = f'<!DOCTYPE r [<!ENTITY x0 "{"x" * 1_000}">{laughs}]><r>&x8;</r>'
    with pytest.raises(ViewError, match="cannot be read as XML"):
        read_taxonomy(bomb.encode())


def test_names_are_made_of_any_text() -> None:
    """What a name may not have becomes a blank; a long one is cut between words."""
    assert as_name(" C++, (and) C# / e\u0301\n") == "C++, and C é"
    assert as_name("-x.") == "x"
    assert as_name("word " * 20) == " ".join(["word"] * 12)
    assert as_name("x" * 70) == "x" * 60
    assert as_name("(?)") == ""
