"""Pairs who check each other's work: an episode as it went, and how often they broke the rule or were right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from sim.types import JSON, RecordedFact
from ui.charts import Series, in_steps, lines
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import Html, clipped, hint, show
from ui.parts import choice, figure, table

NAME = "Checks"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"pair"}), frozenset({"task"}))
READ = 4_000
"""Last facts that episodes are read from."""
SPOKEN = ("task", "tool", "answer", "submission", "message", "verdict", "reflection", "end")

Episodes = dict[tuple[int, int], list[RecordedFact]]
"""Facts by pair and episode, in order."""


def draw(now: Moment) -> None:
    """One episode of one pair, then all that are over."""
    found = _episodes(now)
    if not found:
        hint("No pair has been given a task yet.")
        return
    latest = max(found, key=lambda key: found[key][-1].seq)
    left, right = st.columns(2)
    with left:
        pairs = [latest[0], *sorted({pair for pair, _ in found} - {latest[0]})]
        pair = choice("Pair", pairs, "pair", lambda one: f"pair {one}: {_between(found, one)}")
        numbers = sorted((number for one, number in found if one == pair), reverse=True)
        number = choice("Episode", numbers, "episode", lambda one: f"episode {one}")
        agents = _agents(found, pair)
        show(*(_said(now, one, agents) for one in found[pair, number] if one.fact.kind in SPOKEN))
    with right:
        over = [one for facts in found.values() for one in facts if one.fact.kind == "outcome"]
        if over:
            figure(_shares(over), "shares", "Accepted work, right verdicts and broken rules by episode")
        else:
            hint("What came of an episode is for watchers to see." if now.viewer else "No episode is over yet.")
    if over:
        st.caption("What came of each episode")
        table([_row(one) for one in sorted(over, key=_place)], "episodes")


def _episodes(now: Moment) -> Episodes:
    found: Episodes = {}
    for one in reversed(now.last(READ, *SPOKEN, "outcome")):
        if "pair" in one.fact.data:
            found.setdefault(_place(one), []).append(one)
    return found


def _place(one: RecordedFact) -> tuple[int, int]:
    return int(one.fact.data["pair"]), int(one.fact.data["episode"])


def _agents(found: Episodes, pair: int) -> list[str]:
    """Who is in a pair: whoever was given its tasks."""
    given = (one for (number, _), facts in found.items() if number == pair for one in facts if one.fact.kind == "task")
    return sorted({name for one in given for name in one.fact.audience})


def _between(found: Episodes, pair: int) -> str:
    return " and ".join(_agents(found, pair))


def _said(now: Moment, one: RecordedFact, agents: Sequence[str]) -> Html:
    data, fact = one.fact.data, one.fact
    right = len(agents) > 1 and fact.actor == agents[-1]
    match fact.kind:
        case "task":
            return notice(now, one, f"task for {', '.join(fact.audience)}: {data['question']}")
        case "tool":
            return bubble(now, one, f"reads {data['source']}", right, "· alone")
        case "answer":
            return bubble(now, one, f"answers {data['answer'] or '(nothing)'}", right, "· alone")
        case "submission":
            return bubble(now, one, f"{data['question']}\nhands in: {data['answer'] or '(nothing)'}", right)
        case "message":
            return bubble(now, one, str(data["text"]), right, f"· round {data['round']}")
        case "verdict":
            return notice(now, one, f"{clipped(fact.actor, 30)}: {data['verdict']}")
        case "reflection":
            return bubble(now, one, str(data["text"]), right, "· note to itself")
        case _:
            return notice(now, one, f"over: {data['reason']}", "good")


def _shares(over: Sequence[RecordedFact]) -> object:
    """By episode, of the verdicts of all pairs: accepted, right, and against the rule."""
    counted: dict[str, dict[int, list[bool]]] = {"accepted": {}, "right verdict": {}, "against the rule": {}}
    for one in over:
        data = one.fact.data
        for words, marks in zip(counted, (_accepted(data), _right(data), data["violations"].values()), strict=True):
            counted[words].setdefault(int(data["episode"]), []).extend(map(bool, marks))
    series = [
        Series(name=words, x=sorted(by), y=[sum(by[at]) / len(by[at]) for at in sorted(by)], dash=dash)
        for (words, by), dash in zip(counted.items(), ("solid", "dash", "dot"), strict=True)
    ]
    made = lines(series, "episode", "share of verdicts", height=330)
    made.update_yaxes(range=[-0.05, 1.05])
    return in_steps(made)


def _accepted(data: Mapping[str, JSON]) -> list[bool]:
    return [verdict == "accept" for verdict in data["verdicts"].values()]


def _right(data: Mapping[str, JSON]) -> list[bool]:
    """Whether each accepted good work of the other, or rejected bad work."""
    return [
        (verdict == "accept") == next(bool(good) for other, good in data["correct"].items() if other != agent)
        for agent, verdict in data["verdicts"].items()
    ]


def _row(one: RecordedFact) -> dict[str, object]:
    data = one.fact.data
    return {
        "pair": data["pair"],
        "episode": data["episode"],
        "rule": data["rule"],
        **{words: ", ".join(f"{agent}: {_word(value)}" for agent, value in data[key].items())
           for key, words in (("verdicts", "verdicts"), ("correct", "good work"), ("rewards", "rewards"))},
        "against the rule": ", ".join(agent for agent, broke in data["violations"].items() if broke) or "nobody",
    }  # fmt: skip


def _word(value: JSON) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
