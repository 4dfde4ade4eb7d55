"""Redirects that one exchange follows by itself, because the server sets a cookie in them. No I/O.

A cookie wall redirects to a URL that tests the cookie, and from there back: /a sets a cookie and redirects to /a?set=1, which
redirects to /a, which is 200 only with the cookie. Without cookies, that is a circle. All other redirects are the frontier's: their
targets are URLs like any other.

A redirect is followed within the exchange if
- a response of the chain has set a cookie (RFC 6265; `cookies.py`);
- the target is on the same host: scheme, name and port;
- robots.txt of the host allows the target (the frontier has checked the requested URL);
- the redirect is temporary (302, 303, 307), or the target has the path of the requested URL: after a permanent redirect, the target
  is the URL of the page (RFC 9110, 15.4);
- the same URL was not requested with the same cookies before, and at most `MAX_HOPS` redirects were followed.

If the chain returns to the requested URL, that response is the answer to the request. If it ends elsewhere, the answer is a
redirect to that URL, which the frontier requests, without cookies. Each request of a chain waits for the pause of its host and of
its address. The cookies are forgotten at the end of the chain.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from processors.identity import frontier_key
from processors.urls import canonical
from schemas.records import FetchRequest, Record
from streams.fetch.adapters.cookies import Jar
from streams.fetch.answers import Answers, FetchError

MAX_HOPS = 5
"""Maximum number of redirects that one exchange follows."""
TEMPORARY = frozenset((302, 303, 307))


class Redirect(NamedTuple):
    """A redirect: its status, its canonical target, and the Set-Cookie fields of its response."""

    status: int
    target: str
    cookies: tuple[str, ...] = ()


def redirect(source: str, status: int, location: str, cookies: tuple[str, ...]) -> Redirect:
    """Return a redirect from a canonical URL. Raises FetchError if its Location is missing or no URL that can be fetched."""
    # Non-ASCII bytes are percent-encoded as received: aiohttp hides those that are not UTF-8 in surrogates.
    raw = location.encode("utf-8", "surrogateescape")
    target = canonical("".join(chr(b) if b < 0x80 else f"%{b:02X}" for b in raw), source) if raw else None
    if target is None:
        where = f"to an unsupported URL: {location}" if location else "without a Location"
        raise FetchError(f"status {status} {where}", retryable=False)
    return Redirect(status, target, cookies)


class Chain:
    """The chain of redirects of one request; `url` and `cookie` (the header, "" for none) are those of its next request."""

    def __init__(self, request: FetchRequest, now: int) -> None:
        self._request = request
        self._jar = Jar(now)
        self._asked = {(request.url, "")}
        self._status = 0
        self.url = request.url
        self.cookie = ""
        self.hops: list[str] = []
        """The targets followed so far, in order."""

    def next_url(self, redirect: Redirect) -> str:
        """Take the cookies of a redirect, and return its target if the exchange follows it unless robots.txt forbids, else ""."""
        self._jar.update(self.url, redirect.cookies)
        target, home = redirect.target, self._request.url
        if not self._jar or len(self.hops) >= MAX_HOPS or frontier_key(target) != frontier_key(home):
            return ""
        permanent = redirect.status not in TEMPORARY and urlsplit(target).path != urlsplit(home).path
        return "" if permanent or (target, self._jar.header(target)) in self._asked else target

    def follow(self, redirect: Redirect) -> None:
        """Make the target of a redirect the URL of the next request."""
        self.url, self.cookie = redirect.target, self._jar.header(redirect.target)
        self._asked.add((self.url, self.cookie))
        self._status = redirect.status
        self.hops.append(self.url)

    def redirected(self, redirect: Redirect, now: int) -> list[Record]:
        """Return the answer for a redirect that is not followed. Raises FetchError if it leads to itself."""
        if redirect.target == self.url:
            raise FetchError(f"status {redirect.status} to itself", retryable=False)
        return Answers(self._request, now).moved(redirect.target, redirect.status, self.hops)

    def ended(self, now: int) -> list[Record]:
        """Return the answer for a chain that ended at another URL than that of the request: a redirect to that URL."""
        return Answers(self._request, now).moved(self.url, self._status, self.hops[:-1])
