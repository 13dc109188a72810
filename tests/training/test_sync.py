"""Delivery: what is published is what answers, and every way to break that is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from agents.engines.torch import TorchEngine
from agents.engines.weights import ADAPTER
from training.policy import Base, Policy, tiny_model
from training.sync import CANARY, LEAST, DeliveryError, Publisher


class Postman(TorchEngine):
    """An engine that delivers what it is told to, or something else."""

    swap: dict[str, Path]
    """What to load in place of what, by label."""

    def add_policy(self, name: str, folder: str | Path) -> None:
        super().add_policy(name, self.swap.get(name, folder))


@pytest.fixture(scope="module")
def engine(tiny_folder: Path, one_thread: None) -> Iterator[Postman]:
    made = Postman(str(tiny_folder), max_model_len=512, threads=1)
    made.swap = {}
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(tiny_folder: Path) -> Base:
    return Base(str(tiny_folder))


@pytest.fixture
def base(shared: Base) -> Iterator[Base]:
    """A base without policies."""
    yield shared
    for policy in list(shared.policies.values()):
        shared.drop(policy)


@pytest.fixture
def publisher(engine: Postman, base: Base, tmp_path: Path) -> Iterator[Publisher]:
    engine.swap = {}
    made = Publisher(engine, base, tmp_path, keep=2)
    yield made
    made.call_up([])
    for label in made.served:
        made.remove(label)


def learnt(base: Base, name: str = "main") -> Policy:
    policy = base.create(name, rank=4)
    policy.shake(1, 0.1)
    return policy


def test_what_is_published_is_what_answers(publisher: Publisher, base: Base) -> None:
    assert publisher.tolerance == LEAST, "both are torch in float32"
    policy = learnt(base)
    first = publisher.publish(policy)
    assert first.seen
    assert first.error < 1e-4 < first.moved
    policy.shake(2, 0.1)
    second = publisher.publish(policy)
    assert (first.saved.label, second.saved.label) == ("main@1", "main@2")
    assert second.seen


def test_an_update_too_small_to_see_is_no_failure(publisher: Publisher, base: Base) -> None:
    policy = learnt(base)
    publisher.publish(policy)
    policy.shake(2, 1e-9)
    assert not publisher.publish(policy).seen


def test_whole_models_are_delivered_too(publisher: Publisher, base: Base) -> None:
    policy = base.create_full("whole")
    policy.shake(1, 0.02)
    published = publisher.publish(policy)
    assert published.seen
    assert published.error < 1e-4


def test_the_canary_acts_and_leaves_nothing(publisher: Publisher, base: Base, tmp_path: Path) -> None:
    assert publisher.prove().moved > 10 * publisher.tolerance
    publisher.prove()
    assert CANARY not in base.policies
    assert not list(tmp_path.iterdir())
    assert publisher.served == []


def test_old_versions_go_and_named_ones_stay(publisher: Publisher, base: Base, tmp_path: Path) -> None:
    policy = learnt(base)
    publisher.named.add("main@1")
    for _ in range(4):
        publisher.publish(policy)
    assert publisher.served == ["main@3", "main@4"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main@1", "main@3", "main@4"]


def test_named_versions_are_called_up_from_disk_and_go_again(
    publisher: Publisher, engine: Postman, base: Base, tmp_path: Path
) -> None:
    policy = learnt(base)
    publisher.named |= {"main@1", "main@2"}
    for _ in range(4):
        publisher.publish(policy)

    def served() -> set[str]:
        return set(filter(None, engine._policies))

    assert served() == {"main@3", "main@4"}
    publisher.call_up(["main@4", "main@1"])
    assert served() == {"main@1", "main@3", "main@4"}
    publisher.call_up(["main@2", "main@4"])
    assert served() == {"main@2", "main@3", "main@4"}
    with pytest.raises(DeliveryError, match="the engine refused main@9: "):
        publisher.call_up(["main@9"])
    publisher.call_up([])
    assert served() == {"main@3", "main@4"}


def test_a_version_on_disk_is_delivered_after_a_restart(
    publisher: Publisher, engine: Postman, base: Base, tmp_path: Path, tiny_folder: Path
) -> None:
    """With the kept ones before it, which the next publications retire as ever."""
    policy = learnt(base)
    for seed in range(2):
        publisher.publish(policy)
        policy.shake(seed, 0.1)
    publisher.remove("main@1")
    publisher.remove("main@2")
    later = Base(str(tiny_folder))
    again = Publisher(engine, later, tmp_path, keep=2)
    same = later.load("main", tmp_path / "main@2")
    assert again.deliver_again(same).seen
    assert again.served == ["main@1", "main@2"]
    again.publish(same)
    assert again.served == ["main@2", "main@3"]
    for label in again.served:
        again.remove(label)


# --- broken deliveries ----------------------------------------------------------------------------


def test_a_folder_with_other_weights_is_caught(publisher: Publisher, base: Base, tmp_path: Path) -> None:
    policy = learnt(base)
    saved = policy.save(tmp_path)
    file = tmp_path / saved.label / ADAPTER
    save_file({name: value * 1.01 for name, value in load_file(file).items()}, file)
    with pytest.raises(DeliveryError, match=r"main@1 holds other weights than were saved as main@1"):
        publisher.deliver(policy, saved)


def test_an_engine_that_serves_the_base_model_is_caught(
    publisher: Publisher, engine: Postman, base: Base, tmp_path: Path
) -> None:
    nothing = base.create("nothing", rank=4).save(tmp_path)
    engine.swap = {"main@1": tmp_path / nothing.label, "canary@1": tmp_path / nothing.label}
    with pytest.raises(DeliveryError, match="told to serve main@1 and serves the base model: off by") as caught:
        publisher.publish(learnt(base))
    assert "\n" not in str(caught.value)
    with pytest.raises(DeliveryError, match="told to serve canary@1 and serves the base model"):
        publisher.prove()
    assert publisher.served == []


def test_an_engine_that_serves_an_old_version_is_caught(
    publisher: Publisher, engine: Postman, base: Base, tmp_path: Path
) -> None:
    policy = learnt(base)
    publisher.publish(policy)
    engine.swap = {"main@2": tmp_path / "main@1"}
    policy.shake(2, 0.1)
    with pytest.raises(DeliveryError, match="told to serve main@2 and serves the old main@1"):
        publisher.publish(policy)


def test_small_updates_that_never_arrive_add_up(
    publisher: Publisher, engine: Postman, base: Base, tmp_path: Path
) -> None:
    policy = learnt(base)
    publisher.publish(policy)
    engine.swap = {f"main@{version}": tmp_path / "main@1" for version in range(2, 60)}
    publisher.named.add("main@1")

    def updates() -> None:
        for _ in range(50):
            for value in policy.tensors().values():
                value *= 1.00002
            publisher.publish(policy)

    with pytest.raises(DeliveryError, match="serves the old main@"):
        updates()
    assert policy.version > 2, "the first of these updates is too small to see"


def test_weights_from_elsewhere_are_caught(publisher: Publisher, engine: Postman, base: Base, tmp_path: Path) -> None:
    stranger = base.create("stranger", rank=4)
    stranger.shake(9, 0.2)
    engine.swap = {"main@1": tmp_path / stranger.save(tmp_path).label}
    with pytest.raises(DeliveryError, match="serves weights it was never given"):
        publisher.publish(learnt(base))


def test_what_the_engine_refuses_is_told(publisher: Publisher, engine: Postman, base: Base, tmp_path: Path) -> None:
    engine.swap = {"main@1": tmp_path / "nowhere"}
    with pytest.raises(DeliveryError, match="the engine refused main@1: "):
        publisher.publish(learnt(base))


def test_two_base_models_are_caught_at_the_start(engine: Postman, tmp_path: Path) -> None:
    other = Base(str(tiny_model(tmp_path / "tiny", seed=2)))
    with pytest.raises(DeliveryError, match="two models"):
        Publisher(engine, other, tmp_path, most=0.2)
