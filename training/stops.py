"""When a training ends before its time: readings that stay out of bounds. Pure functions; the state is JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from msgspec import Struct
from pydantic import Field, field_validator, model_validator

from sim.scenarios.located import nearest
from sim.scenarios.strict import Many, Strict
from training.slots import Count

READINGS = (
    *("decision_entropy", "reward_std", "reward", "success", "first_legal_rate", "repetition", "length", "learnable"),
    *("kept", "mutual_information", "mutual_information_per_token", "retrieval", "retrieval_gain"),
    *("loss", "kl", "clip_fraction", "ess", "ratio_far", "entropy", "mismatch_far", "gradient_norm"),
)
"""What can be stopped for: of the rows, of how answers depend on prompts, of the update."""


class Stop(Strict):
    """End training once a reading has been out of bounds so many times in a row."""

    reading: str
    """Its name; updates that don't have it don't count."""
    below: float | None = None
    above: float | None = None
    first: int = Field(default=0, ge=0)
    """The bounds are multiples of the mean of the first so many readings, which are let pass; 0: they are absolute."""
    patience: Count = 1

    @field_validator("reading")
    @classmethod
    def _known(cls, reading: str) -> str:
        if reading not in READINGS:
            raise ValueError(f"{reading!r} is no reading; {nearest(reading, READINGS)}")
        return reading

    @model_validator(mode="after")
    def _bounded(self) -> Stop:
        if self.below is None and self.above is None:
            raise ValueError("give below, above or both")
        return self


RAGEN2: tuple[Stop, ...] = (
    Stop(reading="reward_std", below=0.1, first=10, patience=10),
    Stop(reading="success", below=0.01, patience=5),
    Stop(reading="kept", below=1, patience=5),
)
"""RAGEN-2's: rewards within groups no longer differ; validations without success; updates that keep no row (`kept`)."""
BROKEN: tuple[Stop, ...] = (
    Stop(reading="kept", below=1, patience=5),
    Stop(reading="first_legal_rate", below=0.05, patience=5),
    Stop(reading="gradient_norm", above=1e9),
)
"""Nothing is left to learn from, nothing legal is said any more, or the gradient is no number."""


class Monitor(Strict):
    """What is watched while a policy learns, and what ends its training. It never changes what is learnt."""

    stop: Many[Stop] = BROKEN
    every: Count = 10
    """Updates from one reading of how much answers depend on their prompts to the next."""
    pairs: int = Field(default=8, ge=0)
    """Answers that it is read from, each under the prompts of all of them; 0: never, else at least 2."""

    @field_validator("pairs")
    @classmethod
    def _several(cls, pairs: int) -> int:
        if pairs == 1:
            raise ValueError("one answer has no other prompt; expected 0, or 2 and more")
        return pairs


class Watch(Struct, frozen=True, kw_only=True):
    """What stops remember from one update to the next; a checkpoint holds it."""

    seen: Mapping[str, int] = {}
    """Readings so far, by the place of the stop."""
    first: Mapping[str, float] = {}
    """Sum of the first ones."""
    streak: Mapping[str, int] = {}
    """Times in a row that it was out of bounds."""


def watch(stops: Sequence[Stop], found: Mapping[str, float], state: Watch) -> tuple[Watch, str]:
    """The state after one update's readings, and why to stop; empty: go on. What is no number is out of bounds."""
    seen, first, streak = dict(state.seen), dict(state.first), dict(state.streak)
    reasons = []
    for place, stop in enumerate(stops):
        if stop.reading not in found:
            continue
        name, number = str(place), found[stop.reading]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= stop.first:
            first[name] = first.get(name, 0.0) + number
            continue
        scale = first[name] / stop.first if stop.first else 1.0
        low = -inf if stop.below is None else stop.below * scale
        high = inf if stop.above is None else stop.above * scale
        streak[name] = 0 if low <= number <= high else streak.get(name, 0) + 1
        if streak[name] >= stop.patience:
            bounds = " or ".join(
                [f"below {low:.4g}"] * (stop.below is not None) + [f"above {high:.4g}"] * (stop.above is not None)
            )
            times = f"{streak[name]} times in a row" if streak[name] > 1 else "once"
            reasons.append(f"{stop.reading} was {bounds} {times}, last {number:.4g}")
    return Watch(seen=seen, first=first, streak=streak), "; ".join(reasons)
