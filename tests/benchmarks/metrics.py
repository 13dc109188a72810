"""What metrics cost on a large record.

Run: `python -m tests.benchmarks metrics`. What they find where the truth is known: `contagion` and `alarms`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import process_time

from sim.metrics import honesty, provenance
from sim.metrics.frames import Frames, frames, grown
from sim.metrics.privacy import contagion, leaks
from sim.metrics.society import networks
from sim.record.prefix import Mark, Prefix
from sim.record.reader import Run
from sim.types import Secret
from tests.metrics.society import Society

EVENTS = 1_000_000
FAMILIES = (honesty.all, leaks.all, contagion.all, provenance.reach, networks.answering)
GROWN = 2_000
"""Rows by which a record grows."""


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
        for metric in FAMILIES:
            begun = process_time()
            found = len(list(metric(run)))
            seconds = process_time() - begun
            yield f"metrics: {metric.__module__}: {found} numbers of {EVENTS:,} events in {seconds:.1f} CPU s"


def growth(path: Path) -> Iterator[str]:
    """CPU seconds of reading a record at once, of reading what is new of it, and of measuring it then."""
    with Prefix(path) as whole:
        begun = process_time()
        _read(frames(whole))
        at_once = process_time() - begun
        ((last, _),) = whole.mark.logs
        earlier = Mark(((last - GROWN, 0),), whole.mark.calls - GROWN // 4)
    with Prefix(path, upto=earlier) as before, Prefix(path) as now:
        _read(frames(before))
        begun = process_time()
        grown(now, before)
        new = process_time() - begun
        for metric in FAMILIES:
            list(metric(now))
        measured = process_time() - begun - new
    seconds = f"{at_once:.2f} CPU s, the last {GROWN:,} in {new:.2f}, measured in {measured:.2f}"
    yield f"metrics: {last + 1:,} rows read in {seconds}"


def _read(found: Frames) -> None:
    for frame in ("facts", "decisions", "events", "calls"):
        getattr(found, frame)


def main() -> Iterator[str]:
    """Lines for the README."""
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.db", Path(folder) / "large.db"
        large(small, EVENTS // 10)
        yield from growth(small)
        large(path, EVENTS)
        yield from costs(path)
