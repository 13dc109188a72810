"""What the loss knows of every scored token before the model is asked: the samples of a micro-batch as flat tensors.

Dimensions: n scored tokens, of all samples one after another; s samples; b bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from training.rows import Floats, Sample
from training.slots import Unit


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Per-token, per-sample and per-bundle numbers; floats are float32."""

    sample_n: Tensor
    """The sample that each token is of."""
    count_n: Tensor
    """Rows that it stands for."""
    weight_n: Tensor
    positive_n: Tensor
    negative_n: Tensor
    label_n: Tensor
    observed_n: Tensor
    worth_n: Tensor
    """These six as in `Sample`."""
    behaviour_n: Tensor | None
    """log μ; None where a token that has a weight lacks it."""
    centre_n: Tensor | None
    """H̄ in nats; None where a token that has a weight lacks it."""
    targets: Mapping[str, Tensor]
    """By head, [n]; NaN: none."""
    units: Mapping[Unit, Tensor]
    """Number of each token's turn, segment and sequence, [n]."""
    bundle_s: Tensor
    """Number of each sample's bundle; -1: none."""
    preference_s: Tensor

    @property
    def tokens(self) -> int:
        """Scored tokens, n."""
        return len(self.sample_n)

    @property
    def samples(self) -> int:
        """Samples, s."""
        return len(self.bundle_s)

    def to(self, device: torch.device | str) -> Streams:
        """The same on another device."""
        moved = {name: each.to(device) for name, each in vars(self).items() if isinstance(each, Tensor)}
        maps = {
            name: {key: each.to(device) for key, each in getattr(self, name).items()} for name in ("targets", "units")
        }
        return replace(self, **moved, **maps)


def streams(samples: Sequence[Sample]) -> Streams:
    """The streams of a micro-batch, on the CPU."""

    def flat(of: Callable[[Sample], Floats], missing: float = 0.0) -> Tensor:
        return torch.tensor([x for one in samples for x in of(one) or (missing,) * len(one.ids)], dtype=torch.float32)

    def known(of: Callable[[Sample], Floats]) -> Tensor | None:
        lacking = any(not of(one) and (one.weight or one.positive or one.negative) for one in samples)
        return None if lacking else flat(of)

    def units(name: Callable[[Sample], str]) -> Tensor:
        numbers: dict[object, int] = {}
        each = [numbers.setdefault(name(one) or i, len(numbers)) for i, one in enumerate(samples)]
        return torch.tensor(each)[sample_n]

    bundles: dict[str, int] = {}
    sample_n = torch.tensor([i for i, one in enumerate(samples) for _ in one.ids])
    return Streams(
        sample_n=sample_n,
        count_n=torch.tensor([float(one.count) for one in samples])[sample_n],
        weight_n=flat(lambda one: one.weight),
        positive_n=flat(lambda one: one.positive),
        negative_n=flat(lambda one: one.negative),
        label_n=flat(lambda one: one.label),
        observed_n=flat(lambda one: one.observed),
        worth_n=flat(lambda one: one.worth),
        behaviour_n=known(lambda one: one.behaviour),
        centre_n=known(lambda one: one.centre),
        targets={
            head: flat(lambda one, head=head: one.targets.get(head, ()), torch.nan)  # type: ignore[misc]
            for head in sorted({head for one in samples for head in one.targets})
        },
        units={
            "turn": sample_n,
            "segment": units(lambda one: one.segment),
            "sequence": units(lambda one: one.sequence),
        },
        bundle_s=torch.tensor([bundles.setdefault(one.bundle, len(bundles)) if one.bundle else -1 for one in samples]),
        preference_s=torch.tensor([one.preference for one in samples]),
    )
