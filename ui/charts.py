"""Figures: pure functions from numbers to Plotly figures. Labels of others come in escaped, see `ui.markup.plotted`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999933", "#7F7F7F")
"""Told apart without seeing red and green, on white and on black (after Okabe and Ito 2008)."""
MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star", "hexagon")
"""A second way to tell series apart."""
SCALE = "Cividis"
"""Of heat maps."""
ENDS = ((0.0, PALETTE[0]), (0.5, "#C8C8C8"), (1.0, PALETTE[1]))
"""From one end to the other, of what has a middle."""
FONT = 13
INK = {"light": "#4b4e58", "dark": "#c5c8d1"}
"""Of what is written in a figure, by the page's theme: at least 7 to 1 against its ground."""
_NUMBERS = {"exponentformat": "power", "minexponent": 5}
"""Powers of ten in place of letters such as p for 10⁻¹²."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line or cloud of points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    text: Sequence[str] = ()
    """What the pointer shows of each point."""
    mode: str = "lines+markers"
    """Plotly's word for what is drawn."""
    faint: bool = False
    """In the background."""
    dash: str = "solid"
    """Plotly's word for how the line is broken."""
    tint: int | None = None
    """Place of its colour and mark; None: its own place among the series."""


def library() -> str:
    """Plotly's own script, for a page that may not ask a network for it."""
    return str(get_plotlyjs())


def colour(place: int) -> str:
    """The n-th colour, from the start again after the last."""
    return PALETTE[place % len(PALETTE)]


def framed(figure: go.Figure, x: str, y: str, height: int = 340) -> go.Figure:
    """The same figure with axis titles and margins as all others have."""
    figure.update_layout(
        height=height,
        margin={"l": 60, "r": 20, "t": 30, "b": 50},
        font={"size": FONT},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hoverlabel={"namelength": -1},
    )
    figure.update_xaxes(title=x, automargin=True, zeroline=False, **_NUMBERS)
    figure.update_yaxes(title=y, automargin=True, zeroline=False, **_NUMBERS)
    return figure


def in_steps(figure: go.Figure) -> go.Figure:
    """The same figure, whose horizontal axis counts something: whole numbers, each of them where they are few."""
    at = [x for one in figure.data for x in one.x or () if isinstance(x, int | float)]
    few = not at or max(at) - min(at) < 10
    return figure.update_xaxes(tickformat="d", dtick=1 if few else None)


def inked(figure: go.Figure, theme: str | None) -> go.Figure:
    """A copy whose writing stands out from the page's ground; as it was where the theme is not known."""
    if theme not in INK:
        return figure
    copy, ink = go.Figure(figure), INK[theme]
    copy.update_layout(font_color=ink, legend_font_color=ink)
    for axes in (copy.update_xaxes, copy.update_yaxes):
        axes(tickfont_color=ink, title_font_color=ink)
    bars = {"colorbar_tickfont_color": ink, "colorbar_title_font_color": ink}
    copy.update_traces(**bars, selector={"type": "heatmap"})
    copy.update_traces(marker_colorbar_tickfont_color=ink, selector={"type": "scatter", "marker.showscale": True})
    return copy


def lines(series: Iterable[Series], x: str, y: str, height: int = 340) -> go.Figure:
    """Series over a common axis."""
    figure, series = go.Figure(), list(series)
    for at, one in enumerate(series):
        place = at if one.tint is None else one.tint
        above = sum("markers" in other.mode and not other.faint for other in series[at + 1 :])
        size = 8 + 3 * min(2, above)  # where series coincide, those below look out
        figure.add_scatter(
            x=list(one.x),
            y=list(one.y),
            name=one.name,
            mode=one.mode,
            text=list(one.text) or None,
            hovertemplate="%{text}<extra></extra>" if one.text else None,
            opacity=0.9 if one.faint else 1,
            line={"color": colour(place), "width": 2, "dash": one.dash},
            marker={"symbol": MARKS[place % len(MARKS)], "size": 6 if one.faint else size, "color": colour(place)},
        )
    return framed(figure, x, y, height)


def intervals(rows: Sequence[tuple[str, float, float | None, float | None]], unit: str) -> go.Figure:
    """Values with their intervals, one row each: label, value, low, high."""
    ends = [
        (0.0 if low is None else value - low, 0.0 if high is None else high - value) for _, value, low, high in rows
    ]
    figure = go.Figure(
        go.Scatter(
            x=[value for _, value, _, _ in rows],
            y=[label for label, *_ in rows],
            mode="markers",
            marker={"size": 9, "color": PALETTE[0]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high for _, high in ends],
                "arrayminus": [low for low, _ in ends],
                "color": PALETTE[0],
            },
            hovertemplate="%{y}: %{x:.4g}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed", type="category")
    return framed(figure, unit or "value", "", height=110 + 26 * len(rows))


