"""What one agent or one channel lived through, in order, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from rich.text import Text

from sim.commands.failures import BadInput
from sim.commands.terminal import Framed, cell
from sim.library import check_table
from sim.quantities import readable
from sim.record.reader import Exposure, Run
from sim.scenarios.located import nearest, shown
from sim.types import RecordedDecision, RecordedFact


def agent_transcript(path: Path, agent: str, table: int, limit: int) -> Iterator[Any]:
    """What an agent saw for the first time, what it was asked and answered, and what it did. Raises BadInput."""
    with Run(path) as run:
        check_table(run, table)
        tick_ms = run.manifest().tick_ms
        known = [member.seat.agent for member in run.cast(table)]
        if agent not in known:
            raise BadInput(f"no agent {shown(agent)} at table {table}; {nearest(agent, known)}")
        seen: dict[int, list[Exposure]] = {}
        for exposure in run.seen_by(agent, table):
            seen.setdefault(exposure.decision, []).append(exposure)
        decision = None
        for decision in islice(run.decisions(table, agent), limit):
            for exposure in seen.get(decision.seq, ()):
                yield _fact_line(exposure.fact, tick_ms, "saw")
            yield from _asked(run, decision, tick_ms)
        if decision is None:
            yield cell(f"{agent} has decided nothing so far")


def _asked(run: Run, decision: RecordedDecision, tick_ms: float) -> Iterator[Any]:
    for call in run.calls_of(decision):
        completion = call.completion
        said = completion.error if completion.finish == "error" else completion.text
        title = f"{call.purpose} at {readable(decision.action.seen, tick_ms)}"
        note = f"{completion.finish}, {completion.usage.prompt} + {completion.usage.completion} tokens"
        yield Framed(said if said is not None else "(nothing)", title, note)
    action, result = decision.action, decision.result
    line = f"{readable(decision.tick, tick_ms):>10}  did  {orjson.dumps(action.answer).decode()}  {action.how}"
    notes = [note for note in (action.reason, result.reason) if note]
    stale = "  stale" if result.status == "stale" else ""
    yield cell(line + stale + (f"  ({'; '.join(notes)})" if notes else ""), "bold")


def channel_transcript(path: Path, channel: str, table: int, limit: int) -> Iterator[Any]:
    """The facts whose audience is a channel, or all. Raises BadInput where there is none."""
    with Run(path) as run:
        check_table(run, table)
        tick_ms = run.manifest().tick_ms
        said = 0
        for recorded in islice(run.channel(channel, table), limit):
            said += 1
            yield _fact_line(recorded, tick_ms)
        if not said:
            audiences = {one.fact.audience for one in run.facts(table=table)}
            known = [audience for audience in audiences if isinstance(audience, str)]
            raise BadInput(f"nothing was said in {shown(channel)} at table {table}; {nearest(channel, known)}")


def _fact_line(recorded: RecordedFact, tick_ms: float, verb: str = "") -> Text:
    fact = recorded.fact
    data = ", ".join(f"{key}: {value}" for key, value in fact.data.items())
    head = " ".join(part for part in (verb, fact.kind, f"#{fact.id}", fact.actor) if part)
    return cell(f"{readable(recorded.tick, tick_ms):>10}  {head}  {data}".rstrip(), "dim" if verb else "")
