"""A report as one HTML file: it asks no network for anything, and whatever others wrote is text in it and nothing else.

Scripts are Plotly and `page.js`; a policy in the head names these two by their hashes, so that no other would run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from sim.metrics.honesty import UNFIT
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
    Part,
    Plot,
    Report,
    Said,
    Section,
    Source,
    Table,
    points,
    trimmed,
)
from ui.charts import library
from ui.markup import Html, clipped, joined, prose, tag
from ui.report.figures import drawn

CELL = 500
"""Characters of a cell."""
SHORT = 24
"""Characters of a cell that is not broken."""
OPEN, FOLDED = 400, 200
"""Characters of a record that stand open, and at least so many of one that is folded."""
VERDICT = UNFIT.capitalize()
HEADS = ("measure", "of", "value", "unit", "n", "clusters", "95% interval", "method", "notes")


def as_html(report: Report) -> str:
    """The whole page."""
    figures = any(isinstance(block, Plot) for section in report.sections() for block in section.blocks)
    scripts = [library(), _own("page.js")] if figures else []
    head = [
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="referrer" content="no-referrer">'),
        tag("title", report.title),
        Html(f"<style>{_own('page.css')}</style>"),
    ]
    inside = [_header(report), tag("div", _contents(report), _main(report), cls="columns"), _footer(report)]
    body = [tag("a", "Skip to the numbers", cls="skip", href="#main"), tag("div", *inside, cls="page")]
    body += [Html(f"<script>{script}</script>") for script in scripts]
    page = tag("html", tag("head", *head), tag("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _own(name: str) -> str:
    return files("ui.report").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _header(report: Report) -> Html:
    verdict = []
    if report.verdict:
        reasons = [tag("div", clipped(reason.replace(f"{UNFIT}: ", ""), CELL)) for reason in report.verdict]
        verdict = [tag("div", tag("strong", VERDICT), *reasons, cls="bad verdict", role="alert")]
    notes = [_note(note) for note in report.notes]
    return tag("header", *verdict, tag("h1", report.title), tag("div", report.what, cls="what"), *notes)


def _footer(report: Report) -> Html:
    return tag("footer", f"Made by agora-sim {report.version}: ", tag("code", clipped(report.command, CELL)))


# --- structure -----------------------------------------------------------------------------------------


def _contents(report: Report) -> Html:
    """Links to all sections."""
    items = [_item(section) for section in report.together]
    for number, part in enumerate(report.parts, 1):
        inside = [_item(section) for section in part.sections]
        if _alone(report):
            items += inside
        else:
            items.append(tag("li", tag("a", clipped(part.run, 40), href=f"#run-{number}")))
    items += [_item(section) for section in report.method]
    return tag(
        "nav", tag("details", tag("summary", "Contents"), tag("ol", *items), open=""), **{"aria-label": "Contents"}
    )


def _item(section: Section) -> Html:
    return tag("li", tag("a", clipped(section.title, 60), href=f"#{section.anchor}"))


def _alone(report: Report) -> bool:
    return len(report.parts) == 1 and not report.together


def _main(report: Report) -> Html:
    pieces = [_section(section) for section in report.together]
    for number, part in enumerate(report.parts, 1):
        pieces += [_section(section) for section in part.sections] if _alone(report) else [_part(part, number)]
    pieces += [_section(section) for section in report.method]
    return tag("main", *pieces, id="main")


def _part(part: Part, number: int) -> Html:
    """A run among several, folded."""
    verdict = (
        [tag("div", tag("strong", VERDICT), clipped("; ".join(part.verdict), CELL), cls="bad")] if part.verdict else []
    )
    inside = [_section(section) for section in part.sections]
    return tag(
        "details", tag("summary", f"Run {clipped(part.run, 80)}"), *verdict, *inside, cls="part", id=f"run-{number}"
    )


def _section(section: Section) -> Html:
    blocks = [piece for block in section.blocks for piece in _block(block)]
    return tag("section", tag("h2", section.title), *blocks, id=section.anchor)


def _block(block: Block) -> Iterator[Html]:
    match block:
        case Note():
            yield _note(block)
        case Measures():
            yield from _measures(block)
        case Table():
            yield from _table(block)
        case Plot():
            yield from _figure(block)
        case Moments():
            yield from map(_moment, block.moments)
            yield from _left(block.left_out, "such events")
        case Source():
            text = tag("pre", block.text, cls="source")
            yield tag("details", tag("summary", f"{block.title} ({len(block.text):,} characters)"), text)
            yield from _left(block.left_out, "characters")
        case Glossary():
            yield tag("h3", block.title)
            yield tag("dl", *(piece for one in block.entries for piece in _entry(one.anchor, one.name, one.text)))


def _entry(anchor: str, name: str, text: str) -> Iterator[Html]:
    yield tag("dt", clipped(name, CELL), id=anchor) if anchor else tag("dt", clipped(name, CELL))
    yield tag("dd", text)


def _note(note: Note) -> Html:
    return tag("div", note.text, cls=f"note {note.tone}".strip())


def _left(count: int, what: str) -> Iterator[Html]:
    if count:
        yield tag("div", f"… and {count:,} more {what}, which are left out.", cls="dim")


# --- tables --------------------------------------------------------------------------------------------


def _measures(block: Measures) -> Iterator[Html]:
    if block.lines:
        yield _grid(f"All numbers: {block.title}", HEADS, map(_line, block.lines))
    if block.more:
        more = _grid(f"More numbers: {block.title}", HEADS, map(_line, block.more))
        yield tag(
            "details", tag("summary", f"{len(block.more):,} more numbers, of single agents, periods and the like"), more
        )
    yield from _left(block.left_out, "numbers")


def _line(one: Line) -> Sequence[Cell]:
    values = (Num(one.value, one.shown), one.unit, Num(one.n, f"{one.n:,}"), Num(one.n_clusters, f"{one.n_clusters:,}"))
    return (Link(one.metric, one.anchor), one.about, *values, one.interval, one.ci_method, one.notes)


def _table(table: Table) -> Iterator[Html]:
    made = _grid(table.title, table.heads, table.rows)
    yield tag("details", tag("summary", f"{table.title} ({len(table.rows):,} rows)"), made) if table.folded else made
    yield from _left(table.left_out, "rows")


def _grid(title: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Html:
    """A table that scrolls on its own where it is too wide; a column with a number is one of numbers."""
    kept, every = trimmed(heads, rows)
    numbers = {place for place in range(len(kept)) if any(isinstance(row[place], Num) for row in every)}
    head = tag("tr", *(_head(text, place in numbers) for place, text in enumerate(kept)))
    body = [tag("tr", *(_cell(cell, place in numbers) for place, cell in enumerate(row))) for row in every]
    caption = [tag("caption", title)] if title else []
    table = tag("table", *caption, tag("thead", head), tag("tbody", *body))
    return tag("div", table, cls="scroll", role="region", tabindex="0", **{"aria-label": clipped(title or "table")})


def _head(text: str, number: bool) -> Html:
    return tag("th", clipped(text, 80), scope="col", cls="n") if number else tag("th", clipped(text, 80), scope="col")


def _cell(cell: Cell, number: bool) -> Html:
    match cell:
        case Num():
            return tag("td", cell.shown, cls="n")
        case Link():
            return tag("td", tag("a", clipped(cell.text, CELL), href=f"#{cell.to}"), cls="short")
        case _:
            text = prose(cell, CELL) if len(cell) > CELL else clipped(cell, CELL)
            return tag("td", text, cls="n" if number else "short" if len(cell) <= SHORT else "c")


# --- figures and moments -------------------------------------------------------------------------------


def _figure(plot: Plot) -> Iterator[Html]:
    data = Html(f'<script type="application/json">{drawn(plot)}</script>')
    alt = f"{plot.title}. {plot.caption} The data is in the table below it."
    picture = tag("div", cls="plot", role="img", **{"aria-label": clipped(alt, CELL)})
    pieces = [tag("figcaption", clipped(plot.title, CELL)), picture, data]
    if plot.caption:
        pieces.append(tag("div", clipped(plot.caption, CELL), cls="dim"))
    yield tag("figure", *pieces)
    if plot.kind == "lines":  # the numbers of the others stand in a table anyway
        yield from _table(points(plot))


def _moment(moment: Moment) -> Html:
    head = tag("h3", f"{moment.at} · ", clipped("; ".join(moment.why), CELL))
    saw = [tag("div", f"Shown to: {clipped(moment.saw, CELL)}", cls="dim")] if moment.saw else []
    return tag("div", head, tag("ol", *map(_said, moment.around), cls="around"), *saw, cls="moment", id=moment.anchor)


def _said(one: Said) -> Html:
    to = [f" to {clipped(one.to, 80)}"] if one.to else []
    fact = [] if one.fact is None else [f" · fact {one.fact}"]
    line = joined(
        tag("span", f"{one.at} ", cls="dim"),
        tag("b", clipped(one.who, 60)),
        " ",
        tag("span", clipped(one.kind, 60), cls="chip"),
        " ",
        prose(one.text, OPEN if len(one.text) > OPEN + FOLDED else len(one.text)),
        tag("span", *to, *fact, cls="dim"),
    )
    return tag("li", line, cls="line itself" if one.itself else "line")
