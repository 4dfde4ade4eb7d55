"""HTML: parsed once, by lexbor; title, headings, description, author, language, links with their text, the main text.

Laws:
- `base href` and the robots directives in meta are honoured (noindex: only the name is kept; nofollow, also on a link: no link).
- At most 8 MB are parsed: 32 MB of tiny tags take more than 1 GiB in any parser. A page is parsed only up to the place where its
  elements are nested too deep, or one has too many attributes (`_nesting`): the part before is summarized, and the page is damaged.
- The texts of nested headings and links contain each other: they are read until all together reach TEXTS characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO

import ada_url
from selectolax.lexbor import LexborNode

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import MAX_URL, Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.pages._page import MAX_TEXT, Page, numbers, parse
from processors.essence.summarize.pages._query import encode_query

MAX_HTML = 8_000_000
REFERENCES = 100
HEADINGS = 50
NOWHERE = ("javascript:", "mailto:", "data:", "about:", "tel:")
TEXTS = 2 * MAX_HTML
"""Maximum characters of all headings and links together."""

META = {
    "description": "description",
    "og:description": "description",
    "dc.description": "description",
    "twitter:description": "description",
    "keywords": "keywords",
    "dc.subject": "keywords",
    "author": "author",
    "dc.creator": "author",
    "article:author": "author",
    "generator": "generator",
    "og:image": "image",
    "abstract": "abstract",
    "dc.title": "dc-title",
    "og:title": "og-title",
    "dc.date": "date",
    "date": "date",
    "article:published_time": "date",
    "copyright": "copyright",
    "dc.rights": "copyright",
}
"""Attribute of the summary by the name of a meta element in lower case."""
SEVERAL = frozenset(("keywords", "author"))
"""Attributes that a page may state several times; of the others only the first is kept."""
MANY = 10
"""Values kept of such an attribute by default: pages about programs state a keyword for each function."""

_PLAIN = re.compile(r"(/?(?:\.\./|(?!))*+)((?:[\w-][\w.-]*+/|(?!))*+[\w-][\w.-]*+)", re.ASCII)
"""References that need no normalization: steps upwards, names of folders, the name of a file (WHATWG URL, 4.4)."""
_WANTED = numbers("title base meta h1 h2 h3 a area frame iframe html")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add a page's metadata, links and partial-text. Raises SummaryError if the page cannot be parsed to its end."""
    raw = body.read(MAX_HTML)
    tree, cut, encoding = parse(raw, facts.charset)
    page, about = Page(tree, found.most(MAX_TEXT), whole=bool(found.full), wanted=_WANTED), _About(facts, found, encoding)
    for tag, node in page.met:
        about.take(tag, node)
    if about.close() and tree.body is not None:
        text = page.text()
        # From the full text only words are needed: order and blocks do not matter.
        found.body(text, MAX_TEXT, whole=page.words(" ") if len(text) > MAX_TEXT and not found.full else "")
    if cut:
        raise SummaryError(f"HTML: {cut}")


