"""Sweeps: a run for every setting and seed, side by side, sharing their luck; stopped, failed and gone on with."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from sim import sweep as sweeps
from sim.commands.failures import BadInput
from sim.commands.sweeping import Board
from sim.library import PROJECT, files, find_all, status_of
from sim.record.committed import held
from sim.record.project import Numbers, Project
from sim.record.reader import Run
from sim.record.store import Store
from sim.scenarios.located import ScenarioError
from sim.steering.channel import NotRunning, connect
from sim.steering.people import taking
from sim.sweep import Setting, known, settings, sweep
from tests.commands import Agora, Process, wait_until

PLAY: dict[str, Any] = {
    "name": "play",
    "seed": 3,
    "clock": {"until": None},
    "world": {"use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 4},
    "cast": [{"name": "player", "count": 2, "agent": "agents.scripted:RandomLegal", "think": "uniform(1s, 9s)"}],
}
SPOKEN: dict[str, Any] = {
    "models": {"small": {"engine": "synthetic", "latency": "exponential(1ms)"}},
    "cast": [{"name": "player", "count": 2, "agent": "agents.llm:LLMAgent", "model": "small", "think": "5s"}],
}
BREAKS = """
from worlds.games.matrix import Matrix

class Breaks(Matrix):
    def step(self, now, actions):
        raise RuntimeError("it breaks")
"""


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "play.yaml"
    path.write_text(yaml.safe_dump({**PLAY, **changes}, sort_keys=False), encoding="utf-8")
    return path


def log_hash(path: Path) -> str:
    with Run(path) as run:
        return run.manifest().hash


def statuses(folder: Path) -> dict[str, str]:
    return {path.stem: status_of(path) for path in files(folder / "runs")}


# --- what is run ------------------------------------------------------------------------------------------


def test_every_combination_once_and_the_last_key_fastest() -> None:
    assert settings([]) == [()]
    assert settings(["a.b=[1, x y]", "c=[true, [2, 3]]"]) == [
        ("a.b=1", "c=true"),
        ("a.b=1", "c=[2,3]"),
        ("a.b=x y", "c=true"),
        ("a.b=x y", "c=[2,3]"),
    ]


def test_a_value_stays_what_it_is() -> None:
    """A quoted number is a text, and a text with a colon stays one."""
    assert settings(['a=["5", 5, "x: y", 20s]']) == [('a="5"',), ("a=5",), ('a="x: y"',), ("a=20s",)]


@pytest.mark.parametrize("text", ["a", "a=", "a=5", "a=[]", "a={b: 1}"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"not a list of values; write KEY="):
        settings([text])


def test_a_value_stands_once() -> None:
    with pytest.raises(BadInput, match=r"world\.rounds=\[2, 3, 2\]: 2 stands there twice; leave one out"):
        settings(["world.rounds=[2, 3, 2]"])


def test_seeds_have_an_option_of_their_own() -> None:
    with pytest.raises(BadInput, match="every setting has the same seeds; write --seeds 2"):
        settings(["seed=[1, 2]"])


def test_ids_seeds_and_tags(tmp_path: Path) -> None:
    made = sweep(written(tmp_path), tmp_path / "runs", over=["world.rounds=[2, 5]"], seeds=2, name="pd")
    names = [[path.stem for path in cell.runs] for cell in made.cells]
    assert names == [["pd-1-s3", "pd-1-s4"], ["pd-2-s3", "pd-2-s4"]]
    with Run(made.cells[1].runs[0]) as run:
        assert (run.manifest().seed, run.manifest().params["rounds"], status_of(run.path)) == (3, 5, "not started")
    with Numbers(tmp_path / "runs" / PROJECT) as numbers:
        assert numbers.tags("pd-2-s4") == ("pd", "world.rounds=5")
    alone = sweep(written(tmp_path), tmp_path / "runs", seeds=2, name="one")
    assert [path.stem for path in alone.cells[0].runs] == ["one-s3", "one-s4"]


def test_a_sweep_is_known_by_the_tags_of_its_runs(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    sweep(written(tmp_path), folder, over=["world.rounds=[2, 5]"], seeds=2, name="pd-2")
    sweep(written(tmp_path), folder, seeds=1, name="one")
    with Project(folder / PROJECT) as project:
        project.tag("pd-2-1-s9", "not of the sweep")
        project.tag("two-s3", "one")
        tags = project.all_tags()
    assert known(tags) == {
        "one": [Setting("", {3: "one-s3"})],
        "pd-2": [
            Setting("world.rounds=2", {3: "pd-2-1-s3", 4: "pd-2-1-s4"}),
            Setting("world.rounds=5", {3: "pd-2-2-s3", 4: "pd-2-2-s4"}),
        ],
    }


def test_where_one_will_not_do_none_is_made(tmp_path: Path) -> None:
    scenario, folder = written(tmp_path), tmp_path / "runs"
    with pytest.raises(ScenarioError, match="rounds"):
        sweep(scenario, folder, over=["world.rounds=[2, never]"])
    with pytest.raises(BadInput, match="more than 10,000"):
        sweep(scenario, folder, seeds=10_001)
    with pytest.raises(ScenarioError, match="refuses its settings"):  # known only when its run is made
        sweep(written(tmp_path, **SPOKEN), folder, over=["cast.player.with.memory_tokens=[50, many]"], name="pd")
    assert files(folder) == []
    with Numbers(folder / PROJECT) as numbers:
        assert numbers.all_tags() == {}


@pytest.mark.parametrize("name", ["**", "/pd", "p*", "../pd"])
def test_what_cannot_be_a_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be a run's id"):
        sweep(written(tmp_path), tmp_path / "runs", name=name)


def test_of_two_sweeps_of_one_name_only_the_first_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked for the name before the first took it."""
    scenario, folder = written(tmp_path), tmp_path / "runs"
    load, loaded = sweeps.load, 0

    def slow(*args: Any) -> Any:
        nonlocal loaded
        loaded += 1
        if loaded == 2:  # the first is before the look
            sweep(scenario, folder, name="pd")
        return load(*args)

    monkeypatch.setattr(sweeps, "load", slow)
    with pytest.raises(BadInput, match="there is pd-s3 already"):
        sweep(scenario, folder, name="pd")
    assert [path.stem for path in files(folder)] == ["pd-s3"]


