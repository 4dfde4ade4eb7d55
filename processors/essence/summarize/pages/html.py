"""HTML: parsed once, by lexbor; title, headings, description, author, language, links with their text, the main text.

Laws:
- `base href` and the robots directives are honoured, those of meta elements (`formats/robots_directives.py`) and of the header:
  noindex: only the name is kept; nofollow, also on a link: no link; noarchive: no full text.
- A refresh, the next page, the canonical one, feeds and embedded documents are links like others; the canonical URL of another
  page of the same host is an attribute too.
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

from processors.essence.formats.refresh import refresh_target
from processors.essence.formats.robots_directives import AGENT, meta_directives
from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import MAX_URL, Facts, Found, Summarizer, SummaryError
from processors.essence.summarize._front_matter import MARKS, take_front_matter
from processors.essence.summarize._text import is_url
from processors.essence.summarize.pages._linked_data import MAX_DATA, LinkedData, read_linked_data
from processors.essence.summarize.pages._page import MAX_TEXT, Page, decoded_page, numbers, parse
from processors.essence.summarize.pages._query import encode_query
from processors.essence.summarize.pages._targets import TARGETS, is_feed, is_followed, relations
from processors.urls import canonical

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
_WANTED = numbers("title base meta h1 h2 h3 a area frame iframe embed object link html")
_WANTED_DATA = _WANTED | numbers("script")
_DATA = (b"ld+json", b"LD+JSON", b"ld&#")
"""Parts of the type of JSON-LD, as a page may write it."""
_DATA_TYPE = "application/ld+json"


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add a page's metadata, links and partial-text. Raises SummaryError if the page cannot be parsed to its end."""
    raw = body.read(MAX_HTML)
    charset, encoding = facts.charset, ""
    if raw[:6].lstrip(b"\xef\xbb\xbf\xff\xfe\0").startswith(MARKS):
        text, encoding = decoded_page(raw, charset)
        raw, charset = take_front_matter(text.replace("\r\n", "\n"), found).encode(), "utf-8"
    tree, cut, parsed = parse(raw, charset)
    wanted = _WANTED_DATA if any(mark in tree.raw_html for mark in _DATA) else _WANTED
    page = Page(tree, found.most(MAX_TEXT), whole=bool(found.full), wanted=wanted)
    about = _About(facts, found, encoding or parsed)
    for tag, node in page.met:
        about.take(tag, node)
    if found.full and found.robots.noarchive:
        found.full = 0
        page = Page(tree)
    if about.close() and tree.body is not None:
        # The text of a page that a script builds.
        stated = about.data.text if about.data.text and not page.has_text() else ""
        text = page.text()
        # From the full text only words are needed: order and blocks do not matter.
        whole = page.words(" ") if len(text) > MAX_TEXT and not found.full else ""
        found.body(f"{text}\n{stated}" if text and stated else text or stated, MAX_TEXT, whole=whole)
    if cut:
        raise SummaryError(f"HTML: {cut}")


