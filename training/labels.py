"""What a teacher would say where the learner was: cross entropy on its answers (DAgger).

At a choice the label is the teacher's whole distribution over the options, which is what its sampled answers are on
average; of a scripted agent it is the answer that it gives. Free text is labelled where the teacher itself spoke.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from msgspec.structs import replace

from sim.types import JSON
from training.constraint import Masks, Texts, distribution
from training.forward import Weights
from training.matchup import name_of
from training.paths import answering
from training.readout import read_options
from training.rows import Sample, question
from training.trajectory import Row


def lessons(
    rows: Sequence[Row], kept: Sequence[int], name: str, weights: Weights, masks: Masks, texts: Texts | None = None
) -> dict[int, list[Sample]]:
    """Labelled samples of decisions in the policy's seats, by row and of weight 1: those kept and the teacher's own.

    Raises ValueError for a free text that the learner wrote: no label is known.
    """
    taken = {i for i in kept if name_of(rows[i].policy) == name}
    taught = {i for i, row in enumerate(rows) if name_of(row.asked) == name != name_of(row.policy)}
    chosen = sorted(i for i in taken | taught if rows[i].ids and rows[i].valid)
    seen = [replace(rows[i], trained=True, policy=name) for i in chosen]
    said = read_options(seen, {name: weights}, masks)
    found = {}
    for i, row, logprobs in zip(chosen, seen, said, strict=True):
        if row.options:
            options = question(row.prompt, masks(row.options), row.temperature, "")
            pairs = enumerate(zip(options, map(exp, logprobs), strict=True))
            found[i] = [replace(one, label=(share,) * len(one.ids), count=int(k == 0)) for k, (one, share) in pairs]
        elif i in taught:
            support = distribution(row, masks, texts)
            found[i] = [Sample(prompt=row.prompt, ids=row.ids, label=(1.0,) * len(row.ids), **support._asdict())]
        else:
            raise ValueError(
                f"{row.episode} {row.seat} turn {row.turn}: a teacher labels choices, and this is free text of the "
                "learner's; let the teacher speak itself (actors teacher, beta 1), or distil with ref_kl"
            )
    return found


def demonstrated(
    rows: Sequence[Row], kept: Sequence[int], name: str, answers: Mapping[int, JSON], masks: Masks
) -> dict[int, list[Sample]]:
    """As `lessons`, of a scripted agent's `answers` by row. Raises ValueError where one is none of the options.

    It answers, and says nothing before: what the learner said before its answer has no label.
    """
    found = {}
    last = answering(rows)
    for i in kept:
        row = rows[i]
        if i not in last or i not in answers or not row.options or name_of(row.policy) != name:
            continue
        if answers[i] not in row.options:
            raise ValueError(f"{row.episode} {row.seat} turn {row.turn}: the teacher said {answers[i]!r}, no option")
        options = question(row.prompt, masks(row.options), row.temperature, "")
        said = options[row.options.index(answers[i])]
        found[i] = [replace(said, label=(1.0,) * len(said.ids), count=1)]
    return found
