"""One decision: what was felt, the prompts as they were sent, the answers as they came, and the facts behind it."""

from __future__ import annotations

import math
from typing import NamedTuple

import orjson
import streamlit as st

from sim.record.reader import RecordedCall
from sim.types import OptionLogprobs, RecordedDecision
from ui import charts, data
from ui.data import Moment
from ui.facts import fact_line
from ui.markup import Html, chip, clipped, hint, joined, plotted, prose, show, tag
from ui.parts import figure, table
from ui.provenance import Origin, origin

PARTS = ("Model calls", "Why: what it was shown", "Why: back to the origin")
PROMPT = 3_000
"""Characters of a message that stand open."""


def draw(now: Moment, one: RecordedDecision) -> None:
    """The decision, and one of its sides."""
    action = one.action
    show(
        tag(
            "div",
            tag(
                "h2",
                f"Decision of {clipped(action.agent, 40)}, seen {now.time(action.seen)}, due {now.time(one.tick)}",
            ),
            chip(action.how, "" if action.how == "chosen" else "warn"),
            chip(one.result.status, "" if one.result.status == "applied" else "warn"),
            *([chip(f"felt {action.feels}")] if action.feels else []),
            cls="row",
        ),
        prose(data.told(action.answer)),
        *_reasons(one),
    )
    which = st.segmented_control(
        "Side", PARTS, default=PARTS[0], key="side", label_visibility="collapsed", required=True
    )
    if which == PARTS[1]:
        _shown(now, one)
    elif which == PARTS[2]:
        _origin(now, one)
    else:
        _calls(now, one)


def _reasons(one: RecordedDecision) -> list[Html]:
    """Why it was asked again, defaulted or stale; its information state."""
    pieces = []
    if one.action.reason:
        pieces.append(prose(f"{one.action.how} because: {one.action.reason}"))
    if one.result.reason:
        pieces.append(prose(f"no longer legal when due: {one.result.reason}"))
    if one.key:
        pieces.append(prose(f"information state: {one.key}", cls="said dim"))
    return pieces


# --- calls ----------------------------------------------------------------------------------------------


def _calls(now: Moment, one: RecordedDecision) -> None:
    calls = now.run.calls_of(one)
    if not calls:
        hint("No model was asked: this agent follows a rule.")
        return
    for number, call in enumerate(calls):
        with st.container(border=True):
            _call(call, number)


def _call(call: RecordedCall, number: int) -> None:
    done = call.completion
    policy = done.policy or call.policy or "the model itself"
    tokens = (
        f"{done.usage.prompt:,} prompt tokens, {done.usage.cached:,} of them cached, {done.usage.completion:,} sampled"
    )
    sampling = ", ".join(f"{key} {value}" for key, value in call.sampling.items())
    show(
        tag(
            "div",
            tag("h2", f"Call {number + 1}: {clipped(call.purpose, 40)}"),
            *map(chip, (call.model, policy, call.source)),
            chip(done.finish, "" if done.finish == "stop" else "warn"),
            cls="row",
        ),
        tag("div", f"{tokens} · {done.latency:.2f} s · {sampling} · seed {call.seed}", cls="dim"),
    )
    left, right = st.columns([3, 2])
    with left:
        share = done.usage.cached / done.usage.prompt if done.usage.prompt else 0.0
        show(*_prompt(call, share))
    with right:
        answer = done.text if done.text is not None else done.error
        show(
            tag("h2", "Raw output" if done.text is not None else "Failed"),
            prose(answer or "(empty)", PROMPT, cls="said mono"),
        )
        if done.error and done.text is not None:
            show(prose(f"error: {done.error}"))
        show(tag("h2", "Constraint"), prose(_pretty(call.format), 700, cls="said mono"))
        _logprobs(call)


def _prompt(call: RecordedCall, cached: float) -> list[Html]:
    """The messages; what the engine had cached is marked, measured in characters for want of token borders."""
    length = sum(len(one.text) for one in call.messages)
    left = round(cached * length)
    pieces = []
    if left:
        pieces.append(tag("div", "Marked: about what the engine had cached.", cls="dim"))
    for one in call.messages:
        marked, plain = one.text[:left], one.text[left:]
        left = max(0, left - len(one.text))
        body = [prose(marked, PROMPT, cls="said mono cached")] if marked else []
        body += [prose(plain, PROMPT, cls="said mono")] if plain else []
        pieces.append(tag("div", chip(one.role), *body, cls="card"))
    return pieces


