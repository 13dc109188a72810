"""Exact evaluation against the theory of Kuhn poker and against OpenSpiel's own numbers; averages; intervals."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from math import sqrt
from types import SimpleNamespace
from typing import Any

import msgspec
import pyspiel
import pytest

from sim.intervals import wilson
from sim.simulate import player, simulate
from sim.types import Fact, Member, RecordedFact, Seat
from training.evaluate import (
    AveragePolicy,
    best_response,
    cross_play,
    exploitability,
    joint,
    nash_conv,
    option_rate,
    own_reach,
    reach,
    relative_nash_conv,
    total_variation,
    uniform,
    values,
)
from training.extensive import Tree, tree
from training.measures import gain, margins, mean_of, proposer_share, rate_by_turn, rubinstein, win_rate
from training.tabulate import Tabular
from training.trajectory import Row
from worlds.games.matrix import Matrix
from worlds.games.openspiel import OpenSpielGame, OpenSpielParams
from worlds.games.openspiel_strategies import Tabular as TabularAgent
from worlds.games.openspiel_strategies import kuhn, kuhn_nash
from worlds.games.settings import MatrixParams
from worlds.games.strategies import matching
from worlds.negotiation.strategies import proposer_share as by_induction

BET, PASS, EVEN = kuhn([1.0] * 12), kuhn([0.0] * 12), kuhn([0.5] * 12)
CAST = [Seat(agent="ann"), Seat(agent="bob")]
AUCTION = "first_sealed_auction(players=2,max_value=4)"
BIASED = {
    "rock,rock": (0, 0), "rock,paper": (-1, 1), "rock,scissors": (2, -2),
    "paper,rock": (1, -1), "paper,paper": (0, 0), "paper,scissors": (-1, 1),
    "scissors,rock": (-2, 2), "scissors,paper": (1, -1), "scissors,scissors": (0, 0),
}  # fmt: skip
"""Rock against scissors counts twice: (1/4, 1/2, 1/4) is the equilibrium."""
EQUILIBRIUM = {"rock": 0.25, "paper": 0.5, "scissors": 0.25}


def spiel(game: str) -> Tree:
    return tree(OpenSpielGame(OpenSpielParams(game=game)), CAST)


@pytest.fixture(scope="module")
def game() -> Tree:
    return spiel("kuhn_poker")


@pytest.fixture(scope="module")
def leduc() -> Tree:
    return spiel("leduc_poker")


@pytest.fixture(scope="module")
def rps() -> Tree:
    return tree(Matrix(MatrixParams(actions=(tuple(EQUILIBRIUM),) * 2, payoffs=BIASED)), CAST)


def at_random(tree: Tree, seed: int) -> dict[str, dict[str, float]]:
    """A table with nothing even about it."""
    luck, found = random.Random(seed), {}
    for key, options in tree.options.items():
        weights = [luck.random() ** 3 for _ in options]
        found[key] = {option: weight / sum(weights) for option, weight in zip(options, weights, strict=True)}
    return found


# --- exploitability -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "wanted"), [(EVEN, 11 / 12), (BET, 2 / 3), (PASS, 2.0)])
def test_kuhn_references(game: Tree, table: Tabular, wanted: float) -> None:
    assert nash_conv(game, table) == pytest.approx(wanted, abs=1e-12)
    assert exploitability(game, table) == pytest.approx(wanted / 2, abs=1e-12)


@pytest.mark.parametrize("alpha", [0, 0.1, 0.2, 1 / 3])
def test_every_equilibrium_of_kuhn_is_one(game: Tree, alpha: float) -> None:
    table = kuhn_nash(alpha)
    assert nash_conv(game, table) == pytest.approx(0, abs=1e-12)
    assert values(game, table) == pytest.approx((-1 / 18, 1 / 18), abs=1e-12)


def test_best_responses_to_uniform_play_at_kuhn(game: Tree) -> None:
    assert values(game, EVEN)[0] == pytest.approx(1 / 8)
    for seat, wanted in ((0, 1 / 2), (1, 5 / 12)):
        value, response = best_response(game, EVEN, seat)
        assert value == pytest.approx(wanted)
        assert set(response) == {key for key, owner in game.owner.items() if owner == seat}
        assert values(game, {**EVEN, **response})[seat] == pytest.approx(wanted)


def test_uniform_play_at_leduc(leduc: Tree) -> None:
    assert len(leduc.options) == 936
    assert nash_conv(leduc, uniform(leduc)) == pytest.approx(4.747, abs=0.01)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", AUCTION])
def test_nash_conv_is_openspiel_s(name: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue("leduc") if name == "leduc_poker" else spiel(name)
    table = at_random(found, seed=1)
    assert nash_conv(found, table) == pytest.approx(by_openspiel(name, table), abs=1e-9)


def by_openspiel(name: str, table: Tabular) -> float:
    rows: dict[str, list[tuple[int, float]]] = {}

    def visit(state: Any) -> None:
        if not state.is_terminal() and not state.is_chance_node():
            known = state.information_state_string()
            shares = table[f"{state.current_player()}:{known}"].values()
            rows[known] = list(zip(state.legal_actions(), shares, strict=True))
        for move in state.legal_actions():
            visit(state.child(move))

    loaded = pyspiel.load_game(name)
    visit(loaded.new_initial_state())
    return float(pyspiel.nash_conv(loaded, pyspiel.TabularPolicy(rows)))


def test_matrix_games_by_hand(rps: Tree) -> None:
    assert nash_conv(rps, {"0:": EQUILIBRIUM, "1:": EQUILIBRIUM}) == pytest.approx(0)
    rock = {"rock": 1.0, "paper": 0.0, "scissors": 0.0}
    assert nash_conv(rps, {"0:": rock, "1:": rock}) == 2
    dilemma = tree(Matrix(MatrixParams(game="pd", rounds=3)), CAST)
    defect = {key: {"cooperate": 0.0, "defect": 1.0} for key in dilemma.options}
    grim = {key: {"cooperate": float("1" not in key[2:]), "defect": float("1" in key[2:])} for key in dilemma.options}
    assert nash_conv(dilemma, defect) == 0
    assert nash_conv(dilemma, grim) == 2 * 2  # each gains 5 − 3 by defecting in the last round


def test_the_auction_relative_to_uniform_bids() -> None:
    auction = spiel(AUCTION)
    assert relative_nash_conv(auction, uniform(auction)) == 1
    low = {
        key: {option: float(int(option) == (int(key[-1]) - 1) // 2 + (key[-1] == "4")) for option in options}
        for key, options in auction.options.items()
    }
    assert relative_nash_conv(auction, low) < 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"0:0": {"pass": 0.5, "bet": 0.4}}, "no distribution"),
        ({"0:0": {"pass": 0.5, "fold": 0.5}}, "no distribution"),
        ({"0:0": {"pass": 1.5, "bet": -0.5}}, "no distribution"),
    ],
)
def test_a_row_that_is_no_distribution_is_an_error(game: Tree, change: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        nash_conv(game, {**EVEN, **change})


def test_a_missing_state_is_an_error(game: Tree) -> None:
    with pytest.raises(ValueError, match="nothing for the information state '1:0b'"):
        values(game, {key: row for key, row in EVEN.items() if key != "1:0b"})


# --- reach and cross-play -----------------------------------------------------------------------------


def test_reach_by_hand(game: Tree) -> None:
    table = kuhn([0.2, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4, 0.5, 0.5, 0.5])
    met, own = reach(game, table), own_reach(game, table)
    assert met["0:0"] == pytest.approx(1 / 3)
    assert own["0:0"] == 1
    assert met["0:0pb"] == pytest.approx(1 / 3 * 0.8 * 0.4)
    assert own["0:0pb"] == pytest.approx(0.8)
    assert met["1:0b"] == pytest.approx(1 / 3 * 0.5)
    assert own["1:0b"] == 1


@pytest.mark.parametrize("alpha", [0, 0.2, 1 / 3])
def test_nash_against_uniform_play(game: Tree, alpha: float) -> None:
    """As second it gains 1/6; as first 1/18 + α/3, at most 1/6."""
    matrix = cross_play(game, [kuhn_nash(alpha), EVEN])
    assert matrix[0][0] == pytest.approx((-1 / 18, 1 / 18))
    assert matrix[0][1] == pytest.approx((1 / 18 + alpha / 3, -1 / 18 - alpha / 3))
    assert matrix[1][0] == pytest.approx((-1 / 6, 1 / 6))
    assert matrix[1][1] == pytest.approx((1 / 8, -1 / 8))


def test_cross_play_is_what_is_played(game: Tree) -> None:
    tables = [at_random(game, 1), at_random(game, 2)]
    wanted = values(game, joint(game, tables))[0]
    minds = [TabularAgent(Member(seat=seat), table) for seat, table in zip(CAST, tables, strict=True)]
    earned = []
    for seed in range(600):
        agents = [player(mind, seat) for mind, seat in zip(minds, CAST, strict=True)]
        rows = simulate(OpenSpielGame(OpenSpielParams(game="kuhn_poker")), agents, seed=seed).rows
        (paid,) = [row[-1] for kind, row in rows if kind == "events" and "rewards" in row]
        earned.append(json.loads(paid)["ann"])
    assert abs(sum(earned) / len(earned) - wanted) < 4 * 1.5 / sqrt(len(earned))


def test_cross_play_is_of_two() -> None:
    three = tree(OpenSpielGame(OpenSpielParams(game="kuhn_poker(players=3)")), [*CAST, Seat(agent="eve")])
    assert nash_conv(three, uniform(three)) > 0
    with pytest.raises(ValueError, match="two seats, not of 3"):
        cross_play(three, [uniform(three)])


def test_the_share_of_an_option_by_round() -> None:
    dilemma = tree(Matrix(MatrixParams(game="pd", rounds=2)), CAST)
    table = {
        key: {"cooperate": 0.75, "defect": 0.25} if key.endswith(":") else {"cooperate": 0.0, "defect": 1.0}
        for key in dilemma.options
    }
    assert option_rate(dilemma, table, "defect") == pytest.approx([0.25, 1.0])


# --- the average --------------------------------------------------------------------------------------


def test_the_average_is_weighted_with_own_reach(game: Tree) -> None:
    """Of a policy that passes with the jack and bets after a bet, and one that bets and would pass then.

    After pass and bet only the first is there with the jack, so the average bets then, unlike the plain mean.
    """
    one = kuhn([0.0, 0.5, 0.5, 1.0, 0.25, 0.5, 0.0, *[0.5] * 5])
    two = kuhn([1.0, 0.0, 0.5, 0.0, 0.75, 0.5, 1.0, *[0.5] * 5])
    found = AveragePolicy().add(game, one).add(game, two).table(game)
    assert found["0:0"]["bet"] == pytest.approx(0.5)
    assert found["0:0pb"]["bet"] == pytest.approx(1.0)
    assert found["0:1pb"]["bet"] == pytest.approx((0.5 * 0.25 + 1.0 * 0.75) / 1.5)
    assert found["1:0p"]["bet"] == pytest.approx(0.5)


def test_the_average_earns_what_its_policies_earn_on_average(game: Tree) -> None:
    """Kuhn's theorem: against any opponent."""
    one, two, other = (at_random(game, seed) for seed in range(3))
    both = AveragePolicy().add(game, one, 1.0).add(game, two, 3.0).table(game)
    for seat in (0, 1):
        earned = [
            values(game, joint(game, (each, other) if seat == 0 else (other, each)))[seat] for each in (one, two, both)
        ]
        assert earned[2] == pytest.approx((earned[0] + 3 * earned[1]) / 4)


