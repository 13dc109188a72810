"""Live: what happens in a run now, or at any moment of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from sim.quantities import ticks
from sim.record.browse import Browse, Filter
from sim.steering.channel import Channel
from sim.steering.live import Refused
from ui import charts, controls, data
from ui.data import Head, Moment
from ui.facts import fact_line, fact_row
from ui.markup import chip, clipped, failure, hint, plotted, show, tag
from ui.parts import (
    ROWS,
    asked,
    badge,
    choice,
    chosen_run,
    chosen_table,
    downloads,
    figure,
    keep,
    linked,
    opened,
    paged,
    title,
    watch,
)
from ui.provenance import exposures, maker_of
from ui.scenes import draw, fitting

EVERY = 1.0
"""Seconds between two looks at a run that is running or played."""
BINS = 60
"""Bars of the picture of activity."""
NODES = 60
"""Most agents of a picture of exposures."""
SPEEDS = {"1 step": 0, "10×": 10, "60×": 60, "600×": 600, "3,600×": 3_600}
"""How fast simulated time goes by; 0: from one fact to the next, a second each."""
BELOW = ("Timeline", "Who saw whom", "Activity", "One fact")


def page() -> None:
    """The moment, and what stands below it."""
    head = chosen_run()
    if head is None:
        return
    table = chosen_table(head)
    _afresh(head, table)
    with opened(head) as run:
        viewer = _viewer(run, table)
    watch([head])
    moving = _moving(head)
    st.fragment(_drawn, run_every=EVERY if moving else None)(head, table, viewer, moving)


def _afresh(head: Head, table: int) -> None:
    """Another run, or another table, is looked at from its latest moment."""
    of, before = (head.id, table), st.session_state.get("live-of")
    st.session_state["live-of"] = of
    if before not in (None, of) and st.session_state.get("tick") is not None:
        for key in ("tick", "fact"):
            st.session_state.pop(key, None)
            if linked(key) is None and key in st.query_params:
                del st.query_params[key]
        st.session_state["playing"] = False


def _moving(head: Head) -> bool:
    """Whether the picture changes by itself."""
    following = head.status == "running" and st.session_state.get("follow", True)
    return bool(following or st.session_state.get("playing", False))


def _drawn(before: Head, table: int, viewer: str, moving: bool) -> None:
    head = data.head(data.folder(), before.path.stem)
    if head.status != before.status:
        st.rerun()
    with opened(head) as run:
        last = run.end(table)[1]
        title("Live", tag("b", clipped(head.id, 60)), badge(head), tag("span", _progress(head), cls="dim"))
        if head.cause:
            failure(f"{head.words}: {head.cause}")
        if head.status == "not started":
            hint("This run has not started yet. Start it on the page Runs, or with: agora resume")
            return
        tick = _clock(run, head, table, last)
        now = data.moment(run, head, table, tick, viewer)
        _scene(now)
        _below(now)
    if _moving(head) != moving:  # what makes it move is set when the whole page is drawn
        st.rerun()


def _progress(head: Head) -> str:
    until = f" of {head.time(head.until)}" if head.until else ""
    return f"simulated {head.time(head.now)}{until} · {head.decisions:,} decisions · {head.calls:,} calls"


# --- the clock ------------------------------------------------------------------------------------------


def _clock(run: Browse, head: Head, table: int, last: int) -> int | None:
    """Which tick is shown; None: as far as the run is."""
    help_ = "Always the latest; off: look back while it goes on"
    if head.status == "running" and st.toggle("Follow", True, key="follow", help=help_):
        st.session_state["playing"] = False
        _steered(head)
        return None
    if last == 0:
        return None
    named = asked("tick")
    tick = st.session_state.get("tick", last) if named is None else named
    st.session_state["tick"] = max(0, min(last, int(tick)))
    if st.session_state.get("playing"):
        _play(run, table, last)
    step = {"path": run.path, "table": table, "last": last}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.button(
            "Back",
            icon=":material/skip_previous:",
            help="To the fact before",
            on_click=_step,
            kwargs={**step, "by": -1},
        )
        playing = st.session_state.get("playing", False)
        icon = ":material/pause:" if playing else ":material/play_arrow:"
        if st.button("Pause" if playing else "Play", icon=icon, key="play"):
            st.session_state["playing"] = not playing
            st.rerun()
        st.button(
            "Next", icon=":material/skip_next:", help="To the next fact", on_click=_step, kwargs={**step, "by": 1}
        )
        st.selectbox("Speed", list(SPEEDS), key="speed", width=110)
        tick = st.slider("Tick", 0, last, key="tick", format=f"%d of {last}")
        words = head.time(int(tick))
        st.text_input("Jump to", key="jump", placeholder=words, on_change=_jump, args=(head, last), width=120)
    keep("tick", tick)
    return int(tick)


def _steered(head: Head) -> None:
    """Buttons that pause, step and hurry a run that is going on; a message to its world."""
    stands = controls.status(head.path)
    if stands is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if stands["paused"]:
            _button(head, "Go on", ":material/play_arrow:", Channel.go)
            _button(head, "Step", ":material/skip_next:", Channel.step)
        else:
            _button(head, "Pause", ":material/pause:", Channel.pause)
        _button(head, "Stop", ":material/stop:", Channel.stop)
        text = st.text_input("Say to all", key="say", placeholder="an intervention, which is recorded")
        if text and st.button("Say", key="say-it", icon=":material/campaign:"):
            _done(head, lambda run: run.intervene({"do": "say", "text": text, "to": "all"}))
    now = "paused" if stands["paused"] else "waiting for a model or a person" if stands["waiting"] else "going on"
    show(tag("div", f"{now} · {stands['in_flight']} calls in flight · {stands['spent']:,} tokens spent", cls="dim"))


def _button(head: Head, label: str, icon: str, do: Callable[[Channel], object]) -> None:
    if st.button(label, icon=icon, key=f"steer-{label}"):
        _done(head, do)


def _done(head: Head, do: Callable[[Channel], object]) -> None:
    try:
        controls.told(head.path, do)
    except Refused as why:
        failure(str(why))
    else:
        st.rerun(scope="fragment")


def _step(path: Path, table: int, last: int, by: int) -> None:
    now = int(st.session_state.get("tick", last))
    with Browse(path) as run:
        found = run.tick_after(table, now) if by > 0 else run.tick_before(table, now)
    st.session_state["tick"] = found if found is not None else (last if by > 0 else 0)


def _play(run: Browse, table: int, last: int) -> None:
    """The next moment of a run that is played."""
    now = int(st.session_state.get("tick", last))
    factor = SPEEDS[st.session_state.get("speed", next(iter(SPEEDS)))]
    if factor:
        found: int | None = now + max(1, round(factor * EVERY * 1000 / run.manifest().tick_ms))
    else:
        found = run.tick_after(table, now)
    if found is None or found >= last:
        found = last
        st.session_state["playing"] = False
    st.session_state["tick"] = found


def _jump(head: Head, last: int) -> None:
    written = st.session_state.get("jump", "").strip()
    if written:
        try:
            st.session_state["tick"] = min(last, ticks(int(written) if written.isdecimal() else written, head.tick_ms))
        except ValueError:
            st.session_state["jump"] = ""


def _viewer(run: Browse, table: int) -> str:
    names = [member.seat.agent for member in data.members(run, table)]
    watcher = "watcher: sees all"
    with st.sidebar:
        chosen = choice("Seen by", [watcher, *names], "viewer")
    return "" if chosen in (None, watcher) else str(chosen)


# --- what is drawn --------------------------------------------------------------------------------------


def _scene(now: Moment) -> None:
    """The view that fits the world; where its facts are not what that view knows, the latest facts as a list."""
    draw(now, fitting(data.kinds(now.run, now.table)))


def _below(now: Moment) -> None:
    which = st.segmented_control(
        "Below", BELOW, default=_first_below(), key="below", label_visibility="collapsed", required=True
    )
    if which == "Who saw whom":
        _network(now)
    elif which == "Activity":
        _activity(now)
    elif which == "One fact":
        _one_fact(now)
    else:
        _timeline(now)


def _first_below() -> str:
    """The fact that the page's address names, else the timeline."""
    return BELOW[3] if asked("fact") is not None and "below" not in st.session_state else BELOW[0]


