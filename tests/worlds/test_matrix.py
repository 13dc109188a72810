"""Matrix games: classic results, learners, simultaneity, deadlines, talk, interventions and words."""

from __future__ import annotations

import copy
import json
import math
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.check import check_agent, check_world, turns_of
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.simulate import player
from sim.streams import Streams
from sim.types import Act, Action, Choice, Join, Leave, Member, Mind, Outcome, Say, Seat, Set, Text, Turn
from tests.worlds.playing import Played, play
from worlds.games.matches import round_robin
from worlds.games.matrix import SILENCE, Matrix
from worlds.games.payoffs import COOPERATIVE, NAMES, build, counted, explicit, named
from worlds.games.settings import MatrixParams
from worlds.games.signals import Chatter, Colluder
from worlds.games.strategies import (
    Average,
    BestResponse,
    Fixed,
    Grim,
    Random,
    RegretMatching,
    SuspiciousTitForTat,
    TitForTat,
    TitForTwoTats,
    WinStayLoseShift,
    critical_discount,
    drawn,
    hedge,
    matching,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "games"
Cooperator = partial(Fixed, action="cooperate")
Defector = partial(Fixed, action="defect")
FOUR_HEADS = {"give": [1, 2, 3, 4], "keep": [2, 3, 4, 5]}


class Speaker:
    """Says the same words and makes the same move whenever asked."""

    def __init__(self, _member: Member, words: str, move: str) -> None:
        self.words, self.move = words, move
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        return Action(answer=self.words if turn.view["phase"] == "talk" else self.move)
        yield


def match(*makers: Any, **params: Any) -> Played:
    """One match of the makers' agents, called a, b, …; the prisoner's dilemma unless told otherwise."""
    given = {key: params.pop(key) for key in ("think", "interventions", "until", "seed") if key in params}
    if not {"payoffs", "by_count"} & set(params):
        params.setdefault("game", "pd")
    cast = [(Seat(agent=name), make) for name, make in zip("abcdefgh", makers, strict=False)]
    return play(Matrix, cast, params, **given)


def fresh(*agents: str, **params: Any) -> Matrix:
    if not {"payoffs", "by_count"} & set(params):
        params.setdefault("game", "pd")
    world = Matrix(MatrixParams.model_validate(params))
    world.reset([Seat(agent=agent) for agent in agents or ("a", "b")], Streams(1))
    return world


def seen(world: Matrix, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def acted(world: Matrix, agent: str, answer: Any, now: int = 0) -> Action:
    turn = seen(world, agent, now)
    assert illegal(turn.format, answer) is None, answer
    return Action(answer=answer, agent=agent, seen=now, shows=turn.shows)


def do(world: Matrix, now: int = 0, **answers: Any) -> Outcome:
    return world.step(now, [acted(world, agent, answer, now) for agent, answer in answers.items()])


# --- games ------------------------------------------------------------------------------------------


def test_payoffs_of_the_classics() -> None:
    """PD T5 R3 P1 S0, stag hunt 2,2/0,1/1,1, chicken 3,3/1,4/0,0, battle of the sexes 3,2/2,3, zero sums."""
    cells = {
        "pd": {(0, 0): (3, 3), (0, 1): (0, 5), (1, 0): (5, 0), (1, 1): (1, 1)},
        "stag_hunt": {(0, 0): (2, 2), (0, 1): (0, 1), (1, 0): (1, 0), (1, 1): (1, 1)},
        "chicken": {(0, 0): (3, 3), (0, 1): (1, 4), (1, 0): (4, 1), (1, 1): (0, 0)},
        "battle_of_sexes": {(0, 0): (3, 2), (0, 1): (0, 0), (1, 0): (0, 0), (1, 1): (2, 3)},
    }
    for name, table in cells.items():
        assert dict(named(name).table) == table
    for name in ("rps", "matching_pennies"):
        assert all(sum(own) == 0 for own in named(name).table.values())
    rps = named("rps")
    assert [rps.table[joint][0] for joint in ((0, 2), (1, 0), (2, 1))] == [1, 1, 1]
    assert set(NAMES) >= COOPERATIVE


def test_the_safe_action() -> None:
    safe = {name: named(name).safe for name in NAMES}
    assert safe == {
        "pd": (1, 1), "stag_hunt": (1, 1), "chicken": (0, 0), "battle_of_sexes": (0, 0), "rps": (0, 0),
        "matching_pennies": (0, 0),
    }  # fmt: skip


def test_games_of_ones_own() -> None:
    game = explicit([["up", "down"], ["left"]], {"up,left": [1, 2], "down, left": [3, 4]})
    assert dict(game.table) == {(0, 0): (1, 2), (1, 0): (3, 4)}
    four = counted(FOUR_HEADS)
    assert four.players == 4
    assert four.table[(0, 0, 1, 1)] == (2, 2, 4, 4)
    assert len(four.table) == 16


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "name one game"),
        ({"game": "pd", "by_count": FOUR_HEADS}, "name one game"),
        ({"actions": [["x"], ["y"]], "payoffs": {"x,z": [1, 2]}}, "x,y"),
        ({"actions": [["x"], ["y"]], "payoffs": {"x,y": [1]}}, "x,y"),
        ({"actions": [["x"], ["y"]], "payoffs": {"x,y": [1, 2], "y,x": [1, 2]}}, "y,x"),
        ({"actions": [["x", "x"], ["y"]], "payoffs": {"x,y": [1, 2]}}, "different labels"),
        ({"actions": [["a,b"], ["y"]], "payoffs": {"x,y": [1, 2]}}, "without commas"),
        ({"by_count": {"x": [1, 2]}}, "by_count"),
        ({"by_count": {"x": [0] * 13, "y": [0] * 13}}, "4096"),
        ({"game": "pd", "default": 2}, "no action 2"),
        ({"game": "pd", "talk": "restricted", "tokens": ["x", "x"]}, "different"),
        ({"game": "pd", "deadline": 0}, "deadline"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MatrixParams.model_validate(params)


# --- theory -------------------------------------------------------------------------------------------


def test_tit_for_tat_against_always_defect() -> None:
    record = match(TitForTat, Defector, rounds=200)
    assert {agent: total / 200 for agent, total in record.won.items()} == {"a": 0.995, "b": 1.02}
    measured = record.measured(Matrix.metrics)
    assert measured["matrix.mean_payoff agent=a"].value == 0.995
    assert measured["matrix.cooperation_rate agent=a"].value == 1 / 200
    assert measured["matrix.cooperation_rate"].value == 1 / 400
    assert measured["matrix.mutual_action action=defect"].value == 199 / 200


def test_suspicious_against_plain_tit_for_tat() -> None:
    record = match(SuspiciousTitForTat, TitForTat, rounds=200)
    assert {agent: total / 200 for agent, total in record.won.items()} == {"a": 2.5, "b": 2.5}


EIGHT = {
    "ALLC": Cooperator, "ALLD": Defector, "TFT": TitForTat, "STFT": SuspiciousTitForTat, "TF2T": TitForTwoTats,
    "GRIM": Grim, "WSLS": WinStayLoseShift, "RANDOM": Random,
}  # fmt: skip


def test_a_round_robin_of_eight_with_self_play() -> None:
    """Each of the 36 meetings is a fixed match of 200 rounds; those of the random player are played five times."""
    both = list(combinations_with_replacement(EIGHT, 2))
    meetings = both + [names for names in both if "RANDOM" in names] * 4
    cast = [
        (Seat(agent=f"{n}-{side}"), EIGHT[name]) for n, names in enumerate(meetings) for side, name in enumerate(names)
    ]
    won = play(Matrix, cast, {"game": "pd", "rounds": 200}).won
    scores: dict[str, dict[str, list[float]]] = {name: {other: [] for other in EIGHT} for name in EIGHT}
    for n, (one, other) in enumerate(meetings):
        scores[one][other].append(won[f"{n}-0"] / 200)
        scores[other][one].append(won[f"{n}-1"] / 200)
    means = {name: sum(sum(x) / len(x) for x in against.values()) / 8 for name, against in scores.items()}
    assert sorted(means, key=lambda name: -means[name])[:3] == ["TF2T", "TFT", "GRIM"]
    for name, mean in {"TF2T": 2.605, "TFT": 2.592, "GRIM": 2.50, "ALLD": 2.01}.items():
        assert means[name] == pytest.approx(mean, abs=0.02)


def test_the_grim_trigger_deters_from_one_half_on() -> None:
    """(T - R) / (T - P), and the discounted payoffs of played rounds cross there."""
    table = named("pd").table
    critical = critical_discount(table[(1, 0)][0], table[(0, 0)][0], table[(1, 1)][0])
    assert critical == 0.5

    def streams_of(make: Any) -> list[float]:
        return [data["payoffs"]["b"] for data in match(Grim, make, rounds=60).data("round")]

    loyal, deviant = streams_of(Grim), streams_of(Defector)

    def value(payoffs: list[float], discount: float) -> float:
        return sum(payoff * discount**n for n, payoff in enumerate(payoffs))

    assert value(loyal, critical) == pytest.approx(value(deviant, critical), abs=1e-12)
    assert value(loyal, 0.51) > value(deviant, 0.51)
    assert value(loyal, 0.49) < value(deviant, 0.49)


def test_regret_matching_converges_in_rock_paper_scissors() -> None:
    """The pure rule in a loop of 20,000 rounds of self-play."""
    table, luck = named("rps").table, Streams(5).generator("rps")
    regrets, sums = [[0.0] * 3, [0.0] * 3], [[0.0] * 3, [0.0] * 3]
    for _ in range(20_000):
        mixed = [matching(own) for own in regrets]
        move = [drawn(own, luck.random()) for own in mixed]
        for me in (0, 1):
            got = table[(move[0], move[1])][me]
            for action in range(3):
                instead = (action, move[1]) if me == 0 else (move[0], action)
                regrets[me][action] += table[instead][me] - got
                sums[me][action] += mixed[me][action]
    for own in sums:
        assert [part / 20_000 for part in own] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_the_regret_matching_agent_keeps_its_average() -> None:
    agents: list[RegretMatching] = []

    def make(member: Member) -> RegretMatching:
        agents.append(RegretMatching(member))
        return agents[-1]

    match(make, make, game="matching_pennies", rounds=600)
    for agent in agents:
        assert isinstance(agent.state, Average)
        assert agent.state.rounds == 600
        assert agent.state.strategy == pytest.approx((0.5, 0.5), abs=0.1)


def test_regret_matching_by_hand() -> None:
    assert matching([0, 0]) == (0.5, 0.5)
    assert matching([-1, 3, 1]) == (0, 0.75, 0.25)
    assert matching([-1, -2]) == (0.5, 0.5)
    assert [drawn((0.2, 0, 0.8), u) for u in (0, 0.19, 0.2, 1 - 2**-53)] == [0, 0, 2, 2]


@pytest.mark.parametrize(("experts", "bound"), [(2, 18.6), (10, 33.9)])
def test_hedge_never_regrets_more_than_its_bound(experts: int, bound: float) -> None:
    """Independent losses, and an adversary who always hits the heaviest expert."""
    horizon = 1000
    assert math.sqrt(horizon * math.log(experts) / 2) == pytest.approx(bound, abs=0.05)

    def regret(seed: int) -> float:
        luck, sums, mine = Streams(seed).generator("hedge"), [0.0] * experts, 0.0
        for _ in range(horizon):
            weights = hedge(sums, horizon)
            worst = weights.index(max(weights))
            losses = [float(n == worst) if seed == 0 else luck.random() for n in range(experts)]
            mine += sum(w * loss for w, loss in zip(weights, losses, strict=True))
            sums = [s + loss for s, loss in zip(sums, losses, strict=True)]
        return mine - min(sums)

    assert regret(0) <= bound
    mean = sum(regret(seed) for seed in range(1, 6)) / 5
    assert 0 < mean <= bound


def test_best_responses() -> None:
    """To defection: defect. In the stag hunt to stags: stag. Fictitious play in matching pennies: half and half."""
    assert match(BestResponse, Cooperator, rounds=3).won == {"a": 15, "b": 0}
    hunt = match(BestResponse, partial(Fixed, action="stag"), game="stag_hunt", rounds=3)
    assert [data["moves"]["a"] for data in hunt.data("round")] == ["stag"] * 3
    measured = match(BestResponse, BestResponse, game="matching_pennies", rounds=400).measured(Matrix.metrics)
    assert measured["matrix.action_frequency action=heads"].value == pytest.approx(0.5, abs=0.05)
    assert "matrix.cooperation_rate" not in measured


def test_pavlov_wins_back_cooperation_after_a_slip() -> None:
    """C, then against one defection: D, D, then both cooperate again."""
    moves = [data["moves"]["a"] for data in match(WinStayLoseShift, Defector, rounds=4).data("round")]
    assert moves == ["cooperate", "defect", "cooperate", "defect"]
    assert match(WinStayLoseShift, WinStayLoseShift, rounds=5).won == {"a": 15, "b": 15}


def test_classics_with_several_opponents() -> None:
    """One defector among three is enough for tit-for-tat."""
    record = match(TitForTat, TitForTat, partial(Fixed, action="keep"), TitForTat, by_count=FOUR_HEADS, rounds=2)
    assert [data["moves"]["a"] for data in record.data("round")] == ["give", "keep"]
    assert record.data("round")[0]["payoffs"] == {"a": 3, "b": 3, "c": 5, "d": 3}


def test_mean_outcomes_do_not_depend_on_names_or_seats() -> None:
    won = match(Defector, TitForTat, rounds=50).won
    assert match(TitForTat, Defector, rounds=50).won == {"a": won["b"], "b": won["a"]}


# --- rounds and time -------------------------------------------------------------------------------------


def test_rounds_go_on_with_the_continuation_probability() -> None:
    cast = [(Seat(agent=f"p{n}"), Cooperator) for n in range(300)]
    record = play(Matrix, cast, {"game": "pd", "continuation": 0.8})
    lengths = [data["rounds"] for data in record.data("match_end")]
    assert len(lengths) == 150
    assert sum(lengths) / 150 == pytest.approx(5, abs=4 * math.sqrt(20 / 150))
    again = play(
        Matrix, [*cast, *((Seat(agent=f"q{n}"), Defector) for n in range(2))], {"game": "pd", "continuation": 0.8}
    )
    assert sorted((d["match"], d["rounds"]) for d in again.data("match_end"))[:150] == sorted(
        (d["match"], d["rounds"]) for d in record.data("match_end")
    )


@given(thinks=st.lists(st.integers(0, 6), min_size=4, max_size=4), seed=st.integers(0, 3))
@settings(max_examples=8, deadline=None)
def test_who_thinks_faster_learns_nothing(thinks: list[int], seed: int) -> None:
    makers = [TitForTat, Random, BestResponse, Grim]
    record = match(*makers, rounds=3, pairing="round_robin", think=dict(zip("abcd", thinks, strict=True)), seed=seed)
    assert len(record.data("match_end")) == 6
    assert all(len(data["moves"]) == 2 and not data["missed"] for data in record.data("round"))
    assert record.ended == dict.fromkeys("abcd", "terminated")
    without_luck = [TitForTat, Defector, BestResponse, Grim]
    slow = match(*without_luck, rounds=3, pairing="round_robin", think=dict(zip("abcd", thinks, strict=True)))
    assert slow.won == match(*without_luck, rounds=3, pairing="round_robin").won


def test_moves_stay_hidden_until_all_have_answered() -> None:
    world = fresh()
    assert do(world, a="defect").facts == []
    assert world.observe(0, "a") is None
    assert "defect" not in json.dumps([seen(world, "b").view["heard"], seen(world, "b").view["recent"]])
    [fact] = [fact for fact in do(world, b="cooperate").facts if fact.kind == "round"]
    assert fact.data["payoffs"] == {"a": 5, "b": 0}
    assert fact.audience == ("a", "b")


def test_round_robin_order() -> None:
    names = ["a", "b", "c", "d", "e"]
    pairs = round_robin(names, 2)
    assert sorted(pairs) == [(x, y) for n, x in enumerate(names) for y in names[n + 1 :]]
    circle = round_robin(names[:4], 2)
    assert all(not set(circle[n]) & set(circle[n + 1]) for n in (0, 2, 4))  # both of a turn can play at once


def test_a_player_past_the_deadline_plays_the_safe_action() -> None:
    """b needs 7 ticks where 5 are given: always late, called off, and counted."""
    record = match(Cooperator, Cooperator, rounds=3, deadline=5, pause=1, think={"a": 1, "b": 7})
    assert [item.tick for item in record.facts("round")] == [5, 11, 17]
    assert all(data["missed"] == ["b"] and data["moves"]["b"] == "defect" for data in record.data("round"))
    assert record.won == {"a": 0, "b": 15}
    measured = record.measured(Matrix.metrics)
    assert measured["matrix.cooperation_rate"].value == 1
    assert measured["matrix.cooperation_rate"].excluded == {"not chosen": 3}
    assert measured["matrix.mutual_action action=cooperate"].value is None
    chosen = match(Cooperator, Cooperator, rounds=1, deadline=5, default=0, think={"a": 1, "b": 7})
    assert chosen.won == {"a": 3, "b": 3}


def test_an_answer_at_the_deadline_counts() -> None:
    record = match(Cooperator, Cooperator, rounds=1, deadline=5, think={"a": 1, "b": 5})
    assert record.won == {"a": 3, "b": 3}


def test_a_late_answer_is_stale_and_never_moves_the_next_round() -> None:
    world = fresh(rounds=2, deadline=5)
    late = acted(world, "b", "cooperate")
    do(world, a="cooperate")
    outcome = world.step(5, [])
    assert {(wake.agent, wake.tick, wake.interrupt) for wake in outcome.wakes} == {("a", 6, False), ("b", 6, True)}
    assert outcome.timers == [11]
    assert world.observe(5, "b") is None
    for now in (5, 6, 8):
        [result] = world.step(now, [late]).results
        assert (result.status, result.reason) == ("stale", "that round is over")
    do(world, 8, b="cooperate")
    [result] = world.step(8, [Action(answer="defect", agent="b", seen=8)]).results
    assert result.reason == "already answered"
    [result] = world.step(8, [Action(answer="rock", agent="a", seen=8)]).results
    assert result.status == "stale"
    [result] = world.step(8, [Action(answer="rock", agent="zoe", seen=8)]).results
    assert result.reason == "no match to play"


def test_an_answer_that_was_not_chosen_counts_as_missed() -> None:
    record = match(partial(Fixed, action="nonsense"), Cooperator, rounds=2)
    assert [data["missed"] for data in record.data("round")] == [["a"], ["a"]]
    assert record.won == {"a": 10, "b": 0}


def test_an_answer_that_an_intervention_forced_is_none_that_was_missed() -> None:
    record = match(Cooperator, Cooperator, rounds=2, interventions=[(0, Act(agent="a", answer="defect"), None)])
    assert [data["missed"] for data in record.data("round")] == [[], []]
    assert [data["moves"]["a"] for data in record.data("round")] == ["defect", "cooperate"]


# --- talk ---------------------------------------------------------------------------------------------------


def test_free_words_are_heard_by_all_before_the_move() -> None:
    world = fresh(talk="explicit", message_chars=30)
    turn = seen(world, "a")
    assert turn.format == Text(max_chars=30)
    assert turn.default == SILENCE
    assert do(world, a="I cooperate.").facts == []
    assert seen(world, "b").view["heard"] == []
    outcome = do(world, b=SILENCE)
    [fact] = outcome.facts
    assert (fact.kind, fact.actor, fact.data["text"]) == ("message", "a", "I cooperate.")
    assert {wake.agent for wake in outcome.wakes} == {"a", "b"}
    move = seen(world, "b")
    assert move.shows == (fact.id,)
    assert move.format == Choice(options=("cooperate", "defect"))
    assert 'The other player says: "I cooperate."' in move.text
    assert 'You say: "I cooperate."' in seen(world, "a").text


def test_a_word_from_a_fixed_set() -> None:
    record = match(
        partial(Speaker, words="red", move="cooperate"), partial(Speaker, words="blue", move="defect"),
        talk="restricted", tokens=["red", "green"], rounds=2,
    )  # fmt: skip
    assert [(item.fact.actor, item.fact.data["text"]) for item in record.facts("message")] == [("a", "red")] * 2
    assert record.won == {"a": 0, "b": 10}
    assert all(data["missed"] == [] for data in record.data("round"))


def test_talk_has_its_own_deadline() -> None:
    record = match(
        partial(Speaker, words="hi", move="cooperate"), partial(Speaker, words="ho", move="cooperate"),
        talk="explicit", deadline=4, think={"a": 1, "b": 6},
    )  # fmt: skip
    assert [(item.fact.actor, item.tick) for item in record.facts("message")] == [("a", 4)]
    assert [item.tick for item in record.facts("round")] == [8]


def test_baselines_stay_silent() -> None:
    record = match(TitForTat, RegretMatching, talk="explicit", rounds=3)
    assert record.data("message") == []
    assert len(record.data("round")) == 3


# --- words --------------------------------------------------------------------------------------------------


def test_words_of_a_repeated_game() -> None:
    world = fresh(rounds=3)
    first = seen(world, "a")
    assert first.text.splitlines() == ["Round 1 of 3.", "Choose: cooperate or defect."]
    assert first.rules.splitlines() == [
        "You play a game with one other player. In each round all choose at the same time.",
        "If you choose cooperate and the other chooses cooperate, you get 3 and they get 3.",
        "If you choose cooperate and the other chooses defect, you get 0 and they get 5.",
        "If you choose defect and the other chooses cooperate, you get 5 and they get 0.",
        "If you choose defect and the other chooses defect, you get 1 and they get 1.",
        "You want as many points as you can get.",
    ]
    do(world, a="cooperate", b="defect")
    second = seen(world, "a", 1)
    assert second.text.splitlines()[1] == (
        "Last round you chose cooperate and the other player chose defect. You got 0, in all 0."
    )
    assert second.rules == first.rules


def test_rules_need_not_be_told() -> None:
    told, untold = seen(fresh(rounds=3), "a"), seen(fresh(rounds=3, rules=False), "a")
    assert (untold.rules, untold.text, untold.key) == ("", told.text, told.key)


def test_words_of_the_column_player() -> None:
    world = fresh(game="battle_of_sexes")
    assert "If you choose football and the other chooses football, you get 3 and they get 2." in seen(world, "b").rules


def test_words_of_a_large_game() -> None:
    world = fresh("a", "b", "c", "d", by_count=FOUR_HEADS, rounds=2, continuation=0.5, talk="explicit")
    rules = seen(world, "a").rules
    assert "how many of the others choose give: you get 1 if 0 do, 2 if 1 do, 3 if 2 do, 4 if 3 do." in rules
    do(world, a="hi", b="ho", c=SILENCE, d=SILENCE)
    assert 'b says: "ho"' in seen(world, "a").text
    do(world, a="give", b="keep", c="keep", d="give")
    text = seen(world, "a", 1).text
    assert text.startswith("Round 2.\nLast round you chose give. Of the others 2 chose keep, 1 chose give. You got 2")


def test_what_is_worth_remembering_comes_once() -> None:
    world = fresh(talk="explicit", rounds=2)
    do(world, a="hi", b="ho")
    do(world, a="defect", b="defect")
    recaps = []
    for words in ({"a": "hm", "b": "ha"}, {}):
        turn = seen(world, "a", 1)
        assert turn.recap is not None
        recaps.append(turn.recap(turn.view))
        if words:
            do(world, 1, **words)
    assert "Last round" in recaps[0]
    assert "Last round" not in recaps[1]
    assert 'The other player says: "ha"' in recaps[1]


def test_an_explicit_game_of_three_in_words() -> None:
    payoffs = {f"{x},{y},{z}": [1, 2, 3] for x in "uv" for y in "uv" for z in "uv"}
    world = fresh("a", "b", "c", actions=[["u", "v"]] * 3, payoffs=payoffs)
    assert "If you choose u and the others choose v, u, you get 3." in seen(world, "c").rules


# --- interventions and state -------------------------------------------------------------------------------------


def test_say_is_shown_once_answered() -> None:
    world = fresh(rounds=2)
    fact = world.change(0, Say(text="Be kind.")).facts[0]
    assert "News: Be kind." in seen(world, "a").text
    assert fact.id in seen(world, "a").shows
    do(world, a="defect", b="defect")
    assert "Be kind" not in seen(world, "a", 1).text
    for to in ("#hall", ("nobody",)):
        with pytest.raises(ValueError, match=r"hall|nobody"):
            world.change(1, Say(text="x", to=to))


def test_set_changes_the_length() -> None:
    longer = match(Cooperator, Cooperator, rounds=2, think={"a": 5, "b": 5},
                   interventions=[(3, Set(key="rounds", value=4), None)])  # fmt: skip
    assert len(longer.data("round")) == 4
    world = fresh()
    for key, value in (("game", "rps"), ("continuation", 1)):
        with pytest.raises(ValueError, match=key):
            world.change(0, Set(key=key, value=value))


def test_a_leaver_ends_a_match_of_two() -> None:
    record = match(
        Cooperator, Cooperator, rounds=9, think={"a": 2, "b": 2}, interventions=[(4, Leave(agent="b"), None)]
    )
    [end] = record.data("match_end")
    assert (end["reason"], end["rounds"]) == ("left", 1)
    assert record.won == {"a": 3, "b": 3}
    assert record.ended == {"a": "terminated"}


def test_a_round_robin_goes_on_without_a_leaver() -> None:
    record = match(
        Cooperator, Cooperator, Cooperator, Cooperator, rounds=3, pairing="round_robin",
        think=dict.fromkeys("abcd", 2), interventions=[(3, Leave(agent="a"), None)],
    )  # fmt: skip
    full = [data for data in record.data("match_end") if data["rounds"] == 3]
    assert sorted(sorted(data["totals"]) for data in full) == [["b", "c"], ["b", "d"], ["c", "d"]]
    assert record.ended == dict.fromkeys("bcd", "terminated")


def test_a_large_game_goes_on_with_an_empty_seat() -> None:
    """The leaver had not moved: the round closes at once, its seat plays the default from then on, unpaid."""
    makers = [partial(Fixed, action="give")] * 4
    record = match(*makers, by_count=FOUR_HEADS, rounds=3, think={"a": 1, "b": 1, "c": 1, "d": 9},
                   interventions=[(4, Leave(agent="d"), None)])  # fmt: skip
    assert [item.tick for item in record.facts("round")] == [4, 6, 8]
    assert all(data["moves"]["d"] == "keep" and data["missed"] == ["d"] for data in record.data("round"))
    assert record.won == {"a": 9, "b": 9, "c": 9}
    world = fresh("a", "b", "c", "d", by_count=FOUR_HEADS)
    for agent in "abc":
        assert world.change(0, Leave(agent=agent)).facts == []
    assert [fact.kind for fact in world.change(0, Leave(agent="d")).facts] == ["match_end"]
    with pytest.raises(ValueError, match="zoe"):
        world.change(0, Leave(agent="zoe"))


def test_joiners_play_when_they_are_enough() -> None:
    def joins(tick: int, name: str) -> Any:
        seat = Seat(agent=name)
        return (tick, Join(seat=seat), player(TitForTat(Member(seat=seat)), seat, 1))

    record = match(
        Cooperator, Cooperator, rounds=5, think={"a": 2, "b": 2}, interventions=[joins(2, "c"), joins(4, "d")]
    )
    assert record.won == dict.fromkeys("abcd", 15)
    with pytest.raises(ValueError, match="round_robin"):
        fresh(pairing="round_robin").change(0, Join(seat=Seat(agent="c")))
    world = fresh()
    with pytest.raises(ValueError, match="before"):
        world.change(0, Join(seat=Seat(agent="a")))


@pytest.mark.parametrize(
    ("agents", "params", "says"),
    [
        ("abc", {}, "3 seats"),
        ("abc", {"pairing": "across"}, "3 seats"),
        ("abcd", {"pairing": "all_in_one"}, "not for 4"),
        ("a", {"pairing": "round_robin"}, "1 seats"),
        ("abcd", {"pairing": "round_robin", "by_count": FOUR_HEADS}, "pairs"),
    ],
)
def test_seats_that_do_not_fit(agents: str, params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fresh(*agents, **params)


def test_a_turn_has_a_key_while_its_view_holds_all_that_was_played() -> None:
    """All joint moves so far, for three rounds; none where players talk."""
    world, keys = fresh(rounds=5), []
    for now in range(5):
        keys.append([seen(world, agent, now).key for agent in "ab"])
        do(world, now, a="defect", b="cooperate")
    assert keys[0] == ["0:", "1:"]
    assert keys[3] == ["0:1,0 1,0 1,0", "1:1,0 1,0 1,0"]
    assert keys[4] == [None, None]
    assert seen(fresh(talk="explicit"), "a").key is None


def test_who_meets_whom() -> None:
    cast = [(Seat(agent=name), Cooperator) for name in "abcd"]
    assert [d["players"] for d in play(Matrix, cast, {"game": "pd"}).data("match")] == [["a", "b"], ["c", "d"]]
    across = play(Matrix, cast, {"game": "pd", "pairing": "across"})
    assert [d["players"] for d in across.data("match")] == [["a", "c"], ["b", "d"]]
    whole = play(
        Matrix,
        [(seat, partial(Fixed, action="give")) for seat, _ in cast],
        {"by_count": FOUR_HEADS, "pairing": "all_in_one"},
    )
    assert whole.won == dict.fromkeys("abcd", 4)


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_legal_play_keeps_the_books(data: st.DataObject) -> None:
    talk = data.draw(st.sampled_from(["none", "restricted", "explicit"]))
    world = fresh(
        "a", "b", "c", "d", rounds=1, pairing="round_robin", talk=talk, deadline=data.draw(st.sampled_from([None, 3]))
    )
    paid = dict.fromkeys("abcd", 0.0)
    shown: dict[str, float] = dict.fromkeys("abcd", 0.0)
    for now in range(200):
        asked = [agent for agent in "abcd" if world.observe(now, agent)]
        chosen = data.draw(st.lists(st.sampled_from(asked), unique=True)) if asked else []
        actions = []
        for agent in sorted(chosen):
            turn = seen(world, agent, now)
            assert illegal(turn.format, turn.default) is None
            options = turn.format.options if isinstance(turn.format, Choice) else ("hello", SILENCE)
            actions.append(acted(world, agent, data.draw(st.sampled_from(options)), now))
        twin = copy.deepcopy(world) if actions else None
        outcome = world.step(now, actions)
        if twin:
            assert twin.step(now, actions) == outcome
            assert twin.state() == world.state() == json.loads(json.dumps(world.state()))
        for agent, payoff in outcome.rewards.items():
            paid[agent] += payoff
        for fact in outcome.facts:
            if fact.kind == "match_end":
                for agent, total in fact.data["totals"].items():
                    shown[agent] += total
        if not any(world.state()["agenda"].values()):
            assert paid == shown
            break


def test_measures_need_nothing_but_the_record() -> None:
    measured = match(Random, Random, game="rps", rounds=30).measured(Matrix.metrics)
    shares = [measured[f"matrix.action_frequency action={label}"].value for label in ("rock", "paper", "scissors")]
    assert sum(share or 0 for share in shares) == pytest.approx(1)
    assert measured["matrix.mean_payoff"].value == 0
    assert build("rps", (), {}, {}).players == 2


# --- conformance and scenarios ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"game": "pd", "rounds": 3},
        {"game": "rps", "talk": "explicit", "deadline": 5, "rounds": 2},
        {"game": "battle_of_sexes", "talk": "restricted", "pairing": "round_robin"},
        {"by_count": FOUR_HEADS, "continuation": 0.5, "pause": 0},
    ],
)
def test_the_world_keeps_the_rules_of_the_seams(params: dict[str, Any]) -> None:
    check_world(Matrix, ["a", "b", "c", "d"], params, RegretMatching)


@pytest.mark.parametrize("kind", [*EIGHT.values(), BestResponse, RegretMatching])
def test_the_baselines_keep_the_rules_of_the_seams(kind: Any) -> None:
    turns = turns_of(Matrix, ["a", "b"], {"game": "pd", "rounds": 5, "talk": "explicit"})
    check_agent(lambda: kind(Member(seat=Seat(agent="a"))), [turn for mine in turns.values() for turn in mine])


@pytest.mark.parametrize("kind", [Chatter, Colluder])
def test_the_talkers_keep_the_rules_of_the_seams(kind: Any) -> None:
    turns = turns_of(Matrix, ["a", "b"], {"game": "battle_of_sexes", "rounds": 3, "talk": "explicit"})
    seat = Seat(agent="a", private={"kind": 1})
    check_agent(lambda: kind(Member(seat=seat)), [turn for mine in turns.values() for turn in mine])


def test_colluders_meet_where_the_first_ones_ending_says() -> None:
    seats = [Seat(agent=name, private={"kind": kind}) for name, kind in (("a", 1), ("b", 0))]
    record = play(
        Matrix, [(seat, Colluder) for seat in seats], {"game": "battle_of_sexes", "rounds": 3, "talk": "explicit"}
    )
    assert [list(data["moves"].values()) for data in record.data("round")] == [["football", "football"]] * 3
    endings = [[data["text"][-1] for data in record.data("message")][n::2] for n in (0, 1)]
    assert endings == [["!"] * 3, ["."] * 3]


def test_the_shipped_round_robin(tmp_path: Path) -> None:
    scenario = load(SCENARIOS / "pd_round_robin.yaml", ["world.rounds=20"])
    with Run(go(create(scenario, tmp_path)).path) as run:
        ends = [item.fact.data for item in run.facts("match_end")]
        assert len(ends) == 28
        totals = {frozenset(data["totals"]): data["totals"] for data in ends}
        assert totals[frozenset(("tit-for-tat", "always-defect"))] == {"tit-for-tat": 19, "always-defect": 24}


def test_the_shipped_model_scenario_fits_the_world() -> None:
    scenario = load(SCENARIOS / "stag_hunt_llm.yaml")
    assert sum(entry.count for entry in scenario.cast) == 8
