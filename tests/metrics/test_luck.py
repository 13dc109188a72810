"""From where on two runs no longer share their luck: by hand, of forks, and of an engine that answers as it likes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.fork import fork
from sim.metrics.family import Relative, opened
from sim.metrics.luck import NEVER, Place, Traces, compared, pairs, parted, traces
from sim.runs import create, go
from sim.scenarios.scenario import loads
from tests.metrics.society import Society, values
from tests.metrics.test_across import fork as forked
from tests.metrics.test_across import ids, run

COINS = """
name: coins
clock: {until: 300}
world: {use: "worlds.games.matrix:Matrix", game: pd, rounds: 6, talk: restricted}
cast:
  - {name: a, agent: "worlds.games.strategies:Random", think: "uniform(1, 9)"}
  - {name: b, agent: "worlds.games.strategies:Random", think: "uniform(1, 9)"}
"""


def written(path: Path, seen: dict[str, list[int]], said: str = "yes", at: int = 0) -> Traces:
    """A run of one table: who had turns when; at a tick of the first agent's a call and what came of it."""
    society = Society(path)
    for agent, ticks in seen.items():
        for tick in ticks:
            calls = [{"text": said, "digest": bytes([tick] * 16)}] if agent == "ann" and tick == at else []
            society.act(agent, tick + 1, seen=tick, calls=calls)
    with society.run() as record:
        return traces(record)


def test_where_two_runs_part_by_hand(tmp_path: Path) -> None:
    """Bob has a turn at 5 that the other has at 6; ann's call at 2 was answered otherwise; who of 5 turns both have."""
    one = written(tmp_path / "one.db", {"ann": [0, 2], "bob": [5]}, "yes", at=2)
    other = written(tmp_path / "other.db", {"ann": [0, 2], "bob": [6]}, "no", at=2)
    found = parted(one, other)
    assert found.logs == Place(6, 0), "bob's decision is due at another tick"
    assert found.turns == Place(5, 0, "bob")
    assert found.answers == Place(2, 0, "ann")
    assert (found.both, found.either) == (2, 4)


def test_runs_that_are_alike_part_nowhere(tmp_path: Path) -> None:
    one, other = (written(tmp_path / f"{name}.db", {"ann": [0, 2]}, at=2) for name in ("one", "other"))
    assert parted(one, other) == (None, None, None, 2, 2)


def test_where_one_ends_the_other_goes_on_alone(tmp_path: Path) -> None:
    one = written(tmp_path / "one.db", {"ann": [0]})
    other = written(tmp_path / "other.db", {"ann": [0, 4]})
    assert parted(one, other) == parted(other, one)
    assert parted(one, other).turns == Place(4, 0, "ann")
    nothing = written(tmp_path / "nothing.db", {})
    assert parted(nothing, nothing) == (None, None, None, 0, 0)


def test_another_question_may_have_another_answer(tmp_path: Path) -> None:
    one = written(tmp_path / "one.db", {"ann": [0, 2]}, "yes", at=0)
    other = written(tmp_path / "other.db", {"ann": [0, 2]}, "no", at=2)
    assert parted(one, other).answers is None


def test_each_is_beside_the_first_of_its_luck() -> None:
    runs = [forked("f"), forked("g", change="y"), forked("h", replicate=1), run("p"), run("r", seed=2)]
    assert ids(pairs(runs)) == [("p", "f"), ("p", "g")]
    control = forked("c", change="", replicate=1)
    assert ids(pairs([*runs, control])) == [("p", "f"), ("p", "g"), ("c", "h")]
    nested = Relative(id="n", record=None, scenario={}, parent="h", tick=9, change="z")  # type: ignore[arg-type]
    assert ids(pairs([*runs, control, nested]))[2:] == [("c", "h"), ("c", "n")]


def made(folder: Path) -> Path:
    path = create(loads(COINS, folder), folder, "coins")
    assert go(path).status == "finished"
    return path


def child(path: Path, at: int, **more: Any) -> Path:
    found = fork(path, path.parent, at, **more)
    assert go(found).status == "finished"
    return found


def test_forks_part_where_a_change_reaches_and_nowhere_without(tmp_path: Path) -> None:
    path = made(tmp_path)
    same, longer = child(path, 8), child(path, 8, sets=["rounds=9"])
    with opened([path]) as runs:
        found = values(compared(runs))
        back = values(compared(runs[::-1]))
    assert found == back, "their order says nothing"
    alike = [found[f"luck.{name}_apart first=coins second={same.stem}"] for name in ("logs", "turns", "answers")]
    assert {(one.value, one.flags) for one in alike} == {(None, (NEVER,))}
    assert found[f"luck.turns_shared first=coins second={same.stem}"].value == 1
    logs, turns, answers = (
        found[f"luck.{name}_apart first=coins second={longer.stem}"] for name in ("logs", "turns", "answers")
    )
    assert logs.value is not None
    assert turns.value is not None
    assert 8 < logs.value < turns.value, "where one has ended and the other goes on"
    assert answers.value is None
    shared = found[f"luck.turns_shared first=coins second={longer.stem}"]
    assert shared.value is not None
    assert 0.5 < shared.value < 1


def test_a_run_alone_shares_nothing(tmp_path: Path) -> None:
    with opened([made(tmp_path)]) as runs:
        (found,) = compared(runs)
    assert (found.value, found.flags) == (None, ("no two runs share their luck",))