def _timeline(now: Moment) -> None:
    columns = st.columns([2, 2, 2])
    wanted = Filter(
        kinds=tuple(columns[0].multiselect("Kinds", sorted(data.kinds(now.run, now.table)), key="kinds")),
        actors=tuple(
            columns[1].multiselect("Actors", [one.seat.agent for one in data.members(now.run, now.table)], key="actors")
        ),
        text=columns[2].text_input("Words", key="words", placeholder="part of a text or a value"),
    )
    key = ("timeline", now.run.path.name, now.table, now.seq, wanted)
    if st.session_state.get("timeline-of") != key and now.head.status != "running":
        st.session_state["timeline-of"], st.session_state["page-timeline"] = key, 0
        st.session_state["timeline-starts"] = [now.seq]
    starts = st.session_state.get("timeline-starts", [now.seq])
    place = min(int(st.session_state.get("page-timeline", 0)), len(starts) - 1)
    upto = now.seq if now.head.status == "running" and place == 0 else starts[place]
    found = now.run.last_facts(now.table, upto, ROWS, wanted)
    if len(found) == ROWS and place == len(starts) - 1:
        st.session_state["timeline-starts"] = [*starts, found[-1].seq - 1]
    seen = [one for one in found if now.sees(one)]
    if not found:
        hint("Nothing like this has happened up to this moment.")
    show(*(fact_line(now, one) for one in seen))
    paged("timeline", len(found) == ROWS)
    downloads([fact_row(now, one) for one in seen], "timeline")


