"""What one setting makes of a number beside another: pairs of measurements of one thing, from runs that share luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import NamedTuple

from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.paired import effect
from sim.types import JSON, Measurement


class Difference(NamedTuple):
    """A mean paired difference, of ratios a mean quotient."""

    metric: str
    of: Mapping[str, JSON]
    """What the number is about."""
    unit: str
    """Of the difference; `times` of a quotient."""
    base: float
    """Mean of the first sides."""
    treated: float
    """Mean of the second sides."""
    estimate: Estimate
    """Of second less first, or over first."""
    p: float
    """By flipping signs."""
    pairs: int
    reduction: float | None = None
    """Variance of unpaired over paired differences; at 1 or less shared luck did not help."""

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out that nothing is different."""
        nothing, ci = float(self.unit == "times"), self.estimate.ci
        return ci is not None and not ci[0] <= nothing <= ci[1]


def difference(pairs: Sequence[tuple[Measurement, Measurement]]) -> Difference | None:
    """Second less first, ratios on logs as long as all are positive; pairs without both values do not count."""
    there = [pair for pair in pairs if pair[0].value is not None and pair[1].value is not None]
    if not there:
        return None
    first = there[0][0]
    base, treated = ([float(one.value or 0) for one in side] for side in zip(*there, strict=True))
    on_logs = first.unit == "ratio" and min(*base, *treated) > 0
    sides = [[log(value) for value in side] for side in (base, treated)] if on_logs else [base, treated]
    found = effect(*sides)
    if found is None:
        return None
    estimate = _from_logs(found.estimate) if on_logs else found.estimate
    unit = "times" if on_logs else first.unit
    return Difference(
        first.metric, first.of, unit, fmean(base), fmean(treated), estimate, found.p, len(there), found.reduction
    )


def _from_logs(one: Estimate) -> Estimate:
    ci = (exp(one.ci[0]), exp(one.ci[1])) if one.ci else None
    return one._replace(value=None if one.value is None else exp(one.value), ci=ci)