class _About:
    """Collects the metadata of a page from its elements, in order."""

    def __init__(self, facts: Facts, found: Found, encoding: str) -> None:
        self.found = found
        self.encoding = encoding
        self.base = facts.url.partition("#")[0]
        self.based = False
        self.robots: set[str] = set()
        self.title = ""
        self.headings: list[str] = []
        self.links: dict[str, LexborNode] = {}
        self.meta: dict[str, list[str]] = {}
        self.room = TEXTS

    def _text(self, node: LexborNode) -> str:
        """Return the text of an element on one line; "" once TEXTS characters are used up."""
        if self.room <= 0:
            return ""
        text = node.text()
        self.room -= len(text)
        return squeeze(text[:MAX_TEXT])

    def take(self, tag: str, node: LexborNode) -> None:
        """Process one element."""
        if tag in ("a", "area", "frame", "iframe"):
            target = (node.attrs.get("href" if tag in ("a", "area") else "src") or "").partition("#")[0]
            if target and len(target) <= 2 * MAX_URL:
                self.links.setdefault(target, node)
        elif tag in ("h1", "h2", "h3"):
            if len(self.headings) < HEADINGS:
                self.headings.append(self._text(node)[:200])
        elif tag == "meta":
            self._meta(node)
        elif tag == "title":
            self.title = self.title or self._text(node)
        elif tag == "base":
            href = node.attrs.get("href")
            # The first `base` with a `href` counts (HTML, 4.2.3).
            if href is not None and not self.based:
                self.based = True
                self.base = (resolve(href, self.base) if len(href) <= MAX_URL else "") or self.base
        else:
            self.found.set("language", _language(node.attrs.get("lang") or ""))

    def _meta(self, node: LexborNode) -> None:
        attributes = node.attributes
        if "content" not in attributes:
            return
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        content = attributes["content"] or ""
        if not name and (attributes.get("http-equiv") or "").lower() == "content-language":
            # A list of several languages states none (HTML, 4.2.5.3).
            self.found.set("language", _language(content))
        elif name in ("robots", "harvest"):
            self.robots.update(word.strip().lower() for word in content.split(","))
        elif name in META:
            self.meta.setdefault(META[name], []).append(content)

    def _said(self, name: str) -> str:
        return self.meta.get(name, [""])[0]

    def close(self) -> bool:
        """Add the collected attributes; return False if the page must not be indexed."""
        if "none" in self.robots:
            self.robots |= {"noindex", "nofollow"}
        if "nofollow" not in self.robots:
            self._links()
        if "noindex" in self.robots:
            self.found.attributes.clear()
            self.found.add("robots", "noindex")
            return False
        meta, found = self.meta, self.found
        heading = next((h for h in self.headings if h), "")
        found.add("title", self.title or self._said("og-title") or self._said("dc-title") or heading, 500)
        for name, values in meta.items():
            kept = found.most(MANY) if name in SEVERAL else int(name not in ("og-title", "dc-title"))
            for value in values[:kept]:
                for part in re.split(r"[,;]", value) if name == "keywords" else (value,):
                    found.add(name, squeeze(part), 1_000)
        for text in self.headings:
            found.add("headings", text)
        return True

    def _links(self) -> None:
        seen: dict[str, None] = {}
        resolved = _resolver(self.base, self.encoding)
        for target, node in self.links.items():
            url = resolved(target)
            if not url or url in seen:
                continue
            attributes = node.attributes
            if "nofollow" in (attributes.get("rel") or "").lower():
                continue
            seen[url] = None
            if self.found.linked:
                self.found.link(url, self._text(node) or attributes.get("title") or "")
        self.found.extend("url-references", list(seen)[:REFERENCES], 500)


def _language(tag: str) -> str:
    """Return a tag's language subtag (RFC 5646, 2.1); "" if there is none: several languages, any, a private one."""
    name = tag.strip().replace("_", "-").partition("-")[0].lower()
    return name if 2 <= len(name) <= 3 and name.isascii() and name.isalpha() else ""


def _resolver(base: str, encoding: str = "utf-8") -> Callable[[str], str]:
    """Return a faster `resolve` for many references of one page: a folder is resolved once for all file names in it."""
    folders: dict[str, str] = {}

    def resolved(href: str) -> str:
        plain = _PLAIN.fullmatch(href)
        if plain is None:
            return resolve(href, base, encoding)
        above, name = plain.groups()
        if (folder := folders.get(above)) is None:
            folder = folders[above] = resolve(f"{above}x", base)[:-1]
        return folder and folder + name

    return resolved


def resolve(href: str, base: str, encoding: str = "utf-8") -> str:
    """Resolve a reference, without its fragment; "" if it has no target (a fragment alone, script, mail).

    `encoding`: of the page, in which the query is percent-encoded.
    """
    href = href.strip().partition("#")[0]
    if not href or href.lower().startswith(NOWHERE):
        return ""
    try:
        return ada_url.join_url(base, href if href.isascii() else encode_query(href, encoding))
    except ValueError:
        return ""


SUMMARIZER = Summarizer(types=("HTML",), run=run)
