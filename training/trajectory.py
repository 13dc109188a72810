"""Trajectories: one decision a row, as the engine had it. Nothing is tokenised again, nothing dropped silently.

What an agent said before it answered (its subgoal, its thoughts) stands in rows of its own, of the same decision; what
it wrote into its memory can. The answer is the last of a decision's rows.

A row's `reward` is what its agent earned from this decision up to its next one (all that came earlier belongs to the
first), so the rewards of an agent's rows sum to what it earned in the episode.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from sim.answers import parse
from sim.record.reader import RecordedCall, Run
from sim.scenarios.scenario import loads
from sim.types import JSON, AgentId, Choice, Logprobs, OptionLogprobs, RecordedDecision, Tokens

Kind: TypeAlias = Literal["think", "subgoal", "switch", "action", "summary"]
"""What tokens are: a thought, a subgoal, whether it is switched to another one, the answer, or a memory."""
WRITING: Mapping[str, Kind] = {"memory": "summary", "reflect": "summary"}
"""By purpose, calls whose answers an agent remembers."""
SAYING: Mapping[str, Kind] = {"think": "think", "subgoal": "subgoal", "switch": "switch"}
"""By purpose, calls that an agent makes before it answers."""
Field: TypeAlias = str
"""Name of a field of `Row`; credit, modulation and filters group rows by tuples of them."""


class Span(Struct, frozen=True, kw_only=True):
    """What a part of the sampled tokens is."""

    kind: Kind
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
    asked: str = ""
    """The learner whose seat it is, `name@v`: another than `policy` where a teacher answered; empty: nobody learns."""
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
    bounds: tuple[int, int] | None = None
    """Of free text: most characters, and most tokens with end-of-turn; None: no free text."""
    option_logprobs: OptionLogprobs = ()
    """Of the options under the behaviour policy; None where it is not known, empty where none is."""
    explored: float = 0.0
    """Share of uniform exploration mixed into the behaviour (ε); 0: none."""
    spans: tuple[Span, ...] = ()
    """What its parts are; each call of an agent of ours is one of them."""
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

    def has(self, *kinds: str) -> bool:
        """Whether a part of it is of one of these kinds."""
        return any(span.kind in kinds for span in self.spans)


def rows(
    path: Path,
    *,
    family: str = "",
    trained: Collection[str] = (),
    entries: Collection[str] | None = None,
    writing: bool = False,
    options: bool = False,
) -> list[Row]:
    """Every decision of a stored run, episode by episode, in log order. `trained` are the policies that learn.

    They learn where they spoke for one of these `entries` of `models:` (all, where not given). What an agent said
    before it answered and, with `writing`, what it wrote into its memory has rows of its own, before the one that
    decided and of the same turn. With `options`, rows hold what the record knows of options that were not sampled (a
    training reads that off its weights instead).

    Raises TrajectoryError where the record lacks what the learner needs of a trained policy's call.
    """
    with Run(path) as run:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, Path(manifest.base), file=f"{path.name}: scenario")
        calls = _calls(run)
        models = frozenset(scenario.models if entries is None else entries)
        contexts = {name: model.context for name, model in scenario.models.items()}
        hashes = {row[0]: row[2] for page in run.pages("policies") for row in page}
        found: list[Row] = []
        for table in range(run.tables):
            group = f"{manifest.id}/{table // scenario.group}"
            spec = _Episode(
                name=f"{manifest.id}:{table}",
                group=group,
                family=family or scenario.name,
                trained=frozenset(trained),
                models=models,
                contexts=contexts,
                hashes=hashes,
                writing=writing,
                options=options,
            )
            found += _episode(run, table, spec, calls)
    return found


def earned(rows: Iterable[Row]) -> dict[tuple[str, AgentId], float]:
    """What each seat earned in each episode: a decision counts once, in however many rows it stands."""
    decisions = {(row.episode, row.seat, row.turn): row.reward for row in rows}
    found: dict[tuple[str, AgentId], float] = {}
    for (episode, seat, _), reward in decisions.items():
        found[episode, seat] = found.get((episode, seat), 0.0) + reward
    return found


class TrajectoryError(Exception):
    """The record cannot be learnt from; the text says what it lacks."""


class _Episode(NamedTuple):
    """What all rows of one episode share."""

    name: str
    group: str
    family: str
    trained: frozenset[str]
    models: frozenset[str]
    """Entries of `models:` whose calls are learnt from."""
    contexts: Mapping[str, int]
    """Tokens that prompt and answer may take together, by entry."""
    hashes: Mapping[str, str]
    writing: bool
    options: bool


_Key: TypeAlias = tuple[int, AgentId, int, int]


def _calls(run: Run) -> dict[_Key, list[RecordedCall]]:
    """The calls of every decision; the last one's answer was judged."""
    found: dict[_Key, list[RecordedCall]] = {}
    for call in run.calls():
        found.setdefault(call.key[:4], []).append(call)
    return found


