"""Episodes told again: what is seen is what was, and other answers earn what the rules say."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import pytest
from msgspec.structs import replace

from sim.log import dumps
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import Member, Seat
from tests.training.tiny import mask
from training.extras import Extras
from training.hindsight import counterfactual, demonstrations, states
from training.labels import demonstrated
from training.retold import Otherwise, Past
from training.reward import Regret, rewards
from training.trajectory import Row, rows
from worlds.games.openspiel_strategies import KuhnNash
from worlds.games.payoffs import named
from worlds.games.strategies import Grim

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MUTE = ("engine=synthetic", "model=''", "policy=''")
"""Somebody who says what is legal, without a model."""


def played(
    folder: Path, name: str, *sets: str, seats: Sequence[str] = ("first", "second"), tables: int = 6
) -> list[Row]:
    """The rows of a run in a folder."""
    mute = [f"models.{seat}.{each}" for seat in seats for each in MUTE]
    scenario = load(SCENARIOS / name, [*mute, *sets, f"tables={tables}", "record.states=true"])
    path = create(scenario, folder, "run")
    assert go(path).status == "finished"
    return rows(path)


@pytest.mark.parametrize(
    ("name", "seats"),
    [
        ("games/kuhn_train.yaml", ("first", "second")),
        ("games/pd_train.yaml", ("first", "second")),
        ("privacy/disclosure_train.yaml", ("holder", "recipient")),
    ],
)
def test_every_decision_is_seen_in_the_state_that_was_recorded(
    tmp_path: Path, name: str, seats: tuple[str, str]
) -> None:
    past = Past(tmp_path)
    found = played(tmp_path, name, seats=seats)
    assert len({row.episode for row in found}) == 6
    earned = {name: past[name].told().earned for name in {row.episode for row in found}}
    for row in found:
        moment = past[row.episode].told().moments[row.seat, row.turn]
        assert blake2b(dumps(moment.state).encode(), digest_size=16).hexdigest() == row.state
        assert moment.turn.key == row.key
        assert moment.member.seat.agent == row.seat
        mine = [one.reward for one in found if (one.episode, one.seat) == (row.episode, row.seat)]
        assert earned[row.episode].get(row.seat, 0.0) == pytest.approx(sum(mine))


# --- other courses --------------------------------------------------------------------------------------------


def test_other_answers_earn_what_the_table_says_and_regret_is_external(tmp_path: Path) -> None:
    """In three rounds of the dilemma the other's moves stay what they were, whatever it saw of mine."""
    found, past = played(tmp_path, "games/pd_train.yaml"), Past(tmp_path)
    game = named("pd")
    said = {(row.episode, row.turn, row.seat): game.actions[0].index(str(row.answer)) for row in found}
    instead = counterfactual(found, past)
    for row, each in zip(found, instead, strict=True):
        me = ("first", "second").index(row.seat)
        other = said[row.episode, row.turn, ("second", "first")[me]]
        for option, earned in zip(row.options, each, strict=True):
            mine = game.actions[0].index(option)
            joint = (mine, other) if me == 0 else (other, mine)
            assert earned == pytest.approx(game.table[joint][me])
    paid = rewards([Regret(kind="regret")], found, Extras(counterfactual=instead)).total()
    for episode in {row.episode for row in found}:
        for seat in ("first", "second"):
            own = [n for n, row in enumerate(found) if (row.episode, row.seat) == (episode, seat)]
            best = max(sum(instead[n][option] for n in own) for option in (0, 1))
            assert sum(paid[n] for n in own) == pytest.approx(sum(found[n].reward for n in own) - best)
    assert min(paid) < 0, "somebody cooperated, and always to defect would have earned more"


def test_what_is_said_before_an_answer_is_no_answer(tmp_path: Path) -> None:
    """Neither other courses nor scripts take whether a subgoal is kept for a move of the game."""
    found = played(tmp_path, "games/pd_train.yaml", "cast.first.with.subgoals=8", "cast.second.with.think=6")
    past, answers = Past(tmp_path), {n for n, row in enumerate(found) if row.has("action")}
    assert {kind.options for kind in found if kind.has("switch")} == {("keep", "switch")}
    assert len(answers) == 6 * 2 * 3 < len(found)
    assert {n for n, each in enumerate(counterfactual(found, past)) if each} == answers
    assert demonstrations([replace(row, trained=True) for row in found], past, Grim, Streams(0)).keys() == answers


