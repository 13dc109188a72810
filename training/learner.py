"""One policy's update: from rows and their estimate to new weights.

The rows become samples, equal samples one, and samples that start alike share their forward. An update is `epochs`
passes over `minibatches` parts of the episodes, one optimiser step each. The same rows, weights and number of threads
give the same weights, bit by bit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor

from sim.types import Tokens
from training import slots
from training.constraint import Masks, Texts, distribution
from training.critic import Critic, state_samples, value_samples
from training.diagnostics import Diagnostics
from training.estimate import Estimate
from training.forward import Weights, predict
from training.gauss_newton import Equations, assign
from training.loss import Scores, loss, step_divisor
from training.packing import Batch, pack
from training.pairs import pairs
from training.policy import Policy
from training.recipe import Optimiser, Recipe, heads_of
from training.rows import (
    Floats,
    Sample,
    labelled,
    merge,
    observed_samples,
    option_samples,
    pair_samples,
    ratio_units,
    samples,
    token_shares,
    units_looked_at,
)
from training.schedule import at
from training.trajectory import Row
from training.trunk import above, computed, lowest

SOLVED = 1e-4
"""Half the sum of squares at which Gauss-Newton stops before its last step."""
BUDGET = 4096
"""Padded tokens of a micro-batch."""


@dataclass(frozen=True)
class _Part:
    """One minibatch, as micro-batches with what other weights say of their tokens."""

    batches: list[Batch]
    old: list[Tensor | None]
    reference: list[Tensor | None]
    teacher: list[Tensor | None]
    valued: list[Mapping[str, Tensor]]
    """What critics said before the first step."""


class Learner:
    """Moves one policy's weights, and its critics'. `reference` and `teacher` are weights that its loss looks at.

    Where `ref_kl` names no teacher, the policy itself is it, as it is before the update.
    """

    def __init__(
        self,
        policy: Policy,
        recipe: Recipe,
        masks: Masks,
        texts: Texts | None = None,
        *,
        seed: int = 0,
        budget: int = BUDGET,
    ) -> None:
        self.policy, self.recipe = policy, recipe
        self._masks, self._texts, self._budget = masks, texts, budget
        self.optimiser = _optimiser(recipe.optimiser, policy.parameters())
        steps = recipe.optimiser.epochs * recipe.optimiser.minibatches
        with policy.active() as model:
            self._first = lowest(model, policy.parameters()) if steps > 1 else 0
            self.critic = Critic(heads_of(recipe), model.config.hidden_size, seed=seed, name=policy.name)
        self.critic.to(policy.parameters()[0].device)

    def learn(
        self,
        rows: Sequence[Row],
        found: Estimate,
        update: int,
        *,
        reference: Weights | None = None,
        teacher: Weights | None = None,
        lessons: Mapping[int, Sequence[Sample]] = MappingProxyType({}),
        centres: Sequence[Floats] = (),
        states: Sequence[Tokens] = (),
        shown: Sequence[Tokens] = (),
    ) -> dict[str, float]:
        """One update from the rows of this policy that the estimate keeps; with none of them nothing moves.

        `lessons` are what a teacher labelled, by row, each row of weight 1; they count alike in the mean. `centres` are
        the middles of the entropy band, of every row's tokens; `states` what critics read that see everything; `shown`
        what the teacher reads before every row's prompt. Its numbers: the loss and its terms, diagnostics, the
        gradient's norm before clipping, what was learnt from.
        """
        settings = self.recipe.optimiser
        for group in self.optimiser.param_groups:
            group["lr"] = at(settings.lr, update)
        steps = settings.epochs * settings.minibatches
        kept = {i for i in found.kept.indices if rows[i].trained}
        parts = [
            self._part(samples, steps, reference, teacher)
            for indices in _split(rows, sorted({*kept, *lessons}), settings.minibatches)
            if (
                samples := merge(
                    self._samples(rows, found, [i for i in indices if i in kept], centres, shown)
                    + self._valued_samples(rows, found, [i for i in indices if i in kept], states)
                    + labelled([lessons[i] for i in indices if i in lessons])
                )
            )
        ]
        sums: Counter[str] = Counter()
        seen, last, done = Diagnostics(), 0.0, 0
        equations = Equations(self.policy.parameters()) if settings.kind == "gauss_newton" else None
        for _ in range(settings.epochs):
            for part in parts:
                numbers, diagnostics = self._step(part, update, equations)
                sums.update(numbers)
                seen += diagnostics
                last = numbers["loss"]
                done += 1
            if equations and last < SOLVED:
                break
        means = {name: value / done for name, value in sums.items()} if done else {}
        counts = {"last_loss": last, "steps": done, "rows": sum(_rows(part) for part in parts)}
        return {**means, **seen.means(), **counts}

    # --- what is learnt from ------------------------------------------------------------------------

    def _samples(
        self,
        rows: Sequence[Row],
        found: Estimate,
        indices: Sequence[int],
        centres: Sequence[Floats],
        shown: Sequence[Tokens],
    ) -> list[Sample]:
        """The samples of one minibatch."""
        recipe = self.recipe
        made: list[Sample] = []
        kept = [rows[i] for i in indices]
        imitated = any(isinstance(extra, slots.CE) and extra.labels == "rows" for extra in recipe.extra)
        if isinstance(recipe.trust, slots.NeuRD | slots.NeuRDFit):
            credited = [i for i in indices if len(found.options[i]) > 1]  # one option is no decision
            shares = [1.0 if isinstance(recipe.trust, slots.NeuRDFit) else 1 / max(1, len(credited))] * len(credited)
            advantages = [found.options[i] for i in credited]
            made += option_samples([rows[i] for i in credited], advantages, shares, self._masks)
        elif recipe.credit or imitated or any(extra.kind == "ref_kl" for extra in recipe.extra):
            masks = [found.mask[i] for i in indices] if recipe.credit else ()
            spoken = [k for k, row in enumerate(kept) if row.ids and (not masks or any(masks[k]))]
            learnt = [kept[k] for k in spoken]
            counted = [masks[k] for k in spoken] if masks else ()
            shares_of = token_shares(learnt, recipe.aggregation, counted)
            units = units_looked_at(recipe.ratio, recipe.correction)
            made += samples(
                learnt,
                [found.advantages[indices[k]] for k in spoken],
                shares_of,
                lambda row: distribution(row, self._masks, self._texts),
                segments=ratio_units(learnt, "segment") if "segment" in units else (),
                sequences=ratio_units(learnt, "sequence") if "sequence" in units else (),
                labels=shares_of if imitated else (),
                centres=[centres[indices[k]] for k in spoken] if centres else (),
                shown=[shown[indices[k]] for k in spoken] if shown else (),
            )
        for extra in recipe.extra:
            if isinstance(extra, slots.DPO | slots.BT):
                chosen = pairs(rows, found.rewards, indices, extra.key, extra.unit, extra.pairs)
                both = [([rows[i] for i in one.better], [rows[i] for i in one.worse]) for one in chosen]
                made += pair_samples(both, lambda row: distribution(row, self._masks, self._texts))
            if isinstance(extra, slots.CEObs):
                made += observed_samples(kept)
        return made

    def _valued_samples(
        self, rows: Sequence[Row], found: Estimate, indices: Sequence[int], states: Sequence[Tokens]
    ) -> list[Sample]:
        """What critics learn from, each of what it reads."""
        seeing = set(heads_of(self.recipe, "state"))
        plain = {head: aims for head, aims in found.targets.items() if head not in seeing}
        whole = {head: aims for head, aims in found.targets.items() if head in seeing}
        return value_samples(rows, indices, plain) + (state_samples(states, indices, whole) if whole else [])

    def _part(self, made: Sequence[Sample], steps: int, reference: Weights | None, teacher: Weights | None) -> _Part:
        device = self.policy.parameters()[0].device
        solved = self.recipe.optimiser.kind == "gauss_newton"
        apart = _decisions(made) if solved else [made]
        batches = [batch.to(device) for each in apart for batch in pack(each, self._budget)]
        none: list[Tensor | None] = [None] * len(batches)
        recipe = self.recipe
        old = recipe.ratio.denominator == "old" or recipe.correction.kind != "none"
        moved = steps > 1 and (old or isinstance(recipe.trust, slots.NeuRDFit))
        wants_reference = any(isinstance(extra, slots.KLRef | slots.DPO | slots.BT) for extra in recipe.extra)
        pulls = [extra for extra in recipe.extra if isinstance(extra, slots.RefKL)]
        if pulls and not pulls[0].teacher:
            teacher = self.policy.active
        clipped = any(isinstance(extra, slots.Value) and extra.clip is not None for extra in recipe.extra)
        references = _scored(reference, batches) if reference is not None and wants_reference else none
        teachers = self._taught(teacher, made, batches) if teacher is not None and pulls else none
        with self.policy.active() as model:
            batches = computed(model, batches, self._first)
        olds = _scored(self._above, batches) if moved else none
        valued = self._valued(batches) if clipped and steps > 1 else [{} for _ in batches]
        return _Part(batches, olds, references, teachers, valued)

    def _taught(self, teacher: Weights, made: Sequence[Sample], batches: Sequence[Batch]) -> list[Tensor | None]:
        """What the teacher says of the batches' tokens after what it is shown and their prompts."""
        if not any(one.shown for one in made):
            return _scored(teacher, batches)
        device = self.policy.parameters()[0].device
        apart = [replace(one, prompt=(*one.shown, *one.prompt), shown=()) for one in made]
        longer = [batch.to(device) for batch in pack(apart, self._budget)]
        said: dict[int, Tensor] = {}
        for batch, said_n in zip(longer, _scored(teacher, longer), strict=True):
            assert said_n is not None
            said |= zip(batch.places, said_n.split([len(made[place].ids) for place in batch.places]), strict=True)
        return [torch.cat([said[place] for place in batch.places]) for batch in batches]

    @contextmanager
    def _above(self) -> Iterator[Any]:
        """The policy's model from its lowest trained layer on."""
        with self.policy.active() as model, above(model, self._first):
            yield model

    def _valued(self, batches: Sequence[Batch]) -> list[Mapping[str, Tensor]]:
        """V of all scored tokens, without a gradient."""
        with self._above() as model, torch.no_grad():
            return [self.critic.values(predict(model, batch).hidden_nh) for batch in batches]

    # --- one step -------------------------------------------------------------------------------------

    def _step(self, part: _Part, update: int, equations: Equations | None) -> tuple[Mapping[str, float], Diagnostics]:
        """Gradients of all micro-batches, or what solves them all at once, then one step."""
        recipe, parameters = self.recipe, self.policy.parameters()
        entropy = any(isinstance(extra, slots.Entropy | slots.EntropyBand) for extra in recipe.extra)
        self.optimiser.zero_grad(set_to_none=True)
        lost: list[Tensor] = []
        numbers: Counter[str] = Counter()
        seen = Diagnostics()
        with self._above() as model:
            for batch, old_n, reference_n, teacher_n, valued in zip(
                part.batches, part.old, part.reference, part.teacher, part.valued, strict=True
            ):
                said = predict(model, batch, entropy=entropy)
                values = self.critic.values(said.hidden_nh)
                scores = Scores(
                    logprobs_n=said.logprobs_n,
                    entropy_n=said.entropy_n,
                    old_n=old_n,
                    reference_n=reference_n,
                    teacher_n=teacher_n,
                    values=values,
                    old_values=valued or {head: each.detach() for head, each in values.items()},
                )
                one = loss(
                    batch.streams,
                    scores,
                    ratio=recipe.ratio,
                    trust=recipe.trust,
                    correction=recipe.correction,
                    extras=recipe.extra,
                    update=update,
                )
                if isinstance(recipe.trust, slots.BiasNorm):
                    lost = _added(lost, _gradients(one.lost, parameters))
                if equations:
                    assert one.residual_o is not None
                    equations.add(one.residual_o[:-1])  # a batch is one decision: its residuals sum to zero
                else:
                    one.total.backward()
                numbers.update({"loss": one.total.item(), **one.terms})
                seen += one.diagnostics
        if equations:
            assign(parameters, equations.solved(recipe.optimiser.damping, recipe.optimiser.reach))
        if isinstance(recipe.trust, slots.BiasNorm):
            _divide(parameters, step_divisor(_norm(lost), recipe.trust))
        limit = recipe.optimiser.grad_clip
        norm = torch.nn.utils.clip_grad_norm_(parameters, torch.inf if limit is None else limit)
        numbers["gradient_norm"] = norm.item()
        self.optimiser.step()
        self.critic.step(at(recipe.optimiser.critic_lr, update), limit)
        return numbers, seen


