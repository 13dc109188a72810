"""What a scenario measures of an update's episodes: its own `measure` only, run by run."""

from __future__ import annotations

from pathlib import Path

from sim.runs import create, go
from sim.scenarios.scenario import load, loads
from tests.benchmarks.tiny import SCENARIOS
from training.alongside import measures

FILE = SCENARIOS / "privacy" / "disclosure.yaml"
MEASURE = ["measure=[worlds.privacy.outcomes:leak_rate]", "tables=3"]


def test_of_each_run_of_the_update_and_of_no_other(tmp_path: Path) -> None:
    scenario = load(FILE, MEASURE)
    for run in ("update-000004-0", "update-000004-1", "update-000004-evaluation-0", "update-000005-0"):
        assert go(create(scenario, tmp_path, run)).status == "finished"
    (tmp_path / "update-000004-0.db").rename(tmp_path / "abandoned-1-update-000004-0.db")
    go(create(scenario, tmp_path, "update-000004-0"))
    found = [one for one in measures(scenario, tmp_path, 4) if "holder" not in one.of]
    assert [one.of for one in found] == [{"update": 4, "run": "0"}, {"update": 4, "run": "1"}]
    assert all(one.metric == "disclosure.leak_rate" and one.n > 0 and not one.events for one in found)
    (alone,) = [one for one in measures(scenario, tmp_path, 5) if "holder" not in one.of]
    assert alone.of == {"update": 5}


def test_without_measure_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "update-000001-0.db").write_text("no run")
    assert measures(load(FILE, ["measure=[]"]), tmp_path, 1) == []


def test_a_metric_that_breaks_costs_its_own_number_only(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def broken(record):\n    return [1 / 0]\n")
    metrics = "measure=[./broken.py:broken, worlds.privacy.outcomes:exchanges]"
    scenario = loads(FILE.read_text(), tmp_path, overrides=[metrics, "tables=2"])
    go(create(scenario, tmp_path, "update-000001-0"))
    broken, exchanges = measures(scenario, tmp_path, 1)
    assert broken.value is None
    assert broken.flags == ("failed: ZeroDivisionError: division by zero",)
    assert exchanges.value is not None
