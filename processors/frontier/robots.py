"""robots.txt as the Robots Exclusion Protocol has it (RFC 9309), with the Crawl-delay of common use.

Strategy: protego decides; before it parses, groups for other agents are folded into one. A file that names ten thousand agents
and then ten thousand rules would otherwise make their product of rules (RFC 9309 asks for 500 KiB to be read: enough for that).

Laws:
- An empty file allows all; a group that names the agent hides the group of `*` (RFC 9309, 2.2.1).
- Any bytes give an answer: what cannot be read as a rule is none (RFC 9309, 2.2.4).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protego import Protego

MAX_ROBOTS = 512 * 1024
"""Bytes of a robots.txt that count; RFC 9309 (2.5) asks for 500 KiB at least."""
SMALL = 16 * 1024

_AGENT = re.compile(r"\s*user[- ]?agent\s*[:\s]\s*([^#]*)", re.IGNORECASE)
_OTHERS = "User-agent: ~"


def allowed(robots: bytes, agent: str, url: str) -> bool:
    """Whether `agent` (a product token, "harvest") may fetch a canonical URL of the server whose robots.txt is given."""
    return not robots or _parsed(robots, agent).can_fetch(url, agent)


def crawl_delay(robots: bytes, agent: str) -> float | None:
    """The pause in seconds that the server asks `agent` for, or None; finite and not negative, but otherwise as stated."""
    return _parsed(robots, agent).crawl_delay(agent) if robots else None


def _parsed(robots: bytes, agent: str) -> Protego:
    return _small(robots, agent) if len(robots) <= SMALL else _large(robots, agent)


# Two caches, so that some hundred hosts of the usual kind stay in memory, but never hundreds of the largest files.
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
    """The line, but for a user-agent line that does not concern `agent`: that names the agent of all others."""
    found = _AGENT.match(line)
    if not found:
        return line
    named = found[1].strip().lower()
    return line if named == "*" or named.replace("*", "") in agent else _OTHERS