def heat(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]], unit: str, y: str, x: str
) -> go.Figure:
    """A matrix of numbers, each written into its cell where there is room."""
    written = [["" if value is None else f"{value:.2f}" for value in row] for row in values]
    figure = go.Figure(
        go.Heatmap(
            z=[[math.nan if value is None else value for value in row] for row in values],
            x=list(columns),
            y=list(rows),
            text=written,
            texttemplate="%{text}" if len(columns) <= 14 else None,
            colorscale=SCALE,
            colorbar={"title": unit},
            hovertemplate="%{y}, %{x}: %{z:.3g}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    return framed(figure, x, y, height=150 + 30 * len(rows))


def stacked(counts: Iterable[tuple[str, float, float]], x: str, y: str, label: Mapping[str, str]) -> go.Figure:
    """Counts over bins by kind, one bar on the other: kind, bin, count."""
    figure = go.Figure()
    kinds: dict[str, list[tuple[float, float]]] = {}
    for kind, at, count in counts:
        kinds.setdefault(kind, []).append((at, count))
    for place, (kind, bars) in enumerate(sorted(kinds.items(), key=lambda item: -sum(n for _, n in item[1]))):
        figure.add_bar(x=[at for at, _ in bars], y=[n for _, n in bars], name=label[kind], marker_color=colour(place))
    figure.update_layout(barmode="stack")
    return framed(figure, x, y)


def strip(at: Sequence[float], words: Sequence[str], x: str) -> go.Figure:
    """A state by name over time, which holds from each moment to the next."""
    figure = go.Figure(
        go.Scatter(
            x=list(at),
            y=list(words),
            mode="lines+markers",
            line={"shape": "hv", "width": 1.5, "color": PALETTE[0]},
            marker={"symbol": "square", "size": 8, "color": PALETTE[0]},
            hovertemplate="%{y}<extra></extra>",
        )
    )
    order = sorted({*words}, reverse=True)
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=order)
    return framed(figure, x, "", height=110 + 24 * len(order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A point of a network."""

    name: str
    text: str
    """What the pointer shows."""
    lit: bool = False
    """Set apart."""
    weight: float = 1.0
    """How large."""
    shade: float | None = None
    """From −1 to 1, as a colour between two ends, where all nodes have one."""


def network(nodes: Sequence[Node], edges: Mapping[tuple[int, int], float], shade: str = "") -> go.Figure:
    """Nodes on a circle in their order; edges by place, wider and darker the more they carry; `shade`: what that is."""
    angle = [math.pi / 2 - 2 * math.pi * place / max(1, len(nodes)) for place in range(len(nodes))]
    at = [(math.cos(one), math.sin(one)) for one in angle]
    figure = go.Figure()
    most = max(edges.values(), default=1)
    for (start, end), weight in sorted(edges.items(), key=lambda item: item[1]):
        share = weight / most
        figure.add_scatter(
            x=[at[start][0], at[end][0]],
            y=[at[start][1], at[end][1]],
            mode="lines",
            line={"width": 0.6 + 4 * share, "color": f"rgba(127,127,127,{0.15 + 0.6 * share:.2f})"},
            hoverinfo="skip",
        )
    top = max((node.weight for node in nodes), default=1) or 1
    figure.add_scatter(
        x=[x for x, _ in at],
        y=[y for _, y in at],
        mode="markers+text" if len(nodes) <= 40 else "markers",
        text=[node.name for node in nodes],
        textposition=["top center" if y >= 0 else "bottom center" for _, y in at],
        hovertext=[node.text for node in nodes],
        hoverinfo="text",
        marker={
            "size": [12 + 16 * math.sqrt(node.weight / top) for node in nodes],
            **_coloured(nodes, shade),
            "symbol": ["star" if node.lit else "circle" for node in nodes],
            "opacity": 1,
            "line": {"width": 1, "color": "rgba(127,127,127,0.8)"},
        },
    )
    framed(figure, "", "", height=520)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(visible=False, range=[-1.3, 1.3])
    figure.update_yaxes(visible=False, range=[-1.25, 1.25])
    return figure


def _coloured(nodes: Sequence[Node], shade: str) -> dict[str, object]:
    """Colours of nodes: by their shade where all have one, else by whether they are lit."""
    shades = [node.shade for node in nodes if node.shade is not None]
    if not nodes or len(shades) < len(nodes):
        return {"color": [PALETTE[1] if node.lit else PALETTE[0] for node in nodes]}
    scale = [list(step) for step in ENDS]
    bar = {"showscale": True, "colorbar": {"title": shade}}
    return {"color": shades, "colorscale": scale, "cmin": -1, "cmax": 1, **bar}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened, in the lane of who did it."""

    lane: str
    at: float
    text: str
    decision: bool
    """A decision; otherwise a fact."""
    start: bool = False
    """What everything else is asked about."""


def lanes(steps: Sequence[Step], arrows: Iterable[tuple[int, int]], x: str) -> go.Figure:
    """Steps by time in lanes, and arrows between them by place."""
    order = list(dict.fromkeys(step.lane for step in steps))
    figure = go.Figure()
    for start, end in arrows:
        figure.add_annotation(
            x=steps[end].at, y=steps[end].lane, ax=steps[start].at, ay=steps[start].lane,
            xref="x", yref="y", axref="x", ayref="y", showarrow=True, arrowhead=2, arrowwidth=1.3,
            arrowcolor="rgba(127,127,127,0.7)", standoff=7, startstandoff=6, text="",
        )  # fmt: skip
    for decision, name, symbol, place in ((False, "fact", "circle-open", 5), (True, "decision", "diamond", 1)):
        some = [step for step in steps if step.decision == decision]
        figure.add_scatter(
            x=[step.at for step in some],
            y=[step.lane for step in some],
            mode="markers",
            name=name,
            hovertext=[step.text for step in some],
            hoverinfo="text",
            marker={
                "symbol": symbol,
                "size": [18 if step.start or not decision else 10 for step in some],
                "color": colour(place),
                "opacity": 1,
                "line": {"width": 0 if decision else 2.5},
            },
        )
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=list(reversed(order)))
    return framed(figure, x, "", height=160 + 38 * len(order))
