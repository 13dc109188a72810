"""How good policies are, from what they earned and answered in stored games."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from statistics import NormalDist, fmean, variance

from sim.intervals import Z, wilson
from sim.types import Measurement, Record
from training.paths import answering
from training.trajectory import Row


def margins(rows: Iterable[Row], policy: str) -> list[float]:
    """What a policy earned above the best of the others, per episode and seat of its own.

    Episodes in which it met nobody but itself are left out, as are seats that never decided.
    """
    earned: defaultdict[str, defaultdict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    for row in _answers(rows):
        earned[row.episode][row.seat, row.policy] += row.reward
    return [
        mine - max(others)
        for seats in earned.values()
        for (_, name), mine in seats.items()
        if name == policy and (others := [each for (_, other), each in seats.items() if other != policy])
    ]


def win_rate(margins: Sequence[float], confidence: float = 0.95) -> Measurement:
    """Share of games won (a margin above 0) with Wilson's interval; draws count as games, and are told apart."""
    wins, n = sum(margin > 0 for margin in margins), len(margins)
    return Measurement(
        metric="win_rate",
        value=wins / n if n else None,
        unit="share",
        n=n,
        n_clusters=n,
        ci=wilson(wins, n, confidence) if n else None,
        ci_method="wilson",
        of={"draws": sum(margin == 0 for margin in margins), "mean_margin": fmean(margins) if n else None},
    )


def mean_of(metric: str, values: Sequence[float], unit: str = "points") -> Measurement:
    """A mean over games with the normal interval at 95%, which two games at least give."""
    n = len(values)
    half = Z * sqrt(variance(values) / n) if n > 1 else 0.0
    middle = fmean(values) if n else None
    return Measurement(
        metric=metric,
        value=middle,
        unit=unit,
        n=n,
        n_clusters=n,
        ci=(middle - half, middle + half) if middle is not None and n > 1 else None,
        ci_method="normal" if n > 1 else "",
    )


def gain(own: Mapping[str, Sequence[float]], response: Mapping[str, Sequence[float]]) -> Measurement:
    """Approximate NashConv: Σ over seats of (mean payoff of a trained response there − the policy's own).

    `own` holds the policy's payoffs against itself, `response` the response's against the policy, both by seat and one
    a game. A lower bound up to sampling error, as a trained response is no better than the best. The interval is
    normal, 95%; seats that `response` lacks count as gaining nothing.
    """
    parts = [(response[seat], own[seat]) for seat in response]
    if any(len(sample) < 2 for pair in parts for sample in pair):
        raise ValueError("give at least two payoffs of each seat")
    value = fsum(fmean(theirs) - fmean(mine) for theirs, mine in parts)
    half = NormalDist().inv_cdf(0.975) * sqrt(fsum(variance(sample) / len(sample) for pair in parts for sample in pair))
    games = sum(len(sample) for pair in parts for sample in pair)
    return Measurement(
        metric="approximate_nash_conv",
        value=value,
        unit="points",
        n=games,
        n_clusters=games,
        ci=(value - half, value + half),
        ci_method="normal",
    )


def rate_by_turn(rows: Iterable[Row], option: str) -> list[Measurement]:
    """Share of valid decisions that took an option, by the n-th decision of the agent, with Wilson's interval.

    Such as the defection rate by round of a repeated dilemma. Decisions made for an agent are left out and counted.
    """
    asked: Counter[int] = Counter()
    hits: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    episodes: defaultdict[int, set[str]] = defaultdict(set)
    for row in _answers(rows):
        episodes[row.turn].add(row.episode)
        failed[row.turn] += not row.valid
        asked[row.turn] += row.valid
        hits[row.turn] += row.valid and row.answer == option
    return [
        Measurement(
            metric="option_rate",
            value=hits[turn] / asked[turn] if asked[turn] else None,
            unit="share",
            n=asked[turn],
            n_clusters=len(episodes[turn]),
            ci=wilson(hits[turn], asked[turn]) if asked[turn] else None,
            ci_method="wilson",
            excluded={"not chosen": failed[turn]} if failed[turn] else {},
            of={"option": option, "turn": turn},
        )
        for turn in sorted(episodes)
    ]


def _answers(rows: Iterable[Row]) -> list[Row]:
    """The last row of each decision."""
    found = list(rows)
    return [found[index] for index in sorted(answering(found))]


def rubinstein(proposer: float, responder: float, left: int | None = None) -> float:
    """Share of the pie that a proposer keeps in equilibrium, by the discount factors of both.

    (1 − δ_r)/(1 − δ_p·δ_r) without an end (Rubinstein 1982; ½ where nobody discounts); with `left` rounds, this one
    included, x = 1 in the last and 1 − δ_responder·x of the next round before it.
    """
    if left is None:
        return 0.5 if proposer * responder == 1 else (1 - responder) / (1 - proposer * responder)
    if left <= 1:
        return 1.0
    return 1 - responder * rubinstein(responder, proposer, left - 1)


def proposer_share(record: Record) -> Measurement:
    """Mean undiscounted share of the pie that proposers keep in a bargaining's deals; pairs without one are counted.

    Whose offer it was follows from the round: the first of a pair proposes in odd ones.
    """
    deals = list(record.facts("deal"))
    pie = record.params["pie"]
    shares = []
    for deal in deals:
        data = deal.fact.data
        shares.append(data["shares"][data["agents"][(data["round"] - 1) % 2]] / pie)
    failed = sum(1 for _ in record.facts("pair")) - len(deals)
    return Measurement(
        metric="proposer_share",
        value=fmean(shares) if shares else None,
        unit="share",
        n=len(shares),
        n_clusters=len({one.table for one in deals}),
        excluded={"no deal": failed} if failed else {},
    )
