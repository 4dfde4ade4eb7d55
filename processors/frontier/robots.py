"""robots.txt by the Robots Exclusion Protocol (RFC 9309), with the customary Crawl-delay.

Strategy: protego decides; before it parses, groups for other agents are folded into one. Otherwise a file with ten thousand agents
followed by ten thousand rules would expand to the product of both (RFC 9309 requires reading 500 KiB, which is room enough for
that).

Laws:
- An empty file allows all; a group that names the agent hides the group of `*` (RFC 9309, 2.2.1).
- Any bytes are accepted: a line that is not a valid rule is ignored (RFC 9309, 2.2.4).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protego import Protego

MAX_ROBOTS = 512 * 1024
"""Bytes of a robots.txt that are read; RFC 9309 (2.5) requires at least 500 KiB."""
SMALL = 16 * 1024

_TOKEN = re.compile(r"[A-Za-z_-]+")
_AGENT = re.compile(r"\s*user[- ]?agent\s*[:\s]\s*([^#]*)", re.IGNORECASE)
_OTHERS = "User-agent: ~"


def product_token(user_agent: str) -> str:
    """Return the product token with which a User-Agent begins (RFC 9309, 2.2.1)."""
    token = _TOKEN.match(user_agent)
    return token[0] if token else "Harvest"


def allowed(robots: bytes, agent: str, url: str) -> bool:
    """Return whether `agent` (a product token, "harvest") may fetch a canonical URL of the server that sent this robots.txt."""
    return not robots or _parsed(robots, agent).can_fetch(url, agent)


def crawl_delay(robots: bytes, agent: str) -> float | None:
    """Return the Crawl-delay for `agent` in seconds, or None; finite and not negative, otherwise as stated."""
    return _parsed(robots, agent).crawl_delay(agent) if robots else None


def _parsed(robots: bytes, agent: str) -> Protego:
    return _small(robots, agent) if len(robots) <= SMALL else _large(robots, agent)


# Two caches: hundreds of files of usual size stay in memory, but never hundreds of the largest.
@lru_cache(maxsize=512)
def _small(robots: bytes, agent: str) -> Protego:
    return _parse(robots, agent)


@lru_cache(maxsize=8)
def _large(robots: bytes, agent: str) -> Protego:
    return _parse(robots, agent)


def _parse(robots: bytes, agent: str) -> Protego:
    from protego import Protego  # noqa: PLC0415 - the command line and the children never ask

    text = robots[:MAX_ROBOTS].decode("utf-8", "replace").removeprefix("\ufeff")
    name = agent.lower()
    return Protego.parse("\n".join(_folded(line, name) for line in text.splitlines()))


def _folded(line: str, agent: str) -> str:
    """Return the line; a user-agent line for other agents becomes one for a placeholder agent."""
    found = _AGENT.match(line)
    if not found:
        return line
    named = found[1].strip().lower()
    return line if named == "*" or named.replace("*", "") in agent else _OTHERS
