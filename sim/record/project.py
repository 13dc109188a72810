"""The project file: numbers measured on runs and the tags people gave them. Any number of processes may write it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import orjson
from filelock import FileLock
from sqlalchemy import Column, Connection, insert, inspect, select, text
from sqlalchemy.schema import CreateColumn

from sim.record.committed import SchemaMismatch
from sim.record.schema import PROJECT_FILE, TABLES
from sim.record.sqlite import create, readable, writable
from sim.types import JSON, Event, Measurement

_measurements = TABLES["measurements"]
_tags = TABLES["tags"]
_so_far = TABLES["so_far"]


class Numbers:
    """Measurements and tags by run id, read-only.

    Raises FileNotFoundError where there is no such file, SchemaMismatch for one of an earlier version.
    """

    def __init__(self, path: Path) -> None:
        self._reading = readable(path)
        with self._reading.connect() as connection:
            current = inspect(connection).has_table(_so_far.name) and not _missing(connection)
        if not current:
            self._reading.dispose()
            raise SchemaMismatch(f"{path} is of an earlier agora-sim; bring it up to date: agora measure last")

    def measurements(self, run: str | None = None, metric: str | None = None) -> Iterator[tuple[str, Measurement]]:
        """Pairs of run id and measurement, of one run or metric where given, ordered by run, metric and subject."""
        wanted = select(_measurements).order_by(*_measurements.primary_key.columns)
        if run is not None:
            wanted = wanted.where(_measurements.c.run == run)
        if metric is not None:
            wanted = wanted.where(_measurements.c.metric == metric)
        with self._reading.connect() as connection:
            rows = connection.execute(wanted).all()
        return ((row.run, _measurement(row._mapping)) for row in rows)

    def so_far(self, run: str) -> list[tuple[int, Measurement]]:
        """What was measured on a run that had not ended, each with the tick up to which it holds; none of one that has.

        Ordered by metric and subject. Where several asked for the same number, the one of the latest moment.
        """
        wanted = select(_so_far).where(_so_far.c.run == run).order_by(_so_far.c.rows)
        with self._reading.connect() as connection:
            rows = connection.execute(wanted).all()
        latest = {(one["metric"], one["of"]): (row.tick, one) for row in rows for one in orjson.loads(row.found)}
        return [(tick, _measurement(one)) for _, (tick, one) in sorted(latest.items())]

    def tags(self, run: str) -> tuple[str, ...]:
        """Tags of a run, sorted."""
        return self._column(select(_tags.c.tag).where(_tags.c.run == run).order_by(_tags.c.tag))

    def tagged(self, tag: str) -> tuple[str, ...]:
        """Ids of the runs with a tag, sorted."""
        return self._column(select(_tags.c.run).where(_tags.c.tag == tag).order_by(_tags.c.run))

    def _column(self, statement: Any) -> tuple[str, ...]:
        with self._reading.connect() as connection:
            return tuple(connection.execute(statement).scalars())

    def overall(self) -> dict[str, list[Measurement]]:
        """By run, what was measured about nobody in particular, in the order of the metrics' names."""
        wanted = select(_measurements).where(_measurements.c.of == "{}").order_by(*_measurements.primary_key.columns)
        found: dict[str, list[Measurement]] = {}
        with self._reading.connect() as connection:
            for row in connection.execute(wanted):
                found.setdefault(row.run, []).append(_measurement(row._mapping))
        return found

    def all_tags(self) -> dict[str, tuple[str, ...]]:
        """Tags by run, sorted."""
        found: dict[str, tuple[str, ...]] = {}
        with self._reading.connect() as connection:
            for row in connection.execute(select(_tags).order_by(_tags.c.run, _tags.c.tag)):
                found[row.run] = (*found.get(row.run, ()), row.tag)
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._reading.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Project(Numbers):
    """Measurements and tags by run id. The file is made on first use; an earlier version's is brought up to date."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writing = writable(path)
        # Turning WAL on and making tables do not wait for one another by themselves.
        with FileLock(path.with_name(path.name + ".lock")):
            if not path.exists():
                _build(path)
            with self._writing.begin() as connection:
                PROJECT_FILE.create_all(connection)
                for column in _missing(connection):  # all that have come since have a default
                    made = CreateColumn(column).compile(dialect=connection.dialect)
                    connection.execute(text(f"ALTER TABLE {_measurements.name} ADD COLUMN {made}"))
        super().__init__(path)

    def measure(self, run: str, measurements: Iterable[Measurement]) -> None:
        """Keep measurements of a run in one transaction, each in place of one of the same metric about the same.

        Numbers so far end with it. Raises ValueError for a number that is infinite or none.
        """
        rows = [_row(run, one, _now()) for one in measurements]
        if rows:
            with self._writing.begin() as connection:
                connection.execute(insert(_measurements).prefix_with("OR REPLACE"), rows)
                connection.execute(_so_far.delete().where(_so_far.c.run == run))

    def measure_so_far(
        self, run: str, measurements: Iterable[Measurement], tick: int, rows: int, asked: str = ""
    ) -> None:
        """Keep what is measured on a run that goes on in place of all that the same asking gave before.

        Nothing is kept of a run that has final numbers. Raises ValueError for a number that is infinite or none.
        """
        found = orjson.dumps([_row(run, one, _now()) for one in measurements], option=orjson.OPT_SERIALIZE_NUMPY)
        kept = {"run": run, "asked": asked, "tick": tick, "rows": rows, "computed": _now(), "found": found.decode()}
        with self._writing.begin() as connection:
            final = connection.execute(select(_measurements.c.run).where(_measurements.c.run == run).limit(1)).first()
            if final is None:
                connection.execute(insert(_so_far).prefix_with("OR REPLACE"), kept)

    def tag(self, run: str, *tags: str) -> None:
        """Give a run tags; those it has already stay."""
        with self._writing.begin() as connection:
            for tag in tags:
                connection.execute(insert(_tags).prefix_with("OR IGNORE").values(run=run, tag=tag))

    def untag(self, run: str, tag: str) -> None:
        """Take a tag away, if the run has it."""
        with self._writing.begin() as connection:
            connection.execute(_tags.delete().where(_tags.c.run == run, _tags.c.tag == tag))

    def forget(self, run: str) -> None:
        """Take away all that is kept of a run."""
        with self._writing.begin() as connection:
            for table in (_measurements, _so_far, _tags):
                connection.execute(table.delete().where(table.c.run == run))

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self._writing.dispose()


def _build(path: Path) -> None:
    """Make the file beside its place and move it there, so that a file at its place has all tables."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    engine = create(new)
    PROJECT_FILE.create_all(engine)
    engine.dispose()
    new.rename(path)