def test_the_average_goes_through_json_and_leaves_out_weight_zero(game: Tree) -> None:
    before = AveragePolicy().add(game, at_random(game, 1))
    after = msgspec.json.decode(msgspec.json.encode(before), type=AveragePolicy)
    assert after == before
    assert after.add(game, at_random(game, 2), 0.0).table(game) == before.table(game)
    assert AveragePolicy().table(game) == uniform(game)


def test_the_average_of_regret_matching_converges(rps: Tree) -> None:
    """Play itself does not come near; the average does."""
    options = tuple(EQUILIBRIUM)
    regrets = {key: [1.0, 0.0, 0.0] for key in rps.options}
    average, last = AveragePolicy(), {}
    for _ in range(1000):
        last = {key: dict(zip(options, matching(each), strict=True)) for key, each in regrets.items()}
        average = average.add(rps, last)
        for key, seat in rps.owner.items():
            now = values(rps, last)[seat]
            for place, option in enumerate(options):
                sure = {each: float(each == option) for each in options}
                regrets[key][place] += values(rps, {**last, key: sure})[seat] - now
    found = average.table(rps)
    assert max(total_variation(row, EQUILIBRIUM) for row in found.values()) < 0.05
    assert nash_conv(rps, found) < 0.1 < nash_conv(rps, last)


