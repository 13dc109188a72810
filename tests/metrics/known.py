"""Societies whose truth is known: what each test says of one where nothing happens and of one where something does.

A case gives the p-value of a seed; where a metric has an interval and no test, 0 stands for one without the null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from math import exp, log
from operator import itemgetter
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from sim.metrics.analysis.attribution import blame, sets_measured, sets_to_try
from sim.metrics.analysis.attribution import measured as attributed
from sim.metrics.analysis.calibration import Stated
from sim.metrics.analysis.calibration import measured as calibrated
from sim.metrics.analysis.conformal import covered
from sim.metrics.analysis.counterfactuals import Case as Counterfactual
from sim.metrics.analysis.counterfactuals import measured as counterfactuals
from sim.metrics.analysis.offpolicy import evaluate
from sim.metrics.collusion.coordination import coordination_test
from sim.metrics.collusion.covert import leak
from sim.metrics.collusion.market import variance_screen
from sim.metrics.collusion.onset_hazard import Period
from sim.metrics.collusion.onset_hazard import measured as hazards
from sim.metrics.collusion.punishment import impulse_response
from sim.metrics.collusion.screens import alternation_p, bid_cv, screen_p
from sim.metrics.collusion.steganography import paraphrase_p
from sim.metrics.collusion.unlikely import Answer as Worded
from sim.metrics.collusion.unlikely import apart, odd_agent
from sim.metrics.collusion.unlikely import measured as unlikely
from sim.metrics.collusion.worded import told
from sim.metrics.judging.judged import accuracy, ppi_by_strata, ppi_mean, rogan_gladen
from sim.metrics.luck import Traces, parted
from sim.metrics.privacy.tradeoff import fronts
from sim.metrics.repetition import degenerate
from sim.metrics.safety.attacked import Attempt, exposure, utilities
from sim.metrics.safety.attacks import Case as Attacked
from sim.metrics.safety.attacks import amplification, amplification_beyond_caps
from sim.metrics.safety.deception import Kind
from sim.metrics.safety.drift import mann_kendall
from sim.metrics.safety.epidemic import clearing, reproduction, transmission
from sim.metrics.safety.persuasion import swapped_order
from sim.metrics.safety.policies import measured
from sim.metrics.safety.pressure import Answer
from sim.metrics.safety.pressure import measured as under_pressure
from sim.metrics.safety.probes import Probed
from sim.metrics.safety.probes import measured as probed
from sim.metrics.safety.proposals import random_p
from sim.metrics.safety.statements import Rating, Statement, seen_through, suspicions
from sim.metrics.safety.superspreading import dispersion
from sim.metrics.safety.trends import moved
from sim.metrics.safety.violations import Accusation
from sim.metrics.safety.writers import Written, guessed, learning_curve, open_set
from sim.metrics.society.forked_influence import Sample
from sim.metrics.society.forked_influence import measured as influenced
from sim.metrics.society.opinions import Move, Opinion, polarised, pulled
from sim.metrics.society.standings import Score, spread
from sim.metrics.statistics.bayes import guess_test
from sim.metrics.statistics.bootstrap import bootstrap
from sim.metrics.statistics.clusters import jackknife, mean, rate, ratio
from sim.metrics.statistics.paired import effect
from sim.metrics.statistics.permutation import exact_exposure, mcnemar
from sim.metrics.statistics.ratios import Counts, mantel_haenszel
from sim.metrics.statistics.repeats import paraphrase_drop, pass_all
from sim.metrics.statistics.survival import cumulative_incidence, log_rank
from sim.metrics.substitutes import associated
from worlds.games.rounds import Round
from worlds.games.society import reciprocity

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


def shared(luck: Random, size: float) -> float:
    """Five hundred decisions, half by people who see more later and tell more, which no stratum knows; or not."""
    cells = Counter[tuple[bool, bool]]()
    for place in range(500):
        more = size * (place % 2)
        cells[luck.random() < 0.2 + 0.5 * more, luck.random() < 0.1 + 0.3 * more] += 1
    seen, others = (cells[later, True] + cells[later, False] for later in (True, False))
    return outside(mantel_haenszel([Counts(cells[True, True], seen, cells[False, True], others)]).ci, 1.0)


def forked(luck: Random, size: float) -> float:
    """Two hundred decisions in two arms; having seen a disclosure multiplies the chance to tell by 1 + size."""
    lost = won = 0
    for _ in range(200):
        common, own = luck.random(), luck.random()
        told = (common if own < 0.5 else luck.random()) < 0.08 * (1 + size)
        lost, won = lost + (told and common >= 0.08), won + (common < 0.08 and not told)
    return mcnemar(lost, won)


def judged_by_rule(luck: Random, size: float) -> float:
    """As `judged`, of texts of which people know as many that a rule finds, seven in ten of them right, as others."""
    rate, right = 0.1 + size, (0.92, 0.85)
    texts = [luck.random() < rate for _ in range(400)]
    found = [luck.random() < (0.7 if text else 0.05) for text in texts]
    said = [text == (luck.random() < right[text]) for text in texts]
    places = [[place for place, hit in enumerate(found) if hit is kind] for kind in (True, False)]
    known = [luck.sample(own, min(75, len(own) // 2)) for own in places]
    every, drawn = (dict(enumerate(each)) for each in (places, known))
    judge, human, of_known = (
        {kind: [float(told[place]) for place in own] for kind, own in by_kind.items()}
        for told, by_kind in ((said, every), (texts, drawn), (said, drawn))
    )
    return outside(ppi_by_strata(judge, human, of_known).ci, 0.1)


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


def worded(luck: Random, size: float) -> float:
    """Five tables of four seats, whose words sometimes go with the type that they were dealt."""
    types = {(table, f"s{n}"): luck.randrange(2) for table in range(5) for n in range(4)}
    words = {
        who: Counter(f"w{kind if luck.random() < size else luck.randrange(2)}" for _ in range(4))
        for who, kind in types.items()
    }
    found, _ = told(words, types, {}, 19)
    return float(found.null["p"])


def channel(luck: Random, size: float) -> float | None:
    """Acts follow the state; with a channel they also follow the type, masked by the state."""
    states = [luck.randrange(2) for _ in range(120)]
    types = [state if luck.random() < 0.3 else luck.randrange(2) for state in states]
    acts = [(t ^ s) if luck.random() < size else s for t, s in zip(types, states, strict=True)]
    noisy = [act if luck.random() < 0.9 else luck.randrange(2) for act in acts]
    found = leak(types, noisy, states, PERMUTATIONS)
    return found.test.p if found else None


def steered(luck: Random, size: float) -> float:
    """Eight tables of four who write, with subjects and moods of their own; one of them chooses less likely words."""
    units = {}
    for table in range(8):
        subject = luck.gauss(-1, 0.4)
        for n in range(4):
            mood = luck.gauss(0, 0.2) - size * (n == 0)
            units[table, f"a{n}"] = subject + mood + luck.gauss(0, 0.1)
    found = odd_agent(apart(units), PERMUTATIONS)
    return found.p if found else 1.0


def foreign(luck: Random, size: float) -> float:
    """Twelve tables of four answers of forty tokens, sampled from their model, or some of them from its reference."""
    model, reference = (0.5, 0.3, 0.15, 0.05), (0.3, 0.2, 0.25, 0.25)
    found = []
    for table, n in product(range(12), range(4)):
        tokens = [luck.choices(range(4), reference if luck.random() < size else model)[0] for _ in range(40)]
        nats = sum(log(model[token] / reference[token]) for token in tokens) / len(tokens)
        found.append(Worded((table, f"a{n}"), ("a", "small", "text"), nats))
    gap = next(iter(unlikely(found, "likelihood_gap", {}, {}, 0)))
    return float(gap.null["p"])


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


def begun(luck: Random, size: float) -> float:
    """Thirty tables of five pairs in ten episodes; who has seen one of both do it begins 1 + size times as likely."""
    rows = []
    for table, pair in product(range(30), range(5)):
        before = False
        for number in range(1, 11):
            began = luck.random() < 0.08 * (1 + size * before)
            rows.append(Period(cluster=("", table), pair=pair, began=began, episode=number, before=before))
            before = luck.random() < 0.5
            if began:
                break
    _, found = hazards(rows, {})
    return outside(found.ci, 1.0)


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


def capped(luck: Random, size: float) -> float:
    """Twenty tasks with and without an attack, of which costs above twice the usual run into a limit."""
    pairs, caps = [], []
    for _ in range(20):
        hit, calm = luck.lognormvariate(size, 0.5), luck.lognormvariate(0, 0.5)
        pairs.append((min(hit, 2.0), min(calm, 2.0)))
        caps.append((hit > 2, calm > 2))
    return outside(amplification_beyond_caps(pairs, caps).ci, 1.0)


def passed_on(luck: Random, chance: float, rows: int = 200) -> list[tuple[int, bool]]:
    """One to three messages for each who is at risk; each message catches by a chance of its own."""
    return [(seen, luck.random() < 1 - (1 - chance) ** seen) for seen in (luck.randrange(1, 4) for _ in range(rows))]


def caught(luck: Random, size: float) -> float:
    """Infections a message, of a tenth, or more."""
    return outside(transmission(passed_on(luck, 0.1 * (1 + size))).ci, 0.1)


def cleared(luck: Random, size: float) -> float:
    """Of a hundred and fifty rounds a fifth clears, or more."""
    return outside(clearing(sum(luck.random() < 0.2 + size for _ in range(150)), 150).ci, 0.2)


def epidemic(luck: Random, size: float) -> float:
    """.1 a message, two messages a round, .2 cleared a round: one infects one, or more."""
    rows = passed_on(luck, 0.1 * (1 + size), 300)
    return outside(reproduction(rows, sum(luck.random() < 0.2 for _ in range(400)), 400, 2.0).ci, 1.0)


def misevolved(luck: Random, size: float) -> float:
    """Twelve probes, some harder than others, in each of five rounds; success falls, or stays."""
    found = []
    for item in range(12):
        easy = luck.gauss(0.5, 1.5)
        for at in range(5):
            right = luck.random() < 1 / (1 + exp(size * at - easy - size))
            found.append(Probed(item % 4, "a", str(item), at, right))
    told = next(iter(probed(found)))
    return float(told.null.get("p", 1.0))


def unequal(luck: Random, size: float) -> float:
    """A hundred infectors whose rates are exponential, k = 1, or more unequal; each infects one in the mean."""
    k, offspring = 1 - size, []
    for _ in range(100):
        rate, time, count = luck.gammavariate(k, 1 / k), 0.0, -1
        while time < rate:
            time, count = time + luck.expovariate(1), count + 1
        offspring.append(count)
    return outside(dispersion(offspring).ci, 1.0)


def harm(luck: Random, size: float) -> float:
    """Ten tables of twelve members, half of whom saw a payload; some do the harmful thing anyway, the others for it."""

    def member(table: int, exposed: bool) -> Attempt:
        did = luck.random() < 0.15 + size * exposed
        return Attempt(table, Attacked(exposed, did, False, False, False))

    return float(exposure([member(table, place < 6) for table in range(10) for place in range(12)], 10).null["p"])


def offences(luck: Random, size: float) -> float:
    """Thirty tables of ten cases, half of them accused; an accusation has evidence only where a rule was broken."""
    cases: dict[tuple[Any, ...], float] = {(table, case): 1.0 for table in range(30) for case in range(10)}
    broken = {case for case in cases if luck.random() < size}
    accused = [Accusation(case, (case,)) for case in cases if luck.random() < 0.5]
    found = next(iter(measured(accused, broken.__contains__, cases, dict.fromkeys(range(30), 10), 30)))
    return float(found.ci is None or found.ci[0] <= 0)


def lies(luck: Random, size: float) -> list[Statement]:
    """Ten tables of six speakers, two of whom lie; others rate what they say, and lies a little higher."""
    found = []
    for table in range(10):
        for speaker in range(6):
            false = speaker < 2
            levels = [min(1.0, max(0.0, luck.gauss(0.5 + size * false, 0.25))) for _ in range(3)]
            kind: Kind = "fabrication" if false else "honest"
            found.append(Statement(table, len(found), f"s{speaker}", kind, ratings=tuple(map(Rating, levels))))
    return found


def rated_lies(luck: Random, size: float) -> float:
    """The area under the curve of ratings."""
    told = [(one.deceptive, rating.level, one.table) for one in lies(luck, size) for rating in one.ratings]
    found = seen_through(*zip(*told, strict=True), PERMUTATIONS)
    return found.p if found else 1.0


def suspected(luck: Random, size: float) -> float:
    """Suspicion of who lied against that of the others."""
    found = {one.metric: one for one in suspicions(lies(luck, size), PERMUTATIONS)}
    return float(found["deception.separation"].null["p"])


def suspected_more(luck: Random, size: float) -> float:
    """How suspicion of who lied grows, against that of the others."""
    found = {one.metric: one for one in suspicions(lies(luck, size), PERMUTATIONS)}
    return float(found["deception.slope_separation"].null["p"])


def place(luck: Random, size: float) -> float:
    """Eighty choices among two to four proposals; the first is taken for being first, or never."""
    sizes = [luck.randrange(2, 5) for _ in range(80)]
    taken = [0 if luck.random() < size else luck.randrange(options) for options in sizes]
    return random_p(sizes, taken.count(0))


def pressed(luck: Random, size: float) -> float:
    """Twenty items, each answered by four who are alone and four who have seen that three others are wrong."""
    given = []
    for item in range(20):
        hard = luck.uniform(0.1, 0.5)
        for place in range(8):
            seen = ("no",) * 3 if place < 4 else ()
            wrong = luck.random() < hard + size * bool(seen)
            given.append(Answer(0, f"a{place}", str(item), len(given), "no" if wrong else "yes", "yes", seen))
    found = {one.metric: one for one in under_pressure(given, 1)}
    return float(found["conformity.effect"].null["p"])


def told_apart(luck: Random, size: float) -> float:
    """Two agents at twelve tables, thirty acts each; one does x a little more often."""
    rows = [
        Written(table, label, tuple("x" if luck.random() < share else "y" for _ in range(30)))
        for table in range(12)
        for label, share in (("a", 0.5 + size), ("b", 0.5 - size))
    ]
    return guessed(rows, 39).p


def written(luck: Random, size: float) -> list[Written]:
    """Three writers at twelve tables, thirty acts each, each with a liking of its own."""
    kinds = dict(zip("abc", "xyz", strict=True))
    return [
        Written(table, label, tuple(own if luck.random() < size else luck.choice("xyz") for _ in range(30)))
        for table in range(12)
        for label, own in kinds.items()
    ]


def soon(luck: Random, size: float) -> float:
    """Who acted is told from half of it more often than by chance."""
    found = {one.of["seen"]: one for one in learning_curve(written(luck, size))}[0.5]
    return float(found.ci is None or found.ci[0] <= 1 / 3)


def unheard(luck: Random, size: float) -> float:
    """Who is unknown is farther from the known than these are."""
    found = next(iter(open_set(written(luck, size))))
    return float(found.ci is None or found.ci[0] <= 0.5)


def swayed(luck: Random, size: float) -> float:
    """Eight tables of twelve moves: opinions fall back to the middle, and go some of the way to what was seen."""
    moves = []
    for table in range(8):
        for _ in range(12):
            before, seen = luck.random(), luck.random()
            after = before + 0.4 * (0.5 - before) + size * (seen - before) + luck.gauss(0, 0.1)
            moves.append(Move(table, "x", before, after, seen, None))
    found = {one.metric: one for one in pulled(moves, PERMUTATIONS)}
    return float(found["persuasion.pull"].null["p"])


def camps(luck: Random, size: float) -> float:
    """Fifteen tables of ten opinions, told twice with noise; the second time further from the middle, or not."""
    held = []
    for table in range(15):
        for agent in range(10):
            stand = luck.gauss(0, 1)
            for value in (stand + luck.gauss(0, 0.2), stand * (1 + size) + luck.gauss(0, 0.2)):
                held.append(Opinion(table, f"a{agent}", "x", len(held), value))
    found = {one.metric: one for one in polarised(held)}
    return float(found["polarisation.growth"].null["p"])


def varied(luck: Random, size: float) -> float:
    """One table of a hundred opinions with a variance of 1, or more."""
    held = [Opinion(0, f"a{agent}", "x", agent, luck.gauss(0, 1 + size)) for agent in range(100)]
    found = {one.metric: one for one in polarised(held, 199)}
    return outside(found["polarisation.variance"].ci, 1)


def modes(luck: Random, size: float) -> float:
    """Six tables of twenty opinions around one mean, or around two that are four deviations apart."""
    held = [
        Opinion(table, f"a{agent}", "x", agent, luck.gauss(size * (agent % 2), 1))
        for table in range(6)
        for agent in range(20)
    ]
    found = {one.metric: one for one in polarised(held, PERMUTATIONS)}
    return float(found["polarisation.dip"].null["p"])


def ranked(luck: Random, size: float) -> float:
    """Thirty tables of four players; one earns more."""
    scores = [Score(table, name, luck.gauss(size * (name == "a"), 1)) for table in range(30) for name in "abcd"]
    return float(spread(scores, PERMUTATIONS).null["p"])


def habits(luck: Random, size: float) -> float:
    """Ten agents of thirty acts; in the second half they do y more often."""
    acts = {
        (0, f"a{agent}"): ["y" if luck.random() < 0.3 + size * (place > 14) else "x" for place in range(30)]
        for agent in range(10)
    }
    return float(moved(acts, PERMUTATIONS).null["p"])


def returned(luck: Random, size: float) -> float:
    """Five matches of twenty rounds; each player returns the partner's last act, or does as it likes."""
    played = {}
    for match in range(5):
        rounds, last = [], {"a": "C", "b": "C"}
        for number in range(20):
            free = {agent: luck.choice("CD") for agent in "ab"}
            last = {agent: last["ab".replace(agent, "")] if luck.random() < size else free[agent] for agent in "ab"}
            rounds.append(Round(match, number, number, last, {}, frozenset()))
        played[match, 0] = rounds
    found = {one.metric: one for one in reciprocity(played, "C", 5)}
    return float(found["matrix.reciprocity"].null["p"])


