"""Rows as a file, one decision a row with all its fields, for any other trainer or tool.

In Parquet, tokens and log-probabilities are lists, and what may be of any shape (answer, spans) is JSON text; a line of
JSONL is the row as it is, but that JSON has no −∞: there null stands for a probability of 0 too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from sim.record.reader import Run
from sim.scenarios.scenario import loads
from training.trajectory import Row, rows

JSON_FIELDS = ("answer", "spans")
KINDS = {
    "str": "text",
    "bool": "yes or no",
    "int": "whole",
    "float": "number",
    "tuple[str, ...]": "texts",
    "Tokens": "tokens",
    "tuple[int, int] | None": "tokens",
    "Logprobs": "numbers",
    "OptionLogprobs": "numbers",
}
"""How a column is kept, by the annotation of the row's field."""
SUFFIXES = (".parquet", ".jsonl")


def rows_of(path: Path) -> list[Row]:
    """The rows of a stored run; those of policies whose prompts are recorded as tokens may be learnt from."""
    with Run(path) as run:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
    learners = {name: one.policy for name, one in scenario.models.items() if one.policy and one.record_tokens}
    return rows(path, trained=set(learners.values()), entries=learners, options=True)


def write_rows(paths: Iterable[Path], out: Path) -> int:
    """Write the rows of stored runs into a file, a run at a time; how many they are.

    Raises ValueError for a file of another kind, ImportError where Parquet cannot be written.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"{out} is neither a .parquet nor a .jsonl file; name it one or the other")
    count = 0

    def pages() -> Iterator[list[Row]]:
        nonlocal count
        for path in paths:
            found = rows_of(path)
            count += len(found)
            yield found

    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    (_write_parquet if out.suffix == ".parquet" else _write_jsonl)(new, pages())
    new.replace(out)
    return count


def _write_jsonl(out: Path, pages: Iterable[list[Row]]) -> None:
    with out.open("wb") as file:
        for page in pages:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in page)


def _write_parquet(out: Path, pages: Iterable[list[Row]]) -> None:
    from sim.record.export import write_parquet  # needs pyarrow

    kinds = {name: KINDS.get(Row.__annotations__[name], "text") for name in Row.__struct_fields__}
    write_parquet(out, kinds, ([tuple(_cell(row, name) for name in kinds) for row in page] for page in pages))


def _cell(row: Row, name: str) -> object:
    value = getattr(row, name)
    return msgspec.json.encode(value).decode() if name in JSON_FIELDS else value
