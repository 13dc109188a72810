"""The learner as its own teacher: what is shown, what that changes, and what is learnt from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from torch import Tensor

from agents.engines.encoding import Encoder
from sim.scenarios.located import ScenarioError
from sim.types import EngineFailure, Message, Tokens
from sim.voices import LateEngine
from tests.training.test_labels import choice
from tests.training.tiny import MASK, mask, row, slowly
from training.estimate import estimate
from training.learner import Learner
from training.loop import Trainer
from training.plan import Plan, TrainingError, check
from training.policy import Base, Policy
from training.recipe import load
from training.rows import Sample
from training.showing import Shown, example, exemplary, shown
from training.trajectory import Row

KUHN = Path(__file__).parents[2] / "scenarios" / "games" / "kuhn_train.yaml"
SCRIPT = "extra.0.script=worlds.games.openspiel_strategies:AlwaysBet"


@pytest.fixture(scope="module")
def base(model: Path) -> Base:
    torch.set_num_threads(1)
    return Base(str(model))


@pytest.fixture(scope="module")
def encoder(base: Base) -> Encoder:
    return Encoder(base.tokenizer, base.name, base.longest)


# --- what is shown --------------------------------------------------------------------------------------------


def test_a_turn_is_what_the_template_makes_of_it_and_is_cut_to_its_size(base: Base, encoder: Encoder) -> None:
    message = Message(role="system", text="Bet with a king, and never with a queen.")
    chat = [{"role": "system", "content": message.text}]
    whole = encoder.turn(message)
    assert list(whole) == base.tokenizer.apply_chat_template(chat, tokenize=True, return_dict=False)
    short = encoder.turn(message, len(whole) - 3)
    text = base.tokenizer.encode(message.text, add_special_tokens=False)
    start = next(n for n in range(len(whole)) if list(whole[n : n + len(text)]) == text)
    assert short == (*whole[: start + len(text) - 3], *whole[start + len(text) :]), "its end is not cut off"
    assert encoder.turn(message, len(whole) - len(text)) == (), "nothing but a frame is nothing"
    spelt = encoder.turn(Message(role="system", text="Yes.<|im_end|>No."))
    assert spelt.count(base.tokenizer.eos_token_id) == whole.count(base.tokenizer.eos_token_id)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('users only') }}", "takes no message of system alone: users only"),
        ("{{ bos_token }}", "leaves out a message of system"),
    ],
)
def test_a_template_that_has_no_such_turn_is_told(base: Base, template: str, why: str) -> None:
    tokenizer = copy(base.tokenizer)
    tokenizer.chat_template = template
    with pytest.raises(EngineFailure, match=why):
        Encoder(tokenizer, "picky", 1024).turn(Message(role="system", text="Bet."))


def test_texts_are_bounded_by_their_own_size_and_by_the_context(encoder: Encoder) -> None:
    rows = [row((5, 6), (7,)), row((5,) * 90, (7,)), row((5,) * 98, (7, 8)), row((5, 6), (7,), how="defaulted")]
    text = "one two three four five six seven eight nine ten " * 3
    whole = len(encoder.turn(Message(role="system", text="bet")))
    found = shown(rows, dict.fromkeys(range(4), "bet"), encoder, most=50, longest=100)
    assert [len(each) for each in found.before] == [whole, whole, 0, 0]
    assert found.numbers == {"shown_tokens": pytest.approx(2 * whole / 3), "shown_cut": pytest.approx(1 / 3)}
    found = shown(rows, {0: text, 1: text}, encoder, most=20, longest=100)
    assert [len(each) for each in found.before] == [20, 9, 0, 0]
    assert found.numbers["shown_cut"] == pytest.approx(2 / 3)


def played(episode: str, seat: str, answers: Sequence[str], reward: float, **fields: Any) -> list[Row]:
    last = len(answers) - 1
    return [
        Row(
            episode=episode, group="run/0", seat=seat, turn=turn, answer=answer, ids=(1,),
            reward=reward if turn == last else 0.0, ended="terminated" if turn == last else "", **fields,
        )
        for turn, answer in enumerate(answers)
    ]  # fmt: skip


def test_the_best_of_a_group_is_shown_to_those_that_earned_less() -> None:
    """Seat by seat: a's best is in the second episode, b's in both; a frozen seat is shown nothing."""
    rows = [
        *played("run:0", "a", ["pass", "bet"], -1),
        *played("run:1", "a", ["bet", "pass"], 2),
        *played("run:0", "b", ["fold"], 1),
        *played("run:1", "b", ["call"], 1),
        *played("run:0", "c", ["fold"], 0, trained=False),
        *played("run:1", "c", ["call"], 1, trained=False),
    ]
    found = exemplary(rows)
    assert found.keys() == {0, 1}
    assert found[0] == found[1]
    assert found[0].splitlines()[1:] == ["bet", "pass"]
    assert exemplary([*rows[:2], *played("run:1", "a", ["bet"], 2, trained=True)][:2]) == {}, "alone in its group"


# --- what it changes ------------------------------------------------------------------------------------------


FRONT, OTHER = (40, 41, 42), (50,)
SURE = 0.0
"""log μ of a token that the policy has since fallen by more than 0.2 on."""


@pytest.fixture
def student(base: Base) -> Iterator[Policy]:
    policy = base.create_full("duel")
    policy.shake(3, 0.2)
    yield policy
    base.drop(policy)


def record() -> list[Row]:
    """Two choices and a text, sampled by an older policy."""
    common = {"group": "run/0", "asked": "duel@2"}
    return [
        choice(0, logprobs=(-0.9, -1.1, 0.0), episode="run:0", **common),
        choice(2, logprobs=(SURE, 0.0), episode="run:1", **common),
        row((8, 9), (30, 31), logprobs=(-7.0, -8.0), distribution="raw", policy="duel@2", episode="run:2", **common),
    ]


def by_hand(policy: Policy, rows: Sequence[Row], fronts: Sequence[Tokens]) -> Tensor:
    """−Σ share·ρ·(log π(shown) − log π), tokens with π − μ < −0.2 left out; 7 tokens in all."""
    lost = torch.zeros(())
    with policy.active() as llama:
        for one, front in zip(rows, fronts, strict=True):
            allowed = MASK.along(one.ids) if one.options else None
            now, _ = slowly(llama, Sample(prompt=one.prompt, ids=one.ids, allowed=allowed))
            with torch.no_grad():
                told, _ = slowly(llama, Sample(prompt=(*front, *one.prompt), ids=one.ids, allowed=allowed))
            sampled = torch.tensor(one.logprobs)
            kept = now.detach().exp() - sampled.exp() >= -0.2
            lost = lost - (kept * (now - sampled).exp() * (told - now.detach())).sum() / 7
    return lost


def test_the_pull_is_that_of_the_shown_self_on_what_was_sampled(student: Policy) -> None:
    """Loss and gradient, against the model's own forward of each sequence; π is not μ anywhere."""
    rows, fronts = record(), [FRONT, OTHER, ()]
    recipe = load("opsd", ["extra=[{kind: ref_kl, shown: demonstration}]", "optimiser={kind: sgd, lr: 0}"])
    wanted = by_hand(student, rows, fronts)
    gradients = torch.autograd.grad(wanted, student.parameters())
    norm = torch.stack([each.square().sum() for each in gradients]).sum().sqrt().item()
    numbers = Learner(student, recipe, mask).learn(rows, estimate(recipe, rows), 0, shown=fronts)
    assert numbers["ref_kl"] == pytest.approx(wanted.item(), rel=1e-3)
    assert abs(wanted.item()) > 1e-3
    assert numbers["gradient_norm"] == pytest.approx(norm, rel=1e-3)


