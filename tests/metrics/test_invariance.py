"""What agents are called and which table comes first changes no number: of each family on a run, and on it renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import combinations
from math import log
from pathlib import Path
from random import Random

import pytest

from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.types import Measurement, Secret
from tests.benchmarks.contagion import platform
from tests.metrics.dealings import PD, played, told
from tests.metrics.public import OF_A_RECORD, OF_RUNS, public
from tests.metrics.renamed import renamed
from tests.metrics.society import Society
from worlds.games import society as games

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "games/covert_signals.yaml": (
        ("tables=3",),
        (
            "sim.metrics.collusion.ordering:all",
            "sim.metrics.collusion.alliances:all",
            "sim.metrics.collusion.joint_play:all",
            "sim.metrics.collusion.signals:all",
            "sim.metrics.privacy.attackers:all",
            "sim.metrics.society.networks:private_groups",
            "sim.metrics.society.standings:all",
        ),
    ),
    "games/kuhn.yaml": (
        ("tables=3", "world.hands=6"),
        ("worlds.games.openspiel_outcomes:mean_return", "worlds.games.openspiel_outcomes:outcomes"),
    ),
    "games/pd_round_robin.yaml": (
        ("tables=2", "world.rounds=6"),
        (
            "sim.metrics.safety.trends:all",
            "sim.metrics.society.economy:welfare",
            "sim.metrics.society.inequality:reward_gini",
            "sim.metrics.society.inequality:reward_inequality",
            "worlds.games.incentives:all",
            "worlds.games.outcomes:action_frequency",
            "worlds.games.outcomes:cooperation",
            "worlds.games.outcomes:mean_payoff",
            "worlds.games.outcomes:mutual_action",
            "worlds.games.society:all",
        ),
    ),
    "games/riddles.yaml": (
        ("tables=9",),
        (
            "worlds.games.riddles_outcomes:answerable",
            "worlds.games.riddles_outcomes:learnability",
            "worlds.games.riddles_outcomes:success",
        ),
    ),
    "markets/apple_market.yaml": (
        ("tables=2", "world.periods=2"),
        (
            "sim.metrics.collusion.market:all",
            "sim.metrics.collusion.rigging:screens",
            "sim.metrics.honesty:fault_rate",
            "sim.metrics.honesty:stale_rate",
            "worlds.markets.outcomes:allocative_efficiency",
            "worlds.markets.pass_through:all",
            "worlds.markets.outcomes:prices",
            "worlds.markets.outcomes:profit_dispersion",
            "worlds.markets.outcomes:smiths_alpha",
            "worlds.markets.outcomes:surplus_split",
            "worlds.markets.outcomes:trades",
            "worlds.markets.proposals:all",
        ),
    ),
    "negotiation/bargaining_rubinstein.yaml": (
        ("tables=3",),
        (
            "worlds.negotiation.outcomes:agreement",
            "worlds.negotiation.outcomes:deal_fairness",
            "worlds.negotiation.outcomes:efficiency",
            "worlds.negotiation.outcomes:self_gain",
            "worlds.negotiation.outcomes:solution",
            "worlds.negotiation.persuasion:all",
        ),
    ),
    "opinions/herding.yaml": (
        ("tables=3", "world.questions=5"),
        (
            "worlds.opinions.herding_outcomes:against_signal",
            "worlds.opinions.herding_outcomes:cascades",
            "worlds.opinions.herding_outcomes:right",
        ),
    ),
    "opinions/opinions.yaml": (
        ("tables=3", "world.rounds=3"),
        ("worlds.opinions.outcomes:consensus", "worlds.opinions.outcomes:settled"),
    ),
    "platforms/forum_injection.yaml": (
        ("tables=2",),
        (
            "sim.metrics.provenance:reach",
            "sim.metrics.safety.injections:all",
            "sim.metrics.society.cascades:threads",
            "sim.metrics.society.networks:answering",
            "worlds.platforms.participation:active_share",
            "worlds.platforms.participation:posting_gini",
            "worlds.platforms.participation:rates",
            "worlds.platforms.participation:reciprocity",
            "worlds.platforms.participation:replies_per_post",
        ),
    ),
    "pricing/oligopoly.yaml": (
        ("tables=2",),
        (
            "sim.metrics.collusion.markups:all",
            "worlds.pricing.outcomes:consumer_surplus",
            "worlds.pricing.outcomes:mean_price",
            "worlds.pricing.outcomes:profit_gain",
        ),
    ),
    "privacy/disclosure.yaml": (
        ("tables=4",),
        (
            "sim.metrics.privacy.degrees:all",
            "sim.metrics.privacy.first_leaks:all",
            "worlds.privacy.attacks:all",
            "worlds.privacy.outcomes:attack_success",
            "worlds.privacy.outcomes:benign_answer_rate",
            "worlds.privacy.outcomes:exchanges",
            "worlds.privacy.outcomes:leak_rate",
        ),
    ),
    "verification/verification_llm.yaml": (
        ("tables=2", "models.small.engine=synthetic"),
        (
            "sim.metrics.honesty:attempts",
            "sim.metrics.honesty:call_failures",
            "sim.metrics.honesty:default_rate",
            "sim.metrics.honesty:parse_failure",
            "sim.metrics.honesty:refusals",
            "sim.metrics.honesty:repetition",
            "sim.metrics.honesty:truncation",
            "sim.metrics.prompts:reached",
            "sim.metrics.safety.costs:all",
            "sim.metrics.society.contributions:tokens",
            "sim.metrics.substitutes:default_by_round",
        ),
    ),
    "verification/verification.yaml": (
        ("tables=2", "world.episodes=5"),
        (
            "sim.metrics.collusion.onset:all",
            "worlds.verification.outcomes:mutual_accept",
            "worlds.verification.outcomes:reward",
            "worlds.verification.outcomes:task_accuracy",
            "worlds.verification.outcomes:violations",
            "worlds.verification.policy:all",
            "worlds.verification.reports:all",
        ),
    ),
}
"""Shipped scenarios without a real model, made small, and what is measured on each; `all` stands for its module."""
ORDERED = ("rating.elo", "rating.elo_order", "rating.glicko", "rating.ordinal", "rating.skill")
"""These go from one table to the next, as ratings do: their order is what they are about."""
ROLES = ("mover", "role", "seat", "side")
"""Of a subject, what is no name though an entry of a cast may be called like it."""
DRAWN = {"matrix.influence": 0.005}
"""What is above the mean of shuffles, which are drawn anew for other names: how far two draws may lie apart."""


CATCHING = ("sim.metrics.privacy.contagion:all", "sim.metrics.privacy.leaks:all")
"""On the planted platform of the benchmark."""
WRITTEN = (
    "sim.metrics.analysis.calibration:all",
    "sim.metrics.analysis.failing:foretold",
    "sim.metrics.analysis.goals:near_goals",
    "sim.metrics.analysis.improvement:dynamics",
    "sim.metrics.analysis.improvement:loops",
    "sim.metrics.analysis.passing:passed",
    "sim.metrics.analysis.templates:choices",
    "sim.metrics.analysis.uncertainty:passed_on",
    "sim.metrics.decoding:forced_tokens",
    "sim.metrics.decoding:surprisal",
    "sim.metrics.privacy.unlearning:after_request",
    "sim.metrics.retest:retest",
    "sim.metrics.safety.writers:all",
    "sim.metrics.society.opinions:all",
    "sim.metrics.substitutes:default_outcome",
)
"""On a run written by hand."""
BY_HAND = {
    "sim.metrics.collusion.onset_hazard:all": "test_onset_hazard:test_neither_names_nor_the_order_of_tables_matter",
    "sim.metrics.collusion.unlikely:all": "test_unlikely:test_names_and_the_order_of_tables_do_not_matter",
    "sim.metrics.collusion.worded:all": "test_worded:test_names_do_not_matter",
    "sim.metrics.privacy.thoughts:all": "test_private_rest:test_names_of_thinkers_do_not_matter",
    "sim.metrics.safety.claims:all": "test_deception:test_a_village_by_hand",
    "sim.metrics.safety.policies:norms": "test_policies:test_norms_of_secrets_are_a_policy",
    "sim.metrics.safety.pressure:all": "test_behaviour:test_pressure_by_hand",
    "sim.metrics.safety.probes:all": "test_glmm:test_probes_of_a_record",
    "sim.metrics.safety.proposals:all": "test_behaviour:test_choices_are_among_what_was_shown",
    "worlds.games.society:strangers": "test_invariance:test_strangers_have_no_names",
    "worlds.negotiation.claims:all": "test_deception:test_names_and_order_of_speakers_do_not_matter",
}
"""Tests with names of their own."""
APART = {
    "sim.metrics.analysis.conformal:all": "earlier tables set the limit for later ones, and no name is read",
    "sim.metrics.honesty:all": "its parts are here, but for the hashes, which a rewritten run has from the other",
    "sim.metrics.honesty:integrity": "a rewritten run has the hashes of the other",
    "sim.metrics.judging.judge:rates": "a judging is blind: its items have numbers in place of names",
}
"""What is not here, and why."""
OF_SEVERAL = {
    "sim.metrics.analysis.counterfactuals:compared": "test_counterfactuals:test_forks_are_cases",
    "sim.metrics.analysis.variance:compared": "test_variance:test_neither_names_nor_units_nor_order_matter",
    "sim.metrics.analysis.remembering:compared": "test_improvement:test_the_memory_index_by_hand",
    "sim.metrics.collusion.deviation:response": "test_markets:test_runs_are_clusters_and_forks_of_one_are_not",
    "sim.metrics.collusion.onset:compared": "test_onset:test_conditions_are_compared_by_run",
    "sim.metrics.collusion.onset_hazard:compared": "test_onset_hazard:test_conditions_stand_against_the_first",
    "sim.metrics.collusion.paraphrase:effect": "test_paraphrase:both",
    "sim.metrics.collusion.unlikely:compared": "test_unlikely:test_a_reference",
    "sim.metrics.collusion.rigging:against": "test_rigging:test_p_is_the_rank_among_competitors",
    "sim.metrics.luck:compared": "test_luck:test_forks_part_where_a_change_reaches_and_nowhere_without",
    "sim.metrics.privacy.tradeoff:compared": "test_across:test_fronts_of_conditions",
    "sim.metrics.retest:across": "test_retest:test_forks_ask_again",
    "sim.metrics.safety.attacked:compared": "test_across:test_under_attack_pairs_are_found_whatever_their_order",
    "sim.metrics.safety.proposals:compared": "test_across:test_swapped_orders_of_runs",
    "sim.metrics.society.contributions:compared": "test_across:test_several_families_are_clusters",
    "sim.metrics.society.forked_influence:compared": "test_forked_influence:test_who_follows_and_who_does_not",
    "worlds.negotiation.persuasion:compared": "test_across:test_swapped_seats_of_runs",
}
"""Where runs are given in another order too."""
ALIKE = {
    "sim.metrics.analysis.offpolicy:compared": "the first of two runs is the behaviour: the order says which is which",
    "sim.metrics.analysis.rewording:compared": "the first run is in the original words: the order says which is which",
    "worlds.privacy.attacks:compared": "as `sim.metrics.safety.attacked:compared`, which it calls",
    "worlds.privacy.attacks:tradeoff": "as `sim.metrics.privacy.tradeoff:compared`, which it calls",
}
"""Where they are not, and why."""


def test_every_public_metric_is_here() -> None:
    there = {path for _, paths in FAMILIES.values() for path in paths} | {*CATCHING, *WRITTEN, *BY_HAND, *APART}
    whole = {path.removesuffix("all") for path in there if path.endswith(":all")}
    assert [one for one in public(OF_A_RECORD) if one not in there and not one.startswith(tuple(whole))] == []
    assert there - public(OF_A_RECORD).keys() == set()
    assert public(OF_RUNS).keys() == OF_SEVERAL.keys() | ALIKE.keys()
    for named in (*BY_HAND.values(), *OF_SEVERAL.values()):
        module, test = named.split(":")
        assert callable(getattr(import_module(f"tests.metrics.{module}"), test))


@pytest.mark.parametrize("scenario", FAMILIES)
def test_names_and_the_order_of_tables_change_nothing(scenario: str, tmp_path: Path) -> None:
    settings, paths = FAMILIES[scenario]
    unchanged(go(create(load(SCENARIOS / scenario, settings), tmp_path)).path, paths)


def test_neither_do_they_where_secrets_are_catching(tmp_path: Path) -> None:
    path = go(create(platform(1, 8.0, homophily=True, people=20), tmp_path)).path
    unchanged(path, CATCHING)


def test_nor_on_a_run_written_by_hand(tmp_path: Path) -> None:
    """Three tables of four, who forecast, try, tell what they think, and give a secret away that is to be forgotten."""
    luck, society = Random(5), Society(tmp_path / "run.db", tables=3)
    for agent in ("one-1", "one-2", "two-1", "two-2"):
        street = f"{agent.replace('-', ' ')} Willow Garden Lane"
        secret = Secret(subject=agent, attribute="street", value=street, holder=agent)
        goals = {"goals": "tell of my street"}
        society.member(agent, role=agent[:3], model="small", persona=goals, secrets=[secret])
    for table in range(3):
        before: list[int] = []
        society.logs[table].event(0, 0, "rewards", "", {"one-1": luck.random(), "two-2": luck.random()})
        for tick in range(1, 25):
            agent = ("one-1", "one-2", "two-1", "two-2")[tick % 4]
            if tick == 12:
                society.logs[table].event(tick, 0, "change", "", {"do": "say", "text": "Forget it."})
            form = '{"text":80}' if tick % 5 else '{"choice":["yes","no"]}'
            asked, said = society.prompt(f"question {tick % 7}"), ("yes", "no")[tick % 2]
            logprobs = [log(luck.uniform(0.3, 1)) for _ in range(20)]
            call = {"logprobs": logprobs, "form": form, "messages": asked, "text": said}
            calls = [{**call, "options": (log(0.4), log(0.6)) if tick % 3 else (log(0.8), log(0.2))}]
            how = "defaulted" if luck.random() < 0.3 else "chosen"
            key, shows = f"k{tick % 3}", before[-3:]
            answer = luck.choice(("my street is", "of a try", "yes"))
            society.act(agent, tick, shows=shows, how=how, answer=answer, key=key, calls=calls, table=table)
            kind, data = (
                ("forecast", {"probability": luck.random(), "outcome": luck.random() < 0.5}),
                ("try", {"item": f"i{tick % 5}", "success": luck.random() < 0.5}),
                ("opinion", {"about": "roof", "opinion": luck.random()}),
                ("message", {"text": f"{agent.replace('-', ' ')} Willow Garden Lane is my street"}),
            )[luck.randrange(4)]
            before.append(society.fact(tick, kind, agent, table=table, **data))
    society.run().close()
    unchanged(society.path, WRITTEN)


def test_strangers_have_no_names() -> None:
    """Two kinds who earn 3 with their own and 1 with the other, by two pairs of names and two orders of tables."""
    gaps = []
    for names in (("red-1", "red-2", "blue-1", "blue-2"), ("ash-2", "ash-1", "oak-2", "oak-1")):
        tables = [
            [
                played(n, 1, {a: "D", b: "D"}, {a: paid + 2 * (a[:3] == b[:3]), b: paid + 2 * (a[:3] == b[:3])})
                for n, (a, b) in enumerate(combinations(names, 2))
            ]
            for paid in (1.0, 2.0)
        ]
        gaps += [next(games.strangers(told(order, names, PD))) for order in (tables, tables[::-1])]
    assert {(one.value, one.n, one.null["p"]) for one in gaps} == {(2.0, 2, gaps[0].null["p"])}


def unchanged(path: Path, paths: Iterable[str]) -> None:
    """What metrics say of a run they say of the same run renamed."""
    names = renamed(path, path.with_name("other.db"))
    with Run(path) as run, Run(path.with_name("other.db")) as other:
        for metric in paths:
            plain, turned = (public(OF_A_RECORD)[metric](record) for record in (run, other))
            found, again = _keyed(plain, names), _keyed(turned, {})
            assert found.keys() == again.keys(), metric
            assert any(one.value is not None for one in found.values()), f"{metric} has nothing to measure"
            for key, one in found.items():
                same = pytest.approx(_numbers(again[key]), rel=1e-9, abs=DRAWN.get(one.metric, 1e-9), nan_ok=True)
                assert _numbers(one) == same, (metric, key)


def _keyed(found: Iterable[Measurement], names: Mapping[str, str]) -> dict[object, Measurement]:
    """By name and subject; of pairs the order of names is not said."""
    return {
        (
            one.metric,
            *((key, _called(value, {} if key in ROLES else names)) for key, value in sorted(one.of.items())),
        ): one
        for one in found
        if one.metric not in ORDERED
    }


def _called(value: object, names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(names.get(each, each) for each in str(value).split(" & ")))


def _numbers(one: Measurement) -> list[float]:
    """The value, its interval and of how much it is; nan for what is not there."""
    parts = (one.value, *(one.ci or (None, None)), one.n, one.n_clusters)
    return [float("nan") if each is None else float(each) for each in parts]
