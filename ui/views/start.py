"""Start a run: a form made from the scenario file, its plan before anything runs, and the start itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from sim.scenarios.yaml_text import read_yaml, text_of, write_yaml
from sim.steering.live import Refused
from sim.types import JSON
from ui import controls
from ui.markup import clipped, failure, prose, show

SETTINGS = 24
"""Most parameters of a world that have a field of their own; others go into the last one."""
OWN = "another file …"


def form(where: Path) -> None:
    """Choose a scenario, change what it says, look at the plan, start."""
    file = chosen_file("start")
    if file is None:
        return
    try:
        scenario = read_yaml(text_of(file), str(file)).data
    except (OSError, ValueError) as problem:
        failure(str(problem))
        return
    if not isinstance(scenario, dict):
        failure(f"{file} is no scenario: its first line should be a key such as name:")
        return
    with st.form("start"):
        sets = _sets(scenario)
        name = st.text_input("Name of the run", placeholder="by default the scenario's, with date and time")
        budget = st.number_input(
            "Budget in tokens (0: none)", 0, step=10_000, help="The run pauses, resumably, once spent"
        )
        with st.container(horizontal=True):
            wants_plan = st.form_submit_button("Show the plan", icon=":material/fact_check:")
            wants_start = st.form_submit_button("Start", type="primary", icon=":material/play_arrow:")
    if wants_plan or wants_start:
        _act(file, sets, where, name or named(file), int(budget), wants_start)


def chosen_file(key: str) -> Path | None:
    """A scenario file, one that is there or another; None, and a line, where there is none."""
    there = [str(path) for path in controls.scenarios()]
    chosen = st.selectbox("Scenario", [*there, OWN], format_func=lambda one: clipped(one, 90), key=f"{key}-scenario")
    if chosen != OWN:
        return Path(chosen)
    written = st.text_input("Path of the scenario file", key=f"{key}-scenario-file")
    if not written:
        return None
    if not Path(written).is_file():
        failure(f"there is no file {written}; write the path of a .yaml file")
        return None
    return Path(written)


def _sets(scenario: Mapping[str, JSON]) -> list[str]:
    """Fields for what the scenario says, and what of it was changed, as words of `--set`."""
    fields: dict[str, JSON] = {"seed": scenario.get("seed", 0)}
    clock = scenario.get("clock")
    if isinstance(clock, dict) and "until" in clock:
        fields["clock.until"] = clock["until"]
    if scenario.get("tables"):
        fields["tables"] = scenario["tables"]
    models = scenario.get("models")
    for name, settings in (models if isinstance(models, dict) else {}).items():
        keys = ("engine", "model", "temperature", "base_url")
        fields |= {f"models.{name}.{key}": settings[key] for key in keys if key in settings}
    world = scenario.get("world")
    flat = {key: value for key, value in (world if isinstance(world, dict) else {}).items() if key != "use"}
    fields |= {f"world.{key}": value for key, value in list(flat.items())[:SETTINGS] if _scalar(value)}
    sets = []
    for place, (key, value) in enumerate(fields.items()):
        if place % 3 == 0:
            columns = st.columns(3)
        with columns[place % 3]:
            new = _field(key, value)
        if new != value:
            sets.append(f"{key}={write_yaml(new).strip() if not isinstance(new, str) else new}")
    more = st.text_area("Other changes, one KEY=VALUE a line", height=68, placeholder="cast.buyer.count=3")
    return [*sets, *(line.strip() for line in more.splitlines() if line.strip())]


def _scalar(value: JSON) -> bool:
    return value is None or isinstance(value, str | int | float)


def _field(key: str, value: JSON) -> JSON:
    """A field fit for the value's kind."""
    label = re.sub(r"[^\w. -]", "?", key)
    if isinstance(value, bool):
        return st.checkbox(label, value)
    if isinstance(value, int | float):
        return st.number_input(label, value=value)
    written = st.text_input(label, "" if value is None else str(value))
    return None if value is None and not written else written


def named(file: Path) -> str:
    """An id for a new run of a scenario file."""
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', file.stem)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _act(file: Path, sets: list[str], where: Path, name: str, budget: int, start: bool) -> None:
    changes = [part for one in sets for part in ("--set", one)]
    try:
        if not start:
            with st.spinner("Reading the scenario …"):
                plan = controls.finished("check", str(file), *changes, where=where)
            show(prose(plan, 4_000, cls="said mono"))
            return
        with st.spinner("Starting …"):
            controls.start(file, sets, where, name, budget)
    except Refused as problem:
        failure(str(problem))
        return
    target = st.session_state.get("pages", {}).get("live")
    if target:
        st.switch_page(target, query_params={"run": name})
