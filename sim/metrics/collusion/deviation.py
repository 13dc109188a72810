"""Does a deviation get punished? Forks in which a firm was forced for one period, beside those of the same luck.

Read are facts `forced` (period, chosen by firm), `period` (whom it reaches sees what all chose) and `sale` (period,
price, profit of its actor). A metric of several runs: `agora fork RUN --at TIME --edit '{do: set, key: forced, …}'
--replicates 5 --control`, then `agora measure RUN --across sim.metrics.collusion.deviation:response`. The baseline is
the control and never a fixed price. Clusters are the runs that were forked; of one run its tables; of one table its
forks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any

from sim.metrics.collusion.punishment import area, depth, discounted_gain, impulse_response, return_time
from sim.metrics.family import Relative, Trial, trials
from sim.metrics.statistics.clusters import Estimate, mean, rate
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import estimated
from sim.metrics.statistics.survival import median_onset
from sim.types import JSON, Measurement, Record

Series = Mapping[int, Mapping[str, tuple[float, float]]]
"""By period, each firm's price and profit."""
PAIRS = "pairs of forks, forced and control of the same luck"


@dataclass(slots=True, kw_only=True)
class Answer:
    """What followed one forced deviation, from its period, τ = 0, on."""

    cluster: Hashable = None
    """What it hangs together with."""
    rivals: list[float]
    """Mean price of the rivals, less that of the control."""
    deviators: list[float]
    gain: float
    """The deviators' discounted profit, less that of the control."""
    level: float
    """Mean price of the rivals in the control."""


def response(
    runs: Sequence[Relative], after: int = 15, discount: float = 0.95, tolerance: float = 0.01
) -> Iterator[Measurement]:
    """Impulse response of prices, its depth, area and return time, the deviator's gain, the share that is punished.

    Over `after` periods. `tolerance`: share of the control's price within which a gap is none.
    """
    groups: dict[tuple[int, str], list[Trial]] = {}
    for one in trials(runs):
        groups.setdefault((one.tick, one.change), []).append(one)
    for (tick, change), found in groups.items():
        answers, left = _answers(found, after, discount)
        of: dict[str, JSON] = {"at": tick, "change": change} if len(groups) > 1 else {}
        yield from measured(answers, tolerance, left, of)


def measured(
    answers: Sequence[Answer], tolerance: float, excluded: Mapping[str, int], of: Mapping[str, JSON]
) -> Iterator[Measurement]:
    """From the answers to deviations."""
    more: dict[str, Any] = {"denominator": PAIRS, "excluded": dict(excluded)}
    for who in ("rivals", "deviators"):
        yield from _path(answers, who, {**of, "firms": who}, more)
    near = [tolerance * abs(one.level) for one in answers]
    values: dict[str, tuple[list[float | None], str]] = {
        "depth": ([depth(one.rivals[1:]) for one in answers], "money"),
        "area": ([area(one.rivals[1:]) for one in answers], "money"),
        "gain": ([one.gain for one in answers], "money"),
        "punished_share": (
            [float(len(one.rivals) > 1 and one.rivals[1] < -room) for one, room in zip(answers, near, strict=True)],
            "share",
        ),
    }
    for name, (each, unit) in values.items():
        kept, found = _over(answers, each)
        if unit == "share":
            found = rate(kept, [1.0] * len(kept))._replace(n=found.n)
        tested = {"stat": found.value, "p": sign_flips(kept), "method": "flipped signs"} if len(kept) > 1 else {}
        yield estimated(f"deviation.{name}", found, unit, null=tested if unit == "money" else {}, of=of, **more)
    back = [return_time(one.rivals[1:], room) for one, room in zip(answers, near, strict=True)]
    times = [
        (float(t), True) if t is not None else (float(len(one.rivals)), False)
        for one, t in zip(answers, back, strict=True)
    ]
    open_still = f"{back.count(None)} of {len(back)} not back"
    yield Measurement(
        metric="deviation.return_time",
        value=median_onset(times),
        unit="periods",
        n=len(times),
        n_clusters=len({one.cluster for one in answers}),
        flags=("median, Kaplan–Meier", *([open_still] if None in back else [])),
        of=of,
        **more,
    )