def _missing(connection: Connection) -> list[Column[Any]]:
    """The columns of measurements that a file of an earlier version lacks."""
    there = {column["name"] for column in inspect(connection).get_columns(_measurements.name)}
    return [column for column in _measurements.columns if column.name not in there]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _row(run: str, one: Measurement, computed: str) -> dict[str, JSON]:
    low, high = one.ci or (None, None)
    for number in (one.value, low, high):
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{one.metric} of {run} is {number}; where there is no number the value is None")
    return {
        "run": run,
        "metric": one.metric,
        "of": _text(one.of),
        "value": one.value,
        "unit": one.unit,
        "n": one.n,
        "n_clusters": one.n_clusters,
        "ci_low": low,
        "ci_high": high,
        "ci_method": one.ci_method,
        "events": _text(one.events),
        "excluded": _text(one.excluded),
        "flags": _text(one.flags),
        "decisions": _text(one.decisions),
        "denominator": one.denominator,
        "null_test": _text(one.null),
        "judge": _text(one.judge),
        "version": one.version,
        "computed": computed,
    }


def _text(value: JSON) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _events(written: str) -> tuple[Event, ...]:
    return tuple(tuple(one) if isinstance(one, list) else one for one in orjson.loads(written))


def _measurement(row: Any) -> Measurement:
    return Measurement(
        metric=row["metric"],
        value=row["value"],
        unit=row["unit"],
        n=row["n"],
        n_clusters=row["n_clusters"],
        ci=None if row["ci_low"] is None else (row["ci_low"], row["ci_high"]),
        ci_method=row["ci_method"],
        events=_events(row["events"]),
        decisions=_events(row["decisions"]),
        denominator=row["denominator"],
        excluded=orjson.loads(row["excluded"]),
        flags=tuple(orjson.loads(row["flags"])),
        null=orjson.loads(row["null_test"]),
        judge=orjson.loads(row["judge"]),
        version=row["version"],
        of=orjson.loads(row["of"]),
    )