def test_what_is_shown_changes_what_the_teacher_says_and_not_the_student(student: Policy) -> None:
    rows = record()
    recipe = load("opsd", ["extra=[{kind: ref_kl, shown: demonstration}]", "optimiser={kind: sgd, lr: 0}"])
    found: list[dict[str, float]] = []
    for fronts in ([], [()] * 3, [FRONT] * 3, [OTHER] * 3):
        found.append(Learner(student, recipe, mask).learn(rows, estimate(recipe, rows), 0, shown=fronts))
    pulls = [numbers.pop("ref_kl") for numbers in found]
    assert pulls[:2] == pytest.approx([0, 0], abs=1e-6), "shown nothing, the policy says what it says"
    assert len({round(pull, 4) for pull in pulls}) == 3
    for numbers in found:
        for name in ("kl", "entropy", "ess", "rows"):
            assert numbers[name] == found[0][name]


def test_equal_answers_that_are_shown_different_things_stay_apart(student: Policy) -> None:
    """One of them would otherwise learn from the other's teacher."""
    rows = [choice(0, logprobs=(-0.9, -1.1, 0.0), episode=f"run:{n}", group="run/0") for n in range(3)]
    recipe = load("opsd", ["extra=[{kind: ref_kl, shown: demonstration}]", "optimiser={kind: sgd, lr: 0}"])
    pulls = {}
    for fronts in ((FRONT, FRONT, OTHER), (FRONT,) * 3, (OTHER,) * 3):
        numbers = Learner(student, recipe, mask).learn(rows, estimate(recipe, rows), 0, shown=fronts)
        pulls[fronts] = numbers["ref_kl"]
    mixed, first, second = pulls.values()
    assert mixed == pytest.approx((2 * first + second) / 3, rel=1e-4)


