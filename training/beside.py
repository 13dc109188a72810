"""What credit, rewards and loss read beside the rows of an update, worked out from the weights that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from training.constraint import Masks, Texts
from training.critic import Valuer, read_values
from training.entropies import History, centres, extended
from training.extras import Extras
from training.forward import Weights
from training.learner import Learner
from training.readout import read_options, read_tokens
from training.recipe import Recipe, heads_of
from training.reward import Anchored, LogRatio
from training.rows import Floats
from training.slots import EntropyBand
from training.trajectory import Row


def beside(
    recipe: Recipe,
    rows: Sequence[Row],
    learners: Mapping[str, Learner],
    masks: Masks,
    texts: Texts | None = None,
    *,
    earlier: Mapping[str, Weights],
    base: Weights,
) -> Extras:
    """The arrays that the recipe's slots ask for; the others stay empty.

    `learners` and their `earlier` selves, which rewards may be anchored to, are by the policy's name; `base` is what
    log-ratios are taken to.
    """
    found = Extras()
    sources = {type(source) for source in recipe.reward}
    if Anchored in sources:
        found = replace(found, reference_options=tuple(read_options(rows, earlier, masks)))
    if LogRatio in sources:
        read = read_tokens(rows, dict.fromkeys(learners, base), masks, texts)
        own = tuple(row.logprobs if one.logprobs else () for row, one in zip(rows, read, strict=True))
        found = replace(found, policy=own, reference=tuple(one.logprobs for one in read))
    if heads := heads_of(recipe, "prompt"):
        valuers = {name: Valuer(one.policy.active, one.critic) for name, one in learners.items() if one.critic}
        found = replace(found, values=read_values(rows, valuers, heads))
    return found


def banded(
    recipe: Recipe,
    rows: Sequence[Row],
    learners: Mapping[str, Learner],
    masks: Masks,
    texts: Texts | None,
    history: History,
) -> tuple[list[Floats], History]:
    """Middles of the entropy band at every row's tokens, and the history with these rows; none without a band."""
    if not any(isinstance(extra, EntropyBand) for extra in recipe.extra):
        return [], history
    said = read_tokens(rows, {name: one.policy.active for name, one in learners.items()}, masks, texts)
    history = extended(history, rows, said)
    return centres(history, rows, said), history
