"""Spread as a process in discrete time: a chance to catch something by each message, a chance to lose it each round.

Maximum likelihood on person-period rows, with intervals by profile likelihood, which take rows for independent given
what was seen. At the edge, where nobody or everybody did, the bound is one-sided. Both chances and who reaches whom
make the reproduction number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import exp, expm1, fsum, inf, log

from scipy.optimize import brentq, minimize_scalar

from sim.metrics.safety.spread import final_size
from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.given import number, truths, whole
from sim.metrics.statistics.profile import interval

METHOD = "profile likelihood"
ONE_SIDED = "profile likelihood, one-sided"
LARGEST = 40.0
"""Hazard by which a chance is 1 as far as numbers tell."""
FAR = 12.0
"""Logarithm of a ratio of chances that is as good as infinite."""


class Rows:
    """Person-periods: how many messages were seen, and whether what they carry was caught: 1 − (1 − β)^messages."""

    def __init__(self, rows: Iterable[tuple[int, bool]]) -> None:
        given = list(rows)
        messages = [whole("messages", seen, 1) for seen, _ in given]
        counts = Counter(zip(messages, truths("caught", (caught for _, caught in given)), strict=True))
        self.n = len(given)
        self.caught = {seen: many for (seen, caught), many in sorted(counts.items()) if caught}
        self.passed = sum(seen * many for (seen, caught), many in counts.items() if not caught)
        """Messages of rows in which nothing was caught."""

    def loss(self, hazard: float) -> float:
        """−log-likelihood of a hazard a message, −log(1 − β)."""
        if hazard <= 0:
            return inf if self.caught else 0.0
        return hazard * self.passed - fsum(many * log(-expm1(-hazard * seen)) for seen, many in self.caught.items())

    def best(self) -> float | None:
        """The hazard of the largest likelihood; None without rows."""
        if not self.n:
            return None
        if not self.caught:
            return 0.0
        if not self.passed:
            return LARGEST

        def slope(hazard: float) -> float:
            gained = fsum(many * seen / expm1(hazard * seen) for seen, many in self.caught.items())
            return self.passed - gained

        return float(brentq(slope, 1e-12, LARGEST, xtol=1e-14)) if slope(LARGEST) > 0 else LARGEST


def transmission(rows: Iterable[tuple[int, bool]]) -> Estimate:
    """β, infections a message, from rows of agents at risk: messages seen in a period, and whether it was caught."""
    found = Rows(rows)
    best = found.best()
    if best is None:
        return Estimate(None)
    low, high = interval(found.loss, best, 0.0, LARGEST)
    edge = best in (0.0, LARGEST)
    ends = _chance(low), 1.0 if high == LARGEST else _chance(high)
    value = 1.0 if best == LARGEST else _chance(best)
    flags = (("nobody caught it",) if best == 0 else ("everybody caught it",)) if edge else ()
    return Estimate(value, found.n, found.n, ci=ends, method=ONE_SIDED if edge else METHOD, flags=flags)


def clearing(cleared: int, rounds: int) -> Estimate:
    """γ, chance a round to be rid of it, from how often that happened in all rounds of those who had it."""
    found = transmission(_cleared(cleared, rounds))
    if not found.flags:
        return found
    return found._replace(flags=("nobody was rid of it" if found.value == 0 else "all were rid of it at once",))


def reproduction(rows: Iterable[tuple[int, bool]], cleared: int, rounds: int, contacts: float) -> Estimate:
    """R₀ = β·λ/γ, λ the messages a round that carry it to others (`spread.reproduction_by_contacts`), as it is given.

    Rows, rounds and who was rid of it as in `transmission` and `clearing`. Where nobody was rid of it there is no
    finite number, and the interval has no upper end; None where nobody was at risk or had it, or reaches anybody.
    """
    contacts, risk, had = number("contacts", contacts, 0), Rows(rows), Rows(_cleared(cleared, rounds))
    catches, clears = risk.best(), had.best()
    if catches is None or clears is None or not contacts or catches == clears == 0:
        return Estimate(None, risk.n, risk.n)

    def loss(log_ratio: float) -> float:
        """Of β/γ, the better of all pairs of chances with that ratio."""
        ratio = exp(log_ratio)

        def both(log_gamma: float) -> float:
            gamma = exp(log_gamma)
            return risk.loss(_hazard(ratio * gamma)) + had.loss(_hazard(gamma))

        most = min(0.0, -log_ratio)
        return float(minimize_scalar(both, bounds=(most - 16, most), method="bounded", options={"xatol": 1e-9}).fun)

    value = None if clears == 0 else contacts * _chance(catches) / _chance(clears)
    best = -FAR if catches == 0 else FAR if value is None else log(value / contacts)
    low, high = interval(loss, best, -FAR, FAR)
    ends = 0.0 if best == -FAR else contacts * exp(low), inf if best == FAR else contacts * exp(high)
    flags = {-FAR: ("nobody caught it",), FAR: ("nobody was rid of it: no finite number",)}.get(best, ())
    return Estimate(value, risk.n, risk.n, ci=ends, method=ONE_SIDED if flags else METHOD, flags=flags)


def attack_size(r0: Estimate) -> Estimate:
    """Share of a well-mixed population that such a number infects in the end, with the sizes of its interval."""
    if r0.value is None:
        return r0._replace(ci=None, method="")
    ends = (final_size(r0.ci[0]), final_size(r0.ci[1])) if r0.ci else None
    return r0._replace(value=final_size(r0.value), ci=ends)


def _cleared(cleared: int, rounds: int) -> Sequence[tuple[int, bool]]:
    cleared, rounds = whole("cleared", cleared), whole("rounds", rounds)
    if cleared > rounds:
        raise ValueError(f"cleared: {cleared} of {rounds} rounds")
    return [(1, place < cleared) for place in range(rounds)]


def _chance(hazard: float) -> float:
    return -expm1(-hazard)


def _hazard(chance: float) -> float:
    return min(LARGEST, -log(1 - chance)) if chance < 1 else LARGEST
