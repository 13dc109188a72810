"""What a run would cost: decisions, tokens and time, from what such runs have cost before.

Where no finished run of the same world with the same models is stored, tokens and time are unknown, and said to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from sim.library import files
from sim.quantities import Distribution, readable
from sim.record.browse import Browse, Spent
from sim.record.committed import SchemaMismatch
from sim.record.schema import Manifest
from sim.record.sqlite import FileFailure
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import Plan
from sim.scenarios.yaml_text import read_yaml
from sim.types import JSON

MIDPOINTS = [(n + 0.5) / 200 for n in range(200)]
"""Uniforms at which a think time's mean is estimated."""
LOOKED_AT = 100
"""Newest runs of a folder among which those like it are looked for."""
STARTING = 60.0
"""Seconds that a run may take beside its calls; a file that was changed later says nothing about time."""
ASIDE = ("name", "seed", "measure", "record", "limits")
"""Keys of a scenario that do not change what it costs."""
WEIGHTS = ("engine", "model", "policy", "max_tokens", "context")
"""Keys of a model that do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a finished run has cost."""

    name: str
    decisions: int
    tokens: int
    """Prompts included."""
    seconds: float | None
    """From its file's making to its last change; None where that cannot be the run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run is expected to cost; None: nobody knows."""

    decisions: int | None
    bound: bool
    """Whether that is the most there can be, rather than what there were."""
    tokens: int | None
    """Prompts included."""
    seconds: float | None
    basis: str
    """What it is made of, in words."""

    @property
    def words(self) -> str:
        """In a line."""
        many = "decisions unknown" if self.decisions is None else f"{self.decisions:,} decisions"
        tokens = "tokens unknown" if self.tokens is None else f"about {self.tokens:,} tokens"
        time = "time unknown" if self.seconds is None else f"about {readable(round(self.seconds), 1000)}"
        most = "at most " if self.bound and self.decisions is not None else ""
        return f"expected: {most}{many}, {tokens}, {time}; {self.basis}"


def estimate(planned: Plan, folder: Path) -> Estimate:
    """The mean of runs of an equal scenario in a folder; else, by decision, of those of its world and models."""
    data = planned.scenario.located.data
    equal, alike = _before(data, folder)
    most = most_decisions(planned)
    silent = not planned.models
    if equal:
        return Estimate(
            decisions=round(fmean(one.decisions for one in equal)),
            bound=False,
            tokens=round(fmean(one.tokens for one in equal)),
            seconds=_mean([one.seconds for one in equal]),
            basis=f"as {_named(equal)} of this scenario took",
        )
    each = [one for one in alike if one.decisions]
    if each and most is not None:
        tokens = most * fmean(one.tokens / one.decisions for one in each)
        per = _mean([None if one.seconds is None else one.seconds / one.decisions for one in each])
        return Estimate(
            decisions=most,
            bound=True,
            tokens=round(tokens),
            seconds=None if per is None else most * per,
            basis=f"from what a decision took in {_named(each)} of this world with these models",
        )
    known = "no model is asked" if silent else f"no finished run of this world with these models is in {folder}"
    return Estimate(decisions=most, bound=True, tokens=0 if silent else None, seconds=None, basis=known)


def most_decisions(planned: Plan) -> int | None:
    """Decisions of all tables if everybody decides without a break until the end; None where nothing bounds them."""
    stops = [number for kind, number in planned.stops if kind == "decision"]
    bounds = [min(stops)] if stops else []
    thinks = [mean_think(player.think) for player in planned.tables[0].players]
    if planned.until is not None and min(thinks) >= 1:
        bounds.append(round(sum(planned.until / think for think in thinks)))
    return min(bounds) * len(planned.tables) if bounds else None


def mean_think(think: Distribution) -> float:
    """Mean think time in ticks."""
    return sum(map(think.ticks, MIDPOINTS)) / len(MIDPOINTS)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _named(past: Sequence[Past]) -> str:
    return f"run {past[0].name}" if len(past) == 1 else f"{len(past)} runs, the last {past[0].name},"


def _before(data: Mapping[str, JSON], folder: Path) -> tuple[list[Past], list[Past]]:
    """Finished runs of an equal scenario, and those of its world and models, newest first."""
    equal: list[Past] = []
    alike: list[Past] = []
    for path in list(reversed(files(folder)))[:LOOKED_AT] if folder.is_dir() else []:
        try:
            with Browse(path) as run:
                manifest = run.manifest()
                if manifest.status != "finished" or manifest.parent:
                    continue
                before = read_yaml(manifest.scenario, path.name).data
                if not isinstance(before, dict) or _world(before) != _world(data):
                    continue
                found = _past(path, manifest, run)
        except (SchemaMismatch, FileFailure, FileNotFoundError, ScenarioError):
            continue  # what cannot be read says nothing
        alike.append(found)
        if _shape(before) == _shape(data):
            equal.append(found)
    return equal, alike


def _world(data: Mapping[str, JSON]) -> JSON:
    """What makes decisions cost alike: the world's class, and weights."""
    models: Mapping[str, Any] = data.get("models") or {}
    return (data.get("world") or {}).get("use"), {
        name: [one.get(key) for key in WEIGHTS] for name, one in models.items()
    }


def _shape(data: Mapping[str, JSON]) -> JSON:
    """What makes runs cost alike: all but names and luck."""
    return {key: value for key, value in data.items() if key not in ASIDE and value not in (None, [], {})}


def _past(path: Path, manifest: Manifest, run: Browse) -> Past:
    spent: Spent = run.spent()
    took = path.stat().st_mtime - datetime.fromisoformat(manifest.created).timestamp()
    alone = 0 <= took <= spent.latency + STARTING
    return Past(
        name=manifest.id,
        decisions=spent.decisions,
        tokens=spent.prompt_tokens + spent.completion_tokens,
        seconds=took if alone else None,
    )
