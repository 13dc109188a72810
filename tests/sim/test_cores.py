"""How many cores a process may use: those it is bound to, or what its control groups leave of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.cores import cores


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound to eight of a machine's cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)


def machine(root: Path, group: str, limits: dict[str, str]) -> Path:
    """A machine whose process is in a group; what `cpu.max` of groups says."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"4:memory:/elsewhere\n0::{group}\n")
    for name, text in limits.items():
        (root / "sys/fs/cgroup" / name).mkdir(parents=True, exist_ok=True)
        (root / "sys/fs/cgroup" / name / "cpu.max").write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("group", "limits", "there"),
    [
        ("/", {}, 8),
        ("/", {"": "max 100000"}, 8),
        ("/", {"": "200000 100000"}, 2),
        ("/", {"": "150000 100000"}, 2),  # one and a half keep two busy
        ("/", {"": "1000 100000"}, 1),
        ("/", {"": "9900000 100000"}, 8),
        ("/box/job", {"box": "300000 100000", "box/job": "max 100000"}, 3),  # the group around it limits it too
        ("/box/job", {"box": "300000 100000", "box/job": "100000 100000", "other": "1 1"}, 1),
        ("/", {"": "unreadable"}, 8),
    ],
)
def test_what_control_groups_leave(tmp_path: Path, group: str, limits: dict[str, str], there: int) -> None:
    assert cores(machine(tmp_path, group, limits)) == there


def test_where_there_are_no_groups_it_is_what_the_process_is_bound_to(tmp_path: Path) -> None:
    assert cores(tmp_path) == 8


def test_where_nothing_is_bound_it_is_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores(tmp_path) == 1