def _pretty(form: str) -> str:
    try:
        return orjson.dumps(orjson.loads(form), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return form


def _logprobs(call: RecordedCall) -> None:
    done = call.completion
    if not done.logprobs:
        return
    total = math.fsum(done.logprobs)
    of = {"raw": "the model's own distribution", "processed": "the masked distribution that was sampled"}
    show(
        tag("h2", "Log-probabilities"),
        tag("div", f"sum {total:.3f}, so this answer had probability {math.exp(total):.3g} under "
                   f"{of.get(done.distribution, 'an unknown distribution')}", cls="dim"),
    )  # fmt: skip
    if done.distribution == "processed" and (actions := shares(call.format, done.text, total, done.option_logprobs)):
        show(tag("h2", "Legal actions"))
        shown = [{**one._asdict(), "log p": math.log(one.p) if one.p > 0 else None} for one in actions]
        bar = st.column_config.ProgressColumn("p", min_value=0, max_value=1, format="%.3f")
        table(shown, f"actions-{call.key.call}", height=360, p=bar)
    rows = [
        {"token id": token, "log p": value, "p": math.exp(value)}
        for token, value in zip(done.ids, done.logprobs, strict=False)
    ]
    table(rows[:200], f"logprobs-{call.key.call}", height=180)


class Share(NamedTuple):
    """How likely a legal action was."""

    action: str
    """An option, or several of which only the sum is known."""
    p: float
    chosen: bool


def shares(form: str, said: str | None, total: float, known: OptionLogprobs = ()) -> list[Share]:
    """Probabilities of the legal actions of a choice, in the order they were offered; what is left comes last.

    Each option is decoded in one way only, so the options' probabilities add up to 1. `total`: log-probability of what
    was said; `known`: those of the options, where the record has them. Nothing where the answer was none of them.
    """
    try:
        options = orjson.loads(form).get("choice", ())
    except (orjson.JSONDecodeError, AttributeError):
        return []
    if said not in options:
        return []
    told = dict(zip(options, known, strict=False)) | {said: total}
    certain = {one: min(1.0, math.exp(told[one])) for one in options if told.get(one) is not None}
    found = [Share(one, p, one == said) for one, p in certain.items()]
    others = [one for one in options if one not in certain]
    left = f"the other {len(others)} together" if len(others) > 1 else "".join(others)
    return [*found, *([Share(left, max(0.0, 1 - math.fsum(certain.values())), False)] if others else [])]


# --- why ------------------------------------------------------------------------------------------------


def _shown(now: Moment, one: RecordedDecision) -> None:
    """The facts of the view, and those behind what was remembered."""
    recalled = [number for number in one.action.recalls if number not in one.action.shows]
    for words, ids in (("The view showed", one.action.shows), ("Remembered from earlier", recalled)):
        found = now.run.facts_by_id(now.table, sorted(ids, reverse=True)[:40])
        if ids:
            more = f", the newest {len(found)} of them" if len(found) < len(ids) else ""
            show(tag("h2", f"{words} {len(ids)} facts{more}"), *(fact_line(now, fact) for fact in found.values()))
    if not one.action.shows and not one.action.recalls:
        hint("The view showed no fact: the agent decided on its role and its own values.")


def _origin(now: Moment, one: RecordedDecision) -> None:
    """Facts shown, the decisions that made them, the facts that those were made on."""
    found = origin(now.run, one)
    if not found.facts:
        hint("Nothing that happened before is behind this decision.")
        return
    place: dict[tuple[str, int], int] = {}
    unit, title = data.axis(one.tick * now.head.tick_ms)
    per_tick = now.head.tick_ms / unit
    steps = [*_decision_steps(now, found, one, place, per_tick), *_fact_steps(now, found, place, per_tick)]
    arrows = [(place[start], place[end]) for start, end in found.arrows if start in place and end in place]
    figure(charts.lanes(steps, arrows, title), "origin", "What the decision came from, back in time")
    more = " There is more behind it than is drawn." if found.cut else ""
    show(
        tag("div", f"{len(found.facts)} facts and {len(found.decisions)} decisions lead to this one.{more}", cls="dim")
    )


def _decision_steps(
    now: Moment, found: Origin, start: RecordedDecision, place: dict[tuple[str, int], int], per_tick: float
) -> list[charts.Step]:
    steps: list[charts.Step] = []
    for seq, one in sorted(found.decisions.items()):
        place["decision", seq] = len(steps)
        words = plotted(f"{one.action.agent} decides: {data.told(one.action.answer)}", 120)
        steps.append(
            charts.Step(
                lane=plotted(one.action.agent, 30),
                at=one.action.seen * per_tick,
                text=joined(words, f" (seen {now.time(one.action.seen)})"),
                decision=True,
                start=seq == start.seq,
            )
        )
    return steps


def _fact_steps(now: Moment, found: Origin, place: dict[tuple[str, int], int], per_tick: float) -> list[charts.Step]:
    steps: list[charts.Step] = []
    before = len(place)
    for number, one in sorted(found.facts.items()):
        place["fact", number] = before + len(steps)
        words = plotted(f"{one.fact.kind}: {data.told(one.fact.data)}", 120)
        lane = plotted(one.fact.actor or "world", 30)
        steps.append(charts.Step(lane=lane, at=one.tick * per_tick, text=words, decision=False))
    return steps
