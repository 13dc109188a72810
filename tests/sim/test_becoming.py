"""An agent becomes another one in the course of a run: what it is then, what it remembers, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.kernel import Player
from sim.scenarios.becoming import became
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.simulate import player, simulate
from sim.streams import Streams
from sim.types import Action, Become, Leave, Member, Mind, Seat, Turn
from tests.stage import Stage

HERE = Path(__file__).parent
TEXT = """\
name: tiny
clock: {until: 2h}
world: {use: "./tiny_society.py:Tiny"}
models: {small: {engine: synthetic, context: 1000}, large: {engine: synthetic, context: 2000}, me: {engine: human}}
cast:
  - {name: buyer, count: 2, agent: "./tiny_society.py:Fixed", model: small, with: {notes: [a]},
     persona: {name: Ada, goals: [win]}, think: 3s}
tables: 2
interventions:
  - {at: 20s, do: become, agent: buyer-1, with: {answer: "no"}, persona: {goals: [rest]}}
  - {at: 10s, do: become, agent: buyer-1, model: large, persona: {name: Bob}, table: 1}
  - {at: 30s, do: become, agent: buyer-1, use: "./tiny_society.py:Open", with: {x: 1}}
"""


def scenario(*overrides: str) -> Scenario:
    return loads(TEXT, HERE, overrides=overrides)


def test_changes_add_up_in_the_order_of_time() -> None:
    """The second comes first, at one table only; another class has settings of its own."""
    read = scenario()
    found = [became(read, index) for index in range(3)]
    assert [(mind.agent[-5:], mind.settings, mind.model, persona) for mind, persona in found] == [
        ("Fixed", {"notes": ["a"], "answer": "no"}, "small", {"goals": ["rest"]}),
        ("Fixed", {"notes": ["a"]}, "large", {"name": "Bob"}),
        (":Open", {"x": 1}, "small", {"goals": ["rest"]}),
    ]


def test_a_plan_holds_what_an_agent_becomes() -> None:
    first, second = plan(scenario()).tables
    assert [tick for tick, _, _ in first.interventions] == [20, 30]
    tick, change, who = second.interventions[0]
    assert isinstance(change, Become)
    assert (tick, change.what) == (10, {"model": "large", "persona": {"name": "Bob"}})
    assert who is not None
    assert (who.member.persona, who.member.model, who.member.context) == (
        {"name": "Bob", "goals": ["win"]},
        "large",
        2000,
    )
    assert who.member.seat == second.players[0].member.seat


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("interventions.0={at: 1, do: become, agent: buyer-1}", "interventions.0: nothing is another; write persona"),
        ("interventions.0.agent=buyer", "interventions.0.agent: no agent has the id 'buyer'"),
        ("interventions.0.model=lrge", "interventions.0.model: no model is named 'lrge'; did you mean large"),
        ("interventions.0.model=me", "interventions.0.model: me is a person, who takes a seat from the start"),
        ("interventions.0.use=./tiny_society.py:Tiny", "interventions.0.use: ./tiny_society.py:Tiny is no agent"),
        ("interventions.0.with={answr: no}", "interventions.0.with.answr: unknown setting"),
        ("interventions.0.persona={nme: Eve}", "interventions.0.persona.nme: unknown key; did you mean name"),
        ("interventions.0.with.answer=perhaps", "refuses its settings: answer is 'perhaps'"),
    ],
)
def test_what_cannot_be_is_one_line(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan(scenario(override))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# --- in the kernel --------------------------------------------------------------------------------------


class Counting:
    """Remembers how often it has decided, and says so."""

    def __init__(self, word: str) -> None:
        self.state: object = 0
        self._word = word

    def act(self, turn: Turn, streams: Streams) -> Mind:
        assert isinstance(self.state, int)
        return Action(answer=turn.default, reason=f"{self._word} {self.state}", state=self.state + 1)
        yield


class Other(Counting):
    """Of another class."""


def said(*interventions: tuple[int, Become | Leave, Player | None]) -> list[str]:
    """What one agent that thinks for 4 ticks gives as its reasons."""
    run = simulate(Stage(), [player(Counting("old"), "a", 4)], until=20, interventions=interventions)
    return [row[9] for kind, row in run.rows if kind == "decisions"]


def into(agent: Counting) -> tuple[Become, Player]:
    return Become(agent="a", what={"persona": {}}), player(agent, Member(seat=Seat(agent="a")), 4)


def test_a_mind_of_the_same_class_goes_on_from_what_is_remembered() -> None:
    """Decisions are seen at 0, 4, 8, …; what was begun before the change stands, and is remembered."""
    assert said((6, *into(Counting("new")))) == ["old 0", "old 1", "new 2", "new 3", "new 4"]
    assert said((8, *into(Counting("new")))) == ["old 0", "old 1", "new 2", "new 3", "new 4"]


def test_a_mind_of_another_class_begins_anew() -> None:
    assert said((6, *into(Other("new")))) == ["old 0", "old 1", "new 0", "new 1", "new 2"]


def test_whoever_has_left_becomes_nobody() -> None:
    leave: tuple[int, Leave, None] = (5, Leave(agent="a"), None)
    run = simulate(Stage(), [player(Counting("old"), "a", 4), player(Counting("b"), "b", 4)], until=20,
                   interventions=[leave, (6, *into(Counting("new")))])  # fmt: skip
    changes = [row[6] for kind, row in run.rows if kind == "events" and row[4] == "change"]
    assert '"skipped":"not in play"' in changes[1]
