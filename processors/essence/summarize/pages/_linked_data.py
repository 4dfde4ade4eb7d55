"""What a page states about itself in JSON-LD (JSON-LD 1.1, 7; schema.org): title, authors, dates, description, keywords, text.

Strategy: the items of all scripts are ranked. A work (it has a headline, or is an article) comes first, else another thing (a
product, a recipe, an event); items of the page itself (WebPage) fill gaps. Items about the site, its publisher and its parts are
left out.

Laws:
- Several works with different titles are a list, and none of them is the page.
- An author is the name of a person or an organization, never a URL.
- What is not JSON, nested too deep, or beyond the bounds below is skipped.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from processors.essence.formats.text import squeeze
from processors.essence.summarize._text import is_url
from processors.essence.summarize.pages._page import main_text, parse

MAX_DATA = 1 << 20
"""Characters of all scripts together."""
ITEMS = 500
"""Items of a page, and values of a property, that are read."""
MAX_TEXT = 1 << 19
"""Characters of a text with markup that are parsed."""

_BESIDE = (
    "WebSite Organization Corporation NewsMediaOrganization EducationalOrganization Person ImageObject BreadcrumbList ListItem "
    "ItemList SiteNavigationElement WPHeader WPFooter WPSideBar WPAdBlock WebPageElement SearchAction Place PostalAddress "
    "ContactPoint Brand Offer AggregateOffer AggregateRating Rating Review Comment SpeakableSpecification Country"
)
_ASIDE = frozenset(_BESIDE.split())
"""Types of items that are not what a page is about."""
_INNER = ("@graph", "mainEntity", "mainEntityOfPage")
"""Properties whose values are items of the page."""
_WRAP = re.compile(r"\s*+(?:(?://|/\*)?\s*+<!\[CDATA\[(?:\s*+\*/)?|<!--)?\s*+")
"""Begin of a comment or section that hides a script from old parsers."""
_JSON = json.JSONDecoder(strict=False)
"""Line breaks within texts are frequent, and harmless."""
_MARKED = re.compile(r"</[a-z]|<(?:p|br|div)\b", re.IGNORECASE)

Item = Mapping[str, Any]


class LinkedData(NamedTuple):
    """The properties of what a page is about; "" or empty where it states none."""

    headline: str = ""
    """Title of a work, which a page has in order to be shown as such."""
    name: str = ""
    """Title of another thing."""
    page: str = ""
    """Title of the page."""
    authors: tuple[str, ...] = ()
    date: str = ""
    modified: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    language: str = ""
    text: str = ""


def read_linked_data(scripts: list[str]) -> LinkedData:
    """Return what the scripts of a page state."""
    items = list(_items([_parsed(script) for script in scripts]))
    by_id = {item["@id"]: item for item in items if isinstance(item.get("@id"), str) and "name" in item}
    works = [item for item in items if _is_work(item)]
    things = [item for item in items if not works and not _ASIDE.intersection(_types(item)) and not _is_page(item) and _types(item)]
    pages = [item for item in items if _is_page(item)][:1]
    main = works or things
    if len({_title(item) for item in main}) > 1:
        main = []
    about = [*main, *pages]
    return LinkedData(
        headline=next((_title(item) for item in main if works), ""),
        name=next((_title(item) for item in main if not works), ""),
        page=next((_title(item) for item in pages), ""),
        authors=tuple(
            dict.fromkeys(next(filter(None, (_names(i.get(k), by_id) for i in about for k in ("author", "creator"))), []))
        ),
        date=_first(about, "datePublished", "dateCreated", "uploadDate", "startDate", "datePosted"),
        modified=_first(about, "dateModified"),
        description=_first(about, "description"),
        keywords=tuple(next(filter(None, (_keywords(item.get("keywords")) for item in about)), [])),
        language=_first(about, "inLanguage"),
        text=next(filter(None, (_text(item.get(key)) for item in main for key in ("articleBody", "text"))), ""),
    )


def _parsed(script: str) -> Any:
    """Return the value of a script; None if it is not JSON."""
    text = script[:MAX_DATA]
    begin = _WRAP.match(text)
    try:
        # What follows the value ends the comment, or is a semicolon.
        return _JSON.raw_decode(text, begin.end() if begin else 0)[0]
    # ValueError: not JSON, or a number of too many digits; RecursionError: nesting too deep for the parser.
    except (ValueError, RecursionError):
        return None


def _items(values: list[Any]) -> Iterator[Item]:
    """Yield the items of the page in order, at most ITEMS."""
    waiting, count = list(reversed(values)), 0
    while waiting and count < ITEMS:
        value = waiting.pop()
        count += 1
        if isinstance(value, list):
            waiting.extend(reversed(value[:ITEMS]))
        elif isinstance(value, dict):
            yield value
            waiting.extend(value[key] for key in _INNER if key in value)


def _types(item: Item) -> list[str]:
    """Return the names of an item's types, without the address of their vocabulary."""
    stated = item.get("@type")
    names = stated if isinstance(stated, list) else [stated]
    return [re.split(r"[/#:]", name)[-1] for name in names[:20] if isinstance(name, str)]


def _is_page(item: Item) -> bool:
    return any(name.endswith("Page") for name in _types(item))


def _is_work(item: Item) -> bool:
    types = _types(item)
    if _is_page(item) or _ASIDE.intersection(types):
        return False
    return any(name.endswith(("Article", "Posting")) for name in types) or bool(
        types and ("headline" in item or "articleBody" in item)
    )


def _title(item: Item) -> str:
    return _first([item], "headline", "name")


def _first(items: list[Item], *keys: str) -> str:
    """Return the first text that one of the items has under one of the keys, on one line."""
    stated = (item.get(key) for item in items for key in keys)
    texts = (value[0] if isinstance(value, list) and value else value for value in stated)
    return next((plain for text in texts if isinstance(text, str) and (plain := squeeze(html.unescape(text[:10_000])))), "")


def _names(value: Any, by_id: Mapping[str, Item]) -> list[str]:
    """Return the names of the persons or organizations that a value states, or refers to by their identifiers."""
    names: list[str] = []
    for each in value[:ITEMS] if isinstance(value, list) else [value]:
        key = each.get("@id") if isinstance(each, dict) else each
        known = by_id.get(key, {}) if isinstance(key, str) else {}
        named: Item = each if isinstance(each, dict) and "name" in each else known
        name = _first([named], "name") or (squeeze(html.unescape(each[:1_000])) if isinstance(each, str) else "")
        names += [name] if name and not is_url(name) else []
    return names


def _keywords(value: Any) -> list[str]:
    """Return keywords: of a text with commas, of a list of them, or the names of defined terms."""
    values = value[:ITEMS] if isinstance(value, list) else [value]
    stated = (_first([each], "name") if isinstance(each, dict) else each for each in values)
    parts = (part for text in stated if isinstance(text, str) for part in re.split("[,;]", html.unescape(text)))
    return [word for word in map(squeeze, parts) if word and not is_url(word)]


def _text(value: Any) -> str:
    """Return a text, one block a line; it may have markup."""
    parts = [part for part in (value[:ITEMS] if isinstance(value, list) else [value]) if isinstance(part, str)]
    text = "\n".join(parts)[:MAX_TEXT]
    if _MARKED.search(text):
        return main_text(parse(text.encode("utf-8", "replace"), "utf-8")[0], len(text))
    return "\n".join(filter(None, map(squeeze, html.unescape(text).split("\n"))))
