"""What an update asks of its own episodes: judges, truths, regrets, whole states and scripts, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch

from sim.types import Request
from training.loop import Trainer
from training.plan import Plan, TrainingError
from training.policy import tiny_model
from training.recipe import load
from training.reward import rewards
from training.trajectory import Row
from training.trajectory import rows as rows_of

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SMALL = ("policy.kind=full", "optimiser.lr=1e-2", "threads=1")
JUDGE = "reward=[{kind: judge, rubric: Was it bold?, scores: {timid: -1, bold: 2}}]"


def bold(request: Request) -> str | None:
    """A judge's verdict."""
    said = request.messages[-1].text
    return "bold" if "The agent answered:\nbet" in said else "timid"


def mute(_request: Request) -> str | None:
    """A judge who does not judge."""
    return "Who am I to judge?"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def plan(model: Path, scenario: str, recipe: str, *changes: str, sets: Sequence[str] = ()) -> Plan:
    seats = ("holder", "recipient") if "disclosure" in scenario else ("first", "second")
    own = [f"models.{seat}.model={model}" for seat in seats]
    return Plan(recipe=load(recipe, [*SMALL, *changes]), scenario=SCENARIOS / scenario, sets=(*own, *sets), seed=3)


def judged_by(rule: str) -> tuple[str]:
    return (f"models.judge={{engine: synthetic, rule: 'tests.training.test_witness:{rule}', temperature: 0}}",)


def seen(trainer: Trainer) -> tuple[list[Row], Any]:
    """An update's rows and what stands beside them."""
    rows, _ = trainer._played()
    return rows, trainer._extras(rows)


def share(folder: Path, update: int, answer: str) -> float:
    """Of all answers in an update's games."""
    said = [row.answer for row in rows_of(folder / "rollouts" / f"update-{update:06d}-0.db")]
    return said.count(answer) / len(said)


# --- judges ---------------------------------------------------------------------------------------------------


def test_a_policy_learns_what_a_judge_likes_and_every_verdict_is_kept(model: Path, tmp_path: Path) -> None:
    what = plan(
        model,
        "games/kuhn_train.yaml",
        "grpo",
        JUDGE,
        "structure.size=12",
        "rollout.episodes=24",
        sets=judged_by("bold"),
    )
    with Trainer(tmp_path / "kuhn", what) as trainer:
        trainer.run(updates=4)
    shares = []
    for update in (1, 4):
        text = (tmp_path / "kuhn" / "judgements" / f"update-{update:06d}.jsonl").read_bytes()
        lines = [orjson.loads(line) for line in text.splitlines()]
        shares.append(sum(line["verdict"] == "bold" for line in lines) / len(lines))
        for line in lines:
            assert line["score"] == {"bold": 2, "timid": -1}[line["verdict"]]
            assert [role for role, _ in line["messages"]] == ["system", "user"]
            assert line["messages"][1][1].endswith("Your verdict, one of: timid, bold")
        assert len({(line["episode"], line["seat"], line["turn"]) for line in lines}) == len(lines) >= 48
    assert shares[1] > shares[0] + 0.2


def test_a_judge_reads_one_answer_or_all_of_an_episode(model: Path, tmp_path: Path) -> None:
    whole = plan(
        model, "games/kuhn_train.yaml", "reinforce", JUDGE[:-2] + ", about: episode}]", "rollout.episodes=8",
        sets=judged_by("bold"),
    )  # fmt: skip
    with Trainer(tmp_path / "kuhn", whole) as trainer:
        rows, extras = seen(trainer)
    for row, score in zip(rows, extras.judge, strict=True):
        mine = [one for one in rows if (one.episode, one.seat) == (row.episode, row.seat)]
        wanted = 2 if any(one.answer == "bet" for one in mine) else -1
        assert score == (wanted if row is mine[-1] else 0)


def test_a_judge_is_told_where_it_is_missing_learns_itself_or_says_nothing(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"models\.judge: reinforce needs this judge, which is not there; "):
        Trainer(tmp_path / "kuhn", plan(model, "games/kuhn_train.yaml", "reinforce", JUDGE))
    itself = plan(model, "games/kuhn_train.yaml", "reinforce", JUDGE, "reward.0.model=first")
    with pytest.raises(TrainingError, match=r"models\.first: it learns itself, so it is no judge"):
        Trainer(tmp_path / "kuhn", itself)
    assert not (tmp_path / "kuhn").exists(), "nothing is written where nothing can be trained"
    silent = plan(model, "games/kuhn_train.yaml", "reinforce", JUDGE, "rollout.episodes=2", sets=judged_by("mute"))
    with (
        Trainer(tmp_path / "kuhn", silent) as trainer,
        pytest.raises(TrainingError, match="no verdict in 3 attempts"),
    ):
        trainer.update()


# --- truths ---------------------------------------------------------------------------------------------------


