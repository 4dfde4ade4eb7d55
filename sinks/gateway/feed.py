"""Saved searches: an Atom feed of a query, newest first (RFC 4287), and the description with which a browser adds the search."""

from __future__ import annotations

from lxml import etree

from processors.query.snippet import CLOSE, OPEN
from sinks.gateway.answers import Answer, ShownHit
from sinks.gateway.state import State
from sinks.gateway.texts import clean

ATOM = "http://www.w3.org/2005/Atom"
OPENSEARCH = "http://a9.com/-/spec/opensearch/1.1/"
UNDATED = "1970-01-01T00:00:00Z"
"""Moment of an entry without a date of its own, which an entry has to have."""
_MARKS = str.maketrans("", "", OPEN + CLOSE)


def feed(answer: Answer, base: str) -> bytes:
    """Return the hits of an answer as an Atom feed; `base`: URL of the gateway, without a slash at its end."""
    state = answer.state
    root = etree.Element(f"{{{ATOM}}}feed", nsmap=_default(ATOM))
    _add(root, "title", f"Harvest: {state.text or 'all summaries'}")
    _add(root, "id", f"{base}/feed{state.query}")
    _link(root, f"{base}/feed{state.query}", "self")
    _link(root, f"{base}/{state.changed(sort='newest').query}", "alternate")
    _add(root, "updated", max((_moment(hit) for hit in answer.hits), default=UNDATED))
    _add(etree.SubElement(root, f"{{{ATOM}}}author"), "name", "Harvest")
    for hit in answer.hits:
        entry = etree.SubElement(root, f"{{{ATOM}}}entry")
        _add(entry, "title", hit.title.translate(_MARKS) or hit.place)
        # The same by whatever name the gateway is reached.
        _add(entry, "id", f"urn:harvest:{hit.oid}")
        _link(entry, f"{base}/summary/{hit.oid}", "alternate")
        _add(entry, "updated", _moment(hit))
        _add(entry, "summary", f"{hit.place}\n{hit.snippet.translate(_MARKS)}")
        etree.SubElement(entry, f"{{{ATOM}}}category", term=_fitting(hit.type))
    return bytes(etree.tostring(root, xml_declaration=True, encoding="utf-8"))


def description(base: str) -> bytes:
    """Return the OpenSearch description of the search page."""
    root = etree.Element(f"{{{OPENSEARCH}}}OpenSearchDescription", nsmap=_default(OPENSEARCH))
    for name, text in (
        ("ShortName", "Harvest"),
        ("Description", "Search the summaries of this Harvest Broker"),
        ("InputEncoding", "UTF-8"),
    ):
        etree.SubElement(root, f"{{{OPENSEARCH}}}{name}").text = text
    for kind, template in (
        ("text/html", f"{base}/?q={{searchTerms}}"),
        ("application/atom+xml", f"{base}/feed?q={{searchTerms}}"),
        ("application/x-suggestions+json", f"{base}/suggestions?q={{searchTerms}}"),
    ):
        etree.SubElement(root, f"{{{OPENSEARCH}}}Url", type=kind, method="get", template=template)
    return bytes(etree.tostring(root, xml_declaration=True, encoding="utf-8"))


def _default(namespace: str) -> dict[str, str]:
    """Return the map that makes a namespace the default; lxml's type hints know no None there."""
    return {None: namespace}  # type: ignore[dict-item]


def newest(state: State) -> State:
    """Return the state whose hits a feed has."""
    return state.changed(sort="newest")


def _moment(hit: ShownHit) -> str:
    return f"{hit.date}T00:00:00Z" if hit.date else UNDATED


def _add(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, f"{{{ATOM}}}{name}").text = _fitting(text)


def _fitting(text: str) -> str:
    """Return text as XML may have it: without most controls, and two code points that are no characters."""
    return clean(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _link(parent: etree._Element, url: str, relation: str) -> None:
    etree.SubElement(parent, f"{{{ATOM}}}link", href=url, rel=relation)
