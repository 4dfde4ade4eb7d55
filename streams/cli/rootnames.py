"""Names of roots given by users: a path, or a URL."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from processors.collector import is_listing
from processors.identity import file_path, file_url, frontier_key
from processors.schemes import SCHEMES, scheme_of
from processors.urls import canonical
from schemas.records import Plan, Root
from streams.cli.common import Failure
from streams.clock import now_ms

if TYPE_CHECKING:
    from streams.config.settings import Settings

ACCEPTED = 86_400_000
"""Time in ms for which a run may go on to remove what it was told to remove."""
URL_MEANT = " (a URL begins with its scheme, as https://)"
_HOST = re.compile(r"(?:https?|ftp|gopher|news):|www\.|localhost[:/]|[\w-]+(?:\.[\w-]+)+(?::[0-9]+|/)")
"""The beginning of a name that may have been meant as a URL, of a file that does not exist."""
MOST_LINKS, MOST_URLS = 1_000_000, 1 << 50
"""Upper limits of a root's depth and URLs, as in `roots` of the settings."""


def url_of(text: str) -> str:
    """Return the canonical URL of a root; for a link, that of its target. Raises Failure."""
    named = _named(text)
    return named if isinstance(named, str) else _local(os.path.realpath(named) if os.path.islink(named) else named)


def meant(text: str, *, followed: bool = True) -> list[str]:
    """Return the URLs that a user's name may refer to, likeliest first. Raises Failure.

    Links in a folder are objects of their own, so the last component is not resolved. A second URL has the links above it resolved,
    since a root that is a link is recorded as its target; and, if `followed`, a further one has the last link resolved, which may
    be such a root.
    """
    path = _named(text)
    if isinstance(path, str):
        return [path]
    above, last = os.path.split(path)
    paths = [path, os.path.join(os.path.realpath(above), last), *([os.path.realpath(path)] if followed else [])]
    return list(dict.fromkeys(map(_local, paths)))


def _named(text: str) -> str | bytes:
    """Return the canonical URL for another machine, or the path on this one: a URL is kept, anything else is a path."""
    if not text:
        raise Failure("an empty ROOT or URL (the current folder is .)", 2)
    scheme, mark, _ = text.partition(":")
    if not mark or not (text.startswith(f"{scheme}://") or scheme == "file") or os.path.lexists(text):
        return os.fsencode(os.path.abspath(text))
    if scheme.lower() not in SCHEMES:
        raise Failure(f"{text}: {scheme}: is not a scheme that can be gathered ({', '.join(SCHEMES)})")
    found = canonical(text)
    if found is None:
        raise Failure(f"{text}: not a URL")
    if scheme_of(found).realm != "machine":
        return found
    if "?" in text or "#" in text:
        raise Failure(f"{text}: the URL of a file has neither query nor fragment (in a name, ? is %3F and # is %23)")
    return file_path(found).rstrip(b"/") or b"/"


def _local(path: bytes) -> str:
    """Return the URL of a path."""
    return file_url(path, folder=os.path.isdir(path) and not os.path.islink(path))


def check_limits(depth: int | None, urls: int | None) -> None:
    """Check limits. Raises Failure for those that no root can have."""
    for value, most in ((depth, MOST_LINKS), (urls, MOST_URLS)):
        if value is not None and value > most:
            raise Failure(f"{value}: a limit is at most {most:,}", 2)


def root_of(
    text: str, settings: Settings, depth: int | None, urls: int | None, plans: Mapping[str, Plan] = MappingProxyType({})
) -> Root:
    """Return the root that a user names, with its limits: those given, else those of its plan, else those of the settings.

    `plans`: the plans of known roots, by URL. Raises Failure if the root cannot be read.
    """
    url = url_of(text)
    check_limits(depth, urls)
    plan = plans.get(url, Plan())
    depth = plan.depth if depth is None else depth
    urls = plan.urls if urls is None else urls
    root = _root_of(text, url, settings, depth, urls)
    return msgspec.structs.replace(root, ttl=plan.ttl or root.ttl, refresh=plan.refresh or root.refresh)


def _root_of(text: str, url: str, settings: Settings, depth: int | None, urls: int | None) -> Root:
    given = settings.roots
    if scheme_of(url).limited:
        return Root(
            url=url,
            run="",
            host=frontier_key(url),
            depth=given.depth if depth is None else depth,
            urls=given.urls if urls is None else urls,
            ttl=given.ttl,
            refresh=given.refresh,
        )
    _check(text, file_path(url))
    return Root(
        url=url,
        run="",
        depth=-1 if depth is None else depth,
        urls=0 if urls is None else urls,
        ttl=given.ttl,
        refresh=given.refresh,
    )


def with_terms(root: Root, plan: Plan, settings: Settings) -> Root:
    """Return a known root with the time-to-live and refresh-rate that hold for it now: those of its plan, else of the settings.

    What is collected from another Gatherer keeps its own (`harvest collect --every`).
    """
    if is_listing(root.url):
        return root
    given = settings.roots
    return msgspec.structs.replace(root, ttl=plan.ttl or given.ttl, refresh=plan.refresh or given.refresh)


def gathered_root(
    text: str, settings: Settings, depth: int | None, urls: int | None, plans: Mapping[str, Plan] = MappingProxyType({})
) -> Root:
    """Return the root to gather, as `root_of`. Raises Failure, also for one in the data folder: gathering it would never end."""
    root = root_of(text, settings, depth, urls, plans)
    if scheme_of(root.url).realm == "machine":
        path, data = os.path.realpath(file_path(root.url)), os.path.realpath(os.fsencode(settings.data))
        if os.path.commonpath((path, data)) == data:
            raise Failure(f"{text}: {'' if path == data else 'in '}the data folder itself (--data names another one)")
    return root


def known_as(text: str, known: Iterable[Root]) -> Root | None:
    """Return the one of the known roots that a user's name means, whether it can be read now or not."""
    try:
        urls = {url.rstrip("/") for url in meant(text)}
    except Failure:
        return None  # not the name of a root at all
    return next((root for root in known if root.url.rstrip("/") in urls), None)


def accepted_until(accept: bool) -> int:
    """Return the time in ms until which a root accepts removals that are in doubt: a day from now, or 0."""
    return now_ms() + ACCEPTED if accept else 0


def _check(text: str, path: bytes) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise Failure(f"{text}: {error.strerror}{URL_MEANT if _HOST.match(text) else ''}") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise Failure(f"{text}: neither a file nor a folder")
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise Failure(f"{text}: Permission denied")
