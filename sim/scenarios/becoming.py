"""What agents become in the course of a run: another class of mind, settings, model or persona in the same seat.

Changes add up: one that names only a persona leaves in place what an earlier one has said of the model.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.scenarios.scenario_schema import BecomeAt, CastEntry, Scenario, Taken
from sim.types import JSON


def becomings(scenario: Scenario) -> dict[int, BecomeAt]:
    """The interventions of this kind, by where they stand."""
    return {at: one for at, one in enumerate(scenario.interventions) if isinstance(one, BecomeAt)}


def became(scenario: Scenario, index: int) -> tuple[Taken, dict[str, JSON]]:
    """Who decides for an agent from an intervention on, and the keys of its persona that are new by then."""
    last = becomings(scenario)[index]
    mind, persona = _first(scenario, last.agent), dict[str, JSON]()
    for _, one in sorted(_before(scenario, index), key=lambda item: item[0]):
        mind = _after(mind, one)
        persona |= _new(one)
    return mind, persona


def what(one: BecomeAt) -> Mapping[str, JSON]:
    """What is another, as it stands in the log."""
    given = {"use": one.use, "with": dict(one.settings), "model": one.model, "persona": _new(one)}
    return {key: value for key, value in given.items() if value not in (None, {})}


def _new(one: BecomeAt) -> dict[str, JSON]:
    return one.persona.model_dump(mode="json", exclude_unset=True) if one.persona else {}


def _before(scenario: Scenario, index: int) -> list[tuple[tuple[int, int], BecomeAt]]:
    """What an agent has become by an intervention, itself included, each with its tick and place."""
    last = becomings(scenario)[index]
    placed = [
        ((scenario.ticks(("interventions", at, "at"), one.at), at), one)
        for at, one in becomings(scenario).items()
        if one.agent == last.agent and one.table in (None, last.table)
    ]
    end = next(place for place, one in placed if one is last)
    return [(place, one) for place, one in placed if place <= end]


def _first(scenario: Scenario, agent: str) -> Taken:
    """Who decides for an agent at first."""
    if agent in scenario.seats:
        return scenario.seats[agent]
    entry: CastEntry = next(one for _, one in scenario.entries if agent in one.agents)
    return Taken.model_validate({"agent": entry.agent, "with": entry.settings, "model": entry.model})


def _after(mind: Taken, one: BecomeAt) -> Taken:
    use = one.use or mind.agent
    settings = one.settings if use != mind.agent else {**mind.settings, **one.settings}
    model = mind.model if one.model is None else one.model
    return Taken.model_validate({"agent": use, "with": settings, "model": model})