def usefulness(luck: Random, size: float) -> float:
    """Twenty tables with and without an attack, which share their luck."""
    calm = [luck.betavariate(14, 6) for _ in range(20)]
    hit = [max(0.0, min(1.0, each - size + luck.gauss(0, 0.1))) for each in calm]
    found = {one.metric: one for one in utilities(calm, hit, {})}
    return float(found["attack.utility_lost"].null["p"])


def rates(luck: Random, size: float) -> float:
    """Twenty runs of fifty calls, each with a rate of its own, 20% in the mean."""
    runs = [sum(luck.random() < p for _ in range(50)) for p in (luck.betavariate(2, 8) for _ in range(20))]
    return outside(rate(runs, [50] * 20).ci, 0.2 + size)


def leaked_first(luck: Random, size: float) -> float:
    """Twenty tables of eight, who tell at each message by .1, or else are done by .1: ten of nineteen ever tell."""
    kept = []
    for table, _ in product(range(20), range(8)):
        time, told, done = 0, False, False
        while not (told or done):
            time, told, done = time + 1, luck.random() < 0.1 + size, luck.random() < 0.1
        kept.append((table, (float(time), told), done and not told))

    def incidence(some: Any) -> float | None:
        return cumulative_incidence([seen for _, seen, _ in some], [ended for *_, ended in some])

    return outside(jackknife(kept, itemgetter(0), incidence, 1.0).ci, 10 / 19)


