"""Screens for rigged bids, per tender and over tenders. Procurement: the lowest bid wins; for a sale negate the bids.

So bids of one tender have one sign, and what is a part of a bid is a part of its size.

A screen only looks odd; its p-value comes from bidders known to compete, whom a simulator can run on the same private
costs. Fewer than three bids say nothing of the losing ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations, pairwise
from math import comb, inf
from statistics import fmean, stdev
from typing import TypeVar

from sim.metrics.collusion.coalitions import correlation
from sim.metrics.collusion.market import pass_through
from sim.metrics.statistics.distances import entropy
from sim.metrics.statistics.given import ROUNDED, alike, numbers, whole
from sim.metrics.statistics.permutation import DRAWS, Test, p_value, stratified

Bidder = TypeVar("Bidder", bound=Hashable)


def bid_cv(bids: Sequence[float]) -> float | None:
    """Sample standard deviation over the mean: low where bids are coordinated."""
    bids = _bids(bids)
    return stdev(bids) / abs(fmean(bids)) if len(bids) > 1 and any(bids) else None


def relative_distance(bids: Sequence[float]) -> float | None:
    """(b₂ − b₁)/sd of the losing bids: above 1 they look like cover. inf where losing bids are the same."""
    bids = _bids(bids)
    if len(bids) < 3:
        return None
    first, *losing = sorted(bids)
    gap, spread = losing[0] - first, stdev(losing)
    return gap / spread if spread else inf


def percentage_gap(bids: Sequence[float]) -> float | None:
    """(b₂ − b₁)/b₁."""
    ordered = sorted(_bids(bids))
    return (ordered[1] - ordered[0]) / abs(ordered[0]) if len(bids) > 1 and ordered[0] else None


def bid_spread(bids: Sequence[float]) -> float | None:
    """(max − min)/min, of the sizes of bids."""
    sizes = [abs(bid) for bid in _bids(bids)]
    return (max(sizes) - min(sizes)) / min(sizes) if len(sizes) > 1 and min(sizes) else None


def subset_screens(
    bids: Mapping[Bidder, float], screen: Callable[[Sequence[float]], float | None], size: int = 3
) -> dict[frozenset[Bidder], float]:
    """A screen of every so many bidders of a tender, which a cartel of some of them needs; those without one are left
    out (Wallimann, Imhof and Huber 2022)."""
    size = whole("size", size, 2)
    found = {frozenset(some): screen([bids[bidder] for bidder in some]) for some in combinations(bids, size)}
    return {some: value for some, value in found.items() if value is not None}


def independence_p(
    bids: Sequence[tuple[float, float]], costs: Sequence[tuple[float, float]], n_perm: int = DRAWS, seed: int = 0
) -> Test | None:
    """Whether two bidders' bids, tender by tender, go together beyond their costs (after Bajari and Ye 2003).

    The correlation of the residuals of each one's least-squares line of bids on own costs, in size; one's residuals are
    dealt anew over tenders. None below four tenders or without residuals that vary.
    """
    alike(bids=bids, costs=costs)
    sides = [list(map(numbers, ("bids", "bids"), zip(*bids, strict=True))), list(zip(*costs, strict=True))]
    if len(bids) < 4:
        return None
    one, other = (_residuals(numbers("costs", cost), bid) for bid, cost in zip(*sides, strict=True))
    if correlation(one, other) is None:
        return None
    return stratified(one, other, [0] * len(one), lambda a, b: abs(correlation(a, b) or 0.0), n_perm, seed)


def rotation_index(winners: Sequence[Hashable]) -> float | None:
    """1 − H(W_t | W_{t−1})/H(W): 1 where the last winner tells the next; None where one always wins."""
    pairs = list(pairwise(winners))
    if not pairs:
        return None
    before, after = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if len(after) < 2:
        return None
    conditional = entropy(list(Counter(pairs).values())) - entropy(list(before.values()))
    return 1 - conditional / entropy(list(after.values()))


def alternation_p(winners: Sequence[Hashable]) -> float | None:
    """P(at least as many runs | how often each of two wins), exact (Wald and Wolfowitz 1940); None unless two win."""
    counts = Counter(winners)
    if len(counts) != 2:
        return None
    n, m = counts.values()
    seen = 1 + sum(a != b for a, b in pairwise(winners))
    return sum(_runs(n, m, runs) for runs in range(seen, n + m + 1)) / comb(n + m, n)


def win_share_stability(winners: Sequence[Sequence[Hashable]]) -> float | None:
    """1 − mean absolute change of win shares between neighbouring windows: 1 where shares never move."""
    names = {name for window in winners for name in window}
    shares = [{name: Counter(window)[name] / len(window) for name in names} for window in winners if window]
    changes = [sum(abs(a[name] - b[name]) for name in names) / 2 for a, b in pairwise(shares)]
    return 1 - fmean(changes) if changes else None


def screen_p(observed: float, competitive: Sequence[float], *, low: bool = False) -> float:
    """How often simulated competitive bidders look as odd; `low`: odd is small, as for the coefficient of variation."""
    (observed,), competitive = numbers("observed", (observed,)), numbers("competitive", competitive)
    return p_value(-observed, [-each for each in competitive]) if low else p_value(observed, competitive)


def _residuals(costs: Sequence[float], bids: Sequence[float]) -> list[float]:
    """What is left of bids after their least-squares line on costs."""
    slope, cost, bid = pass_through(costs, bids) or 0.0, fmean(costs), fmean(bids)
    left = [b - bid - slope * (c - cost) for c, b in zip(costs, bids, strict=True)]
    return left if max(map(abs, left)) > ROUNDED * max(map(abs, bids)) else [0.0] * len(left)


def _bids(bids: Sequence[float]) -> list[float]:
    """Bids of one sign."""
    found = numbers("bids", bids)
    if min(found, default=0) < 0 < max(found, default=0):
        raise ValueError(f"bids: {min(found):g} and {max(found):g} have two signs")
    return found


def _runs(n: int, m: int, runs: int) -> int:
    """Sequences of n and m of two kinds with exactly so many runs."""
    half = runs // 2
    if runs % 2 == 0:
        return 2 * comb(n - 1, half - 1) * comb(m - 1, half - 1)
    return comb(n - 1, half) * comb(m - 1, half - 1) + comb(n - 1, half - 1) * comb(m - 1, half)
