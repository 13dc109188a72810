"""Trajectories: one decision a row, as the engine had it. Nothing here is tokenised again, and nothing is dropped silently.

A row's `reward` is what its agent earned from this decision up to its next one (all that came earlier belongs to the
first), so the rewards of an agent's rows sum to what it earned in the episode.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from sim.types import JSON, AgentId, Logprobs, Tokens

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
    """Whether the learner may learn from it: a scripted, frozen or remote agent's rows are kept, and not learnt from."""
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
