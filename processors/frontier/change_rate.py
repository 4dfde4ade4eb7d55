"""Change rate of a page, estimated from its visits, and the interval of refreshing that serves it best.

Strategy: a page changes as a Poisson process of some rate. Of the visits so far, the share that found a change estimates that rate
(Cho and Garcia-Molina, "Estimating Frequency of Change", ACM TOIT 3(3), 2003). A page that is visited at an interval I is current
for the share (1 - e^-x) / x of the time, x = rate * I. A further request is worth (1 - e^-x (1 + x)) / rate: the time for which it
makes the page current. All pages are refreshed best where that time is equal for all (Cho and Garcia-Molina, "Effective Page
Refresh Policies for Web Crawlers", ACM TODS 28(4), 2003, 4.3): it is the price of a request.

Laws:
- The interval is between `shortest` and `longest`. A page without a known change has the longest, and so has one that changes so
  fast that no request is worth its price (price * rate >= 1): requests in proportion to the rate keep fewer pages current than a
  fixed interval does.
- No interval is below 3.35 times the price, the minimum of x / (price * rate).
- Times are in any one unit, rates in changes per that unit.
"""

from __future__ import annotations

import math

STEPS = 60
"""Bisections: a hundred years become less than a nanosecond."""


def change_rate(visits: int, changes: int, first: int, last: int) -> float:
    """Return the estimated number of changes per unit of time; 0 if no change was found.

    `visits`: comparisons with the version before, from the second visit on; `changes`: those that found a change; `first`, `last`:
    times of the first visit, which has nothing to be compared with, and of the last one. -ln((n - X + 0.5) / (n + 0.5)) is the
    estimate of the changes in one interval, whose bias is small and which is finite where every visit found a change (formula 12).
    """
    if visits <= 0 or changes <= 0 or last <= first:
        return 0.0
    unchanged = visits - min(changes, visits)
    return -math.log((unchanged + 0.5) / (visits + 0.5)) * visits / (last - first)


def refresh_interval(rate: float, price: float, shortest: float, longest: float) -> float:
    """Return the interval I that solves 1 - e^-x (1 + x) = price * rate, x = rate * I, between `shortest` and `longest`."""
    worth = price * rate
    if rate <= 0 or worth >= 1 or shortest >= longest or _gain(rate * longest) <= worth:
        return longest
    if _gain(rate * shortest) >= worth:
        return shortest
    low, high = shortest, longest
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _gain(rate * middle) < worth:
            low = middle
        else:
            high = middle
    return high


def _gain(x: float) -> float:
    """Return 1 - e^-x (1 + x), which rises from 0 to 1."""
    if x < 1e-3:
        return x * x * (0.5 - x / 3)  # its series: the difference of two numbers near 1 would have few digits
    return 1 - math.exp(-x) * (1 + x)
