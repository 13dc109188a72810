"""Agent: who somebody is, what it knows and who has learnt it, and every decision with what it was made on."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from sim.record.browse import END
from sim.types import JSON, Member, RecordedDecision, Secret
from ui import charts, data
from ui.data import Moment
from ui.markup import Html, chip, clipped, hint, plotted, prose, show, tag
from ui.parts import ROWS, asked, badge, choice, chosen_run, chosen_table, figure, keep, opened, paged, table, title
from ui.provenance import Telling, entitled, tellings
from ui.views import decision as one_decision

FELT = 200
"""Most decisions whose feelings are drawn."""


def page() -> None:
    """One agent of a run."""
    head = chosen_run()
    if head is None:
        return
    at = chosen_table(head)
    with opened(head) as run:
        members = {member.seat.agent: member for member in data.members(run, at)}
        if not members:
            hint("Nobody takes part in this run.")
            return
        with st.sidebar:
            name = choice("Agent", list(members), "agent")
        member = members[name]
        title(
            "Agent",
            tag("b", clipped(name, 60)),
            _role(member),
            tag("span", clipped(head.id, 60), cls="dim"),
            badge(head),
        )
        now = data.moment(run, head, at)
        left, right = st.columns([2, 3])
        with left:
            _who(now, member)
            _feelings(now, name)
            _secrets(now, member, members)
        with right:
            chosen = _decisions(now, name)
        if chosen is not None:
            one_decision.draw(now, chosen)


def _role(member: Member) -> Html:
    return chip(member.seat.role or "no role")


# --- who it is ------------------------------------------------------------------------------------------


def _who(now: Moment, member: Member) -> None:
    persona = member.persona
    name = str(persona.get("name", ""))
    facts = [f"{persona['age']} years" if "age" in persona else "", str(persona.get("occupation", ""))]
    pieces = [tag("h2", clipped(name, 80) or "No persona"), tag("div", ", ".join(filter(None, facts)), cls="dim")]
    pieces += [
        prose(f"{_words(key)}: {_said(value)}")
        for key, value in persona.items()
        if key not in ("id", "name", "age", "occupation")
    ]
    speaks = f"speaks with {member.model}" if member.model else "scripted, no model speaks for it"
    pieces.append(tag("div", speaks, cls="dim"))
    for what, values in (("Private", member.seat.private), ("Known to all", member.seat.public)):
        if values:
            pieces.append(prose(f"{what}: {_said(values)}"))
    reward = now.run.rewards_by(now.table).get(member.seat.agent) if now.head.status != "not started" else None
    if reward is not None:
        pieces.append(tag("div", f"Reward so far: {reward:,.3g}"))
    pieces += [prose(f"Another from {now.time(tick)} on: {_said(what)}") for tick, what in _becomings(now, member)]
    if member.past:
        pieces.append(prose(f"From earlier episodes: {member.past}"))
    show(tag("div", *pieces, cls="card"))


def _becomings(now: Moment, member: Member) -> list[tuple[int, Mapping[str, JSON]]]:
    """What has been changed of the agent by a fork's edits or the scenario, each with its tick."""
    changes = ((tick, change) for _, tick, change in now.run.events("change", now.table))
    return [
        (tick, {key: value for key, value in change.items() if key not in ("do", "agent")})
        for tick, change in changes
        if change.get("do") == "become" and change.get("agent") == member.seat.agent
    ]


def _words(key: str) -> str:
    return clipped(key.replace("_", " "), 40)


