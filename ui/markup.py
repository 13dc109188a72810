"""Untrusted text on the page: the only place where HTML is made, and the only one that shows it.

Whatever a model, a person or a file name says is escaped, its control characters and direction marks are shown as
codes, and what is long is folded. Pieces are built by `tag`, which escapes every child that is not a piece itself.
"""

from __future__ import annotations

import html
from typing import Any

from sim.commands.failures import visible

LONG = 600
"""Characters of a text that stand open; the rest is folded."""
LONGEST = 20_000
"""Characters that reach the browser at all."""
SHORT = 160
"""Characters of a text within a line."""
_VOID = {"br", "hr"}

STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding: 3.2rem 2rem 3rem 2rem}
[data-testid="stSidebar"] {max-width: 15rem}
:is(a, button, summary, canvas, input[type="range"]):focus-visible {outline: 2px solid #1c7aba !important;
  outline-offset: 1px}
[data-testid="stBaseButton-segmented_controlActive"] p, [data-testid="stSliderThumbValue"] {
  color: color-mix(in srgb, currentColor 45%, CanvasText)}
.ag {line-height: 1.45; overflow-wrap: anywhere}
.ag h1 {font-size: 1.55rem; margin: 0; padding: 0; font-weight: 650}
.ag h2 {font-size: 1.1rem; margin: .2rem 0; padding: 0; font-weight: 650}
.ag .dim {opacity: .72; font-size: .86rem}
.ag .row {display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap}
.ag .card {border: 1px solid color-mix(in srgb, currentColor 18%, transparent); border-radius: .5rem;
  padding: .55rem .8rem; margin: 0 0 .5rem 0; background: color-mix(in srgb, currentColor 3%, transparent)}
.ag .quiet {padding: .3rem .6rem; margin: 0 0 .3rem 0}
.ag .line {border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent); padding: .22rem .1rem}
.ag .line .said {display: inline; margin: 0; white-space: normal}
.ag .chip {border-radius: 1rem; padding: .05rem .55rem; font-size: .8rem; white-space: nowrap;
  background: color-mix(in srgb, currentColor 11%, transparent)}
.ag .chip + .chip {margin-left: .3rem}
.ag .live {background: #0072B2; color: #fff} .ag .good {background: #00795a; color: #fff}
.ag .warn {background: #e69f00; color: #1a1200} .ag .bad {background: #b3470a; color: #fff}
.ag .failure {border-left: .3rem solid #d55e00; padding: .5rem .8rem;
  background: color-mix(in srgb, #d55e00 12%, transparent); border-radius: .3rem}
.ag .hint {border-left: .3rem solid #56b4e9; padding: .5rem .8rem;
  background: color-mix(in srgb, #56b4e9 10%, transparent); border-radius: .3rem}
.ag .said {white-space: pre-wrap; unicode-bidi: isolate; margin: .15rem 0}
.ag .mono {font-family: "Source Code Pro", ui-monospace, monospace; font-size: .83rem}
.ag .left, .ag .right {max-width: 78%; width: fit-content; min-width: 12rem}
.ag .right {margin-left: auto; background: color-mix(in srgb, #56b4e9 16%, transparent)}
.ag .notice {margin: .35rem 0}
.ag .reply {margin-left: 1.6rem}
.ag .cached {background: color-mix(in srgb, #f0e442 30%, transparent)}
.ag table {border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums}
.ag td, .ag th {padding: .18rem .5rem; text-align: left;
  border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent)}
.ag td.n, .ag th.n {text-align: right}
.ag .askbar {background: linear-gradient(to left, #d55e0055 var(--w), transparent var(--w))}
.ag .bidbar {background: linear-gradient(to left, #0072b255 var(--w), transparent var(--w))}
.ag .cards {display: flex; gap: .8rem; flex-wrap: wrap}
.ag .seat {flex: 1 1 14rem; max-width: 24rem}
.ag .face {display: inline-block; border: 2px solid currentColor; border-radius: .35rem; padding: .5rem .7rem;
  margin: .25rem .3rem .25rem 0; font-weight: 650; background: color-mix(in srgb, currentColor 4%, transparent)}
.ag .down {background: repeating-linear-gradient(45deg, #0072b2, #0072b2 4px, #56b4e9 4px, #56b4e9 8px);
  color: transparent}
.ag details summary {cursor: pointer; opacity: .8; font-size: .86rem}
</style>"""
"""Colours of the two ends of every scale are told apart without seeing red and green (Okabe and Ito 2008)."""


class Html(str):
    """Markup that is safe to show."""


def tag(name: str, *children: str, **attributes: str) -> Html:
    """One element. Children that are no markup are escaped; `cls` is the attribute `class`."""
    given = "".join(f' {key.replace("cls", "class")}="{escape(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{given}>")
    inside = "".join(one if isinstance(one, Html) else escape(one) for one in children)
    return Html(f"<{name}{given}>{inside}</{name}>")


def joined(*pieces: str) -> Html:
    """Pieces one after the other."""
    return Html("".join(one if isinstance(one, Html) else escape(one) for one in pieces))


def escape(text: str) -> Html:
    """A text as text."""
    return Html(html.escape(visible(text)))


def clipped(text: str, most: int = SHORT) -> str:
    """The start of a text, control characters shown as codes; for cells, options and hovers."""
    shown = visible(text[: most + 1])
    return shown if len(text) <= most else f"{shown[:most]}…"


def plotted(text: str, most: int = 80) -> Html:
    """A text for a figure, whose library reads some tags."""
    return escape(clipped(text.replace("\n", " "), most))


def prose(text: str, most: int = LONG, cls: str = "said") -> Html:
    """A text of any length: its start, the rest folded, the far end left out and counted."""
    if len(text) <= most:
        return tag("div", text, cls=cls)
    rest = text[most:LONGEST]
    left = len(text) - most - len(rest)
    more = [tag("summary", f"… {len(text) - most:,} more characters"), tag("div", rest, cls=cls)]
    if left:
        more.append(tag("div", f"… and {left:,} that are not shown here; `agora export` has them", cls="dim"))
    return joined(tag("div", text[:most] + " …", cls=cls), tag("details", *more))


def chip(text: str, cls: str = "") -> Html:
    """A short word set apart."""
    return tag("span", clipped(text, 40), cls=f"chip {cls}".strip())


def grid(heads: list[str], rows: list[list[str]], numbers: set[int] | None = None) -> Html:
    """A small table; `numbers`: columns set to the right."""
    right = numbers or set()

    def cells(name: str, row: list[str]) -> Html:
        made = [tag(name, each, cls="n") if place in right else tag(name, each) for place, each in enumerate(row)]
        return tag("tr", *made)

    return tag("table", tag("thead", cells("th", heads)), tag("tbody", *(cells("td", row) for row in rows)))


def show(*pieces: str, into: Any = None) -> None:
    """Put markup on the page."""
    import streamlit as st  # here, for what is made without a page

    (into or st).html(tag("div", *pieces, cls="ag"))


def style() -> None:
    """Give the page its style sheet."""
    import streamlit as st

    st.html(STYLE)


def failure(text: str) -> None:
    """What went wrong, in one line."""
    show(tag("div", clipped(text, 1_000), cls="failure", role="alert"))


def hint(text: str) -> None:
    """What to do where there is nothing to see yet."""
    show(tag("div", text, cls="hint"))
