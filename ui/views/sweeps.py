"""The settings of a sweep: means over seeds, and what each changes against the first, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sim.commands.measured import about
from sim.intervals import TOO_FEW, UNDER
from sim.metrics.pooling import pooled
from sim.sweep import Setting
from sim.types import Measurement
from ui import charts, data
from ui.effects import Subject, between, by_subject, tabled
from ui.markup import clipped, grid, hint, plotted, show, tag
from ui.parts import choice, figure, table

ROWS = 400
"""Most means that are listed."""
PLAIN = "as in the scenario"

Finished: TypeAlias = Sequence[Mapping[int, Sequence[Measurement]]]
"""What was measured on the finished runs of each setting, by seed."""
Means: TypeAlias = Sequence[Mapping[Subject, Measurement]]


def section(sweeps: Mapping[str, Sequence[Setting]]) -> None:
    """One sweep of those there are."""
    settings = sweeps[choice("Sweep", list(sweeps)[::-1], "sweep")]
    finished = [_measured(one.runs) for one in settings]
    rows = [
        [str(place), clipped(one.sets or PLAIN, 120), str(len(one.runs)), str(len(done))]
        for place, (one, done) in enumerate(zip(settings, finished, strict=True), 1)
    ]
    show(grid(["setting", "what is set", "runs", "finished"], rows, {2, 3}))
    means = [by_subject(pooled({str(seed): own for seed, own in done.items()})) for done in finished]
    subjects = sorted({key for each in means for key in each}, key=_general)
    if not subjects:
        hint("None of its finished runs has been measured yet.")
        return
    _drawn(settings, means, subjects)
    _differences(settings, finished)
    _listed(means, subjects)


def _measured(runs: Mapping[int, str]) -> dict[int, Sequence[Measurement]]:
    where = data.folder()
    return {seed: data.measured(where, run) for seed, run in runs.items() if data.head(where, run).status == "finished"}


def _general(key: Subject) -> tuple[object, ...]:
    """What is about everybody first, how honest the runs were last."""
    return data.family(key[0]) == data.HONESTY, key[1] != "{}", key


def _drawn(settings: Sequence[Setting], means: Means, subjects: Sequence[Subject]) -> None:
    """One number under every setting."""
    overall = [key for key in subjects if key[1] == "{}"] or subjects
    key = choice("Measure", overall, "sweep-measure", lambda one: one[0])
    there = [(place, each[key]) for place, each in enumerate(means, 1) if key in each]
    drawn = [
        (plotted(f"{place}: {settings[place - 1].sets or PLAIN}", 60), one.value or 0.0, *(one.ci or (None, None)))
        for place, one in there
    ]
    words = f"{key[0]}, mean over seeds with its 95% interval"
    show(tag("div", clipped(words, 120), cls="dim"))
    figure(charts.intervals(drawn, plotted(there[0][1].unit)), "sweep", words)


def _differences(settings: Sequence[Setting], finished: Finished) -> None:
    for place, (one, done) in list(enumerate(zip(settings, finished, strict=True), 1))[1:]:
        seeds = sorted(done.keys() & finished[0].keys())
        if not seeds:
            continue
        show(tag("h2", f"What setting {place} changes: {clipped(one.sets, 80)}"))
        words = (
            "Against setting 1, in pairs of one seed, which share their luck; intervals are Student's at 95%. "
            "What differs alike in fewer than six pairs has none."
        )
        show(tag("div", words, cls="dim"))
        found = between([(finished[0][seed], done[seed]) for seed in seeds])
        table(tabled(found), f"sweep-differences-{place}")


def _listed(means: Means, subjects: Sequence[Subject]) -> None:
    rows = [_row(place, each[key]) for key in subjects for place, each in enumerate(means, 1) if key in each]
    show(tag("h2", "Means over seeds"))
    if any(UNDER in one.flags for each in means for one in each.values()):
        show(tag("div", TOO_FEW, cls="dim"))
    table(rows[:ROWS], "sweep-means", height=320)


def _row(place: int, one: Measurement) -> dict[str, object]:
    low, high = one.ci or (None, None)
    return {
        "metric": one.metric,
        "of": about(one) or "all",
        "setting": place,
        "mean": one.value,
        "low": low,
        "high": high,
        "unit": one.unit,
        "runs": one.n_clusters,
    }
