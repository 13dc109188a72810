"""Runs are deleted whole, and not while somebody writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.library import PROJECT, remove
from sim.record.project import Numbers, Project
from sim.record.store import RunLocked, Store
from tests.sim.rows import event, manifest


def test_a_run_is_deleted_with_its_numbers_and_no_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Store.create(tmp_path / f"{name}.db", manifest(id=name)) as store:
            store.put("events", event(0))
        project = Project(tmp_path / PROJECT)
        project.tag(name, "keep")
        project.close()
    remove(tmp_path / "one.db")
    assert {path.name for path in tmp_path.iterdir() if "one" in path.name} == set()
    assert (tmp_path / "two.db").exists()
    with Numbers(tmp_path / PROJECT) as numbers:
        assert numbers.all_tags() == {"two": ("keep",)}


def test_a_run_that_is_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    with Store.create(path, manifest(id="one")):
        with pytest.raises(RunLocked, match="stop the run first"):
            remove(path)
        assert path.exists()
