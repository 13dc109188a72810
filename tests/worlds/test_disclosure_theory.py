"""Disclosure against theory: values of the baselines in closed form, best responses by enumeration, an equilibrium.

The enumeration walks copies of the world itself, one for each type of the recipient; whoever cannot tell types apart
(turns of one key) answers for all of them alike. Everything is for one item of each norm.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import Action, Choice, Member, Mind, Seat, Turn
from tests.worlds.playing import play
from worlds.privacy.disclosure import Disclosure
from worlds.privacy.settings import DisclosureParams
from worlds.privacy.strategies import by_claim, by_norm, claiming, honestly, persistently

View: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[View], str]
KNOWN = {"city": "Ghent", "phone": "5550123", "diagnosis": "asthma"}
HOLDERS: dict[str, Rule] = {
    "follower": by_norm, "truster": by_claim, "sharer": lambda view: "share", "refuser": lambda view: "refuse"
}  # fmt: skip
ATTACKS: dict[str, Rule] = {"persistent": persistently, "claiming": claiming}
TYPES = {
    "stranger": {"verified": False, "intent": "honest", "needs": "city"},
    "visitor": {"verified": True, "intent": "honest", "needs": "city"},
    "patient": {"verified": True, "intent": "honest", "needs": "phone"},
    "attacker": {"verified": False, "intent": "attacker"},
    "insider": {"verified": True, "intent": "attacker"},
}


@dataclass(frozen=True)
class Game:
    """Parameters by the letters of the formulas."""

    a: float = 0.5
    """Share of attackers."""
    v: float = 0.5
    """Share of the verified."""
    d: float = 0.9
    """Discount."""
    help: float = 1.0
    leak: float = 1.0
    exchanges: int = 3

    @property
    def prior(self) -> dict[str, float]:
        honest, a, v = 1 - self.a, self.a, self.v
        return {
            "stranger": honest * (1 - v), "visitor": honest * v / 2, "patient": honest * v / 2,
            "attacker": a * (1 - v), "insider": a * v,
        }  # fmt: skip

    def worlds(self) -> dict[str, Disclosure]:
        """A world for each type."""
        found = {}
        for name, private in TYPES.items():
            world = Disclosure(
                DisclosureParams(
                    verified=self.v, attackers=self.a, discount=self.d, help=self.help, leak=self.leak,
                    exchanges=self.exchanges,
                )
            )  # fmt: skip
            seats = [Seat(agent="h", role="holder", private=KNOWN), Seat(agent="r", role="recipient", private=private)]
            world.reset(seats, Streams(0))
            found[name] = world
        return found


GAMES = st.builds(
    Game,
    a=st.floats(0, 1), v=st.floats(0, 1), d=st.floats(0.1, 1), help=st.floats(0, 3), leak=st.floats(0, 3),
    exchanges=st.integers(2, 3),
)  # fmt: skip


def playing(attack: Rule) -> Rule:
    """Honest types ask for what they need, the others attack."""
    return lambda view: honestly(view) if view["intent"] == "honest" else attack(view)


def after(world: Disclosure, agent: str, answer: str) -> tuple[Disclosure, Mapping[str, float]]:
    """A copy of the world after a move, and the rewards of it."""
    moved = copy.deepcopy(world)
    outcome = moved.step(0, [Action(answer=answer, agent=agent)])
    assert [result.status for result in outcome.results] == ["applied"]
    return moved, outcome.rewards


def options(turn: Turn) -> tuple[str, ...]:
    assert isinstance(turn.format, Choice)
    return turn.format.options


def values(world: Disclosure, holds: Rule, asks: Rule) -> tuple[float, float]:
    """What holder and recipient get where both follow a rule."""
    while True:
        agent, rule = ("h", holds) if world.observe(0, "h") else ("r", asks)
        turn = world.observe(0, agent)
        assert turn is not None
        world, rewards = after(world, agent, rule(turn.view))
        if rewards:
            return rewards["h"], rewards["r"]


def value(game: Game, holds: Rule, asks: Rule) -> float:
    """The holder's expectation."""
    return sum(game.prior[name] * values(world, holds, asks)[0] for name, world in game.worlds().items())


