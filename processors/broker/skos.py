"""Reader of a taxonomy in SKOS (W3C, 2009) as RDF/XML: one view a concept, below the concepts that are broader.

- The name of a view is the preferred label in one of the Broker's languages, else the first one, else the notation. Characters that
  no name may have become blanks. Concepts of one name below the same one have their notations added.
- Its query is the labels, preferred and alternative, each as words next to each other: those in the language of its name, and
  alternative ones without a language.
- A concept with several broader ones has a view below each. Concepts that are broader and not in the file are passed over.

Entities that the file itself declares are read, others are a mistake; nothing else is opened. The parser limits depth and entities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import cast
from urllib.parse import urljoin

from lxml import etree

from processors.broker.views import MAX_VIEWS, ViewError, as_name, key_of, normal

MAX_SIZE = 4 << 20
"""Maximum size of a file in bytes: a tree of tiny elements takes a hundred times as much memory."""
MAX_LABELS = 16
"""Maximum number of labels of a concept in its query."""
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
SKOS = "{http://www.w3.org/2004/02/skos/core#}"
CONCEPT, CONCEPT_URI = f"{SKOS}Concept", f"{SKOS.strip('{}')}Concept"
LANG = "{http://www.w3.org/XML/1998/namespace}lang"
BROADER, NARROWER, NOTATION = f"{SKOS}broader", f"{SKOS}narrower", f"{SKOS}notation"
PREFERRED, ALTERNATIVE = f"{SKOS}prefLabel", f"{SKOS}altLabel"
INTERNAL = cast("bool", "internal")
"""Entities that the file declares itself; the stubs of lxml know the older values alone."""
SHOWN = 5
"""Maximum number of concepts of a circle that a message names."""


@dataclass
class Concept:
    """A node of the file; it is a concept if something says so."""

    line: int
    is_concept: bool = False
    preferred: list[tuple[str, str]] = field(default_factory=list)
    """Labels, each after its language."""
    alternative: list[tuple[str, str]] = field(default_factory=list)
    notation: str = ""
    broader: dict[str, None] = field(default_factory=dict)
    name: str = ""
    query: str = ""


def read_skos(data: bytes, languages: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return (line, path, query) of each view, parents first. Raises ViewError with the line."""
    if len(data) > MAX_SIZE:
        raise ViewError(f"a taxonomy in SKOS has at most {MAX_SIZE:,} bytes")
    nodes = _Reader(_parsed(data)).nodes
    concepts = {about: one for about, one in nodes.items() if one.is_concept}
    if not concepts:
        raise ViewError("there is no skos:Concept in it")
    for concept in concepts.values():
        _label(concept, languages)
    below: dict[str, list[str]] = {}
    for about, concept in concepts.items():
        for above in [one for one in concept.broader if one in concepts] or [""]:
            below.setdefault(above, []).append(about)
    return _Tree(concepts, below).views()


def _parsed(data: bytes) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=INTERNAL, no_network=True, load_dtd=False, huge_tree=False, remove_pis=True, remove_comments=True
    )  # fmt: skip
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        text = "".join(c if c.isprintable() else " " for c in str(error.msg))
        raise ViewError(f"line {error.position[0]}: it cannot be read as XML: {text[:200]}") from None


class _Reader:
    """Reads the nodes of a file: elements within rdf:RDF and within properties are nodes, those within nodes are properties."""

    def __init__(self, root: etree._Element) -> None:
        self.nodes: dict[str, Concept] = {}
        self._blank = count()
        waiting = list(reversed(root)) if root.tag == f"{RDF}RDF" else [root]
        while waiting:
            element = waiting.pop()
            about = self._read(element)
            for one in element:
                waiting += reversed(one)
                self._property(about, one)

    def _read(self, element: etree._Element) -> str:
        about = self._about(element)
        node = self.nodes.setdefault(about, Concept(_line(element)))
        node.is_concept |= element.tag == CONCEPT
        for name, value in element.items():
            self._literal(node, str(name), str(value), _language(element))
        return about

    def _about(self, element: etree._Element) -> str:
        """Return the identifier of a node, which gets one of its own if it has none."""
        if (name := element.get(f"{RDF}ID")) is not None:
            return _absolute(element, f"#{name}")
        if (about := element.get(f"{RDF}about")) is not None:
            return _absolute(element, about)
        if element.get(f"{RDF}nodeID") is None:
            element.set(f"{RDF}nodeID", f" {next(self._blank)}")
        return f"_:{element.get(f'{RDF}nodeID')}"

    def _property(self, about: str, one: etree._Element) -> None:
        node, name = self.nodes[about], str(one.tag)
        others = [self._about(inner) for inner in one] or [_resource(one)]
        if name == f"{RDF}type":
            node.is_concept |= CONCEPT_URI in others
        elif name == BROADER:
            node.broader |= dict.fromkeys(others)
        elif name == NARROWER:
            for other in others:
                self.nodes.setdefault(other, Concept(_line(one))).broader[about] = None
        else:
            self._literal(node, name, "".join(map(str, one.itertext())), _language(one))

    def _literal(self, node: Concept, name: str, value: str, language: str) -> None:
        value = " ".join(value.split())
        if name == PREFERRED and value:
            node.preferred.append((language, value))
        elif name == ALTERNATIVE and value:
            node.alternative.append((language, value))
        elif name == NOTATION:
            node.notation = node.notation or value


