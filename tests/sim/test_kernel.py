"""The order of things in a tick, minds, drops, faults, the cast and the end."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.engines.synthetic import SyntheticEngine
from sim.kernel import MAX_INTERRUPTS, WorldError
from sim.simulate import player, simulate
from sim.types import APPLIED, Act, Action, Fact, Join, Leave, Outcome, Result, Say, Seat, Set, Wake
from tests.stage import Asker, Raises, Stage, Yes, again, results


def decided(simulation: Any) -> list[tuple[int, str, int, str]]:
    """(tick, agent, tick seen, how) of each stepped decision, in log order."""
    return [(row[2], row[4], row[5], row[8]) for kind, row in simulation.rows if kind == "decisions"]


def events(simulation: Any, kind: str) -> list[tuple[Any, ...]]:
    return [row for table, row in simulation.rows if table == "events" and row[4] == kind]


def test_a_decision_is_due_a_think_time_after_its_wake() -> None:
    stage = Stage()
    run = simulate(stage, [player(Yes(), "a", "3s"), player(Yes(), "b", "5s")], until=10)
    assert stage.seen == [(0, "a"), (0, "b"), (3, "a"), (5, "b"), (6, "a")]
    assert decided(run) == [(3, "a", 0, "chosen"), (5, "b", 0, "chosen"), (6, "a", 3, "chosen"), (9, "a", 6, "chosen"),
                            (10, "b", 5, "chosen")]  # fmt: skip


def test_actions_due_together_form_one_step_in_cast_order() -> None:
    stage = Stage()
    simulate(stage, [player(Yes(), "b", "2s"), player(Yes(), "a", "2s")], until=4)
    assert [(tick, [agent for agent, _ in acts]) for tick, acts in stage.steps] == [(2, ["b", "a"]), (4, ["b", "a"])]


def test_zero_think_decisions_form_the_step_of_the_next_round() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        wake = [Wake(agent="fast", tick=now)] if len(stage.steps) < 4 else []
        return Outcome(results=results(actions), wakes=wake)

    stage = Stage(rule)
    run = simulate(stage, [player(Yes(), "fast", 0), player(Yes(), "slow", 0)])
    assert [acts for _, acts in stage.steps] == [
        [("fast", "yes"), ("slow", "yes")], [("fast", "yes")], [("fast", "yes")], [("fast", "yes")]
    ]  # fmt: skip
    assert [row[3] for kind, row in run.rows if kind == "decisions"] == [1, 1, 2, 3, 4]
    assert run.table.now == 0


def test_zero_think_for_ever_is_an_error_that_names_the_agents() -> None:
    with pytest.raises(WorldError, match=r"more than 1000 rounds.*: a$"):
        simulate(Stage(), [player(Yes(), "a", 0), player(Yes(), "b", "1h")])


def test_wakes_while_thinking_become_one_after_the_decision() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        wakes = [Wake(agent="slow", tick=now), Wake(agent="quick", tick=now)] if now < 4 else []
        return Outcome(results=results(actions), wakes=wakes)

    stage = Stage(rule)
    simulate(stage, [player(Yes(), "quick", 1), player(Yes(), "slow", 10)])
    assert [now for now, agent in stage.seen if agent == "slow"] == [0, 10]


def test_an_interrupt_drops_the_decision_and_its_mind() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        wakes = [Wake(agent="slow", tick=now, interrupt=True)] if now == 1 else []
        return Outcome(results=results(actions), wakes=wakes)

    stage = Stage(rule)
    slow = Yes()
    run = simulate(stage, [player(Yes(), "quick", 1), player(slow, "slow", 10)])
    assert decided(run) == [(1, "quick", 0, "chosen"), (11, "slow", 1, "chosen")]
    assert slow.state == 1, "the dropped decision left no trace"


def test_after_three_interrupts_in_a_row_the_decision_stands() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        wakes = [Wake(agent="quick", tick=now)] if now < 8 else []
        return Outcome(results=results(actions), wakes=[*wakes, Wake(agent="slow", tick=now, interrupt=now < 8)])

    stage = Stage(rule)
    run = simulate(stage, [player(Yes(), "quick", 1), player(Yes(), "slow", 10)], until=20)
    assert run.table.counts["dropped"] == MAX_INTERRUPTS
    assert [(tick, seen) for tick, agent, seen, _ in decided(run) if agent == "slow"] == [(13, 3)]


def test_a_decision_due_after_the_end_is_never_started() -> None:
    stage = Stage()
    run = simulate(stage, [player(Yes(), "a", 4), player(Yes(), "b", 11)], until=10)
    assert (8, "a") not in stage.seen
    assert (0, "b") not in stage.seen
    assert '"truncated":["a","b"]' in events(run, "end")[0][6]


def test_a_timer_steps_with_no_action_and_must_be_later() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        if not actions:
            return Outcome(facts=[stage.fact("expired")])
        return Outcome(results=results(actions), timers=[now + 5])

    stage = Stage(rule)
    run = simulate(stage, [player(Yes(), "a", 2)])
    assert stage.steps == [(2, [("a", "yes")]), (7, [])]
    assert [row[2] for kind, row in run.rows if kind == "facts"] == [7]
    with pytest.raises(WorldError, match="timer for tick 2, which is not later"):
        simulate(Stage(lambda s, now, acts: Outcome(results=results(acts), timers=[now])), [player(Yes(), "a", 2)])


def test_a_tool_chain_costs_its_duration_and_shares_a_thread() -> None:
    """An action that reads the world wakes the agent again with its result."""

    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        result = Fact(id=stage.fact("tool").id, kind="tool_result", audience=("a",), data={"n": len(stage.steps)})
        wakes = [Wake(agent="a", tick=now + 2)] if len(stage.steps) < 3 else []
        return Outcome(facts=[result], results=results(actions), wakes=wakes)

    stage = Stage(rule, turn={"thread": 7})
    run = simulate(stage, [player(Yes(), "a", 1)])
    assert [(tick, seen) for tick, _, seen, _ in decided(run)] == [(1, 0), (4, 3), (7, 6)]
    assert {row[14] for kind, row in run.rows if kind == "decisions"} == {7}


def test_a_broken_mind_is_a_fault_and_the_run_goes_on() -> None:
    stage = Stage(lambda s, now, acts: Outcome(results=results(acts)))
    engine = SyntheticEngine()
    players = [player(Raises(), "a", 1), player(Raises(late=True), "b", 1), player(Yes(), "c", 1),
               player(Yes("maybe"), "d", 1), player(Yes(3), "e", 1)]  # fmt: skip
    run = simulate(stage, players, engines={"m": engine})
    assert [how for _, _, _, how in decided(run)] == ["faulted", "faulted", "chosen", "faulted", "faulted"]
    assert stage.steps == [(1, [("a", "no"), ("b", "no"), ("c", "yes"), ("d", "no"), ("e", "no")])]
    reasons = [row[9] for kind, row in run.rows if kind == "decisions"]
    assert reasons[0] == "ValueError: broken mind"
    assert "illegal answer" in reasons[3]


def test_a_broken_world_stops_the_run_and_says_where() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        raise ZeroDivisionError("ouch")

    with pytest.raises(WorldError, match=r"table 0, tick 1: Stage.step raised ZeroDivisionError: ouch"):
        simulate(Stage(rule), [player(Yes(), "a", 1)])
    with pytest.raises(WorldError, match="1 actions and gave 0 results"):
        simulate(Stage(lambda s, now, acts: Outcome()), [player(Yes(), "a", 1)])
    with pytest.raises(WorldError, match="unknown agent 'zed'"):
        simulate(Stage(first=Outcome(wakes=[Wake(agent="zed", tick=0)])), [player(Yes(), "a", 1)])


def test_identity_is_set_by_the_kernel() -> None:
    class Impostor(Yes):
        def act(self, turn: Any, streams: Any) -> Any:
            return Action(answer="yes", agent="b", seen=99, shows=(5,))
            yield

    run = simulate(Stage(), [player(Impostor(), "a", 1), player(Yes(), "b", "1h")], until=2)
    assert [(agent, seen) for _, agent, seen, _ in decided(run)] == [("a", 0), ("a", 1)]


def test_what_a_turn_shows_stands_on_the_decision() -> None:
    from sim.blobs import decode_ids

    run = simulate(Stage(), [player(Yes(), "a", 1)], until=4)
    shows = [tuple(decode_ids(row[12])) for kind, row in run.rows if kind == "decisions"]
    assert shows == [(), (0,), (0, 1), (0, 1, 2)]


def test_stale_is_recorded_with_its_reason() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        return Outcome(results=[APPLIED, *[Result(status="stale", reason="gone")] * (len(actions) - 1)])

    run = simulate(Stage(rule), [player(Yes(), "a", 1), player(Yes(), "b", 1)])
    assert [row[10:12] for kind, row in run.rows if kind == "decisions"] == [("applied", ""), ("stale", "gone")]
    assert run.table.counts["stale"] == 1


def test_interventions_come_first_in_their_tick_in_file_order() -> None:
    stage = Stage()
    plan = [(2, Say(text="one"), None), (2, Set(key="mood", value=3), None), (4, Say(text="two"), None)]
    run = simulate(stage, [player(Yes(), "a", 2)], until=4, interventions=plan)
    assert stage.changes == [(tick, change) for tick, change, _ in plan]
    kinds = [(row[2], row[5] if kind == "facts" else "decision") for kind, row in run.rows if kind != "events"]
    assert kinds[:4] == [(2, "change"), (2, "change"), (2, "decision"), (2, "did")]


def test_a_joiner_plays_and_its_id_is_its_own() -> None:
    stage = Stage()
    joiner = player(Yes(), "late", 2)
    run = simulate(stage, [player(Yes(), "a", 3)], until=9, interventions=[(3, Join(seat=Seat(agent="late")), joiner)])
    assert [(tick, seen) for tick, agent, seen, _ in decided(run) if agent == "late"] == [(5, 3), (7, 5), (9, 7)]
    again_a = player(Yes(), "a", 2)
    with pytest.raises(WorldError, match="id a is taken"):
        simulate(Stage(), [player(Yes(), "a", 3)], until=9, interventions=[(3, Join(seat=Seat(agent="a")), again_a)])


def test_who_is_to_join_keeps_an_empty_table_open() -> None:
    late = player(Yes(), "late", 2)
    moves = [(2, Leave(agent="a"), None), (6, Join(seat=Seat(agent="late")), late)]
    run = simulate(Stage(), [player(Yes(), "a", 4)], until=9, interventions=moves)
    assert [(tick, agent) for tick, agent, _, _ in decided(run)] == [(8, "late")]


def test_a_leaver_s_pending_decision_is_dropped() -> None:
    stage = Stage()
    run = simulate(
        stage, [player(Yes(), "a", 4), player(Yes(), "b", 3)], until=9,
        interventions=[(2, Leave(agent="a"), None), (5, Leave(agent="a"), None)],
    )  # fmt: skip
    assert {agent for _, agent, _, _ in decided(run)} == {"b"}
    assert len(stage.changes) == 1, "leaving twice does nothing"
    with pytest.raises(WorldError, match="id a is taken"):
        simulate(
            Stage(), [player(Yes(), "a", 4), player(Yes(), "b", 3)], until=9,
            interventions=[(2, Leave(agent="a"), None), (5, Join(seat=Seat(agent="a")), player(Yes(), "a"))],
        )  # fmt: skip


def test_an_agent_does_once_what_an_intervention_says() -> None:
    """Whatever it decided; the world hears of no change, and the mind remembers what it decided."""
    stage, mind = Stage(), Yes()
    acts = [(3, Act(agent="a", answer="no"), None), (3, Act(agent="gone", answer="no"), None)]
    run = simulate(stage, [player(mind, "a", 2), player(Yes(), "b", 2)], until=6, interventions=acts)
    assert stage.steps == [
        (2, [("a", "yes"), ("b", "yes")]), (4, [("a", "no"), ("b", "yes")]), (6, [("a", "yes"), ("b", "yes")])
    ]  # fmt: skip
    assert [how for tick, agent, _, how in decided(run) if agent == "a"] == ["chosen", "forced", "chosen"]
    assert (stage.changes, mind.state) == ([], 3)
    assert run.table.counts["forced"] == 1
    assert [orjson.loads(row[6]) for row in events(run, "change")] == [
        {"do": "act", "agent": "a", "answer": "no"},
        {"do": "act", "agent": "gone", "answer": "no", "skipped": "not in play"},
    ]


def test_an_illegal_act_is_recorded_and_does_nothing() -> None:
    stage = Stage()
    run = simulate(stage, [player(Yes(), "a", 2)], until=4, interventions=[(2, Act(agent="a", answer="maybe"), None)])
    assert [acts for _, acts in stage.steps] == [[("a", "yes")], [("a", "yes")]]
    skipped = orjson.loads(events(run, "change")[1][6])["skipped"]
    assert skipped.startswith("illegal answer:")


def test_the_world_ends_agents_and_the_run() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        outcome = again(stage, now, actions)
        return Outcome(facts=outcome.facts, results=outcome.results, wakes=outcome.wakes,
                       rewards={"a": 1.5}, ended={actions[0].agent: "terminated"} if now >= 4 else {})  # fmt: skip

    run = simulate(Stage(rule), [player(Yes(), "a", 2), player(Yes(), "b", 5)])
    assert [(row[2], row[5]) for row in events(run, "ended")] == [(4, "a"), (5, "b")]
    assert events(run, "end")[0][6] == '{"truncated":[]}'
    assert len(events(run, "rewards")) == 3


def test_stop_after_so_many_facts_or_decisions() -> None:
    run = simulate(Stage(), [player(Yes(), "a", 1)], stops=[("did", 3)])
    assert len(decided(run)) == 3
    run = simulate(Stage(), [player(Yes(), "a", 1), player(Yes(), "b", 1)], stops=[("decision", 5)])
    assert len(decided(run)) == 6, "the step in which the rule is met is whole"


def test_nothing_to_ask_is_no_decision() -> None:
    stage = Stage()
    stage.observe = lambda now, agent: None  # type: ignore[method-assign]
    run = simulate(stage, [player(Yes(), "a", 1)])
    assert decided(run) == []
    assert run.table.finished


def test_closing_a_mind_at_any_yield_leaves_the_agent_equal() -> None:
    for asked in range(4):
        agent = Asker(calls=4)
        stage = Stage()
        simulate(stage, [player(Yes(), "x", 1)], until=0)
        mind = agent.act(stage.observe(0, "a"), None)
        request = next(mind)
        for _ in range(asked):
            from sim.types import Completion

            request = mind.send([Completion(text="yes")] * len(request))
        mind.close()
        assert agent.state == ()


def test_every_round_is_hashed_and_the_hash_chains() -> None:
    run = simulate(Stage(), [player(Yes(), "a", 1)], until=3)
    marks = [row[6] for row in events(run, "tick")]
    assert len(marks) == len(set(marks)) == 5, "tick 0 to 3, and the end"
    other = simulate(Stage(), [player(Yes("no"), "a", 1)], until=3)
    assert other.hash != run.hash
    assert simulate(Stage(), [player(Yes(), "a", 1)], until=3).hash == run.hash
