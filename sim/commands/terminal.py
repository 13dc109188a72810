"""Printing: styles and frames on a terminal, plain lines into a pipe.

Texts of models and users are printed as they are: never as markup, and with control characters made visible.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sim.commands.failures import visible

PIPED = 1_000
"""Columns of what is not printed on a terminal: rows of a table are one line each."""
LONGEST = 2_000
"""Characters of one text that are printed."""
MARGIN = " " * 12
"""Before what has no time of its own in a transcript."""


def say(*things: object) -> None:
    """Print texts and tables; into a pipe without frames, styles and blanks at the ends of lines."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    if console.is_terminal:
        for thing in things:
            console.print(thing)
        return
    console.width = PIPED
    for thing in things:
        with console.capture() as printed:
            console.print(thing)
        typer.echo("\n".join(line.rstrip(" ") for line in printed.get().split("\n")), nl=False)


def plain(text: object, style: str = "") -> Text:
    """Untrusted text: control characters and direction marks shown as their code, long texts cut."""
    shown = str(text)
    cut = f"… ({len(shown):,} characters)" if len(shown) > LONGEST else ""
    return Text(visible(shown[:LONGEST]) + cut, style=style)


def cell(text: object, style: str = "") -> Text:
    """Untrusted text on one line: it cannot be taken for a line of ours."""
    return plain(str(text).replace("\n", " ⏎ "), style)


class Framed:
    """A text of somebody else's under a title: in a frame, or in a pipe with a bar before each of its lines."""

    def __init__(self, text: object, title: str, note: str) -> None:
        self._text = plain(text)
        self._title = cell(title)
        self._note = cell(note)

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Panel(self._text, title=self._title, subtitle=self._note, title_align="left")
            return
        yield Text.assemble(MARGIN, self._title, "  ", self._note)
        for line in self._text.split("\n", allow_blank=True):
            yield Text.assemble(MARGIN, "| ", line)


def columns(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Rows of untrusted values as a table, without the columns that are empty in all of them."""
    kept = [place for place, _ in enumerate(heads) if place == 0 or any(str(row[place]) for row in rows)]
    table = Table(*(heads[place] for place in kept), box=None)
    for row in rows:
        table.add_row(*(cell(row[place]) for place in kept))
    return table


def number(value: float) -> str:
    """A number with four digits, or all those before the point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def short(value: object) -> str:
    """A value in few characters, the numbers in it with four digits."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(short, value)) + "]"
    return str(value)
