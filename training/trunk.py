"""The lower layers of a model that nothing trains: computed once, however many steps are taken above them.

Between two steps of one update only the layers with trained weights say something new. What goes into the lowest of
them is kept with each micro-batch, and later forwards begin there; numbers and gradients are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from training.forward import causal, hidden
from training.packing import Batch


def lowest(model: Any, parameters: Sequence[nn.Parameter]) -> int:
    """Number of the lowest decoder layer with one of these weights; 0 where there are others outside of the layers."""
    wanted = set(map(id, parameters))
    found = [
        i for i, layer in enumerate(causal(model).base_model.layers) for p in layer.parameters() if id(p) in wanted
    ]
    return min(found) if len(found) == len(wanted) else 0


def computed(model: Any, batches: Sequence[Batch], first: int) -> list[Batch]:
    """The micro-batches with what goes into layer `first` of the model as it is now."""
    if not first:
        return list(batches)
    with torch.no_grad(), _only(model, slice(first), nn.Identity()):
        return [replace(batch, below_blh=hidden(model, batch)) for batch in batches]


def above(model: Any, first: int) -> AbstractContextManager[None]:
    """Inside, the model is its layers from `first` on, to be fed with micro-batches of `computed`."""
    return _only(model, slice(first, None))


@contextmanager
def _only(model: Any, layers: slice, norm: Callable[..., Any] | None = None) -> Iterator[None]:
    decoder = causal(model).base_model
    whole, last = decoder.layers, decoder.norm
    decoder.layers, decoder.norm = whole[layers], norm or last
    try:
        yield
    finally:
        decoder.layers, decoder.norm = whole, last