def test_a_name_that_is_taken_is_gone_on_with(tmp_path: Path) -> None:
    sweep(written(tmp_path), tmp_path / "runs", name="pd")
    with pytest.raises(BadInput, match=r"there is pd-s3 already; go on with those: agora resume 'pd-\*'"):
        sweep(written(tmp_path), tmp_path / "runs", name="pd")


# --- side by side -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, SPOKEN], ids=["processes", "shared engines"])
def test_runs_beside_each_other_are_those_run_alone(agora: Agora, tmp_path: Path, changes: dict[str, Any]) -> None:
    scenario = written(tmp_path, **changes)
    said = agora("sweep", scenario, "--over", "world.rounds=[2, 5]", "--seeds", 2, "--name", "pd", "--jobs", 3)
    assert said.code == 0, said.err
    assert set(statuses(tmp_path).values()) == {"finished"}
    assert "All finished. Look: agora report 'pd-*'" in said.out
    assert agora("run", scenario, "-q", "--set", "world.rounds=5", "--set", "seed=4", "--name", "alone").code == 0
    folder = tmp_path / "runs"
    assert log_hash(folder / "pd-2-s4.db") == log_hash(folder / "alone.db")
    assert len({log_hash(path) for path in find_all(folder, ["pd-*"])}) == 4
    together = agora("measure", "pd-2-*").out
    (row,) = [line.split() for line in said.out.splitlines() if line.split()[:2] == ["matrix.mean_payoff", "2"]]
    assert row[2] in together, "the means of a setting are those of its runs measured together"


def test_a_run_that_fails_leaves_the_others(agora: Agora, tmp_path: Path) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    use = "[worlds.games.matrix:Matrix, ./breaks.py:Breaks]"
    said = agora("sweep", written(tmp_path), "--over", f"world.use={use}", "--seeds", 2, "--name", "pd", "-q")
    assert said.code == 1
    assert statuses(tmp_path) == {
        "pd-1-s3": "finished", "pd-1-s4": "finished", "pd-2-s3": "failed", "pd-2-s4": "failed",
    }  # fmt: skip
    for run in ("pd-2-s3", "pd-2-s4"):
        assert re.search(rf"{run} failed: table 0, tick \d+: Breaks.step raised RuntimeError: it breaks", said.out)
    assert "Mend it, then: agora resume 'pd-*'" in said.out
    assert re.match(r"pd-2-s4  failed: .* it breaks\n", agora("show", "pd-2-s4").out)


def test_where_an_engine_is_out_of_service_no_more_are_begun(agora: Agora, tmp_path: Path) -> None:
    dead = {**SPOKEN, "models": {"small": {"engine": "synthetic", "dead_after": 3}}}
    said = agora("sweep", written(tmp_path, **dead), "--seeds", 3, "--name", "pd", "--jobs", 1, "-q")
    assert said.code == 3
    assert "pd-s3 paused: the synthetic engine died after 3 calls" in said.out
    assert list(statuses(tmp_path).values()).count("not started") == 2
    assert agora("resume", "pd-*", "--budget", 5).line.endswith("go on with them one by one")


