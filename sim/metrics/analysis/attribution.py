"""Which step a failure comes from: pruned by what it could depend on, decided by replays with and without a change.

Plain re-sampling flips outcomes too, so the rate of a redo of the step as it was is taken off.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple, TypeVar

from rapidfuzz.distance import Levenshtein

from sim.intervals import wilson
from sim.metrics.judging.agreement import cohen_kappa
from sim.metrics.statistics.clusters import Estimate, independent_rate, mean
from sim.metrics.statistics.given import share_of, shares, whole
from sim.metrics.statistics.multiplicity import adjusted
from sim.metrics.statistics.permutation import exact_exposure
from sim.metrics.statistics.shares import estimated
from sim.types import AgentId, Measurement

H = TypeVar("H", bound=Hashable)
ENOUGH = 20
"""Replays that a blame should rest on."""


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


def first_wrong(
    steps: Sequence[Hashable], edges: Iterable[tuple[Hashable, Hashable]], wrong: Collection[Hashable]
) -> Hashable | None:
    """The earliest of `steps` whose content is wrong while all that it was made from is right; None where none is."""
    misled = {effect for cause, effect in edges if cause in wrong}
    return next((step for step in steps if step in wrong and step not in misled), None)


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


def repair_minimality(step: Sequence[Hashable], repaired: Sequence[Hashable]) -> float | None:
    """1 − edit distance over tokens of the step (Levenshtein 1966), at least 0; None for a step without tokens."""
    return minimality(min(Levenshtein.distance(step, repaired), len(step)), len(step))


def step_accuracy(offsets: Sequence[int | None], within: int = 0) -> float | None:
    """Share of cases found within so many steps of the planted fault; None counts as missed."""
    within = whole("within", within)
    found = [None if one is None else whole("offsets", abs(one)) for one in offsets]
    return sum(one is not None and one <= within for one in found) / len(found) if found else None


def mean_reciprocal_rank(ranks: Sequence[int | None]) -> float | None:
    """Mean of 1/rank, from 1, of the planted fault; 0 for one that is not listed, whose rank is None."""
    parts = [0.0 if rank is None else 1 / whole("ranks", rank, 1) for rank in ranks]
    return sum(parts) / len(parts) if parts else None


class Named(NamedTuple):
    """A case with a planted fault, and what an attributor said of it."""

    planted: tuple[int, AgentId]
    """Step and agent of the fault."""
    named: Sequence[tuple[int, AgentId]]
    """Suspects, the likeliest first."""


def validated(cases: Sequence[Named]) -> Iterator[Measurement]:
    """How well an attributor, a rule or a model, finds planted faults: agents, steps, steps ± 1, reciprocal ranks, and
    κ of the agents it names with those planted. A case counts once: intervals take cases for independent."""
    firsts = [(one.planted, one.named[0] if one.named else None) for one in cases]
    right = {
        "agent_accuracy": [first is not None and first[1] == planted[1] for planted, first in firsts],
        "step_accuracy": [first is not None and first[0] == planted[0] for planted, first in firsts],
        "step_accuracy_within_1": [first is not None and abs(first[0] - planted[0]) <= 1 for planted, first in firsts],
    }
    more: dict[str, Any] = {"denominator": "cases with a planted fault"}
    for name, each in right.items():
        yield estimated(f"attribution.{name}", independent_rate(sum(each), len(each)), "share", **more)
    steps = [(one.planted[0], [step for step, _ in one.named]) for one in cases]
    ranks = [1 / (1 + named.index(step)) if step in named else 0.0 for step, named in steps]
    yield estimated("attribution.reciprocal_rank", mean(ranks), "share", **more)
    said = [(planted[1], first[1] if first else "") for planted, first in firsts]
    yield Measurement(metric="attribution.kappa", value=cohen_kappa(said), n=len(said), n_clusters=len(said), **more)


def sets_to_try(steps: Collection[H], most: int = 2) -> list[frozenset[H]]:
    """Sets of steps to replace together, the smallest first: several causes may each be enough, or only together."""
    sizes = range(1, whole("most", most, 1) + 1)
    return [frozenset(group) for size in sizes for group in combinations(dict.fromkeys(steps), size)]


def minimal_sets(flips: Mapping[frozenset[H], bool]) -> list[frozenset[H]]:
    """Of sets of steps whose replacement mends the failure those that hold no smaller one."""
    mending: Collection[frozenset[H]] = [group for group, mended in flips.items() if mended]
    least = [one for one in mending if not any(other < one for other in mending)]
    return sorted(least, key=lambda one: (len(one), sorted(map(repr, one))))


def measured(
    places: Sequence[tuple[int, AgentId]], counts: Sequence[tuple[int, int, int]], earlier: int
) -> Iterator[Measurement]:
    """Of each suspect (its decision's place and agent; successes replaced, redone, of how many) the blame; the root.

    `earlier`: how many decisions there were up to the last suspect, of which the pruned are a share. The root is found
    by intervals that hold for all suspects at once (Bonferroni): with many, one of them stands out by chance. Beside
    each blame's p is the `adjusted` one (Benjamini and Hochberg) over all suspects. Replays agree on the root as often
    as they come out well with it replaced.
    """
    together = [
        blame(number, (replaced, n), (redone, n), 1 - 0.05 / len(counts))
        for number, (replaced, redone, n) in enumerate(counts)
    ]
    chances = [exact_exposure([(replaced, n, redone, n)]) for replaced, redone, n in counts]
    corrected = adjusted(chances)
    for number, ((seq, agent), (replaced, redone, n)) in enumerate(zip(places, counts, strict=True)):
        one = blame(number, (replaced, n), (redone, n))
        null = {"stat": one.score, "p": chances[number], "method": "Fisher, one-sided", "adjusted": corrected[number]}
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
            null=null,
            flags=_few(n),
            of={"decision": seq, "agent": agent},
        )
    found = root(together)
    least = min((n for _, _, n in counts), default=ENOUGH)
    yield Measurement(
        metric="attribution.root",
        value=None if found is None else float(places[found][0]),
        unit="place in the log",
        n=len(places),
        n_clusters=len(places),
        decisions=() if found is None else (places[found][0],),
        denominator="decisions that the failure could depend on",
        flags=_few(least)
        + (() if found is not None else ("no decision surely matters",) if places else ("nobody suspected",)),
    )
    agreed = Estimate(None) if found is None else independent_rate(counts[found][0], counts[found][2])
    over = "replays with the root replaced"
    yield estimated("attribution.consensus", agreed, "share", _few(least), denominator=over)
    yield Measurement(
        metric="attribution.pruned",
        value=1 - len(places) / earlier if earlier else None,
        unit="share",
        n=earlier,
        denominator="decisions up to the last suspect",
    )


def sets_measured(
    places: Sequence[tuple[int, AgentId]], groups: Sequence[frozenset[int]], counts: Sequence[tuple[int, int, int]]
) -> Iterator[Measurement]:
    """The smallest sets of suspects whose replacement surely mends the failure, each with its score and interval.

    `groups` holds numbers of suspects, as `sets_to_try` makes them; counts are as those of single ones. Sure is what
    holds for all sets that were tried at once (Bonferroni).
    """
    sure = {
        group: blame(0, (replaced, n), (redone, n), 1 - 0.05 / len(groups)).ci[0] > 0
        for group, (replaced, redone, n) in zip(groups, counts, strict=True)
    }
    told = dict(zip(groups, counts, strict=True))
    more: dict[str, Any] = {"metric": "attribution.minimal_set", "unit": "share"}
    more["denominator"] = "replays with all of the set replaced, less those with its first decision redone"
    for group in minimal_sets(sure):
        replaced, redone, n = told[group]
        one, seqs = blame(0, (replaced, n), (redone, n)), tuple(places[number][0] for number in sorted(group))
        yield Measurement(
            value=one.score, ci=one.ci, ci_method="Newcombe", n=2 * n, n_clusters=n, flags=_few(n), decisions=seqs,
            of={"decisions": list(seqs)}, **more,
        )  # fmt: skip
    if not any(sure.values()):
        yield Measurement(value=None, flags=("no set surely matters",), **more)


def _few(replays: int) -> tuple[str, ...]:
    return (f"fewer than {ENOUGH} replays",) * (replays < ENOUGH)
