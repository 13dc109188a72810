"""Runs that are measured together: forks with controls, other minds, conditions; and `agora measure --across`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.fork import fork
from sim.metrics.family import Relative, changed, conditions, opened, trials
from sim.record.project import Numbers
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.verify import verify
from tests.commands import Agora

SCENARIO = """
name: coins
clock: {until: 60}
world: {use: "worlds.games.matrix:Matrix", game: pd, rounds: 6, talk: restricted}
cast:
  - {name: a, agent: "worlds.games.strategies:Random", think: 1}
  - {name: b, agent: "worlds.games.strategies:Random", think: 1}
"""
GRIM = "worlds.games.strategies:Grim"
METRIC = """
from sim.metrics.family import trials
from sim.types import Measurement

def pairs(runs):
    for one in trials(runs):
        yield Measurement(metric="pairs", value=float(len(one.pairs)), n=len(runs), of={"at": one.tick})
"""


def made(folder: Path, name: str, *overrides: str) -> Path:
    """A run of that scenario."""
    path = create(loads(SCENARIO, folder, overrides=overrides), folder / "runs", name)
    assert go(path).status == "finished"
    return path


def forked(path: Path, at: int, **more: Any) -> Path:
    child = fork(path, path.parent, at, **more)
    assert go(child).status == "finished"
    return child


def moves(path: Path) -> list[Any]:
    with Run(path) as run:
        return [list(item.fact.data["moves"].values()) for item in run.facts("round")]


def test_a_fork_has_a_control_of_the_same_luck(tmp_path: Path, agora: Agora) -> None:
    path = made(tmp_path, "c1")
    (tmp_path / "mine.py").write_text(METRIC)
    said = agora("fork", "c1", "--at", "8s", "--set", "rounds=7", "--replicates", "2", "--control", "-q")
    assert said.out.count(" finished. Look:") == 4
    with opened([path]) as runs:
        (trial,) = trials(runs)
        assert [(a.replicate, b.replicate, b.change) for a, b in trial.pairs] == [(0, 0, ""), (1, 1, "")]
        assert '"key":"rounds"' in trial.change
        for treated, control in trial.pairs:
            there, before = (
                [item.fact.data["moves"] for item in one.record.facts("round")] for one in (treated, control)
            )
            assert there[:6] == before
            assert len(there) == 7
    told = agora("measure", "c1", "--across", "./mine.py:pairs").out.splitlines()
    assert told[1].split() == ["pairs", "at", "8", "2", "5"]
    with Numbers(tmp_path / "runs" / "project.db") as kept:
        assert "pairs" in {one.metric for _, one in kept.measurements("c1")}, "kept with the run that was forked"


def test_a_run_is_the_control_of_its_own_luck_and_forks_without_one_are_counted() -> None:
    parent = Relative(id="p", record=None, scenario={})  # type: ignore[arg-type]
    forks = [
        Relative(id=f"f{r}", record=None, scenario={}, parent="p", tick=3, replicate=r, change="x")  # type: ignore[arg-type]
        for r in (1, 0)
    ]
    (trial,) = trials([parent, *forks])
    assert [(a.id, b.id) for a, b in trial.pairs] == [("f0", "p")]
    assert trial.missing == 1


def test_other_minds_have_the_same_seats(tmp_path: Path, agora: Agora) -> None:
    path = made(tmp_path, "c1")
    both, other = (forked(path, 0, minds=[GRIM], replicate=r) for r in (0, 1))
    one = forked(path, 0, minds=[f"a={GRIM}"])
    assert moves(both) == moves(other) == [["cooperate", "cooperate"]] * 6
    assert [each[0] for each in moves(one)] != [each[0] for each in moves(path)]
    with opened([path]) as runs:
        assert sorted((one.tick, one.change.count("Grim")) for one in runs[1:]) == [(0, 1), (0, 2), (0, 2)]
    with opened([one, path]) as runs:
        assert [each.parent for each in runs] == ["", "c1", "c1", "c1"], "a fork that is named too is still a fork"
    with opened([one]) as runs:
        assert [each.parent for each in runs] == [""]
    assert verify(one).whole
    assert "fork at 0" in agora("fork", "c1", "--at", "4s", "--mind", GRIM).line
    assert "no agent and no cast entry" in agora("fork", "c1", "--at", "0", "--mind", f"c={GRIM}").line


def test_runs_of_one_condition_differ_in_luck_and_size_only(tmp_path: Path) -> None:
    paths = [made(tmp_path, f"c{n}", f"world.rounds={2 + n // 3}", f"seed={n}") for n in range(1, 5)]
    with opened(paths) as runs:
        found = {told: [one.id for one in group] for told, group in conditions(runs).items()}
    assert found == {'{"rounds":2}': ["c1", "c2"], '{"rounds":3}': ["c3", "c4"]}


def test_what_will_not_do_is_told(tmp_path: Path, agora: Agora) -> None:
    made(tmp_path, "c1")
    assert "names nothing; write module:Name" in agora("measure", "c1", "--across", "pairs").line
    (tmp_path / "broken.py").write_text("def broken(runs):\n    raise ValueError('no such thing')\n")
    assert "failed: ValueError: no such thing" in agora("measure", "c1", "--across", "./broken.py:broken").out


def test_an_interval_from_few_runs_is_flagged(tmp_path: Path, agora: Agora) -> None:
    made(tmp_path, "c1")
    (tmp_path / "mine.py").write_text(
        "from sim.types import Measurement\n"
        "def three(runs):\n"
        "    for n, ci in ((19, (0, 1)), (20, (0, 1)), (19, None)):\n"
        "        yield Measurement(metric=f'm{n}', value=0.5, n_clusters=n, ci=ci, of={'ci': str(ci)})\n"
    )
    said = agora("measure", "c1", "--across", "./mine.py:three").out
    assert said.count("Fewer than 20 runs") == 1
    with Numbers(tmp_path / "runs" / "project.db") as kept:
        flagged = [one.metric for _, one in kept.measurements("c1") if "n_clusters<20" in one.flags]
    assert flagged == ["m19"], "and not the one without an interval"


def test_what_changed_is_what_was_added() -> None:
    assert changed({"seats": {}}, {"seats": {"a": {"agent": "x"}}}) == '{"seats":{"a":{"agent":"x"}}}'
