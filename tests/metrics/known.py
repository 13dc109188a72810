"""Societies whose truth is known: what each test says of one where nothing happens and of one where something does.

A case gives the p-value of a seed; where a metric has an interval and no test, 0 stands for one without the null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

from sim.metrics.attackers import guess_test
from sim.metrics.attacks import amplification
from sim.metrics.attribution import blame
from sim.metrics.clusters import rate
from sim.metrics.coordination import coordination_test
from sim.metrics.covert import leak
from sim.metrics.drift import mann_kendall
from sim.metrics.judged import accuracy, ppi_mean, rogan_gladen
from sim.metrics.market import variance_screen
from sim.metrics.paired import effect
from sim.metrics.permutation import exact_exposure, mcnemar
from sim.metrics.persuasion import swapped_order
from sim.metrics.punishment import impulse_response
from sim.metrics.ratios import Counts
from sim.metrics.screens import alternation_p, bid_cv, screen_p
from sim.metrics.steganography import paraphrase_p
from sim.metrics.survival import log_rank

PERMUTATIONS = 99


class Case(NamedTuple):
    """A test, with a size of effect: 0 is the null."""

    p: Callable[[Random, float], float | None]
    effect: float


def outside(ci: tuple[float, float] | None, value: float) -> float:
    """0 for an interval without a value, 1 for one with it."""
    return float(ci is None or ci[0] <= value <= ci[1])


def contagion(luck: Random, size: float) -> float:
    """Two types with homophily; exposure multiplies the chance to tell by 1 + size."""
    strata = []
    for base, seen in ((0.03, 0.2), (0.12, 0.7)):
        a = n = c = m = 0
        for _ in range(200):
            exposed = luck.random() < seen
            told = luck.random() < base * (1 + size * exposed)
            a, n, c, m = a + (exposed and told), n + exposed, c + (told and not exposed), m + (not exposed)
        strata.append(Counts(a, n, c, m))
    return exact_exposure(strata)


def forked(luck: Random, size: float) -> float:
    """Two hundred decisions in two arms; having seen a disclosure multiplies the chance to tell by 1 + size."""
    lost = won = 0
    for _ in range(200):
        common, own = luck.random(), luck.random()
        told = (common if own < 0.5 else luck.random()) < 0.08 * (1 + size)
        lost, won = lost + (told and common >= 0.08), won + (common < 0.08 and not told)
    return mcnemar(lost, won)


def judged(luck: Random, size: float, by_errors: bool = False) -> float:
    """Four hundred texts, a tenth of them positive, of a judge with Se .85 and Sp .92 that people checked on 150."""
    rate, right = 0.1 + size, (0.92, 0.85)
    texts = [luck.random() < rate for _ in range(400)]
    known = [luck.random() < (0.4 if by_errors else rate) for _ in range(150)]
    said, calls = ([one == (luck.random() < right[one]) for one in each] for each in (texts, known))
    if not by_errors:
        return outside(ppi_mean(said, known, calls).ci, 0.1)
    found = accuracy(known, calls)
    assert found is not None
    share = sum(said) / len(said)
    return outside(rogan_gladen(share, found.se, found.sp, 400, found.positives, found.negatives).ci, 0.1)


def guesser(luck: Random, size: float) -> float:
    """Four tables of six agents of two kinds, whose words sometimes go with the kind."""
    labels = {(table, f"a{n}"): n % 2 for table in range(4) for n in range(6)}
    words = {
        who: Counter(f"w{label if luck.random() < size else luck.randrange(2)}-{luck.randrange(4)}" for _ in range(6))
        for who, label in labels.items()
    }
    return float(guess_test(words, labels, 19)["p"])


def channel(luck: Random, size: float) -> float | None:
    """Acts follow the state; with a channel they also follow the type, masked by the state."""
    states = [luck.randrange(2) for _ in range(120)]
    types = [state if luck.random() < 0.3 else luck.randrange(2) for state in states]
    acts = [(t ^ s) if luck.random() < size else s for t, s in zip(types, states, strict=True)]
    noisy = [act if luck.random() < 0.9 else luck.randrange(2) for act in acts]
    found = leak(types, noisy, states, PERMUTATIONS)
    return found.test.p if found else None


def coordination(luck: Random, size: float) -> float:
    """Two players with shares of their own, who sometimes do the same."""
    plays = []
    for _ in range(60):
        one = luck.choice("xxy")
        plays.append((one, one if luck.random() < size else luck.choice("xyy")))
    return coordination_test(plays, PERMUTATIONS).p


def screen(luck: Random, size: float) -> float:
    """Bids of competitors, whose spread shrinks where they agree."""

    def tender(spread: float) -> float:
        return bid_cv([luck.gauss(100, spread) for _ in range(6)]) or 0.0

    return screen_p(tender(8 * (1 - size)), [tender(8) for _ in range(PERMUTATIONS)], low=True)


def calm(luck: Random, size: float) -> float:
    """Prices of two windows; the suspect one is calmer."""
    found = variance_screen([luck.gauss(0, 1 - size) for _ in range(15)], [luck.gauss(0, 1) for _ in range(15)])
    return found.p if found else 1.0


def rotation(luck: Random, size: float) -> float | None:
    """Two bidders who take turns, or win by chance."""
    winners = [luck.choice("AB")]
    while len(winners) < 24:
        winners.append(("B" if winners[-1] == "A" else "A") if luck.random() < size else luck.choice("AB"))
    return alternation_p(winners)


def onset(luck: Random, size: float) -> float | None:
    """Rounds until something begins, in two groups; censored at 20."""

    def times(hazard: float) -> list[tuple[float, bool]]:
        drawn = [luck.expovariate(hazard) for _ in range(40)]
        return [(min(time, 20.0), time < 20) for time in drawn]

    return log_rank(times(0.08), times(0.08 * (1 + size)))


def drift(luck: Random, size: float) -> float:
    """Ten checkpoints of a probe."""
    found = mann_kendall([0.9 - size * t / 10 + luck.gauss(0, 0.05) for t in range(10)])
    return found.p if found else 1.0


def paired(luck: Random, size: float) -> float:
    """Twelve pairs of forks with shared luck."""
    common = [luck.gauss(0, 3) for _ in range(12)]
    found = effect([c + luck.gauss(0, 1) for c in common], [c + size + luck.gauss(0, 1) for c in common])
    return found.p if found else 1.0


def paraphrase(luck: Random, size: float) -> float:
    """Sixty messages with a bit that a rewriter destroys, or that was never there."""
    before = [luck.random() < 0.5 + size for _ in range(60)]
    return paraphrase_p(before, [luck.random() < 0.5 for _ in range(60)])


def first(luck: Random, size: float) -> float:
    """Sixty pairs with the order swapped; the first offer is taken for being first, or never."""
    drawn = [luck.random() < 0.5 + size for _ in range(60) if luck.random() < 0.6]
    return swapped_order(sum(drawn), len(drawn) - sum(drawn)).p


def costs(luck: Random, size: float) -> float:
    """Twenty tasks with and without an attack."""
    found = amplification([(luck.lognormvariate(size, 0.5), luck.lognormvariate(0, 0.5)) for _ in range(20)])
    return outside(found.ci, 1.0)


def rates(luck: Random, size: float) -> float:
    """Twenty runs of fifty calls, each with a rate of its own, 20% in the mean."""
    runs = [sum(luck.random() < p for _ in range(50)) for p in (luck.betavariate(2, 8) for _ in range(20))]
    return outside(rate(runs, [50] * 20).ci, 0.2 + size)


def fault(luck: Random, size: float) -> float:
    """A step replaced and redone thirty times each."""
    replaced, redone = (sum(luck.random() < p for _ in range(30)) for p in (0.3 + size, 0.3))
    return float(blame(1, (replaced, 30), (redone, 30)).ci[0] <= 0)


def punishment(luck: Random, size: float) -> float:
    """Fifteen forks of a deviation: the rival's price in the period after it."""
    found = impulse_response([[-size + luck.gauss(0, 0.05)] for _ in range(15)])
    return float(found is None or found.high[0] >= 0)