def means(luck: Random, size: float) -> float:
    """One number of each of fifteen runs."""
    return outside(mean([luck.gauss(1, 0.5) for _ in range(15)]).ci, 1 + size)


def ratios(luck: Random, size: float) -> float:
    """Fifteen runs of thirty to ninety decisions, each with calls of its own number a decision, two in the mean."""
    sizes = [luck.randrange(30, 90) for _ in range(15)]
    calls = [luck.gauss(2, 0.4) * n for n in sizes]
    return outside(ratio(calls, sizes).ci, 2 + size)


def replayed(luck: Random, size: float) -> float:
    """Two hundred choices between two, weighed for a policy that takes one at .7; that pays more often, or as often."""
    taken = [luck.random() < 0.5 for _ in range(200)]
    paid = [float(luck.random() < (0.5 + size if one else 0.5)) for one in taken]
    return outside(evaluate([1.4 if one else 0.6 for one in taken], paid, 199).ci, 0.5)


def fault(luck: Random, size: float) -> float:
    """A step replaced and redone thirty times each."""
    replaced, redone = (sum(luck.random() < p for _ in range(30)) for p in (0.3 + size, 0.3))
    return float(blame(1, (replaced, 30), (redone, 30)).ci[0] <= 0)


def culprit(luck: Random, size: float) -> float:
    """Six suspects, replaced and redone thirty times each; one of them is to blame, or none."""
    counts = []
    for suspect in range(6):
        replaced, redone = (0.3 + size * (suspect == 3), 0.3)
        counts.append((*(sum(luck.random() < p for _ in range(30)) for p in (replaced, redone)), 30))
    found = {one.metric: one for one in attributed([(n, "a") for n in range(6)], counts, 6)}
    return float(found["attribution.root"].value is None)


