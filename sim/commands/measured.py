"""Measurements as a table: grouped by metric, what is about everybody first, the rest within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.table import Table

from sim.commands.terminal import columns, number, short
from sim.intervals import UNDER
from sim.metrics.differences import Difference
from sim.types import JSON, Measurement

ROWS = 12
"""Rows shown of one metric, unless all are asked for."""
ASIDE = 3
"""Rows shown that are about neither all, a role nor an agent (a period, a good), of a metric with no overall row."""
HEADS = ("measure", "of", "value", "unit", "n", "interval", "flags")


def listed(
    measured: Iterable[Measurement], everything: bool = False, aside: int = ASIDE
) -> tuple[list[Measurement], int]:
    """The measurements to show, metrics by name, the most general of each first; and how many are left out."""
    families: dict[str, list[Measurement]] = {}
    for one in measured:
        families.setdefault(one.metric, []).append(one)
    ordered = [sorted(families[metric], key=_place) for metric in sorted(families)]
    shown = ordered if everything else [_bounded(family, aside) for family in ordered]
    return [one for family in shown for one in family], sum(map(len, ordered)) - sum(map(len, shown))


def _bounded(family: Sequence[Measurement], most: int) -> list[Measurement]:
    """Overall, by role, by agent; where nothing is overall also the last few of what else there is."""
    aside = [one for one in family if kind(one) == "else"]
    kept = aside[-most:] if not any(kind(one) == "overall" for one in family) else []
    return [one for one in family if kind(one) != "else" or one in kept][:ROWS]


def kind(one: Measurement) -> str:
    """What a measurement is about: `overall`, a `role`, an `agent`, or something `else`, a period or a good. Those of
    decisions that models really chose stand beside those of all."""
    of = one.of.keys() - {"decisions"}
    if not of:
        return "overall"
    return "role" if of == {"role"} else "agent" if of <= {"role", "agent"} else "else"


def _place(one: Measurement) -> tuple[object, ...]:
    rank = ("overall", "role", "else", "agent").index(kind(one))
    return rank, [(key, _natural(one.of[key])) for key in sorted(one.of)]


def _natural(value: JSON) -> list[tuple[int, float, str]]:
    """A value by which buyer-2 comes before buyer-10, and period 9 before period 10."""
    parts = re.split(r"(\d+)", str(value))
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]


def about(one: Measurement | Difference) -> str:
    """What a number is about, in words; empty: everything."""
    return ", ".join(f"{key} {short(value)}" for key, value in sorted(one.of.items()))


def measurement_table(measured: Iterable[Measurement], title: str = HEADS[0]) -> Table:
    """Measurements with their sample sizes and intervals, as they come; of `UNDER` it is for the caller to tell."""
    return columns((title, *HEADS[1:]), [_row(one) for one in measured])


def _row(one: Measurement) -> tuple[str, ...]:
    value = "–" if one.value is None else number(one.value)
    interval = f"[{number(one.ci[0])}, {number(one.ci[1])}]" if one.ci else ""
    tested = [f"p {number(one.null['p'])}"] if "p" in one.null else []
    return (
        one.metric,
        about(one),
        value,
        one.unit,
        f"{one.n:,}",
        interval,
        ", ".join([*tested, *(flag for flag in one.flags if flag != UNDER)]),
    )
