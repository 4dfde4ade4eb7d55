"""The lines about roots that could not be gathered. A reason that they state is not a line of the closing table as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from streams.cli.common import counted
from streams.embedded.outcomes import CLOSED, HELD
from streams.fetch.answers import ALLOW

Failures = Sequence[tuple[str, str]]
"""Roots that could not be gathered: URL and reason."""


def failure_lines(failed: Failures, refused: Mapping[str, int], rejected: Mapping[str, int], hint: str = "") -> Iterator[str]:
    """Yield a line for each root, and one alone for all URLs at a refused address.

    `refused` and `rejected`: URLs of the run by reason; `hint`: what to do about a root that may never come back.
    """
    roots: dict[tuple[str, str], list[str]] = {}
    for root, reason in failed:
        roots.setdefault((reason, "" if ALLOW in reason else root), []).append(root)
    for (reason, _), (first, *others) in roots.items():
        urls = refused.get(reason, 0) + rejected.get(reason, 0) if ALLOW in reason else 0
        more = max(urls - 1, len(others))
        also = f" and {counted(more, 'more URL')}" if more else ""
        yield f"{first}{also}: {reason}{'' if any(each in reason for each in (ALLOW, CLOSED, HELD)) else hint}"


def other_reasons(counts: Mapping[str, int], failed: Failures) -> dict[str, int]:
    """Return the counts of the reasons that `failure_lines` does not state for all of their URLs."""
    roots = Counter(reason for _, reason in failed)
    return {why: n for why, n in counts.items() if not roots[why] or (n > roots[why] and ALLOW not in why)}
