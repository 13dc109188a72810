"""Trajectories: one decision a row, as the engine had it. Nothing is tokenised again, nothing dropped silently.

A row's `reward` is what its agent earned from this decision up to its next one (all that came earlier belongs to the
first), so the rewards of an agent's rows sum to what it earned in the episode.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson
from msgspec import Struct

from sim.record.reader import RecordedCall, Run
from sim.scenarios.scenario import loads
from sim.types import JSON, AgentId, Logprobs, RecordedDecision, Tokens

Field: TypeAlias = str
"""Name of a field of `Row`; credit, modulation and filters group rows by tuples of them."""


class Span(Struct, frozen=True, kw_only=True):
    """What a part of the sampled tokens is."""

    kind: Literal["think", "subgoal", "switch", "action", "summary"]
    start: int
    stop: int
    """Positions in `Row.ids`, end excluded."""


class Row(Struct, frozen=True, kw_only=True):
    """One decision of one agent."""

    # --- where it stands ------------------------------------------------------------------------
    episode: str
    """`run:table`."""
    group: str = ""
    """Episodes that start alike: same scenario, same initial state and luck of the world; empty: none."""
    task: str = ""
    """The source task that a proposed task came from; else the group."""
    family: str = ""
    """Task family: the game or scenario."""
    trial: str = ""
    """Episodes of one trial share it."""
    attempt: int = 0
    """n-th episode of its trial."""
    parent: str = ""
    """The row's node in a tree of branches."""
    turn: int = 0
    """n-th decision of its agent in the episode."""
    seat: AgentId = ""
    role: str = ""
    # --- who acted ------------------------------------------------------------------------------
    policy: str = ""
    """Adapter `name@v`; empty: the base model."""
    policy_hash: str = ""
    """Of the adapter's weights."""
    opponents: tuple[str, ...] = ()
    """Policies (or agent classes) of the other seats, in cast order."""
    trained: bool = True
    """Whether the learner may learn from it; rows of scripted, frozen and remote agents are kept all the same."""
    # --- what was asked and said ------------------------------------------------------------------
    prompt: Tokens = ()
    ids: Tokens = ()
    """Sampled tokens, end-of-turn included."""
    logprobs: Logprobs = ()
    """Of the sampled tokens, natural logarithms, under the behaviour policy."""
    distribution: Literal["", "raw", "processed"] = ""
    """Of which distribution: the model's own, or the masked and tempered one that was sampled."""
    temperature: float = 1.0
    options: tuple[str, ...] = ()
    """The choice constraint: the legal answers in the order they were offered; empty: no choice."""
    option_logprobs: tuple[float, ...] = ()
    """Of the options under the behaviour policy, where they are known."""
    explored: float = 0.0
    """Share of uniform exploration mixed into the behaviour (ε); 0: none."""
    spans: tuple[Span, ...] = ()
    # --- what it meant ------------------------------------------------------------------------------
    answer: JSON = None
    """The answer that stood."""
    how: str = "chosen"
    """chosen, retried, defaulted or faulted; of the last two nothing can be learnt."""
    key: str = ""
    """Information state of the agent; empty: the world names none."""
    state: str = ""
    """Hash of the world's whole state, hidden parts included."""
    # --- what came of it ------------------------------------------------------------------------------
    reward: float = 0.0
    ended: Literal["", "terminated", "truncated"] = ""
    """How the agent's episode ended, on its last row."""

    @property
    def valid(self) -> bool:
        """Whether the model itself gave a legal answer."""
        return self.how in ("chosen", "retried")


def rows(path: Path, *, family: str = "", trained: Collection[str] = ()) -> list[Row]:
    """Every decision of a stored run, episode by episode, in log order. `trained` are the policies that learn.

    Raises TrajectoryError where the record lacks what the learner needs of a trained policy's call.
    """
    with Run(path) as run:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, Path(manifest.base), file=f"{path.name}: scenario")
        deciding = _deciding_calls(run)
        hashes = {row[0]: row[2] for page in run.pages("policies") for row in page}
        found: list[Row] = []
        for table in range(run.tables):
            group = f"{manifest.id}/{table // scenario.group}"
            spec = _Episode(f"{manifest.id}:{table}", group, family or scenario.name, frozenset(trained), hashes)
            found += _episode(run, table, spec, deciding)
    return found


