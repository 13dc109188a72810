"""Agents that set themselves subgoals: their words are rows of their decisions, credited by what they are."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest
import torch

from sim.record.reader import Run
from sim.scenarios.scenario import load as load_scenario
from sim.verify import verify
from sim.voices import LateEngine
from tests.training.speaking import Speaking
from tests.training.test_joined import same, updated
from training import checkpoint
from training.constraint import Distribution
from training.credit import credit
from training.estimate import estimate
from training.extras import Extras, Values
from training.loss import Scores, loss
from training.matchup import Matchup
from training.plan import SAID, Plan, TrainingError, check_said
from training.recipe import load
from training.reward import rewards
from training.rollout import Stage, play, with_setting
from training.rows import ratio_units, samples, token_shares
from training.streams import streams
from training.trajectory import Kind, Row, Span

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


# --- HiPER ----------------------------------------------------------------------------------------------------


def hierarchy() -> tuple[list[Row], Extras]:
    """A subgoal, kept once and then switched; rewards 1, 2 and −4. Values are 99 where no level is to read them."""

    def row(turn: int, reward: float, kind: Kind, *ids: int) -> Row:
        spans, ended = (Span(kind=kind, start=0, stop=len(ids)),), "terminated" if turn == 2 else ""
        return Row(episode="run:0", turn=turn, reward=reward, prompt=(8,), ids=ids, spans=spans, ended=ended)  # type: ignore[arg-type]

    rows = [
        *(row(0, 1, "subgoal", 1, 2), row(0, 1, "action", 3)),
        *(row(1, 2, "switch", 4), row(1, 2, "action", 5, 6)),
        *(row(2, -4, "switch", 7), row(2, -4, "subgoal", 1), row(2, -4, "action", 3)),
    ]
    values = {
        "low": ((99, 99), (1,), (99,), (2, 99), (99,), (99,), (1,)),
        "high": ((3, 99), (99,), (99,), (99, 99), (99,), (2,), (99,)),
        "termination": ((99, 99), (99,), (1,), (99, 99), (1,), (99,), (99,)),
    }
    return rows, Extras(values={head: Values(rows=each) for head, each in values.items()})


HIPER = (  # to keep it costs .3, so rewards are 1, 1.7, −4
    (-3.72425, -3.72425),  # 1 + .95·1.7 + .9025·2 − 3 + .9025·.95·(−6)
    (3.344,),  # 1 + .95·2 − 1 + .9025·1.6
    (2.6,),  # 1.7 + .95·2 − 1
    (1.6, 1.6),  # 1.7 + .95·2 − 2
    (-5,),  # −4 − 1
    (-6,),  # −4 − 2
    (-5,),  # −4 − 1
)


def test_each_level_is_above_what_was_known_before_its_own_words() -> None:
    rows, extras = hierarchy()
    found = estimate(load("hiper"), rows, extras)
    assert [list(each) for each in found.advantages] == [pytest.approx(each) for each in HIPER]
    targets = {head: [each and each[0] for each in aims] for head, aims in found.targets.items()}
    assert targets["low"] == [(), pytest.approx(4.344), (), pytest.approx(3.6), (), (), -4]
    assert targets["high"] == [pytest.approx(-0.72425), (), (), (), (), -4, ()]
    assert targets["termination"] == [(), (), pytest.approx(3.6), (), -4, (), ()]


def test_the_loss_of_the_three_levels_by_hand() -> None:
    """PPO's clip at .2, old log-probabilities and current ones apart: −min(ρA, clip(ρ)A), all nine tokens alike."""
    rows, extras = hierarchy()
    recipe = load("hiper")
    found = estimate(recipe, rows, extras)
    shares = token_shares(rows, recipe.aggregation, found.mask)
    made = samples(rows, found.advantages, shares, lambda _: Distribution(None, 1.0))
    old_n = torch.full((9,), log(0.5))
    rho_n = torch.tensor([1.5, 0.5, 1.5, 0.9, 1.1, 1.3, 0.5, 1.5, 1.0])
    scores = Scores(logprobs_n=old_n + rho_n.log(), old_n=old_n)
    clipped = [
        *(-1.5 * 3.72425, -0.8 * 3.72425, 1.2 * 3.344, 0.9 * 2.6, 1.1 * 1.6, 1.2 * 1.6),
        *(-0.8 * 5, -1.5 * 6, -1.0 * 5),
    ]
    total = loss(streams(made), scores, ratio=recipe.ratio, trust=recipe.trust).total
    assert total.item() == pytest.approx(-sum(clipped) / 9)


@pytest.fixture(scope="module")
def engines(model: Path) -> Iterator[dict[str, LateEngine]]:
    """One engine for both trainings here."""
    from agents.engines.torch import TorchEngine

    late = LateEngine("shared", lambda: TorchEngine(str(model), max_model_len=1024, threads=1))
    yield dict.fromkeys(SEATS, late)
    late.close()


def planned(model: Path) -> Plan:
    small = ("policy.kind=full", "rollout.episodes=2", "optimiser.lr=1e-3", "optimiser.critic_lr=1e-2", "threads=1")
    sets = [key for seat in SEATS for key in (f"models.{seat}.model={model}", f"cast.{seat}.with.subgoals=4")]
    return Plan(recipe=load("hiper", small), scenario=PD, sets=tuple(sets), seed=3)


def test_a_training_of_three_levels_that_was_stopped_goes_on_as_if_it_had_not_been(
    model: Path, engines: dict[str, LateEngine], tmp_path: Path
) -> None:
    plan = planned(model)
    first = updated(tmp_path / "broken" / "pd", plan, engines, 1)
    assert first["gradient_norm"] > 0
    assert first["value"] > 0
    assert {f"explained {head}" for head in ("low", "high", "termination")} < first.keys()
    updated(tmp_path / "broken" / "pd", plan, engines, 2)
    updated(tmp_path / "whole" / "pd", plan, engines, 2)
    broken, whole = (checkpoint.read(tmp_path / name / "pd") for name in ("broken", "whole"))
    assert whole is not None
    assert broken is not None
    assert whole[1]["critics"]["pd"]["heads"]
    assert same(whole[1], broken[1])
    assert whole[2] == broken[2]
