"""Plans: what the host is given, per table and for the whole run."""

import subprocess
import sys
from pathlib import Path

import pytest

from sim.scenarios.cast import freeze, rows, thaw
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import Plan, plan
from sim.scenarios.scenario import dump, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.simulate import simulate
from sim.types import Join, Leave, Say, Set

HERE = Path(__file__).parent
TEXT = """\
name: tiny
seed: 7
clock: {tick: 1s, until: 2h}
world: {use: "./tiny_society.py:Tiny", period: 10m}
models: {small: {engine: vllm, model: embedded, dtype: bfloat16}}
cast:
  - {name: buyer, count: 3, agent: "./tiny_society.py:Fixed", model: small, with: {notes: [a]}, think: "uniform(1, 9s)"}
  - {name: seller, agent: "./tiny_society.py:Fixed", with: {answer: "no"}}
interventions:
  - {at: 1h, do: say, text: first, to: [buyer, seller, buyer-2]}
  - {at: 2m, do: join, entry: {name: late, agent: "./tiny_society.py:Open", with: {x: 1}, think: 0}}
  - {at: 60m, do: set, key: period, value: 5m}
  - {at: 3600, do: leave, agent: buyer-2}
  - {at: 0, do: say, text: second, to: "#news"}
  - {at: 1h, do: set, key: weather, value: {rain: true}}
measure: ["./tiny_society.py:nothing"]
stop: {after: 40 trades}
"""


def scenario(*overrides: str) -> Scenario:
    return loads(TEXT, HERE, overrides=overrides)


def refusal(*overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        plan(scenario(*overrides))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_run_is_what_the_scenario_says() -> None:
    made = plan(scenario())
    assert (made.tick_ms, made.until, dict(made.stops)) == (1000.0, 7200, {"trade": 40, "trades": 40})
    assert made.models["small"].settings == {"dtype": "bfloat16"}
    assert [metric.__name__ for metric in made.metrics] == ["answers_given", "nothing"]
    assert made.params["period"] == 600
    assert set(made.code) == {f"./tiny_society.py:{name}" for name in ("Tiny", "Fixed", "Open")}
    assert all(len(digest) == 32 for digest in made.code.values())


def test_a_table_has_a_world_and_its_players() -> None:
    (table,) = plan(scenario()).tables
    assert table.world.params.period == 600  # type: ignore[attr-defined]
    assert [player.id for player in table.players] == ["buyer-1", "buyer-2", "buyer-3", "seller"]
    assert [player.agent.answer for player in table.players] == ["yes", "yes", "yes", "no"]  # type: ignore[attr-defined]
    assert table.players[0].think.args == (1, 9)
    assert table.players[3].think.ticks(0.5) == 1


def test_interventions_are_sorted_by_tick_and_keep_file_order() -> None:
    (table,) = plan(scenario()).tables
    late = table.interventions[1][2]
    assert late is not None
    assert late.think.ticks(0.0) == 0
    assert table.interventions == (
        (0, Say(text="second", to="#news"), None),
        (120, Join(seat=late.member.seat), late),
        (3600, Say(text="first", to=("buyer-1", "buyer-2", "buyer-3", "seller")), None),
        (3600, Set(key="period", value=300), None),
        (3600, Leave(agent="buyer-2"), None),
        (3600, Set(key="weather", value={"rain": True}), None),
    )


def test_tables_share_neither_worlds_nor_agents_nor_luck() -> None:
    first, second = plan(scenario("tables=2")).tables
    assert first.world is not second.world
    things = [player.agent for table in (first, second) for player in table.players]
    assert len({id(thing) for thing in things}) == 8
    assert len({id(agent.notes) for agent in things[:3]}) == 3  # type: ignore[attr-defined]
    first.streams.replicate(2)
    assert second.streams.draw("x") == plan(scenario("tables=2")).tables[1].streams.draw("x")
    assert first.streams.draw("x") != plan(scenario()).tables[0].streams.draw("x")


def test_two_plans_of_one_scenario_share_nothing_that_changes() -> None:
    read = scenario()
    assert plan(read).tables[0].players[0].agent is not plan(read).tables[0].players[0].agent


def test_a_stored_cast_is_taken_instead_of_a_new_one() -> None:
    read = scenario("tables=2")
    stored = rows(freeze(read))
    stored[0] = (*stored[0][:9], "77s", *stored[0][10:])
    made = plan(read, thaw(stored, loads(dump(read), HERE)))
    assert made.tables[0].players[0].think.ticks(0.3) == 77
    assert made.cast_hash != plan(read).cast_hash


def test_a_plan_runs() -> None:
    made = plan(scenario())
    (table,) = made.tables
    ran = simulate(
        table.world, table.players, seed=7, until=made.until, stops=made.stops, interventions=table.interventions
    )
    assert ran.table.counts["decisions"] == 4
    assert len(table.world.heard) == 6  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "world.rounds=13",
            "./tiny_society.py:Tiny refuses its parameters: rounds is 13, which brings bad luck",
        ),
        (
            "cast.seller.with.answer=perhaps",
            "cast.seller.with: ./tiny_society.py:Fixed refuses its settings: answer is 'perhaps'; expected yes or no",
        ),
        ("interventions.2.value=soon", "interventions.2.value: 'soon' is not a duration"),
        ("interventions.2.key=perod", "lets nobody change 'perod'; did you mean period?"),
        ("interventions.3.agent=buyer", "no agent has the id 'buyer'"),
        ("interventions.3.agent=buyer-9", "no agent has the id 'buyer-9'; did you mean buyer"),
        ("interventions.1.entry.count=2", "2 agents cannot join at once"),
        ("interventions.1.entry.name=seller", "interventions.1.entry.name: 'seller' is another entry's name"),
        ("interventions.1.entry.with.x.y=3", "1 has no keys below it"),
        ("interventions.5={at: 2h, do: leave, agent: buyer-2}", "'buyer-2' has left before at that time"),
        ("interventions.5={at: 1m, do: leave, agent: late}", "'late' has not joined yet at that time"),
        ("interventions.5={at: 2h, do: act, agent: buyer-2, answer: yes}", "'buyer-2' has left before at that time"),
        ("interventions.5={at: 1m, do: act, agent: nobody, answer: yes}", "no agent has the id 'nobody'"),
    ],
)
def test_what_cannot_be_planned_is_one_line(override: str, message: str) -> None:
    assert message in refusal(override)


