"""Figures of a report as Plotly's JSON, drawn by the same functions as the page's."""

from __future__ import annotations

from typing import Any

from sim.report.model import Plot
from ui.charts import Series, in_steps, intervals, lines
from ui.markup import plotted

MARK = {"width": 1, "dash": "dot", "color": "rgba(127,127,127,0.9)"}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LEAST = 0.1
"""Of the axis of shares."""


def drawn(plot: Plot) -> str:
    """A figure as JSON that cannot end the element it stands in."""
    figure: Any = _intervals(plot) if plot.kind == "intervals" else _lines(plot)
    for x in plot.marks:
        figure.add_vline(x=x, line=MARK)
    figure.update_layout(template="none", autosize=True, width=None)
    return str(figure.to_json()).replace("<", "\\u003c")


def _intervals(plot: Plot) -> Any:
    (one,) = plot.series
    nothing = (None,) * len(one.x)
    rows = zip(plot.labels, one.x, one.low or nothing, one.high or nothing, strict=True)
    figure = intervals([(plotted(label), value, low, high) for label, value, low, high in rows], plotted(plot.x))
    ends = [end for end in (*one.x, *one.low, *one.high) if end is not None]
    if plot.x == "share" and min(ends) >= 0:  # from 0 on, whatever the values, and never so near that noise looks large
        top = max(*ends, LEAST)
        figure.update_xaxes(range=[-0.02 * top, 1.03 * top])
    return figure


def _lines(plot: Plot) -> Any:
    series = [
        Series(name=plotted(one.name, 60), x=one.x, y=one.y, mode=one.mode, faint=one.faint) for one in plot.series
    ]
    figure = lines(series, plotted(plot.x), plotted(plot.y), height=380)
    if all(float(x).is_integer() for one in plot.series for x in one.x):
        in_steps(figure)
    for place, trace in enumerate(figure.data):
        if trace.mode == "lines":  # without marks, and in print without colours
            trace.line.dash = DASHES[place % len(DASHES)]
    return figure
