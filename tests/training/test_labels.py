"""What a teacher's labels are, and that a student comes to answer as its teacher does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from typing import Any

import pytest
import torch

from tests.training.tiny import MASK, mask, model, row
from training.estimate import estimate
from training.forward import Weights, option_logprobs
from training.labels import lessons
from training.learner import Learner
from training.policy import Base, tiny_model
from training.recipe import load
from training.rows import labelled
from training.trajectory import Row

OPTIONS = ("ab", "ac", "d")
PROMPT = (5, 6, 7)


def weights(llama: Any) -> Weights:
    @contextmanager
    def entered() -> Iterator[Any]:
        yield llama

    return entered


def choice(said: int, policy: str = "duel@2", **fields: Any) -> Row:
    common = {"asked": "duel@2", "options": OPTIONS, "answer": OPTIONS[said], "ended": "terminated"}
    fields = {"prompt": PROMPT, **common, "trained": policy.startswith("duel"), **fields}
    return row(fields.pop("prompt"), MASK.sequences[said], policy=policy, **fields)


def test_a_choice_is_labelled_with_the_teacher_s_whole_distribution() -> None:
    llama = model(seed=2)
    rows = [choice(0), choice(1, "good@1", episode="run:1"), choice(2, "other@1", episode="run:2", asked="other@1")]
    found = lessons(rows, (0, 2), "duel", weights(llama), mask)
    assert sorted(found) == [0, 1], "a kept row of ours and the teacher's own, and no other policy's"
    (wanted,) = option_logprobs(llama, [(PROMPT, MASK)])
    for one in found.values():
        assert [sample.ids for sample in one] == list(MASK.sequences)
        for sample, logprob in zip(one, wanted, strict=True):
            assert sample.label == pytest.approx((exp(logprob),) * len(sample.ids), rel=1e-4)
        assert sum(sample.count for sample in one) == 1
    halves = labelled(list(found.values()))
    assert sum(sample.label[0] for sample in halves) == pytest.approx(1)


def test_free_text_is_labelled_where_the_teacher_spoke() -> None:
    text = {"asked": "duel@2", "distribution": "raw"}
    spoken = row(PROMPT, (8, 9), policy="good@1", trained=False, **text)
    found = lessons([spoken], (), "duel", weights(model()), mask)
    assert [(one.ids, one.label) for one in found[0]] == [((8, 9), (1.0, 1.0))]
    with pytest.raises(ValueError, match="a teacher labels choices"):
        lessons([row(PROMPT, (8, 9), policy="duel@2", **text)], (0,), "duel", weights(model()), mask)


def test_what_was_not_said_whole_is_no_lesson() -> None:
    rows = [choice(0, how="defaulted"), choice(1, "good@1", episode="run:1", how="faulted")]
    assert lessons(rows, (), "duel", weights(model()), mask) == {}


# --- learning ------------------------------------------------------------------------------------------------


PROMPTS = ((5, 6, 7), (5, 9), (11, 12, 13, 14))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    torch.set_num_threads(1)
    return Base(str(tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)))


@pytest.fixture
def student(base: Base) -> Iterator[Any]:
    policy = base.create_full("duel")
    yield policy
    base.drop(policy)


@pytest.fixture(scope="module")
def teacher(base: Base) -> Any:
    policy = base.create_full("good")
    policy.shake(3, 0.1)
    policy.train(False)
    return policy


def gap(student: Any, teacher: Any) -> float:
    with teacher.active() as strong:
        asked = [(prompt, MASK) for prompt in PROMPTS]
        wanted = option_logprobs(strong, asked)
    with student.active() as weak:
        got = option_logprobs(weak, asked)
    pairs = [pair for both in zip(wanted, got, strict=True) for pair in zip(*both, strict=True)]
    return sum(exp(t) * (t - s) for t, s in pairs)


def test_a_student_that_imitates_labels_comes_near_its_teacher(student: Any, teacher: Any) -> None:
    recipe = load("dagger", ["optimiser.lr=3e-3", "optimiser.epochs=25"])
    learner = Learner(student, recipe, mask)
    rows = [choice(0, prompt=prompt, episode=f"run:{n}") for n, prompt in enumerate(PROMPTS)]
    before = gap(student, teacher)
    found = estimate(recipe, rows)
    taught = lessons(rows, found.kept.indices, "duel", teacher.active, mask)
    numbers = learner.learn(rows, found, 0, teacher=teacher.active, lessons=taught)
    assert numbers["rows"] == len(PROMPTS)
    after = gap(student, teacher)
    assert after < 0.2 * before, (before, after)


def test_a_student_that_is_distilled_on_its_own_answers_comes_near_its_teacher(student: Any, teacher: Any) -> None:
    """All options in the share that the student says them: the gradient is that of reverse KL itself."""
    recipe = load(
        "opd",
        ["optimiser.lr=3e-3", "optimiser.epochs=3", "trust={kind: none}", "extra=[{kind: ref_kl, teacher: good@1}]"],
    )
    learner = Learner(student, recipe, mask)
    before = gap(student, teacher)
    for update in range(12):
        rows = list(drawn(student))
        learner.learn(rows, estimate(recipe, rows), update, teacher=teacher.active)
    after = gap(student, teacher)
    assert after < 0.5 * before, (before, after)


def drawn(student: Any, per: int = 12) -> Iterator[Row]:
    """Answers in about the shares that the student gives them."""
    with student.active() as weak:
        said = option_logprobs(weak, [(prompt, MASK) for prompt in PROMPTS])
    for number, (prompt, logprobs) in enumerate(zip(PROMPTS, said, strict=True)):
        for option, logprob in enumerate(logprobs):
            behaviour = along(student, prompt, MASK.sequences[option])
            for copy in range(max(1, round(per * exp(logprob)))):
                name = f"run:{number}-{option}-{copy}"
                yield choice(option, prompt=prompt, episode=name, logprobs=behaviour)


def along(student: Any, prompt: tuple[int, ...], ids: tuple[int, ...]) -> tuple[float, ...]:
    """The student's log-probability of every token of an option."""
    with student.active() as weak, torch.no_grad():
        logits = weak(input_ids=torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    found = []
    for step, (token, allowed) in enumerate(zip(ids, MASK.along(ids), strict=True)):
        found.append(float(logits[step, list(allowed)].log_softmax(-1)[list(allowed).index(token)]))
    return tuple(found)
