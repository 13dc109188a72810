"""Curriculum: how long episodes may be, which tasks are drawn and which roles learn, as training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import orjson
from pydantic import AfterValidator, Field, model_validator

from sim.scenarios.strict import Many, Strict
from training.schedule import Point, Schedule, rising
from training.slots import Count, Share


class Horizon(Strict):
    """Most decisions of an episode, everybody's together, by stages (ScalingInter-RL)."""

    kind: Literal["horizon"]
    stages: Annotated[Many[Point], AfterValidator(rising)] = Field(min_length=1)
    """`[updates done, decisions]`; a stage lasts to the next."""


class Pools(Strict):
    """Task pools from easy to hard; the next one opens when success is high, the one before when it is low."""

    kind: Literal["pools"]
    pools: Many[Many[str]] = Field(min_length=2)
    """Settings of the scenario by which a pool differs: `[[world.size=3], [world.size=5]]`."""
    success: float = 0.0
    """Return of a learner's seat above which an episode is a success."""
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
    """Most decisions of an episode after so many updates; None: no limit."""
    for one in curriculum:
        if isinstance(one, Horizon):
            return int(Schedule(points=one.stages, shape="step").at(update))
    return None


def next_pool(curriculum: Sequence[Curriculum], pool: int, returns: Sequence[float]) -> int:
    """The number of the pool after this one, given what the learners' seats earned in it."""
    for one in curriculum:
        if isinstance(one, Pools) and returns:
            success = sum(each > one.success for each in returns) / len(returns)
            place = pool + (success >= one.up) - (success <= one.down)
            return min(max(place, 0), len(one.pools) - 1)
    return pool


def settings(curriculum: Sequence[Curriculum], update: int, pool: int, stops: Sequence[str] = ()) -> list[str]:
    """What the curriculum sets in the scenario after so many updates; `stops` are the rules that end it anyway."""
    found = [text for one in curriculum if isinstance(one, Pools) for text in one.pools[pool]]
    most = horizon(curriculum, update)
    if most is not None:
        found.append(f"stop.after={orjson.dumps([*stops, f'{most} decisions']).decode()}")
    return found


def learning(curriculum: Sequence[Curriculum], update: int) -> tuple[str, ...] | None:
    """Roles that learn in this update; None: all."""
    for one in curriculum:
        if isinstance(one, Phase):
            return one.learn[update // one.length % len(one.learn)]
    return None
