"""A memoryless language-model agent as a table: the probability of every option in every information state of a game.

Every prompt is the one that the agent gets in play, and all histories of an information state must give the same one.
Probabilities are the policy's own at a stated temperature: exploration is mixed in elsewhere, and is not in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, fsum
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from agents.llm import LLMAgent
from sim.scenarios.plan import plan
from sim.scenarios.scenario_schema import Scenario
from sim.streams import Streams
from sim.types import Agent, Choice, Engine, Message, Request, Sampling, Tokens, Turn
from training.constraint import Masks
from training.extensive import LARGEST, Tree, tree

Tabular: TypeAlias = Mapping[str, Mapping[str, float]]
"""By information state, the probability of every option."""
Read: TypeAlias = Callable[[Sequence[Request]], Sequence[Sequence[float]]]
"""log P of every option of each request, in the order of the options."""

_LOST = 1e-3
"""Probability that the options of a question may lack together before the reading counts as wrong."""


class TabulateError(Exception):
    """The agent can't be tabulated; the text says why."""


class Questions(NamedTuple):
    """What a scenario's language-model agents are asked, ready to be read again and again."""

    tree: Tree
    asked: Mapping[str, Request]
    """By information state; seats that no model plays have none."""


def questions(scenario: Scenario, table: int = 0, largest: int = LARGEST) -> Questions:
    """The game of one of the scenario's tables and all prompts in it; takes a while, so keep it.

    Prompts are of this table's cast: personas that are drawn by table make others elsewhere. Raises TreeError where the
    world has no small tree, TabulateError where an agent remembers or a prompt is no function of its state.
    """
    planned = plan(scenario).tables[table]
    game = tree(planned.world, [player.member.seat for player in planned.players], largest)
    return Questions(game, asked(game, [player.agent for player in planned.players]))


def asked(game: Tree, agents: Sequence[Agent]) -> dict[str, Request]:
    """What the agents, in cast order, ask their models in each information state. Raises TabulateError."""
    found: dict[str, Request] = {}
    for key, turns in game.turns.items():
        agent = agents[game.owner[key]]
        if not isinstance(agent, LLMAgent):
            continue
        if agent.memory_tokens:
            raise TabulateError(f"{agent.member.seat.agent} remembers earlier turns: set memory_tokens to 0")
        if agent.emotion is not None:
            raise TabulateError(f"{agent.member.seat.agent} has an emotion, which no key tells: leave it out")
        first, *others = (_request(agent, turn) for turn in turns)
        if any(other != first for other in others):
            raise TabulateError(f"information state {key!r} gives different prompts in different histories")
        found[key] = first
    return found


def _request(agent: LLMAgent, turn: Turn) -> Request:
    """The first model call of a decision, which has to be the choice itself."""
    (request,) = next(agent.act(turn, Streams(0)))
    if request.format != turn.format:
        raise TabulateError(f"{turn.agent} is asked something else before it chooses in {turn.key!r}")
    return request


def tabulate(asked: Mapping[str, Request], read: Read) -> dict[str, dict[str, float]]:
    """The table of what is asked; questions with the same words are read once.

    Where the scenario has several policies, ask for those of one by `Request.model`, and join the tables. Raises
    TabulateError where the options of a question don't have probability 1 together.
    """
    distinct = {(one.messages, _options(one)): one for one in asked.values()}
    said = dict(zip(distinct, read(list(distinct.values())), strict=True))
    found = {}
    for key, one in asked.items():
        options = _options(one)
        shares = [exp(logprob) for logprob in said[one.messages, options]]
        total = fsum(shares)
        if abs(total - 1) > _LOST:
            raise TabulateError(f"information state {key!r}: its options have probability {total:.4f} together")
        found[key] = {option: share / total for option, share in zip(options, shares, strict=True)}
    return found


def _options(request: Request) -> tuple[str, ...]:
    assert isinstance(request.format, Choice)
    return request.format.options


def from_engine(engine: Engine, masks: Masks, temperature: float, policy: str = "") -> Read:
    """Read by `Engine.score` of every option's tokens, under the engine's own mask at this temperature (above 0)."""
    sampling = Sampling(temperature=_above_zero(temperature))

    def read(requests: Sequence[Request]) -> list[list[float]]:
        made = [replace(request, sampling=sampling, policy=policy) for request in requests]
        sequences = [masks(_options(request)).sequences for request in requests]
        pairs = [(request, ids) for request, each in zip(made, sequences, strict=True) for ids in each]
        scores = iter(engine.score([request for request, _ in pairs], [ids for _, ids in pairs]).result())
        return [[fsum(next(scores)) for _ in each] for each in sequences]

    return read


def from_model(model: Any, prompt: Callable[[tuple[Message, ...]], Tokens], masks: Masks, temperature: float) -> Read:
    """Read from the trainer's model itself; `prompt` makes the token ids of messages, as `Encoder.prompt` does."""
    from training.forward import option_logprobs

    _above_zero(temperature)

    def read(requests: Sequence[Request]) -> list[tuple[float, ...]]:
        asked = [(prompt(request.messages), masks(_options(request))) for request in requests]
        return option_logprobs(model, asked, temperature)

    return read


def _above_zero(temperature: float) -> float:
    if not temperature > 0:
        raise TabulateError(f"probabilities at temperature {temperature} are not defined")
    return temperature