def both_causes(luck: Random, size: float) -> float:
    """Four suspects and their pairs, replaced and redone forty times each; two matter only together, or none does."""
    groups, counts = sets_to_try(range(4)), []
    for group in groups:
        replaced, redone = (0.3 + size * (group == {1, 2}), 0.3)
        counts.append((*(sum(luck.random() < p for _ in range(40)) for p in (replaced, redone)), 40))
    found = next(iter(sets_measured([(n, "a") for n in range(4)], groups, counts)))
    return float(found.value is None)


def foretold(luck: Random, size: float) -> float:
    """Sixty tables of a change that pays about as much as each of five candidates; at later ones it pays more."""
    found = [
        Counterfactual("r", luck.gauss(size * (table > 29), 1), [luck.gauss(0, 1) for _ in range(5)])
        for table in range(60)
    ]
    _, coverage, *_ = counterfactuals(found, 0.1, {}, {}, PERMUTATIONS)
    return float(coverage.null["p"])


def exchange(luck: Random, size: float) -> float:
    """Two policies with thirty runs each, whose front has a hypervolume of .55, or more."""
    mean = {"strict": (0.2, 0.5), "loose": (0.5, 0.8 + size)}
    runs = {
        name: [tuple(luck.betavariate(20 * m, 20 - 20 * m) for m in at) for _ in range(30)] for name, at in mean.items()
    }
    *_, found = fronts(runs, 199)
    return outside(found.ci, 0.55)


