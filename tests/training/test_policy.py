"""Policies: several on one base, gradients, folders, foreign adapters, retention, whole models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from agents.engines.weights import ADAPTER, ADAPTER_CONFIG, MODEL, WeightsError, fingerprint
from training.policy import ATTENTION, NOTE, Base, Policy, export, retain, rewind, saved_in, tiny_model

IDS = torch.tensor([[1, 9690, 198, 2683, 359, 253]])


@pytest.fixture(scope="module")
def shared(tiny_folder: Path, one_thread: None) -> Base:
    return Base(str(tiny_folder))


@pytest.fixture
def base(shared: Base) -> Iterator[Base]:
    """A base without policies."""
    yield shared
    for policy in list(shared.policies.values()):
        shared.drop(policy)


def logits(policy: Policy) -> torch.Tensor:
    with policy.active() as model:
        found: torch.Tensor = model(input_ids=IDS, logits_to_keep=1).logits[0, 0]
    return found


def plain(base: Base) -> torch.Tensor:
    with torch.no_grad(), base.plain() as model:
        found: torch.Tensor = model(input_ids=IDS, logits_to_keep=1).logits[0, 0]
    return found


def test_a_new_policy_answers_as_the_base_and_its_seed_decides(base: Base) -> None:
    before = torch.random.get_rng_state()
    one, two = base.create("one", rank=4, seed=7), base.create("two", rank=4, seed=8)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(logits(one), plain(base))
    again = Base(str(base.folder)).create("one", rank=4, seed=7)
    same = [torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True)]
    other = [torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True)]
    assert all(same)
    assert not all(other)


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_step_moves_its_own_weights_only(base: Base, kind: str) -> None:
    learner = base.create("learner", rank=4) if kind == "lora" else base.create_full("learner")
    other, before = base.create("other", rank=4, seed=1), plain(base)
    still = logits(other).detach()
    optimiser = torch.optim.SGD(learner.parameters(), lr=1.0)
    logits(learner).log_softmax(0)[7].neg().backward()
    optimiser.step()
    assert not torch.equal(logits(learner), before)
    assert torch.equal(plain(base), before)
    assert torch.equal(logits(other), still)
    assert all(parameter.grad is None for parameter in other.parameters())


def test_gradients_reach_policies_that_are_not_active_any_more(base: Base) -> None:
    """A loss over two policies and the reference, backward after all of them ran; a frozen one gets none."""
    one, two, frozen = (base.create(name, rank=4, seed=i) for i, name in enumerate(("one", "two", "frozen")))
    frozen.train(False)
    for policy in (one, two, frozen):
        policy.shake(1, 0.1)
    loss = logits(one)[7] + 2 * logits(two)[7] + logits(frozen)[7]
    plain(base)
    loss.backward()
    for policy in (one, two):
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in policy.parameters())
    assert all(parameter.grad is None for parameter in frozen.parameters())


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_version_is_written_whole_and_read_again(base: Base, tmp_path: Path, kind: str) -> None:
    policy = base.create("main", rank=4) if kind == "lora" else base.create_full("main")
    policy.shake(2, 0.05)
    first = policy.save(tmp_path)
    assert (first.label, first.parent, first.hash) == ("main@1", "", fingerprint(tmp_path / "main@1"))
    assert saved_in(tmp_path / "main@1") == first
    wanted = logits(policy).detach()
    policy.shake(3, 0.05)
    second = policy.save(tmp_path)
    assert (second.label, second.parent) == ("main@2", "main@1")
    assert second.hash != first.hash
    assert {path.name for path in tmp_path.iterdir()} == {"main@1", "main@2"}
    again = Base(str(base.folder)).load("main", tmp_path / "main@1")
    assert torch.equal(logits(again), wanted)
    assert again.label == "main@1"
    with pytest.raises(WeightsError, match="there already"):
        again.save(tmp_path)
    child = base.load("child", tmp_path / "main@1")
    assert child.save(tmp_path).parent == "main@1"
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_policy_starts_anew_from_one_of_its_versions(base: Base, tmp_path: Path, kind: str) -> None:
    policy = base.create("main", rank=4) if kind == "lora" else base.create_full("main")
    first = policy.save(tmp_path)
    policy.shake(0, 0.1)
    second = policy.save(tmp_path)
    policy.start_anew(tmp_path / first.label)
    third, fourth = policy.save(tmp_path), policy.save(tmp_path)
    assert (third.label, third.hash, third.parent) == ("main@3", first.hash, "main@1")
    assert fourth.parent == "main@3", "once only"
    assert second.hash != first.hash


def test_weights_are_restored_to_the_bit(base: Base) -> None:
    policy = base.create("main", rank=4)
    policy.shake(2, 0.1)
    kept = {name: value.clone() for name, value in policy.tensors().items()}
    wanted = logits(policy).detach()
    policy.shake(3, 0.1)
    assert not torch.equal(logits(policy), wanted)
    policy.restore(kept)
    assert torch.equal(logits(policy), wanted)
    with pytest.raises(WeightsError, match="another shape"):
        policy.restore({name: value[:1] for name, value in kept.items()})


def test_names_and_places_are_checked(base: Base) -> None:
    base.create("main", rank=2)
    for wrong, message in (("main", "already"), ("a b", "letters"), ("", "letters"), ("a@1", "letters")):
        with pytest.raises(WeightsError, match=message):
            base.create(wrong)
    with pytest.raises(WeightsError, match="nothing"):
        base.create("off", targets=["nothing"])
    base.drop(base.policies["main"])
    assert base.create("main", rank=3).parameters()[0].shape[0] == 3


# --- foreign adapters -----------------------------------------------------------------------------


def foreign(base: Base, folder: Path, **settings: Any) -> Path:
    """An adapter as peft writes it, without a note of ours."""
    policy = base.create("stranger", rank=4)
    policy.shake(5, 0.1)
    saved = policy.save(folder.parent / "made")
    shutil.move(folder.parent / "made" / saved.label, folder)
    (folder / NOTE).unlink()
    file = folder / ADAPTER_CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    return folder


def test_a_foreign_adapter_is_taken_in(base: Base, tmp_path: Path) -> None:
    folder = foreign(
        base, tmp_path / "theirs", base_model_name_or_path=f"someone/{base.name}", init_lora_weights="pissa"
    )
    policy, wanted = base.load("guest", folder), plain(base)
    assert torch.equal(logits(policy), logits(base.policies["stranger"]))
    assert not torch.equal(logits(policy), wanted)
    assert (policy.version, policy.label) == (0, "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_model_name_or_path": "Qwen/Qwen3-8B"}, "was made for Qwen/Qwen3-8B, not for tiny"),
        ({"peft_type": "IA3"}, "IA3 adapter, only LORA"),
        ({"modules_to_save": ["lm_head"]}, "more than low-rank matrices: modules_to_save"),
        ({"bias": "all"}, "more than low-rank matrices: bias"),
        ({"r": 8}, r"doesn't fit: .* is \(4, 64\), the model takes \(8, 64\)"),
        ({"target_modules": ["q_proj"]}, "doesn't fit: .*k_proj.* has no place in the model"),
        (
            {"target_modules": [*ATTENTION, "up_proj"]},
            "doesn't fit: .*up_proj.* is missing",
        ),
    ],
)
def test_a_foreign_adapter_that_does_not_fit_is_one_line(
    base: Base, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    folder = foreign(base, tmp_path / "theirs", **settings)
    with pytest.raises(WeightsError, match=message) as caught:
        base.load("guest", folder)
    assert "\n" not in str(caught.value)
    assert "guest" not in base.policies
    base.create("guest", rank=2)


def test_pickles_are_never_read(base: Base, tmp_path: Path) -> None:
    folder = foreign(base, tmp_path / "theirs")
    torch.save(load_file(folder / ADAPTER), folder / "adapter_model.bin")
    (folder / ADAPTER).unlink()
    with pytest.raises(WeightsError, match="pickled weights are never loaded"):
        base.load("guest", folder)
    (folder / ADAPTER).write_bytes(b"rubbish")
    with pytest.raises(WeightsError):
        base.load("guest", folder)


def test_a_folder_of_ours_that_was_changed_is_refused(base: Base, tmp_path: Path) -> None:
    policy = base.create("main", rank=4)
    policy.save(tmp_path)
    file = tmp_path / "main@1" / ADAPTER
    save_file({name: value + 1 for name, value in load_file(file).items()}, file)
    with pytest.raises(WeightsError, match=r"other weights than its policy\.json says"):
        base.load("again", tmp_path / "main@1")


def test_a_folder_of_ours_knows_its_base(base: Base, tmp_path: Path) -> None:
    other = Base(str(tiny_model(tmp_path / "tiny", seed=2)))
    other.create("main", rank=4).save(tmp_path)
    with pytest.raises(WeightsError, match="belongs to another base model"):
        base.load("main", tmp_path / "main@1")


# --- folders ------------------------------------------------------------------------------------------


def test_the_last_versions_stay_and_those_that_are_named(base: Base, tmp_path: Path) -> None:
    policy, other = base.create("main", rank=2), base.create("main-2", rank=2)
    for _ in range(11):
        policy.save(tmp_path)
    other.save(tmp_path)
    gone = retain(tmp_path, "main", 2, {"main@3"})
    assert gone == [f"main@{version}" for version in (1, 2, 4, 5, 6, 7, 8, 9)]
    assert {path.name for path in tmp_path.iterdir()} == {"main@3", "main@10", "main@11", "main-2@1"}
    (tmp_path / ".main@12.half").mkdir()
    assert rewind(tmp_path, "main", 9) == ["main@10", "main@11"]
    assert {path.name for path in tmp_path.iterdir()} == {"main@3", "main-2@1"}


def test_an_export_is_a_copy_under_the_public_name(base: Base, tmp_path: Path) -> None:
    base.create("main", rank=2).save(tmp_path)
    target = export(tmp_path / "main@1", tmp_path / "out", base="someone/tiny")
    assert json.loads((target / ADAPTER_CONFIG).read_text())["base_model_name_or_path"] == "someone/tiny"
    assert fingerprint(target) == fingerprint(tmp_path / "main@1")
    assert base.load("back", target).label == "main@1"
    with pytest.raises(WeightsError, match="there already"):
        export(tmp_path / "main@1", tmp_path / "out")


def test_a_tiny_model_is_a_function_of_its_seed(tmp_path: Path, tiny_folder: Path) -> None:
    tiny_model(tmp_path / "again", seed=1)
    tiny_model(tmp_path / "other", seed=2)
    assert fingerprint(tmp_path / "again") == fingerprint(tiny_folder)
    assert fingerprint(tmp_path / "other") != fingerprint(tiny_folder)
    assert (tmp_path / "again" / MODEL).stat().st_size < 20e6
    assert Base(str(tmp_path / "again")).tokenizer.chat_template
