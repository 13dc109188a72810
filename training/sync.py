"""From the trainer to the engine, and the proof that it arrived: publish a version, then ask the engine about it.

Every publish makes a new version with a folder, a name and (in the engine) an adapter of its own. The probe compares
the folder's hash with what was saved, and the engine's log-probabilities of fixed choices with the trainer's, within a
tolerance that is measured on the base model at the start. An update too small to see is no failure: it adds up, and
an adapter that never arrives is seen as soon as the sum is large enough.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from agents.engines.choices import ChoiceMask
from agents.engines.weights import fingerprint
from sim.types import Choice, Completion, Logprobs, Message, Request, Sampling, Tokens
from training.forward import option_logprobs
from training.matchup import name_of
from training.policy import ATTENTION, Base, Policy, Saved, retain, saved_in, versions

CANARY = "canary"
CANARY_RANK = 8
FACTOR = 4.0
"""The tolerance, in differences measured on the base model."""
LEAST = 1e-4
"""The least tolerance, in nats: what rounding in float32 may add to an adapter's own arithmetic."""
RAREST = -10.0
"""Log-probabilities below this count as this: rounding moves them more than anything else."""
PROBE = Request(
    messages=(Message(role="system", text="Choose."), Message(role="user", text="The price is 80.")),
    format=Choice(options=("buy 1 apple", "buy 2 apples", "buy 2 pears", "sell", "sell all", "wait")),
)
"""Options of several tokens, with beginnings in common."""

Values: TypeAlias = tuple[float, ...]
"""log P of every option of every probe, in order."""


class DeliveryError(Exception):
    """The engine doesn't answer with the weights that were published; one line that says with which it does."""


class PolicyEngine(Protocol):
    """An engine that takes policies while it runs."""

    mask: Callable[[tuple[str, ...]], ChoiceMask]

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call."""

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """Log-probabilities of given answers."""

    def add_policy(self, name: str, folder: str | Path) -> None:
        """Serve a folder's weights. Raises ValueError."""

    def remove_policy(self, name: str) -> None:
        """Serve them no longer once open calls are answered. Raises ValueError."""


class Published(NamedTuple):
    """A version that the engine serves, as the probe found it."""

    saved: Saved
    folder: Path
    error: float
    """Largest difference between the engine's log-probabilities and the trainer's, nats."""
    moved: float
    """Largest difference to what the engine said of the version before (of the base model, for a first one)."""
    seen: bool
    """Whether the update was large enough to be seen."""


