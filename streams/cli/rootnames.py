"""What a user names as a root: a path, or a URL."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from processors.identity import file_path, file_url, frontier_key
from processors.urls import canonical
from schemas.records import Root
from streams.cli.common import Failure

if TYPE_CHECKING:
    from streams.settings import Settings

SCHEMES = ("http", "https", "file")


def url_of(text: str) -> str:
    """The canonical URL that a user means: a URL as it is given, anything else as a path. Raises Failure."""
    scheme, mark, _ = text.partition(":")
    if not mark or not (text.startswith(f"{scheme}://") or scheme == "file") or os.path.exists(text):
        return _local(os.fsencode(os.path.abspath(text)))
    if scheme.lower() not in SCHEMES:
        raise Failure(f"{text}: {scheme}: is not a scheme that can be gathered ({', '.join(SCHEMES)})")
    found = canonical(text)
    if found is None:
        raise Failure(f"{text}: not a URL")
    return _local(file_path(found).rstrip(b"/") or b"/") if found.startswith("file:") else found


def _local(path: bytes) -> str:
    """The URL of a path; the target's, if it is a link."""
    if os.path.islink(path):
        path = os.path.realpath(path)
    return file_url(path, folder=os.path.isdir(path))


def root_of(text: str, settings: Settings, depth: int | None, urls: int | None) -> Root:
    """The root that a user names, with its limits. Raises Failure for what cannot be read."""
    url = url_of(text)
    given = settings.roots
    if not url.startswith("file:"):
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


def _check(text: str, path: bytes) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise Failure(f"{text}: {error.strerror}") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise Failure(f"{text}: neither a file nor a folder")
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise Failure(f"{text}: Permission denied")
