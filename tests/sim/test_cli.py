"""The command line: every command on small societies, what it says when something is wrong, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from sim.commands.cli import app
from sim.library import files
from sim.record.reader import Run
from sim.record.schema import SCHEMA_VERSION
from sim.runs import create
from sim.scenarios.scenario import load
from tests.commands import AGORA, Agora, Process, Said, wait_until

ROOT = Path(__file__).parents[2]
SCRIPTED = ROOT / "scenarios" / "negotiation" / "bargaining_rubinstein.yaml"
MARKET = ROOT / "scenarios" / "markets" / "apple_market.yaml"
FORUM = ROOT / "scenarios" / "platforms" / "forum_posters.yaml"

TALK: dict[str, Any] = {
    "name": "talk",
    "seed": 3,
    "clock": {"until": "1h"},
    "world": {"use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 4, "talk": "explicit"},
    "models": {"small": {"engine": "synthetic", "garbage": 0.2}},
    "cast": [
        {
            "name": "player",
            "count": 4,
            "agent": "agents.llm:LLMAgent",
            "model": "small",
            "think": "lognormal(5s, 0.5)",
            "secrets": [{"attribute": "debt", "value": "[red]4300[/red]"}],
        }
    ],
}


def written(folder: Path, name: str = "talk.yaml", **changes: Any) -> Path:
    """The scenario, with other values for some keys, as a file."""
    path = folder / name
    path.write_text(yaml.safe_dump({**TALK, **changes}, sort_keys=False, allow_unicode=False), encoding="utf-8")
    return path


def runs(folder: Path) -> list[Path]:
    return files(folder / "runs")


def log_hash(path: Path) -> str:
    with Run(path) as run:
        return run.manifest().hash


# --- a run and what can be done with it --------------------------------------------------------------


def test_a_scripted_society(agora: Agora, tmp_path: Path) -> None:
    said = agora("run", SCRIPTED, "-q", "--set", "cast.0.think=2s")
    assert said.code == 0
    assert "finished" in said.out
    assert " scripted " in said.out
    assert "model calls" not in said.out
    (path,) = runs(tmp_path)
    assert path.stem in said.out
    assert f"agora verify {path.stem}" in said.out
    listed = agora("runs")
    assert (listed.code, path.stem in listed.out, "finished" in listed.out) == (0, True, True)
    assert "all equal" in agora("verify", path.stem[:-3]).out
    assert "all equal" in agora("verify", path).out
    assert agora("resume", "last", "-q").code == 0


def test_a_society_of_models(agora: Agora, tmp_path: Path) -> None:
    said = agora("run", written(tmp_path))
    assert said.code == 0, said.err
    for part in ("free text", "choice", "retried", "prompt tokens", "rethink", "matrix.mean_payoff", "player-1"):
        assert part in said.out
    (path,) = runs(tmp_path)
    again = agora("show", "last")
    assert again.out.strip() in said.out
    assert "events replayed to its end, all equal" in agora("verify", "last").out
    assert "matrix.mean_payoff" in agora("measure", "last").out
    cast = agora("show", path, "--cast").out
    assert "player-4" in cast
    assert "debt: [red]4300[/red]" in cast
    one = agora("show", "last", "--agent", "player-2").out
    for part in ("act at 0s", "saw message #", "did", "tokens"):
        assert part in one
    assert len(agora("show", "last", "--agent", "player-2", "--limit", "1").out) < len(one)


def test_fork_by_a_parameter_and_by_a_word(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q")
    (parent,) = runs(tmp_path)
    assert agora("fork", "last", "--at", "20s", "-q").code == 0
    same = [path for path in runs(tmp_path) if path != parent]
    assert [log_hash(path) for path in same] == [log_hash(parent)]
    said = agora("fork", parent.stem, "--at", "20s", "--set", "rounds=6", "--edit", "{do: say, text: Hurry}", "-q")
    assert said.code == 0, said.err
    child = runs(tmp_path)[-1]
    assert log_hash(child) != log_hash(parent)
    assert "Hurry" in agora("show", child, "--channel", "all").out
    assert "all equal" in agora("verify", child).out
    assert parent.stem in agora("runs").out.splitlines()[-1]
    colder = agora("fork", parent, "--at", "20s", "--set", "models.small.temperature=0.1", "-q")
    assert colder.code == 0, colder.err


def test_replicates_and_forks_that_wait(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q")
    (parent,) = runs(tmp_path)
    said = agora("fork", "last", "--at", "10s", "--replicates", "2", "--no-start")
    assert said.code == 0
    assert said.out.count("not started; agora resume") == 2
    plain, other = (path for path in runs(tmp_path) if path != parent)
    assert [agora("resume", path, "-q").code for path in (plain, other)] == [0, 0]
    assert log_hash(plain) == log_hash(parent)
    assert log_hash(other) != log_hash(parent)


def test_all_replicates_are_run(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q")
    said = agora("fork", "last", "--at", "10s", "--replicates", "3", "-q")
    assert said.code == 0
    assert said.out.count(" finished. Look:") == 3


def test_export(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q")
    said = agora("export", "last", "--parquet", tmp_path / "out")
    assert said.code == 0
    listed = {Path(line) for line in said.out.split()}
    assert {path.name for path in listed} >= {"decisions.parquet", "facts.parquet", "calls.parquet"}
    assert all(path.stat().st_size for path in listed)


def test_a_budget_pauses_and_a_resumed_run_is_the_same(agora: Agora, tmp_path: Path) -> None:
    scenario = written(tmp_path)
    paused = agora("run", scenario, "-q", "--budget", "2000")
    assert paused.code == 3
    assert "budget of 2000 tokens" in paused.out
    assert "agora resume" in paused.out
    assert "agora fork" not in paused.out
    (path,) = runs(tmp_path)
    assert "paused" in agora("runs").out
    assert "as far as the record reaches" in agora("verify", path).out
    assert agora("resume", "last", "-q").code == 0
    agora("run", scenario, "-q")
    assert log_hash(path) == log_hash(runs(tmp_path)[-1])


def test_a_dead_engine_pauses_and_the_run_goes_on(agora: Agora, tmp_path: Path) -> None:
    dying = written(tmp_path, models={"small": {"engine": "synthetic", "dead_after": 15}})
    said = agora("run", dying, "-q")
    assert said.code == 3
    assert "died after 15 calls" in said.out
    assert "Nothing is lost" in said.out
    (path,) = runs(tmp_path)
    assert f"Or on another model: agora fork {path.stem} --at TIME --set models.small.KEY=VALUE" in said.out
    for _ in range(10):
        said = agora("resume", "last", "-q")
        if said.code == 0:
            break
        assert said.code == 3
    assert said.code == 0
    with Run(path) as run:
        assert not {how for hows in run.counts().decisions.values() for how in hows} - {"chosen", "retried"}
    agora("run", written(tmp_path, models={"small": {"engine": "synthetic"}}), "-q")
    assert log_hash(path) == log_hash(runs(tmp_path)[-1])


def test_a_world_that_breaks_a_rule_fails_the_run(agora: Agora, tmp_path: Path) -> None:
    agora("new", "world", "bazaar", "--folder", tmp_path)
    world = tmp_path / "bazaar.py"
    world.write_text(world.read_text().replace("pot = 2 * sum", "pot = nothing * sum"))
    said = agora("run", tmp_path / "bazaar.yaml", "-q")
    assert said.code == 1
    assert "Bazaar.step raised NameError" in said.out


def test_a_run_is_called_as_one_likes(agora: Agora, tmp_path: Path) -> None:
    assert agora("run", SCRIPTED, "-q", "--name", "frost-1").code == 0
    assert runs(tmp_path) == [tmp_path / "runs" / "frost-1.db"]
    again = agora("run", SCRIPTED, "-q", "--name", "frost-1")
    assert again.code == 2
    assert "--name frost-1 is taken" in again.line
    assert "agora resume frost-1" in again.line
    assert len(runs(tmp_path)) == 1


def test_the_runs_fit_on_a_terminal(agora: Agora, tmp_path: Path) -> None:
    scenario = written(tmp_path, world={**TALK["world"], "rounds": 1})
    agora("run", scenario, "-q", "--runs", tmp_path / "there", "--set", "name=societies-of-llms")
    agora("run", scenario, "-q", "--runs", tmp_path / "there", "--name", "m" * 60)
    first = files(tmp_path / "there")[0].stem
    agora("fork", first, "--runs", tmp_path / "there", "--at", "1s", "--no-start")
    said = agora("runs", "--runs", tmp_path / "there")
    assert said.code == 0
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(rf"finished    {first} \d{{4}}-\d\d-\d\d \d\d:\d\d +8 +\d+", lines[1]), lines
    assert lines[2] == f"finished    {'m' * 60}"
    assert re.fullmatch(r" +\d{4}-\d\d-\d\d \d\d:\d\d +8 +\d+", lines[3])
    assert lines[4] == f"not started {first}-at1"
    assert lines[6] == f"            forked from {first}"
    assert len({line.index(" 20") for line in lines if " 20" in line and "-at" not in line}) == 1


def test_ids_of_wide_letters_stand_in_their_column(agora: Agora, tmp_path: Path) -> None:
    for name in ("market", "世界"):
        agora("run", SCRIPTED, "-q", "--name", name)
    _, market, world = agora("runs").out.splitlines()
    assert market.startswith("finished market 2")
    assert world.startswith("finished 世界   2")


def test_a_fork_that_was_never_started(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q", "--name", "parent")
    agora("fork", "parent", "--at", "10s", "--no-start")
    for command in ("show", "measure"):
        said = agora(command, "parent-at10")
        assert said.code == 0
        assert "not started" in said.out
        assert "agora resume parent-at10" in said.out
        assert len(said.out.splitlines()) <= 2


def test_a_fork_comes_before_the_end_of_its_parent(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q", "--name", "whole")
    agora("run", written(tmp_path), "-q", "--name", "half", "--budget", "1000")
    with Run(tmp_path / "runs" / "whole.db") as run:
        end = max(decision.tick for decision in run.decisions())
    assert agora("fork", "whole", "--at", end, "--no-start").code == 0
    assert f"--at {end + 1}: whole ends at {end}s" in agora("fork", "whole", "--at", end + 1, "--no-start").line
    assert agora("fork", "half", "--at", end + 1, "--no-start").code == 0
    assert "--at 61m: half ends at 1h" in agora("fork", "half", "--at", "61m").line
    assert len(runs(tmp_path)) == 4


def test_measures_of_a_run_that_is_not_finished(agora: Agora, tmp_path: Path) -> None:
    agora("run", written(tmp_path), "-q", "--name", "half", "--budget", "5000")
    said = agora("measure", "half")
    assert said.code == 0
    assert said.out.startswith("half is paused: these are the numbers so far, and they are not kept\n")
    assert "matrix.mean_payoff" in said.out
    assert "matrix.mean_payoff" not in agora("show", "half").out
    agora("run", written(tmp_path), "-q", "--name", "begun", "--budget", "10")
    assert agora("show", "begun", "--agent", "player-1").out == "player-1 has decided nothing so far\n"
    assert agora("measure", "begun").out == "begun is paused, and nothing in it can be measured yet\n"


def test_measures_where_none_is_named(agora: Agora, tmp_path: Path) -> None:
    agora("new", "world", "bazaar", "--folder", tmp_path)
    world = tmp_path / "bazaar.py"
    text = re.sub(r"(metrics: ClassVar.*?=).*", r"\1 ()", world.read_text())
    world.write_text(text)
    agora("run", tmp_path / "bazaar.yaml", "-q", "--name", "bare")
    said = agora("measure", "bare")
    assert said.code == 0
    assert "bare has nothing to measure" in said.out
    assert "agora measure" not in said.out


def test_an_outcome_is_short_unless_all_is_wanted(agora: Agora, tmp_path: Path) -> None:
    cast = [{"name": "p", "count": 40, "agent": "worlds.games.strategies:TitForTat", "think": "2s"}]
    world = {**TALK["world"], "rounds": 1, "talk": "none"}
    said = agora("run", written(tmp_path, cast=cast, models={}, world=world), "-q", "--name", "crowd")
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines()]
    payoffs = [row[1:3] for row in rows if row and row[0] == "matrix.mean_payoff"]
    assert payoffs[0][0] == "3"
    assert [row[1] for row in payoffs[1:]] == [f"p-{n}" for n in range(1, 12)]
    assert "10 more agents: agora show crowd --all" in said.out
    assert "58 more numbers: agora show crowd --all" in said.out
    whole = agora("show", "crowd", "--all").out
    assert "more" not in whole
    assert whole.count("matrix.mean_payoff") == 41
    assert sum(line.split()[0].startswith("p-") for line in whole.splitlines()) == 40
    assert agora("measure", "crowd").out.splitlines()[-1] == " 58 more numbers: agora measure crowd --all"


def test_agents_without_a_reward_have_none(agora: Agora, tmp_path: Path) -> None:
    cast = [
        {"name": "right", "agent": "agents.scripted:Constant", "with": {"answer": "heads"}, "think": 1},
        {"name": "late", "agent": "agents.scripted:Constant", "with": {"answer": "heads"}, "think": 50},
    ]
    world = {"use": "tests.sim.coins:Coins", "rounds": 12, "period": 5}
    said = agora("run", written(tmp_path, cast=cast, models={}, world=world, clock={"until": 45}), "-q")
    assert said.code == 0, said.err
    assert re.search(r"^ right +[1-9]\d*\.00$", said.out, re.M)
    assert re.search(r"^ late +0\.00$", said.out, re.M)


def test_the_cast_is_short(agora: Agora, tmp_path: Path) -> None:
    agora("run", ROOT / "scenarios" / "markets" / "apple_market.yaml", "-q", "--set", "clock.until=1m")
    head, first, *_ = agora("show", "last", "--cast").out.splitlines()
    assert head.split() == ["agent", "role", "private"]
    assert re.fullmatch(r" buyer-1 +buyer +values \[\d{2,3}(\.\d+)?, \d{2,3}(\.\d+)?\]", first)
    assert all(len(number) <= 5 for number in re.findall(r"[\d.]+", first))


def test_transcripts_in_a_pipe_are_plain_lines(agora: Agora, tmp_path: Path) -> None:
    say = [{"do": "say", "at": "1s", "text": "Hurry."}]
    agora("run", written(tmp_path, interventions=say), "-q")
    one = agora("show", "last", "--agent", "player-2").out
    assert not set("╭╮╰╯│─") & set(one)
    assert re.search(r"^ {12}(act|rethink) at \d+s  (stop|length), \d+ \+ \d+ tokens$", one, re.M)
    assert re.search(r"^ {12}\| ", one, re.M)
    said = agora("show", "last", "--channel", "all").out.splitlines()
    assert said
    assert all(re.match(r" *\d[\dmhs]*  [a-z]\w* #\d+", line) for line in said)
    assert not any(line.endswith(" ") for line in [*said, *one.splitlines()])


def test_the_version(agora: Agora) -> None:
    from importlib.metadata import version

    assert agora("--version") == Said(0, f"agora {version('agora-sim')}\n", "")


def test_the_list_of_commands_holds_whole_sentences(agora: Agora) -> None:
    listed = agora("--help").out.split("Commands:\n")[1].splitlines()
    assert len(listed) == len(app.registered_commands)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


# --- looking at plug-ins and scenarios ----------------------------------------------------------------


def test_check_says_what_a_scenario_would_run(agora: Agora, tmp_path: Path) -> None:
    said = agora("check", written(tmp_path, stop={"after": "30 decisions"}), "--set", "tables=3")
    assert said.code == 0
    for part in ("worlds.games.matrix:Matrix", "ends after 30 decisions or at 1h", "tables 3", "interventions 0"):
        assert part in said.out
    assert "at most 90 decisions, tokens unknown, time unknown" in said.out
    assert "agents.llm:LLMAgent" in said.out
    assert not (tmp_path / "runs").exists()


def test_check_estimates_decisions_from_think_times(agora: Agora, tmp_path: Path) -> None:
    cast = [{"name": "a", "count": 2, "agent": "agents.scripted:RandomLegal", "think": "10s"}]
    said = agora("check", written(tmp_path, cast=cast, models={}))
    assert "at most 720 decisions, about 0 tokens" in said.out
    unbounded = agora("check", written(tmp_path, cast=cast, models={}, clock={"until": None}))
    assert "decisions unknown" in unbounded.out
    assert "ends when the world does" in unbounded.out


@pytest.mark.parametrize(
    "use",
    ["worlds.negotiation.bargaining:Bargaining", "worlds.negotiation.strategies:Greedy", "agents.scripted:RandomLegal"],
)
def test_check_of_what_is_shipped(use: str, agora: Agora) -> None:
    said = agora("check", use)
    assert said.code == 0, said.err
    assert f"{use} keeps the rules" in said.out


def test_check_of_a_world_with_parameters_and_generic_seats(agora: Agora) -> None:
    said = agora("check", "tests.sim.coins:Coins", "--set", "rounds=2")
    assert said.code == 0, said.err
    assert "played with seats that have no roles or values, 4 agents" in said.out
    wrong = agora("check", "tests.sim.coins:Coins", "--set", "round=2")
    assert wrong.code == 2
    assert "did you mean rounds?" in wrong.line


def test_check_with_a_scenario_of_ones_own(agora: Agora, tmp_path: Path) -> None:
    scenario = written(tmp_path)
    said = agora("check", "worlds.games.matrix:Matrix", "--scenario", scenario)
    assert said.code == 0, said.err
    assert "talk.yaml" in said.out
    wrong = agora("check", "worlds.games.strategies:Grim", "--scenario", scenario)
    assert wrong.code == 2
    assert "does not use worlds.games.strategies:Grim" in wrong.line


def test_check_of_what_is_broken(agora: Agora) -> None:
    said = agora("check", "tests.sim.coins:Misnames")
    assert said.code == 2
    lines = said.err.splitlines()
    assert lines
    assert all(line.startswith("agora: tests.sim.coins:Misnames: ") for line in lines)
    assert "a turn names its agent and tick" in said.err
    mind = agora("check", "tests.sim.coins:Cheats")
    assert mind.code == 2
    assert "its answers are legal" in mind.err


def test_check_prints_the_schema(agora: Agora) -> None:
    assert json.loads(agora("check", "--schema").out)["title"] == "Scenario"


def test_new_then_run(agora: Agora, tmp_path: Path) -> None:
    said = agora("new", "agent", "thinker", "--folder", tmp_path / "mine")
    assert said.code == 0
    assert "thinker.py" in said.out
    assert agora("run", tmp_path / "mine" / "thinker.yaml", "-q").code == 0
    assert "is there already" in agora("new", "agent", "thinker", "--folder", tmp_path / "mine").line


def test_doctor(agora: Agora) -> None:
    said = agora("doctor")
    assert said.code == 0
    for part in ("Python", "core packages", "SQLite", "vLLM", "embedded model", "GPU", "cores", "runs folder"):
        assert part in said.out


def test_models_says_what_to_do_where_the_model_cannot_be_made(agora: Agora, monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.engines import embedded

    def missing() -> str:
        raise embedded.EmbeddedModelError("the embedded model's package is not installed: make demo")

    monkeypatch.setattr(embedded, "prepare", missing)
    said = agora("models")
    assert said.code == 2
    assert "make demo" in said.line
    monkeypatch.setattr(embedded, "prepare", lambda: "it is ready")
    assert agora("models").out == "it is ready\n"


# --- what is wrong, in one line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["run", "nowhere.yaml"], ["nowhere.yaml", "no such file"]),
        (["check", "nowhere.yaml"], ["nowhere.yaml", "no such file"]),
        (["run", "talk.yaml", "--set", "sede=4"], ["sede", "did you mean seed?"]),
        (["run", "talk.yaml", "--set", "seed"], ["seed", "key=value"]),
        (["run", "talk.yaml", "--set", "clock.until=soon"], ["clock.until", "'soon'", "a duration like"]),
        (["run", "talk.yaml", "--set", "world.round=4"], ["world.round", "did you mean rounds?"]),
        (["run", "talk.yaml", "--set", "cast.playr.count=4"], ["playr", "did you mean player?"]),
        (["run", "talk.yaml", "--set", "models.small.engine=vlm"], ["models.small.engine", "did you mean vllm?"]),
        (["run", "misspelt.yaml"], ["misspelt.yaml:5", "wrld", "did you mean world?"]),
        (["run", "no.yaml"], ["no.yaml:1", "cannot be a key"]),
        (["check", ""], ["nothing to check"]),
        (["check", "sim.types:Turn"], ["sim.types:Turn", "no world", "no agent"]),
        (["check", "worlds.games.matrix:Matrx"], ["did you mean Matrix?"]),
        (["check", "wrlds.games:Matrix"], ["wrlds"]),
        (["check", "./nothing.py:World"], ["no file ./nothing.py"]),
        (["show", "nobody"], ["no run 'nobody'", "the last is"]),
        (["show", "last", "--agent", "playr-1"], ["no agent 'playr-1'", "did you mean player-1?"]),
        (["show", "last", "--agent", "player-1", "--table", "7"], ["table 7"]),
        (["show", "last", "--cast", "--table", "7"], ["table 7"]),
        (["show", "last", "--channel", "all", "--table", "7"], ["table 7"]),
        (["show", "last", "--table", "7"], ["no table 7", "its only table is 0"]),
        (["show", "last", "--table", "-1", "--all"], ["no table -1"]),
        (["show", "last", "--channel", "#garden"], ["'#garden'"]),
        (["show", "fake.db"], ["fake.db", "not a run"]),
        (["resume", "fake.db"], ["fake.db", "not a run"]),
        (["verify", "gone.db"], ["no run 'gone.db'"]),
        (["fork", "last", "--at", "soon"], ["fork.at", "'soon'"]),
        (["fork", "last", "--at", "59m"], ["--at 59m: talk-", "ends at", "earlier"]),
        (
            ["fork", "last", "--at", "10s", "--set", "game=chicken"],
            ["'game'", "choose one of channel, continuation, deadline, rounds"],
        ),
        (["fork", "last", "--at", "10s", "--set", "rounds"], ["rounds", "key=value"]),
        (["fork", "last", "--at", "10s", "--edit", "say hello"], ["--edit", "{do: say"]),
        (["fork", "last", "--at", "10s", "--edit", "{do: say, text: x, at: 2s}"], ["before the fork"]),
        (["fork", "last", "--at", "10s", "--edit", "{do: sing}"], ["'sing'"]),
        (["new", "world", "9"], ["'9'"]),
        (["new", "world", "json"], ["'json': json.py would stand before Python's own module json"]),
        (["fork", "last", "--at", "0", "--mind", "x=a:B"], ["'x' is no agent and no cast entry; choose one of player"]),
        (["new", "planet", "mars"], ["'planet'", "choose one of agent, scenario, world"]),
        (["run", "."], [". is a folder; name a .yaml file"]),
        (["check", "."], [". is a folder; name a .yaml file"]),
        (["check", "worlds.games.matrix:Matrix", "--scenario", "."], [". is a folder"]),
        (["run", "talk.yaml", "--name", "a b"], ["--name 'a b'", "like frost-1"]),
        (["run", "talk.yaml", "--name", "../talk"], ["--name '../talk'"]),
        (["run", "talk.yaml", "--name", "last"], ["--name 'last'"]),
        (["run", "talk.yaml", "--name", "project"], ["--name 'project'"]),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_one_line_and_exit_code_2(args: list[str], parts: list[str], agora: Agora, tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "misspelt.yaml").write_text((tmp_path / "talk.yaml").read_text().replace("world:", "wrld:"))
    (tmp_path / "no.yaml").write_text("{{{")
    (tmp_path / "fake.db").write_text("SQLite? Never heard of it. " * 100)
    if args[0] in ("show", "fork", "resume", "verify"):
        agora("run", "talk.yaml", "-q")
    said = agora(*args)
    assert said.code == 2, said
    for part in parts:
        assert part in said.line
    assert said.line.startswith("agora: ")
    assert "Traceback" not in said.err


def test_no_runs_yet(agora: Agora) -> None:
    assert "agora run SCENARIO" in agora("show", "last").line
    said = agora("runs")
    assert said.code == 0
    assert "agora run SCENARIO" in said.out


def test_a_file_that_is_no_run_does_not_hide_the_others(agora: Agora, tmp_path: Path) -> None:
    agora("run", SCRIPTED, "-q")
    (tmp_path / "runs" / "notes.db").write_text("not a database")
    said = agora("runs")
    assert said.code == 0
    assert "finished" in said.out
    assert "no run   notes " in said.out
    assert "notes.db is not a run: file is not a database" in said.out


def test_a_run_of_another_record_version_is_told_as_that(agora: Agora, tmp_path: Path) -> None:
    agora("run", SCRIPTED, "-q", "--name", "old")
    (path,) = runs(tmp_path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute('UPDATE run SET schema_version = 3, versions = \'{"agora-sim": "0.0.9"}\'')
    told = f"{path} has record version 3, this agora-sim reads {SCHEMA_VERSION}: open it with agora-sim 0.0.9"
    said = agora("runs")
    assert said.code == 0
    assert "record version 3 old " in said.out
    assert told in said.out
    for command in ("show", "measure", "verify", "report", "resume"):
        said = agora(command, "old")
        assert said.code == 2
        assert said.line.startswith(f"agora: {told}")


def test_a_run_without_its_first_row_is_none(agora: Agora, tmp_path: Path) -> None:
    agora("run", SCRIPTED, "-q", "--name", "bare")
    with closing(sqlite3.connect(tmp_path / "runs" / "bare.db")) as raw, raw:
        raw.execute("DELETE FROM run")
    assert "bare.db is not a run" in agora("runs").out
    assert "bare.db is not a run" in agora("show", "bare").line


def test_a_damaged_run_is_told_as_that_and_hides_no_other(agora: Agora, tmp_path: Path) -> None:
    agora("run", SCRIPTED, "-q", "--name", "whole")
    path = tmp_path / "runs" / "whole.db"
    with closing(sqlite3.connect(path)) as raw:
        (size,), (page,) = (
            raw.execute(sql).fetchone()
            for sql in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_master WHERE name = 'decisions'")
        )
    whole = path.read_bytes()
    (tmp_path / "runs" / "hurt.db").write_bytes(whole[: size * (page - 1)] + b"Z" * size + whole[size * page :])
    said = agora("runs")
    assert said.code == 0
    assert "finished whole" in said.out
    assert "damaged  hurt" in said.out
    for words in (("verify",), ("measure",), ("export", "--parquet", "tables")):
        said = agora(words[0], "hurt", *words[1:])
        assert said.code == 1
        assert "hurt.db: database disk image is malformed" in said.line


def test_what_is_called_like_a_run_and_is_no_file_is_none(agora: Agora, tmp_path: Path) -> None:
    agora("run", SCRIPTED, "-q", "--name", "real")
    (tmp_path / "runs" / "gone.db").symlink_to(tmp_path / "nowhere")
    (tmp_path / "runs" / "folder.db").mkdir()
    said = agora("runs")
    assert said.code == 0
    assert "real" in said.out
    assert "gone" not in said.out
    assert "no run 'folder'" in agora("show", "folder").line


def test_an_ambiguous_name_is_refused(agora: Agora, tmp_path: Path) -> None:
    for _ in range(2):
        agora("run", SCRIPTED, "-q")
    said = agora("show", "barg")
    assert said.code == 2
    assert "could be" in said.line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("shwo", "no such command 'shwo'. Did you mean 'show'?"),
        ("xyz", "no such command 'xyz'; usage: agora [OPTIONS] COMMAND [ARGS]..., more: agora --help"),
        ("run", "missing argument 'scenario'; usage: agora run [OPTIONS] {scenario}, more: agora run --help"),
        ("run a b", "got unexpected extra argument(s) (b); usage: agora run"),
        ("fork last", "missing option '--at'; usage: agora fork [OPTIONS] {RUN}, more: agora fork --help"),
        ("fork last --at 1 --replicates x", "--replicates should be a valid integer"),
        ("fork last --at 1 --replicates 0", "--replicates should be greater than or equal to 1"),
        ("run a --budget -3", "--budget should be greater than or equal to 0"),
        ("run a --budget 1e400", "--budget should be a valid integer"),
        ("show x --tabel 1", "no such option: --tabel (Possible options: --all, --channel, --table)"),
        ("report x --format", "option '--format' requires an argument"),
        ("runs here", "got unexpected extra argument(s) (here)"),
        ("runs --runs notes", "--runs notes: notes is a file; name a folder, or a place for one"),
        ("doctor --runs notes/runs", "notes is a file; name a folder, or a place for one"),
    ],
)
def test_a_wrong_word_costs_one_line(words: str, told: str, agora: Agora, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    said = agora(*words.split())
    assert said.code == 2
    assert told in said.line
    assert said.line.startswith("agora: ")


def test_no_words_at_all_get_the_help(agora: Agora) -> None:
    said = agora()
    assert said.code == 2
    assert "agora [OPTIONS] COMMAND" in said.out


def test_a_run_that_another_process_writes_is_refused(agora: Agora, tmp_path: Path) -> None:
    from sim.record.store import Store

    agora("run", SCRIPTED, "-q")
    (path,) = runs(tmp_path)
    with Store.open(path):
        said = agora("resume", "last", "-q")
    assert said.code == 2
    assert "is being written by process" in said.line


def test_an_unwritable_folder(agora: Agora, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = agora("run", SCRIPTED, "-q", "--runs", tmp_path / "file" / "runs")
    assert said.code == 2
    assert "file" in said.line


# --- texts of models and users ----------------------------------------------------------------------------

NASTY = "[bold red]FREE[/bold red] \x1b[31mred\x1b[0m :smile: \x07\u202eabc\x9b2J\r\n    10s  did  everything"


def assert_harmless(text: str) -> None:
    for mark in "\x1b\x07\u202e\x9b\r":
        assert mark not in text
    assert "\n    10s  did  everything" not in text


def test_texts_never_reach_the_terminal_as_commands(agora: Agora, tmp_path: Path) -> None:
    say = [
        {"do": "say", "at": "1s", "text": NASTY},
        {"do": "say", "at": "2s", "text": "[/] unbalanced [", "to": "player-1"},
    ]
    # A model that says such things: free text may hold anything but control characters.
    rule = {"engine": "synthetic", "rule": "tests.sim.test_cli:bold"}
    agora("run", written(tmp_path, interventions=say, models={"small": rule}), "-q")
    said = [agora("show", "last", *args) for args in ([], ["--cast"], ["--agent", "player-1"], ["--channel", "all"])]
    for one in said:
        assert one.code == 0, one.err
        assert_harmless(one.out)
    assert "[bold red]FREE[/bold red]" in said[3].out
    assert ":smile:" in said[3].out
    assert "\\x1b[31m" in said[3].out
    assert "[/] unbalanced [" in said[2].out
    assert "[blink]deal[/blink]" in said[2].out


def bold(request: Any) -> str | None:
    """A model that speaks markup."""
    return "[blink]deal[/blink] \u202e:bomb:" if hasattr(request.format, "max_chars") else None


def test_error_lines_are_harmless_too(agora: Agora) -> None:
    said = agora("run", "\x1b[31mred\x1b[0m.yaml")
    assert said.code == 2
    assert_harmless(said.err)
    assert "\\x1b[31mred" in said.line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("measure", "RUN", "--secrets", "strange.yaml"), "strange.yaml: cannot be read as a UTF-8 text"),
        (("measure", "RUN", "--secrets", "nothing.yaml"), "nothing.yaml: no such file"),
        (
            ("export", "RUN", "--parquet", "strange.yaml"),
            "strange.yaml: File exists; name a folder",
        ),
        (("show", "RUN", "--agent", "first-1", "--limit", "0"), "--limit should be"),
        (("run", SCRIPTED, "--budget", "-1"), "--budget should be"),
    ],
)
def test_files_and_numbers_that_will_not_do(agora: Agora, tmp_path: Path, words: tuple[object, ...], told: str) -> None:
    (tmp_path / "strange.yaml").write_bytes(b"\xff\xfe")
    path = create(load(SCRIPTED), tmp_path / "runs")
    said = agora(*(path if word == "RUN" else word for word in words))
    assert (said.code, told in said.err) == (2, True), said


def test_a_cast_that_the_world_will_not_have_leaves_nothing(agora: Agora, tmp_path: Path) -> None:
    said = agora("run", SCRIPTED, "--set", "cast.first.count=3")
    assert said.code == 2
    assert said.line.endswith(
        "Bargaining will not have it: bargaining is played in pairs: 7 seats leave somebody alone"
    )
    assert ": cast: " in said.line
    assert not runs(tmp_path)


@pytest.mark.parametrize(
    ("scenario", "change", "told"),
    [
        (SCRIPTED, "first.count=3", "7 seats leave somebody alone"),
        (MARKET, "buyer.private={values: [9, a]}", "buyer-1: what a unit is worth or costs is a number, not 'a'"),
        (MARKET, "buyer.private={value: 9, cash: x}", "the private value cash is a number of at least 0, not 'x'"),
        (FORUM, "member.private={activity: -3}", "the private value activity is a number of at least 0, not -3"),
    ],
)
def test_a_cast_that_the_world_will_not_have_is_found_by_check(
    scenario: Path, change: str, told: str, agora: Agora
) -> None:
    said = agora("check", scenario, "--set", f"cast.{change}")
    assert said.code == 2
    assert told in said.line


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("cast.player.with={writer: nobody}", "with.writer: no model is named 'nobody'; there is only small"),
        ("cast.player.model=''", "cast.player.model: missing; agents.llm:LLMAgent asks a model: name one of small"),
        ("seats.player-2={agent: agents.human:Human}", "agents.human:Human asks a model: name one of small"),
    ],
)
def test_an_agent_that_asks_a_model_which_is_not_there_leaves_no_run(
    agora: Agora, tmp_path: Path, change: str, told: str
) -> None:
    said = agora("run", written(tmp_path), "--set", change)
    assert said.code == 2
    assert said.line.endswith(told)
    assert not runs(tmp_path)


# --- real processes -----------------------------------------------------------------------------------------


def decisions(folder: Path) -> int:
    found = runs(folder)
    if not found:
        return 0
    with Run(found[-1]) as run:
        return sum(1 for _ in run.decisions())


def test_ctrl_c_once_stops_cleanly_and_the_resumed_log_is_the_same(
    agora: Agora, started: Callable[..., Process], tmp_path: Path
) -> None:
    world = {**TALK["world"], "rounds": 15}
    slow = {"engine": "synthetic", "garbage": 0.2, "latency": "lognormal(40ms, 0.5)"}
    scenario = written(tmp_path, world=world, models={"small": slow})
    process = started("run", scenario)
    wait_until(lambda: decisions(tmp_path) > 8, process)
    process.interrupt()
    said = process.end()
    assert said.code == 130, said
    assert "was interrupted. Nothing is lost. Go on: agora resume talk-" in said.out
    assert "Traceback" not in said.err
    (path,) = runs(tmp_path)
    with Run(path) as run:
        assert run.status == "interrupted"
    resumed = started("resume", "last", "-q").end()
    assert resumed.code == 0, resumed
    assert agora("run", scenario, "-q", "--set", "models.small.latency=0s").code == 0
    assert log_hash(path) == log_hash(runs(tmp_path)[-1])


SILENT = '''
from concurrent.futures import Future
from pathlib import Path

class Silent:
    """Never answers."""

    def submit(self, request):
        Path("asked").touch()
        return Future()

    def close(self):
        pass
'''


def test_ctrl_c_twice_stops_at_once(started: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(SILENT)
    process = started("run", written(tmp_path, models={"small": {"engine": "./silent.py:Silent"}}), "-q")
    wait_until((tmp_path / "asked").exists, process)
    process.interrupt()
    time.sleep(0.8)
    assert process.popen.poll() is None, "calls in flight are waited for"
    process.interrupt()
    said = process.end(within=20)
    assert said.code == 130, said
    assert "Go on: agora resume" in said.out
    assert "Traceback" not in said.err


def test_ctrl_c_before_the_run_begins(started: Callable[..., Process], tmp_path: Path) -> None:
    slow = "import time\nfrom pathlib import Path\n\nclass Slow:\n    def __init__(self):\n"
    (tmp_path / "slow.py").write_text(slow + "        Path('building').touch()\n        time.sleep(60)\n")
    process = started("run", written(tmp_path, models={"small": {"engine": "./slow.py:Slow"}}), "-q")
    wait_until((tmp_path / "building").exists, process)
    process.interrupt()
    process.interrupt()
    process.interrupt()
    said = process.end(within=20)
    assert said.code == 130, said
    assert "Traceback" not in said.err
    assert "agora resume talk-" in said.out


def test_a_real_process_says_one_line(started: Callable[..., Process], tmp_path: Path) -> None:
    said = started("run", written(tmp_path), "--set", "clock.until=soon").end()
    assert said.code == 2
    assert "clock.until" in said.line
    assert not said.out


def test_a_terminal_that_knows_few_letters_gets_their_codes(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "latin-1"}
    said = subprocess.run([AGORA, "measure", "--help"], capture_output=True, cwd=tmp_path, env=env)
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"RUN\\u2026" in said.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_costs_one_line(tmp_path: Path, unbuffered: str) -> None:
    """A full disk is told, and what is done is kept; of a reader who has gone nothing is said."""

    def run(*words: object, out: int) -> subprocess.CompletedProcess[bytes]:
        env = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
        words = (AGORA, *words)
        return subprocess.run(list(map(str, words)), stdout=out, stderr=subprocess.PIPE, cwd=tmp_path, env=env)

    with Path("/dev/full").open("wb") as full:
        said = run("run", written(tmp_path), "-q", out=full.fileno())
    assert said.returncode == 1
    assert said.stderr.count(b"\n") == 1
    assert b"No space left on device" in said.stderr
    with Run(*runs(tmp_path)) as stored:
        assert stored.status == "finished"
    reading, writing = os.pipe()
    os.close(reading)
    said = run("runs", out=writing)
    os.close(writing)
    assert (said.returncode, said.stderr) == (1, b"")


def test_a_full_disk_pauses_a_run(agora: Agora, tmp_path: Path) -> None:
    """A limit on the size of files stands for it."""
    long = written(tmp_path, world={**TALK["world"], "rounds": 200})
    limited = f"ulimit -f 200; exec {shlex.quote(str(AGORA))} run {shlex.quote(str(long))} -q --name long"
    env = {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (said.returncode, said.stderr.count("\n")) == (3, 1), said
    assert "long.db cannot be written: " in said.stderr
    assert "make room, then: agora resume long" in said.stderr
    assert agora("resume", "long", "-q").code == 0
    assert "all equal" in agora("verify", "long").out


def test_a_live_display_does_not_reach_the_output(started: Callable[..., Process], tmp_path: Path) -> None:
    said = started("run", written(tmp_path)).end()
    assert said.code == 0
    assert "\x1b" not in said.out
    assert said.out.splitlines()[-1].startswith("talk-")
