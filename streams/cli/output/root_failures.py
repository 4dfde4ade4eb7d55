"""The lines about roots that could not be gathered. A reason that they state is not a line of the closing table as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from processors.collector import is_listing
from streams.cli.common import counted
from streams.embedded.outcomes import CLOSED, HELD
from streams.fetch.answers import ALLOW

SOURCE = " (a source of a Broker, collected as long as a definition names it)"
"""In place of the advice to remove a root: the next run would add it again."""
TOKEN, NO_STREAM = "a gateway with a token cannot be collected", "no such Broker there, or it has no stream (stream = true)"
NO_QUERY = "the gateway finds a mistake in the query of this URL"

Failures = Sequence[tuple[str, str]]
"""Roots that could not be gathered: URL and reason."""


def failure_lines(
    failed: Failures, refused: Mapping[str, int], rejected: Mapping[str, int], hint: str = "", sources: Collection[str] = ()
) -> Iterator[str]:
    """Yield a line for each root, and one alone for all URLs at a refused address.

    `refused` and `rejected`: URLs of the run by reason; `hint`: what to do about a root that may never come back; `sources`: roots
    that are sources of Brokers.
    """
    roots: dict[tuple[str, str], list[str]] = {}
    for root, reason in failed:
        roots.setdefault((reason, "" if ALLOW in reason else root), []).append(root)
    for (reason, _), (first, *others) in roots.items():
        urls = refused.get(reason, 0) + rejected.get(reason, 0) if ALLOW in reason else 0
        more = max(urls - 1, len(others))
        also = f" and {counted(more, 'more URL')}" if more else ""
        yield f"{first}{also}: {reason}{_advice(first, reason, SOURCE if first in sources else hint)}"


def other_reasons(counts: Mapping[str, int], failed: Failures) -> dict[str, int]:
    """Return the counts of the reasons that `failure_lines` does not state for all of their URLs."""
    roots = Counter(reason for _, reason in failed)
    return {why: n for why, n in counts.items() if not roots[why] or (n > roots[why] and ALLOW not in why)}


def _advice(root: str, reason: str, hint: str) -> str:
    """Return what stands behind the reason why a root was not gathered: what it means for a stream, else the hint."""
    if any(each in reason for each in (ALLOW, CLOSED, HELD)):
        return ""
    if is_listing(root) and reason == "status 401":
        return f" ({TOKEN})"
    if is_listing(root) and "/brokers/" in root and reason == "status 404":
        return f" ({NO_STREAM})"
    if is_listing(root) and "?" in root and reason == "status 400":
        return f" ({NO_QUERY})"
    return hint