def test_information_is_gained_where_the_truth_becomes_likelier(model: Path, tmp_path: Path) -> None:
    """Against the model's own forward; what is known after a row is what is known before the next one."""
    what = plan(model, "privacy/disclosure_train.yaml", "igpo", "structure.size=4", "rollout.episodes=8")
    with Trainer(tmp_path / "duel", what) as trainer:
        rows, extras = seen(trainer)
        values = {"city": "Ghent", "phone": "5550123", "diagnosis": "asthma"}
        tokenizer = trainer._base.tokenizer
        lead = tokenizer.encode("The value is ", add_special_tokens=False)
        for index, row in enumerate(rows):
            if row.role == "holder":
                assert extras.truth_before[index] == 0, "it has nothing to find out"
                continue
            asked = next(value for name, value in values.items() if name in wanted(trainer, row))
            ids = tokenizer.encode(f"The value is {asked}", add_special_tokens=False)
            same = next(n for n in range(len(ids)) if ids[: n + 1] != lead[: n + 1])
            with trainer._base.policies["attacker"].active() as llama, torch.no_grad():
                said = llama(input_ids=torch.tensor([[*row.prompt, *ids]])).logits[0].log_softmax(-1)
            start = len(row.prompt) - 1
            terms = [said[start + n, ids[n]].item() for n in range(same, len(ids))]
            assert extras.truth_before[index] == pytest.approx(sum(terms) / len(terms), abs=1e-3)
            later = [n for n, one in enumerate(rows) if one.turn == row.turn + 1 and same_seat(one, row)]
            then = extras.truth_before[later[0]] if later else extras.truth_before[index]
            assert extras.truth_after[index] == then
        found = rewards(what.recipe.reward, rows, extras).streams["info_gain"]
        assert any(gain > 0 for gain in found)
        assert all(gain == 0 for gain, row in zip(found, rows, strict=True) if row.ended or row.role == "holder")


def wanted(trainer: Trainer, row: Row) -> str:
    """What the recipient of a row wants, as its prompt names it."""
    from training.retold import Past

    told = Past(trainer.folder / "rollouts")[row.episode].told()
    return str(told.moments[row.seat, row.turn].state["pairs"][0]["who"]["wants"][:1])


def same_seat(one: Row, other: Row) -> bool:
    return (one.episode, one.seat) == (other.episode, other.seat)


def test_a_truth_that_nothing_names_is_told(model: Path, tmp_path: Path) -> None:
    what = plan(model, "privacy/disclosure_train.yaml", "igpo", "reward.0.truth=worlds.privacy.conversation:want")
    with pytest.raises(TrainingError, match=r"igpo: reward info_gain: truth: .* has no 'want'; did you mean wanted"):
        Trainer(tmp_path / "duel", what)


# --- regret ---------------------------------------------------------------------------------------------------


def test_the_least_regretted_games_are_imitated(model: Path, tmp_path: Path) -> None:
    """To defect is never regretted in the dilemma, so its share grows."""
    what = plan(model, "games/pd_train.yaml", "rmft", "structure.size=8", "rollout.episodes=16", "filter.0.k=2")
    with Trainer(tmp_path / "pd", what) as trainer:
        trainer.run(updates=4)
    first, last = (share(tmp_path / "pd", update, "defect") for update in (1, 4))
    assert last > first + 0.1


def test_regret_that_is_not_defined_is_told(model: Path, tmp_path: Path) -> None:
    what = plan(model, "games/kuhn_train.yaml", "rmft", "rollout.episodes=8")
    with Trainer(tmp_path / "kuhn", what) as trainer, pytest.raises(TrainingError, match="rmft: table 0: had"):
        trainer.update()


# --- whole states -----------------------------------------------------------------------------------------------


def test_a_critic_that_sees_both_hands_explains_more(tmp_path: Path, one_thread: None) -> None:
    """Of one and the same games, with a policy that stands still."""
    extra = "extra=[{kind: value}, {kind: value, heads: [whole], sees: state}]"
    terms = [f"{{returns: {{kind: gae, head: {head}}}, baseline: {{kind: critic}}}}" for head in ("value", "whole")]
    changes = ("optimiser.lr=0", "optimiser.critic_lr=3e-2", "optimiser.epochs=10", "rollout.episodes=48")
    model = tiny_model(tmp_path / "tiny", seed=1, width=16, layers=1)
    what = plan(model, "games/kuhn_train.yaml", "turn_ppo", extra, f"credit=[{', '.join(terms)}]", *changes)
    with Trainer(tmp_path / "kuhn", what) as trainer:
        found = [trainer.update() for _ in range(3)]
    assert found[0]["explained whole"] == pytest.approx(found[0]["explained value"], abs=0.05), (
        "they begin with nothing"
    )
    print(found[2]["explained whole"], found[2]["explained value"])
    assert found[2]["explained whole"] > found[2]["explained value"] + 0.1


# --- scripts ----------------------------------------------------------------------------------------------------


def test_a_learner_comes_to_answer_as_a_script_does(model: Path, tmp_path: Path) -> None:
    script = "extra=[{kind: ce, labels: teacher, teacher: 'worlds.games.openspiel_strategies:AlwaysBet'}]"
    what = plan(
        model, "games/kuhn_train.yaml", "sft", "structure={kind: independent}", "filter=[]", script,
        "rollout.episodes=16", "optimiser.epochs=2",
    )  # fmt: skip
    with Trainer(tmp_path / "kuhn", what) as trainer:
        trainer.run(updates=5)
    assert share(tmp_path / "kuhn", 1, "bet") < 0.7
    assert share(tmp_path / "kuhn", 5, "bet") > 0.9


@pytest.mark.parametrize(
    ("teacher", "settings", "why"),
    [
        ("worlds.games.openspiel_strategies:AlwaysBat", "{}", "has no 'AlwaysBat'; did you mean AlwaysBet"),
        ("worlds.games.openspiel_strategies:KuhnNash", "{beta: 1}", "KuhnNash does not take its settings"),
    ],
)
def test_a_script_that_does_not_fit_is_told(model: Path, tmp_path: Path, teacher: str, settings: str, why: str) -> None:
    script = f"extra=[{{kind: ce, labels: teacher, teacher: '{teacher}', settings: {settings}}}]"
    changes = ("structure={kind: independent}", "filter=[]", script, "rollout.episodes=2")
    what = plan(model, "games/kuhn_train.yaml", "sft", *changes)
    with pytest.raises(TrainingError, match=why), Trainer(tmp_path / "kuhn", what) as trainer:
        trainer.update()
