"""Options of a root that the frontier applies, compiled from its Plan, and the row that keeps it.

| row | holds |
| --- | --- |
| `o|root` | Plan, as the newest `seeded` event that had one stated it |

A root without a plan has the options of the settings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast
from urllib.parse import unquote_to_bytes

from processors.frontier.plans.hours import Hours, parse_hours
from processors.frontier.plans.rewrite import Rewriting
from processors.frontier.plans.scope import Scope
from processors.identity import file_path, file_url
from schemas.codec import decode, encode
from schemas.plan import MAX_PAUSE
from schemas.ports import Rows
from schemas.records import Plan

FETCH = "fetch"
"""Value of `missing`: what is missing in a mapped folder is requested from its server."""


class LocalFile(NamedTuple):
    """The file that is read instead of asking a server, and the folder that it must be in, as `file:` URLs."""

    url: str
    within: str


class RootOptions:
    """A Plan, compiled. Raises ValueError with one line that begins with the name of the wrong option."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.scope = Scope(plan)
        self.rewriting = Rewriting(plan.rewrite)
        self.hours: Hours | None = None
        if plan.hours:
            try:
                self.hours = parse_hours(plan.hours)
            except ValueError as error:
                raise ValueError(f"hours: {error}") from None
        self.pause = -1 if plan.pause is None else min(plan.pause, MAX_PAUSE)
        self.fetches_missing = plan.missing == FETCH
        self.admission = (plan.hosts, plan.schemes, plan.allow, plan.deny, plan.rewrite, plan.variants)
        """What decides which links are admitted: once it changes, links that were refused have to be found again."""
        # The longest prefix first.
        self._maps = sorted(plan.map, key=lambda each: -len(each.url))

    def local(self, url: str) -> LocalFile | None:
        """Return the file that a canonical URL is mapped to, or None. A URL with a query is not that of a file."""
        for each in self._maps:
            if url.startswith(each.url) and "?" not in url:
                below = url[len(each.url) :]
                name = unquote_to_bytes(below)
                if b"\0" in name or "%2F" in below:
                    return None
                return LocalFile(file_url(file_path(each.folder) + name), each.folder)
        return None


NO_OPTIONS = RootOptions(Plan())
"""Options of a root without a plan."""


class PlanTable:
    """The plans of the roots of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._read: dict[str, RootOptions] = {}

    def of(self, root: str) -> RootOptions:
        """Return the options of a root."""
        found = self._read.get(root)
        if found is None:
            value = self.rows.get(b"o|" + root.encode())
            found = self._read[root] = _options(value) if value is not None else NO_OPTIONS
        return found

    def put(self, root: str, plan: Plan) -> None:
        """Write the plan of a root."""
        self._read.pop(root, None)
        self.rows.put(b"o|" + root.encode(), encode(plan))

    def end(self, root: str) -> None:
        """Delete the plan of a root."""
        self._read.pop(root, None)
        key = b"o|" + root.encode()
        if self.rows.get(key) is not None:
            self.rows.delete(key)


@lru_cache(1_024)
def _options(value: bytes) -> RootOptions:
    """Decode and compile a plan; cached, since every URL of the root needs it."""
    return RootOptions(cast("Plan", decode(value)))