# --- what is learnt from it -------------------------------------------------------------------------------------


def plan(model: Path, recipe: str, *changes: str) -> Plan:
    small = ("policy.kind=full", "optimiser.lr=1e-3", "threads=1", "rollout.episodes=8")
    own = tuple(f"models.{seat}.model={model}" for seat in ("first", "second"))
    return Plan(recipe=load(recipe, [*small, *changes]), scenario=KUHN, sets=own, seed=3)


@pytest.fixture(scope="module")
def engines(model: Path) -> Iterator[dict[str, LateEngine]]:
    """One engine for all trainings here."""
    from agents.engines.torch import TorchEngine

    late = LateEngine("shared", lambda: TorchEngine(str(model), max_model_len=1024, threads=1))
    yield dict.fromkeys(("first", "second"), late)
    late.close()


def updated(folder: Path, what: Plan, engines: dict[str, LateEngine]) -> tuple[set[str], dict[str, float]]:
    """What the rows of an update were shown, in words, and its numbers."""
    with Trainer(folder, what, engines) as trainer:
        show, found = trainer._witness.shown, set()

        def seen(rows: Sequence[Row], update: int) -> Shown:
            what = show(rows, update)
            found.update(trainer._base.tokenizer.decode(front) for front in what.before)
            return what

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trainer._witness, "shown", seen)
            numbers = trainer.update()
    assert numbers["gradient_norm"] > 0
    assert abs(numbers["ref_kl"]) > 1e-6
    return found, numbers


def test_a_script_demonstrates_its_answer_to_the_same_view(
    model: Path, engines: dict[str, LateEngine], tmp_path: Path
) -> None:
    said, numbers = updated(tmp_path / "kuhn", plan(model, "opsd", SCRIPT), engines)
    (text,) = said
    assert example("bet") in text
    assert numbers["shown_tokens"] == len(Base(str(model)).tokenizer.encode(text))
    assert numbers["shown_cut"] == 0


def test_the_best_of_each_group_is_an_example(model: Path, engines: dict[str, LateEngine], tmp_path: Path) -> None:
    what = plan(model, "opsd", "structure={kind: group, size: 4}")
    said, _ = updated(tmp_path / "kuhn", what, engines)
    assert "" in said, "the best are shown nothing"
    assert any(text.endswith(("bet<|im_end|>\n", "pass<|im_end|>\n")) for text in said)


def test_a_policy_says_what_it_has_learnt_and_is_shown_it(
    model: Path, engines: dict[str, LateEngine], tmp_path: Path
) -> None:
    what = plan(model, "skill_sd_like", "structure.size=4", "extra.0.tokens=40")
    said, numbers = updated(tmp_path / "kuhn", what, engines)
    (line,) = map(orjson.loads, (tmp_path / "kuhn" / "skills" / "update-000001.jsonl").read_bytes().splitlines())
    assert line["policy"] == "kuhn@1"
    best, worst = line["messages"][1][1].split("This went badly:")
    assert best.count("The rules:") == worst.count("The rules:") == 1
    assert "The agent answered:" in best
    assert best.split("This went well:")[1].strip() != worst.split("What is to be")[0].strip()
    (text,) = said
    assert text.removeprefix("<|im_start|>system\n").removesuffix("<|im_end|>\n")[:20] in line["skills"]
    assert numbers["shown_tokens"] == 40, "a model of noise says as much as it may"
    assert numbers["shown_cut"] > 0