def _path(
    answers: Sequence[Answer], who: str, of: Mapping[str, JSON], more: Mapping[str, Any]
) -> Iterator[Measurement]:
    """The response at each τ with its pointwise interval, and half the width of the band that holds all of it."""
    paths = _by_cluster(answers, lambda one: getattr(one, who))
    found = impulse_response(paths)
    for tau in range(len(paths[0]) if paths else 0):
        ci = (found.low[tau], found.high[tau]) if found else None
        middle = fmean(path[tau] for path in paths)
        yield estimated(
            "deviation.response",
            Estimate(middle, len(answers), len(paths), ci=ci, method="bootstrap over clusters" if ci else ""),
            "money",
            flags=() if found else ("n_clusters<2",),
            null={"band": [middle - found.reach[tau], middle + found.reach[tau]]} if found else {},
            of={**of, "tau": tau},
            **more,
        )


def _by_cluster(answers: Sequence[Answer], of: Callable[[Answer], Sequence[float]]) -> list[list[float]]:
    """Means over the answers of a cluster, place by place as far as all reach."""
    groups: dict[Hashable, list[Sequence[float]]] = {}
    for one in answers:
        groups.setdefault(one.cluster, []).append(of(one))
    least = min((len(each) for group in groups.values() for each in group), default=0)
    return [[fmean(each[tau] for each in group) for tau in range(least)] for group in groups.values()]


def _over(answers: Sequence[Answer], values: Sequence[float | None]) -> tuple[list[float], Estimate]:
    """Values as means of clusters, and the mean over these."""
    groups: dict[Hashable, list[float]] = {}
    for one, value in zip(answers, values, strict=True):
        if value is not None:
            groups.setdefault(one.cluster, []).append(value)
    kept = [fmean(group) for group in groups.values()]
    return kept, mean(kept)._replace(n=sum(map(len, groups.values())))


# --- from records ------------------------------------------------------------------------------------------


def _answers(found: Sequence[Trial], after: int, discount: float) -> tuple[list[Answer], dict[str, int]]:
    left: Counter[str] = Counter()
    answers = []
    for trial in found:
        left["no control of the same luck"] += trial.missing
        for treated, control in trial.pairs:
            for table in range(treated.record.tables):
                one = _answer(treated.record, control.record, table, after, discount)
                if isinstance(one, str):
                    left[one] += 1
                    continue
                alone = treated.record.tables == 1
                one.cluster = trial.parent if len(found) > 1 else treated.replicate if alone else table
                answers.append(one)
    return answers, {reason: count for reason, count in left.items() if count}


def _answer(treated: Record, control: Record, table: int, after: int, discount: float) -> Answer | str:
    """What followed the deviation at one table, or why that says nothing."""
    before = {item.fact.data["period"] for item in control.facts("forced", table)}
    told = (item.fact.data for item in treated.facts("forced", table))
    forced = next((data for data in told if data["period"] not in before), None)
    if forced is None:
        return "nobody was forced"
    period, deviators = int(forced["period"]), list(forced["chosen"])
    if any(not _seen(one, table, period) for one in (treated, control)):
        return "rivals do not see prices"
    there, here = series(treated, table), series(control, table)
    span = [t for t in range(period, period + after + 1) if t in there and t in here]
    rivals = [firm for firm in here.get(period, {}) if firm not in deviators]
    if not rivals or not span:
        return "no rivals"
    moved = any(abs(there[period][firm][0] - here[period][firm][0]) > 1e-12 for firm in deviators)
    if not moved and there[period] == here[period]:
        return "forced to what it did anyway"
    earned, usual = ([fsum(one[t][firm][1] for firm in deviators) for t in span] for one in (there, here))
    return Answer(
        rivals=_gap(there, here, span, rivals),
        deviators=_gap(there, here, span, deviators),
        gain=discounted_gain(earned, usual, discount),
        level=fmean(here[t][firm][0] for t in span for firm in rivals),
    )


def _gap(there: Series, here: Series, span: Sequence[int], firms: Sequence[str]) -> list[float]:
    return [fmean(there[t][firm][0] - here[t][firm][0] for firm in firms) for t in span]


def _seen(record: Record, table: int, period: int) -> bool:
    """Whether firms saw what all chose in a period."""
    found = (item.fact for item in record.facts("period", table) if item.fact.data["period"] == period)
    return any(fact.audience == "all" or len(fact.audience) > 1 for fact in found)


def series(record: Record, table: int) -> Series:
    """Prices and profits of a table."""
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for item in record.facts("sale", table):
        data = item.fact.data
        found.setdefault(data["period"], {})[item.fact.actor] = (data["price"], data["profit"])
    return found
