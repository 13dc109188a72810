"""Q-learning firms at full length: profit gain, price and punishment in the baseline of Calvano et al. (2020).

A session ends when no best action has changed for 100,000 periods, after some two million. Then the two firms meet in
the world, once left alone and once with a firm forced to its best reply for a period: the difference is the response.

Run: `python -m tests.benchmarks pricing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

from sim.metrics.collusion.deviation import response as answered
from sim.metrics.collusion.markups import all as markups
from sim.metrics.family import Relative
from sim.metrics.pooling import pooled
from sim.types import Measurement, Seat, Set
from tests.worlds.playing import Played, play
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.qlearning import Converged, Learning, session
from worlds.pricing.settings import OligopolyParams, grid
from worlds.pricing.strategies import BestReply, Constant

SEATS = [Seat(agent="one"), Seat(agent="two")]
SHOCK = 20
"""The period in which a firm is forced."""
AFTER = 15
"""Periods after it that are looked at."""


def market(seed: int, learning: Learning, forced: bool) -> Played:
    """The firms of one session in the world."""
    firm = partial(
        Converged, seed=seed, alpha=learning.alpha, beta=learning.beta, delta=learning.delta, patience=learning.patience
    )
    return met(firm, "best_reply" if forced else None)


def met(firm: Any, forced: float | str | None, periods: int = 400) -> Played:
    """Two firms of a kind in the world, the first forced to something in one period."""
    shock = [(2 * SHOCK - 2, Set(key="forced", value={"one": forced}), None)] if forced is not None else []
    params = {"levels": 15, "periods": periods, "window": periods - 50, "pause": 2, "history": 1}
    return play(Oligopoly, [(seat, firm) for seat in SEATS], params, interventions=shock)


def fallen(pairs: Sequence[tuple[Any, Any]]) -> dict[str, Measurement]:
    """What `deviation` and `markups` say of markets left alone, each with its fork in which a firm was forced."""
    runs = []
    for number, (alone, shocked) in enumerate(pairs):
        runs.append(Relative(id=f"{number}", record=alone, scenario={}))
        fork = f"{number}-fork"
        runs.append(Relative(id=fork, record=shocked, scenario={}, parent=f"{number}", tick=SHOCK, change="forced"))
    found = {one.metric: one for one in answered(runs) if not one.of}
    gains = [one for alone, _ in pairs for one in markups(alone) if one.metric == "pricing.profit_gain" and not one.of]
    return found | {"gain": pooled_one(gains)}


def pooled_one(of: Sequence[Measurement]) -> Measurement:
    """The mean over runs."""
    (found,) = pooled({str(number): [one] for number, one in enumerate(of)})
    return found


def prices(record: Played) -> list[tuple[float, float]]:
    """Prices of both firms by period."""
    return [(data["chosen"]["one"], data["chosen"]["two"]) for data in record.data("period")]


def response(seed: int, learning: Learning) -> list[tuple[float, float]]:
    """How much both firms' prices differ from the path without the shock, from its period on."""
    alone, shocked = prices(market(seed, learning, forced=False)), prices(market(seed, learning, forced=True))
    assert alone[: SHOCK - 1] == shocked[: SHOCK - 1]
    window = slice(SHOCK - 1, SHOCK + AFTER)
    pairs = zip(alone[window], shocked[window], strict=True)
    return [(forced[0] - free[0], forced[1] - free[1]) for free, forced in pairs]


def periods_of(seed: int, learning: Learning) -> int:
    """How many periods a session took."""
    demand = OligopolyParams().market(SEATS)
    levels = tuple(grid(*ends, 15, 0.1) for ends in zip(demand.nash(), demand.optimum(), strict=True))
    return session(demand, levels, learning, seed).periods


def told(values: Sequence[float]) -> str:
    """Mean and standard error."""
    return f"{fmean(values):.3f} ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else f"{values[0]:.3f}"


def main(sessions: int = 20, beta: float = 4e-6, patience: int = 100_000) -> Iterator[str]:
    """A line for what the firms earn, and one for how they answer a deviation."""
    learning = Learning(beta=beta, patience=patience)
    gains, means, lengths, responses = [], [], [], []
    pairs: list[tuple[Played, Played]] = []
    for seed in range(sessions):
        pairs.append((market(seed, learning, forced=False), market(seed, learning, forced=True)))
        measured = pairs[-1][0].measured(Oligopoly.metrics)
        gains.append(measured["oligopoly.profit_gain"].value or 0.0)
        means.append(measured["oligopoly.mean_price"].value or 0.0)
        lengths.append(periods_of(seed, learning) / 1e6)
        responses.append(response(seed, learning))
    yield (
        f"Q-learning, beta {beta:g}, {sessions} sessions: profit gain {told(gains)}, mean price {told(means)}, "
        f"{told(lengths)} million periods"
    )
    rival = [[step[1] for step in steps] for steps in responses]
    cut = [fmean(steps[1:4]) for steps in rival]
    path = " ".join(f"{fmean(each):+.3f}" for each in zip(*rival, strict=True))
    yield (
        f"  the rival's price after a forced best reply, mean of periods 1 to 3: {told(cut)}; share of sessions with a "
        f"cut {fmean(each < 0 for each in cut):.2f}; by period {path}"
    )
    yield summary("Q-learning", fallen(pairs))
    for who, firm in (
        ("myopic best replies", BestReply),
        ("the monopoly price by fiat", partial(Constant, at="optimum")),
    ):
        yield summary(who, fallen([(met(firm, None), met(firm, "best_reply"))]))


def summary(who: str, found: dict[str, Measurement]) -> str:
    """What firms earn, and whether deviating from it is punished."""
    names = ("gain", "deviation.depth", "deviation.gain", "deviation.punished_share", "deviation.return_time")
    parts = [f"{name.removeprefix('deviation.')} {figure(found[name])}" for name in names]
    return f"  {who}: profit {', '.join(parts).replace(', gain', ', gain of deviating')}"


def figure(one: Measurement) -> str:
    """A value with its interval."""
    if one.value is None:
        return "none"
    return f"{one.value:.3f}" + (f" [{one.ci[0]:.3f}, {one.ci[1]:.3f}]" if one.ci else "")
