"""Learner rows: what the loss is told about each sampled token, and how equal rows become one.

Every loss here is linear in two weights of a token: the sum of its positive and the sum of its negative advantages,
each times the token's share of the mean. So the rows that one policy version gave to one prompt with the same ids and
log-probabilities are one row with a count, and clipping, which depends on an advantage's sign only, is unchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from agents.engines.choices import ChoiceMask
from sim.types import Tokens
from training.constraint import Allowed, Distribution, Masks
from training.paths import decisions
from training.slots import Aggregation, Const, Correction, DropNegKL, Mask, PerRollout, Ratio, TokenMean, Trunc, Unit
from training.trajectory import Row

Floats: TypeAlias = tuple[float, ...]
"""One per sampled token; where it may be empty, an empty one is all zeros."""


class Sample(Struct, frozen=True, kw_only=True):
    """One sequence that the learner scores after one prompt."""

    prompt: Tokens
    ids: Tokens
    """The tokens that are scored, at least one."""
    allowed: Allowed = None
    """Support of each of them; None: the whole vocabulary."""
    banned: tuple[Tokens, ...] = ()
    """What is not in the whole vocabulary, of each of them; empty: nothing."""
    temperature: float = 1.0
    shown: Tokens = ()
    """What the teacher reads before the prompt."""
    policy: str = ""
    """Policy version that sampled it."""
    behaviour: Floats = ()
    """Log-probabilities under that policy; empty: unknown."""
    segment: str = ""
    """Unit of ratios that it is in, with other samples; empty: it is one by itself."""
    sequence: str = ""
    """The same for whole sequences."""
    bundle: str = ""
    """A decision whose options these samples are, or a pair; empty: none."""
    preference: float = 0.0
    """Of a pair: its share in the mean over pairs, negative on the worse side."""
    targets: Mapping[str, Floats] = {}
    """Value targets by head; NaN where a token has none."""
    centre: Floats = ()
    """Middle of the entropy band, in nats."""
    count: int = 1
    """Rows that it stands for; of this field and the ones below, merging takes the sum."""
    weight: Floats = ()
    """Share in the mean that the loss is."""
    positive: Floats = ()
    """Share times advantage, where that is positive."""
    negative: Floats = ()
    """Share times advantage, where that is negative."""
    label: Floats = ()
    """Share of a token whose cross-entropy is wanted (`ce`)."""
    observed: Floats = ()
    """Share of a token that the environment wrote (`ce_obs`)."""
    worth: Floats = ()
    """Share of a state that a critic learns, the one before the token (`value`)."""


_SUMMED = ("weight", "positive", "negative", "label", "observed", "worth")


def samples(
    rows: Sequence[Row],
    advantages: Sequence[Sequence[float]],
    shares: Sequence[Sequence[float]],
    distribution: Callable[[Row], Distribution],
    *,
    segments: Sequence[str] = (),
    sequences: Sequence[str] = (),
    labels: Sequence[Sequence[float]] = (),
    centres: Sequence[Sequence[float]] = (),
    shown: Sequence[Tokens] = (),
) -> list[Sample]:
    """One sample a row; `advantages` and `shares` (of `token_shares`) have one number per sampled token.

    `segments` and `sequences` are of `ratio_units`, given where a loss looks at such units; empty streams are left out.
    Raises ValueError where a row has no tokens, or a stream has another length than its ids.
    """
    found = []
    for i, row in enumerate(rows):
        support = distribution(row)
        pairs = list(zip(shares[i], advantages[i], strict=True))
        sample = Sample(
            prompt=row.prompt,
            ids=row.ids,
            allowed=support.allowed,
            banned=support.banned,
            temperature=support.temperature,
            shown=shown[i] if shown else (),
            policy=row.policy_hash or row.policy,
            behaviour=row.logprobs,
            segment=segments[i] if segments else "",
            sequence=sequences[i] if sequences else "",
            centre=tuple(centres[i]) if centres else (),
            weight=tuple(shares[i]),
            positive=tuple(share * max(advantage, 0.0) for share, advantage in pairs),
            negative=tuple(share * min(advantage, 0.0) for share, advantage in pairs),
            label=tuple(labels[i]) if labels else (),
        )
        streams = (sample.behaviour, sample.centre, sample.weight, sample.label)
        if not row.ids or not row.prompt or any(len(each) not in (0, len(row.ids)) for each in streams):
            sizes = [len(each) for each in streams]
            raise ValueError(f"row {i}: {len(row.prompt)} tokens of prompt, {len(row.ids)} sampled, streams of {sizes}")
        found.append(sample)
    return found


def merge(apart: Iterable[Sample]) -> list[Sample]:
    """Samples that differ in nothing but their counts and weights become one, in the order of their first."""
    classes: dict[tuple[object, ...], list[Sample]] = defaultdict(list)
    for sample in apart:
        alike = {**asdict(sample), "targets": tuple(sorted(sample.targets.items()))}
        classes[tuple(alike[name] for name in alike if name not in (*_SUMMED, "count"))].append(sample)
    return [_sum(equal) if len(equal) > 1 else equal[0] for equal in classes.values()]


def _sum(equal: list[Sample]) -> Sample:
    sums = {}
    for name in _SUMMED:
        streams = [stream for sample in equal if (stream := getattr(sample, name))]
        sums[name] = tuple(map(sum, zip(*streams, strict=True)))
    return replace(equal[0], count=sum(sample.count for sample in equal), **sums)


def token_shares(rows: Sequence[Row], aggregation: Aggregation, counted: Sequence[Sequence[bool]] = ()) -> list[Floats]:
    """Each sampled token's share in the mean over the rows of a whole update; one that is not counted has none.

    Rows and rollouts with no counted token are left out of the means.
    """
    marks = [tuple(counted[i]) if counted else (True,) * len(row.ids) for i, row in enumerate(rows)]
    sizes = [sum(mark) for mark in marks]
    tokens = sum(sizes)
    alive = sum(size > 0 for size in sizes)
    rollouts: Counter[tuple[str, str]] = Counter()
    for row, size in zip(rows, sizes, strict=True):
        rollouts[row.episode, row.seat] += size
    played = sum(size > 0 for size in rollouts.values())

    def share(row: Row, size: int) -> float:
        if isinstance(aggregation, TokenMean):
            return 1 / tokens
        if isinstance(aggregation, Const):
            return 1 / (alive * aggregation.length)
        if isinstance(aggregation, PerRollout):
            return 1 / (played * rollouts[row.episode, row.seat])
        return 1 / (alive * size)

    return [
        tuple(share(row, size) if one else 0.0 for one in mark)
        for row, mark, size in zip(rows, marks, sizes, strict=True)
    ]


def ratio_units(rows: Sequence[Row], unit: Unit) -> list[str]:
    """The unit that each row is in with others; empty where it is one by itself, as a turn always is.

    A sequence is an agent's rows in an episode; a segment of it starts at every decision with a subgoal (HiPER).
    """
    if unit in ("token", "turn"):
        return [""] * len(rows)
    begun: Counter[tuple[str, str]] = Counter()
    names = [""] * len(rows)
    for decision in sorted(decisions(rows), key=lambda decision: rows[decision[0]].turn):
        row = rows[decision[0]]
        if unit == "segment" and any(rows[i].has("subgoal") for i in decision):
            begun[row.episode, row.seat] += 1
        for i in decision:
            names[i] = f"{row.episode}/{row.seat}/{begun[row.episode, row.seat]}"
    sizes = Counter(names)
    return [name if sizes[name] > 1 else "" for name in names]


def units_looked_at(ratio: Ratio, correction: Correction) -> set[Unit]:
    """The units that a loss needs. Naming others would keep rows from merging and tie them to one micro-batch."""
    if isinstance(correction, DropNegKL):
        return {ratio.unit, "sequence"}
    return {ratio.unit, correction.unit} if isinstance(correction, Trunc | Mask) else {ratio.unit}


def option_samples(
    rows: Sequence[Row], advantages: Sequence[Sequence[float]], shares: Sequence[float], mask: Masks
) -> list[Sample]:
    """Every option of every row, for losses over all legal options: `advantages` has one number per option.

    `shares` are the rows' own. Equal questions are one bundle. An option's two weights stand on its first token; terms
    on sampled tokens, such as kl_ref, do not see options.
    """
    names: dict[tuple[object, ...], str] = {}
    found = []
    for row, each, share in zip(rows, advantages, shares, strict=True):
        policy = row.policy_hash or row.policy
        name = names.setdefault((policy, row.prompt, row.options, row.temperature), f"decision {len(names)}")
        options = question(row.prompt, mask(row.options), row.temperature, name)
        for option, advantage in zip(options, each, strict=True):
            rest = (0.0,) * (len(option.ids) - 1)
            weights = {
                "positive": (share * max(advantage, 0.0), *rest),
                "negative": (share * min(advantage, 0.0), *rest),
            }
            found.append(replace(option, policy=policy, **weights))
    return found


def question(prompt: Tokens, choices: ChoiceMask, temperature: float, bundle: str) -> list[Sample]:
    """The options of one question, in their order, as sequences to score."""
    return [
        Sample(prompt=prompt, ids=ids, allowed=choices.along(ids), temperature=temperature, bundle=bundle)
        for ids in choices.sequences
    ]


def pair_samples(
    pairs: Sequence[tuple[Sequence[Row], Sequence[Row]]], distribution: Callable[[Row], Distribution]
) -> list[Sample]:
    """Better and worse rows (of one decision, or of a trajectory) for `dpo` and `bt`; all pairs alike in the mean."""
    found = []
    for number, pair in enumerate(pairs):
        for side, rows in zip((1, -1), pair, strict=True):
            for row in rows:
                support = distribution(row)
                found.append(
                    Sample(
                        prompt=row.prompt,
                        ids=row.ids,
                        allowed=support.allowed,
                        banned=support.banned,
                        temperature=support.temperature,
                        bundle=f"pair {number}",
                        preference=side / len(pairs),
                    )
                )
    return found


def labelled(lessons: Sequence[Sequence[Sample]]) -> list[Sample]:
    """The labelled samples of several decisions, all decisions alike in the mean."""
    share = 1 / max(1, len(lessons))
    return [replace(one, label=tuple(share * each for each in one.label)) for lesson in lessons for one in lesson]


def observed_samples(rows: Sequence[Row]) -> list[Sample]:
    """What the environment wrote between an agent's decisions, as tokens to predict (ECHO): all tokens alike.

    It is what a prompt adds to the agent's previous prompt and answer, from the first token in which they differ.
    """
    before: dict[tuple[str, str], Tokens] = {}
    found = []
    for row in sorted(rows, key=lambda row: row.turn):
        previous = before.get((row.episode, row.seat), row.prompt)
        start = next((i for i, (a, b) in enumerate(zip(row.prompt, previous, strict=False)) if a != b), len(previous))
        if 0 < start < len(row.prompt):
            found.append(Sample(prompt=row.prompt[:start], ids=row.prompt[start:]))
        before[row.episode, row.seat] = (*row.prompt, *row.ids)
    total = sum(len(sample.ids) for sample in found)
    return [replace(sample, observed=(1 / total,) * len(sample.ids)) for sample in found]
