"""What a loss says of itself: clip fraction, KL, effective sample size, entropy, ratios that left [0.9, 1.1].

Kept as sums over learnt tokens, merged rows counted as often as they stand for, so that micro-batches add up exactly.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from training.streams import Streams

NEAR = (0.9, 1.1)


@dataclass(frozen=True)
class Diagnostics:
    """Sums over learnt tokens; `a + b` is that of both micro-batches."""

    tokens: float = 0.0
    clipped: float = 0.0
    """Tokens whose policy gradient the trust region stopped."""
    kl: float = 0.0
    """Σ ρ − 1 − log ρ, whose mean estimates KL of the denominator's policy against π."""
    ratio: float = 0.0
    """Σ ρ."""
    ratio_squared: float = 0.0
    far: float = 0.0
    """Tokens with ρ outside [0.9, 1.1]."""
    entropy: float = 0.0
    """In nats; NaN where it was not computed."""
    compared: float = 0.0
    """Tokens whose μ is known."""
    mismatched: float = 0.0
    """Tokens of these with π_old/μ outside [0.9, 1.1]."""

    @classmethod
    def of(
        cls,
        streams: Streams,
        rho_n: Tensor,
        clipped_n: Tensor,
        entropy_n: Tensor | None = None,
        mismatch_n: Tensor | None = None,
    ) -> Diagnostics:
        """Of a micro-batch's ratios [n], entropies [n] and log(π_old/μ) [n]; nothing keeps a gradient."""
        learnt_n = streams.count_n * ((streams.weight_n > 0) | (streams.positive_n > 0) | (streams.negative_n < 0))
        ones_n = torch.ones_like(rho_n)
        sums = [
            ones_n,
            clipped_n,
            rho_n - 1 - rho_n.log(),
            rho_n,
            rho_n.square(),
            _far(rho_n),
            ones_n * torch.nan if entropy_n is None else entropy_n.detach(),
            ones_n * (mismatch_n is not None),
            ones_n * 0 if mismatch_n is None else _far(mismatch_n.exp()),
        ]
        return cls(*torch.stack([(learnt_n * each).sum() for each in sums]).tolist())

    def __add__(self, other: Diagnostics) -> Diagnostics:
        return Diagnostics(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def means(self) -> dict[str, float]:
        """The numbers to report; `ess` is the effective sample size as a share of the tokens."""
        tokens = self.tokens or 1.0
        return {
            "tokens": self.tokens,
            "clip_fraction": self.clipped / tokens,
            "kl": self.kl / tokens,
            "ess": self.ratio**2 / (tokens * self.ratio_squared) if self.ratio_squared else 1.0,
            "ratio_far": self.far / tokens,
            "entropy": self.entropy / tokens,
            "mismatch_far": self.mismatched / self.compared if self.compared else float("nan"),
        }


def _far(ratio_n: Tensor) -> Tensor:
    return (ratio_n < NEAR[0]) | (ratio_n > NEAR[1])