def coverage(luck: Random, size: float) -> float:
    """Thirty tables of five scores each; those of the second half are larger, or are not."""
    tables = []
    for table in range(30):
        common = luck.gauss(0, 0.5) + size * (table > 14)
        tables.append([common + luck.gauss(0, 1) for _ in range(5)])
    *_, found = covered(tables, 0.1, {}, {}, PERMUTATIONS)
    return float(found.null["p"])


def forecasts(luck: Random, size: float) -> float:
    """Twenty tables of ten forecasts that come to pass as often as they say, or less often where they are sure."""
    said = []
    for table in range(20):
        for _ in range(10):
            given = luck.random()
            said.append(Stated(table, "a", len(said), given, luck.random() < 0.5 + (given - 0.5) * (1 - size)))
    *_, found = calibrated(said, {})
    return float(found.null["p"])


def punishment(luck: Random, size: float) -> float:
    """Fifteen forks of a deviation: the rival's price in the period after it."""
    found = impulse_response([[-size + luck.gauss(0, 0.05)] for _ in range(15)])
    return float(found is None or found.high[0] >= 0)


def following(luck: Random, size: float) -> float:
    """Forks of three states to either of two acts and to none, eight lucks each; so many follow, and lucks differ."""
    found = []
    for state, replicate in product(range(3), range(8)):
        likes = luck.choice("lr")
        for treated, act in ((False, luck.choice("lr")), (True, "l"), (True, "r")):
            answer = act if luck.random() < size else likes if luck.random() < 0.7 else luck.choice("lr")
            found.append(Sample(("p", state, 0), replicate, treated, act, answer))
    return float(influenced(found, PERMUTATIONS).null["p"])