def _network(now: Moment) -> None:
    """Who was shown what whom did; the more of it, the wider the line."""
    counts = exposures(now.run, now.table, now.seq)
    if not counts:
        hint("Nobody has been shown anything that somebody else did yet.")
        return
    weight: dict[str, float] = {}
    for (one, other), count in counts.items():
        weight[one] = weight.get(one, 0) + count
        weight[other] = weight.get(other, 0) + count
    names = sorted(sorted(weight, key=lambda name: -weight[name])[:NODES], key=_natural)
    lit = _lit(now)
    place = {name: number for number, name in enumerate(names)}
    nodes = [
        charts.Node(
            name=plotted(name, 24),
            text=f"{plotted(name)}: {weight[name]:,.0f} exposures" + (", was shown the fact" if name in lit else ""),
            weight=weight[name],
            lit=name in lit,
        )
        for name in names
    ]
    edges = {
        (place[one], place[other]): float(count)
        for (one, other), count in counts.items()
        if one in place and other in place
    }
    figure(charts.network(nodes, edges), "exposures", "Who was shown what whom did")
    show(tag("div", f"The {len(names)} most exposed of {len(weight)} agents, over the last decisions.", cls="dim"))


def _lit(now: Moment) -> set[str]:
    """Who was shown the fact that is asked about, its actor first."""
    number = st.number_input(
        "Light up who was shown fact", 0, value=None, key="fact", placeholder="none", help="The number of a fact"
    )
    found = {} if number is None else now.run.facts_by_id(now.table, [int(number)])
    for fact in found.values():
        return {fact.fact.actor, *now.run.shown_to(now.table, fact, now.seq)}
    return set()


def _natural(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (name, 0)


def _activity(now: Moment) -> None:
    counts = data.over_time(now, BINS)
    if not counts:
        hint("Nothing has happened yet.")
        return
    unit, words = data.axis(now.tick * now.head.tick_ms)
    scaled = [(kind, at * now.head.tick_ms / unit, count) for kind, at, count in counts]
    names = {kind: plotted(kind, 24) for kind, _, _ in counts}
    figure(charts.stacked(scaled, words, "facts", names), "activity", "Facts by kind over time")


def _one_fact(now: Moment) -> None:
    """A fact whole: what it answers, what it came from, who was shown it."""
    last = now.run.last_facts(now.table, now.seq, 1)
    if not last:
        hint("Nothing has happened yet.")
        return
    named, before = asked("fact"), st.session_state.get("fact")
    st.session_state["fact"] = next(one for one in (named, before, last[0].fact.id) if one is not None)
    number = st.number_input("Fact", 0, key="fact")
    keep("fact", number)
    fact = now.run.facts_by_id(now.table, [int(number)]).get(int(number))
    if fact is None or fact.seq > now.seq:
        hint(f"There is no fact {number} up to this moment; the last is {last[0].fact.id}.")
        return
    answered = now.run.facts_by_id(now.table, fact.fact.answers[:20])
    show(fact_line(now, fact))
    if answered:
        show(tag("h2", "It answers"), *(fact_line(now, one) for one in answered.values()))
    maker = maker_of(now.run, fact)
    if maker:
        show(tag("div", f"It came from a decision that {clipped(fact.fact.actor, 40)} made on what it saw at "
                        f"{now.time(maker.action.seen)} (place {maker.seq} of the log).", cls="dim"))  # fmt: skip
    shown = now.run.shown_to(now.table, fact, now.seq)
    pieces = [chip(f"{name} at {now.time(tick)}") for name, (_, tick) in list(shown.items())[:100]]
    show(tag("h2", f"Shown to {len(shown)}" if shown else "Shown to nobody so far"), tag("div", *pieces, cls="row"))