def test_a_joiner_may_leave_later() -> None:
    made = plan(scenario("interventions.5={at: 3m, do: leave, agent: late}"))
    assert made.tables[0].interventions[2][:2] == (180, Leave(agent="late"))


def test_an_intervention_past_the_end_is_no_mistake() -> None:
    made = plan(scenario("clock.until=1m"))
    assert isinstance(made, Plan)
    assert max(tick for tick, _, _ in made.tables[0].interventions) == 3600


def test_a_plan_needs_nothing_heavy() -> None:
    code = f"""
import sys
from pathlib import Path
from sim.scenarios.scenario import loads
from sim.scenarios.plan import plan
plan(loads({TEXT!r}, Path({str(HERE)!r})))
heavy = {{"vllm", "torch", "transformers", "ray", "streamlit", "openai"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE.parent.parent)


# --- groups --------------------------------------------------------------------------------------------


def test_tables_of_a_group_share_the_cast_and_the_luck_of_the_world_and_not_that_of_the_minds(tmp_path):
    data = {
        "name": "groups",
        "clock": {"until": None},
        "tables": 4,
        "group": 2,
        "world": {"use": "worlds.negotiation.bargaining:Bargaining", "pie": 100},
        "cast": [
            {
                "name": "one",
                "count": 2,
                "agent": "agents.scripted:RandomLegal",
                "private": {"discount": "uniform(0.5, 0.9)"},
                "think": "uniform(1s, 9s)",
            }
        ],
    }
    planned = plan(loads(write_yaml(data), tmp_path, file="groups.yaml"))
    discounts = [[one.member.seat.private["discount"] for one in table] for table in planned.cast]
    assert discounts[0] == discounts[1] != discounts[2] == discounts[3]
    luck = [one.streams.draw("cards") for one in planned.tables]
    assert luck[0] == luck[1] != luck[2] == luck[3]
    minds = [one.streams.apart().sub(*one.mind_path).draw("mind") for one in planned.tables]
    assert len(set(minds)) == 4
