"""Checkpoints: everything that the next update depends on, whole or not at all.

A checkpoint is one folder, made beside its place and moved there; the newest whole one counts. Tensors are read back
with nothing but tensors and plain values allowed in the file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import torch

from sim.types import JSON
from training.plan import TrainingError

FORMAT = 2
"""Raised whenever what the notes or tensors mean changes."""

_NAME = re.compile(r"checkpoint-(\d{6})")


def write(folder: Path, update: int, tensors: Mapping[str, Any], notes: Mapping[str, JSON]) -> None:
    """Keep the state after so many updates; older ones go once it is there."""
    place = folder / f"checkpoint-{update:06d}"
    new = folder / "checkpoint.new"
    for leftover in (new, place):
        shutil.rmtree(leftover, ignore_errors=True)
    new.mkdir(parents=True)
    torch.save(dict(tensors), new / "tensors.pt")
    (new / "notes.json").write_bytes(orjson.dumps({"format": FORMAT, **notes}))
    new.rename(place)
    for older in _all(folder):
        if older < update:
            shutil.rmtree(folder / f"checkpoint-{older:06d}")


def read(folder: Path) -> tuple[int, dict[str, Any], Any] | None:
    """Updates done, tensors and notes of the newest checkpoint; None where there is none. Raises TrainingError."""
    found = read_notes(folder)
    if found is None:
        return None
    update, notes = found
    return update, torch.load(folder / f"checkpoint-{update:06d}" / "tensors.pt", weights_only=True), notes


def read_notes(folder: Path) -> tuple[int, Any] | None:
    """Updates done and notes of the newest checkpoint; None where there is none.

    Raises TrainingError for a checkpoint of another format.
    """
    found = _all(folder)
    if not found:
        return None
    place = folder / f"checkpoint-{found[-1]:06d}"
    notes = orjson.loads((place / "notes.json").read_bytes())
    if notes.get("format") != FORMAT:
        raise TrainingError(
            f"{place} has format {notes.get('format', 0)}, this agora-sim goes on from {FORMAT}: go on with the "
            "version that wrote it, or train in another folder, from its weights with --policy NAME=FOLDER"
        )
    return found[-1], notes


def _all(folder: Path) -> list[int]:
    names = (_NAME.fullmatch(path.name) for path in folder.glob("checkpoint-*"))
    return sorted(int(name[1]) for name in names if name)