def test_stopped_by_ctrl_c_and_gone_on_with(agora: Agora, started: Callable[..., Process], tmp_path: Path) -> None:
    scenario = written(tmp_path, world={**PLAY["world"], "rounds": 20_000})
    process = started("sweep", scenario, "--seeds", 3, "--name", "pd", "--jobs", 2)
    wait_until(lambda: list(statuses(tmp_path).values()).count("running") == 2, process)
    process.interrupt()
    said = process.end()
    assert said.code == 130, said
    assert sorted(statuses(tmp_path).values()) == ["interrupted", "interrupted", "not started"]
    assert "agora resume 'pd-*'" in said.out


SLOW = """
import time
from pathlib import Path

class Slow:
    def __init__(self):
        Path("building").touch()
        time.sleep(60)
"""


def test_ctrl_c_does_not_wait_for_a_model_that_is_being_loaded(started: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    scenario = written(tmp_path, **{**SPOKEN, "models": {"small": {"engine": "./slow.py:Slow"}}})
    process = started("sweep", scenario, "--seeds", 2, "--name", "pd")
    wait_until((tmp_path / "building").exists, process)
    process.interrupt()
    said = process.end(within=10)
    assert (said.code, "Traceback" in said.err) == (130, False), said
    assert set(statuses(tmp_path).values()) <= {"interrupted", "not started"}
    assert "agora resume 'pd-*'" in said.out


def test_the_display_says_that_it_is_stopping_and_counts_what_is_over(tmp_path: Path) -> None:
    made = sweep(written(tmp_path), tmp_path / "runs", seeds=3, name="pd")
    shown: list[str] = []

    class Played:
        """Over at the second look, between which Ctrl-C comes."""

        def __init__(self, path: Path) -> None:
            self.path, self.looks, self.stops = path, 0, 0

        def over(self) -> bool:
            self.looks += 1
            with Console(file=StringIO(), width=100, record=True) as console:
                console.print(board)
            shown.append(console.export_text())
            if self.looks == 1:
                board.interrupt(signal.SIGINT, None)
            return self.looks == 2

        def stop(self) -> None:
            self.stops += 1

    played: list[Played] = []

    def start(path: Path) -> Played:
        played.append(Played(path))
        return played[-1]

    board = Board(made.cells[0].runs, 1, start)
    board.play()
    first, second = shown
    assert first.startswith("0 of 3 runs")
    assert "Ctrl-C" not in first
    assert second.startswith("0 of 3 runs")
    assert "stopping; calls in flight are waited for (Ctrl-C again: stop now)" in second
    assert [one.stops for one in played] == [1], "and no more are begun"


def test_ctrl_c_in_a_terminal_while_the_first_is_being_started(started: Callable[..., Process], tmp_path: Path) -> None:
    process = started("sweep", written(tmp_path), "--seeds", 2, "--set", "world.rounds=20000", "--name", "pd", "-q")
    wait_until(lambda: len(process.children()) == 2, process)
    process.interrupt_all()
    said = process.end()
    assert (said.code, "Traceback" in said.err) == (130, False), said
    assert set(statuses(tmp_path).values()) <= {"interrupted", "not started"}


def test_after_the_death_of_who_started_them_runs_stop_and_can_be_gone_on_with(
    started: Callable[..., Process], tmp_path: Path
) -> None:
    scenario = written(tmp_path, world={**PLAY["world"], "rounds": 100_000})
    process = started("sweep", scenario, "--seeds", 2, "--name", "pd", "--jobs", 2)
    wait_until(lambda: list(statuses(tmp_path).values()).count("running") == 2, process)
    process.popen.kill()
    deadline = time.monotonic() + 30
    while any(map(held, files(tmp_path / "runs"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert set(statuses(tmp_path).values()) == {"interrupted"}


def test_runs_that_others_hold_are_told(agora: Agora, tmp_path: Path) -> None:
    made = sweep(written(tmp_path), tmp_path / "runs", seeds=2, name="pd")
    first, second = made.cells[0].runs
    (tmp_path / "runs" / PROJECT).unlink()
    with Store.open(first) as store:
        store.update(status="running")
        said = agora("resume", "pd-*", "-q")
    head, row, *_ = said.out.splitlines()
    assert (said.code, head.split(), row.split()) == (130, ["setting", "finished", "running"], ["1", "1"])
    assert status_of(second) == "finished"


def test_runs_of_which_nothing_was_measured_are_told(agora: Agora, tmp_path: Path) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    breaks = written(tmp_path, world={**PLAY["world"], "use": "./breaks.py:Breaks"})
    sweep(breaks, tmp_path / "runs", seeds=2, name="pd")
    (tmp_path / "runs" / PROJECT).unlink()
    said = agora("resume", "pd-*", "-q")
    assert said.code == 1, said.err
    assert said.out.splitlines()[1].split() == ["2"]


def test_where_one_cannot_be_read_none_is_begun(agora: Agora, tmp_path: Path) -> None:
    sweep(written(tmp_path, **SPOKEN), tmp_path / "runs", seeds=2, name="pd")
    (tmp_path / "runs" / "pd-s5.db").write_text("no run")
    said = agora("resume", "pd-*", "-q")
    assert (said.code, "pd-s5.db is not a run" in said.line) == (2, True)
    (tmp_path / "runs" / "pd-s5.db").unlink()
    assert set(statuses(tmp_path).values()) == {"not started"}


def test_people_are_asked_by_every_run(started: Callable[..., Process], tmp_path: Path) -> None:
    scenario = written(tmp_path)
    sets = [word for each in (*taking("player-1"), "world.rounds=1") for word in ("--set", each)]
    process = started("sweep", scenario, *sets, "--seeds", 2, "--name", "pd", "-q")

    def asked(path: Path) -> list[dict[str, Any]]:
        with suppress(NotRunning), connect(path) as channel:
            return list(channel.status()["questions"])
        return []

    folder = tmp_path / "runs"
    wait_until(lambda: len(files(folder)) == 2 and all(map(asked, files(folder))), process)
    for path in files(folder):
        with connect(path) as channel:
            channel.answer("player-1", "defect")
    assert process.end().code == 0
    assert set(statuses(tmp_path).values()) == {"finished"}


def test_files_at_hand_are_not_taken_for_python_s_own(started: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(1)\n")
    said = started("sweep", written(tmp_path), "--name", "pd", "-q").end()
    assert (said.code, said.err) == (0, "")
    assert statuses(tmp_path) == {"pd-s3": "finished"}


def test_a_star_names_runs_in_the_order_of_settings_whichever_ended_first(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    made = sweep(written(tmp_path), folder, over=[f"world.rounds={list(range(2, 13))}"], name="pd")
    os.utime(made.cells[0].runs[0], (2e9, 2e9))
    assert find_all(folder, ["pd-*"]) == [path for cell in made.cells for path in cell.runs]


def test_where_runs_are_counted_a_star_leaves_out_forks(agora: Agora, tmp_path: Path) -> None:
    sweep(written(tmp_path), tmp_path / "runs", seeds=2, name="pd")
    assert agora("resume", "pd-*", "-q").code == 0
    alone = agora("measure", "pd-*")
    for run, times in (("pd-s3", 2), ("pd-s4", 1)):
        assert agora("fork", run, "--at", "2s", "--replicates", times, "-q").code == 0
    said = agora("measure", "pd-*")
    assert said.out == alone.out
    assert said.line == "agora: 3 forks and interviews are left out; to take one, name it"
    forks = agora("report", "pd-*-at*", "-o", "forks.md")
    assert (forks.code, forks.err) == (0, "")
    assert "agora report pd-s3-at2 pd-s3-at2-r1 pd-s4-at2 " in (tmp_path / "forks.md").read_text(encoding="utf-8")
    some = agora("rows", "pd-*", "pd-s4-at2", "--out", "rows.jsonl", "-q")
    assert some.line == "agora: 2 forks and interviews are left out; to take one, name it"
    for command in ("measure", "report", "judge", "rows"):
        assert "but for forks and interviews" in " ".join(agora(command, "--help").out.split())


def test_a_star_names_forks_too_which_are_runs_of_their_own(agora: Agora, tmp_path: Path) -> None:
    made = sweep(written(tmp_path), tmp_path / "runs", name="pd")
    assert agora("resume", "pd-*", "-q").code == 0
    assert agora("fork", made.cells[0].runs[0], "--at", "2s", "--no-start").code == 0
    assert statuses(tmp_path) == {"pd-s3": "finished", "pd-s3-at2": "not started"}
    assert agora("resume", "pd-*", "-q").code == 0
    assert set(statuses(tmp_path).values()) == {"finished"}


def test_names_with_a_star(agora: Agora, tmp_path: Path) -> None:
    sweep(written(tmp_path), tmp_path / "runs", seeds=2, name="pd")
    sweep(written(tmp_path), tmp_path / "runs", name="other")
    found = [path.stem for path in find_all(tmp_path / "runs", ["pd-*", "pd-s3", "other-s3"])]
    assert sorted(found) == ["other-s3", "pd-s3", "pd-s4"]
    assert agora("resume", "pe-*").line == "agora: no run in runs is called 'pe-*'; agora runs lists them".replace(
        "in runs", f"in {tmp_path / 'runs'}"
    )
    assert agora("resume", "pd-*", "-q").code == 0
    assert statuses(tmp_path) == {"other-s3": "not started", "pd-s3": "finished", "pd-s4": "finished"}
