"""Packing: sequences that start alike share the forward of what they share.

Several sequences become one row of a batch: a tree of tokens in depth-first order, where a token attends to its
ancestors and itself and its position is its depth. So a prompt stands there once for all its completions, and
prompts that share a beginning share it too. Only tokens are fed from which something is read: none after the last one
that was really chosen. Micro-batches hold trees of about one length, within a budget of padded tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sim.types import Tokens
from training.rows import Sample
from training.streams import Streams, streams

SHARED = 0.5
"""A sequence joins a tree in which at least this share of its tokens stands already."""


@dataclass(frozen=True)
class Tree:
    """Sequences as one row of tokens."""

    ids: list[int]
    depth: list[int]
    """Position of each token in its sequence."""
    end: list[int]
    """One past the last token of each token's subtree: j is an ancestor of i, or i itself, where j <= i < end[j]."""
    samples: list[int]
    """Samples in it, by their place in the list that was packed."""
    nodes: list[list[int]]
    """Of each of them, the token that predicts each scored token, as far as they are fed."""


@dataclass(frozen=True, kw_only=True)
class Queries:
    """Distributions over next tokens that are wanted of a micro-batch, and the scored tokens that look into them.

    Dimensions: q queries, m scored tokens, k support entries of all queries one after another.
    """

    at_q: Tensor
    """Position of the predicting token in the flattened micro-batch."""
    temperature_q: Tensor
    token_m: Tensor
    """Number of the scored token, among all of the micro-batch."""
    query_m: Tensor
    pick_m: Tensor
    """Where the support is given, its entry of the support; else its token id."""
    ids_k: Tensor
    """Token ids of the supports; where these are the whole vocabulary, those that are banned."""
    query_k: Tensor

    def to(self, device: torch.device | str) -> Queries:
        """The same on another device."""
        return Queries(**{name: each.to(device) for name, each in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A micro-batch. Dimensions: b trees, l tokens of the longest one."""

    ids_bl: Tensor
    position_bl: Tensor
    end_bl: Tensor
    at_n: Tensor
    """Position, in the flattened micro-batch, of the token that predicts each scored token; -1: not fed."""
    choices: Queries
    """Over given supports."""
    open: Queries
    """Over the whole vocabulary."""
    places: tuple[int, ...]
    """Its samples, by their place in the list that was packed; the order of the streams."""
    streams: Streams
    below_blh: Tensor | None = None
    """What goes into the lowest layer that is trained, where that was computed before (`trunk`)."""

    def mask(self) -> Tensor:
        """Boolean attention mask [b, 1, l, l]: each token sees its ancestors and itself."""
        at_l = torch.arange(self.ids_bl.shape[1], device=self.ids_bl.device)
        return ((at_l[None, :] <= at_l[:, None]) & (at_l[:, None] < self.end_bl[:, None, :]))[:, None]

    def to(self, device: torch.device | str) -> Batch:
        """The same on another device."""
        moved = {name: getattr(self, name).to(device) for name in ("ids_bl", "position_bl", "end_bl", "at_n")}
        return replace(
            self, **moved, choices=self.choices.to(device), open=self.open.to(device), streams=self.streams.to(device)
        )


def pack(samples: Sequence[Sample], budget: int, *, share: bool = True) -> list[Batch]:
    """Micro-batches of at most `budget` padded tokens each, unless one unit of samples alone has more.

    Samples of one bundle, sequence or segment stay in one micro-batch, as their loss is one. Without `share` every
    sample is a row of its own. The same samples give the same batches.
    """
    return [_batch(samples, trees) for trees in _micro_batches(_blocks(samples, budget, share), budget)]


# --- what goes into one tree ----------------------------------------------------------------------


def _fed(sample: Sample) -> Tokens:
    """Tokens that have to be fed: the prompt, and the answer up to its last token that was chosen among several.

    A critic needs them all.
    """
    if sample.allowed is None or sample.targets:
        return (*sample.prompt, *sample.ids[:-1])
    last = max((i for i, allowed in enumerate(sample.allowed) if len(allowed) > 1), default=0)
    return (*sample.prompt, *sample.ids[:last])


@dataclass
class _Growing:
    """A tree to be, as the samples that go into it."""

    places: list[int]
    size: int
    """Its tokens, at most: what a sequence shares with the one before it is counted once."""
    first: Tokens
    last: Tokens

    def joined(self, other: _Growing, budget: int) -> bool:
        """Take the other tree in, if it begins enough like the end of this one and both fit into the budget."""
        shared = _common(self.last, other.first)
        if shared < SHARED * len(other.first) or self.size + other.size - shared > budget:
            return False
        self.places += other.places
        self.size += other.size - shared
        self.last = other.last
        return True


def _blocks(samples: Sequence[Sample], budget: int, share: bool) -> list[list[Tree]]:
    """Trees that have to be in one micro-batch, together."""
    fed = [_fed(sample) for sample in samples]
    bound: dict[object, list[int]] = {}
    for place in sorted(range(len(samples)), key=fed.__getitem__):
        one = samples[place]
        bound.setdefault(one.bundle or one.sequence or one.segment or place, []).append(place)
    blocks: list[list[_Growing]] = []
    for places in bound.values():
        block: list[_Growing] = []
        for place in places:
            tree = _Growing([place], len(fed[place]), fed[place], fed[place])
            if not (share and block and block[-1].joined(tree, budget)):
                block.append(tree)
        alone = share and len(block) == 1 and blocks and len(blocks[-1]) == 1
        if not (alone and blocks[-1][0].joined(block[0], budget)):
            blocks.append(block)
    return [[_tree(samples, fed, sorted(tree.places, key=fed.__getitem__)) for tree in block] for block in blocks]


def _common(a: Tokens, b: Tokens) -> int:
    """Length of the common beginning."""
    shorter = min(len(a), len(b))
    if a[:shorter] == b[:shorter]:
        return shorter
    return next(i for i in range(shorter) if a[i] != b[i])


def _tree(samples: Sequence[Sample], fed: Sequence[Tokens], places: list[int]) -> Tree:
    """The tree of sequences in lexicographic order, which makes it depth-first."""
    tree = Tree([], [], [], places, [])
    path: list[int] = []
    previous: Tokens = ()
    for place in places:
        sequence = fed[place]
        shared = _common(previous, sequence)
        for node in path[shared:]:
            tree.end[node] = len(tree.ids)
        path = [*path[:shared], *range(len(tree.ids), len(tree.ids) + len(sequence) - shared)]
        tree.ids.extend(sequence[shared:])
        tree.depth.extend(range(shared, len(sequence)))
        tree.end.extend([0] * (len(sequence) - shared))
        tree.nodes.append(path[len(samples[place].prompt) - 1 :])
        previous = sequence
    for node in path:
        tree.end[node] = len(tree.ids)
    return tree


# --- what goes into one micro-batch -----------------------------------------------------------------


def _micro_batches(blocks: list[list[Tree]], budget: int) -> list[list[Tree]]:
    """Blocks by length, as many together as the budget holds."""
    batches: list[list[Tree]] = []
    longest = 0
    for block in sorted(blocks, key=_longest, reverse=True):
        if batches and (len(batches[-1]) + len(block)) * longest <= budget:
            batches[-1].extend(block)
        else:
            batches.append(list(block))
            longest = _longest(block)
    return batches


def _longest(trees: Sequence[Tree]) -> int:
    return max(len(tree.ids) for tree in trees)


class _Asking:
    """Queries in the making; tokens that look into the same distribution share one."""

    def __init__(self) -> None:
        self.number: dict[tuple[int, float, Tokens], int] = {}
        self.token: list[int] = []
        self.query: list[int] = []
        self.pick: list[int] = []
        self.start: list[int] = []
        self.ids: list[int] = []
        self.query_of_id: list[int] = []

    def ask(self, token: int, at: int, temperature: float, allowed: Tokens, chosen: int) -> None:
        """What `token`, which is `chosen`, has for a log-probability among those that are allowed."""
        query = self._query(at, temperature, allowed)
        self._pick(token, query, self.start[query] + allowed.index(chosen))

    def ask_all(self, token: int, at: int, temperature: float, banned: Tokens, chosen: int) -> None:
        """As `ask`, among the whole vocabulary but for those that are banned."""
        self._pick(token, self._query(at, temperature, banned), chosen)

    def _query(self, at: int, temperature: float, ids: Tokens) -> int:
        query = self.number.setdefault((at, temperature, ids), len(self.number))
        if query == len(self.start):
            self.start.append(len(self.ids))
            self.ids.extend(ids)
            self.query_of_id.extend([query] * len(ids))
        return query

    def _pick(self, token: int, query: int, pick: int) -> None:
        self.token.append(token)
        self.query.append(query)
        self.pick.append(pick)

    def queries(self) -> Queries:
        """As tensors."""
        return Queries(
            at_q=torch.tensor([at for at, _, _ in self.number], dtype=torch.long),
            temperature_q=torch.tensor([temperature for _, temperature, _ in self.number], dtype=torch.float32),
            token_m=torch.tensor(self.token, dtype=torch.long),
            query_m=torch.tensor(self.query, dtype=torch.long),
            pick_m=torch.tensor(self.pick, dtype=torch.long),
            ids_k=torch.tensor(self.ids, dtype=torch.long),
            query_k=torch.tensor(self.query_of_id, dtype=torch.long),
        )


def _batch(samples: Sequence[Sample], trees: list[Tree]) -> Batch:
    width = _longest(trees)
    choices, whole = _Asking(), _Asking()
    places: list[int] = []
    at: list[int] = []
    for row, tree in enumerate(trees):
        for place, nodes in zip(tree.samples, tree.nodes, strict=True):
            sample = samples[place]
            places.append(place)
            fed = [row * width + node for node in nodes]
            for position, chosen in enumerate(sample.ids):
                if sample.allowed is None:
                    banned = sample.banned[position] if sample.banned else ()
                    whole.ask_all(len(at) + position, fed[position], sample.temperature, banned, chosen)
                # A token that had no alternative has log-probability 0, whatever the model says.
                elif len(allowed := sample.allowed[position]) > 1:
                    choices.ask(len(at) + position, fed[position], sample.temperature, allowed, chosen)
            at += fed + [-1] * (len(sample.ids) - len(fed))
    return Batch(
        ids_bl=_padded([tree.ids for tree in trees], [0] * width),
        position_bl=_padded([tree.depth for tree in trees], [0] * width),
        # A token of the padding sees itself alone: a row of the mask with nothing in it would be NaN.
        end_bl=_padded([tree.end for tree in trees], list(range(1, width + 1))),
        at_n=torch.tensor(at),
        choices=choices.queries(),
        open=whole.queries(),
        places=tuple(places),
        streams=streams([samples[place] for place in places]),
    )


def _padded(rows: list[list[int]], padding: list[int]) -> Tensor:
    return torch.tensor([row + padding[len(row) :] for row in rows])
