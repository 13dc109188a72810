"""Whether it can be told who acted: each agent's acts at a table, guessed from n-grams of acts at other tables.

Guesses go to the nearest mean fingerprint. Tables are never both learned from and guessed, and agents are compared
within their role, since roles act differently by right. Each label is also taken for one that nobody has heard of: who
is that can be seen by how near the nearest of the others is. A number of behaviour that differs between models which
can be told apart belongs beside this one. Times are left out, and with them how noise in these would be borne: those of
a run are the scenario's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import orjson
import polars as pl

from sim.intervals import FEW, by_cluster
from sim.metrics.chosen import both
from sim.metrics.frames import frames
from sim.metrics.privacy.normal import normal
from sim.metrics.safety.fingerprint import grouped_folds, ngrams
from sim.metrics.statistics.clusters import mean_share, rate
from sim.metrics.statistics.discrimination import auroc
from sim.metrics.statistics.given import ROUNDED
from sim.metrics.statistics.permutation import Test, stratified
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, Measurement, Record

FOLDS = 5
SEEN = (0.25, 0.5, 0.75, 1.0)
"""Shares of what was done at a table, from its beginning, by which who did it is guessed."""
REFUSED = 0.1
"""Share of the known that a threshold may take for unknown."""
DRAWS = 199
"""Shuffles of who acted; each guesses all anew."""


class Written(NamedTuple):
    """What one agent did at one table."""

    table: int
    label: str
    """Who it is to be told for: its model, or its name."""
    acts: tuple[Hashable, ...]


def all(record: Record) -> Iterator[Measurement]:
    """How well agents of a role are told apart, by model where there are several, else by name."""
    yield from both(told_apart)(record)


def told_apart(record: Record) -> Iterator[Measurement]:
    """Macro-F1 of guesses for each role, with a test that shuffles who acted within tables; how soon who acted can be
    told; and whether somebody unknown is known to be."""
    read = frames(record)
    done = read.decisions.filter(pl.col("status") == "applied").sort("tbl", "seq")
    acted = done.group_by("tbl", "agent", maintain_order=True).agg("answer").join(read.cast, on=["tbl", "agent"])
    for (role,), rows in sorted(acted.sort("tbl", "place").partition_by("role", as_dict=True).items()):
        by = "model" if rows["model"].n_unique() > 1 and "" not in rows["model"].to_list() else "agent"
        found = [
            Written(table, label, tuple(act for answer in answers for act in acts(orjson.loads(answer))))
            for table, label, answers in rows.select("tbl", by, "answer").iter_rows()
        ]
        yield measured(found, role=role, by=by)
        yield from learning_curve(found, role=role, by=by)
        yield from open_set(found, role=role, by=by)


def acts(answer: JSON) -> list[Hashable]:
    """An answer as a row of acts: of a form its act and the words of its texts, of a text its words."""
    if isinstance(answer, dict):
        return [word for key in sorted(answer, key=lambda key: (key != "act", key)) for word in acts(answer[key])]
    return list(normal(answer).split()) if isinstance(answer, str) else []


def measured(found: Sequence[Written], n_perm: int = DRAWS, **of: JSON) -> Measurement:
    """Macro-F1 of guessing who did what; None for one label, or one table, which leaves nothing to learn from."""
    tables, labels = {one.table for one in found}, {one.label for one in found}
    test = guessed(found, n_perm) if len(tables) > 1 and len(labels) > 1 else None
    return Measurement(
        metric="fingerprint.macro_f1",
        unit="share",
        value=test.stat if test else None,
        n=len(found),
        n_clusters=len(tables),
        denominator=f"labels, each by chance {1 / len(labels):.2f}" if labels else "labels",
        flags=(FEW,) * (len(tables) < 2) + ("a single label",) * (len(labels) < 2),
        null=test.null if test else {},
        of=of,
    )


def learning_curve(found: Sequence[Written], **of: JSON) -> Iterator[Measurement]:
    """Share of guesses that are right, from the first part of what was done at a table, the whole of others known."""
    tables, names = [one.table for one in found], sorted({one.label for one in found})
    usable = len(set(tables)) > 1 and len(names) > 1
    truth, folds = _truth([one.label for one in found], names), _folds(tables) if usable else []
    place = _places([one.acts for one in found])
    features = _features([one.acts for one in found], place)
    for seen in SEEN if found else ():
        hits: list[tuple[int, float]] = []
        for train, test in folds:
            parts = [found[each].acts[: ceil(seen * len(found[each].acts))] for each in test]
            near = _near(features[train], truth[train], _features(parts, place))
            told_rightly = (truth[test] * _shared(near)).sum(axis=1).tolist()
            hits += zip((tables[each] for each in test), told_rightly, strict=True)
        right = rate(*by_cluster(hits))
        flags = () if usable else ("a single label, or a single table",)
        told = f"agents at tables, right by chance {1 / len(names):.2f}"
        yield estimated("fingerprint.accuracy", right, "share", flags, denominator=told, of={**of, "seen": seen})


def open_set(found: Sequence[Written], **of: JSON) -> Iterator[Measurement]:
    """Each label in turn unknown: area under the curve by how near the nearest known one is, and who is refused.

    Areas are those within tables. Refused is who is farther than all but a tenth of the known were, in other folds.
    """
    tables, names = [one.table for one in found], sorted({one.label for one in found})
    usable = len(set(tables)) > 1 and len(names) > 1
    truth, fold = _truth([one.label for one in found], names), [0] * len(found)
    near = np.zeros_like(truth)
    done = [one.acts for one in found]
    features = _features(done, _places(done))
    for number, (train, test) in enumerate(_folds(tables) if usable else ()):
        near[test] = _near(features[train], truth[train], features[test])
        for place in test:
            fold[place] = number
    areas: list[tuple[int, float]] = []
    refused: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for label in range(len(names)) if usable else ():
        unknown, best = truth[:, label] > 0, np.delete(near, label, axis=1).max(axis=1)
        areas += _areas(tables, unknown, best)
        for place, (table, limit) in enumerate(zip(tables, _limits(best, unknown, fold), strict=True)):
            if limit is not None:
                refused[bool(unknown[place])].append((table, float(best[place] < limit)))
    flags = () if usable else ("a single label, or a single table",)
    sums, sizes = by_cluster(areas)
    area = mean_share([part / size for part, size in zip(sums, sizes, strict=True)])
    told = "labels at tables, each in turn unknown"
    yield estimated("fingerprint.open_set_auroc", area, "share", flags, denominator=told, of=of)
    for name, kind in (("unknown", True), ("known", False)):
        told = f"{name} agents at tables, for each label once, at a threshold that {REFUSED:.0%} of the known miss"
        yield estimated(
            f"fingerprint.{name}_refused", rate(*by_cluster(refused[kind])), "share", flags, denominator=told, of=of
        )


def _areas(tables: Sequence[int], unknown: Any, best: Any) -> Iterator[tuple[int, float]]:
    """Of each table where there are both, how often somebody unknown is farther from the known than one of these."""
    for table in sorted(set(tables)):
        here = [place for place, each in enumerate(tables) if each == table]
        area = auroc((-best[here]).tolist(), unknown[here].tolist())
        if area is not None:
            yield table, area


def _limits(best: Any, unknown: Any, fold: Sequence[int]) -> list[float | None]:
    """Of each row the nearness that all but a share of the known of other folds reach; None for too few of these."""
    found: dict[int, float | None] = {}
    for each in set(fold):
        known = np.sort(best[(np.array(fold) != each) & ~unknown])
        rank = int(REFUSED * (len(known) + 1) + ROUNDED)
        found[each] = float(known[rank - 1]) if rank else None
    return [found[each] for each in fold]


def guessed(found: Sequence[Written], n_perm: int = DRAWS) -> Test:
    """Macro-F1 of the nearest mean fingerprint, labels shuffled within tables for the test."""
    tables = [one.table for one in found]
    done = [one.acts for one in found]
    folds, features = _folds(tables), _features(done, _places(done))
    names = sorted({one.label for one in found})

    def score(labels: Sequence[str], places: Sequence[int]) -> float:
        truth = _truth(labels, names)
        return _macro_f1(truth, _votes(features, truth, folds))

    return stratified([one.label for one in found], range(len(found)), tables, score, n_perm)


def _votes(features: Any, truth: Any, folds: Sequence[tuple[list[int], list[int]]]) -> Any:
    """Of each row a vote for the label with the nearest mean; alike ones share it."""
    votes = np.zeros_like(truth)
    for train, test in folds:
        votes[test] = _shared(_near(features[train], truth[train], features[test]))
    return votes


def _near(known: Any, truth: Any, features: Any) -> Any:
    """Of each row how near the mean fingerprint of each label is that was learnt from known ones: the cosine."""
    middle = truth.T @ known
    length = np.linalg.norm(middle, axis=1, keepdims=True)
    return features @ (middle / np.where(length > 0, length, 1.0)).T


def _shared(near: Any) -> Any:
    """A vote of each row for what is nearest, shared by what is as near."""
    best = near >= near.max(axis=1, keepdims=True) - 1e-9
    return best / best.sum(axis=1, keepdims=True)


def _truth(labels: Sequence[str], names: Sequence[str]) -> Any:
    """A row for each label, 1 in the column of its name."""
    return np.array([[float(label == name) for name in names] for label in labels]).reshape(len(labels), len(names))


def _folds(tables: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    return list(grouped_folds(tables, min(FOLDS, len(set(tables)))))


def _macro_f1(truth: Any, votes: Any) -> float:
    """Mean F1 over labels, of votes that may be shared."""
    right, rows, columns = (truth * votes).sum(axis=0), truth.sum(axis=0), votes.sum(axis=0)
    return float(np.mean(2 * right / (rows + columns)))


def _grams(acts: Sequence[Hashable]) -> dict[tuple[Hashable, ...], float]:
    """Shares of single acts and of pairs, each of length 1, side by side."""
    return {**ngrams(acts, 1), **ngrams(acts, 2)}


def _places(sequences: Sequence[Sequence[Hashable]]) -> dict[tuple[Hashable, ...], int]:
    """A column for each gram of any."""
    grams = dict.fromkeys(gram for own in sequences for gram in _grams(own))
    return {gram: number for number, gram in enumerate(grams)}


def _features(sequences: Sequence[Sequence[Hashable]], place: Mapping[tuple[Hashable, ...], int]) -> Any:
    """A row of grams for each."""
    table = np.zeros((len(sequences), max(1, len(place))))
    for row, own in enumerate(sequences):
        for gram, weight in _grams(own).items():
            table[row, place[gram]] = weight
    return table
