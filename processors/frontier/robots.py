"""robots.txt by the Robots Exclusion Protocol (RFC 9309), with the customary Crawl-delay.

Strategy: lines, groups and patterns are read as Google's open parser reads them (google/robotstxt, robots.cc), errors in writing
included: a missing colon, `Disalow`, bytes that are not UTF-8. Only the rules for this agent, or else those for `*`, are kept, in
order of precedence, so that the first one that matches decides. It is found without trying all of them, since a file may have
40,000 patterns: rules without asterisks are looked up by the beginnings of the path, and one with asterisks is tried only if the
path contains the first characters of its longest piece behind an asterisk; few patterns have no such piece, and those are always
tried.

Laws:
- An empty file allows all; a group that names the agent hides the group of `*` (RFC 9309, 2.2.1). robots.txt itself is allowed.
- Only a rule (allow or disallow) ends the user-agent lines of a group; no other line and no blank one does (RFC 9309, 2.1). A
  Crawl-delay concerns the agents that its group has named so far.
- The longest matching pattern decides, allow before disallow (RFC 9309, 2.2.2). Its length is that in bytes, escaped.
- An escape is compared as an escape: `%2b` equals `%2B`, but not `+` (RFC 9309, 2.2.2). Only unreserved characters equal their
  escapes, and characters that no URL has literally. `%2A` and `%24` are a literal asterisk and dollar (RFC 9309, 2.2.3).
- Any bytes are accepted: a line that is not a valid rule is ignored (RFC 9309, 2.2.4). A match takes linear time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

MAX_ROBOTS = 512 * 1024
"""Bytes of a robots.txt that are read; RFC 9309 (2.5) requires at least 500 KiB."""
MAX_LINE = 8 * 2_083 - 1
"""Bytes of a line that are read (kMaxLineLen in robots.cc, without the NUL that ends it)."""
MAX_SITEMAPS = 1_000
"""Sitemap lines that are read: as many links as an event may have."""
SMALL = 16 * 1024
GRAM = 4
"""Characters of a piece by which a rule is found."""

_AGENT = ("user-agent", "useragent", "user agent")
_ALLOW = ("allow",)
_DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_DELAY = ("crawl-delay", "crawldelay", "crawl delay")
"""Beginnings of the keys, with their frequent misspellings (KeyIsUserAgent, KeyIsAllow and KeyIsDisallow in robots.cc)."""
_SITEMAP = ("sitemap", "site-map")
"""Keys of a sitemap line (KeyIsSitemap in robots.cc)."""

_TOKEN = re.compile(r"[A-Za-z_-]*")
"""The part of a user-agent line that counts (RFC 9309, 2.2.1; ExtractUserAgent in robots.cc)."""
_SECONDS = re.compile(r"\d{1,300}(?:\.\d{0,300})?|\.\d{1,300}", re.ASCII)
_SPACES = " \t\v\f"
"""Those of ASCII only: in Latin-1, as files are read here, bytes of a letter in UTF-8 would be spaces too."""
_UNRESERVED = re.compile(r"[\w.~-]", re.ASCII)
_SPECIAL = re.compile(r"%([0-9A-Fa-f]{2})?|[^!-~]|[\"<>\\^`{|}]")
"""An escape, a lone percent sign, and characters that URLs have only escaped (RFC 3986, 2)."""


class Pattern(Protocol):
    """A pattern, split at its asterisks."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the pieces between the asterisks."""
        ...

    @property
    def anchored(self) -> bool:
        """Return whether it matches only up to the end of a path."""
        ...

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path."""
        ...


R = TypeVar("R", bound=Pattern)


class RuleIndex(Generic[R]):
    """An index of rules in order of precedence."""

    def __init__(self, rules: Sequence[R]) -> None:
        self._rules = rules
        self._exact: dict[str, int] = {}
        self._beginnings: dict[str, int] = {}
        self._grams: dict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for number, rule in enumerate(rules):
            first, *later = rule.pieces
            longest = max(later, key=len, default="")
            if not later:
                (self._exact if rule.anchored else self._beginnings).setdefault(first, number)
            elif len(longest) >= GRAM:
                self._grams[longest[:GRAM]].append(number)
            else:
                self._others.append(number)
        self._lengths = sorted({len(beginning) for beginning in self._beginnings})

    def decisive(self, path: str) -> R | None:
        """Return the first rule that matches a path, or None."""
        best = min(self._plain(path), default=len(self._rules))
        for number in sorted(self._candidates(path)):
            if number >= best:
                break
            if self._rules[number].matches(path):
                return self._rules[number]
        return self._rules[best] if best < len(self._rules) else None

    def _plain(self, path: str) -> Iterator[int]:
        if (number := self._exact.get(path)) is not None:
            yield number
        for length in self._lengths:
            if length > len(path):
                return
            if (number := self._beginnings.get(path[:length])) is not None:
                yield number

    def _candidates(self, path: str) -> Iterator[int]:
        yield from self._others
        if self._grams:
            for gram in {path[at : at + GRAM] for at in range(len(path) - GRAM + 1)}:
                yield from self._grams.get(gram, ())


class Rule(NamedTuple):
    """A pattern of an allow or disallow line, split at its asterisks."""

    allow: bool
    pieces: tuple[str, ...]
    anchored: bool
    """Whether the pattern matches only up to the end of the URL (`$`)."""

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path with its query, both as `_compared` returns them."""
        first, *others = self.pieces
        if not others:
            return path == first if self.anchored else path.startswith(first)
        if not path.startswith(first):
            return False
        at, last = len(first), others.pop()
        # The first place of each piece leaves most room for the next one.
        for piece in others:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        return at + len(last) <= len(path) and path.endswith(last) if self.anchored else path.find(last, at) >= 0


