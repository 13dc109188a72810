"""Q-learning firms at full length: profit gain, price and punishment in the baseline of Calvano et al. (2020).

A session ends when no best action has changed for 100,000 periods, after some two million. Then the two firms meet in
the world, once left alone and once with a firm forced to its best reply for a period: the difference is the response.

Run: `python -m tests.benchmarks pricing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean, stdev

from sim.types import Seat, Set
from tests.worlds.playing import Played, play
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.qlearning import Converged, Learning, session
from worlds.pricing.settings import OligopolyParams, grid

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
    shock = [(2 * SHOCK - 2, Set(key="forced", value={"one": "best_reply"}), None)] if forced else []
    params = {"levels": 15, "periods": 400, "window": 350, "pause": 2, "history": 1}
    return play(Oligopoly, [(seat, firm) for seat in SEATS], params, interventions=shock)


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
    for seed in range(sessions):
        measured = market(seed, learning, forced=False).measured(Oligopoly.metrics)
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