def desynchronised(luck: Random, size: float) -> float:
    """Four agents who think for as long as their name and the tick say; in a second run one may dawdle."""
    seed, sides = luck.random(), []
    for slow in (0.0, size):
        turns = []
        for agent in "abcd":
            now = 0
            while now < 50:
                turns.append((0, agent, now, 0))
                now += Random(f"{seed} {agent} {now}").randrange(1, 9) + (agent == "a" and luck.random() < slow)
        rows = pl.DataFrame(turns, schema=["tbl", "agent", "seen", "nth"], orient="row")
        log = pl.DataFrame(schema=dict.fromkeys(("tbl", "place", "tick", "hash"), pl.Int64))
        calls = ("tbl", "agent", "tick", "nth", "call", "digest", "answer")
        sides.append(Traces(log, rows, pl.DataFrame(schema=dict.fromkeys(calls, pl.String))))
    return float(parted(*sides).turns is None)


def passed(luck: Random, size: float) -> float:
    """Sixty tasks of eight trials, each with its own chance; it is a third that two trials are both solved, or less."""
    chances = [luck.random() * (1 - size) for _ in range(60)]
    solved = [pass_all([(8, sum(luck.random() < chance for _ in range(8)))], 2) or 0.0 for chance in chances]
    return outside(bootstrap(sorted(solved), fmean, "tasks", draws=199).ci, 1 / 3)


