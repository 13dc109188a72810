"""What `agora new` writes runs at once, passes `agora check`, and never replaces anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.commands.checking import checked
from sim.commands.failures import BadInput
from sim.commands.new import KINDS, create
from sim.record.reader import Run
from sim.runs import create as store
from sim.runs import go
from sim.scenarios.scenario import load
from sim.verify import verify

DOTTED = {"world": ["Bazaar"], "agent": ["Bazaar", "AskingBazaar"], "scenario": []}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_runs_to_its_end(kind: str, tmp_path: Path) -> None:
    *files, hint = create(kind, "bazaar", tmp_path / "mine")
    assert [Path(file).name for file in files] == [f"bazaar.{ending}" for ending in KINDS[kind]]
    assert f"agora run {files[-1]}" in hint
    path = store(load(files[-1]), tmp_path / "runs")
    assert go(path).status == "finished"
    with Run(path) as run:
        hows = {how for by_how in run.counts().decisions.values() for how in by_how}
        assert hows <= {"chosen", "retried"}
        assert sum(1 for _ in run.decisions()) >= 10
    assert verify(path).whole


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_passes_the_check(kind: str, tmp_path: Path) -> None:
    *files, _ = create(kind, "bazaar", tmp_path)
    assert checked(files[-1], [], None, tmp_path)
    for name in DOTTED[kind]:
        (line,) = checked(f"{files[0]}:{name}", [], None, tmp_path)
        assert "keeps the rules" in line.plain
        assert "bazaar.yaml" in line.plain


def test_a_world_is_short(tmp_path: Path) -> None:
    create("world", "bazaar", tmp_path)
    lines = (tmp_path / "bazaar.py").read_text().splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("name", "stem", "kind"),
    [("tea-house", "tea_house", "TeaHouse"), ("Bazaar", "bazaar", "Bazaar"), ("x_2", "x_2", "X2")],
)
def test_names_of_files_and_classes(name: str, stem: str, kind: str, tmp_path: Path) -> None:
    create("world", name, tmp_path)
    assert f"class {kind}:" in (tmp_path / f"{stem}.py").read_text()
    assert load(tmp_path / f"{stem}.yaml").name == name


@pytest.mark.parametrize("name", ["", "9x", "a b", "../x", "class", "none", "é", "x" * 50, "a.b", "-a", "_", "a\n"])
def test_names_that_will_not_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="letters, digits"):
        create("world", name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean world"):
        create("wrld", "x", tmp_path)


@pytest.mark.parametrize("there", ["bazaar.py", "bazaar.yaml"])
def test_nothing_is_written_over(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(FileExistsError, match=there):
        create("world", "bazaar", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"
