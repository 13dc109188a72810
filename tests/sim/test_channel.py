"""Other processes control a run: through the channel's own lines, through the command line, and after a kill."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from sim.library import files
from sim.record.reader import Run
from sim.record.store import Store
from sim.runs import Session, create, go
from sim.steering.channel import HOST, NotRunning, address_file, connect, served
from sim.steering.live import Refused
from sim.verify import verify
from tests.commands import AGORA, Agora
from tests.laws.societies import society
from tests.laws.test_law4_kills import log_of
from tests.sim.processes import Process, until
from tests.sim.test_cli import written
from tests.sim.test_control import changes

CALM: Any = {"latency": "uniform(5ms, 15ms)", "slots": 6}


@pytest.fixture
def process() -> Iterator[Callable[[Path], Process]]:
    started: list[Process] = []

    def start(path: Path) -> Process:
        started.append(Process(path))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def reach(path: Path, events: int) -> None:
    """Step until so many events have happened."""
    with connect(path) as channel:
        while (before := channel.status()["events"]) < events:
            channel.step()
            until(lambda before=before: channel.status()["events"] > before)


# --- killed ----------------------------------------------------------------------------------------


def test_an_intervention_survives_a_kill(process: Callable[[Path], Process], tmp_path: Path) -> None:
    path = create(society("matrix", **CALM), tmp_path, "killed")
    running = process(path)
    reach(path, 8)
    with connect(path) as channel:
        (first,) = channel.intervene({"do": "say", "text": "One.", "to": "slow"})
    reach(path, 14)
    with connect(path) as channel:
        (second,) = channel.intervene({"do": "say", "text": "Two."})
    running.kill()  # the second has not taken effect
    assert address_file(path).exists()
    with pytest.raises(NotRunning, match="killed is not running; go on with it: agora resume killed"):
        connect(path)
    with Run(path) as run:
        assert run.status == "interrupted"
    verify(path)
    before = log_of(path)
    assert go(path, beside=served).status == "finished"
    assert log_of(path)[: len(before)] == before
    assert not address_file(path).exists()
    assert verify(path).whole
    said = {(tick, data["text"]) for tick, data in changes(path)}
    assert {(first["tick"], "One."), (second["tick"], "Two.")} <= said
    again = create(society("matrix", **CALM), tmp_path, "again")
    with Run(path) as run:
        scenario = run.manifest().scenario
    with Store.open(again) as store:
        store.update(scenario=scenario)
    go(again)
    assert log_of(again) == log_of(path), "as if the scenario had said so from the start"


# --- the channel -----------------------------------------------------------------------------------


def test_status_commands_and_refusals(process: Callable[[Path], Process], tmp_path: Path) -> None:
    path = create(society("double auction", **CALM), tmp_path, "market")
    running = process(path)
    reach(path, 5)
    with connect(path) as channel:
        status = channel.status()
        assert {key: status[key] for key in ("run", "paused", "phase", "speed", "until", "tick_ms", "tables")} == {
            "run": "market", "paused": True, "phase": "running", "speed": None, "until": 120, "tick_ms": 1000.0,
            "tables": 1,
        }  # fmt: skip
        assert status["events"] == 5
        assert status["calls"] > 0
        channel.speed(30)
        assert channel.status()["speed"] == pytest.approx(30)
        channel.speed(None)
        assert channel.intervene({"do": "set", "key": "order_life", "value": "10s"})[0]["value"] == 10
        with pytest.raises(Refused, match="'price' is no command"):
            channel.send({"do": "price"})
        with pytest.raises(Refused, match="lets nobody change 'mood'"):
            channel.intervene({"do": "set", "key": "mood", "value": 1})
        channel.go()
        assert running.ended() == "finished"
        with pytest.raises(NotRunning):
            channel.status()
    assert verify(path).whole


def test_the_key_is_its_owners_and_without_it_nothing_is_said(
    process: Callable[[Path], Process], tmp_path: Path
) -> None:
    path = create(society("matrix", **CALM), tmp_path, "guarded")
    process(path)
    file = address_file(path)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    address = orjson.loads(file.read_bytes())
    for line in (
        b'{"key": "guess", "command": {"do": "stop"}}\n',
        b'{"command": {"do": "stop"}}\n',
        b'{"key": null, "command": {"do": "stop"}}\n',
        b'["stop"]\n',
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\xff\xfe\n",
        b"x" * 1_000_001,
    ):
        # Hanging up on what was not read is a reset.
        with socket.create_connection((HOST, address["port"]), 10) as connection, suppress(ConnectionError):
            connection.sendall(line)
            assert connection.recv(100) == b""
    with connect(path) as channel:
        assert channel.status()["phase"] == "running"


def test_a_run_without_a_channel_cannot_be_reached(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "shut")
    with pytest.raises(NotRunning, match="is not running"):
        connect(path)

    @contextmanager
    def look(_session: Session) -> Iterator[None]:
        with pytest.raises(NotRunning, match="shut is running, but cannot be reached"):
            connect(path)
        yield

    assert go(path, beside=look).status == "finished"


# --- the command line --------------------------------------------------------------------------------


def test_the_command_line_controls_a_run(process: Callable[[Path], Process], agora: Agora, tmp_path: Path) -> None:
    path = create(society("matrix", **CALM), tmp_path / "runs", "under-way")
    running = process(path)
    reach(path, 6)
    assert "under-way  paused" in agora("control", "under").out
    assert "simulated" in agora("control", "last", "status").out
    assert agora("control", "last", "step").out == "under-way: one step\n"
    assert agora("control", "last", "step", "tick").code == 0
    said = agora("control", "last", "say", "Look out!", "--to", "slow-1", "--to", "quick")
    assert (said.code, "takes effect at" in said.out) == (0, True)
    assert agora("control", "last", "leave", "slow-2").code == 0
    for words, why in (
        (("dance",), "'dance' is no command; choose one of"),
        (("speed",), "speed does not go with ''; write speed 60"),
        (("speed", "fast"), "'fast' is no speed"),
        (("pause", "now"), "pause does not go with 'now'; write pause"),
        (("step", "far"), "step does not go with 'far'; write step, or step tick"),
        (("stop", "now", "then"), "stop does not go with 'now then'; write stop, or stop now"),
        (("set", "mood"), "set 'mood': not a setting"),
        (("set", "mood=1"), "lets nobody change 'mood'"),
        (("leave", "slow-1", "--to", "all"), "--to goes with say"),
        (("leave", "nobody"), "agent: no agent has the id 'nobody'"),
    ):
        said = agora("control", "last", *words)
        assert said.code == 2
        assert why in said.line
    assert agora("control", "last", "speed", "100000").code == 0
    assert agora("control", "last", "speed", "max").code == 0
    assert agora("control", "last", "go").out == "under-way: goes on\n"
    assert running.ended() == "finished"
    assert "is not running" in agora("control", "last", "pause").line
    assert agora("verify", "last").code == 0
    with Run(path) as run:
        assert sorted(data["do"] for _, _, data in run.events("change")) == ["leave", "say", "say"]


@pytest.mark.parametrize("words", [("stop",), ("stop", "now")])
def test_stopping_from_elsewhere(
    words: tuple[str, ...], process: Callable[[Path], Process], agora: Agora, tmp_path: Path
) -> None:
    path = create(society("matrix", **CALM), tmp_path / "runs", "stopped")
    running = process(path)
    reach(path, 6)
    assert agora("control", "last", *words).out == "stopped: stops\n"
    assert running.ended() == "interrupted"
    assert not address_file(path).exists()
    assert agora("resume", "last", "-q").code == 0


def test_an_agora_run_has_a_channel(tmp_path: Path) -> None:
    models = {"small": {"engine": "synthetic", "latency": "100ms", "slots": 1}}
    scenario = written(tmp_path, models=models, clock={"until": "10h"})
    command = [str(one) for one in (AGORA, "run", scenario, "-q", "--paused", "--runs", tmp_path / "runs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        until(lambda: list((tmp_path / "runs").glob("*.control")))
        (path,) = files(tmp_path / "runs")
        with connect(path) as channel:
            until(lambda: channel.status()["phase"] == "running")
            assert channel.status()["events"] == 0
            channel.stop()
        out = process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert "agora resume" in out
