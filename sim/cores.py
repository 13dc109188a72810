"""How many cores this process may use, in a container as on a machine of its own."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path


def cores(root: Path = Path("/")) -> int:
    """Those that it is bound to, or as many as its group of processes has the time of where that is less (cgroup v2).

    `root`: where `proc` and `sys` are.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *(ceil(limit) for limit in _limits(root))]))


def _limits(root: Path) -> list[float]:
    """Processor time that the group and those around it may take, in cores; empty where nothing is limited."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no Linux
        return []
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    top = root / "sys/fs/cgroup"
    found = []
    for group in {top, *(top / part for part in (Path(own), *Path(own).parents))}:
        try:
            quota, period = (group / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            found.append(int(quota) / int(period))
    return found
