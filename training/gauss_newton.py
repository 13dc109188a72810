"""Least squares by Gauss–Newton, in the space of what a model says: few outputs, many weights.

A step along gradients alone learns what all outputs have in common hundreds of times faster than what tells them apart.
The solved step moves every output by what it lacks, to first order, with the smallest change of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def jacobian(outputs_r: Tensor, parameters: Sequence[torch.nn.Parameter]) -> Tensor:
    """Derivatives of every output by every weight, [r, p]; zeros where a weight takes no part."""
    rows = [
        torch.autograd.grad(output, parameters, retain_graph=i + 1 < len(outputs_r), materialize_grads=True)
        for i, output in enumerate(outputs_r)
    ]
    return torch.stack([torch.cat([each.reshape(-1) for each in row]) for row in rows])


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
