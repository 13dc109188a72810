"""What a scenario may set of a society whose opinions move."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
from sim.types import JSON, Seat

Graph: TypeAlias = Literal["complete", "ring", "watts_strogatz", "erdos_renyi", "two_camps"]
"""Who listens to whom, drawn by the world."""
Schedule: TypeAlias = Literal["synchronous", "pair", "agent"]
"""All at once; a random pair of neighbours at a time; a random agent at a time."""


class OpinionsParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    graph: Graph = "complete"
    """Who listens to whom, unless `edges` or `weights` say it."""
    degree: int = Field(default=4, ge=2, multiple_of=2)
    """Neighbours in a ring, and in a small world before links are rewired."""
    rewire: float = Field(default=0.1, ge=0, le=1)
    """Small world: probability that a link is moved (Watts and Strogatz 1998)."""
    density: float = Field(default=0.1, ge=0, le=1)
    """Erdős–Rényi: probability of each link."""
    within: float = Field(default=0.5, ge=0, le=1)
    """Two camps: probability of each link within a camp."""
    between: float = Field(default=0.05, ge=0, le=1)
    """Two camps: probability of each link between them."""
    edges: tuple[tuple[str, str], ...] = ()
    """Links by agents' ids, in both directions."""
    weights: Mapping[str, Mapping[str, float]] = Field(default_factory=dict)
    """By agent: how much it gives to whose opinion, its own among them; each row sums to 1."""
    schedule: Schedule = "synchronous"
    """Who is asked at the same time."""
    rounds: int = Field(default=100, ge=1)
    """Most rounds; with the schedules `pair` and `agent` a round asks as many as there are agents, one turn after the
    other."""
    tolerance: float = Field(default=1e-4, ge=0)
    """A round is quiet if no opinion has moved so far."""
    patience: int = Field(default=1, ge=1)
    """Quiet rounds in a row after which opinions have settled."""
    about: str = Field(default="the plan", min_length=1, max_length=400)
    """What opinions are about."""
    ends: tuple[str, str] = ("against it", "for it")
    """What −1 and 1 mean."""
    message_chars: int = Field(default=0, ge=0, le=1_000)
    """Longest statement beside the number; 0: numbers only."""
    feelings: bool = False
    """Whether each also says how it feels towards the two roles of the cast."""
    apart: float = Field(default=0.05, gt=0)
    """How far neighbouring opinions of two clusters are apart, for metrics."""
    pause: Ticks = Field(default=1, ge=1)
    """Time between two turns."""

    @model_validator(mode="after")
    def _sound(self) -> OpinionsParams:
        if self.ends[0] == self.ends[1]:
            raise ValueError(f"ends: {self.ends[0]!r} twice; expected two that differ")
        if self.edges and self.weights:
            raise ValueError("weights: they say who listens to whom, and so do edges; give one of the two")
        for agent, row in self.weights.items():
            if any(weight < 0 for weight in row.values()) or abs(sum(row.values()) - 1) > 1e-6:
                raise ValueError(f"weights: those of {agent} are at least 0 and sum to 1, not {sum(row.values()):g}")
        return self

    def turns(self, agents: int) -> int:
        """Turns in a round of so many agents."""
        return {"synchronous": 1, "pair": max(1, agents // 2), "agent": max(1, agents)}[self.schedule]


def number(setting: str, value: JSON, least: float = 0, most: float = inf) -> float:
    """A setting of a scripted agent, from `least` to `most`. Raises ValueError where it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{setting}: {value!r}; expected a number from {least:g} to {most:g}")
    return float(value)


def private(seat: Seat, name: str, otherwise: float, least: float) -> float:
    """A private number of a seat, from `least` to 1. Raises ValueError where it is none."""
    value: JSON = seat.private.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
        raise ValueError(f"{seat.agent}: the private value {name} is a number from {least:g} to 1, not {value!r}")
    return float(value)
