"""One small society of language-model agents per world, on the synthetic engine, with everything in it that could let
wall time reach the log: faults, rethinks, interrupts, zero-think ties and memory summaries."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.calls import Calls
from sim.host import Host
from sim.kernel import Table
from sim.log import Log, Row
from sim.runs import run_hash
from sim.scenarios.plan import Plan, plan
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.voices import Pool

MIND = {"agent": "agents.llm:LLMAgent", "model": "m", "with": {"memory_tokens": 160}}

WORLDS: dict[str, dict[str, Any]] = {
    "bargaining": {
        "clock": {"until": "1h"},
        "world": {"use": "worlds.negotiation.bargaining:Bargaining", "max_rounds": 8, "messages": True},
        "cast": [
            {"name": "slow", "count": 16, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "count": 8, "think": 0},
        ],
    },
    "double auction": {
        "clock": {"until": "2m"},
        "world": {
            "use": "worlds.markets.double_auction:DoubleAuction", "period": "1m", "periods": 2,
            "interrupt_on_trade": True, "order_life": "30s",
        },
        "cast": [
            {"name": "buyer", "role": "buyer", "count": 3, "think": "lognormal(6s, 0.6)",
             "private": {"value": "uniform(80, 120)"}},
            {"name": "seller", "role": "seller", "count": 2, "think": "lognormal(6s, 0.6)",
             "private": {"cost": "uniform(60, 100)"}},
            {"name": "fast", "role": "seller", "count": 1, "think": 0, "private": {"cost": "uniform(60, 100)"}},
        ],
    },
    "matrix": {
        "clock": {"until": "1h"},
        "world": {
            "use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 4, "talk": "explicit",
            "pairing": "round_robin", "deadline": "40s",
        },
        "cast": [
            {"name": "slow", "count": 3, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "count": 2, "think": 0},
        ],
    },
    "forum": {
        "clock": {"until": "8h"},
        "world": {
            "use": "worlds.platforms.forum:Forum", "communities": {"garden": "plants", "street": "news"},
            "visits": 60, "spread": 0.4, "notify": "interrupt",
        },
        "cast": [
            {"name": "slow", "count": 5, "think": "lognormal(10m, 0.7)",
             "secrets": [{"attribute": "diagnosis", "value": "choice(asthma, diabetes)", "audience": ["#garden"]}]},
            {"name": "quick", "count": 2, "think": 0},
        ],
    },
}  # fmt: skip

MORE: dict[str, dict[str, Any]] = {
    "oligopoly": {
        "clock": {"until": "1h"},
        "world": {
            "use": "worlds.pricing.oligopoly:Oligopoly", "scale": 100, "notebook": True, "note_chars": 80, "periods": 6,
            "deadline": "40s",
        },
        "cast": [
            {"name": "slow", "count": 2, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "count": 1, "think": 0},
        ],
    },
    "verification": {
        "clock": {"until": "1h"},
        "world": {"use": "worlds.verification.verification:Verification", "episodes": 2, "rounds": 1},
        "cast": [
            {"name": "slow", "count": 3, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "count": 1, "think": 0},
        ],
    },
    "opinions": {
        "clock": {"until": "1h"},
        "world": {
            "use": "worlds.opinions.opinions:Opinions", "graph": "two_camps", "between": 0.5, "message_chars": 60,
            "rounds": 9,
        },
        "cast": [
            {"name": "slow", "count": 3, "think": "lognormal(20s, 0.7)", "private": {"opinion": "uniform(-1, 1)"}},
            {"name": "quick", "count": 1, "think": 0},
        ],
    },
    "herding": {
        "clock": {"until": "1h"},
        "world": {"use": "worlds.opinions.herding:Herding", "questions": 6, "feedback": True},
        "cast": [
            {"name": "slow", "count": 3, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "count": 1, "think": 0},
        ],
    },
    "riddles": {
        "clock": {"until": "1h"},
        "world": {"use": "worlds.games.riddles:Riddles", "operations": ["plus", "minus", "times"]},
        "cast": [
            {"name": "proposer", "role": "proposer", "think": "lognormal(20s, 0.7)"},
            {"name": "slow", "role": "solver", "count": 14, "think": "lognormal(20s, 0.7)"},
            {"name": "quick", "role": "solver", "count": 4, "think": 0},
        ],
    },
}  # fmt: skip
"""Worlds that join in laws 1 and 5 only; the kernel is the same, and fifty kills take their time."""


def society(world: str, seed: int = 7, **engine: Any) -> Scenario:
    """A scenario of the world, with these settings of the synthetic engine."""
    spec = (WORLDS | MORE)[world]
    model = {"engine": "synthetic", "faults": 0.05, "garbage": 0.2, "context": 2048, **engine}
    data = {
        "name": world.replace(" ", "-"),
        "seed": seed,
        **spec,
        "models": {"m": model},
        "cast": [{**MIND, **entry} for entry in spec["cast"]],
        "interventions": [{"at": "30s", "do": "say", "text": "Something has happened."}],
    }
    return loads(write_yaml(data), Path(tempfile.gettempdir()), file=f"{world}.yaml")


@dataclass(frozen=True)
class Played:
    """A run in memory."""

    hash: str
    rows: list[tuple[str, Row]]
    tables: list[Table]
    calls: Calls
    planned: Plan

    def decisions(self) -> list[Row]:
        """Decision rows."""
        return [row for kind, row in self.rows if kind == "decisions"]


def played(scenario: Scenario, table_class: type[Table] = Table) -> Played:
    """Run a scenario in memory."""
    planned = plan(scenario)
    pool = Pool(scenario.base)
    calls = Calls(pool.voices(planned.models), one_table=len(planned.tables) == 1)
    host = Host(calls)
    rows: list[tuple[str, Row]] = []
    logs = [Log(one.table, lambda kind, row: rows.append((kind, row))) for one in planned.tables]
    tables = [
        table_class(
            one.world, one.players, streams=one.streams, log=log, submit=calls.submit, pump=host.pump,
            until=planned.until, stops=planned.stops, interventions=one.interventions,
        )
        for one, log in zip(planned.tables, logs, strict=True)
    ]  # fmt: skip
    try:
        host.run(tables)
    finally:
        pool.close()
    return Played(run_hash(log.hash for log in logs), rows, tables, calls, planned)