def test_total_variation() -> None:
    assert total_variation({"a": 1.0}, {"b": 1.0}) == 1
    assert total_variation(EQUILIBRIUM, dict.fromkeys(EQUILIBRIUM, 1 / 3)) == pytest.approx(1 / 6)


# --- from stored rows -----------------------------------------------------------------------------------


def test_wilson() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10)[1] == 1.0
    with pytest.raises(ValueError, match="0 of 0"):
        wilson(0, 0)


def row(episode: str, seat: str, reward: float, policy: str, **fields: Any) -> Row:
    return Row(episode=episode, seat=seat, reward=reward, policy=policy, **fields)


def test_win_rates_count_episodes_against_others() -> None:
    rows = [
        row("0", "a", 1, "new@1"), row("0", "b", -1, "old@1"),
        row("0", "a", 1, "new@1", turn=1, answer="a thought"), row("0", "a", 1, "new@1", turn=1),
        row("1", "a", 2, "old@1"), row("1", "b", -2, "new@1"),
        row("2", "a", 0, "new@1"), row("2", "b", 0, "old@1"),
        row("3", "a", 5, "new@1"), row("3", "b", -5, "new@1"),
    ]  # fmt: skip
    assert margins(rows, "new@1") == [3, -4, 0]
    found = win_rate(margins(rows, "new@1"))
    assert (found.value, found.n, found.ci, found.of["draws"]) == (1 / 3, 3, wilson(1, 3), 1)
    assert win_rate([]).value is None