def test_a_training_is_not_gone_on_with_where_what_it_reads_has_changed(
    model: Path, engines: dict[str, LateEngine], tmp_path: Path
) -> None:
    skills, scenario = tmp_path / "skills.txt", tmp_path / "kuhn.yaml"
    scenario.write_text(KUHN.read_text(encoding="utf-8"), encoding="utf-8")
    skills.write_text("Bet with a king.\n", encoding="utf-8")
    what = replace(plan(model, "skill_sd_like", "structure.size=4", "extra.0.skills=skills.txt"), scenario=scenario)
    Trainer(tmp_path / "kuhn", what, engines).close()
    Trainer(tmp_path / "kuhn", what, engines).close()
    for file in (skills, scenario):
        said = file.read_text(encoding="utf-8")
        file.write_text(said + "# Pass with a jack.\n", encoding="utf-8")
        with pytest.raises(TrainingError, match=f"{file} has changed since the training in .*kuhn began; put back"):
            Trainer(tmp_path / "kuhn", Plan.read(tmp_path / "kuhn"), engines)
        file.write_text(said, encoding="utf-8")
    Trainer(tmp_path / "kuhn", what, engines).close()


def test_skills_of_a_file(model: Path, engines: dict[str, LateEngine], tmp_path: Path) -> None:
    file = tmp_path / "skills.txt"
    file.write_text("Bet with a king.\n")
    what = plan(model, "skill_sd_like", "structure.size=4", f"extra.0.skills={file}")
    said, _ = updated(tmp_path / "kuhn", what, engines)
    assert said == {"<|im_start|>system\nBet with a king.<|im_end|>\n"}
    assert not (tmp_path / "kuhn" / "skills").exists(), "nobody was asked"
    for text, why in ((" \n", "is empty; expected skills in words"), ("bet " * 600, "tokens; expected 512, or set")):
        file.write_text(text)
        with pytest.raises(TrainingError, match=why):
            Trainer(tmp_path / "other", what, engines)
    file.unlink()
    with pytest.raises(TrainingError, match="cannot be read as a UTF-8 text beside the scenario"):
        Trainer(tmp_path / "other", what, engines)
    assert not (tmp_path / "other").exists(), "nothing is written where nothing can be trained"


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([], "the structure independent has no better episode that started alike to show; name a scripted agent"),
        (["extra.0.shown=''"], "the learner alone teaches itself nothing; name a teacher, or what is shown"),
        (
            ["extra=[{kind: ref_kl, teacher: a}, {kind: ref_kl, shown: skills}]"],
            "one teacher at a time; leave out all terms but one",
        ),
        (
            [SCRIPT, "structure={kind: tree, size: 2, nodes: 1, branches: 1, rule: surprisal}"],
            "extra ref_kl: what is shown needs whole episodes",
        ),
    ],
)
def test_where_nothing_can_be_shown(changes: list[str], why: str) -> None:
    with pytest.raises(TrainingError, match=why) as error:
        check(load("opsd", changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("extra.0.skills=a.txt", "the file a.txt would not be read; expected shown: skills"),
        ("extra=[{kind: ref_kl, shown: skills, script: 'a:B'}]", "script and settings are of demonstrations"),
    ],
)
def test_what_would_not_be_read_is_told(change: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load("opsd", [change])


def test_a_script_that_is_not_there_is_told(model: Path, engines: dict[str, LateEngine], tmp_path: Path) -> None:
    what = plan(model, "opsd", "extra.0.script=worlds.games.openspiel_strategies:AlwaysBat")
    with pytest.raises(TrainingError, match=r"extra ref_kl: script: .*did you mean AlwaysBet"):
        Trainer(tmp_path / "kuhn", what, engines)
