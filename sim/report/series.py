"""What happened over time, as figures: facts of known shapes, whichever world they come from.

A figure needs kinds of facts with the fields that it reads; a world whose facts have another shape has the last figure
only, which every world has. Long series are thinned, and say so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import accumulate
from statistics import fmean
from typing import TypeAlias

from msgspec.structs import replace

from sim.record.browse import Filter
from sim.record.survey import Survey
from sim.report.course import POINTS, READ, SERIES, Course, left, means, thinned
from sim.report.model import Plot, Points
from sim.types import RecordedFact

BINS = 60
"""Places of a time line."""
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What comes of facts that have another shape."""


def plots(run: Survey, tables: int, tick_ms: float) -> list[Plot]:
    """All figures that a run's facts are enough for."""
    kinds = set(run.kinds_of_all())
    course = Course(run, tables, tick_ms)
    made: list[Plot] = []
    for needed, draw in DRAWN:
        if needed <= kinds:
            try:
                made += [plot for plot in draw(course) if any(one.x for one in plot.series)]
            except WRONG:
                logging.getLogger(__name__).debug("%s cannot be drawn of %s", draw.__name__, run.path, exc_info=True)
    return [*made, *_kinds(course)]


# --- markets -------------------------------------------------------------------------------------------


def _trades(course: Course) -> Iterator[Plot]:
    """Prices of a market's orders and trades, good by good."""
    trades = course.facts("trade", 0)
    periods = tuple(course.time(one.tick) for one in course.facts("period", 0, POINTS))
    for good in list(dict.fromkeys(str(one.fact.data.get("good", "")) for one in trades))[:3]:
        series = []
        for kind, faint in (("bid", True), ("ask", True), ("trade", False)):
            some = [one for one in course.facts(kind, 0) if str(one.fact.data.get("good", "")) == good]
            prices = [float(one.fact.data["price"]) for one in some]
            mode = "markers" if faint else "lines+markers"
            series.append(thinned(f"{kind}s", [course.time(one.tick) for one in some], prices, mode=mode, faint=faint))
        yield Plot(
            kind="lines",
            title=f"Prices of {good}" if good else "Prices",
            caption="What was bid and asked, and what was paid; dotted lines are the starts of periods." + course.first,
            x=course.axis,
            y="price (money)",
            series=tuple(series),
            marks=periods,
        )


def _chosen(course: Course) -> Iterator[Plot]:
    """What firms chose period by period, beside the static equilibrium and the joint optimum."""
    found = course.facts("period", 0)
    rows = [
        (firm, float(one.fact.data["period"]), float(value))
        for one in found
        for firm, value in one.fact.data["chosen"].items()
    ]
    series = means(rows)
    last = max((x for _, x, _ in rows), default=1)
    unit = "price (money)"
    for one in course.facts("benchmark", 0, 1):
        if one.fact.data["nash"]["chosen"] == one.fact.data["nash"]["quantities"]:
            unit = "quantity (units)"
        for key, name in (("nash", "static equilibrium (mean)"), ("optimum", "joint optimum (mean)")):
            if key in one.fact.data:
                level = fmean(one.fact.data[key]["chosen"])
                series.append(Points(name=name, x=(1.0, last), y=(level, level), mode="lines", faint=True))
    yield Plot(
        kind="lines",
        title="Choices of the firms",
        caption="What each firm chose, beside what theory says of one period alone." + course.first,
        x="period",
        y=unit,
        series=tuple(series),
    )


# --- negotiation, games --------------------------------------------------------------------------------