def test_bids_that_nobody_sees_are_compared(tmp_path: Path) -> None:
    """Of a good that is worth v, bids are from 0 to v − 1; the higher one wins and pays what it bid."""
    found, past = played(tmp_path, "games/auction_train.yaml"), Past(tmp_path)
    bid = {(row.episode, row.seat): int(str(row.answer).split()[-1]) for row in found}
    for row, each in zip(found, counterfactual(found, past), strict=True):
        other = bid[row.episode, "second" if row.seat == "first" else "first"]
        for mine, earned in enumerate(each):
            if mine != other:  # luck decides between equal bids
                assert earned == (len(each) - mine if mine > other else 0)


def test_where_the_game_goes_on_otherwise_nothing_is_to_be_regretted(tmp_path: Path) -> None:
    found, past = played(tmp_path, "games/kuhn_train.yaml"), Past(tmp_path)
    with pytest.raises(Otherwise, match=r"table \d: had (first|second) answered '(pass|bet)' in turn \d, the others"):
        counterfactual(found, past)


# --- whole states ---------------------------------------------------------------------------------------------


def test_states_hold_what_is_hidden_and_what_comes_after(tmp_path: Path) -> None:
    """After what a seat was asked stands all that it was not told, and what follows its last decision is the end."""
    found, past = played(tmp_path, "games/kuhn_train.yaml"), Past(tmp_path)
    found = [replace(row, trained=row.seat == "first", prompt=(9, row.turn)) for row in found]
    told = states(found, past, lambda text: [ord(char) for char in text], 4096)
    for index, row in enumerate(found):
        if row.seat == "second":
            assert told.before[index] == told.after[index] == ()
            continue
        seen = dumps(past[row.episode].told().moments["first", row.turn].state)
        assert told.before[index] == (9, row.turn, *map(ord, seen))
        later = [n for n, one in enumerate(found) if (one.episode, one.seat, one.turn) == (*row_of(row), row.turn + 1)]
        end = (9, row.turn, *map(ord, dumps(past[row.episode].told().last)))
        assert told.after[index] == (told.before[later[0]] if later else end)
    with pytest.raises(ValueError, match=r"the world's state takes \d+ tokens, the model reads 8"):
        states(found, past, lambda text: [ord(char) for char in text], 8)


def row_of(row: Row) -> tuple[str, str]:
    return row.episode, row.seat


# --- scripted teachers ----------------------------------------------------------------------------------------


def test_a_script_says_at_every_state_what_it_would_have_done(tmp_path: Path) -> None:
    """What an equilibrium may say at what the learner met, and nobody else's seat is asked about."""
    found, past = played(tmp_path, "games/kuhn_train.yaml"), Past(tmp_path)
    found = [replace(row, trained=row.seat == "first") for row in found]
    said = demonstrations(found, past, KuhnNash, Streams(0))
    nash = KuhnNash(Member(seat=Seat(agent="first")))
    assert said.keys() == {n for n, row in enumerate(found) if row.seat == "first"}
    for index, answer in said.items():
        row = found[index]
        policy = nash.policy(past[row.episode].told().moments[row.seat, row.turn].turn)
        assert policy[str(answer)] > 0
    assert said == demonstrations(found, past, KuhnNash, Streams(0)), "the same luck says the same"


def test_a_grim_script_is_grim_about_what_the_learner_met(tmp_path: Path) -> None:
    found, past = played(tmp_path, "games/pd_train.yaml"), Past(tmp_path)
    found = [replace(row, trained=True) for row in found]
    said = demonstrations(found, past, Grim, Streams(0))
    for index, row in enumerate(found):
        before = [one for one in found if one.episode == row.episode and one.turn < row.turn and one.seat != row.seat]
        grim = any(one.answer == "defect" for one in before)
        assert said[index] == ("defect" if grim else "cooperate")


def test_a_script_s_answer_is_the_label() -> None:
    one = Row(episode="run:0", seat="a", policy="duel@2", prompt=(5, 6), ids=(10, 11, 1), options=("ab", "ac", "d"))
    rows_ = [one, replace(one, seat="b"), replace(one, policy="other@1"), replace(one, options=())]
    found = demonstrated(rows_, (0, 2, 3), "duel", {0: "ac", 1: "ab", 2: "d", 3: "d"}, mask)
    (sample,) = found[0]
    assert list(found) == [0]
    assert sample.ids == mask(one.options).sequences[1]
    assert sample.label == (1.0,) * len(sample.ids)
    assert sample.count == 1
    with pytest.raises(ValueError, match="the teacher said 'x', no option"):
        demonstrated(rows_, (0,), "duel", {0: "x"}, mask)


def test_who_asks_a_model_is_no_script(tmp_path: Path) -> None:
    from agents.llm import LLMAgent

    found, past = played(tmp_path, "games/pd_train.yaml", tables=1), Past(tmp_path)
    with pytest.raises(ValueError, match="LLMAgent asks a model, so it is no scripted teacher"):
        demonstrations([replace(found[0], trained=True)], past, LLMAgent, Streams(0))
