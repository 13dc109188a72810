"""Weights that a learner starts from: a version of ours, or a foreign adapter, which becomes its version 1."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from peft import LoraConfig

from agents.engines.weights import WeightsError, adapter_config, is_adapter
from sim.scenarios.located import nearest
from training import checkpoint
from training.plan import TrainingError
from training.policy import Base, Kind, Policy


def first(name: str) -> str:
    """The version that a training starts with; its folder stays, for whatever comes later is compared with it."""
    return f"{name}@1"


def read_start(texts: Collection[str]) -> dict[str, Path]:
    """`NAME=FOLDER` of the command line, by name. Raises TrainingError."""
    found = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            raise TrainingError(f"--policy {text}: write NAME=FOLDER, a learner and the folder of its weights")
        found[name] = Path(folder)
    return found


def check_start(start: Mapping[str, Path], learners: Collection[str]) -> None:
    """Raises TrainingError for a policy that nobody learns."""
    for name in start:
        if name not in learners:
            raise TrainingError(f"--policy {name}: no entry of models: learns it; {nearest(name, set(learners))}")


def brought(start: Mapping[str, Path], policies: Path) -> list[LoraConfig]:
    """Settings of the adapters that learners start from, from `policies` once the training has begun.

    Raises TrainingError for a folder that holds neither such an adapter nor a model.
    """
    found = []
    for name, source in start.items():
        own = policies / first(name)
        folder = own if own.exists() else source
        if is_adapter(folder):
            try:
                found.append(adapter_config(folder))
            except WeightsError as error:
                raise TrainingError(f"--policy {name}: {error}") from error
    return found


def started(base: Base, name: str, source: Path, own: Path, kind: Kind) -> Policy:
    """A policy with a folder's weights. Raises TrainingError.

    Where the training has begun, the first version in it, `own`, has them, so the source may be gone. An adapter keeps
    its rank and the layers that it changes, whatever the recipe says.
    """
    begun = checkpoint.read_notes(own.parent.parent) is not None
    try:
        policy = base.load(name, own if begun else source)
    except (WeightsError, OSError) as error:
        raise TrainingError(f"--policy {name}: {error}") from error
    if policy.kind != kind:
        raise TrainingError(f"--policy {name}: {source} is a {policy.kind} policy; set policy.kind={policy.kind}")
    policy.version = 0
    return policy
