"""A thousand rounds of the forum with language-model memory: what a step costs and how long prompts get.

Run: `python -m tests.benchmarks memory`. A round is one decision of every agent; the synthetic engine answers at once.
"""

from __future__ import annotations

import gc
import resource
import tempfile
from itertools import combinations
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from sim.calls import Calls
from sim.host import Host
from sim.log import Log
from sim.runs import table_of
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.voices import Pool

AGENTS = 8
CONTEXT = 2048


def forum(rounds: int) -> Any:
    """The scenario: eight agents who visit once an hour."""
    data = {
        "name": "long-forum",
        "seed": 3,
        "clock": {"until": "4000d"},
        "world": {
            "use": "worlds.platforms.forum:Forum", "communities": {"garden": "plants", "street": "news"},
            "visits": 24, "spread": 0.2,
        },
        "models": {"m": {"engine": "synthetic", "context": CONTEXT}},
        "cast": [{"name": "member", "count": AGENTS, "agent": "agents.llm:LLMAgent", "model": "m", "think": "1m"}],
        "stop": {"after": f"{rounds * AGENTS} decisions"},
    }  # fmt: skip
    return loads(write_yaml(data), Path(tempfile.gettempdir()), file="long-forum.yaml")


def steps(rounds: int) -> tuple[list[list[float]], list[int], list[int]]:
    """CPU seconds of each event by round, the longest prompt by round in tokens, and peak memory by round in KiB."""
    planned = plan(forum(rounds))
    pool = Pool(planned.scenario.base)
    longest = [0] * rounds
    now = 0

    class Counted(Calls):
        def receive(self, arrival: Any) -> Any:
            completion = super().receive(arrival)
            longest[now] = max(longest[now], completion.usage.prompt)
            return completion

    calls = Counted(pool.voices(planned.models))
    host = Host(calls)
    table = table_of(planned, planned.tables[0], host, Log(0, lambda rows: None))
    seconds: list[list[float]] = [[] for _ in range(rounds)]
    memory = [0] * rounds
    table.start()
    gc.collect()
    while not table.finished:
        now = min(table.counts["decisions"] // AGENTS, rounds - 1)
        start = process_time()
        table.advance()
        while not table.finished and not table.ready:
            host.pump()
        seconds[now].append(process_time() - start)
        memory[now] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, longest, memory


def drift(seconds: list[list[float]], first: int = 100, windows: int = 18) -> float:
    """Change of the median step over the rounds from `first` on, as a share of the median.

    By the Theil–Sen line through the windows' medians: a window in which the machine was busy does not tilt it.
    """
    width = max(1, (len(seconds) - first) // windows)
    points = []
    for start in range(first, len(seconds) - width + 1, width):
        window = [each for one in seconds[start : start + width] for each in one]
        points.append((start + width / 2, median(window)))
    slopes = [(y - below) / (x - left) for (left, below), (x, y) in combinations(points, 2)]
    return median(slopes) * (len(seconds) - first) / median(y for _, y in points)


def main() -> list[str]:
    """Steps, prompts and memory over 1,000 rounds."""
    seconds, longest, memory = steps(1000)
    early = max(longest[100:200])
    return [
        f"memory: median step {1e3 * median(s for one in seconds[100:200] for s in one):.2f} ms in rounds 100-200, "
        f"{1e3 * median(s for one in seconds[900:] for s in one):.2f} ms in 900-1,000; drift from 100 to 1,000 "
        f"{drift(seconds):+.1%} (wanted: within 10%)",
        f"memory: longest prompt {max(longest)} tokens of {CONTEXT} (rounds 100-200: {early}, "
        f"900-1,000: {max(longest[900:])}); peak memory {memory[99] / 1024:.0f} MiB at round 100, "
        f"{memory[-1] / 1024:.0f} MiB at 1,000",
    ]
