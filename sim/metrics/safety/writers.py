"""Whether it can be told who acted: each agent's acts at a table, guessed from n-grams of acts at other tables.

Guesses go to the nearest mean fingerprint. Tables are never both learned from and guessed, and agents are compared
within their role, since roles act differently by right. A number of behaviour that differs between models which can be
told apart belongs beside this one. Times are left out: those of a run are the scenario's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import polars as pl

from sim.intervals import FEW
from sim.metrics.chosen import both
from sim.metrics.frames import frames
from sim.metrics.privacy.normal import normal
from sim.metrics.safety.fingerprint import grouped_folds, ngrams
from sim.metrics.statistics.permutation import Test, stratified
from sim.types import JSON, Measurement, Record

FOLDS = 5
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
    """Macro-F1 of guesses for each role, with a test that shuffles who acted within tables."""
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


def guessed(found: Sequence[Written], n_perm: int = DRAWS) -> Test:
    """Macro-F1 of the nearest mean fingerprint, labels shuffled within tables for the test."""
    tables = [one.table for one in found]
    folds = list(grouped_folds(tables, min(FOLDS, len(set(tables)))))
    features = _features([one.acts for one in found])
    names = sorted({one.label for one in found})

    def score(labels: Sequence[str], places: Sequence[int]) -> float:
        truth = np.array([[float(label == name) for name in names] for label in labels])
        return _macro_f1(truth, _votes(features, truth, folds))

    return stratified([one.label for one in found], range(len(found)), tables, score, n_perm)


def _votes(features: Any, truth: Any, folds: Sequence[tuple[list[int], list[int]]]) -> Any:
    """Of each row a vote for the label with the nearest mean; alike ones share it."""
    votes = np.zeros_like(truth)
    for train, test in folds:
        middle = truth[train].T @ features[train]
        length = np.linalg.norm(middle, axis=1, keepdims=True)
        near = features[test] @ (middle / np.where(length > 0, length, 1.0)).T
        best = near >= near.max(axis=1, keepdims=True) - 1e-9
        votes[test] = best / best.sum(axis=1, keepdims=True)
    return votes


def _macro_f1(truth: Any, votes: Any) -> float:
    """Mean F1 over labels, of votes that may be shared."""
    right, rows, columns = (truth * votes).sum(axis=0), truth.sum(axis=0), votes.sum(axis=0)
    return float(np.mean(2 * right / (rows + columns)))


def _features(sequences: Sequence[Sequence[Hashable]]) -> Any:
    """Shares of single acts and of pairs, each of length 1, side by side."""
    grams = [{**ngrams(acts, 1), **ngrams(acts, 2)} for acts in sequences]
    place = {gram: number for number, gram in enumerate(dict.fromkeys(gram for own in grams for gram in own))}
    table = np.zeros((len(grams), max(1, len(place))))
    for row, own in enumerate(grams):
        for gram, weight in own.items():
            table[row, place[gram]] = weight
    return table