def _offers(course: Course) -> Iterator[Plot]:
    """What the first of each pair would keep by each offer."""
    pairs: dict[int, list[RecordedFact]] = {}
    for one in sorted(
        (*course.facts("pair", 0), *course.facts("offer", 0), *course.facts("deal", 0)), key=lambda one: one.seq
    ):
        pairs.setdefault(int(one.fact.data["pair"]), []).append(one)
    series = []
    for number, facts in sorted(pairs.items())[:SERIES]:
        agents: list[str] = next((one.fact.data["agents"] for one in facts if "agents" in one.fact.data), [])
        offers = [one for one in facts if one.fact.kind == "offer"]
        first = str(agents[0]) if agents else offers[0].fact.actor
        kept = [one.fact.data["gain" if one.fact.actor == first else "rest"] for one in offers]
        ended = any(one.fact.kind == "deal" for one in facts)
        name = f"{' and '.join(map(str, agents))} ({'deal' if ended else 'no deal'})" if agents else f"pair {number}"
        series.append(thinned(name, [one.fact.data["round"] for one in offers], kept))
    yield Plot(
        kind="lines",
        title="Offers",
        caption="What the first of each pair keeps by each offer; the last offer of a pair with a deal is the deal."
        + left(len(pairs)) + course.first,
        x="round",
        y="units of the pie for the first of a pair",
        series=tuple(series),
    )  # fmt: skip


def _moves(course: Course) -> Iterator[Plot]:
    """How often each action was played in each round, and what it paid."""
    rounds = course.facts("round")
    plays = [(int(one.fact.data["round"]), str(move)) for one in rounds for move in one.fact.data["moves"].values()]
    names = list(dict.fromkeys(move for _, move in plays))
    shares = means((name, float(at), float(move == name)) for name in names[:SERIES] for at, move in plays)
    yield Plot(
        kind="lines",
        title="Actions over rounds",
        caption="Share of all plays of a round, over all matches." + left(len(names)) + course.every,
        x="round",
        y="share of plays",
        series=tuple(shares),
    )
    paid = [
        (str(who), float(one.fact.data["round"]), float(got))
        for one in rounds
        for who, got in one.fact.data["payoffs"].items()
    ]
    players = list(dict.fromkeys(who for who, _, _ in paid))
    yield Plot(
        kind="lines",
        title="Payoffs so far",
        caption="Mean payoff of a player over the rounds so far, in all of its matches."
        + left(len(players))
        + course.every,
        x="round",
        y="mean payoff so far (points)",
        series=tuple(map(_so_far, means(paid))),
    )


def _so_far(one: Points) -> Points:
    sums = accumulate(one.y)
    return replace(one, y=tuple(total / count for count, total in enumerate(sums, 1)))


def _results(course: Course) -> Iterator[Plot]:
    """Sums of what players got, hand by hand."""
    found = course.run.next_facts(0, -1, READ, Filter(kinds=("result",)))
    got: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        data = one.fact.data
        got.setdefault(str(data["agent"]), []).append((float(data["hand"]), float(data["got"])))
    series = [
        thinned(agent, [hand for hand, _ in hands], list(accumulate(more for _, more in hands)), mode="lines")
        for agent, hands in list(got.items())[:SERIES]
    ]
    cut = f" The first {READ:,} results." if len(found) == READ else ""
    yield Plot(
        kind="lines",
        title="Returns hand by hand",
        caption="Sum of returns of each player." + left(len(got)) + cut + course.first,
        x="hand",
        y="sum of returns (points)",
        series=tuple(series),
    )


# --- conversations -------------------------------------------------------------------------------------


def _verdicts(course: Course) -> Iterator[Plot]:
    """How often work is passed and how often it breaks the rules, episode by episode."""
    rows = []
    for one in course.facts("outcome"):
        data = one.fact.data
        at = float(data["episode"])
        rows += [("accepted", at, float(verdict == "accept")) for verdict in data["verdicts"].values()]
        rows += [("violations", at, float(bool(wrong))) for wrong in data.get("violations", {}).values()]
        rows += [("correct", at, float(bool(right))) for right in data.get("correct", {}).values()]
    yield Plot(
        kind="lines",
        title="Verdicts over episodes",
        caption="Shares of all workers of an episode, over all pairs." + course.every,
        x="episode",
        y="share",
        series=tuple(means(rows)),
    )