class Rules(NamedTuple):
    """What a robots.txt says to one agent: the rules in order of precedence, and the Crawl-delay in seconds."""

    rules: RuleIndex[Rule]
    delay: float | None


def product_token(user_agent: str) -> str:
    """Return the product token with which a User-Agent begins (RFC 9309, 2.2.1)."""
    token = _TOKEN.match(user_agent)
    return (token[0] if token else "") or "Harvest"


def allowed(robots: bytes, agent: str, url: str) -> bool:
    """Return whether `agent` (a product token, "harvest") may fetch a canonical URL of the server that sent this robots.txt."""
    path = "/" + url.partition("://")[2].partition("#")[0].partition("/")[2]
    if not robots or path == "/robots.txt":
        return True
    compared = _compared(path).replace("*", "%2A").replace("$", "%24")
    rule = _parsed(robots, agent).rules.decisive(compared)
    return rule is None or rule.allow


def crawl_delay(robots: bytes, agent: str) -> float | None:
    """Return the Crawl-delay for `agent` in seconds, or None; finite and not negative, otherwise as stated."""
    return _parsed(robots, agent).delay if robots else None


def sitemaps(robots: bytes) -> list[str]:
    """Return the values of the first MAX_SITEMAPS sitemap lines, each once, in order; they belong to no group (RFC 9309, 2.2.4)."""
    found: dict[str, None] = {}
    for line in re.split(rb"[\r\n]", robots[:MAX_ROBOTS].removeprefix(b"\xef\xbb\xbf")):
        if len(line) < MAX_LINE and line.lstrip()[:4].lower() == b"site":
            key, value = _key_and_value(line.decode("utf-8", "replace"))
            if key in _SITEMAP and value:
                found[value] = None
        if len(found) == MAX_SITEMAPS:
            break
    return list(found)


def _parsed(robots: bytes, agent: str) -> Rules:
    return _small(robots, agent) if len(robots) <= SMALL else _large(robots, agent)


# Two caches: hundreds of files of usual size stay in memory, but never hundreds of the largest.
@lru_cache(maxsize=512)
def _small(robots: bytes, agent: str) -> Rules:
    return _parse(robots, agent)


@lru_cache(maxsize=8)
def _large(robots: bytes, agent: str) -> Rules:
    return _parse(robots, agent)


