"""XML parts of documents as trees: entities, DTDs and the network stay shut; damaged parts are read as far as they go."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from lxml import etree

from processors.essence.formats.charsets import encoding
from processors.essence.formats.text import identify

MAX_PART = 2_000_000
"""Maximum bytes of an XML part that are parsed: a tree of tiny elements takes a hundred times as much memory."""


_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*+=\s*+[\"']\s*+([A-Za-z0-9_:.-]{2,40})")


def recode(raw: bytes, charset: str = "") -> tuple[bytes, str | None]:
    """Return a document as the parser can read it, and its encoding; None if the parser recognizes that by itself.

    The parser knows fewer charsets, and the narrow meaning of their labels. `charset`: as the source declares it, which counts
    before the declaration of the document (RFC 7303, 3).
    """
    if b"\0" in raw[:4] or raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw, None
    stated = _DECLARED.match(raw)
    label = stated[1].decode("ascii") if stated else ""
    decoded = identify(raw, charset, label)
    if decoded.encoding == "utf-8" and encoding(label) in ("", "utf-8") and "\ufffd" not in decoded.text:
        return raw, None
    return decoded.text.encode("utf-8", "replace"), "utf-8"


def tree(raw: bytes) -> etree._Element | None:
    """Return the root of an XML part; None if nothing of it can be parsed."""
    recoded, charset = recode(raw[:MAX_PART])
    parser = etree.XMLParser(
        encoding=charset,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        return etree.fromstring(recoded, parser)
    except etree.XMLSyntaxError:
        return None


def local(element: etree._Element) -> str:
    """Return the name of an element without its namespace or an undeclared prefix."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


def attribute(element: etree._Element, name: str) -> str:
    """Return the value of an attribute in any namespace; "" if it is missing."""
    if (value := element.get(name)) is not None:
        return str(value)
    return next((str(v) for k, v in element.items() if str(k).rpartition("}")[2].rpartition(":")[2] == name), "")


def elements(root: etree._Element | None, skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, etree._Element, bool]]:
    """Yield the elements of a tree in order, twice each: (name, element, True) at its start, with False at its end.

    Of an element in `skip` only the end is yielded, since the text behind it (its tail) is not part of it.
    """
    if root is None:
        return
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if not isinstance(element.tag, str):
            continue
        name = local(element)
        if event == "start" and name in skip:
            walker.skip_subtree()
        else:
            yield name, element, event == "start"