def _optimiser(settings: Optimiser, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
    rate = at(settings.lr, 0)
    if settings.kind in ("sgd", "gauss_newton"):
        return torch.optim.SGD(parameters, lr=rate, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(parameters, lr=rate, betas=settings.betas, weight_decay=settings.weight_decay, fused=True)


def _split(rows: Sequence[Row], indices: Sequence[int], parts: int) -> Iterator[list[int]]:
    """The rows in so many parts of whole episodes, in their order."""
    episodes = list(dict.fromkeys(rows[i].episode for i in indices))
    of = {episode: place * parts // len(episodes) for place, episode in enumerate(episodes)}
    for part in range(parts):
        if inside := [i for i in indices if of[rows[i].episode] == part]:
            yield inside


def _scored(weights: Weights, batches: Sequence[Batch]) -> list[Tensor | None]:
    """log-probabilities of all scored tokens under the weights, without a gradient."""
    with weights() as model, torch.no_grad():
        return [predict(model, batch).logprobs_n for batch in batches]


def _decisions(made: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each decision by themselves."""
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in made:
        found[sample.bundle].append(sample)
    return list(found.values())


def _rows(part: _Part) -> float:
    """Rows that a part stands for: a sample's count is on each of its tokens."""
    found = 0.0
    for batch in part.batches:
        streams = batch.streams
        tokens_s = torch.bincount(streams.sample_n, minlength=streams.samples)
        found += float((streams.count_n / tokens_s[streams.sample_n]).sum())
    return found


def _gradients(of: Tensor, parameters: Sequence[torch.nn.Parameter]) -> list[Tensor]:
    if not of.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    found = torch.autograd.grad(of, parameters, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def _added(sums: list[Tensor], more: list[Tensor]) -> list[Tensor]:
    return [a + b for a, b in zip(sums, more, strict=True)] if sums else more


def _norm(gradients: Sequence[Tensor]) -> float:
    return float(torch.stack([each.square().sum() for each in gradients]).sum().sqrt())


def _divide(parameters: Sequence[torch.nn.Parameter], divisor: float) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad /= divisor