def _parse(robots: bytes, agent: str) -> Rules:
    reader = _Reader(_token(agent))
    if len(robots) >= MAX_ROBOTS:
        # An incomplete last line is dropped: `Disallow: /private` cut after the slash would forbid the whole host.
        robots = robots[: max(robots.rfind(end, 0, MAX_ROBOTS) for end in (b"\r", b"\n")) + 1]
    # One character a byte, since patterns are compared by bytes.
    for line in re.split(r"[\r\n]", robots.removeprefix(b"\xef\xbb\xbf").decode("latin-1")):
        reader.read(*_key_and_value(line[:MAX_LINE]))
    return reader.rules()


def _key_and_value(line: str) -> tuple[str, str]:
    """Return the key of a line in lower case and its value; ("", "") for a line without them."""
    line = re.split(r"[#\0]", line, maxsplit=1)[0].strip(_SPACES)
    key, colon, value = line.partition(":")
    if not colon:
        words = re.split(r"[ \t]+", line)
        if len(words) != 2:
            return "", ""
        key, value = words
    return key.strip(_SPACES).lower(), value.strip(_SPACES)


class _Reader:
    """Reads the lines of a robots.txt in order, and keeps the rules for one agent and those for `*`."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._named = self._own = self._everyone = self._ruled = False
        """Whether any group names the agent; whether this group does, or names `*`; and whether it has a rule."""
        self._patterns: dict[bool, dict[tuple[bool, str], None]] = {True: {}, False: {}}
        """Rules and their patterns, of the groups that name the agent (True), and of those of `*`."""
        self._delays: dict[bool, float] = {}

    def read(self, key: str, value: str) -> None:
        """Read the next line."""
        if key.startswith(_AGENT):
            self._read_agent(value)
        elif not (self._own or self._everyone):
            return
        elif key.startswith((*_ALLOW, *_DISALLOW)):
            self._ruled = True
            self._read_rule(value, allow=key.startswith(_ALLOW))
        elif key.startswith(_DELAY) and _SECONDS.fullmatch(value):
            # Of several the first counts: later ones may be meant for agents that the group names later.
            self._delays.setdefault(self._own, float(value))

    def _read_agent(self, value: str) -> None:
        if self._ruled:
            self._own = self._everyone = self._ruled = False
        if value[:1] == "*" and value[1:2] in ("", *_SPACES):
            self._everyone = True
        elif self._agent and _token(value) == self._agent:
            self._own = self._named = True

    def _read_rule(self, value: str, *, allow: bool) -> None:
        pattern = _compared(value)
        patterns = self._patterns[self._own]
        if pattern:
            patterns[allow, pattern] = None
        folder, slash, file = pattern.rpartition("/")
        if allow and slash and file.startswith("index.htm"):
            # The index of a folder is the folder (HandleAllow in robots.cc).
            patterns[True, f"{folder}/$"] = None

    def rules(self) -> Rules:
        """Return what the lines so far say to the agent."""
        ordered = sorted(self._patterns[self._named], key=lambda rule: (-len(rule[1]), not rule[0]))
        return Rules(RuleIndex([_rule(allow, pattern) for allow, pattern in ordered]), self._delays.get(self._named))


def _rule(allow: bool, pattern: str) -> Rule:
    anchored = pattern.endswith("$")
    literal = (pattern[:-1] if anchored else pattern).replace("$", "%24")
    return Rule(allow, tuple(re.sub(r"\*+", "*", literal).split("*")), anchored)


def _token(agent: str) -> str:
    """Return the product token that a user agent begins with, in lower case."""
    found = _TOKEN.match(agent)
    return found[0].lower() if found else ""


def _compared(path: str) -> str:
    """Return a path or a pattern as it is compared: see the laws above."""
    return _SPECIAL.sub(_escaped, path)


def _escaped(found: re.Match[str]) -> str:
    if found[1]:
        character = chr(int(found[1], 16))
        return character if _UNRESERVED.fullmatch(character) else found[0].upper()
    # A lone percent sign too, as in canonical URLs.
    return f"%{ord(found[0]):02X}"
