"""Law 2: luck is keyed by what it is about; one more agent, one more thread or another name changes nobody else's."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from tests.laws.societies import WORLDS, played, society

MARKET = "worlds.markets.double_auction"
INERT: dict[str, dict[str, Any]] = {
    "double auction": {"with": {"answer": {"act": "wait"}}, "role": "buyer", "private": {"value": 90}},
    "forum": {"with": {"answer": {"act": "pass"}}},
}


def others(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Who decided when and what, without the bystander."""
    return [(row[2], row[4], row[5], row[6], row[7], row[8]) for row in rows if row[4] != "bystander"]


@pytest.mark.parametrize("world", INERT)
def test_an_inert_agent_changes_nobody_s_draws(world: str) -> None:
    alone = society(world, faults=0.0)
    data = dict(alone.located.data)
    bystander = {
        "name": "bystander",
        "agent": "agents.scripted:Constant",
        "think": "lognormal(9s, 1.0)",
        **INERT[world],
    }
    data["cast"] = [*data["cast"], bystander]
    joined = played(loads(write_yaml(data), Path(), file="joined.yaml"))
    assert any(row[4] == "bystander" for row in joined.decisions())
    assert others(joined.decisions()) == others(played(alone).decisions())


def test_a_thread_hammering_the_global_generator_changes_nothing() -> None:
    expected = [played(society(world)).hash for world in WORLDS]
    stop = threading.Event()

    def hammer() -> None:
        while not stop.wait(0.0001):
            random.seed(1)
            random.random()

    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        assert [played(society(world)).hash for world in WORLDS] == expected
    finally:
        stop.set()
        thread.join()


def profits(order: list[str], seed: int) -> dict[str, float]:
    """Rewards of four equal buyers who all act in the same ticks, seated in this order among four equal sellers."""
    buyers = [
        {
            "name": name,
            "agent": "worlds.markets.double_auction:ZIC",
            "role": "buyer",
            "private": {"value": 110},
            "think": 5,
        }
        for name in order
    ]
    sellers = [
        {"name": f"seller-{n}", "agent": f"{MARKET}:ZIC", "role": "seller", "private": {"cost": 70},
         "think": 5}
        for n in range(3)
    ]  # fmt: skip
    data = {
        "name": "equal", "seed": seed, "clock": {"until": "5m"}, "cast": [*buyers, *sellers],
        "world": {"use": f"{MARKET}:DoubleAuction", "period": "5m"},
    }  # fmt: skip
    table = played(loads(write_yaml(data), Path(), file="equal.yaml"))
    import orjson

    sums = dict.fromkeys(order, 0.0)
    for kind, row in table.rows:
        if kind == "events" and row[4] == "rewards":
            for agent, reward in orjson.loads(row[6]).items():
                if agent in sums:
                    sums[agent] += reward
    return sums


def test_nobody_profits_from_a_name_or_a_seat() -> None:
    """First against last seat, and first against last name, over drawn seeds: no mean difference beyond 3.5 se."""
    by_seat, by_name = [], []
    names = ["ann", "bob", "cid", "dot"]
    for seed in range(80):
        order = names if seed % 2 else names[::-1]
        won = profits(order, seed)
        by_seat.append(won[order[0]] - won[order[-1]])
        by_name.append(won["ann"] - won["dot"])
    for differences in (by_seat, by_name):
        assert any(differences)
        assert abs(fmean(differences)) < 3.5 * stdev(differences) / len(differences) ** 0.5
