"""A report as Markdown. Texts of others stand in it as code, where nothing is markup, or have every mark escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sim.commands.failures import visible
from sim.report.model import (
    Block,
    Cell,
    Glossary,
    Line,
    Link,
    Measures,
    Moment,
    Moments,
    Note,
    Num,
    Plot,
    Report,
    Section,
    Source,
    Table,
    points,
    trimmed,
)

ROWS = 40
"""Most rows of a figure's data; JSON has all."""
CELL = 400
"""Characters of a cell."""
LONGEST = 4_000
"""Characters of a sentence of ours."""
_PLAIN = re.compile(r"[\w .,:;()/%·…–—×−√∞+*'\"“”’?!&→≤≥<>=\[\]#|~^{}-]*")
"""Texts that are shown with their marks escaped; others might become a link, a picture or a sign, and stand as code."""
_LINKS = re.compile(r"://|www\.|@|:\w+:", re.IGNORECASE)
_MARK = re.compile(r"([\\`*_\[\]<>#|~$&])")


def as_markdown(report: Report) -> str:
    """The whole report."""
    return "\n\n".join(_report(report)) + "\n"


def _report(report: Report) -> Iterator[str]:
    if report.verdict:
        yield "\n".join(f"> **{text(reason)}**" for reason in report.verdict)
    yield f"# {text(report.title)}"
    yield text(report.what)
    yield from (_note(note) for note in report.notes)
    for section in report.together:
        yield from _section(section, 2)
    for part in report.parts:
        if len(report.parts) > 1 or report.together:
            yield f"## Run {text(part.run)}"
            yield from (f"> **{text(reason)}**" for reason in part.verdict)
            for section in part.sections:
                yield from _section(section, 3)
        else:
            for section in part.sections:
                yield from _section(section, 2)
    for section in report.method:
        yield from _section(section, 2)
    yield f"Made by agora-sim {text(report.version)}: {code(report.command)}"


def _section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * level} {text(section.title)}"
    for block in section.blocks:
        yield from _block(block, level + 1)


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Note():
            yield _note(block)
        case Measures():
            yield from _measures(block)
        case Table():
            if block.title:
                yield f"**{text(block.title)}**"
            yield _grid(block.heads, block.rows)
            yield from _left(block.left_out, "rows")
        case Plot():
            yield from _plot(block)
        case Moments():
            for moment in block.moments:
                yield from _moment(moment, level)
            yield from _left(block.left_out, "such events")
        case Source():
            yield f"**{text(block.title)}**"
            yield fenced(block.text)
            yield from _left(block.left_out, "characters")
        case Glossary():
            yield f"**{text(block.title)}**"
            yield "\n".join(f"- {text(one.name)}: {text(one.text, LONGEST)}" for one in block.entries)


def _note(note: Note) -> str:
    first, *rest = note.text.split("\n")
    said = text(first, LONGEST)
    said = f"**{said}**" if note.tone == "bad" else said
    return "\n\n".join([said, *([fenced("\n".join(rest))] if rest else [])])


def _left(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"… and {count:,} more {what}, which are left out."


def _measures(block: Measures) -> Iterator[str]:
    heads = ("measure", "of", "value", "unit", "n", "clusters", "95% interval", "method", "notes")
    yield _grid(heads, [_line(one) for one in (*block.lines, *block.more)])
    yield from _left(block.left_out, "numbers")


def _line(one: Line) -> tuple[Cell, ...]:
    values = (Num(one.value, one.shown), one.unit, f"{one.n:,}", f"{one.n_clusters:,}", one.interval, one.ci_method)
    return (one.metric, one.about, *values, one.notes)


def _plot(plot: Plot) -> Iterator[str]:
    """A figure's data; that of intervals stands in a table already."""
    if plot.kind == "intervals":
        return
    yield f"**Figure: {text(plot.title)}**"
    if plot.caption:
        yield text(plot.caption)
    data = points(plot)
    step = -(-len(data.rows) // ROWS) or 1
    yield _grid(data.heads, data.rows[::step])
    if step > 1:
        yield f"Each {step}th of {len(data.rows):,} points; the JSON form has all."


def _moment(moment: Moment, level: int) -> Iterator[str]:
    yield f"{'#' * level} {moment.anchor}"
    yield f"At {text(moment.at)}: {text('; '.join(moment.why))}"
    rows = [
        (
            "→" if one.itself else "",
            one.at,
            one.who,
            one.kind,
            one.text,
            one.to,
            "" if one.fact is None else str(one.fact),
        )
        for one in moment.around
    ]
    yield _grid(("", "at", "who", "what", "said", "to", "fact"), rows)
    if moment.saw:
        yield f"Shown to: {text(moment.saw)}"


def _grid(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    kept, every = trimmed(heads, rows)
    lines = [[text(head) for head in kept], ["---"] * len(kept), *([_cell(cell) for cell in row] for row in every)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    match cell:
        case Num():
            return text(cell.shown)
        case Link():
            return f"[{text(cell.text)}](#{cell.to})"
        case _:
            shown = text(cell)
            return shown.replace("|", "\\|") if shown.startswith("`") else shown


def text(given: str, most: int = CELL) -> str:
    """A text on one line that is nothing but text in Markdown."""
    line = " ⏎ ".join(visible(given[: most + 1]).splitlines())
    if len(given) > most:
        line = f"{line[:most]}… ({len(given):,} characters)"
    if _PLAIN.fullmatch(line) and not _LINKS.search(line):
        return _MARK.sub(r"\\\1", line)
    return code(line)


def code(line: str) -> str:
    """A text as code, within more backticks than it has itself."""
    longest = max(map(len, re.findall(r"`+", line)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if line[:1] in ("`", " ", "") or line[-1:] in ("`", " ") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def fenced(given: str) -> str:
    """A text of several lines as a block of code."""
    shown = visible(given)
    marks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", shown)), default=0))
    return f"{marks}text\n{shown.rstrip(chr(10))}\n{marks}"