class TrajectoryError(Exception):
    """The record cannot be learnt from; the text says what it lacks."""


class _Episode(NamedTuple):
    """What all rows of one episode share."""

    name: str
    group: str
    family: str
    trained: frozenset[str]
    hashes: Mapping[str, str]


_Key: TypeAlias = tuple[int, AgentId, int, int]


def _deciding_calls(run: Run) -> dict[_Key, RecordedCall]:
    """The last call of every decision: the one whose answer was judged."""
    return {call.key[:4]: call for call in run.calls()}


def _episode(run: Run, table: int, spec: _Episode, deciding: Mapping[_Key, RecordedCall]) -> list[Row]:
    cast = run.cast(table)
    roles = {member.seat.agent: member.seat.role for member in cast}
    decisions = list(run.decisions(table))
    calls = [deciding.get((table, one.action.agent, one.action.seen, one.nth)) for one in decisions]
    speakers = {member.seat.agent: member.model or "scripted" for member in cast}
    for one, call in zip(decisions, calls, strict=True):
        if call is not None:
            speakers[one.action.agent] = call.policy or call.model
    rewards = _rewards(run, table, decisions)
    ends = dict(data for _seq, _tick, data in run.events("ended", table))
    ends |= {agent: "truncated" for _seq, _tick, data in run.events("end", table) for agent in data["truncated"]}
    last = {one.action.agent: place for place, one in enumerate(decisions)}
    turns: Counter[AgentId] = Counter()
    found = []
    for place, (one, call) in enumerate(zip(decisions, calls, strict=True)):
        agent = one.action.agent
        found.append(
            Row(
                episode=spec.name,
                group=spec.group,
                task=spec.group,
                family=spec.family,
                turn=turns[agent],
                seat=agent,
                role=roles[agent],
                opponents=tuple(speaker for other, speaker in speakers.items() if other != agent),
                answer=one.action.answer,
                how=one.action.how,
                key=one.key or "",
                state=one.state.hex() if one.state else "",
                reward=rewards[place],
                ended=ends.get(agent, "") if last[agent] == place else "",
                **_said(call, spec),
            )
        )
        turns[agent] += 1
    return found


def _said(call: RecordedCall | None, spec: _Episode) -> dict[str, Any]:
    """What the deciding call adds to a row."""
    if call is None:
        return {"trained": False}
    completion = call.completion
    trained = call.policy in spec.trained
    if trained and completion.ids and not completion.prompt_ids:
        raise TrajectoryError(
            f"{spec.name}: the prompts of {call.policy!r} are not recorded as tokens; set record_tokens: true for "
            f"model {call.model!r}"
        )
    if trained and float(call.sampling["top_p"]) < 1:
        raise TrajectoryError(f"{spec.name}: {call.policy!r} was sampled with top_p below 1; nothing unbiased follows")
    return {
        "trained": trained,
        "policy": completion.policy or call.policy,
        "policy_hash": spec.hashes.get(completion.policy or call.policy, ""),
        "prompt": completion.prompt_ids,
        "ids": completion.ids,
        "logprobs": completion.logprobs,
        "distribution": completion.distribution,
        "temperature": float(call.sampling["temperature"]),
        "options": tuple(orjson.loads(call.format).get("choice", ())),
    }


def _rewards(run: Run, table: int, decisions: Sequence[RecordedDecision]) -> list[float]:
    """What each decision's agent earned up to its next decision; before its first, that counts for the first."""
    places: dict[AgentId, list[int]] = {}
    for place, one in enumerate(decisions):
        places.setdefault(one.action.agent, []).append(place)
    earned = [0.0] * len(decisions)
    for seq, _tick, data in run.events("rewards", table):
        for agent, reward in data.items():
            if own := places.get(agent):
                before = bisect_left(own, seq, key=lambda place: decisions[place].seq)
                earned[own[max(before - 1, 0)]] += reward
    return earned