def _episode(run: Run, table: int, spec: _Episode, of: Mapping[_Key, list[RecordedCall]]) -> list[Row]:
    members = run.cast(table)
    roles = {member.seat.agent: member.seat.role for member in members}
    decisions = list(run.decisions(table))
    made = [of.get((table, one.action.agent, one.action.seen, one.nth), []) for one in decisions]
    calls = [each[-1] if each else None for each in made]
    speakers = {member.seat.agent: member.model or "scripted" for member in members}
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
        row = Row(
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
        )
        told = {**SAYING, **WRITING} if spec.writing else SAYING
        found += [_beside(row, each, told[each.purpose], spec) for each in made[place][:-1] if each.purpose in told]
        found.append(replace(row, **_said(call, "action", spec)))
        turns[agent] += 1
    return found


def _beside(row: Row, call: RecordedCall, kind: Kind, spec: _Episode) -> Row:
    """What was said, or written into the memory, before the row's answer: a row of the same decision."""
    said = _said(call, kind, spec)
    answer: JSON = call.completion.text
    if said["options"]:
        answer, _ = parse(Choice(options=said["options"]), call.completion.text)
    ends = ("stop", "length") if kind in ("think", "subgoal") else ("stop",)
    whole = answer is not None and call.completion.finish in ends and not call.completion.error
    return replace(row, **said, answer=answer, how="chosen" if whole else "faulted")


def _said(call: RecordedCall | None, kind: Kind, spec: _Episode) -> dict[str, Any]:
    """What a call adds to a row."""
    if call is None:
        return {"trained": False}
    completion = call.completion
    learning = call.policy in spec.trained and call.model in spec.models
    policy = completion.policy or call.policy
    trained = learning and policy.partition("@")[0] == call.policy.partition("@")[0]
    if trained and completion.ids and not completion.prompt_ids:
        raise TrajectoryError(
            f"{spec.name}: the prompts of {call.policy!r} are not recorded as tokens; set record_tokens: true for "
            f"model {call.model!r}"
        )
    if trained and float(call.sampling["top_p"]) < 1:
        raise TrajectoryError(f"{spec.name}: {call.policy!r} was sampled with top_p below 1; nothing unbiased follows")
    form, most = orjson.loads(call.format), int(call.sampling["max_tokens"])
    room = spec.contexts[call.model] - len(completion.prompt_ids)
    return {
        "trained": trained,
        "policy": policy,
        "asked": call.policy if learning else "",
        "policy_hash": spec.hashes.get(policy, ""),
        "prompt": completion.prompt_ids,
        "ids": completion.ids,
        "logprobs": completion.logprobs,
        "distribution": completion.distribution,
        "temperature": float(call.sampling["temperature"]),
        "options": tuple(form.get("choice", ())),
        "option_logprobs": completion.option_logprobs if spec.options else (),
        "bounds": (form["text"], max(min(most, room), 2)) if "text" in form else None,
        "spans": (Span(kind=kind, start=0, stop=len(completion.ids)),),
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