def substituted(luck: Random, size: float) -> float:
    """Three agents at twenty tables, whose rewards fall with the share of decisions that were not theirs, or do not."""
    given = [[luck.random() for _ in range(20)] for _ in range(3)]
    earned = [[luck.gauss(-size * share, 0.3) for share in row] for row in given]
    found = associated(np.array(given), np.array(earned), PERMUTATIONS)
    return found.p if found else 1.0


def reworded(luck: Random, size: float) -> float:
    """Ten seeds in the original words and in three others, which cost a share of the score, or nothing."""
    drops = []
    for _ in range(10):
        common = luck.uniform(5, 10)
        others = [common * (1 - size) + luck.gauss(0, 1) for _ in range(3)]
        drops.append(paraphrase_drop(common, others) or 0.0)
    return outside(mean(drops).ci, 0.0)


def repeating(luck: Random, size: float) -> float:
    """Twenty-five words, and a last one that is the first of them over and over, or not."""
    words = ["".join(luck.choices("aeioubdgklmnrst", k=luck.randint(2, 9))) for _ in range(25)]
    return float(not degenerate(" ".join([*words, words[0] * round(60 * size)])))


CASES: dict[str, Case] = {
    "luck lost": Case(desynchronised, 0.3),
    "influence, forked": Case(following, 0.5),
    "contagion, exact": Case(contagion, 2.0),
    "contagion, placebo": Case(shared, 1.0),
    "contagion, forked": Case(forked, 2.0),
    "judged rate, by prediction": Case(judged, 0.2),
    "judged rate, drawn by a rule": Case(judged_by_rule, 0.2),
    "judged rate, by errors": Case(partial(judged, by_errors=True), 0.2),
    "attacker's guess": Case(guesser, 0.8),
    "type told by words": Case(worded, 0.8),
    "covert channel": Case(channel, 0.8),
    "steered words": Case(steered, 0.6),
    "words of another": Case(foreign, 1.0),
    "coordination": Case(coordination, 0.7),
    "bid screen": Case(screen, 0.8),
    "variance screen": Case(calm, 0.6),
    "rotation": Case(rotation, 0.8),
    "onset, log-rank": Case(onset, 1.5),
    "onset, hazard": Case(begun, 2.0),
    "drift": Case(drift, 0.3),
    "paired effect": Case(paired, 1.5),
    "paraphrase": Case(paraphrase, 0.4),
    "first proposal": Case(first, 0.3),
    "cost amplification": Case(costs, 1.0),
    "cost beyond a limit": Case(capped, 1.0),
    "infections a message": Case(caught, 1.0),
    "clearing a round": Case(cleared, 0.15),
    "epidemic": Case(epidemic, 1.0),
    "superspreading": Case(unequal, 0.75),
    "drift of probes": Case(misevolved, 1.2),
    "harm after exposure": Case(harm, 0.3),
    "violations with evidence": Case(offences, 0.1),
    "deception seen through": Case(rated_lies, 0.2),
    "suspicion of deceivers": Case(suspected, 0.2),
    "suspicion that grows": Case(suspected_more, 0.25),
    "first place": Case(place, 0.3),
    "conformity": Case(pressed, 0.3),
    "fingerprint": Case(told_apart, 0.15),
    "fingerprint of a part": Case(soon, 0.3),
    "unknown writer": Case(unheard, 0.3),
    "pull of opinions": Case(swayed, 0.25),
    "growing apart": Case(camps, 0.3),
    "opinions apart": Case(varied, 0.4),
    "two camps": Case(modes, 4.0),
    "ratings": Case(ranked, 1.0),
    "drift of acts": Case(habits, 0.3),
    "reciprocity": Case(returned, 0.3),
    "utility under attack": Case(usefulness, 0.12),
    "rate over runs": Case(rates, 0.15),
    "first leaks": Case(leaked_first, 0.15),
    "mean over runs": Case(means, 0.6),
    "ratio over runs": Case(ratios, 0.5),
    "policy off its record": Case(replayed, 0.4),
    "blame": Case(fault, 0.5),
    "root of a failure": Case(culprit, 0.6),
    "pair of causes": Case(both_causes, 0.6),
    "counterfactual sets": Case(foretold, 3.0),
    "fronts": Case(exchange, 0.15),
    "conformal coverage": Case(coverage, 1.5),
    "calibration": Case(forecasts, 0.6),
    "punishment": Case(punishment, 0.1),
    "tasks passed": Case(passed, 0.5),
    "defaults and rewards": Case(substituted, 1.0),
    "other words": Case(reworded, 0.2),
    "degenerate texts": Case(repeating, 1.0),
}


def alarms(case: Case, seeds: int, size: float) -> int:
    """In how many of so many seeds a test at 5% rejects."""
    found: list[Any] = [case.p(Random(f"{_name(case.p)} {seed}"), size) for seed in range(seeds)]
    return sum(p is not None and p <= 0.05 for p in found)


def _name(test: Any) -> str:
    """Of a function, with the settings that a partial gives it."""
    return f"{_name(test.func)} {test.keywords}" if isinstance(test, partial) else getattr(test, "__name__", "recorded")
