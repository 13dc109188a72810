"""Small games in extensive form: a world's whole tree, found by playing every line of it in the world itself.

Luck is enumerated where OpenSpiel says what chance can do; elsewhere a world that draws is refused. Agents asked at the
same time move one after the other without seeing each other's moves. Left out: answers that are not choices, and worlds
whose information states forget what their owner did (imperfect recall).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from sim.streams import Key, Streams
from sim.types import Action, AgentId, Choice, Outcome, Seat, Turn, World

CHANCE = -1
END = -2
LARGEST = 100_000
"""Nodes of a tree."""


class TreeError(ValueError):
    """The world has no tree that could be used; the text says why."""


class Node(NamedTuple):
    """A place in the tree."""

    seat: int
    """Who decides, as an index of the cast; or CHANCE, or END."""
    key: str = ""
    """The information state of whoever decides."""
    children: tuple[int, ...] = ()
    """Indices of the nodes that follow, one per option."""
    chances: tuple[float, ...] = ()
    """Their probabilities, at CHANCE."""
    payoffs: tuple[float, ...] = ()
    """What each seat has earned on the way, at END."""


class Tree(NamedTuple):
    """A game as a tree."""

    agents: tuple[AgentId, ...]
    """In cast order."""
    nodes: tuple[Node, ...]
    """The root first, parents before children."""
    owner: Mapping[str, int]
    """By information state, whose it is."""
    options: Mapping[str, tuple[str, ...]]
    """By information state, its legal answers."""
    before: Mapping[str, tuple[str, int] | None]
    """By information state, the one its owner was in before and the option (by index) that led on; None: its first."""
    turns: Mapping[str, tuple[Turn, ...]]
    """By information state, what was seen in each of its histories."""


def tree(world: World, seats: Sequence[Seat], largest: int = LARGEST) -> Tree:
    """The tree of a world that ends, for this cast. The world is reset many times.

    Raises TreeError where a turn has no key or is no choice, where luck can't be enumerated, where an information state
    has different options or pasts in different histories, and beyond `largest` nodes.
    """
    return _Growth(world, seats, largest).tree()


class _Dealt(Streams):
    """Luck given in advance, draw by draw."""

    def __init__(self, luck: Iterable[float]) -> None:
        super().__init__(0)
        self._luck = iter(luck)

    def draw(self, *path: Key) -> float:
        try:
            return next(self._luck)
        except StopIteration:
            raise TreeError(f"the world draws luck that can't be enumerated: {path}") from None


class _Line(NamedTuple):
    """What has happened since the start."""

    luck: tuple[float, ...] = ()
    answers: tuple[tuple[str, ...], ...] = ()
    """Of those who were asked together, in cast order."""


class _Growth:
    """A tree that grows."""

    def __init__(self, world: World, seats: Sequence[Seat], largest: int) -> None:
        self._world, self._seats, self._largest = world, seats, largest
        self._agents = tuple(seat.agent for seat in seats)
        self._nodes: list[Node | None] = []
        self._options: dict[str, tuple[str, ...]] = {}
        self._owner: dict[str, int] = {}
        self._before: dict[str, tuple[str, int] | None] = {}
        self._turns: dict[str, list[Turn]] = {}

    def tree(self) -> Tree:
        self._grow(_Line(), self._start(), {})
        nodes = [node for node in self._nodes if node is not None]
        turns = {key: tuple(each) for key, each in self._turns.items()}
        return Tree(self._agents, tuple(nodes), self._owner, self._options, self._before, turns)

    def _start(self) -> Any:
        """OpenSpiel's initial state where the world plays one of its games, else None."""
        self._world.reset(self._seats, Streams(0))
        state = self._world.state()
        if "history" not in state:
            return None
        if state["params"]["hands"] != 1:
            raise TreeError("a tree is of one game: set world.hands to 1")
        import pyspiel

        return pyspiel.load_game(state["params"]["game"]).new_initial_state()

    def _grow(self, line: _Line, spiel: Any, last: Mapping[int, tuple[str, int]]) -> int:
        """The node after a line; `last` holds each seat's last information state and option."""
        if spiel is not None and spiel.is_chance_node():
            moves, chances = zip(*spiel.chance_outcomes(), strict=True)
            at = self._add()
            lows = accumulate(chances, initial=0.0)
            children = [
                self._grow(line._replace(luck=(*line.luck, low + chance / 2)), spiel.child(move), last)
                for move, low, chance in zip(moves, lows, chances, strict=False)
            ]
            self._nodes[at] = Node(CHANCE, children=tuple(children), chances=tuple(chances))
            return at
        if spiel is not None and spiel.is_terminal():
            return self._add(Node(END, payoffs=tuple(spiel.returns())))
        turns, earned = self._play(line)
        if spiel is not None and self._world.state()["history"] != spiel.history():
            raise TreeError(f"the world deals another game than OpenSpiel after {spiel.history()}")
        if not turns:
            return self._add(Node(END, payoffs=tuple(earned.get(agent, 0.0) for agent in self._agents)))
        seats = {seat: self._seen(seat, turn, last) for seat, turn in turns.items()}
        return self._decide(line, spiel, last, list(seats.items()), ())

    def _decide(
        self,
        line: _Line,
        spiel: Any,
        last: Mapping[int, tuple[str, int]],
        asked: Sequence[tuple[int, str]],
        moves: tuple[int, ...],
    ) -> int:
        """The node of the next of those asked together, after the moves of the ones before it."""
        if len(moves) == len(asked):
            answers = tuple(self._options[key][move] for (_, key), move in zip(asked, moves, strict=True))
            after = {seat: (key, move) for (seat, key), move in zip(asked, moves, strict=True)}
            return self._grow(
                line._replace(answers=(*line.answers, answers)),
                _moved(spiel, {seat: move for (seat, _), move in zip(asked, moves, strict=True)}),
                {**last, **after},
            )
        seat, key = asked[len(moves)]
        at = self._add()
        options = range(len(self._options[key]))
        children = [self._decide(line, spiel, last, asked, (*moves, move)) for move in options]
        self._nodes[at] = Node(seat, key, tuple(children))
        return at

    def _add(self, node: Node | None = None) -> int:
        """Its index; one that is None is filled in later."""
        if len(self._nodes) >= self._largest:
            raise TreeError(f"the game has more than {self._largest} nodes")
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _seen(self, seat: int, turn: Turn, last: Mapping[int, tuple[str, int]]) -> str:
        """Keep a turn of an information state; its key."""
        if turn.key is None:
            raise TreeError(f"{turn.agent} is in no information state at tick {turn.now}: its turn has no key")
        if not isinstance(turn.format, Choice):
            raise TreeError(f"information state {turn.key!r} asks for more than a choice")
        now = (seat, turn.format.options, last.get(seat))
        if turn.key in self._turns:
            known = (self._owner[turn.key], self._options[turn.key], self._before[turn.key])
            if known != now:
                raise TreeError(f"information state {turn.key!r} differs from one history to another: {known}, {now}")
        self._owner[turn.key], self._options[turn.key], self._before[turn.key] = now
        self._turns.setdefault(turn.key, []).append(turn)
        return turn.key

    def _play(self, line: _Line) -> tuple[dict[int, Turn], dict[AgentId, float]]:
        """Who is asked after a line, by seat, and what everybody has earned."""
        earned: dict[AgentId, float] = {}
        outcome = self._world.reset(self._seats, _Dealt(line.luck))
        turns, now = self._asked(outcome, earned)
        for answers in line.answers:
            actions = [
                Action(agent=turn.agent, answer=answer, seen=now, shows=turn.shows)
                for turn, answer in zip(turns.values(), answers, strict=True)
            ]
            turns, now = self._asked(self._world.step(now, actions), earned)
        return turns, earned

    def _asked(self, outcome: Outcome, earned: dict[AgentId, float]) -> tuple[dict[int, Turn], int]:
        """Who is asked next, by seat, and when."""
        for agent, reward in outcome.rewards.items():
            earned[agent] = earned.get(agent, 0.0) + reward
        now = min((wake.tick for wake in outcome.wakes), default=0)
        woken = {wake.agent for wake in outcome.wakes if wake.tick == now}
        seen = {seat: self._world.observe(now, agent) for seat, agent in enumerate(self._agents) if agent in woken}
        return {seat: turn for seat, turn in seen.items() if turn is not None}, now


def _moved(spiel: Any, moves: Mapping[int, int]) -> Any:
    """OpenSpiel's state after moves, given as indices of what was legal, by player."""
    if spiel is None:
        return None
    made = {player: spiel.legal_actions(player)[move] for player, move in moves.items()}
    if not spiel.is_simultaneous_node():
        return spiel.child(made[spiel.current_player()])
    child = spiel.clone()
    child.apply_actions([made.get(player, -1) for player in range(spiel.num_players())])
    return child
