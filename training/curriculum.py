"""Curriculum: how long episodes may be, which tasks are drawn and which roles learn, as training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from sim.scenarios.strict import Many, Strict
from training.schedule import Point, Schedule, rising
from training.slots import Count, Share


class Horizon(Strict):
    """Most turns of an episode, by stages (ScalingInter-RL)."""

    kind: Literal["horizon"]
    stages: Annotated[Many[Point], AfterValidator(rising)] = Field(min_length=1)
    """`[updates done, turns]`; a stage lasts to the next."""


class Pools(Strict):
    """Task pools from easy to hard; the next one opens when success is high, the one before when it is low."""

    kind: Literal["pools"]
    pools: Many[str] = Field(min_length=2)
    """Their names, which the rollout knows."""
    up: Share = 0.8
    """Success at or above which tasks get harder."""
    down: Share = 0.2
    """Success at or below which they get easier."""

    @model_validator(mode="after")
    def _ordered(self) -> Pools:
        if self.down >= self.up:
            raise ValueError(f"down {self.down} is not below up {self.up}")
        return self


class Phase(Strict):
    """Roles learn in turns of so many updates; the others' policies stand still (alternating updates)."""

    kind: Literal["phase"]
    length: Count
    learn: Many[Many[str]] = Field(min_length=1)
    """Roles that learn in each phase; after the last the first comes again."""


Curriculum: TypeAlias = Annotated[Horizon | Pools | Phase, Field(discriminator="kind")]


def horizon(curriculum: Sequence[Curriculum], update: int) -> int | None:
    """Most turns of an episode after so many updates; None: no limit."""
    for one in curriculum:
        if isinstance(one, Horizon):
            return int(Schedule(points=one.stages, shape="step").at(update))
    return None


def next_pool(pools: Pools, pool: str, success: float) -> str:
    """The pool to draw from after `pool`, given the share of successful episodes. Raises ValueError: no such pool."""
    place = pools.pools.index(pool)
    place += (success >= pools.up) - (success <= pools.down)
    return pools.pools[min(max(place, 0), len(pools.pools) - 1)]


def learning(curriculum: Sequence[Curriculum], update: int) -> tuple[str, ...] | None:
    """Roles that learn in this update; None: all."""
    for one in curriculum:
        if isinstance(one, Phase):
            return one.learn[update // one.length % len(one.learn)]
    return None
