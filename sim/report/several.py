"""Several runs together: how honest each is, what a condition changes, means over seeds, numbers side by side.

Differences of pairs have t-intervals and tests by flipped signs, whose p-values are adjusted together (Benjamini and
Hochberg 1995). Where no luck is shared conditions stand side by side, without a test.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.commands.measured import about
from sim.intervals import HEADLINE
from sim.metrics.differences import Difference
from sim.metrics.luck import Place
from sim.metrics.statistics.multiplicity import adjusted, benjamini_hochberg
from sim.quantities import readable
from sim.report.compare import Condition, conditions, differences, luck, means, partings
from sim.report.gather import Gathered
from sim.report.model import Block, Cell, Note, Plot, Points, Section, Table, num, shown
from sim.report.numbers import HONESTY, VERDICT, families, family, forest, labels, measures, under

ROWS = 300
"""Most measures that are compared."""
DRAWN = 25
"""Most differences in a figure."""
RUNS = 40
"""Most runs side by side."""
LEVEL = 0.05
"""Rate of false discoveries."""


def together(runs: Sequence[Gathered]) -> list[Section]:
    """What is said of several runs: the list of them, how honest each is, comparisons, means, numbers side by side."""
    found = conditions(runs)
    sections = [_honesty(runs), _listed(runs, found)]
    for number, group in enumerate(found, 1):
        for other in group[1:]:
            sections.append(_compared(group[0], other, f"c{number}-{len(sections)}"))
    if len(found) > 1:
        note = Note(
            text="These runs are of different scenarios or worlds: nothing pairs them, so they stand side by side."
        )
        sections.append(Section(anchor="unrelated", title="Side by side", blocks=(note,)))
    for group in found:
        for condition in group:
            sections += _means(condition, f"m{len(sections)}")
    return [*sections, _side_by_side(runs)]


def _listed(runs: Sequence[Gathered], found: Sequence[Sequence[Condition]]) -> Section:
    of = {id(one): condition for group in found for condition in group for one in condition.runs}
    rows: list[tuple[Cell, ...]] = []
    for one in runs:
        facts = dict(one.facts)
        told = (
            facts["seed"],
            facts["models"],
            facts["status"],
            facts["simulated time"],
            facts["decisions"],
            facts["tokens"] if facts.get("model calls") != "0" else "",
        )
        rows.append((one.manifest.id, of[id(one)].name, *told, facts.get("forked from", "")))
    heads = ("run", "condition", "seed", "models", "status", "simulated time", "decisions", "tokens", "forked from")
    blocks: list[Block] = [Table(title="Runs", heads=heads, rows=tuple(rows))]
    changed = [
        (condition.name, num(len(condition.runs)), condition.what or "the scenario of the first run")
        for group in found
        for condition in group
    ]
    if len(changed) > 1:
        what = ("condition", "runs", "what it has otherwise than the first of its scenario")
        blocks.append(Table(title="Conditions", heads=what, rows=tuple(changed)))
    return Section(anchor="runs", title="The runs", blocks=tuple(blocks))


def _honesty(runs: Sequence[Gathered]) -> Section:
    """The verdict on each run, with the rates behind it."""
    known = {one.metric for each in runs for one in each.numbers if one.value is not None and not one.of}
    rates = ("default_rate", "truncation", "integrity", "parse_failure_first", "stale_rate")
    names = [name for name in rates if f"{HONESTY}.{name}" in known]
    rows: list[tuple[Cell, ...]] = []
    for one in runs:
        by_name = {each.metric: each for each in one.numbers if not each.of}
        values = [by_name.get(f"{HONESTY}.{name}") for name in names]
        so = "not fit for claims" if one.part.verdict else "fit for claims" if VERDICT in by_name else "not measured"
        rows.append((one.manifest.id, so, *(num(each.value if each else None) for each in values)))
    heads = ("run", "so", *(name.replace("_", " ") for name in names))
    note = Note(text="Each run's thresholds and all numbers about its honesty stand in its own part below.")
    return Section(
        anchor="honesty",
        title="How honest each run is",
        blocks=(Table(title="Verdicts", heads=heads, rows=tuple(rows)), note),
    )


# --- pairs ---------------------------------------------------------------------------------------------


def _compared(base: Condition, other: Condition, anchor: str) -> Section:
    """A condition beside the first one: in pairs, or without a test where no luck is shared."""
    title = f"{other.name} against {base.name}"
    found, pairs = differences(base, other)
    what = Note(
        text=f"{other.name} differs by:\n{other.what}" if other.what else f"{other.name} has the same scenario."
    )
    if not pairs:
        note = Note(
            text="No run of one shares its seed with a run of the other, so nothing is paired: see the means of each "
            "condition and their intervals below; no test is made.",
            tone="warn",
        )
        return Section(anchor=anchor, title=title, blocks=(what, note))
    found = [one for one in found if one.metric != VERDICT]
    found.sort(key=lambda one: (family(one.metric) == HONESTY, bool(one.of), one.metric, about(one)))
    kept = found[:ROWS]
    blocks: list[Block] = [what, _told(base, other, pairs)]
    drawn = [one for one in kept if not one.of and one.unit and one.estimate.ci and family(one.metric) != HONESTY]
    for unit in dict.fromkeys(one.unit for one in drawn):
        blocks.append(_forest(title, unit, [one for one in drawn if one.unit == unit][:DRAWN]))
    blocks += [*_tables(kept, len(found) - len(kept)), *_parted(base, other, kept)]
    return Section(anchor=anchor, title=title, blocks=tuple(blocks))


def _told(base: Condition, other: Condition, pairs: int) -> Note:
    seeds = {luck(one)[0] for one in base.runs} & {luck(one)[0] for one in other.runs}
    those = "1 pair of runs shares its" if pairs == 1 else f"{pairs} pairs of runs share their"
    text = (
        f"{those} luck. The difference is {other.name} less {base.name}, its interval "
        "Student's over pairs, p by flipping signs; “stands” says that it is below a false discovery rate of 5% among "
        "all measures that are compared here (Benjamini and Hochberg)."
    )
    if len(seeds) == 1 and pairs > 1:
        text += " All pairs are of one seed: they speak of what follows this moment of this run, not of other seeds."
    if pairs < HEADLINE:
        text += f" Fewer than {HEADLINE} pairs are too few for headline numbers."
    if pairs < 6:
        few = f" With {pairs} pair{'s' * (pairs > 1)} no p is below {2 / 2**pairs:.3g}"
        text += few + ("; what differs alike in all has no interval." if pairs > 1 else ".")
    return Note(text=text)


def _tables(kept: Sequence[Difference], left: int) -> list[Table]:
    """Differences about everybody, then, folded, of single agents and the like; all p are adjusted together."""
    stands = benjamini_hochberg([one.p for one in kept], LEVEL)
    q = adjusted([one.p for one in kept])
    rows: tuple[list[tuple[Cell, ...]], list[tuple[Cell, ...]]] = ([], [])
    for one, standing, rate in zip(kept, stands, q, strict=True):
        ci = one.estimate.ci
        interval = f"{shown(ci[0])} to {shown(ci[1])}" if ci else ""
        tested = (interval, num(one.p), num(rate), "stands" if standing else "")
        sides = (one.unit, num(one.base), num(one.treated), num(one.pairs), num(one.reduction))
        rows[bool(one.of)].append((one.metric, about(one), num(one.estimate.value), *tested, *sides))
    differs = ("measure", "of", "difference", "95% interval", "p", "adjusted p", "so")
    heads = (*differs, "unit", "first", "second", "pairs", "luck shared")
    general, single = map(tuple, rows)
    title = "Paired differences about everybody"
    return [
        *([Table(title=title, heads=heads, rows=general)] if general else []),
        *(
            [
                Table(
                    title="Of single agents, periods and the like", heads=heads, rows=single, left_out=left, folded=True
                )
            ]
            if single
            else []
        ),
    ]


def _parted(base: Condition, other: Condition, kept: Sequence[Difference]) -> list[Block]:
    """From where on pairs no longer share their luck, and to how many measures it was of use."""
    known = [one.reduction for one in kept if one.reduction is not None]
    helped = sum(each > 1 for each in known)
    text = (
        "Both runs of a pair have the same luck as long as they ask for the same draws: until one has a turn that the "
        "other has not, or one request gets two answers. That something else happens may be the change alone."
    )
    if known:
        text += f" Shared luck made the differences of {helped} of {len(known)} measures less uncertain."
    rows: list[tuple[Cell, ...]] = []
    for first, second, found in partings(base, other):
        places = (_place(first, place) for place in (found.logs, found.turns, found.answers))
        shared = num(found.both / found.either if found.either else None)
        rows.append((first.manifest.id, second.manifest.id, *places, shared))
    apart = ("something else happens", "a turn of one alone", "two answers to one request")
    heads = ("first", "second", *apart, "turns of both")
    table = Table(
        title="Where shared luck ends", heads=heads, rows=tuple(rows[:RUNS]), left_out=max(0, len(rows) - RUNS)
    )
    return [Note(text=text, tone="warn" if known and not helped else ""), table]


def _place(run: Gathered, place: Place | None) -> str:
    if place is None:
        return "nowhere"
    at = readable(place.tick, run.manifest.tick_ms)
    table = f"table {place.table}" if run.traces.log["tbl"].n_unique() > 1 else ""
    return ", ".join(filter(None, (at, place.agent, table)))


def _forest(title: str, unit: str, some: Sequence[Difference]) -> Plot:
    points = Points(
        name="difference",
        x=tuple(float(one.estimate.value or 0) for one in some),
        y=(),
        low=tuple(one.estimate.ci[0] if one.estimate.ci else None for one in some),
        high=tuple(one.estimate.ci[1] if one.estimate.ci else None for one in some),
        mode="markers",
    )
    return Plot(
        kind="intervals",
        title=f"Differences of {title}: {unit}",
        caption="Bars are 95% intervals over pairs. The dotted line is no difference.",
        x=f"difference ({unit})",
        y="measure",
        series=(points,),
        labels=labels(one.metric.replace("_", " ") for one in some),
        marks=(1.0,) if unit == "times" else (0.0,),
    )


# --- means ---------------------------------------------------------------------------------------------


def _means(condition: Condition, anchor: str) -> list[Section]:
    count = len(condition.runs)
    if count < 2:
        return []
    seeds = len({one.manifest.seed for one in condition.runs})
    name = f"{count} runs of {condition.name}"
    blocks: list[Block] = [
        Note(
            text=f"Means over {count} runs with {seeds} seed{'s' * (seeds > 1)}; a seed is one observation, and "
            "intervals come from the spread between seeds."
            + ("" if seeds > 1 else " One seed says nothing of that spread: no intervals."),
        )
    ]
    every = means(condition)
    blocks += under(every)
    for family_name, found in families(every).items():
        made = measures(family_name, found, name)
        blocks += [*forest(made, name), made]
    return [Section(anchor=anchor, title=f"Means over {name}", blocks=tuple(blocks))]


def _side_by_side(runs: Sequence[Gathered]) -> Section:
    """Numbers about everybody, run by run."""
    some = runs[:RUNS]
    by_run = [{one.metric: one for one in each.numbers if not one.of} for each in some]
    names = sorted({name for each in by_run for name in each}, key=lambda name: (family(name) == HONESTY, name))
    rows: list[tuple[Cell, ...]] = []
    for name in names[:ROWS]:
        unit = next(each[name].unit for each in by_run if name in each)
        rows.append((name, unit, *(num(each[name].value) if name in each else "" for each in by_run)))
    heads = ("measure", "unit", *(one.manifest.id for one in some))
    table = Table(title="Numbers about everybody", heads=heads, rows=tuple(rows), left_out=max(0, len(names) - ROWS))
    notes = () if len(some) == len(runs) else (Note(text=f"The first {RUNS} of {len(runs)} runs."),)
    return Section(anchor="side-by-side", title="Runs side by side", blocks=(*notes, table))
