"""What stands behind numbers: facts with their tables where there are several, and the spread between tables."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev

import pytest

from sim.intervals import t_quantile
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from worlds.evidence import cited, places
from worlds.games.outcomes import mean_payoff
from worlds.negotiation.outcomes import efficiency
from worlds.verification.outcomes import violations

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def test_facts_of_several_tables_have_them(tmp_path: Path) -> None:
    """A fact's id is counted by table, so that alone it names none."""
    for tables in (1, 2):
        path = create(
            load(SCENARIOS / "verification" / "verification.yaml", [f"tables={tables}", "world.episodes=1"]),
            tmp_path,
            f"run-{tables}",
        )
        go(path)
        with Run(path) as run:
            outcomes = list(run.facts("outcome"))
            found = cited(run, places(outcomes))
            hits = next(iter(violations(run)))
        ids = [(one.table, one.fact.id) for one in outcomes]
        assert found == tuple(ids if tables > 1 else (fact for _, fact in ids))
        assert hits.events
        assert all(isinstance(one, tuple) for one in hits.events) is (tables > 1)


def test_means_over_tables_have_intervals(tmp_path: Path) -> None:
    """Tables of one size: the mean of their means, give or take t times their deviation over √m; one has none."""
    at_random = "cast.greedy.agent=agents.scripted:RandomLegal"
    for scenario, sets, metric, kind in (
        ("games/pd_round_robin.yaml", ["world.rounds=4"], mean_payoff, "round"),
        ("negotiation/bargaining_rubinstein.yaml", [at_random], efficiency, "deal"),
    ):
        path = create(load(SCENARIOS / scenario, ["tables=3", *sets]), tmp_path, metric.__name__)
        go(path)
        with Run(path) as run:
            found = next(iter(metric(run)))
            paid = [
                list(item.fact.data["payoffs" if kind == "round" else "gains"].values()) for item in run.facts(kind)
            ]
            at = [item.table for item in run.facts(kind)]
        size = 2 if kind == "round" else 1  # a payoff counts for each player, a gain for both
        means = [fmean(sum(own) / size for own, table in zip(paid, at, strict=True) if table == n) for n in range(3)]
        half = t_quantile(0.95, 2) * stdev(means) / 3**0.5
        assert found.value == pytest.approx(fmean(means))
        assert found.ci == pytest.approx((fmean(means) - half, fmean(means) + half))
