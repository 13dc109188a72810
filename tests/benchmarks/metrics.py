"""What metrics find in societies whose truth is known, over many seeds, and what they cost.

Run: `python -m tests.benchmarks metrics`. A platform of rule agents leaks secrets at p0, and at p0×8 or p0×1 after
reading a leak; with homophily those who leak more read more leaks, so that the crude ratio is off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from sim.metrics import contagion, honesty, leaks, networks, provenance
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.types import Secret
from tests.metrics.society import Society, values

SEEDS = 10
EVENTS = 1_000_000
READS = 30


def platform(seed: int, times: float, homophily: bool) -> Any:
    """Two communities of 30; in one of them people leak four times as often, where there is homophily."""

    def entry(name: str, leak: float) -> dict[str, Any]:
        return {
            "name": name, "count": 30, "agent": "worlds.platforms.forum:Poster", "role": name, "think": "30s",
            "secrets": [{"attribute": "account", "value": "integer(10000000, 99999999)"}],
            "with": {
                "leak": leak, "contagion": times, "reads": READS, "post": 0.4, "comment": 0.5, "vote": 0.0,
                "message": 0.0, "open": 0.0, "homophily": 0.95 if homophily else 0.5,
            },
        }  # fmt: skip

    data = {
        "name": "leaks", "seed": seed, "clock": {"until": "1d"},
        "world": {
            "use": "worlds.platforms.forum:Forum", "communities": {"open": "talk", "quiet": "more talk"}, "visits": 60,
            "members": {"open": ["chatty"], "quiet": ["reserved"]}, "joins": 1 if homophily else 2, "feed": 3,
        },
        "cast": [entry("chatty", 0.016 if homophily else 0.006), entry("reserved", 0.002 if homophily else 0.006)],
    }  # fmt: skip
    return loads(write_yaml(data), Path(tempfile.gettempdir()), file="leaks.yaml")


def covered(times: float, homophily: bool, seeds: int, folder: Path) -> dict[str, list[bool]]:
    """Of the runs in which a ratio has an interval, whether it holds the truth."""
    hits: dict[str, list[bool]] = {"crude_risk_ratio": [], "matched_risk_ratio": [], "placebo_risk_ratio": []}
    for seed in range(seeds):
        path = create(platform(seed, times, homophily), folder, f"s{seed}-{times:.0f}-{homophily}")
        go(path)
        with Run(path) as run:
            found = values(contagion.all(run, reads=READS))
        for name in hits:
            truth = 1.0 if name.startswith("placebo") else times
            if interval := found[f"contagion.{name}"].ci:
                hits[name].append(interval[0] <= truth <= interval[1])
        path.unlink()
    return hits


def large(path: Path, events: int) -> None:
    """A record of so many events: half decisions with six facts in view, half posts; a tenth of agents has a secret."""
    luck, society = Random(1), Society(path)
    for number in range(1_000):
        name = f"a{number}"
        secret = Secret(subject=name, attribute="account", value=str(7_310_000 + 37 * number), holder=name)
        society.member(name, model="small" if number % 2 else "", secrets=[] if number % 10 else [secret])
    for fact in range(events // 2):
        agent = luck.randrange(1_000)
        shows = luck.sample(range(max(0, fact - 200), fact), min(6, fact))
        calls = [{"purpose": "act", "form": '{"text":80}', "text": "good morning to all of you"}] if agent % 2 else []
        society.act(f"a{agent}", fact + 1, shows=shows, calls=calls)
        text = f"account {7_310_000 + 37 * agent}" if luck.random() < 0.02 else "how is the garden doing today"
        society.fact(fact + 1, "post", f"a{agent}", text=text, answers=shows[:1] if luck.random() < 0.3 else ())
    society.run().close()


def costs(path: Path) -> Iterator[str]:
    """CPU seconds of each family on one record."""
    with Run(path) as run:
        for metric in (honesty.all, leaks.all, contagion.all, provenance.reach, networks.answering):
            begun = process_time()
            found = len(list(metric(run)))
            seconds = process_time() - begun
            yield f"metrics: {metric.__module__}: {found} numbers of {EVENTS:,} events in {seconds:.1f} CPU s"


def main() -> Iterator[str]:
    """Lines for the README."""
    with tempfile.TemporaryDirectory() as folder:
        for times in (8.0, 1.0):
            for homophily in (True, False):
                hits = covered(times, homophily, SEEDS, Path(folder))
                told = ", ".join(f"{name.split('_')[0]} {sum(held)} of {len(held)}" for name, held in hits.items())
                yield f"metrics: contagion ×{times:.0f}, homophily {homophily}: intervals that hold it: {told}"
        path = Path(folder) / "large.db"
        large(path, EVENTS)
        yield from costs(path)
