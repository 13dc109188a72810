"""Least squares by Gauss–Newton, in the space of what a model says: few outputs, many weights.

A step along gradients alone learns what all outputs have in common hundreds of times faster than what tells them apart.
The solved step moves every output by what it lacks, to first order, with the smallest change of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Equations:
    """What outputs lack, and their derivatives by the weights, gathered output by output until they are solved."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._size = sum(parameter.numel() for parameter in parameters)
        self._jacobian_rp = torch.empty(0, self._size, device=parameters[0].device)
        """Room, with rows to spare: fresh memory for each step costs more than what is written there."""
        self._residuals: list[Tensor] = []
        self._rows = 0

    @property
    def jacobian_rp(self) -> Tensor:
        """Derivatives of every output so far by every weight, [r, p]."""
        return self._jacobian_rp[: self._rows]

    def add(self, outputs_r: Tensor) -> None:
        """Outputs of one graph, which is gone afterwards. A weight that takes no part has the derivative zero."""
        for i, output in enumerate(outputs_r):
            retained = i + 1 < len(outputs_r)
            parts = torch.autograd.grad(output, self._parameters, retain_graph=retained, allow_unused=True)
            places = self._next_row().split([parameter.numel() for parameter in self._parameters])
            for place, part in zip(places, parts, strict=True):
                if part is None:
                    place.zero_()
                else:
                    place.copy_(part.reshape(-1))
        self._residuals.append(outputs_r.detach())

    def _next_row(self) -> Tensor:
        if self._rows == len(self._jacobian_rp):
            more = torch.empty(max(16, self._rows), self._size, device=self._jacobian_rp.device)
            self._jacobian_rp = torch.cat([self._jacobian_rp, more])
        self._rows += 1
        return self._jacobian_rp[self._rows - 1]

    def solved(self, damping: float, reach: float) -> Tensor:
        """The direction, [p]; the next outputs begin new equations."""
        found = direction(self.jacobian_rp, torch.cat(self._residuals), damping, reach)
        self._residuals.clear()
        self._rows = 0
        return found


def direction(jacobian_rp: Tensor, residual_r: Tensor, damping: float, reach: float) -> Tensor:
    """Jᵀ(JJᵀ + λI)⁻¹r with λ = `damping` times the mean of JJᵀ's diagonal, [p] (Levenberg 1944, Marquardt 1963).

    Taken away from the weights, it takes away the residual, to first order. Of a residual beyond `reach` a step takes
    only so much, all outputs scaled alike.
    """
    residual_r = residual_r * (reach / residual_r.abs().max().clamp(min=reach))
    gram_rr = jacobian_rp @ jacobian_rp.T
    gram_rr.diagonal().add_(damping * gram_rr.diagonal().mean())
    return jacobian_rp.T @ torch.linalg.solve(gram_rr, residual_r)


def assign(parameters: Sequence[torch.nn.Parameter], direction_p: Tensor) -> None:
    """Make a direction the gradient of the weights."""
    parts = direction_p.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)
