"""Rubrics and calibration sets: what a judge is asked of a text, and texts of which people have said what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
from pydantic import Field, model_validator

from sim.scenarios.located import Located, Place, ScenarioError, nearest, shown
from sim.scenarios.scenario_schema import Dotted, Name
from sim.scenarios.strict import Many, Strict, checked
from sim.scenarios.yaml_text import read_yaml, text_of

PAIR = ("first", "second")
"""Options of a rubric that compares two texts; a third may say that neither is better."""


class Rubric(Strict):
    """One question about a text, or about two."""

    name: Name
    """What the measure is called."""
    question: str = Field(min_length=1)
    """What the judge is asked."""
    options: Many[str] = Field(min_length=2, max_length=9)
    """The answers it may give; of two texts, `first` and `second` are among them."""
    positive: str
    """The option whose rate is measured."""
    sees: Many[str] = Field(min_length=1)
    """Fields of an item that the judge is shown, in this order."""
    compare: Many[str] = ()
    """Two of them that are compared: which stands first is balanced."""
    items: Dotted = "sim.metrics.judging.judged_items:messages"
    """Function of a record that gives the items: texts by field, and where a rule can tell, what is right."""
    definitions: dict[str, str] = Field(default_factory=dict)
    """What each option means, in words."""

    @model_validator(mode="after")
    def _fits(self) -> Rubric:
        if self.positive not in self.options:
            raise ValueError(f"positive: {nearest(self.positive, self.options)}")
        if unknown := sorted(self.definitions.keys() - set(self.options)):
            raise ValueError(f"definitions: {shown(unknown[0])} is no option; {nearest(unknown[0], self.options)}")
        if self.compare and (len(self.compare) != 2 or not set(self.compare) <= set(self.sees)):
            raise ValueError("compare: name two of the fields in sees")
        if self.compare and not set(PAIR) <= set(self.options):
            raise ValueError("options: where two texts are compared, first and second are among them")
        return self


class Known(Strict):
    """A text that people have judged."""

    shows: dict[str, str]
    """Its fields."""
    labels: Annotated[Many[str], Field(min_length=1)]
    """What each person said."""


def read_rubric(path: Path) -> Rubric:
    """The rubric of a YAML file. Raises ScenarioError naming file, line and key."""
    located = read_yaml(text_of(path), str(path))
    return checked(Rubric, located.data, located)


def read_calibration(path: Path, rubric: Rubric) -> list[Known]:
    """The texts of a JSONL file: `{"shows": {field: text}, "labels": [option]}` a line. Raises ScenarioError."""
    located = Located(text_of(path), str(path), [], {})
    for number, line in enumerate(located.text.split("\n"), start=1):
        if line.strip():
            located.places[(len(located.data),)] = Place(str(path), number)
            try:
                located.data.append(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise ScenarioError(str(path), number, "", f"not JSON ({error}); write one text a line") from None
    found = [checked(Known, entry, located, (index,)) for index, entry in enumerate(located.data)]
    for index, one in enumerate(found):
        if missing := [field for field in rubric.sees if field not in one.shows]:
            message = f"has no {missing[0]}; {rubric.name} shows {', '.join(rubric.sees)}"
            raise located.error((index, "shows"), message)
        if wrong := [label for label in one.labels if label not in rubric.options]:
            message = f"{shown(wrong[0])} is no option of {rubric.name}; {nearest(wrong[0], rubric.options)}"
            raise located.error((index, "labels"), message)
    return found