def test_means_by_hand() -> None:
    found = mean_of("return", [1.0, 3.0, 5.0])
    half = 1.959963984540054 * 2 / sqrt(3)
    assert (found.value, found.n) == (3.0, 3)
    assert found.ci == pytest.approx((3 - half, 3 + half))
    assert (mean_of("return", [2.0]).value, mean_of("return", [2.0]).ci) == (2.0, None)
    assert mean_of("return", []).value is None


def test_the_gain_of_a_trained_response(game: Tree) -> None:
    """With payoffs whose means are exact it is NashConv."""
    own = {"first": [1 / 8 + d for d in (-1, 1)], "second": [-1 / 8 + d for d in (-1, 1)]}
    response = {"first": [1 / 2 + d for d in (-1, 1)], "second": [5 / 12 + d for d in (-1, 1)]}
    found = gain(own, response)
    assert found.value == pytest.approx(nash_conv(game, EVEN))
    assert found.ci == pytest.approx((11 / 12 - 1.96 * 2, 11 / 12 + 1.96 * 2), abs=1e-3)
    with pytest.raises(ValueError, match="two payoffs"):
        gain(own, {"first": [1.0]})


def test_rates_by_turn() -> None:
    rows = [
        row("0", "a", 0, "p", turn=0, answer="cooperate"),
        row("0", "a", 0, "p", turn=1, answer="a thought"),
        row("0", "a", 0, "p", turn=1, answer="defect"),
        row("1", "a", 0, "p", turn=0, answer="defect", how="retried"),
        row("1", "a", 0, "p", turn=1, answer="defect", how="defaulted"),
    ]
    first, last = rate_by_turn(rows, "defect")
    assert (first.value, first.n, first.excluded) == (0.5, 2, {})
    assert (last.value, last.n, last.excluded) == (1.0, 1, {"not chosen": 1})


@pytest.mark.parametrize("left", [None, 1, 2, 3, 10])
def test_rubinstein_is_the_world_s(left: int | None) -> None:
    assert rubinstein(0.9, 0.8, left) == pytest.approx(by_induction(0.9, 0.8, left))
    assert rubinstein(1, 1) == 0.5


def test_the_proposer_s_share() -> None:
    found = proposer_share(record([(1, 60, 40), (2, 30, 70)], unfinished=1))
    assert found.value == pytest.approx(0.65)
    assert (found.n, found.excluded) == (2, {"no deal": 1})
    assert proposer_share(record([], unfinished=2)).value is None


def record(deals: Sequence[tuple[int, int, int]], unfinished: int) -> Any:
    """Deals by round, first mover's and second mover's share of a pie of 100."""
    agents = ["ann", "bob"]
    found = [
        Fact(id=n, kind="deal", data={"round": round, "agents": agents, "shares": {"ann": first, "bob": second}})
        for n, (round, first, second) in enumerate(deals)
    ]
    pairs = [Fact(id=n, kind="pair") for n in range(len(deals) + unfinished)]
    facts = [RecordedFact(table=0, seq=0, tick=0, fact=fact) for fact in (*found, *pairs)]
    return SimpleNamespace(params={"pie": 100}, facts=lambda kind: [one for one in facts if one.fact.kind == kind])
