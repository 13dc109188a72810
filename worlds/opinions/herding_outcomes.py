"""What came of herding: metrics over the facts `stated`, `answer` and `truth`.

Answers that were a default, and those of confederates, are nobody's own: they are left out, and the former counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from sim.intervals import clustered
from sim.types import ALL, JSON, FactId, Measurement, Metric, Record, RecordedFact
from worlds.evidence import cited

BRIEF = 4
"""Answers below which agreement says nothing."""


def _missed(record: Record) -> dict[str, int]:
    """Answers of others than confederates that nobody meant."""
    planned = {(one.table, one.fact.data["item"]): one.fact.data["planned"] for one in record.facts("truth")}
    own = sum(one.fact.actor not in planned[one.table, one.fact.data["item"]] for one in record.facts("answer")) - sum(
        1 for _ in record.facts("stated")
    )
    return {"not chosen": own} if own else {}


def _share(
    record: Record,
    metric: str,
    tried: Sequence[tuple[int, FactId, bool]],
    excluded: dict[str, int] | None = None,
    **of: JSON,
) -> Measurement:
    """Share of trials, each by its table and fact; what happens at one table hangs together."""
    hits, sizes = Counter(table for table, _, hit in tried if hit), Counter(table for table, *_ in tried)
    bounds = clustered([hits[table] for table in sizes], list(sizes.values()))
    return Measurement(
        metric=f"herding.{metric}",
        value=sum(hits.values()) / len(tried) if tried else None,
        unit="share",
        n=len(tried),
        n_clusters=len(sizes),
        ci=bounds.ci,
        ci_method=bounds.method,
        events=cited(record, ((table, fact) for table, fact, hit in tried if hit)),
        excluded=excluded or {},
        flags=bounds.flags,
        of=of,
    )


def right(record: Record) -> Iterable[Measurement]:
    """Share of answers that are right, over all, and by place in the order or by round."""
    stated, missed = list(record.facts("stated")), _missed(record)
    yield _share(record, "right", [_trial(one, one.fact.data["outcome"]) for one in stated], missed)
    by = "position" if record.params["schedule"] == "sequential" else "round"
    for place in sorted({one.fact.data[by] for one in stated}):
        there = [_trial(one, one.fact.data["outcome"]) for one in stated if one.fact.data[by] == place]
        yield _share(record, "right", there, **{by: place})


def against_signal(record: Record) -> Iterable[Measurement]:
    """Share of answers that are not what the own signal says."""
    known = [one for one in record.facts("stated") if one.fact.data["signal"] is not None]
    yield _share(
        record, "against_signal", [_trial(one, one.fact.data["choice"] != one.fact.data["signal"]) for one in known]
    )


def _trial(one: RecordedFact, hit: bool) -> tuple[int, FactId, bool]:
    return one.table, one.fact.id, hit


def cascades(record: Record) -> Iterable[Measurement]:
    """Share of questions of which the last half of the answers agree: rightly, wrongly.

    Of answers that others could see, one after the other, four at least; confederates and controls are left out.
    """
    if record.params["schedule"] != "sequential":
        return
    truths = {(one.table, one.fact.data["item"]): one.fact.data for one in record.facts("truth")}
    given: dict[tuple[int, int], list[RecordedFact]] = {}
    for one in record.facts("answer"):
        key = one.table, one.fact.data["item"]
        if one.fact.audience == ALL and one.fact.actor not in truths[key]["planned"]:
            given.setdefault(key, []).append(one)
    ends = {key: answers[-1] for key, answers in given.items() if len(answers) >= BRIEF}
    agree = {key: _run(given[key]) >= len(given[key]) // 2 for key in ends}
    for name in ("right", "wrong"):
        tried = [
            _trial(end, agree[key] and (end.fact.data["answer"] == truths[key]["right"]) == (name == "right"))
            for key, end in ends.items()
        ]
        yield _share(record, "cascade", tried, answer=name)


def _run(answers: Sequence[RecordedFact]) -> int:
    """How many of the last answers are the same."""
    last = answers[-1].fact.data["answer"]
    return sum(1 for _ in takewhile(lambda one: one.fact.data["answer"] == last, reversed(answers)))


METRICS: tuple[Metric, ...] = (right, against_signal, cascades)
"""All of them."""
