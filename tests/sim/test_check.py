"""Conformance: everything shipped keeps the rules, and every rule is broken by something."""

from __future__ import annotations

import inspect
import pkgutil
import threading
from collections import deque
from copy import deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

import agents
import worlds
from agents.llm import LLMAgent
from agents.memory import Entry, Memory
from agents.scripted import RandomLegal
from sim.check import (
    ConformanceError,
    agent_findings,
    check_agent,
    check_world,
    generic_turns,
    turns_of,
    world_findings,
)
from sim.conformance.findings import Findings, no_json
from sim.conformance.sameness import same
from sim.conformance.stand import FEW, LARGE, Stand, stand
from sim.conformance.trials import play
from sim.conformance.watched import Watched
from sim.scenarios.scenario import load
from sim.types import Member, Seat
from tests.sim import coins

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FILES = [path for path in sorted(SCENARIOS.rglob("*.yaml")) if not {"personas", "rubrics"} & set(path.parts)]
NAMES = [str(path.relative_to(SCENARIOS)) for path in FILES]
SEATS = ["ann", "ben", "cleo"]


@cache
def stood(path: Path, *sets: str) -> Stand:
    return stand(load(path, sets))


def told(findings: Any) -> str:
    return "\n".join(map(str, findings))


# --- what is shipped --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_shipped_world_keeps_the_rules(path: Path) -> None:
    assert not told(stood(path).world())


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_agents_of_a_shipped_scenario_keep_the_rules(path: Path) -> None:
    for use in dict.fromkeys(stood(path).agents.values()):
        assert not told(stood(path).agent(use)), use


@pytest.mark.parametrize("mind", [LLMAgent, RandomLegal])
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_agents_of_no_world_fit_every_world(path: Path, mind: Any) -> None:
    tried, found = stood(path), Findings()
    cast = [(member, mind) for member in tried.members]
    trial = play(Watched(tried.kind(tried.params), found), cast, found, seed=1, events=60)
    assert not told(found)
    assert trial is not None
    assert not trial.faults
    assert trial.table.counts["decisions"] > 0


def minds(package: Any) -> dict[str, Any]:
    """Agent classes of a package that can be built from a member alone, by where they are."""
    found = {}
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if "engines" in info.name:
            continue
        for name, kind in vars(import_module(info.name)).items():
            if not inspect.isclass(kind) or kind.__module__ != info.name or "act" not in dir(kind):
                continue
            needed = [one for one in list(inspect.signature(kind).parameters.values())[1:] if one.default is one.empty]
            if not needed:
                found[f"{info.name}:{name}"] = kind
    return found


BASELINES = minds(worlds)
SETS = {
    "worlds.games.openspiel_strategies:Minimax": ("world.game=tic_tac_toe",),
    "worlds.pricing.qlearning:QLearner": ("world.levels=15",),
    "worlds.pricing.qlearning:Converged": ("world.levels=15",),
}
"""What baselines need that not every scenario of their world has."""


AT_HOME = {"worlds.games.signals:Colluder": "covert_signals.yaml"}
"""Baselines that need what only one scenario deals to them."""


def fitting(use: str) -> list[Path]:
    """Scenarios of the baseline's family, of the worlds in which a mind of its module plays where there are any."""
    if use in AT_HOME:
        return [path for path in FILES if path.name == AT_HOME[use]]
    module = use.partition(":")[0]
    family = [path for path in FILES if _module(stood(path)).rpartition(".")[0] == module.rpartition(".")[0]]
    named = {_module(stood(path)) for path in family if any(module in each for each in stood(path).agents.values())}
    return [path for path in family if not named or _module(stood(path)) in named]