def _resource(element: etree._Element) -> str:
    """Return what a property without an inner node refers to."""
    resource = element.get(f"{RDF}resource")
    return f"_:{element.get(f'{RDF}nodeID')}" if resource is None else _absolute(element, resource)


def _line(element: etree._Element) -> int:
    return cast("int", element.sourceline)


def _absolute(element: etree._Element, reference: str) -> str:
    try:
        return urljoin(element.base or "", reference)
    except ValueError:
        raise ViewError(f"line {_line(element)}: {reference[:80]!a} is no URI") from None


def _language(element: etree._Element) -> str:
    """Return the language of a literal (xml:lang), which elements have from those around them."""
    for one in (element, *element.iterancestors()):
        if (language := one.get(LANG)) is not None:
            return language.lower()
    return ""


def _label(concept: Concept, languages: Sequence[str]) -> None:
    """Set name and query of a concept. Raises ViewError if it has neither label nor notation."""
    known = dict(reversed(concept.preferred))
    wanted = [one for language in (*languages, "") for one in known if one.partition("-")[0] == language]
    chosen = next(iter([*wanted, *sorted(known)]), None)
    text = concept.notation if chosen is None else known[chosen]
    concept.name = as_name(text)
    if not concept.name:
        raise ViewError(f"line {concept.line}: a concept without a prefLabel or a notation that can be a name")
    labels = [text, *(label for language, label in concept.alternative if language in (chosen, ""))]
    quoted = dict.fromkeys(f'"{label.replace(chr(34), " ")}"' for label in labels if as_name(label))
    concept.query = " OR ".join(list(quoted)[:MAX_LABELS])


class _Tree:
    """The concepts with those below them, by identifier; "": the ones at the top."""

    def __init__(self, concepts: Mapping[str, Concept], below: Mapping[str, Sequence[str]]) -> None:
        self._concepts, self._below = concepts, below

    def views(self) -> list[tuple[int, str, str]]:
        """Return the views, parents first. Raises ViewError, also for a circle."""
        found: list[tuple[int, str, str]] = []
        seen: set[str] = set()
        for about, path in self._walk():
            concept = self._concepts[about]
            if len(found) >= MAX_VIEWS:
                raise ViewError(f"line {concept.line}: a Broker has at most {MAX_VIEWS:,} views")
            try:
                found.append((concept.line, normal(path), concept.query))
            except ViewError as error:
                raise ViewError(f"line {concept.line}: {error}") from None
            seen.add(about)
        if left := [about for about in self._concepts if about not in seen]:
            raise self._circle(left[0], "no concept is at its top" if not found else "")
        return found

    def _walk(self) -> Iterator[tuple[str, str]]:
        """Yield each concept with its path, as often as it has one."""
        waiting = [(about, name, frozenset[str]()) for about, name in self._named("")][::-1]
        while waiting:
            about, path, above = waiting.pop()
            if about in above:
                raise self._circle(about)
            yield about, path
            waiting += [(one, f"{path}/{name}", above | {about}) for one, name in self._named(about)][::-1]

    def _named(self, above: str) -> list[tuple[str, str]]:
        """Return the concepts right below one with their names; notations tell apart what has one name."""
        abouts = self._below.get(above, ())
        keys = Counter(key_of(self._concepts[about].name) for about in abouts)
        made = []
        for about in abouts:
            concept = self._concepts[about]
            more = concept.notation if keys[key_of(concept.name)] > 1 else ""
            made.append((about, as_name(f"{concept.name} {more}") or concept.name))
        return made

    def _circle(self, about: str, why: str = "") -> ViewError:
        """Return the error of a circle that leads to a concept, by way of those that are broader."""
        way = [about]
        while (above := next(iter(one for one in self._concepts[way[-1]].broader if one in self._concepts), "")) not in way:
            way.append(above)
        way = [*way[way.index(above) :], above]
        names = [self._concepts[one].name for one in way]
        shown = names if len(names) <= SHOWN else [*names[: SHOWN - 1], "…", names[-1]]
        line = self._concepts[way[0]].line
        return ViewError(f"line {line}: a circle: {' below '.join(shown)}{f': {why}' if why else ''}")
