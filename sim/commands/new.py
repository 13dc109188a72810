"""`agora new`: a world, an agent or a scenario that runs at once, to be changed into one's own."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path
from string import Template

from sim.commands.failures import BadInput
from sim.scenarios.located import nearest, shown

KINDS = {"world": ("py", "yaml"), "agent": ("py", "yaml"), "scenario": ("yaml",)}
"""What can be made, and the files of each."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def create(kind: str, name: str, folder: Path) -> list[str]:
    """Write the files of a new world, agent or scenario; lines that say what to do with them.

    Raises BadInput for a kind or a name that will not do, FileExistsError rather than write over anything.
    """
    if kind not in KINDS:
        raise BadInput(f"{shown(kind)} is nothing that can be made; {nearest(kind, KINDS)}")
    stem = _stem(name)
    paths = [folder / f"{stem}.{ending}" for ending in KINDS[kind]]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} is there already; choose another name or folder")
    scenario = paths[-1]
    words = {"name": name, "stem": stem, "Class": _class(stem), "file": str(scenario)}
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.write_text(_template(f"{kind}.{path.suffix[1:]}").substitute(words), encoding="utf-8")
    return [*map(str, paths), f"Run it: agora run {scenario}   Check it: agora check {scenario}"]


def _stem(name: str) -> str:
    """The file name, which is also the name of a module."""
    stem = name.lower().replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(stem) or keyword.iskeyword(_class(stem)):
        raise BadInput(
            f"{shown(name)} is no name for a file and a class; write letters, digits, - and _, like tea-house"
        )
    if stem in sys.stdlib_module_names:
        raise BadInput(f"{shown(name)}: {stem}.py would stand before Python's own module {stem}; choose another name")
    return stem


def _class(stem: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in stem.split("_"))


def _template(name: str) -> Template:
    return Template(files("sim.commands").joinpath("templates", f"{name}.tmpl").read_text(encoding="utf-8"))
