"""What came of riddles: metrics over the facts `proposal` and `answer`.

Answers that were a default are nobody's own: they are left out and counted. A table has one problem.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sim.intervals import clustered, clustered_mean
from sim.types import JSON, Measurement, Metric, Record, RecordedFact
from worlds.evidence import cited, places


def _answers(record: Record) -> tuple[list[RecordedFact], dict[str, int]]:
    """Answers that were meant, and how many are left out."""
    given = list(record.facts("answer"))
    meant = [one for one in given if one.fact.data["meant"]]
    missed = len(given) - len(meant)
    return meant, {"not chosen": missed} if missed else {}


def _share(
    record: Record,
    metric: str,
    tried: Sequence[tuple[RecordedFact, bool]],
    excluded: Mapping[str, int] | None = None,
    **of: JSON,
) -> Measurement:
    """Share of hits; what happens at one table hangs together."""
    hits, sizes = Counter(one.table for one, hit in tried if hit), Counter(one.table for one, _ in tried)
    bounds = clustered([hits[table] for table in sizes], list(sizes.values()))
    return Measurement(
        metric=f"riddles.{metric}",
        value=hits.total() / len(tried) if tried else None,
        unit="share",
        n=len(tried),
        n_clusters=len(sizes),
        ci=bounds.ci,
        ci_method=bounds.method,
        events=cited(record, places(one for one, hit in tried if hit)),
        excluded=excluded or {},
        flags=bounds.flags,
        of=of,
    )


def success(record: Record) -> Iterable[Measurement]:
    """Share of answers that are right, over all, by digits of the problem, by operation and by solver."""
    meant, excluded = _answers(record)
    tried = [(one, one.fact.data["right"]) for one in meant]
    yield _share(record, "success", tried, excluded)
    asked = {one.table: one.fact.data for one in record.facts("proposal")}
    for of in ("digits", "operation"):
        for value in sorted({asked[one.table][of] for one in meant}):
            yield _share(
                record, "success", [each for each in tried if asked[each[0].table][of] == value], **{of: value}
            )
    for solver in sorted({one.fact.actor for one in meant}):
        yield _share(record, "success", [each for each in tried if each[0].fact.actor == solver], solver=solver)


def answerable(record: Record) -> Iterable[Measurement]:
    """Share of problems that have an answer."""
    yield _share(record, "answerable", [(one, one.fact.data["answerable"]) for one in record.facts("proposal")])


def learnability(record: Record) -> Iterable[Measurement]:
    """Mean over problems of p(1 − p), p the share of their solvers who were right: 0.25 where half are, the most.

    Of n solvers who are each right with probability p it is expected to be (n − 1)/n of that.
    """
    meant, excluded = _answers(record)
    right: defaultdict[int, list[bool]] = defaultdict(list)
    for one in meant:
        right[one.table].append(one.fact.data["right"])
    worth = [(p := sum(hits) / len(hits)) * (1 - p) for hits in right.values()]
    bounds = clustered_mean(worth, [1] * len(worth))
    yield Measurement(
        metric="riddles.learnability",
        value=sum(worth) / len(worth) if worth else None,
        n=len(worth),
        n_clusters=len(worth),
        ci=bounds.ci,
        ci_method=bounds.method,
        events=cited(record, places(one for one in record.facts("proposal") if one.table in right)),
        excluded=excluded,
        flags=bounds.flags,
    )


METRICS: tuple[Metric, ...] = (success, answerable, learnability)
"""All of them."""
