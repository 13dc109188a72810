"""A trained version to give away."""

from __future__ import annotations

from pathlib import Path

from agents.engines.weights import WeightsError, is_adapter
from sim.scenarios.located import nearest
from training.policy import export


class ExportError(Exception):
    """The version cannot be given away; the text says what would be right."""


def export_version(folder: Path, label: str, target: Path, base: str = "") -> str:
    """Copy a version of a training's folder; what was done, in words. `base`: the base model's public name."""
    source = folder / "policies" / label
    if not source.is_dir():
        known = [path.name for path in (folder / "policies").glob("*@*")]
        raise ExportError(f"{folder} has no policy {label!r}; {nearest(label, known)}")
    try:
        export(source, target, base)
    except WeightsError as error:
        raise ExportError(str(error)) from error
    if base and not is_adapter(target):
        return f"{label}, a whole model, in {target}; --base is for adapters and was not needed"
    return f"{label} in {target}"
