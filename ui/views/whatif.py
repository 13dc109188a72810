"""What if: change something at a moment, run it several times beside what would have been, see the effect."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import streamlit as st

from sim.library import PROJECT
from sim.metrics.family import changed, rescored
from sim.scenarios.located import ScenarioError
from sim.scenarios.yaml_text import read_yaml, write_yaml
from sim.steering.live import Refused
from sim.types import JSON, Member
from ui import charts, controls, data
from ui.data import Head
from ui.effects import Experiment, between, experiments, tabled
from ui.markup import clipped, failure, hint, plotted, prose, show, tag
from ui.parts import LOOK, badge, choice, chosen_run, figure, opened, table, title

CHANGES = ("a message from outside", "a parameter of the world", "a setting of a model", "an agent")
SAME = "as before"
"""Where an agent keeps its model."""
FORKS = 400
"""Newest runs of the folder among which forks are looked for."""


def page() -> None:
    """The form, then what was tried so far."""
    head = chosen_run()
    if head is None:
        return
    title("What if", tag("b", clipped(head.id, 60)), badge(head))
    show(
        tag(
            "div",
            "A fork is this run up to a moment and live after it. Each replicate has its own luck after the moment and "
            "is compared with an unchanged fork of the same luck: the effect is a mean of paired differences.",
            cls="dim",
        )
    )
    if head.status == "not started":
        hint("This run has not started yet.")
        return
    _form(head)
    _renewed(head)
    found = experiments(head, _forks(head))
    if not found:
        hint("Nothing has been tried on this run yet.")
    for number, one in enumerate(found):
        with st.container(border=True):
            _effect(head, one, number)


def _renewed(head: Head) -> None:
    """Draw the page anew as soon as a fork stands otherwise or has been measured."""

    def state() -> list[object]:
        return [[(one.id, one.status) for one, _ in _forks(head)], data.stamp(data.folder() / PROJECT)]

    before = state()

    def look() -> None:
        if state() != before:
            st.rerun()

    st.fragment(look, run_every=LOOK)()


def _form(head: Head) -> None:
    what = st.segmented_control("Change", CHANGES, default=CHANGES[0], key="change", required=True)
    with st.container(border=True):
        columns = st.columns([2, 1])
        at = columns[0].text_input("At", head.time(head.now // 2), help="A moment like 1h30m, or a tick")
        replicates = columns[1].number_input("Replicates", 1, 20, 3)
        try:
            words = _words(head, str(what))
        except ScenarioError as problem:
            failure(str(problem))
            words = []
        if st.button("Fork and run", type="primary", icon=":material/fork_right:"):
            if not words:
                failure("say what should be changed")
                return
            try:
                with st.spinner("Forking …"):
                    controls.fork(head.id, at, words, int(replicates), data.folder())
            except Refused as problem:
                failure(str(problem))


def _words(head: Head, what: str) -> list[str]:
    """Fields for one kind of change, and what was written as words of the command line."""
    if what == CHANGES[0]:
        text = st.text_area("Text", placeholder="The frost is over.")
        to = st.text_input("To", "all", help="all, a #channel, or agents with commas between")
        names = [one.strip() for one in to.split(",") if one.strip()]
        edit = {"do": "say", "text": text, "to": names[0] if len(names) == 1 else names}
        return ["--edit", write_yaml(edit)] if text.strip() and names else []
    with opened(head) as run:
        manifest = run.manifest()
        cast = data.members(run)
    models = data.scenario_of(manifest).get("models") or {}
    if what == CHANGES[3]:
        return _becomes(cast, list(models))
    settings = [f"models.{name}.{key}" for name in models for key in ("temperature", "top_p", "max_tokens", "policy")]
    keys = list(manifest.params) if what == CHANGES[1] else settings
    if not keys:
        hint("There is nothing of this kind in this run.")
        return []
    key = st.selectbox("What", keys, format_func=lambda one: clipped(one, 60))
    value = st.text_input("New value", key=f"new-{key}", placeholder=clipped(str(manifest.params.get(key, "")), 60))
    return ["--set", f"{key}={value}"] if key and value.strip() else []


def _becomes(cast: Sequence[Member], models: Sequence[str]) -> list[str]:
    """Fields for what an agent becomes, and what of it was written as words of the command line."""
    columns = st.columns(3)
    with columns[0]:
        name = str(choice("Agent", [one.seat.agent for one in cast], "agent"))
    member = next(one for one in cast if one.seat.agent == name)
    with columns[1]:
        model = st.selectbox("Model", [SAME, *models], help="An entry of the scenario's models")
    with columns[2]:
        use = st.text_input("Kind of agent", placeholder=SAME, help="module:Name, like agents.scripted:RandomLegal")
    before = member.persona.get("goals") or ()
    goals = st.text_area("Goals, one a line", height=68, key=f"goals-{name}", placeholder=clipped("\n".join(before)))
    persona = st.text_area("More of its persona, one KEY: VALUE a line", height=68, placeholder="style: curt and cold")
    settings = st.text_area("Settings of its kind, one KEY: VALUE a line", height=68, placeholder="instructions: …")
    wanted = [line.strip() for line in goals.splitlines() if line.strip()]
    edit = {
        "persona": _mapping(persona, "More of its persona") | ({"goals": wanted} if wanted else {}),
        "with": _mapping(settings, "Settings of its kind"),
        "use": use.strip(),
        "model": "" if model == SAME else model,
    }
    given = {key: value for key, value in edit.items() if value}
    return ["--edit", write_yaml({"do": "become", "agent": name, **given})] if given else []


def _mapping(text: str, what: str) -> dict[str, JSON]:
    """Lines of keys and values. Raises ScenarioError."""
    located = read_yaml(text, what)
    if located.data is not None and not isinstance(located.data, dict):
        raise located.error((), "write one KEY: VALUE a line")
    return located.data or {}


def _forks(parent: Head) -> list[tuple[Head, str]]:
    """Forks of a run, each with what it changed."""
    where = data.folder()
    found = []
    with opened(parent) as run:
        before = data.scenario_of(run.manifest())
    for name in data.run_ids(where)[:FORKS]:
        head = data.head(where, name)
        if head.parent == parent.id and head.fork_tick is not None:
            with opened(head) as run:
                after = data.scenario_of(run.manifest())
            if not rescored(after):
                found.append((head, changed(before, after)))
    return found


def _effect(parent: Head, one: Experiment, number: int) -> None:
    """What a change came to."""
    show(tag("h2", f"At {parent.time(one.tick)}"), prose(_said(one.change), 300, cls="said mono"))
    done = [(plain, treated) for plain, treated in one.pairs if plain.status == treated.status == "finished"]
    waiting = len(one.pairs) - len(done) + one.missing
    if waiting:
        of = len(one.pairs) + one.missing
        show(tag("div", f"{waiting} of {of} replicates are not finished or have no unchanged fork.", cls="dim"))
    where = data.folder()
    differences = between(
        [(data.measured(where, plain.id), data.measured(where, treated.id)) for plain, treated in done]
    )
    overall = [each for each in differences if not each.of]
    rows = tabled(overall or differences)
    if not rows:
        if done:
            hint("These forks have no number in common.")
        return
    told = [each for each in overall or differences if data.family(each.metric) != data.HONESTY]
    drawn = [
        (
            plotted(f"{each.metric} ({each.unit})" if each.unit else each.metric, 60),
            each.estimate.value or 0.0,
            *(each.estimate.ci or (None, None)),
        )
        for each in (told or overall or differences)[:20]
    ]
    figure(charts.intervals(drawn, "changed less unchanged"), f"effect-{number}", "Effects with their intervals")
    table(rows, f"effects-{number}")
    _runs(done, number)


def _said(change: str) -> str:
    return str(write_yaml(orjson.loads(change))).strip()


def _runs(pairs: Sequence[tuple[Head, Head]], number: int) -> None:
    rows = [{"replicate": plain.replicate, "unchanged": plain.id, "changed": treated.id} for plain, treated in pairs]
    table(rows, f"forks-{number}")