def _leaks(course: Course) -> Iterator[Plot]:
    """In what share of the conversations so far something was told, and leaked."""
    found = sorted(course.facts("outcome"), key=lambda one: (one.tick, one.table, one.seq))
    x = [course.time(one.tick) for one in found]
    series = []
    for name, key in (("something was told", "told"), ("something leaked", "leaked")):
        sums = accumulate(float(bool(one.fact.data[key])) for one in found)
        series.append(thinned(name, x, [total / number for number, total in enumerate(sums, 1)], mode="lines"))
    yield Plot(
        kind="lines",
        title="Conversations in which something was told",
        caption="Share of the conversations that have ended so far." + course.every,
        x=course.axis,
        y="share so far",
        series=tuple(series),
    )


# --- opinions ------------------------------------------------------------------------------------------


def _opinions(course: Course) -> Iterator[Plot]:
    """What agents thought, round by round, of a few of them from all over the cast."""
    said = course.facts("opinion", 0)
    agents = list(dict.fromkeys(one.fact.actor for one in said))
    some = agents[:: -(-len(agents) // SERIES) or 1]
    rows = [(one.fact.actor, float(one.fact.data["round"]), float(one.fact.data["opinion"])) for one in said]
    cut = f" {len(some)} of {len(agents)} agents." if len(some) < len(agents) else ""
    yield Plot(
        kind="lines",
        title="Opinions",
        caption="From −1 to 1, the mean of a round where an agent was asked more than once." + cut + course.first,
        x="round",
        y="opinion (−1 to 1)",
        series=tuple(means(row for row in rows if row[0] in some)),
    )


def _answered(course: Course) -> Iterator[Plot]:
    """How often answers are right, and against the own signal, by their place in the order."""
    rows = []
    for one in course.facts("stated"):
        data = one.fact.data
        rows.append(("right", float(data["position"]), float(data["outcome"])))
        if data["signal"] is not None:
            rows.append(("against the own signal", float(data["position"]), float(data["choice"] != data["signal"])))
    yield Plot(
        kind="lines",
        title="Answers by their place in the order",
        caption="Shares of all answers at a place; those of confederates are left out." + course.every,
        x="place in the order",
        y="share of answers",
        series=tuple(means(rows)),
    )


# --- any world -----------------------------------------------------------------------------------------


def _kinds(course: Course) -> Iterator[Plot]:
    """How many facts of each kind there are so far, over time."""
    at: dict[str, list[tuple[float, int]]] = {}
    last, end_tick = course.run.end(0)
    for kind, tick, count in course.run.over_time(0, last, BINS):
        at.setdefault(kind, []).append((course.time(tick), count))
    end, bin_width = course.time(end_tick), course.time(end_tick + 1) / BINS
    most = sorted(at, key=lambda kind: -sum(count for _, count in at[kind]))
    series = []
    for kind in most[:SERIES]:
        x, y = [0.0], [0.0]
        for moment, count in at[kind]:
            if moment - x[-1] > 2 * bin_width:  # nothing happens in between: the line is level there
                x.append(moment - bin_width)
                y.append(y[-1])
            x.append(moment)
            y.append(y[-1] + count)
        series.append(thinned(kind, [*x, end], [*y, y[-1]], mode="lines"))
    if series:
        yield Plot(
            kind="lines",
            title="Facts over time",
            caption="What happened so far, by kind." + left(len(most)) + course.first,
            x=course.axis,
            y="facts so far",
            series=tuple(series),
        )


Drawing: TypeAlias = Callable[[Course], Iterator[Plot]]
DRAWN: tuple[tuple[frozenset[str], Drawing], ...] = (
    (frozenset({"trade", "bid", "ask"}), _trades),
    (frozenset({"period", "benchmark"}), _chosen),
    (frozenset({"offer", "pair"}), _offers),
    (frozenset({"round", "match"}), _moves),
    (frozenset({"hand", "result"}), _results),
    (frozenset({"outcome", "verdict"}), _verdicts),
    (frozenset({"outcome", "ask", "answer"}), _leaks),
    (frozenset({"graph", "opinion"}), _opinions),
    (frozenset({"question", "stated"}), _answered),
)
"""Kinds of facts, and what is drawn of a run that has all of them."""
