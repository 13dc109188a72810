"""All that learns in one training: policies, what moves each of them, and the earlier selves they are anchored to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from training.averages import imitating, responding
from training.constraint import Masks, Texts
from training.learner import Learner
from training.plan import Plan
from training.policy import Base, Policy
from training.reward import Anchored
from training.starting import first, started

REFERENCE = "reference"
"""What is added to a policy's name for the earlier self that its rewards are anchored to."""


class Ensemble:
    """All by the name of the policy, in the order of the names. `imitators` learn from labels only.

    Raises WeightsError where a policy cannot start from what the plan says.
    """

    def __init__(
        self,
        plan: Plan,
        base: Base,
        names: Collection[str],
        imitators: Collection[str],
        folder: Path,
        masks: Masks,
        texts: Texts,
    ) -> None:
        self._plan, self._base, self._imitators, self._folder = plan, base, imitators, folder
        self._masks, self._texts = masks, texts
        self.policies = {name: self._policy(name) for name in sorted(names)}
        self.references = self._references()
        """Frozen; empty where no reward is anchored."""
        self.learners = {name: self._learner(name) for name in self.policies}

    @property
    def labels(self) -> dict[str, str]:
        """The newest version of every policy, `name@v`."""
        return {name: one.label for name, one in self.policies.items()}

    @property
    def versions(self) -> dict[str, int]:
        """The newest version of every policy."""
        return {name: one.version for name, one in self.policies.items()}

    def start_anew(self, name: str) -> Policy:
        """Take a policy back to its first version, with an optimiser and a reference that know nothing later."""
        policy = self.policies[name]
        policy.start_anew(self._folder / f"{name}@1")
        self.learners[name] = self._learner(name)
        if name in self.references:
            self.references[name].restore(policy.tensors())
        return policy

    def renew(self, updates: int) -> None:
        """After so many updates: references become the policies as they are, where it is time for it."""
        for source in self._plan.recipe.reward:
            if isinstance(source, Anchored) and updates % source.renew == 0:
                for name, reference in self.references.items():
                    reference.restore(self.policies[name].tensors())

    def tensors(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "policies": {name: one.tensors() for name, one in self.policies.items()},
            "references": {name: one.tensors() for name, one in self.references.items()},
            "optimisers": {name: one.optimiser.state_dict() for name, one in self.learners.items()},
            "critics": {name: one.critic.state() for name, one in self.learners.items()},
        }

    def restore(self, tensors: Mapping[str, Any], versions: Mapping[str, int]) -> None:
        """From a checkpoint."""
        for name, policy in self.policies.items():
            policy.restore(tensors["policies"][name])
            policy.version = versions[name]
            self.learners[name].optimiser.load_state_dict(tensors["optimisers"][name])
            self.learners[name].critic.restore(tensors["critics"][name])
        for name, reference in self.references.items():
            reference.restore(tensors["references"][name])

    def _learner(self, name: str) -> Learner:
        part = imitating if name in self._imitators else responding
        recipe, seed = part(self._plan.recipe), self._plan.seed
        return Learner(self.policies[name], recipe, self._masks, self._texts, seed=seed)

    def _policy(self, name: str) -> Policy:
        settings = self._plan.recipe.policy
        learner = name.removesuffix(f"-{REFERENCE}")
        if source := self._plan.start.get(learner):
            return started(self._base, name, source, self._folder / first(learner), settings.kind)
        if settings.kind == "full":
            return self._base.create_full(name)
        return self._base.create(
            name,
            rank=settings.rank,
            alpha=settings.alpha,
            targets=settings.targets,
            layers=settings.layers,
            seed=self._plan.seed,
        )

    def _references(self) -> dict[str, Policy]:
        if not any(isinstance(source, Anchored) for source in self._plan.recipe.reward):
            return {}
        found = {}
        for name in (each for each in self.policies if each not in self._imitators):
            found[name] = self._policy(f"{name}-{REFERENCE}")
            found[name].restore(self.policies[name].tensors())
            found[name].train(False)
        return found
