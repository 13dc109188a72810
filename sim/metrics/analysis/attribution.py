"""Which step a failure comes from: pruned by what it could depend on, decided by replays with and without a change.

Plain re-sampling flips outcomes too, so the rate of a redo of the step as it was is taken off.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from sim.intervals import wilson
from sim.metrics.statistics.given import share_of, shares, whole
from sim.types import AgentId, Measurement


class Blame(NamedTuple):
    """How much a step's replacement changes the chance of success."""

    step: int
    score: float
    """P(success | step replaced) − P(success | step redone)."""
    ci: tuple[float, float]
    """By Newcombe's (1998) difference of two Wilson intervals."""


def ancestors(edges: Iterable[tuple[Hashable, Hashable]], symptom: Hashable) -> set[Hashable]:
    """All that a failing event could depend on, along edges from cause to effect."""
    before: dict[Hashable, set[Hashable]] = {}
    for cause, effect in edges:
        before.setdefault(effect, set()).add(cause)
    found: set[Hashable] = set()
    waiting = [symptom]
    while waiting:
        new = before.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found - {symptom}


def pruned_share(edges: Sequence[tuple[Hashable, Hashable]], symptom: Hashable, earlier: int) -> float | None:
    """Share of earlier steps that the symptom cannot depend on."""
    kept = share_of(len(ancestors(edges, symptom)), earlier)
    return None if kept is None else 1 - kept


def blame(step: int, replaced: tuple[int, int], redone: tuple[int, int], confidence: float = 0.95) -> Blame:
    """From (successes, replays) with the step replaced and with it redone. Raises ValueError without replays."""
    (low_p, high_p), (low_q, high_q) = wilson(*replaced, confidence), wilson(*redone, confidence)
    p, q = replaced[0] / replaced[1], redone[0] / redone[1]
    low = sqrt((p - low_p) ** 2 + (high_q - q) ** 2)
    high = sqrt((high_p - p) ** 2 + (q - low_q) ** 2)
    return Blame(step, p - q, (p - q - low, p - q + high))


def root_step(flip_rates: Sequence[float]) -> int | None:
    """Step, counted from 1, with the highest rate of flips; the earliest of equals, None where nothing flips."""
    rates = shares("flip_rates", flip_rates)
    return rates.index(max(rates)) + 1 if any(rates) else None


def root(blamed: Sequence[Blame]) -> int | None:
    """Of the steps that surely matter (interval above 0) the one with the largest score, the earliest of equals."""
    sure = [one for one in blamed if one.ci[0] > 0]
    return min(sure, key=lambda one: (-one.score, one.step)).step if sure else None


def minimality(substitutions: int, length: int) -> float | None:
    """1 − tokens changed over tokens of the step: how small a repair is enough."""
    changed = share_of(substitutions, length)
    return None if changed is None else 1 - changed


def step_accuracy(offsets: Sequence[int | None], within: int = 0) -> float | None:
    """Share of cases found within so many steps of the planted fault; None counts as missed."""
    within = whole("within", within)
    found = [None if one is None else whole("offsets", abs(one)) for one in offsets]
    return sum(one is not None and one <= within for one in found) / len(found) if found else None


def mean_reciprocal_rank(ranks: Sequence[int | None]) -> float | None:
    """Mean of 1/rank, from 1, of the planted fault; 0 for one that is not listed, whose rank is None."""
    parts = [0.0 if rank is None else 1 / whole("ranks", rank, 1) for rank in ranks]
    return sum(parts) / len(parts) if parts else None


def minimal_sets(flips: Mapping[frozenset[Hashable], bool]) -> list[frozenset[Hashable]]:
    """Of sets of steps whose replacement mends the failure those that hold no smaller one."""
    mending: Collection[frozenset[Hashable]] = [group for group, mended in flips.items() if mended]
    least = [one for one in mending if not any(other < one for other in mending)]
    return sorted(least, key=lambda one: (len(one), sorted(map(repr, one))))


def measured(
    places: Sequence[tuple[int, AgentId]], counts: Sequence[tuple[int, int, int]], earlier: int
) -> Iterator[Measurement]:
    """Of each suspect (its decision's place and agent; successes replaced, redone, of how many) the blame; the root.

    `earlier`: how many decisions there were up to the last suspect, of which the pruned are a share. The root is found
    by intervals that hold for all suspects at once (Bonferroni): with many, one of them stands out by chance.
    """
    together = [
        blame(number, (replaced, n), (redone, n), 1 - 0.05 / len(counts))
        for number, (replaced, redone, n) in enumerate(counts)
    ]
    for number, ((seq, agent), (replaced, redone, n)) in enumerate(zip(places, counts, strict=True)):
        one = blame(number, (replaced, n), (redone, n))
        yield Measurement(
            metric="attribution.blame",
            value=one.score,
            unit="share",
            n=2 * n,
            n_clusters=n,
            ci=one.ci,
            ci_method="Newcombe",
            decisions=(seq,),
            denominator="replays with the decision replaced, less those with it redone",
            of={"decision": seq, "agent": agent},
        )
    found = root(together)
    yield Measurement(
        metric="attribution.root",
        value=None if found is None else float(places[found][0]),
        unit="place in the log",
        n=len(places),
        n_clusters=len(places),
        decisions=() if found is None else (places[found][0],),
        denominator="decisions that the failure could depend on",
        flags=() if found is not None else ("no decision surely matters",) if places else ("nobody suspected",),
    )
    yield Measurement(
        metric="attribution.pruned",
        value=1 - len(places) / earlier if earlier else None,
        unit="share",
        n=earlier,
        denominator="decisions up to the last suspect",
    )
