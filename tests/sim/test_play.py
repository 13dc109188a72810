"""A seat in the terminal: questions part by part, illegal answers asked for again, Ctrl-C, and going on."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from pydantic import BaseModel, Field

from sim.answers import illegal, parse
from sim.commands import playing
from sim.commands.answering import asked
from sim.library import files
from sim.record.reader import Run
from sim.steering.channel import connect
from sim.steering.people import json_schema
from sim.types import Choice, Form, Format, Text
from tests.commands import AGORA, Agora
from tests.sim.processes import until
from tests.sim.test_cli import SCRIPTED, written


class Offer(BaseModel):
    """An offer to buy."""

    act: Literal["offer"]
    price: int = Field(ge=0, le=10)
    share: float = Field(gt=0, lt=1)
    firm: bool
    goods: list[Literal["apple", "pear"]] = Field(max_length=3)
    note: str | None = Field(max_length=20)


class Wait(BaseModel):
    act: Literal["wait"]


def typed(form: Format, *lines: str) -> tuple[str, list[str]]:
    """What comes of lines that are typed, and what was asked for."""
    rest, prompts = iter(lines), []

    def read(prompt: str) -> str:
        prompts.append(prompt)
        return next(rest)

    said = asked({"format": json_schema(form)}, read)
    assert next(rest, None) is None, "everything that was typed is asked for"
    return said, prompts


# --- questions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "lines", "answer"),
    [
        (("cooperate", "defect"), ("2",), "defect"),
        (("cooperate", "defect"), ("cooperate",), "cooperate"),
        (("cooperate", "defect"), ("3", "0", "-1", "", "defekt", " 1 "), "cooperate"),
        (("1", "2", "0"), ("2",), "2"),
        (("1", "2", "0"), ("3", "0"), "0"),
    ],
)
def test_a_choice_by_number_or_by_word(options: Any, lines: Any, answer: str) -> None:
    assert typed(Choice(options=options), *lines)[0] == answer


def test_a_form_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    form = Form(models=(Offer, Wait))
    said, prompts = typed(form, "1", "7", "0,5", "yes", "2", "pear", "1", "string", "as agreed")
    value, reason = parse(form, said)
    assert reason == ""
    assert value == {
        "act": "offer", "price": 7, "share": 0.5, "firm": True, "goods": ["pear", "apple"], "note": "as agreed"
    }  # fmt: skip
    assert prompts[1] == "price (whole number from 0 to 10): "
    assert prompts[4] == "how many goods (0 to 3): "
    assert "1. offer  An offer to buy." in capsys.readouterr().out
    assert orjson.loads(typed(form, "wait")[0]) == {"act": "wait"}
    assert orjson.loads(typed(Form(models=(Wait,)))[0]) == {"act": "wait"}


def test_what_is_no_number_is_left_to_the_judge() -> None:
    form = Form(models=(Offer, Wait))
    said, _ = typed(form, "1", "ten", "0.5", "no", "none", "null")
    value, reason = parse(form, said)
    assert value is None
    assert "price" in reason
    said, _ = typed(form, "1", "11", "0.5", "no", "0", "null")
    assert illegal(form, orjson.loads(said))


def test_a_text() -> None:
    assert typed(Text(max_chars=30), "Hello there")[0] == "Hello there"


# --- the command -----------------------------------------------------------------------------------


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is typed: lines, or exceptions to raise; nothing more means the end of the input."""
    lines: list[Any] = []

    def read(prompt: str = "") -> str:
        if not lines:
            raise EOFError
        line = lines.pop(0)
        if isinstance(line, BaseException):
            raise line
        return str(line)

    monkeypatch.setattr("builtins.input", read)
    return lines


def decisions(path: Path, agent: str) -> list[Any]:
    with Run(path) as run:
        return [one.action.answer for one in run.decisions(agent=agent)]


def test_a_bargaining_to_its_end(agora: Agora, keys: list[Any], tmp_path: Path) -> None:
    keys += ["refuse", "2", "twelve", "20000", "1000"]  # two illegal offers before a legal one
    said = agora("play", SCRIPTED, "--seat", "even")
    (path,) = files(tmp_path / "runs")
    assert said.code == 0
    assert f"{path.stem}: you are even" in said.out
    assert "Your partner offers: 2868 for you" in said.out
    assert "'refuse' is none of them; write a number from 1 to 2" in said.out
    assert "gain must be a whole number" in said.out
    assert "gain must be at least 0 and at most 10000" in said.out
    assert f"{path.stem} finished" in said.out
    assert decisions(path, "even") == ["reject", {"gain": 1000}]
    assert "all equal" in agora("verify", "last").out


