"""The numbers of a training in its project file: those of each update, and whether it ended before its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from sim.record.project import Project
from sim.types import Measurement

STOPPED = "stopped"
"""Tag, and measurement, of a training that ended before its time."""


class Curves:
    """What the project file beside a training's runs says of it."""

    def __init__(self, folder: Path) -> None:
        self._name = folder.name
        self._project = Project(folder / "project.db")

    def add(self, update: int, numbers: Mapping[str, float], further: Sequence[Measurement] = ()) -> None:
        """Numbers after so many updates, by metric name; what is no number is kept as null."""
        named = [
            Measurement(metric=f"train.{name}", value=value if isfinite(value) else None, of={"update": update}, n=1)
            for name, value in numbers.items()
        ]
        self._project.measure(self._name, [*named, *further])

    def status(self, update: int, reason: str) -> None:
        """Whether, and why, it has stopped after so many updates; no reason: it goes on."""
        self._project.untag(self._name, STOPPED)
        if reason:
            self._project.tag(self._name, STOPPED)
            about = {"update": update}
            stopped = Measurement(
                metric=f"train.{STOPPED}", value=float(update), unit="update", n=1, of=about, flags=(reason,)
            )
            self._project.measure(self._name, [stopped])

    def close(self) -> None:
        """Free the file."""
        self._project.close()