class _About:
    """Collects the metadata of a page from its elements, in order."""

    def __init__(self, facts: Facts, found: Found, encoding: str) -> None:
        self.found = found
        self.encoding = encoding
        self.own = self.base = facts.url.partition("#")[0]
        self.canonical = ""
        self.based = False
        self.fetched = facts.fetched
        self.title = ""
        self.headings: list[str] = []
        self.links: dict[str, LexborNode] = {}
        self.meta: dict[str, list[str]] = {}
        self.scripts: list[str] = []
        self.data_room = MAX_DATA
        self.data = LinkedData()
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
        if tag in TARGETS:
            self._target(node.attrs.get(TARGETS[tag]) or "", node)
        elif tag in ("h1", "h2", "h3"):
            if len(self.headings) < HEADINGS:
                self.headings.append(self._text(node)[:200])
        elif tag == "meta":
            self._meta(node)
        elif tag == "link":
            self._link(node)
        elif tag == "script":
            self._script(node)
        elif tag == "title":
            self.title = self.title or self._text(node)
        elif tag == "base":
            self._base(node)
        elif tag == "html":
            self.found.set("language", _language(node.attrs.get("lang") or ""))

    def _meta(self, node: LexborNode) -> None:
        attributes = node.attributes
        if "content" not in attributes:
            return
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        content, field = attributes["content"] or "", (attributes.get("http-equiv") or "").lower()
        if field == "refresh":
            self._target(refresh_target(content), node)
        if not name and field == "content-language":
            # A list of several languages states none (HTML, 4.2.5.3).
            self.found.set("language", _language(content))
        elif name in ("robots", AGENT):
            self.found.robots = self.found.robots.stricter(meta_directives(content, self.fetched))
        elif name in META and not (META[name] == "author" and is_url(content)):
            self.meta.setdefault(META[name], []).append(content)

    def _target(self, reference: str, node: LexborNode) -> None:
        target = reference.partition("#")[0]
        if target and len(target) <= 2 * MAX_URL:
            self.links.setdefault(target, node)

    def _link(self, node: LexborNode) -> None:
        attributes = node.attributes
        if is_followed(attributes):
            self._target(attributes.get("href") or "", node)
        if not self.canonical and "canonical" in relations(attributes):
            self.canonical = attributes.get("href") or ""

    def _base(self, node: LexborNode) -> None:
        href = node.attrs.get("href")
        # The first `base` with a `href` counts (HTML, 4.2.3).
        if href is not None and not self.based:
            self.based = True
            self.base = (resolve(href, self.base) if len(href) <= MAX_URL else "") or self.base

    def _script(self, node: LexborNode) -> None:
        data = (node.attrs.get("type") or "").partition(";")[0].strip().lower() == _DATA_TYPE
        if data and self.data_room > 0:
            self.scripts.append(node.text()[: self.data_room])
            # An empty script takes room, too: else nothing bounds their number.
            self.data_room -= len(self.scripts[-1]) + 1

    def _said(self, name: str) -> str:
        return self.meta.get(name, [""])[0]

    def close(self) -> bool:
        """Add the collected attributes; return False if the page must not be indexed."""
        meta, found = self.meta, self.found
        if not found.robots.nofollow:
            self._links()
        if found.robots.noindex:
            found.attributes.clear()
        found.extend("robots", found.robots.kept)
        if found.robots.noindex:
            return False
        url = self._canonical()
        if url.startswith("http") and url.split("/", 3)[2] == self.own.partition("://")[2].partition("/")[0]:
            found.add("canonical-url", url, MAX_URL)
        self.data = read_linked_data(self.scripts) if self.scripts else self.data
        found.set("title", self._title(), 500)
        for name, values in meta.items():
            kept = found.most(MANY) if name in SEVERAL else int(name not in ("og-title", "dc-title"))
            for value in values[:kept]:
                for part in re.split(r"[,;]", value) if name == "keywords" else (value,):
                    found.add(name, squeeze(part), 1_000)
        if self.scripts:
            self._linked_data()
        for text in self.headings:
            found.add("headings", text)
        return True

    def _title(self) -> str:
        """Return the title: the headline of the work that the page has, else its own, else that of what it is about."""
        heading, data = next((h for h in self.headings if h), ""), self.data
        own = self.title or self._said("og-title") or self._said("dc-title") or heading
        # A thing may be one of many on a page: it is the subject of one that has no heading, or has its name in title or heading.
        subject = not heading or data.name.lower() in f"{self.title}\n{heading}".lower()
        return data.headline or (data.name if subject else "") or own or data.name or data.page

    def _linked_data(self) -> None:
        """Add what JSON-LD states: all authors, and attributes that the page does not state otherwise."""
        found, data = self.found, self.data
        for author in data.authors[: found.most(MANY)]:
            found.add("author", author, 1_000)
        if "keywords" not in found.attributes:
            for word in data.keywords[: found.most(MANY)]:
                found.add("keywords", word, 1_000)
        found.set("date", data.date, 100)
        found.set("modification-date", data.modified, 100)
        found.set("description", data.description, 1_000)
        found.set("language", _language(data.language))

    def _canonical(self) -> str:
        """Return the canonical URL that the page states (RFC 6596), if it is that of another page; else ""."""
        url = canonical(self.canonical, self.base) if self.canonical else None
        return url if url and url != canonical(self.own) else ""

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
                feed = node.tag == "link" and is_feed(attributes)
                self.found.link(url, self._text(node) or attributes.get("title") or "", feed=feed)
        if (url := self._canonical()) and url not in seen:
            seen[url] = None
            self.found.link(url)
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
