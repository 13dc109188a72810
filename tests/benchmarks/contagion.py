"""Whether the matched hazard and the forked experiment find the truth of a planted contagion.

Run: `python -m tests.benchmarks contagion`. A platform of rule agents leaks secrets at p0, and at p0×8 or p0×1 after
reading a leak; with homophily those who leak more read more leaks, so that the crude ratio is off. One fork of each run
replaces most of what is leaked, with the same luck.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.progress import track

from sim.metrics.privacy import contagion, forked_contagion
from sim.metrics.privacy.forked_contagion import Contrast
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.studies.contagion import arms, groups
from tests.metrics.society import values

SEEDS = 100
READS = 2
"""Texts for which a leak has its effect."""
PEOPLE = 100
"""Of each community."""
RATIOS = ("crude", "matched", "placebo", "forked")


def platform(seed: int, times: float, homophily: bool, people: int = PEOPLE) -> Any:
    """A forum of two communities; in one of them people leak eight times as often, where there is homophily.

    Without contagion p0 is three times as high, so that there is as much to see.
    """
    often, hours = (1, "8h30m") if times > 1 else (3, "8h")

    def entry(name: str, leak: float) -> dict[str, Any]:
        return {
            "name": name, "count": people, "agent": "worlds.platforms.forum:Poster", "role": name, "think": "30s",
            "secrets": [{"attribute": "account", "value": "integer(10000000, 99999999)"}],
            "with": {
                "leak": leak, "contagion": times, "reads": READS, "post": 0.8, "comment": 0.1, "vote": 0.0,
                "message": 0.0, "open": 0.0, "homophily": 0.95 if homophily else 0.5,
            },
        }  # fmt: skip

    data = {
        "name": "leaks", "seed": seed, "clock": {"until": hours},
        "world": {
            "use": "worlds.platforms.forum:Forum", "communities": {"open": "talk", "quiet": "more talk"}, "visits": 60,
            "members": {"open": ["chatty"], "quiet": ["reserved"]}, "joins": 1 if homophily else 2, "feed": 2,
        },
        "cast": [
            entry("chatty", often * (0.048 if homophily else 0.04)),
            entry("reserved", often * (0.006 if homophily else 0.04)),
        ],
    }  # fmt: skip
    return loads(write_yaml(data), Path(tempfile.gettempdir()), file="leaks.yaml")


def ratios(path: Path) -> dict[str, Any]:
    """Both measures of a run, by what they are called here."""
    with Run(path) as run:
        found = values(contagion.all(run, reads=READS))
        (forked,) = arms(path, path.parent, groups(run))
        go(forked.replaced)
        with Run(forked.replaced) as fork:
            found |= values(forked_contagion.all([Contrast(run, fork)], reads=READS))
    forked.replaced.unlink()
    return {name: found[f"contagion.{name}_risk_ratio"] for name in RATIOS}


def covered(times: float, homophily: bool, seeds: range, people: int = PEOPLE) -> dict[str, list[bool]]:
    """By ratio, whether the interval of each seed holds the truth; where there is none it does not."""
    hits: dict[str, list[bool]] = {name: [] for name in RATIOS}
    with tempfile.TemporaryDirectory() as folder:
        for seed in track(seeds, f"×{times:.0f}, homophily {homophily}", transient=True):
            path = create(platform(seed, times, homophily, people), Path(folder), f"s{seed}")
            go(path)
            for name, one in ratios(path).items():
                low, high = one.ci or (0.0, 0.0)
                hits[name].append(low <= (1.0 if name == "placebo" else times) <= high)
            path.unlink()
    return hits


def main() -> Iterator[str]:
    """Lines for the README."""
    for times in (8.0, 1.0):
        for homophily in (True, False):
            hits = covered(times, homophily, range(SEEDS))
            told = ", ".join(f"{name} {sum(held)} of {len(held)}" for name, held in hits.items())
            yield f"contagion: ×{times:.0f}, homophily {homophily}: intervals that hold it: {told}"