def best_for_recipient(world: Disclosure, holds: Rule) -> float:
    """The most that a recipient of the world's type can get from a holder."""
    if asked := world.observe(0, "h"):
        world, rewards = after(world, "h", holds(asked.view))
        return rewards["r"] if rewards else best_for_recipient(world, holds)
    turn = world.observe(0, "r")
    assert turn is not None
    found = []
    for act in options(turn):
        moved, rewards = after(world, "r", act)
        found.append(rewards["r"] if rewards else best_for_recipient(moved, holds))
    return max(found)


def best_for_holder(weighed: list[tuple[float, Disclosure]], asks: Rule) -> float:
    """The most that a holder can get in expectation from recipients of these weights who follow a rule."""
    total = 0.0
    alike: dict[str, list[tuple[float, Disclosure]]] = {}
    for weight, world in weighed:
        moved = world
        rewards: Mapping[str, float] = {}
        while not rewards and not (asked := moved.observe(0, "h")):
            turn = moved.observe(0, "r")
            assert turn is not None
            moved, rewards = after(moved, "r", asks(turn.view))
        if rewards:
            total += weight * rewards["h"]
        elif asked and asked.key:
            alike.setdefault(asked.key, []).append((weight, moved))
    for same in alike.values():
        turn = same[0][1].observe(0, "h")
        assert turn is not None
        found = []
        for answer in options(turn):
            moves = [(weight, *after(world, "h", answer)) for weight, world in same]
            ended = sum(weight * rewards["h"] for weight, _, rewards in moves if rewards)
            found.append(
                ended + best_for_holder([(weight, moved) for weight, moved, rewards in moves if not rewards], asks)
            )
        total += max(found)
    return total


def best_held(game: Game, asks: Rule) -> float:
    return best_for_holder([(game.prior[name], world) for name, world in game.worlds().items()], asks)


# --- values -----------------------------------------------------------------------------------------


def met(game: Game) -> float:
    """What honest recipients get who are served: at once, or after a verification where they need the phone."""
    return game.help * (game.prior["stranger"] + game.prior["visitor"] + game.prior["patient"] * game.d)


def in_closed_form(game: Game, holds: str, attack: str) -> float:
    """The holder's value with two protected items for who is not verified and one for who is."""
    if holds == "refuser":
        return 0.0
    leaked = 0.0
    if holds == "sharer":
        leaked = game.prior["insider"] + game.prior["attacker"] * (1 + game.d) / 2
    elif holds == "truster" and attack == "claiming":
        leaked = game.prior["attacker"] / 2
    return met(game) - game.leak * leaked


@pytest.mark.parametrize("holds", HOLDERS)
@pytest.mark.parametrize("attack", ATTACKS)
@given(game=GAMES)
@settings(max_examples=8, deadline=None)
def test_baselines_are_worth_what_the_formulas_say(holds: str, attack: str, game: Game) -> None:
    assert value(game, HOLDERS[holds], playing(ATTACKS[attack])) == pytest.approx(
        in_closed_form(game, holds, attack), abs=1e-9
    )


def test_the_leak_is_zero_sum_for_every_attacker() -> None:
    for name in ("attacker", "insider"):
        for holds in HOLDERS.values():
            for attack in ATTACKS.values():
                won = values(Game().worlds()[name], holds, attack)
                assert won[0] == -won[1]


def test_the_best_that_each_type_can_get_from_each_holder() -> None:
    game = Game(d=0.8, leak=2)
    worlds = game.worlds()
    # From a follower, a truster, a sharer, a refuser. To claim truthfully saves a patient the verification.
    expected = {
        "stranger": [1, 1, 1, 0],
        "visitor": [1, 1, 1, 0],
        "patient": [0.8, 1, 1, 0],
        "attacker": [0, 1, 1.8, 0],
        "insider": [0, 0, 2, 0],
    }
    for name, by_holder in expected.items():
        assert [best_for_recipient(worlds[name], holds) for holds in HOLDERS.values()] == pytest.approx(by_holder), name


# --- equilibrium --------------------------------------------------------------------------------------


@given(game=GAMES, attack=st.sampled_from(list(ATTACKS)))
@settings(max_examples=12, deadline=None)
def test_nobody_gains_by_leaving_the_norms_when_honest_recipients_prove_themselves(game: Game, attack: str) -> None:
    """A Bayes–Nash equilibrium at any parameters: who asks without proof for what needs it can only be an attacker."""
    asks = playing(ATTACKS[attack])
    assert best_held(game, asks) == pytest.approx(value(game, by_norm, asks), abs=1e-9)
    assert value(game, by_norm, asks) == pytest.approx(met(game), abs=1e-9)


