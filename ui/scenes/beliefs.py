"""What agents think: opinions over time and on their graph, or answers one after the other and what was right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from sim.types import AgentId, RecordedFact
from ui.charts import Node, Series, lines, network
from ui.data import Moment, axis, members
from ui.facts import bubble
from ui.markup import hint, plotted, show, tag
from ui.parts import choice, figure, table

NAME = "Opinions and answers"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"graph", "truth"}),)
READ = 8_000
"""Last facts that opinions and answers are read from."""
DRAWN = 60
"""Most agents with a line."""
MET = 120
"""Most agents of a picture of the graph."""
LINKS = 480
"""Most links of it."""
LEGEND = 8
"""Most lines that are told by their name beside the figure."""
SAID = 6
"""Latest words that are shown."""

Opinions = dict[AgentId, list[RecordedFact]]
"""Statements by agent, in order."""


def draw(now: Moment) -> None:
    """Opinions where there are some, else questions."""
    said = opinions(now.last(READ, "opinion"))
    if said:
        _society(now, said)
    else:
        _questions(now)


def opinions(newest_first: Sequence[RecordedFact]) -> Opinions:
    """By agent."""
    found: Opinions = {}
    for one in reversed(newest_first):
        found.setdefault(one.fact.actor, []).append(one)
    return found


# --- opinions ---------------------------------------------------------------------------------------------


def _society(now: Moment, said: Opinions) -> None:
    left, right = st.columns([3, 2])
    with left:
        figure(_over_time(now, said), "opinions", "The opinion of every agent over time")
        if len(said) > DRAWN:
            st.caption(f"The first {DRAWN} of {len(said)} agents.")
    with right:
        _graph(now, said)
    words = sorted((one for each in said.values() for one in each if one.fact.data["text"]), key=lambda one: one.seq)
    show(*(bubble(now, one, str(one.fact.data["text"]), False, _number(one)) for one in words[-SAID:]))
    table([_row(agent, each) for agent, each in said.items()], "last-opinions")


def _number(one: RecordedFact) -> str:
    return f"· {one.fact.data['opinion']:+.2f}"


def _row(agent: AgentId, each: Sequence[RecordedFact]) -> dict[str, object]:
    first, last = each[0].fact.data, each[-1].fact.data
    return {"agent": agent, "opinion": last["opinion"], "earlier": first["opinion"], "round": last["round"]}


def _over_time(now: Moment, said: Opinions) -> object:
    """A line for each agent, in the colour of its role."""
    roles = {member.seat.agent: member.seat.role for member in members(now.run, now.table)}
    order = list(dict.fromkeys(roles.get(agent, "") for agent in said))
    unit, title = axis(now.tick * now.head.tick_ms)
    series = []
    for agent, each in list(said.items())[:DRAWN]:
        role = roles.get(agent, "")
        x = [one.tick * now.head.tick_ms / unit for one in each]
        text = [f"{plotted(agent)}, round {one.fact.data['round']}: {one.fact.data['opinion']:.2f}" for one in each]
        y = [float(one.fact.data["opinion"]) for one in each]
        tint = order.index(role) if len(order) > 1 else None
        series.append(Series(name=plotted(agent, 30), x=x, y=y, text=text, mode="lines", tint=tint))
    made = lines(series, title, "opinion", height=430)
    made.update_yaxes(range=[-1.08, 1.08])
    return made.update_layout(showlegend=len(series) <= LEGEND)


def _graph(now: Moment, said: Opinions) -> None:
    """Who listens to whom, coloured by what each thinks; of a viewer only whom it hears. The nearer, the wider."""
    told = now.last(1, "graph")
    links = told[0].fact.data["listens"] if told else [[now.viewer, other] for other in said if other != now.viewer]
    thinks = {agent: float(each[-1].fact.data["opinion"]) for agent, each in said.items()}
    place = {agent: n for n, agent in enumerate(thinks)}
    edges = {
        (min(place[a], place[b]), max(place[a], place[b])): 2.2 - abs(thinks[a] - thinks[b])
        for a, b in links
        if a in place and b in place
    }
    if len(thinks) > MET or len(edges) > LINKS:
        hint(f"A graph of {len(thinks):,} agents and {len(edges):,} links is too large to be drawn.")
        return
    nodes = [Node(name=plotted(agent, 20), text=f"{plotted(agent)}: {x:.2f}", shade=x) for agent, x in thinks.items()]
    figure(network(nodes, edges), "graph", "Who listens to whom, by opinion")


# --- questions --------------------------------------------------------------------------------------------


def _questions(now: Moment) -> None:
    """One question with its answers in their order, then all of them."""
    facts = list(reversed(now.last(READ, "question", "answer", "signal", "truth", "stated", "result")))
    asked = {int(one.fact.data["item"]): one for one in facts if one.fact.kind == "question"}
    if not asked:
        hint("No question has been asked yet.")
        return
    known = right(facts, now.viewer)
    number = choice("Question", sorted(asked, reverse=True), "question", lambda one: f"question {one}")
    data = asked[number].fact.data
    show(bubble(now, asked[number], str(data["question"]), False, "· a control" if data["control"] else ""))
    told = f"The right answer: {known[number]}" if number in known else "What is right is not known here."
    show(tag("div", told, cls="dim"))
    table(answered(facts, number, now.viewer), "answers")
    if len(asked) > 1:
        st.caption("All questions so far, their answers in their order")
        table([_line(facts, each, known) for each in sorted(asked)], "questions")
    if not now.viewer and any(one.fact.kind == "stated" for one in facts):
        figure(_by_place(facts), "right", "Share of right answers by place in the order")


def right(facts: Sequence[RecordedFact], viewer: AgentId) -> dict[int, str]:
    """By question, what is right: all for a watcher, for an agent only what was told."""
    told = [one.fact for one in facts if one.fact.kind == "result" or (one.fact.kind == "truth" and not viewer)]
    return {int(one.data["item"]): str(one.data["right" if one.kind == "truth" else "result"]) for one in told}


def answered(facts: Sequence[RecordedFact], number: int, viewer: AgentId) -> list[dict[str, object]]:
    """Answers to a question in their order, with the signals and probabilities that may be seen."""
    here = [one.fact for one in facts if one.fact.data.get("item") == number]
    signals = {one.audience[0]: one.data["signal"] for one in here if one.kind == "signal"}
    stated = {(one.actor, one.data["round"]): one.data["probability"] for one in here if one.kind == "stated"}
    planned = next((one.data["planned"] for one in here if one.kind == "truth"), ())
    rows = []
    for one in here:
        if one.kind == "answer":
            row = {"place": one.data["position"], "agent": one.actor, "round": one.data["round"]}
            row |= {"signal": signals.get(one.actor), "answer": one.data["answer"]}
            row["probability"] = stated.get((one.actor, one.data["round"]))
            rows.append(row if viewer else row | {"by plan": "yes" if one.actor in planned else ""})
    return rows


def _line(facts: Sequence[RecordedFact], number: int, known: Mapping[int, str]) -> dict[str, object]:
    given = [one.fact.data["answer"] for one in facts if one.fact.kind == "answer" and one.fact.data["item"] == number]
    return {"question": number, "right": known.get(number), "answers": ", ".join(map(str, given))}


def _by_place(facts: Sequence[RecordedFact]) -> object:
    places: dict[int, list[bool]] = {}
    for one in facts:
        if one.fact.kind == "stated":
            places.setdefault(int(one.fact.data["position"]), []).append(bool(one.fact.data["outcome"]))
    x = sorted(places)
    made = lines(
        [Series(name="right", x=x, y=[sum(places[at]) / len(places[at]) for at in x])],
        "place in the order", "share of right answers", height=300,
    )  # fmt: skip
    made.update_yaxes(range=[-0.05, 1.05])
    return made.update_xaxes(tickformat="d")
