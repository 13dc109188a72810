"""Measurements as a report has them: by family, in words, drawn with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from sim.commands.measured import about, kind, listed
from sim.commands.terminal import short
from sim.intervals import BOUNDS, FEW, TOO_FEW, UNDER
from sim.metrics.honesty import THRESHOLDS, UNFIT
from sim.report.model import Block, Cell, Line, Measures, Note, Plot, Points, Section, Table, num, shown
from sim.types import JSON, Measurement

HONESTY = "honesty"
VERDICT = f"{HONESTY}.fit_for_claims"
ROWS = 300
"""Most measurements of one metric."""
ASIDE = 12
"""Rows that are not folded of a metric with no overall row: of periods, goods and the like."""
DRAWN = 30
"""Most rows of a figure of intervals."""
UNITS = {"share": "shares", "ratio": "ratios"}
"""Of several numbers."""
SMALL = 0.0001
"""A smaller p is only said to be smaller."""
NO_INTERVAL = "one cluster: no interval"
"""Said of a number whose flag is `FEW`."""
ONE_CLUSTER = "one cluster: the interval is of the spread within it"
"""Said where it has one by what there is within a cluster."""
LABEL = 54
"""Characters of a row's label in a figure."""


def family(metric: str) -> str:
    """What a metric is about, by the first part of its name; a failed one's name is a dotted path."""
    first, dot, _ = metric.partition(".")
    return "failed" if ":" in metric else first if dot else "general"


def verdict(found: Iterable[Measurement]) -> tuple[str, ...]:
    """Why a run is not fit for claims; nothing where it is, or where nobody has measured that."""
    return next((one.flags for one in found if one.metric == VERDICT and one.value == 0), ())


def anchor(metric: str) -> str:
    """Of what a metric is."""
    return f"m-{_slug(metric)}"


def _slug(name: str) -> str:
    return "".join(mark if mark.isascii() and mark.isalnum() else "-" for mark in name)


def line(one: Measurement, run: str) -> Line:
    """One measurement in words."""
    low, high = one.ci or (None, None)
    return Line(
        run=run,
        metric=one.metric,
        about=about(one),
        of=one.of,
        value=one.value,
        shown=shown(one.value),
        unit=one.unit,
        n=one.n,
        n_clusters=one.n_clusters,
        low=low,
        high=high,
        interval=f"{shown(low)} to {shown(high)}" if one.ci else "",
        ci_method=one.ci_method if one.ci else "",
        denominator=one.denominator,
        flags=one.flags,
        excluded=one.excluded,
        null=one.null,
        judge=one.judge,
        version=one.version,
        notes=_notes(one),
        cited=len(one.events) + len(one.decisions),
        anchor=anchor(one.metric),
    )


def _notes(one: Measurement) -> str:
    untold = {UNDER} if one.value is not None else {UNDER, FEW}
    alone = ONE_CLUSTER if one.ci else NO_INTERVAL
    parts = [alone if flag == FEW else flag for flag in one.flags if flag not in untold]
    parts += [f"left out: {count:,} {reason}" for reason, count in one.excluded.items()]
    if one.value is None and not parts:
        parts.append(_missing(one))
    if one.null:
        parts.append(f"test of no effect: {_tested(one.null)}")
    if one.judge:
        parts.append("judge: " + ", ".join(f"{key} {short(value)}" for key, value in one.judge.items()))
    return "; ".join(parts)


def _missing(one: Measurement) -> str:
    """Why there is no value, where the metric has no other reason."""
    if not one.n:
        return f"none there: {one.denominator}" if one.denominator else "nothing to measure it on"
    return f"undefined: {one.denominator} is 0 or unknown" if one.denominator else "undefined for these numbers"


def _tested(null: Mapping[str, JSON]) -> str:
    """A test in words: p, or whatever else is known under the null, and how it was made."""
    said = {key: value for key, value in null.items() if key not in ("stat", "p", "mean", "method", "n_perm")}
    p, mean, count = (null.get(key) for key in ("p", "mean", "n_perm"))
    parts = [] if not isinstance(p, int | float) else [f"p < {SMALL:.4f}" if p < SMALL else f"p {shown(p)}"]
    if isinstance(mean, int | float):
        parts.append(f"by chance {shown(round(mean, 4))}")
    parts += [f"{key} {short(value)}" for key, value in said.items()]
    how = [str(null["method"])] if null.get("method") else []
    how += [f"{count} draws"] if count else []
    return ", ".join(parts) + (f" ({', '.join(how)})" if how else "")