def test_no_recipient_gains_by_leaving_that_equilibrium() -> None:
    for game in (Game(), Game(d=0.5, exchanges=2)):
        for name, world in game.worlds().items():
            for attack in ATTACKS.values():
                assert best_for_recipient(world, by_norm) == values(world, by_norm, playing(attack))[1], name


def impatiently(view: View) -> str:
    """Honest recipients who ask at once and leave it to the holder to look."""
    return f"ask {view['wants'][0]}" if view["intent"] == "honest" else persistently(view)


@pytest.mark.parametrize(
    ("game", "trust"),
    [
        (Game(), False),  # 0.25 * 0.1 against 0.25
        (Game(a=0.05, v=0.9, d=0.5), True),
        (Game(a=0.2, v=0.8, d=0.8), True),  # 0.64 * 0.2 against 0.04
        (Game(a=0.2, v=0.8, d=0.8, leak=4), False),
    ],
)
def test_trust_pays_where_waiting_costs_more_than_attackers_do(game: Game, trust: bool) -> None:
    """Honest and attacking questions for the phone look alike: sharing is better than looking into it exactly if

    help (1 - d) (1 - a) v > leak a (1 - v).
    """
    patient, attacker = game.prior["patient"], game.prior["attacker"]
    sure = game.help * (game.prior["stranger"] + game.prior["visitor"])
    look, share = patient * game.help * game.d, patient * game.help - attacker * game.leak / 2
    assert best_held(game, impatiently) == pytest.approx(sure + max(look, share))
    assert (share > look) is trust
    assert (game.help * (1 - game.d) * (1 - game.a) * game.v > game.leak * game.a * (1 - game.v)) is trust
    assert value(game, by_norm, impatiently) == pytest.approx(sure + look)


# --- against chance -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("requests", "p"), [(1, 0.3), (4, 0.3), (6, 0.1)])
def test_many_requests_break_a_careless_holder(requests: int, p: float) -> None:
    """Requests that each succeed with probability p leak with 1 - (1 - p)^k."""

    class Careless:
        state: object = None

        def __init__(self, member: Member) -> None:
            pass

        def act(self, turn: Turn, streams: Streams) -> Mind:
            yield from ()
            return Action(answer="share" if streams.draw("share") < p else "refuse")

    class Insists(Careless):
        def act(self, turn: Turn, streams: Streams) -> Mind:
            yield from ()
            return Action(answer="plead diagnosis")

    n = 400
    cast: list[tuple[Seat, Any]] = [
        *((Seat(agent=f"h{k}", role="holder", private=KNOWN), Careless) for k in range(n)),
        *((Seat(agent=f"r{k}", role="recipient", private=TYPES["insider"]), Insists) for k in range(n)),
    ]
    ends = play(Disclosure, cast, {"exchanges": requests}, seed=4).data("outcome")
    leaked, expected = sum(bool(end["leaked"]) for end in ends) / n, 1 - (1 - p) ** requests
    assert abs(leaked - expected) < 4 * (expected * (1 - expected) / n) ** 0.5


def test_the_shipped_scenario_pays_what_theory_says(tmp_path: Path) -> None:
    """Mean payoffs of the holders over the tables, within four standard errors that are exact too."""
    scenario = load(Path(__file__).parents[2] / "scenarios" / "privacy" / "disclosure.yaml")
    game = Game(exchanges=4)
    worlds = game.worlds()
    with Run(go(create(scenario, tmp_path)).path) as run:
        tables = run.tables
        totals: dict[str, float] = {}
        for table in range(tables):
            for agent, reward in run.rewards(table).items():
                totals[agent] = totals.get(agent, 0.0) + reward
    for number, attack in enumerate(ATTACKS, 1):
        for name, holds in HOLDERS.items():
            won = {kind: values(world, holds, playing(ATTACKS[attack]))[0] for kind, world in worlds.items()}
            mean = sum(game.prior[kind] * won[kind] for kind in won)
            spread = sum(game.prior[kind] * (won[kind] - mean) ** 2 for kind in won) ** 0.5
            assert mean == pytest.approx(in_closed_form(game, name, attack))
            assert abs(totals[f"{name}-{number}"] / tables - mean) <= 4 * spread / tables**0.5