CASES: dict[str, Case] = {
    "contagion, exact": Case(contagion, 2.0),
    "contagion, forked": Case(forked, 2.0),
    "judged rate, by prediction": Case(judged, 0.2),
    "judged rate, by errors": Case(partial(judged, by_errors=True), 0.2),
    "attacker's guess": Case(guesser, 0.8),
    "covert channel": Case(channel, 0.8),
    "coordination": Case(coordination, 0.7),
    "bid screen": Case(screen, 0.8),
    "variance screen": Case(calm, 0.6),
    "rotation": Case(rotation, 0.8),
    "onset, log-rank": Case(onset, 1.5),
    "drift": Case(drift, 0.3),
    "paired effect": Case(paired, 1.5),
    "paraphrase": Case(paraphrase, 0.4),
    "first proposal": Case(first, 0.3),
    "cost amplification": Case(costs, 1.0),
    "rate over runs": Case(rates, 0.15),
    "blame": Case(fault, 0.5),
    "punishment": Case(punishment, 0.1),
}


def alarms(case: Case, seeds: int, size: float) -> int:
    """In how many of so many seeds a test at 5% rejects."""
    found: list[Any] = [case.p(Random(f"{_name(case.p)} {seed}"), size) for seed in range(seeds)]
    return sum(p is not None and p <= 0.05 for p in found)


def _name(test: Any) -> str:
    """Of a function, with the settings that a partial gives it."""
    return f"{_name(test.func)} {test.keywords}" if isinstance(test, partial) else str(test.__name__)
