"""Firms that set prices or quantities: what each chose, period by period, between competition and the joint optimum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import streamlit as st

from sim.types import RecordedFact
from ui.charts import Series, in_steps, lines
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import Html, clipped, hint, plotted, show, tag
from ui.parts import figure, table

NAME = "Prices"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"benchmark"}),)
READ = 6_000
"""Last facts that periods are read from."""
BENCHMARKS = {"nash": "Nash equilibrium", "optimum": "joint optimum (monopoly)"}
"""What every firm for itself, and what all of them as one would choose; a mean where firms differ."""
SAID = 4
"""Latest notes and messages that are shown."""

Chosen = dict[str, dict[int, float]]
"""By firm and period."""


def draw(now: Moment) -> None:
    """All periods as lines, the last one in numbers, and what firms noted for themselves."""
    facts = list(reversed(now.last(READ, "benchmark", "period", "sale", "forced", "notes", "message", "exit")))
    what = "quantity" if now.run.params.get("demand") == "cournot" else "price"
    chosen = choices(facts, what)
    if not chosen:
        hint("No period is over yet.")
        return
    left, right = st.columns([3, 2])
    with left:
        figure(_drawn(facts, chosen, what), "choices", f"The {what} of every firm by period, with both benchmarks")
    with right:
        last = max(max(each) for each in chosen.values())
        show(tag("h2", f"Period {last}"))
        table([_row(firm, facts, chosen[firm], last, what) for firm in chosen], "firms")
        show(*[_said(now, one) for one in facts if one.fact.kind in ("notes", "message", "exit", "forced")][-SAID:])


def choices(facts: Iterable[RecordedFact], what: str) -> Chosen:
    """What firms chose, as far as it can be seen: by all from what was published, by one from what it sold itself."""
    found: Chosen = {}
    for one in facts:
        data = one.fact.data
        known = data["chosen"] if one.fact.kind == "period" else {}
        known = {one.fact.actor: data[what]} if one.fact.kind == "sale" else known
        for firm, value in known.items():
            found.setdefault(str(firm), {}).setdefault(int(data["period"]), float(value))
    return found


def benchmarks(facts: Iterable[RecordedFact], last: int) -> dict[str, list[tuple[int, float]]]:
    """Each benchmark as the ends of steps (period, value) up to the last period; a new one comes when costs change."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in BENCHMARKS}
    at = 1
    for one in facts:
        if one.fact.kind == "period":
            at = int(one.fact.data["period"]) + 1
        elif one.fact.kind == "benchmark":
            for name, steps in found.items():
                if steps:
                    steps.append((at, steps[-1][1]))
                steps.append((at, fmean(one.fact.data[name]["chosen"])))
    return {name: [*steps, (last, steps[-1][1])] for name, steps in found.items() if steps}


def _drawn(facts: Sequence[RecordedFact], chosen: Chosen, what: str) -> object:
    last = max(max(each) for each in chosen.values())
    series = [
        Series(
            name=plotted(firm, 30),
            x=list(each),
            y=list(each.values()),
            text=[f"{plotted(firm)}, period {at}: {value:.4g}" for at, value in each.items()],
            mode="lines" if len(each) > 40 else "lines+markers",
        )
        for firm, each in chosen.items()
    ]
    series += [
        Series(name=BENCHMARKS[name], x=[at for at, _ in steps], y=[value for _, value in steps],
               mode="lines", dash="dash" if name == "nash" else "dot")
        for name, steps in benchmarks(facts, last).items()
    ]  # fmt: skip
    made = lines(series, "period", what, height=400)
    in_steps(made)
    for one in facts:
        if one.fact.kind == "forced":
            made.add_vline(x=one.fact.data["period"], line={"width": 1, "dash": "dot", "color": "gray"})
    return made


def _row(firm: str, facts: Sequence[RecordedFact], each: dict[int, float], last: int, what: str) -> dict[str, object]:
    """A firm in the last period; sales only where they can be seen."""
    sold = [one.fact.data for one in facts if one.fact.kind == "sale" and one.fact.actor == firm]
    latest = next((one for one in reversed(sold) if one["period"] == last), {})
    row: dict[str, object] = {"firm": firm, what: each.get(last)}
    row |= {key: latest.get(key) for key in ("price", "quantity", "profit") if key != what}
    return row | {"profit so far": sum(float(one["profit"]) for one in sold) if sold else None}


def _said(now: Moment, one: RecordedFact) -> Html:
    data = one.fact.data
    match one.fact.kind:
        case "notes":
            pages = [f"{key}: {value}" for key, value in data.items() if key != "period" and value]
            return bubble(now, one, "\n".join(pages) or "(an empty page)", False, f"· notes of period {data['period']}")
        case "forced":
            words = ", ".join(f"{clipped(firm, 30)} {value:.4g}" for firm, value in data["chosen"].items())
            return notice(now, one, f"forced in period {data['period']}: {words}", "warn")
        case "exit":
            return notice(now, one, f"{clipped(str(data['firm']), 30)} leaves", "bad")
        case _:
            return bubble(now, one, str(data.get("text", "")), False)
