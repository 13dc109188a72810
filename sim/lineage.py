"""Where a fork or a run of branches comes from: completions, models and replicates of the runs before it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from sim.calls import Recorded, Voice
from sim.record.committed import Committed
from sim.record.schema import Manifest
from sim.scenarios.plan import Branch
from sim.scenarios.scenario import loads
from sim.types import CallKey, Completion
from sim.voices import Pool


class Lineage:
    """The ancestors of a run, nearest first; empty where it is no fork. Raises FileNotFoundError where one is gone."""

    def __init__(self, manifest: Manifest) -> None:
        self._ancestors: list[tuple[int, Committed]] = []
        self._trunk: tuple[Committed, list[Branch]] | None = None
        self.branches: list[tuple[int, int]] = []
        """Tick of each fork on the way and its replicate number, by tick; those of one tick oldest first."""
        while manifest.fork_tick is not None:
            self.branches.insert(0, (manifest.fork_tick, manifest.replicate))
            parent = self._parent(manifest)
            self._ancestors.append((manifest.fork_tick, parent))
            manifest = parent.manifest()
        self.branches.sort(key=itemgetter(0))
        if manifest.branches and manifest.parent:
            self._trunk = self._parent(manifest), [Branch(*one) for one in manifest.branches]

    def _parent(self, manifest: Manifest) -> Committed:
        path = Path(manifest.parent)
        if not path.exists():
            self.close()
            raise FileNotFoundError(f"{manifest.id} was forked from {path}, which is gone; bring it back to go on")
        return Committed(path)

    @property
    def records(self) -> list[Recorded]:
        """Completions to take for equal requests: the parent's, and where it has none yet, those that it would take."""
        ticks = accumulate((tick for tick, _ in self._ancestors), min)
        found = [_taken(run, tick) for tick, (_, run) in zip(ticks, self._ancestors, strict=True)]
        return found if self._trunk is None else [*found, _branching(*self._trunk)]

    def eras(self, pool: Pool) -> list[tuple[int, Mapping[str, Voice]]]:
        """Up to which tick other models spoke, oldest first, and which."""
        found: list[tuple[int, Mapping[str, Voice]]] = []
        for tick, run in reversed(self._ancestors):
            manifest = run.manifest()
            found.append((tick, pool.voices(loads(manifest.scenario, manifest.base).models)))
        return found

    def close(self) -> None:
        """Let go of the files."""
        for _, run in self._ancestors:
            run.close()
        if self._trunk is not None:
            self._trunk[0].close()

    def __enter__(self) -> Lineage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _taken(run: Committed, tick: int) -> Recorded:
    """What a fork at a tick takes from the run that it was forked from."""
    return Recorded(
        lookup=run.completion, request_text=run.request_text, source="parent", strict_before=lambda _table: tick
    )


def _branching(run: Committed, branches: list[Branch]) -> Recorded:
    """What the tables of a run of branches take from the tables that they branch from."""

    def there(key: CallKey) -> CallKey:
        return key._replace(table=branches[key.table].table)

    def lookup(key: CallKey) -> tuple[bytes, Completion] | None:
        return run.completion(there(key))

    return Recorded(
        lookup=lookup,
        request_text=lambda key: run.request_text(there(key)),
        source="parent",
        strict_before=lambda table: branches[table].tick,
    )
