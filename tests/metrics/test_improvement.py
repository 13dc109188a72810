"""Getting better within an episode, by hand and on records: success by turn, loops, and what memory is worth."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.analysis import improvement, remembering
from sim.metrics.family import Relative
from tests.metrics.dealings import told
from tests.metrics.society import Society, values

# --- success by turn -----------------------------------------------------------------------------------------


def attempts(*tables: dict[str, str], agent: str = "a") -> Any:
    """By table and item attempts in order: x succeeds."""
    return told(
        [
            [("try", agent, {"item": item, "success": done == "x"}) for item, tried in table.items() for done in tried]
            for table in tables
        ]
    )


@pytest.mark.parametrize("agent", "az")
def test_success_by_turn(agent: str) -> None:
    """Solved at once, at the second turn, at the third, and never: ¼, ½, ¾; an area of 1, ¾, ¼ and 0 in four."""
    record = attempts({"one": "x", "two": ".x"}, {"one": "..x", "two": "."}, agent=agent)
    found = values(improvement.dynamics(record))
    assert [found[f"improvement.success turn={turn}"].value for turn in range(3)] == pytest.approx(
        [1 / 4, 2 / 4, 3 / 4]
    )
    assert found["improvement.area turns=3"].value == pytest.approx((1 + 0.75 + 0.25 + 0) / 4)
    assert found["improvement.success turn=0"].events == ((0, 0),)
    assert found["improvement.success turn=2"].n_clusters == 2


def test_one_attempt_has_no_area_and_none_no_success() -> None:
    (success, area, early) = improvement.dynamics(attempts({"one": "x"}))
    assert (success.value, area.value, area.flags) == (1, None, ("nothing was attempted twice",))
    assert {one.value for one in (area, early, *improvement.dynamics(attempts({})))} == {None}


def test_of_as_many_solved_those_come_out_better_that_were_solved_early() -> None:
    """Two of three solved in the end: at once and at the second turn of two, or both at the last."""
    soon, late = (
        values(improvement.dynamics(attempts({"one": one, "two": "..x", "three": "..."}))) for one in ("x", "..x")
    )
    assert soon["improvement.success turn=2"].value == late["improvement.success turn=2"].value == pytest.approx(2 / 3)
    assert soon["improvement.early turns=3"].value == pytest.approx((1 + 1 / 4) / 2)
    assert late["improvement.early turns=3"].value == pytest.approx(1 / 4)
    for found in (soon, late):
        parts = found["improvement.early turns=3"].value * found["improvement.success turn=2"].value
        assert found["improvement.area turns=3"].value == pytest.approx(parts)
    never = values(improvement.dynamics(attempts({"one": "..", "two": ".."})))
    assert (never["improvement.area turns=2"].value, never["improvement.early turns=2"].value) == (0, None)
    assert never["improvement.area turns=2"].flags == ("all tasks alike",)
    at_once = values(improvement.dynamics(attempts({"one": "x.", "two": "x"})))
    assert (at_once["improvement.area turns=2"].value, at_once["improvement.area turns=2"].ci) == (1, None)


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=4), max_size=6), st.randoms())
def test_an_interval_over_tasks_is_of_the_tasks_and_knows_no_order(clusters: list[list[float]], luck: Any) -> None:
    found = improvement.over_tasks(clusters, 19)
    every = [value for own in clusters for value in own]
    assert found.value == (pytest.approx(fmean(every)) if every else None)
    assert (found.n, found.clusters) == (len(every), sum(map(bool, clusters)))
    mixed = [luck.sample(own, len(own)) for own in luck.sample(clusters, len(clusters))]
    assert improvement.over_tasks(mixed, 19) == found
    if found.ci and found.method.startswith("bootstrap"):
        assert min(every) <= found.ci[0] <= found.ci[1] <= max(every)


def test_of_which_clusters_an_interval_over_tasks_is() -> None:
    """One cluster: its tasks alone, flagged. Two of means 1/4 and 3/4: by t, ±12.7·¼. Five and more are drawn."""
    one, few = (improvement.over_tasks([[0.0, 1, 0, 0], [1.0, 1, 0, 1]][:n]) for n in (1, 2))
    assert (one.method, one.flags, one.ci) == ("bootstrap within and over clusters", ("n_clusters<2",), (0, 0.75))
    assert (few.method, few.value) == ("t over clusters", 0.5)
    assert few.ci == pytest.approx((0.5 - 12.706 / 4, 0.5 + 12.706 / 4), abs=1e-3)
    assert improvement.over_tasks([[0.0, 1]] * 5).method == "bootstrap within and over clusters"


def test_a_step_that_made_progress_is_no_loop_when_it_comes_again(tmp_path: Path) -> None:
    """a, a, a, b, a, a: where the second and the fifth led on, the third and the last do not only repeat."""
    steps, progress = [("s", act) for act in "aaabaa"], [False, True, False, False, True, False]
    assert improvement.repeats(steps) == [False, True, True, False, True, True]
    assert improvement.repeats(steps, progress) == [False, True, False, False, True, False]
    assert (improvement.loop_ratio(steps, progress), improvement.longest_loop(steps, progress)) == (2 / 6, 1)
    assert improvement.loop_ratio(steps) == pytest.approx(4 / 6)
    society = Society(tmp_path / "run.db")
    society.member("ann")
    for tick, (state, act) in enumerate(steps):
        society.act("ann", tick, key=state, answer=act)
        if progress[tick]:
            society.fact(tick, "try", "ann", success=True)
    with society.run() as record:
        found = values(improvement.loops(record))
    assert found["improvement.loop_ratio"].value == pytest.approx(2 / 6)
    assert found["improvement.longest_loop"].value == 1


# --- what memory is worth ------------------------------------------------------------------------------------


def remembered(record: Any, tokens: int | None, seed: int = 1, **world: Any) -> Relative:
    """A run of agents who remember so much."""
    own = {} if tokens is None else {"memory_tokens": tokens}
    scenario = {"seed": seed, "cast": [{"name": "a", "with": own}], "world": world}
    return Relative(id=f"{seed} {tokens} {world}", record=record, scenario=scenario)


def test_the_memory_index_by_hand() -> None:
    """Six of ten tasks solved with memory, five without, two of these not with it; at two tables of five."""
    full = attempts({f"t{n}": "x" for n in range(5)}, {"t0": ".x", "t1": "..", "t2": ".", "t3": ".", "t4": "."})
    less = attempts({f"t{n}": ".x"[n > 1] for n in range(5)}, {f"t{n}": ".x"[0 < n < 3] for n in range(5)})
    runs = [remembered(less, 0), remembered(full, None), remembered(full, None, more="yes")]
    (found,) = remembering.compared(runs)
    assert (found.value, found.n, found.n_clusters) == (pytest.approx(0.1), 10, 2)
    assert found.of == {"full": "cast.a.with.memory_tokens=all", "less": "cast.a.with.memory_tokens=0"}
    assert found.null["p"] == 1
    assert list(remembering.compared(runs[::-1])) == [found]
    turned = values(remembering.compared([remembered(less, None), remembered(full, 0)]))
    assert [one.value for one in turned.values()] == [pytest.approx(-0.1)]


def test_runs_of_memory_alone_and_of_one_luck_are_compared() -> None:
    solved, failed = attempts({"one": "x", "two": "x"}), attempts({"one": "x", "three": "."})
    for runs in (
        [],
        [remembered(solved, 0), remembered(failed, 0)],
        [remembered(solved, 0), remembered(failed, 9, seed=2)],
        [remembered(solved, 0), remembered(failed, 9, pie=1)],
        [remembered(solved, 0, memory=9), remembered(failed, 9, memory=0)],
    ):
        (none,) = remembering.compared(runs)
        assert none.value is None
        assert none.flags == ("no two runs of the same luck that differ in memory alone",)
    last = [remembered(solved, 5, seed, memory=memory) for seed in (1, 2) for memory in (None, 1, 3)]
    found = values(remembering.compared(last))
    assert found.keys() == {
        f"improvement.memory_index full=world.memory={full} less=world.memory={less}"
        for full, less in (("all", 1), ("all", 3), (3, 1))
    }
    assert {(one.value, one.n, one.n_clusters, one.flags) for one in found.values()} == {
        (0, 4, 2, ("all tasks alike",))
    }
    (alone,) = remembering.compared([remembered(solved, 9), remembered(failed, 0)])
    assert (alone.value, alone.n, alone.excluded) == (0, 1, {"attempted in one run only": 2})
