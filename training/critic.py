"""Critics: small heads that say what states are worth, on the last hidden states of the policy that they value.

They read the hidden states and do not pull on them: a value loss moves heads only, at a rate of their own. Hidden
states of like prompts are nearly the same, so heads see how far each is from the mean of the first ones that they met,
in standard deviations of those. Predictions start at 0. Where a seat's next decision is worth G, the state after the
one before it is, too: so a head knows states that end with an answer, which is where trajectories that are cut short
are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import fsum, nan
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor

from sim.streams import Streams
from sim.types import Tokens
from training.extras import PerToken, Values
from training.forward import Weights, predict
from training.keys import learnable
from training.packing import pack
from training.paths import trajectories
from training.rows import Floats, Sample
from training.trajectory import Row

WIDTH = 64
"""Units of a head's hidden layer."""
LEAST = 1e-3
"""Deviations are taken for no smaller than this: below it is what rounding makes."""
BUDGET = 8192
"""Padded tokens of a micro-batch that is only read."""


class Critic:
    """The heads of one learner, and their optimiser. The same seed and name give the same heads."""

    def __init__(self, heads: Sequence[str], size: int, *, seed: int = 0, name: str = "") -> None:
        self._heads = torch.nn.ModuleDict(
            {head: _head(size, Streams(seed).seed("critic", name, head)) for head in heads}
        )
        self._optimiser = torch.optim.AdamW([{"params": list(self._heads.parameters())}], weight_decay=0.0)

    def __bool__(self) -> bool:
        """Whether there are any heads."""
        return bool(self._heads)

    def values(self, hidden_nh: Tensor) -> dict[str, Tensor]:
        """V of each head at hidden states, [n], with the heads' gradient only."""
        hidden_nh = hidden_nh.detach().float()
        return {name: head(hidden_nh)[:, 0] for name, head in self._heads.items()}

    def new(self, heads: Sequence[str]) -> list[str]:
        """Those of the heads that have met no states yet."""
        return [name for name in heads if not self._heads[name][0].known]

    def meet(self, heads: Sequence[str], hidden: Iterable[Tensor]) -> None:
        """Take these states, [n, h] each, for what states are like."""
        found = torch.cat([_normal(each) for each in hidden])
        for name in heads:
            self._heads[name][0].meet(found)

    def step(self, rate: float, limit: float | None) -> None:
        """One step from the gradients there are, clipped to a norm, which are gone then."""
        torch.nn.utils.clip_grad_norm_(list(self._heads.parameters()), torch.inf if limit is None else limit)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)

    def to(self, device: torch.device | str) -> None:
        """Move to a device, before the first step."""
        self._heads.to(device)

    def state(self) -> dict[str, Any]:
        """Heads and optimiser, for a checkpoint."""
        return {"heads": self._heads.state_dict(), "optimiser": self._optimiser.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state` of the same heads."""
        self._heads.load_state_dict(state["heads"])
        self._optimiser.load_state_dict(state["optimiser"])


def _head(size: int, seed: int) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    first = torch.nn.utils.skip_init(torch.nn.Linear, size, WIDTH)
    last = torch.nn.utils.skip_init(torch.nn.Linear, WIDTH, 1)
    torch.nn.init.normal_(first.weight, std=size**-0.5, generator=generator)
    for zero in (first.bias, last.weight, last.bias):
        torch.nn.init.zeros_(zero)
    return torch.nn.Sequential(_Standard(size), first, torch.nn.Tanh(), last)


class _Standard(torch.nn.Module):  # type: ignore[misc]
    """Normalised states by the mean and deviation of the first ones met; until then as they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))
        self.register_buffer("known", torch.tensor(False))

    def meet(self, states_nh: Tensor) -> None:
        self.mean.copy_(states_nh.mean(0))
        self.scale.copy_(states_nh.std(0, correction=0).clamp(min=LEAST))
        self.known.fill_(True)

    def forward(self, hidden_nh: Tensor) -> Tensor:
        states_nh: Tensor = (_normal(hidden_nh) - self.mean) / self.scale
        return states_nh


def _normal(hidden_nh: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(hidden_nh.detach().float(), hidden_nh.shape[-1:])


# --- what heads say of rows -------------------------------------------------------------------------------


class Valuer(Struct, frozen=True):
    """A policy's weights and the critic that reads them."""

    weights: Weights
    critic: Critic


def read_values(
    rows: Sequence[Row], valuers: Mapping[str, Valuer], heads: Sequence[str], by: Mapping[int, str] | None = None
) -> dict[str, Values]:
    """V of every decision of seats that learn, and after it; each distinct prompt and answer is read once.

    `valuers` are by the policy's name; a decision that somebody else took is valued by the policy of its seat. Where
    nothing was asked, or nobody learns, there is nothing to read: 0 and no value. `by`: the policy's name of each row,
    where the rows themselves do not say it.
    """
    whose = _whose(rows, valuers) if by is None else by
    asked: dict[str, dict[tuple[Tokens, Tokens], list[int]]] = {}
    for index, name in whose.items():
        row = rows[index]
        if row.prompt:
            asked.setdefault(name, {}).setdefault((row.prompt, row.ids), []).append(index)
    blank: list[Floats] = [(0.0,) if index in whose else () for index in range(len(rows))]
    found = {head: list(blank) for head in heads}
    after = {head: [0.0] * len(rows) for head in heads}
    for name, questions in asked.items():
        said = _read(list(questions), valuers[name], heads)
        for number, indices in enumerate(questions.values()):
            for head in heads:
                *inside, last = said[head][number]
                for index in indices:
                    found[head][index], after[head][index] = tuple(inside or [last]), last
    return {head: Values(rows=tuple(found[head]), after=tuple(after[head])) for head in heads}


def read_states(
    rows: Sequence[Row],
    before: Sequence[Tokens],
    after: Sequence[Tokens],
    valuers: Mapping[str, Valuer],
    heads: Sequence[str],
) -> dict[str, Values]:
    """As `read_values`, of critics that see the whole state: one value of the state that a row's turn starts from.

    `before` and `after` hold the states as tokens, by row.
    """
    told = [replace(row, prompt=state, ids=()) for row, state in zip(rows, before, strict=True)]
    then = [replace(row, prompt=state, ids=()) for row, state in zip(rows, after, strict=True)]
    now, later = (read_values(each, valuers, heads, _whose(rows, valuers)) for each in (told, then))
    return {head: Values(rows=now[head].rows, after=later[head].after) for head in heads}


def _whose(rows: Sequence[Row], valuers: Mapping[str, Valuer]) -> dict[int, str]:
    """The policy's name by whom each row of a learning seat is valued."""
    found: dict[int, str] = {}
    for path in trajectories(rows):
        inside = [index for decision in path for index in decision]
        names = (rows[index].policy.partition("@")[0] for index in inside if learnable(rows[index]))
        if name := next((name for name in names if name in valuers), ""):
            found |= dict.fromkeys(inside, name)
    return found


def _read(
    questions: Sequence[tuple[Tokens, Tokens]], valuer: Valuer, heads: Sequence[str]
) -> dict[str, list[list[float]]]:
    """By head, V before each token of every answer and after its last one."""
    asked = [_fed(prompt, ids, {"": (nan,) * (len(ids) + 1)}) for prompt, ids in questions]
    if new := valuer.critic.new(heads):
        valuer.critic.meet(new, (hidden_nh for _, hidden_nh in _hidden(asked, valuer)))
    found: dict[str, list[list[float]]] = {head: [[] for _ in asked] for head in heads}
    for places, hidden_nh in _hidden(asked, valuer):
        values = valuer.critic.values(hidden_nh)
        sizes = [len(asked[place].ids) for place in places]
        for head in heads:
            for place, each in zip(places, values[head].split(sizes), strict=True):
                found[head][place] = each.tolist()
    return found


def _hidden(asked: Sequence[Sample], valuer: Valuer) -> Iterator[tuple[Sequence[int], Tensor]]:
    """Which of the sequences, and all of their states, [n, h], micro-batch by micro-batch."""
    with valuer.weights() as model, torch.no_grad():
        for batch in pack(asked, BUDGET):
            yield batch.places, predict(model, batch.to(model.device)).hidden_nh


def _fed(prompt: Tokens, ids: Tokens, targets: Mapping[str, Floats], worth: Floats = ()) -> Sample:
    """A sequence whose every state is read: those before each token of an answer, and the one after it.

    Its tokens have no alternatives, so their log-probabilities are 0 and cost nothing.
    """
    fed = (*ids, (ids or prompt)[-1])
    return Sample(prompt=prompt, ids=fed, allowed=tuple((each,) for each in fed), targets=targets, worth=worth, count=0)


# --- what heads learn from rows ------------------------------------------------------------------------------


def following(rows: Sequence[Row]) -> dict[int, int]:
    """The row of its seat's next decision, by index; none for the last of a trajectory."""
    return {index: after[0] for path in trajectories(rows) for before, after in pairwise(path) for index in before}


def value_samples(rows: Sequence[Row], indices: Sequence[int], targets: Mapping[str, PerToken]) -> list[Sample]:
    """The states of the rows at `indices` that have targets, all alike in the mean.

    The state after a decision has the first target of its seat's next one.
    """
    aims: dict[int, dict[str, Floats]] = {}
    for head, each in targets.items():
        later = _later(rows, each)
        for index in indices:
            tokens = len(rows[index].ids)
            if tokens and (each[index] or index in later):
                inside = each[index] or (nan,)
                inside = inside if len(inside) == tokens else inside * tokens
                aims.setdefault(index, {})[head] = (*inside, later.get(index, nan))
    total = sum(len(rows[index].ids) + 1 for index in aims)
    return [
        _fed(rows[index].prompt, rows[index].ids, each, (1 / total,) * (len(rows[index].ids) + 1))
        for index, each in aims.items()
    ]


def _later(rows: Sequence[Row], targets: PerToken) -> dict[int, float]:
    """The first target of its seat's next decision, by a decision's last row."""
    found: dict[int, float] = {}
    for path in trajectories(rows):
        for before, after in pairwise(path):
            if aims := [each for index in after for each in targets[index]]:
                found[before[-1]] = aims[0]
    return found


def state_samples(states: Sequence[Tokens], indices: Sequence[int], targets: Mapping[str, PerToken]) -> list[Sample]:
    """As `value_samples`, for critics that see the whole state: one state a row."""
    aims: dict[int, dict[str, Floats]] = {}
    for index in indices:
        for head, each in targets.items():
            if each[index] and states[index]:
                aims.setdefault(index, {})[head] = each[index][:1]
    return [_fed(states[index], (), each, (1 / len(aims),)) for index, each in aims.items()]


def explained(values: Values, targets: PerToken) -> float:
    """1 − Σ(G − V)²/Σ(G − mean G)² over all values that have a target; 0 where all targets are equal."""
    pairs = [
        pair for each, aims in zip(values.rows, targets, strict=True) if aims for pair in zip(each, aims, strict=True)
    ]
    if not pairs:
        return 0.0
    mean = fsum(aim for _, aim in pairs) / len(pairs)
    spread = fsum((aim - mean) ** 2 for _, aim in pairs)
    return 1 - fsum((aim - value) ** 2 for value, aim in pairs) / spread if spread > 0 else 0.0