def families(found: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Measurements by family, honesty first, the others by name."""
    names = sorted({family(one.metric) for one in found}, key=lambda name: (name != HONESTY, name))
    return {name: [one for one in found if family(one.metric) == name] for name in names}


def measures(title: str, found: Sequence[Measurement], run: str) -> Measures:
    """One family: what is general stands open, the rest is folded, and what is too much is counted."""
    every = sorted(listed(found, everything=True)[0], key=lambda one: one.metric != VERDICT)
    kept = [one for _, group in groupby(every, key=lambda one: one.metric) for one in list(group)[:ROWS]]
    general = listed(kept, aside=ASIDE)[0]
    there = {id(one) for one in general}
    many = {(one.metric, kind(one)) for one in kept if id(one) not in there}  # these go together
    first = {id(one) for one in general if (one.metric, kind(one)) not in many}
    return Measures(
        title=title,
        lines=tuple(line(one, run) for one in kept if id(one) in first),
        more=tuple(line(one, run) for one in kept if id(one) not in first),
        left_out=len(every) - len(kept),
    )


def family_section(name: str, found: Sequence[Measurement], run: str, prefix: str) -> Section:
    """A family's figures and numbers."""
    made = measures(name, found, run)
    blocks: list[Block] = [*forest(made, run), *under(found), made]
    return Section(anchor=f"{prefix}-f-{_slug(name)}", title=f"Measures: {name}", blocks=tuple(blocks))


def under(found: Iterable[Measurement]) -> list[Note]:
    """What is said once of numbers that rest on too few runs."""
    rest = any(UNDER in one.flags for one in found)
    return [Note(text=TOO_FEW, tone="warn")] if rest else []


def forest(made: Measures, run: str) -> list[Plot]:
    """Values with their intervals, one figure a unit: shares, and whatever else has a unit and intervals."""
    drawn = []
    known = [one for one in made.lines if one.value is not None]
    general = [one for one in known if "agent" not in one.of]
    known = general if len(general) > 1 else known
    for unit in dict.fromkeys(one.unit for one in known):
        rows = [one for one in known if one.unit == unit]
        if len(rows) > 1 and unit and (unit == "share" or any(one.low is not None for one in rows)):
            drawn.append(_intervals(made.title, unit, rows, run))
    return drawn


def _intervals(title: str, unit: str, rows: Sequence[Line], run: str) -> Plot:
    some = rows[:DRAWN]
    bare = [one for one in some if one.low is None or one.ci_method == BOUNDS]
    points = Points(
        name=title,
        x=tuple(float(one.value or 0) for one in some),
        y=(),
        low=tuple(None if one in bare else one.low for one in some),
        high=tuple(None if one in bare else one.high for one in some),
        mode="markers",
    )
    caption = "Bars are 95% intervals; their method stands in the table." if len(bare) < len(some) else ""
    if bare:
        single = all(one.n_clusters < 2 for one in bare)
        caption += f" {len(bare)} of {len(some)} have no interval"
        caption += ": a single run or table says nothing of the spread between." if single else "."
    if len(rows) > DRAWN:
        caption += f" The first {DRAWN} of {len(rows)}; the table has all."
    return Plot(
        kind="intervals",
        title=f"{title.capitalize()} in {run}: {UNITS.get(unit, unit) or 'values'}"
        + (" with 95% intervals" if len(bare) < len(some) else ""),
        caption=caption.strip(),
        x=unit or "value",
        y="measure",
        series=(points,),
        labels=labels([_label(one) for one in some]),
    )


def _label(one: Line) -> str:
    name = one.metric.partition(".")[2] or one.metric
    return f"{name.replace('_', ' ')}, {one.about}" if one.about else name.replace("_", " ")


def labels(names: Iterable[str]) -> tuple[str, ...]:
    """Names of a figure's rows: short, and no two alike, for a figure would draw these in one row."""
    seen: Counter[str] = Counter()
    made = []
    for name in names:
        cut = name if len(name) <= LABEL else f"{name[: LABEL - 1]}…"
        seen[cut] += 1
        made.append(cut if seen[cut] == 1 else f"{cut} ({seen[cut]})")
    return tuple(made)


# --- honesty -------------------------------------------------------------------------------------------


def honesty_section(found: Sequence[Measurement], run: str, prefix: str) -> Section:
    """Whether a run is fit for claims, against which thresholds, then every number about its honesty."""
    own = [one for one in found if family(one.metric) == HONESTY]
    made = measures(HONESTY, own, run)
    blocks: list[Block] = [_said_first(own), thresholds(own)]
    return Section(
        anchor=f"{prefix}-honesty",
        title="How honest the run is",
        blocks=(*blocks, *forest(made, run), made) if own else tuple(blocks[:1]),
    )


def _said_first(own: Sequence[Measurement]) -> Note:
    if not own:
        return Note(text="How honest this run is has not been measured.", tone="warn")
    if reasons := verdict(own):
        return Note(text="; ".join(reasons), tone="bad")
    return Note(text="Within all thresholds: nothing here speaks against claims from this run.")


def thresholds(own: Sequence[Measurement]) -> Table:
    """What was found beside the thresholds above which a run says nothing about its models."""
    agents = [one for one in own if one.metric == f"{HONESTY}.default_rate" and "agent" in one.of]
    worst = max(agents, key=lambda one: one.value or 0, default=None)
    rows = [
        _limit("decisions that were not the model's", _overall(own, "default_rate"), THRESHOLDS.default),
        _limit("the same of the worst agent", worst, THRESHOLDS.agent),
        _limit("model calls cut off at their length limit", _overall(own, "truncation"), THRESHOLDS.truncation),
        _limit("faults of the record itself", _overall(own, "integrity"), 0.0),
    ]
    return Table(title="Thresholds", heads=("what", "found", "at most", "of", "so"), rows=tuple(rows))


def _overall(own: Sequence[Measurement], name: str) -> Measurement | None:
    return next((one for one in own if one.metric == f"{HONESTY}.{name}" and not one.of), None)


def _limit(what: str, one: Measurement | None, most: float) -> tuple[Cell, ...]:
    if one is None or one.value is None:
        return what, num(None), num(most), "", "no model was asked"
    so = UNFIT if one.value > most else "within"
    return what, num(one.value), num(most), about(one) or f"{one.n:,}", so


def headline(found: Sequence[Measurement]) -> Table | None:
    """What was measured about everybody, but for honesty."""
    rows = [
        (
            one.metric,
            num(one.value),
            one.unit,
            num(one.n),
            f"{shown(one.ci[0])} to {shown(one.ci[1])}" if one.ci else "",
            _notes(one) if one.value is None else "",
        )
        for one in listed(found, everything=True)[0]
        if not one.of and family(one.metric) != HONESTY
    ]
    heads = ("measure", "value", "unit", "n", "95% interval", "why none")
    return Table(title="Numbers about everybody", heads=heads, rows=tuple(rows)) if rows else None