def test_ctrl_c_leaves_a_run_that_goes_on_without_asking_again(agora: Agora, keys: list[Any], tmp_path: Path) -> None:
    keys += ["2", KeyboardInterrupt()]
    said = agora("play", SCRIPTED, "--seat", "even")
    (path,) = files(tmp_path / "runs")
    assert said.code == 130
    assert f"Go on: agora play --resume {path.stem}" in said.out
    assert agora("play", "--resume", "last").code == 130, "the end of the input leaves too"
    keys += ["1000"]
    said = agora("play", "--resume", path.stem)
    assert said.code == 0
    assert "Round 2" in said.out
    assert "Round 1 of" not in said.out
    assert decisions(path, "even") == ["reject", {"gain": 1000}]
    assert "all equal" in agora("verify", "last").out


def test_a_scenario_that_seats_a_person_needs_no_seat(agora: Agora, keys: list[Any], tmp_path: Path) -> None:
    me = {"name": "me", "agent": "agents.human:Human", "model": "me", "think": "5s"}
    other = {"name": "other", "agent": "agents.scripted:RandomLegal", "think": "5s"}
    world = {"use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 2}
    scenario = written(tmp_path, world=world, models={"me": {"engine": "human"}}, cast=[me, other])
    keys += ["1", "2"]
    assert agora("play", scenario).code == 0
    assert decisions(files(tmp_path / "runs")[0], "me") == ["cooperate", "defect"]
    two = written(tmp_path, world=world, models={"me": {"engine": "human"}}, cast=[me, {**me, "name": "you"}])
    assert "--seat is missing; choose one of me, you" in agora("play", two).line


def test_a_check_names_who_takes_a_seat(agora: Agora, tmp_path: Path) -> None:
    scenario = written(tmp_path, seats={"player-3": {"agent": "agents.scripted:RandomLegal"}})
    said = agora("check", scenario)
    assert said.code == 0
    assert "player-3 (seat)  1       agents.scripted:RandomLegal  none" in said.out


def test_a_player_is_at_one_table(agora: Agora, keys: list[Any], tmp_path: Path) -> None:
    scenario = written(tmp_path, tables=4, group=2)
    agora("play", scenario, "--seat", "player-2")
    with Run(files(tmp_path / "runs")[0]) as run:
        assert run.tables == 1


def test_what_cannot_be_played(agora: Agora, tmp_path: Path) -> None:
    for words, why in (
        ((), "name a scenario file, or a run to go on with"),
        ((SCRIPTED, "--resume", "last"), "name a scenario file, or a run to go on with"),
        ((SCRIPTED,), "--seat is missing; name an agent of the cast"),
        ((SCRIPTED, "--seat", "evn"), "--seat: no agent has the id 'evn'; did you mean even?"),
        ((SCRIPTED, "--seat", "first"), "--seat: no agent has the id 'first'"),
        (("nowhere.yaml", "--seat", "a"), "no such file"),
        (("--resume", "last"), "no runs in"),
    ):
        said = agora("play", *words)
        assert (said.code, why in said.line) == (2, True), said.err
    assert agora("run", SCRIPTED, "-q", "--name", "plain").code == 0
    assert "--seat is missing" in agora("play", "--resume", "plain").line
    assert "no person plays it in plain" in agora("play", "--resume", "plain", "--seat", "even").line


def test_a_run_that_fails_ends_the_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_more: Any) -> Any:
        raise OSError("no room")

    monkeypatch.setattr(playing, "go", broken)
    with pytest.raises(OSError, match="no room"):
        playing.played(tmp_path / "x.db", "a")


# --- a real terminal's signals, and a page's way in ------------------------------------------------


@pytest.fixture
def player(tmp_path: Path) -> Iterator[Any]:
    """`agora play` in a process of its own, and its run."""
    command = [str(one) for one in (AGORA, "play", SCRIPTED, "--seat", "even", "--runs", tmp_path / "runs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        until(lambda: list((tmp_path / "runs").glob("*.control")))
        yield process, files(tmp_path / "runs")[0]
        if process.poll() is None:
            process.kill()


def test_the_same_seat_through_the_channel_and_a_real_interrupt(player: Any, agora: Agora) -> None:
    process, path = player
    with connect(path) as channel:
        until(lambda: channel.status()["questions"])
        (question,) = channel.status()["questions"]
        assert question["format"] == {"type": "string", "enum": ["accept", "reject"]}
        assert f"even is asked since {question['time']}" in agora("control", path).out
        assert "must be one of" in agora("control", path, "answer", "even", "perhaps").line
        assert agora("control", path, "answer", "even", "reject").code == 0
        until(lambda: [one for one in channel.status()["questions"] if one["tick"] > question["tick"]])
        assert "JSON" in agora("control", path, "answer", "even", "4000").line
    process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert "agora play --resume" in out
    assert agora("verify", path).code == 0
