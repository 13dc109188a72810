"""A training is watched: readings of every policy after each update, and why to stop where they stay out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from math import isnan
from typing import Any

import msgspec

from sim.types import JSON
from training.dependence import dependence
from training.monitors import readings
from training.stops import Monitor, Watch, watch
from training.trajectory import Row

UNKNOWN = ("entropy", "mismatch_far")
"""Numbers of an update that are NaN where they were not computed."""


class Watching:
    """What is remembered of each policy's readings, and the first reason to stop."""

    def __init__(self, settings: Monitor, policies: Iterable[str]) -> None:
        self._settings = settings
        self._watches = {name: Watch() for name in policies}
        self.reason = ""
        """Why to stop; empty: go on."""

    def see(
        self,
        name: str,
        update: int,
        rows: Sequence[Row],
        kept: int,
        learnt: Mapping[str, float],
        weights: Callable[[], AbstractContextManager[Any]],
    ) -> dict[str, float]:
        """A policy's readings in an update, from its own rows, of which so many were kept; none where it had no rows.

        `learnt`: what its learner says; `weights`: entered, the model that computes with it.
        """
        if not any(row.trained for row in rows):
            return {}
        found = {**readings(rows), "kept": float(kept)}
        if self._settings.pairs and update % self._settings.every == 0:
            with weights() as model:
                seen = dependence(model, rows, self._settings.pairs)
            if seen is not None:
                found |= {
                    "mutual_information": seen.value,
                    "mutual_information_per_token": seen.per_token,
                    "retrieval": seen.retrieval[1],
                    "retrieval_gain": seen.retrieval[1] - seen.chance,
                }
        known = {key: value for key, value in learnt.items() if key not in UNKNOWN or not isnan(value)}
        self._watches[name], why = watch(self._settings.stop, {**known, **found}, self._watches[name])
        if why and not self.reason:
            self.reason = f"{name}: {why}" if len(self._watches) > 1 else why
        return found

    def go_on(self) -> None:
        """Forget the reason and all that led to it."""
        self._watches = dict.fromkeys(self._watches, Watch())
        self.reason = ""

    def state(self) -> JSON:
        """For a checkpoint."""
        return {
            "stop": [one.model_dump(mode="json") for one in self._settings.stop],
            "watches": msgspec.to_builtins(self._watches),
            "reason": self.reason,
        }

    def restore(self, state: JSON) -> None:
        """From a checkpoint; under other stops everything begins anew."""
        if state["stop"] == self.state()["stop"]:
            self._watches = msgspec.convert(state["watches"], dict[str, Watch])
            self.reason = state["reason"]
