"""Agents that set themselves subgoals: their words are rows of their decisions, credited by what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from sim.scenarios.scenario import load as load_scenario
from sim.verify import verify
from tests.training.speaking import Speaking
from training.credit import credit
from training.matchup import Matchup
from training.plan import SAID, TrainingError, check_said
from training.recipe import load
from training.reward import rewards
from training.rollout import Stage, play, with_setting
from training.rows import ratio_units
from training.trajectory import Row

PD = Path(__file__).parents[2] / "scenarios" / "games" / "pd_train.yaml"
SEATS = ("first", "second")
AIMING = tuple(f"cast.{seat}.with.{setting}" for seat in SEATS for setting in ("subgoals=8", "think=6"))


def spoken(folder: Path, recipe: str = "reinforce") -> list[Row]:
    """The rows of four matches of three rounds, in which both seats have subgoals and think."""
    label = folder / "policies" / "pd@1"
    label.mkdir(parents=True)
    (label / "model.safetensors").write_bytes(b"no weights")
    speakers = dict.fromkeys(SEATS, "pd@1")
    stage = Stage(
        file=PD,
        sets=AIMING,
        recipe=load(recipe),
        matchup=Matchup(speakers=speakers, players=speakers, learners=frozenset(SEATS), tables=4),
        seed=3,
        folder=folder,
        run="run",
        policies=folder / "policies",
        engines=dict.fromkeys(SEATS, Speaking()),
    )
    return play(stage, 4)


def kinds(rows: list[Row]) -> dict[tuple[str, str, int], list[str]]:
    """What each decision's rows are, in their order."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for row in rows:
        (span,) = row.spans
        assert (span.start, span.stop) == (0, len(row.ids))
        found.setdefault((row.episode, row.seat, row.turn), []).append(span.kind)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("played")


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[Row]:
    return spoken(folder)


def test_every_call_of_a_decision_is_a_row_of_what_it_is(rows: list[Row], folder: Path) -> None:
    assert verify(folder / "run.db").whole
    with Run(folder / "run.db") as run:
        said = sorted((call.purpose.replace("act", "action"), call.completion.ids) for call in run.calls())
    assert sorted((row.spans[0].kind, row.ids) for row in rows) == said
    whole = kinds(rows)
    assert len(whole) == 4 * 2 * 3
    for (_, _, turn), each in whole.items():
        if turn == 0:
            assert each == ["subgoal", "think", "action"], "the first turn has none to keep"
        else:
            assert each in (["switch", "think", "action"], ["switch", "subgoal", "think", "action"])
    words = {row.answer: len(whole[row.episode, row.seat, row.turn]) for row in rows if row.has("switch")}
    assert words == {"keep": 3, "switch": 4}
    assert all(row.options == ("keep", "switch") and row.bounds is None for row in rows if row.has("switch"))
    assert all(row.bounds and not row.options for row in rows if row.has("subgoal", "think"))
    assert all(row.trained and row.how == "chosen" for row in rows)


def test_each_kind_has_the_credit_of_its_own_term(rows: list[Row]) -> None:
    weights = {"switch": 1, "subgoal": 10, "action": 100}
    terms = [
        f"{{weight: {weight}, returns: {{kind: rtg}}, baseline: {{kind: zero}}, span: {{kind: tag, tags: [{tag}]}}}}"
        for tag, weight in weights.items()
    ]
    recipe = load("reinforce", ["reward=[{kind: step}]", f"credit=[{', '.join(terms)}]"])
    found = credit(rows, rewards(recipe.reward, rows), recipe.credit)
    paid = {(row.episode, row.seat, row.turn): row.reward for row in rows}
    for row, tokens, mask in zip(rows, found.tokens, found.mask, strict=True):
        (span,) = row.spans
        later = sum(paid[row.episode, row.seat, turn] for turn in range(row.turn, 3))
        assert set(tokens) == {weights.get(span.kind, 0) * later}
        assert set(mask) == {span.kind != "think"}


def test_a_segment_is_the_decisions_from_one_subgoal_to_the_next(rows: list[Row]) -> None:
    named = dict(zip(((r.episode, r.seat, r.turn) for r in rows), ratio_units(rows, "segment"), strict=True))
    for (episode, seat, turn), each in kinds(rows).items():
        if turn:
            same = named[episode, seat, turn] == named[episode, seat, turn - 1]
            assert same == ("subgoal" not in each)


@pytest.mark.parametrize(
    ("tag", "setting", "wanted"), [("think", "subgoals", "think"), ("switch", "think", "subgoals")]
)
def test_what_is_credited_by_name_has_to_be_there(tag: str, setting: str, wanted: str) -> None:
    recipe = load("reinforce", [f"credit.0.span={{kind: tag, tags: [{tag}, action]}}"])
    scenario = load_scenario(PD, [f"cast.first.with.{setting}=8"])
    saying = {one: with_setting(scenario, SEATS, one) for one in SAID.values()}
    assert saying[setting] == ["first"]
    line = rf"credit\.span: no learner says what is tagged {tag}; set cast\.NAME\.with\.{wanted} to some tokens"
    with pytest.raises(TrainingError, match=line):
        check_said(recipe, saying)
    check_said(recipe, {**saying, wanted: ["first"]})
