"""A report as JSON, whose shape is `sim.report.model.Report`, and as CSV, one row a measurement."""

from __future__ import annotations

import csv
import io

import msgspec
import orjson

from sim.commands.failures import visible
from sim.report.model import Line, Report, lines
from sim.types import JSON

COLUMNS = (
    *("run", "fit_for_claims", "metric", "of", "value", "shown", "unit", "n", "n_clusters", "low", "high", "ci_method"),
    *("denominator", "flags", "excluded", "null", "judge", "version", "cited"),
)
"""Of the CSV file."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula; such a text is led by an apostrophe."""


def as_json(report: Report) -> str:
    """The whole report."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"


def as_csv(report: Report) -> str:
    """Every measurement in the order of the report; numbers in full, and as the report shows them."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    verdicts = {part.run: "no" if part.verdict else "yes" for part in report.parts}
    together = "no" if report.verdict else "yes"
    for line in lines(report):
        writer.writerow([_cell(value) for value in _row(line, verdicts.get(line.run, together))])
    return file.getvalue()


def _row(line: Line, fit: str) -> list[JSON]:
    return [
        *(line.run, fit, line.metric, _text(line.of), line.value, line.shown, line.unit, line.n, line.n_clusters),
        *(line.low, line.high, line.ci_method, line.denominator, "; ".join(line.flags), _text(line.excluded)),
        *(_text(line.null), _text(line.judge), line.version, line.cited),
    ]


def _text(named: JSON) -> str:
    return orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode() if named else ""


def _cell(value: JSON) -> JSON:
    if not isinstance(value, str):
        return "" if value is None else repr(value) if isinstance(value, float) else value
    text = visible(value)
    return f"'{text}" if text.startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