class Publisher:
    """Brings policies of one base model to one engine that serves the same model.

    `root`: the folder of the versions. `probes`: choices that the engine is asked about after every delivery; the
    closer to what is trained, the smaller the updates that are seen. Of each policy the last `keep` versions stay, and
    on disk those in `named`, which may change at any time. Raises DeliveryError where the engine and the trainer differ
    on the base model by more than `most` nats.
    """

    def __init__(
        self,
        engine: PolicyEngine,
        base: Base,
        root: str | Path,
        *,
        probes: Sequence[Request] = (PROBE,),
        keep: int = 2,
        named: Collection[str] = (),
        most: float = 0.5,
    ) -> None:
        self._engine, self._base, self._root, self._keep = engine, base, Path(root), keep
        self.named = set(named)
        """Versions that stay on disk whatever their age."""
        self._probes = [replace(probe, policy="", sampling=Sampling(temperature=1.0)) for probe in probes]
        # The prompt's ids as the engine has them: nothing is tokenised twice.
        prompts = [engine.submit(probe).result().prompt_ids for probe in self._probes]
        self._questions = list(zip(prompts, map(self._mask, self._probes), strict=True))
        self._served: dict[str, Values] = {}
        self._guests: list[str] = []
        self._plain = self._engine_values("")
        error = difference(self._plain, self._trainer_values(base.plain()))
        if error > most:
            raise DeliveryError(f"engine and trainer differ on the base model by {error:.2g} nats: two models?")
        self.tolerance = max(FACTOR * error, LEAST)
        """Nats by which the engine may differ from the trainer."""

    @property
    def served(self) -> list[str]:
        """Versions that the engine serves, in the order in which they were delivered; guests not among them."""
        return list(self._served)

    def prove(self, seed: int = 0, targets: Sequence[str] = ATTENTION) -> Published:
        """Publish an adapter with large weights, see that it acts, and remove it. Raises DeliveryError."""
        shutil.rmtree(self._root / f"{CANARY}@1", ignore_errors=True)
        canary = self._base.create(CANARY, rank=CANARY_RANK, targets=targets, seed=seed)
        try:
            canary.shake(seed, 0.1)
            published = self.publish(canary)
            self.remove(published.saved.label)
            if published.moved < 10 * self.tolerance:
                raise DeliveryError(f"adapters don't act: large weights moved the engine by {published.moved:.2g} nats")
        finally:
            self._base.drop(canary)
            shutil.rmtree(self._root / f"{CANARY}@1", ignore_errors=True)
        return published

    def publish(self, policy: Policy) -> Published:
        """Save the policy's next version, have the engine serve it, prove it. Raises DeliveryError."""
        published = self.deliver(policy, policy.save(self._root))
        self._retire(policy.name)
        return published

    def deliver(self, policy: Policy, saved: Saved) -> Published:
        """Have the engine serve a version that is on disk and that `policy` holds, and prove it.

        Raises DeliveryError, with the version removed from the engine.
        """
        folder = self._root / saved.label
        if fingerprint(folder) != saved.hash:
            raise DeliveryError(f"{folder} holds other weights than were saved as {saved.label}")
        self._add(saved.label)
        try:
            return self._proved(policy, saved, folder)
        except BaseException:
            self._engine.remove_policy(saved.label)
            raise

    def deliver_again(self, policy: Policy) -> Published:
        """After a restart: have the engine serve the policy's last versions, which are on disk, and prove the newest.

        Raises DeliveryError, WeightsError.
        """
        older = [version for version in versions(self._root, policy.name) if version < policy.version]
        for version in older[max(0, len(older) - self._keep + 1) :]:
            label = f"{policy.name}@{version}"
            self._add(label)
            self._served[label] = self._engine_values(label)
        return self.deliver(policy, saved_in(self._root / policy.label))

    def withdraw(self) -> None:
        """Have the engine forget every version."""
        self.call_up(())
        for label in self.served:
            self.remove(label)

    def call_up(self, labels: Iterable[str]) -> None:
        """Have the engine serve these versions too, older ones from disk as guests; those called up before go.

        Raises DeliveryError.
        """
        wanted = [label for label in dict.fromkeys(labels) if label not in self._served]
        for label in [label for label in self._guests if label not in wanted]:
            self._engine.remove_policy(label)
            self._guests.remove(label)
        for label in [label for label in wanted if label not in self._guests]:
            self._add(label)
            self._guests.append(label)

    def remove(self, label: str) -> None:
        """Have the engine forget a version once its open calls are answered; its folder stays."""
        self._engine.remove_policy(label)
        del self._served[label]

    def _add(self, label: str) -> None:
        try:
            self._engine.add_policy(label, self._root / label)
        except ValueError as error:
            raise DeliveryError(f"the engine refused {label}: {error}") from error

    def _proved(self, policy: Policy, saved: Saved, folder: Path) -> Published:
        wanted = self._trainer_values(policy.active())
        found = self._engine_values(saved.label)
        error = difference(wanted, found)
        if error > self.tolerance:
            raise DeliveryError(f"the engine was told to serve {saved.label} and serves {self._whose(found)}: "
                                f"off by {error:.2g} nats, {self.tolerance:.2g} allowed")  # fmt: skip
        moved = difference(found, self._served.get(saved.parent, self._plain))
        self._served[saved.label] = found
        return Published(saved, folder, error, moved, moved > self.tolerance)

    def _whose(self, found: Values) -> str:
        """Which weights give these values."""
        known = {"the base model": self._plain} | {f"the old {label}": old for label, old in self._served.items()}
        name = min(known, key=lambda one: difference(known[one], found))
        return name if difference(known[name], found) <= self.tolerance else "weights it was never given"

    def _retire(self, name: str) -> None:
        """Remove the versions of a policy that needn't stay."""
        for label in [label for label in self._served if name_of(label) == name][: -self._keep]:
            self.remove(label)
        retain(self._root, name, self._keep, self.named)

    def _mask(self, probe: Request) -> ChoiceMask:
        if not isinstance(probe.format, Choice):
            raise ValueError("a probe asks for a choice")
        return self._engine.mask(probe.format.options)

    def _engine_values(self, label: str) -> Values:
        asked = [
            (replace(request, policy=label), sequence)
            for request, (_, mask) in zip(self._probes, self._questions, strict=True)
            for sequence in mask.sequences
        ]
        requests, sequences = zip(*asked, strict=True)
        return tuple(sum(each) for each in self._engine.score(requests, sequences).result())

    def _trainer_values(self, active: AbstractContextManager[Any]) -> Values:
        with active as model:
            return tuple(value for each in option_logprobs(model, self._questions) for value in each)


def difference(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest difference of a log-probability, in nats."""
    return max(abs(max(a, RAREST) - max(b, RAREST)) for a, b in zip(one, other, strict=True))
