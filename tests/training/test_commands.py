"""The commands around trained policies, as a user calls them, on a tiny model."""

from __future__ import annotations

import json
import sys
import types
from math import exp, fsum
from pathlib import Path
from typing import Any

import polars
import pytest
from peft import PeftModel

from agents.engines.weights import fingerprint, load_model
from sim.record.project import Project
from sim.record.reader import Run
from tests.commands import Agora
from tests.training.typed import KUHN, asked
from training import checkpoint
from training.policy import Base, saved_in, tiny_model
from training.rows_file import rows_of
from training.trajectory import Row

# --- starting weights, in and out ---------------------------------------------------------------------


def test_a_version_goes_out_and_comes_back_as_version_1(agora: Agora, kuhn: Path, model: Path, tmp_path: Path) -> None:
    said = agora("export-adapter", "kuhn", "kuhn@2", "given", "--base", "someone/tiny")
    assert (said.code, said.out) == (0, "kuhn@2 in given\n")
    config = json.loads((tmp_path / "given" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "someone/tiny"
    PeftModel.from_pretrained(load_model(model, "float32", "cpu"), tmp_path / "given")
    (tmp_path / "given" / "policy.json").unlink()  # as a foreign adapter comes
    again = asked(model, out="again")
    assert agora(*again, "--policy", "kuhn=given", "--updates", 1).code == 0
    assert fingerprint("again/policies/kuhn@1") == fingerprint("given"), "the same weights under a new name"
    assert saved_in("again/policies/kuhn@1").parent == ""
    for file in (tmp_path / "given").iterdir():
        file.unlink()
    assert agora("train", "--out", "again", "--updates", 2, "-q").code == 0, "the source may be gone"
    assert [path.name for path in sorted(Path("again/policies").iterdir())] == ["kuhn@1", "kuhn@2", "kuhn@3"]


def test_a_start_from_our_own_version_names_its_parent(agora: Agora, model: Path, tmp_path: Path) -> None:
    Base(str(model)).create("trader", rank=4).save(tmp_path)
    assert agora(*asked(model), "--policy", "kuhn=trader@1", "--updates", 1).code == 0
    assert saved_in("kuhn/policies/kuhn@1").parent == "trader@1"


def test_anchored_rewards_go_on_from_weights_that_were_brought(agora: Agora, model: Path, tmp_path: Path) -> None:
    Base(str(model)).create("trader", rank=4).save(tmp_path)
    told = asked(model, "policy.layers=1", "optimiser.lr=1", recipe="neurd_fit_like")
    assert agora(*told, "--policy", "kuhn=trader@1", "--updates", 1).code == 0
    said = agora("train", "--out", "kuhn", "--updates", 2, "-q")
    assert (said.code, said.err) == (0, "")
    assert checkpoint.read_notes(Path("kuhn")) is not None


def test_the_first_version_stays(agora: Agora, kuhn: Path) -> None:
    assert agora("train", "--out", "kuhn", "--updates", 3, "-q").code == 0
    assert {path.name for path in (kuhn / "policies").iterdir()} >= {"kuhn@1", "kuhn@3", "kuhn@4"}


# --- a scenario with a trained policy -----------------------------------------------------------------


def test_a_trained_policy_speaks_in_any_run_and_its_rows_carry_its_hash(
    agora: Agora, kuhn: Path, model: Path, tmp_path: Path
) -> None:
    text = KUHN.read_text().replace("model: embedded, policy: kuhn", f"model: {model}, policy: kuhn@2, {ADAPTERS}")
    (tmp_path / "played.yaml").write_text(text.replace("tables: 64", "tables: 2"))
    said = agora("run", "played.yaml", "-q")
    assert said.code == 0, said.err
    (path,) = (tmp_path / "runs").glob("kuhn-train-*.db")
    content = fingerprint("kuhn/policies/kuhn@2")
    with Run(path) as run:
        assert [row[::2] for page in run.pages("policies") for row in page] == [("kuhn@2", content)]
    for spoken in (path, (kuhn / "rollouts/update-000001-0.db")):
        found = rows_of(spoken)
        label = found[0].policy
        assert {(row.policy, row.policy_hash) for row in found} == {(label, fingerprint(f"kuhn/policies/{label}"))}
    assert "all equal" in agora("verify", path).out


ADAPTERS = "adapters: {kuhn@2: ./kuhn/policies/kuhn@2}"


# --- rows ---------------------------------------------------------------------------------------------


def test_rows_are_written_whole(agora: Agora, kuhn: Path) -> None:
    run = kuhn / "rollouts/update-000001-0.db"
    wanted = rows_of(run)
    said = agora("rows", run, "--out", "given/rows.parquet", "-q")
    assert (said.code, said.out) == (0, f"{len(wanted)} rows of 1 runs in given/rows.parquet\n")
    read = polars.read_parquet("given/rows.parquet")
    assert read.columns == list(Row.__struct_fields__)
    for got, row in zip(read.iter_rows(named=True), wanted, strict=True):
        assert tuple(got["prompt"]) == row.prompt
        assert tuple(got["ids"]) == row.ids
        assert tuple(got["logprobs"]) == row.logprobs
        assert tuple(got["option_logprobs"]) == row.option_logprobs
        assert fsum(map(exp, got["option_logprobs"])) == pytest.approx(1), "torch knows every option"
        assert (got["reward"], got["trained"], got["policy_hash"]) == (row.reward, True, row.policy_hash)
        assert json.loads(got["answer"]) == row.answer
    assert agora("rows", run, run, "--out", "rows.jsonl", "-q").code == 0
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert len(lines) == len(wanted), "a run that is named twice counts once"
    assert lines[0].keys() == set(Row.__struct_fields__)
    assert tuple(lines[0]["prompt"]) == wanted[0].prompt


# --- stops --------------------------------------------------------------------------------------------


def status(folder: str = "kuhn") -> tuple[tuple[str, ...], list[tuple[float | None, tuple[str, ...]]]]:
    """The project file's tags, and when and why the training stopped."""
    project = Project(Path(folder) / "project.db")
    try:
        stopped = [(one.value, one.flags) for _, one in project.measurements(folder, "train.stopped")]
        return project.tags(folder), stopped
    finally:
        project.close()


def test_a_collapsed_training_stops_says_why_and_can_be_gone_on_with(agora: Agora, kuhn: Path) -> None:
    bound = "monitor.stop=[{reading: decision_entropy, below: 99, patience: 2}]"
    said = agora("train", "--out", "kuhn", "--updates", 5, "--recipe-set", bound, "-q")
    assert said.code == 3
    assert "kuhn was stopped after update 3: decision_entropy was below 99 2 times in a row, last 0." in said.out
    assert "agora train --out kuhn --go-on" in said.out
    tags, stopped = status()
    assert tags == ("stopped",)
    assert [update for update, _ in stopped] == [3]
    assert stopped[0][1][0].startswith("decision_entropy was below 99 2 times in a row")
    found = checkpoint.read_notes(kuhn)
    assert found is not None
    assert found[1]["watching"]["watches"]["kuhn"]["streak"] == {"0": 2}
    assert agora("train", "--out", "kuhn", "-q").code == 3, "it stays stopped"
    again = agora("train", "--out", "kuhn", "--updates", 4, "--go-on", "-q")
    assert (again.code, "4 updates done" in again.out) == (0, True), "it counts anew"
    assert status()[0] == ()
    assert agora("train", "--out", "kuhn", "--updates", 9, "-q").code == 3
    other = agora("train", "--out", "kuhn", "--updates", 6, "--recipe-set", "monitor.stop.0.below=0", "-q")
    assert (other.code, "6 updates done" in other.out) == (0, True)
    assert status()[0] == ()


def test_readings_are_numbers_of_the_training(agora: Agora, kuhn: Path) -> None:
    every = ("--recipe-set", "monitor.every=2", "--recipe-set", "monitor.pairs=4")
    assert agora("train", "--out", "kuhn", "--updates", 3, *every, "-q").code == 0
    project = Project(kuhn / "project.db")
    for metric in ("decision_entropy", "first_legal_rate", "length", "reward", "kept", "kl", "clip_fraction", "ess"):
        found = [one.value for _, one in project.measurements("kuhn", f"train.{metric}")]
        assert len(found) == 3, metric
        assert None not in found, metric
    for metric in ("mutual_information", "retrieval", "retrieval_gain"):
        of = [one.of["update"] for _, one in project.measurements("kuhn", f"train.{metric}")]
        assert of == [1, 3], "every other update"
    retrieval = [one.value for _, one in project.measurements("kuhn", "train.retrieval")]
    project.close()
    assert all(value is not None and 0 <= value <= 1 for value in retrieval)


# --- cost, TensorBoard --------------------------------------------------------------------------------


def test_a_dry_run_says_what_an_update_costs_and_keeps_nothing(agora: Agora, model: Path) -> None:
    said = agora(*asked(model), "--dry-run")
    assert said.code == 0
    for line in ("episodes", "rows", "tokens, prompts included", "sampled tokens", "seconds, at most", "memory, MiB"):
        assert line in said.out
    assert not Path("kuhn").exists()


def test_numbers_go_to_tensorboard(agora: Agora, kuhn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            assert (folder, purge_step) == ("board", 2)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def flush(self) -> None:
            """Nothing waits."""

        close = flush

    module: Any = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    assert agora("train", "--out", "kuhn", "--updates", 2, "--tensorboard", "board", "-q").code == 0
    assert {name for name, _, step in written if step == 2} >= {"train/loss", "train/return", "train/seconds"}


def test_without_tensorboard_one_line_says_so(agora: Agora, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    said = agora(*asked(model), "--tensorboard", "board")
    assert (said.code, said.line) == (2, "agora: --tensorboard needs TensorBoard: pip install tensorboard")
    assert not Path("kuhn").exists()


# --- what is wrong is one line ------------------------------------------------------------------------


def test_mistakes_are_one_line(agora: Agora, kuhn: Path, model: Path, tmp_path: Path) -> None:
    foreign = Base(str(tiny_model(tmp_path / "other", seed=2, width=48))).create("x", rank=4).save(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.yaml").write_text("recipe: {}\nscenario: there\n")
    (tmp_path / "moved").mkdir()
    begun = (kuhn / "train.yaml").read_text(encoding="utf-8")
    (tmp_path / "moved" / "train.yaml").write_text(begun.replace(str(KUHN), "/nowhere/kuhn.yaml"), encoding="utf-8")
    wrong: list[tuple[list[object], str]] = [
        (["train", "--out", "moved"], "/nowhere/kuhn.yaml, the scenario of the training in moved, is gone; bring it"),
        (["train", "--out", "old"], "old/train.yaml has no sets: it is damaged, or of another version"),
        (["eval", "kuhn", "--games", 1, "--respond", 1], "--respond compares means, which one game has not"),
        (
            [
                *asked(model, out="new"),
                "--set",
                "models.first.engine=synthetic",
                "--set",
                "models.second.engine=synthetic",
            ],
            "cannot be trained on; expected torch or vllm",
        ),
        ([*asked(model, out="new"), "--policy", "kuhn"], "--policy kuhn: write NAME=FOLDER"),
        (
            [*asked(model, out="new"), "--policy", "kuhm=x@1"],
            "--policy kuhm: no entry of models: learns it; did you mean kuhn?",
        ),
        ([*asked(model, out="new"), "--policy", "kuhn=nothing"], "--policy kuhn: nothing/model.safetensors: No such"),
        ([*asked(model, out="new"), "--policy", f"kuhn={foreign.label}"], "belongs to another base model than tiny"),
        (["train", "grpo", "--out", "kuhn"], "kuhn holds a training already, which a recipe would change"),
        (["train", "--out", "kuhn", "--set", "seed=1"], "kuhn holds a training already, which --set would change"),
        (["train", "--out", "kuhn", "--recipe-set", "updates=9"], "of its recipe only monitor.… may change"),
        (["train", "--out", "kuhn", "--recipe-set", "monitor.stop.0.reading=x"], "monitor.stop.0.reading"),
        (["export-adapter", "kuhn", "kuhn@9", "there"], "kuhn has no policy 'kuhn@9'; "),
        (["export-adapter", "nowhere", "kuhn@1", "there"], "nowhere has no policy 'kuhn@1'; none is known here"),
        (["export-adapter", "kuhn", "kuhn@1", tmp_path], "is there already"),
        (["rows", "last", "--out", "rows.parquet"], "no runs in "),
        (["rows", "kuhn/rollouts/update-000001-0.db", "--out", "rows.csv"], "rows.csv is neither a .parquet nor"),
    ]
    for args, part in wrong:
        said = agora(*args)
        assert said.code == 2, args
        assert part in said.line, args
    assert not (tmp_path / "new").exists(), "a mistake leaves nothing behind"