def _said(value: JSON) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(key))} {_said(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_said(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# --- what it felt ---------------------------------------------------------------------------------------


def _feelings(now: Moment, agent: str) -> None:
    """Its emotion over time, where it has one."""
    latest = now.run.last_decisions(now.table, now.seq, ROWS, agent)
    if not any(one.action.feels for one in latest):
        return
    found = now.run.feelings(now.table, now.seq, FELT, agent)[::-1]
    unit, words = data.axis(found[-1][0] * now.head.tick_ms)
    per_tick = now.head.tick_ms / unit
    at = [tick * per_tick for tick, _ in found]
    show(tag("h2", "What it felt" if len(found) < FELT else f"What it felt in its last {FELT} decisions"))
    figure(charts.strip(at, [plotted(felt, 24) for _, felt in found], words), "feelings", "Its emotion over time")


# --- its secrets ----------------------------------------------------------------------------------------


def _secrets(now: Moment, member: Member, members: Mapping[str, Member]) -> None:
    for secret in member.secrets:
        with st.container(border=True):
            allowed = ", ".join(_norm(norm) for norm in secret.norms) or "nobody"
            show(
                tag("h2", f"Secret: {clipped(secret.attribute, 60)}"),
                prose(secret.value, cls="said mono"),
                tag("div", f"about {clipped(secret.subject, 40)} · may learn it: {allowed}", cls="dim"),
            )
            found = tellings(now.run, now.table, secret, now.seq)
            if not found:
                show(tag("div", "These words are in nothing that anybody said or did.", cls="dim"))
            for one in found[:5]:
                _telling(now, secret, one, members)
            if len(found) > 5:
                show(tag("div", f"… and {len(found) - 5} more times", cls="dim"))


def _norm(norm: Mapping[str, JSON]) -> str:
    purpose = f" for {norm['purpose']}" if norm.get("purpose") else ""
    return clipped(f"{norm.get('to', 'nobody')}{purpose}", 80)


def _telling(now: Moment, secret: Secret, one: Telling, members: Mapping[str, Member]) -> None:
    """A fact with the secret's words in it, and who was shown it; who is not entitled stands out."""
    fact = one.fact.fact
    channel = fact.audience if isinstance(fact.audience, str) else ""
    chips = [
        chip(
            f"{name} at {now.time(tick)}", "" if name in members and entitled(secret, members[name], channel) else "bad"
        )
        for name, (_, tick) in one.learnt.items()
    ]
    when = f"{fact.kind} at {now.time(one.fact.tick)}"
    said = f"{fact.actor or 'the world'}, {when} to {data.audience(one.fact)} (fact {fact.id})"
    show(
        tag("div", clipped(said, 200)),
        tag(
            "div", tag("span", "shown to ", cls="dim"), *(chips or [tag("span", "nobody so far", cls="dim")]), cls="row"
        ),
    )


# --- its decisions --------------------------------------------------------------------------------------


def _decisions(now: Moment, agent: str) -> RecordedDecision | None:
    """A page of decisions, newest first; the chosen one, or the one that the page's address names."""
    starts: list[int] = st.session_state.setdefault(f"decisions-{now.run.path.name}-{now.table}-{agent}", [END])
    place = min(int(st.session_state.get("page-decisions", 0)), len(starts) - 1)
    found = now.run.last_decisions(now.table, starts[place], ROWS, agent)
    if len(found) == ROWS and place == len(starts) - 1:
        starts.append(found[-1].seq - 1)
    if not found:
        hint("This agent has not decided anything yet.")
        return None
    show(
        tag("h2", "Decisions, newest first"),
        tag("div", "Choose one in the first column to see what was behind it.", cls="dim"),
    )
    feels = any(one.action.feels for one in found)
    rows = [_row(now, one, feels) for one in found]
    wide = st.column_config.TextColumn(width=260)  # a long answer would push all else out of sight
    chosen = table(rows, "decisions", select=True, height=320, answer=wide)
    paged("decisions", len(found) == ROWS)
    number = asked("decision")
    named = None if number is None else now.run.decision(now.table, number)
    one = found[chosen] if chosen is not None else named if named and named.action.agent == agent else found[0]
    if one is not named:  # what a link has set stays until another is chosen
        keep("decision", one.seq)
    return one


def _row(now: Moment, one: RecordedDecision, feels: bool) -> dict[str, object]:
    return {
        "due": now.time(one.tick),
        "answer": data.told(one.action.answer),
        "how": one.action.how,
        "became": one.result.status,
        **({"felt": one.action.feels or ""} if feels else {}),
        "calls": one.calls,
        "facts shown": len(one.action.shows),
        "seen": now.time(one.action.seen),
        "seq": one.seq,
    }
