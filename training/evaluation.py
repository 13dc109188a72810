"""What is measured of the policies after each update: how exploitable they are, exactly, where the game is small."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from sim.scenarios.scenario_schema import Scenario
from sim.types import JSON, Request
from training.constraint import Masks
from training.evaluate import AveragePolicy, nash_conv, uniform
from training.extensive import Tree, TreeError
from training.tabulate import Questions, TabulateError, from_engine, questions, tabulate


class Evaluator:
    """Reads the learners' policies from the engine that plays them, and keeps the average of all of them.

    The average weighs each update with its number, so that the first ones fade. Games without a small tree, and agents
    that remember, are not tabulated: `why` says which.
    """

    def __init__(self, scenario: Scenario, temperature: float) -> None:
        self._temperature = temperature
        self._questions: Questions | None = None
        self.why = ""
        self._average = AveragePolicy()
        self._read: dict[tuple[str, str], Mapping[str, Mapping[str, float]]] = {}
        try:
            self._questions = questions(scenario)
        except (TreeError, TabulateError) as error:
            self.why = str(error)

    @property
    def tree(self) -> Tree | None:
        """The game; None where it cannot be tabulated."""
        return self._questions.tree if self._questions else None

    def table(self, engine: Any, masks: Masks, speakers: Mapping[str, str]) -> dict[str, dict[str, float]]:
        """Probabilities of all options by information state; `speakers`: the label that plays with each entry.

        States of seats that others play are left out.
        """
        assert self._questions is not None
        asked: dict[str, dict[str, Request]] = {}
        for key, request in self._questions.asked.items():
            if request.model in speakers:
                asked.setdefault(speakers[request.model], {})[key] = request
        found: dict[str, dict[str, float]] = {}
        for label, requests in asked.items():
            found |= tabulate(requests, from_engine(engine, masks, self._temperature, label))
        return found

    def after(self, update: int, engine: Any, masks: Masks, speakers: Mapping[str, str]) -> dict[str, float]:
        """The numbers after so many updates; none where the game cannot be tabulated."""
        if self._questions is None:
            return {}
        tree = self._questions.tree
        table = self.table(engine, masks, speakers)
        if table.keys() != tree.options.keys():
            return {}
        self._average = self._average.add(tree, table, weight=float(update))
        return {"nash_conv": nash_conv(tree, table), "average_nash_conv": nash_conv(tree, self._average.table(tree))}

    def mixed(
        self,
        engine: Any,
        masks: Masks,
        mixtures: Mapping[str, Mapping[str, float]],
        call_up: Callable[[Sequence[str]], None],
    ) -> float | None:
        """NashConv where a version is drawn for each game, by entry and label; None where it cannot be told.

        `call_up` has the engine serve a version. They never change, so each is read once.
        """
        if self._questions is None:
            return None
        tree = self._questions.tree
        found: dict[str, Mapping[str, float]] = {}
        for entry, shares in mixtures.items():
            mean = AveragePolicy()
            for label, share in shares.items():
                if (entry, label) not in self._read:
                    call_up([label])
                    self._read[entry, label] = self._seat(engine, masks, entry, label)
                mean = mean.add(tree, {**uniform(tree), **self._read[entry, label]}, share)
            table = mean.table(tree)
            found |= {key: table[key] for key, request in self._questions.asked.items() if request.model == entry}
        return nash_conv(tree, found) if found.keys() == tree.options.keys() else None

    def _seat(self, engine: Any, masks: Masks, entry: str, label: str) -> Mapping[str, Mapping[str, float]]:
        """What a version does in the seats of an entry."""
        assert self._questions is not None
        asked = {key: request for key, request in self._questions.asked.items() if request.model == entry}
        return tabulate(asked, from_engine(engine, masks, self._temperature, label))

    def state(self) -> JSON:
        """For a checkpoint."""
        return msgspec.to_builtins(self._average)

    def restore(self, state: JSON) -> None:
        """From a checkpoint."""
        self._average = msgspec.convert(state, AveragePolicy)