def _module(tried: Stand) -> str:
    return str(tried.kind.__module__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("use", BASELINES)
def test_every_baseline_keeps_the_rules_in_its_world(use: str) -> None:
    assert fitting(use), f"no scenario of the family of {use}"
    for path in fitting(use):
        tried = stood(path, *SETS.get(use, ()))
        agent, turns = max(turns_of(tried.kind, tried.members, tried.params).items(), key=lambda pair: len(pair[1]))
        (member,) = [one for one in tried.members if one.seat.agent == agent]
        assert not told(agent_findings(lambda member=member: BASELINES[use](member), turns)), path  # type: ignore[misc]


@pytest.mark.parametrize("kind", minds(agents).values())
def test_every_agent_of_no_world_keeps_the_rules(kind: Any) -> None:
    check_agent(lambda: kind(Member(seat=Seat(agent="agent-1"), model="m")), generic_turns())


def test_a_large_cast_is_made_smaller() -> None:
    path = SCENARIOS / "platforms" / "forum_posters.yaml"
    assert sum(entry.count for entry in load(path).cast) > LARGE
    assert len(stood(path).members) == FEW


# --- worlds that break a rule ---------------------------------------------------------------------------

BROKEN = {
    coins.Remembers: "reset starts anew",
    coins.Counts: "observe changes nothing",
    coins.Wavers: "observe says the same twice",
    coins.Misnames: "a turn names its agent and tick",
    coins.Late: "a turn names its agent and tick",
    coins.IllegalDefault: "the default is legal",
    coins.Unheard: "a turn shows what its agent may see",
    coins.Peeks: "a turn shows what its agent may see",
    coins.Boundless: "an answer can be asked for",
    coins.Twins: "an answer can be asked for",
    coins.Mute: "an answer can be asked for",
    coins.Impossible: "an answer can be asked for",
    coins.Unreadable: "a turn reads as text",
    coins.Wordless: "a turn reads as text",
    coins.Forgetful: "one result per action",
    coins.Silent: "calls return an Outcome",
    coins.Backwards: "timers are later",
    coins.Yesterday: "wakes are not in the past",
    coins.Calls: "only known agents are named",
    coins.Pays: "only known agents are named",
    coins.Invents: "only known agents are named",
    coins.Infinite: "rewards are finite",
    coins.Ends: "who ends is terminated or truncated",
    coins.Skips: "facts count up from 0",
    coins.Foretells: "facts answer earlier facts",
    coins.Unwritable: "facts are JSON",
    coins.NotANumber: "state is JSON",
    coins.Shared: "state is fresh",
    coins.Tied: "a copy goes on alike",
    coins.Gambles: "luck comes from the streams only",
    coins.Hurries: "one seed, one log",
    coins.Deaf: "change(Say) raises nothing",
    coins.Fixed: "change(Set) raises nothing",
    coins.Clings: "who has left is not woken",
    coins.Breaks: "step raises nothing",
    coins.Blind: "observe raises nothing",
    coins.Bare: "it is built from its Params",
    coins.Refuses: "it is built from its Params",
    coins.Unlisted: "metrics are functions",
    coins.Unnamed: "changeable names parameters",
}


def test_a_world_that_keeps_the_rules_passes() -> None:
    check_world(coins.Coins, SEATS, agent=coins.Asks)
    check_world(coins.Coins, [Seat(agent="ann")], {"rounds": 2})


@pytest.mark.parametrize(("kind", "rule"), BROKEN.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_world_is_caught(kind: Any, rule: str) -> None:
    assert rule in [finding.rule for finding in world_findings(kind, SEATS)]


def test_every_broken_world_is_listed() -> None:
    bases = {coins.Coins, coins.Turned, coins.Stepped}
    there = {one for one in vars(coins).values() if inspect.isclass(one) and issubclass(one, coins.Coins)}
    assert there - bases == BROKEN.keys()


def test_luck_of_module_random_is_left_as_it_was() -> None:
    import random

    random.seed(5)
    before = random.getstate()
    world_findings(coins.Gambles, SEATS)
    assert random.getstate() == before


def test_conformance_error_has_one_line_per_finding() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_world(coins.Misnames, SEATS)
    assert str(caught.value).splitlines() == [f"Misnames: {finding}" for finding in caught.value.findings]
    assert "a turn names its agent and tick: tick 0, ann: somebody, 0" in str(caught.value)


def test_an_agent_that_cannot_play_a_world_is_a_finding() -> None:
    found = world_findings(coins.Coins, SEATS, agent=coins.Fails)
    assert [finding.rule for finding in found] == ["its agents find their way"]
    assert "no idea" in found[0].message


def test_an_agent_that_asks_for_ever_does_not_hang_the_check() -> None:
    found = world_findings(coins.Coins, SEATS, agent=coins.Endless)
    assert "makes more than 100 calls" in told(found)


# --- agents that break a rule ---------------------------------------------------------------------------

BROKEN_MINDS = {
    coins.Grows: "deciding changes nothing of it",
    coins.Hoards: "deciding changes nothing of it",
    coins.Tidies: "a dropped mind leaves no trace",
    coins.Stubborn: "a mind can be dropped",
    coins.Cheats: "its answers are legal",
    coins.Shrugs: "it decides by an Action",
    coins.Fails: "it decides without an exception",
    coins.Dices: "one turn, one decision",
    coins.Trusts: "it survives what models say",
    coins.Believes: "its answers are legal",
    coins.Shuffles: "what never changes comes first",
    coins.Endless: "it decides without an exception",
    coins.Mumbles: "it decides without an exception",
    coins.Stateless: "it has a state",
    coins.Uncopied: "it can be deep-copied",
    coins.Unbuilt: "it is built from its member",
}


def turns() -> list[Any]:
    return turns_of(coins.Coins, SEATS)["ann"]


@pytest.mark.parametrize("kind", [coins.Guesser, coins.Asks])
def test_an_agent_that_keeps_the_rules_passes(kind: Any) -> None:
    check_agent(lambda: kind(Member(seat=Seat(agent="ann"))), turns())


@pytest.mark.parametrize(("kind", "rule"), BROKEN_MINDS.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_broken_agent_is_caught(kind: Any, rule: str) -> None:
    found = agent_findings(lambda: kind(Member(seat=Seat(agent="ann"))), turns())
    assert rule in [finding.rule for finding in found]


def test_every_broken_agent_is_listed() -> None:
    there = {one for one in vars(coins).values() if inspect.isclass(one) and issubclass(one, coins.Guesser)}
    assert there - {coins.Guesser, coins.Asks} == BROKEN_MINDS.keys()


def test_turns_come_in_order_and_are_few() -> None:
    drawn = turns_of(coins.Coins, SEATS, most=4)
    assert set(drawn) == set(SEATS)
    for mine in drawn.values():
        assert len(mine) == 4
        assert [turn.now for turn in mine] == sorted(turn.now for turn in mine)


# --- sameness and JSON ------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part


def test_a_deep_copy_is_the_same() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    things = [
        {"a": [1, 2.5, None, "x"], "b": (1, {2, 3})},
        Random(4),
        deque([1, [2]]),
        Memory(summary="s", entries=(Entry(tick=1, seen="a", did="b"),)),
        Slotted([Slotted(1)]),
        float("nan"),
        loop,
        Slotted.__init__,
    ]
    for thing in things:
        assert same(thing, deepcopy(thing)), thing


def test_what_differs_anywhere_is_not_the_same() -> None:
    used = Random(4)
    used.random()
    pairs: list[tuple[Any, Any]] = [
        ({"a": [1, 2]}, {"a": [1, 3]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        (1, True),
        ([1], (1,)),
        (Random(4), used),
        (deque([1, [2]]), deque([1, [3]])),
        (Memory(), Memory(summary="s")),
        (Slotted([Slotted(1)]), Slotted([Slotted(2)])),
        (Slotted(1), coins.Guesser),
        (threading.Lock(), threading.Lock()),
        (len, sum),
    ]
    for one, other in pairs:
        assert not same(one, other), (one, other)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"a": [1, None, True, "x", 0.5]}, ""),
        ({"a": [1, float("nan")]}, "a[1] is nan"),
        ({"a": {1: 2}}, "a has the key 1, which is no text"),
        ({"a": {"b": (1, 2)}}, "a.b is a tuple"),
        (float("inf"), "the value is inf"),
    ],
)
def test_what_is_no_json_is_named(value: Any, wrong: str) -> None:
    assert no_json(value) == wrong
