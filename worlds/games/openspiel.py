"""Every sequential or simultaneous game of OpenSpiel (Lanctot et al. 2019) as a world; one game after the other.

The position is the list of moves, chance's among them; what a player is told is what OpenSpiel says that it knows.
Left out on purpose: mean-field games, and games that draw their luck themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Change,
    Choice,
    Fact,
    FactId,
    Join,
    Leave,
    Metric,
    Outcome,
    Result,
    Say,
    Seat,
    Set,
    Turn,
    Wake,
)
from worlds.changes import changed
from worlds.games.openspiel_outcomes import METRICS
from worlds.games.openspiel_rules import board, known, load, moved, movers, witnesses
from worlds.games.openspiel_words import NAMED, Wording, result, sentence, who
from worlds.games.strategies import drawn
from worlds.happened import Happened
from worlds.notices import Notices

CAUTIOUS = ("pass", "fold", "check")
"""A legal move of such a name is the default; where there is none, the first in OpenSpiel's order."""


class OpenSpielParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    game: str
    """As OpenSpiel writes it: "leduc_poker", "goofspiel(num_cards=4,imp_info=True)"."""
    hands: int = Field(default=1, ge=1)
    """Games that are played one after the other."""
    rotate: bool = False
    """Whether everybody moves on by one seat after each game."""
    pause: Ticks = 1
    """Time between two games."""
    rules: bool = True
    """Whether the rules are told; who learns them by playing needs no words for them, and reads less."""

    @model_validator(mode="after")
    def _playable(self) -> OpenSpielParams:
        load(self.game)
        return self


class OpenSpielGame:
    """Games of one kind, for as many agents as it has players; rewards are its own, as they come."""

    Params: ClassVar[type[BaseModel]] = OpenSpielParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"hands"})

    def __init__(self, params: OpenSpielParams) -> None:
        self._given = params
        self._game = load(params.game)
        kind = self._game.get_type()
        self._name = str(kind.short_name)
        wording = NAMED.get(self._name, Wording)
        self._words = wording(kind.long_name, self._game.get_parameters(), self._game.num_players())
        self._rules = self._words.rules() if params.rules else ""

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Seat the cast in order and start the first game. Raises ValueError where the seats do not fit the game."""
        if len(seats) != self._game.num_players():
            raise ValueError(f"{self._name} is for {self._game.num_players()} players, not for {len(seats)}")
        self._params = self._given
        self._streams = streams
        self._agents = tuple(seat.agent for seat in seats)
        self._hand = 0
        self._over = False
        self._facts = 0
        self._last: dict[AgentId, list[tuple[FactId, str]]] = {agent: [] for agent in self._agents}
        self._notices = Notices(self._name, self._agents)
        happened = Happened()
        self._start(0, happened)
        return happened.outcome()

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The position as the agent knows it; None where it has not to move, or has moved already."""
        player = self._mover(agent)
        if player is None or now < self._opens or player in self._moves:
            return None
        options = tuple(self._labels(player))
        news = [*self._last[agent], *self._notices.next(agent)]
        return Turn(
            agent=agent,
            now=now,
            view=self._view(player, options, [text for _, text in news]),
            format=Choice(options=options),
            default=next((option for option in options if option.casefold() in CAUTIOUS), options[0]),
            render=self._words.text,
            rules=self._rules,
            shows=(*(fact for fact, _ in news), *self._seen[agent]),
            key=f"{player}:{known(self._state, player)}",
        )

    def _view(self, player: int, options: Sequence[str], news: list[str]) -> dict[str, JSON]:
        return {
            "game": self._name,
            "hand": self._hand,
            "hands": max(self._params.hands, self._hand),
            "me": player,
            "players": list(self._players),
            "known": known(self._state, player),
            "board": board(self._state, player),
            "options": list(options),
            "news": news,
        }

    def _mover(self, agent: AgentId) -> int | None:
        """The agent's player, if it is to move."""
        if self._over or agent not in self._players:
            return None
        player = self._players.index(agent)
        return player if player in movers(self._state) else None

    def _labels(self, player: int) -> dict[str, int]:
        """A player's legal moves in words, each with its number in OpenSpiel; words of two moves carry it too."""
        legal = self._state.legal_actions(player)
        texts = [self._words.label(self._state.action_to_string(player, move)) for move in legal]
        unique = {text for text in texts if text and texts.count(text) == 1}
        return {text if text in unique else f"{text} [{move}]": move for text, move in zip(texts, legal, strict=True)}

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Make the moves; those of a simultaneous position wait for each other."""
        happened = Happened()
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if refusal:
                continue
            self._last[action.agent] = [item for item in self._last[action.agent] if item[0] not in action.shows]
            self._notices.read(action.agent, action.shows)
            player = self._players.index(action.agent)
            self._moves[player] = self._labels(player)[action.answer]
            if len(self._moves) == len(movers(self._state)):
                self._move(self._moves, happened)
                self._go_on(now, happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        if self._over:
            return "the game is over"
        player = self._mover(action.agent)
        if player is None or action.seen < self._opens:
            return "not your turn"
        if player in self._moves:
            return "you have moved already"
        legal = isinstance(action.answer, str) and action.answer in self._labels(player)
        return "" if legal else "not a legal move"

    def _start(self, now: int, happened: Happened) -> None:
        """The next game."""
        shift = self._hand % len(self._agents) if self._params.rotate else 0
        self._hand += 1
        self._players = self._agents[shift:] + self._agents[:shift]
        self._state = self._game.new_initial_state()
        self._moves: dict[int, int] = {}
        self._opens = now
        self._paid = [0.0] * len(self._players)
        self._seen: dict[AgentId, list[FactId]] = {agent: [] for agent in self._agents}
        self._fact(happened, "hand", {"players": list(self._players)}, range(len(self._players)))
        self._go_on(now, happened)

    def _go_on(self, opens: int, happened: Happened) -> None:
        """Draw what chance decides, pay, and ask who is to move, or come to the end."""
        state = self._state
        while state.is_chance_node():
            moves, weights = zip(*state.chance_outcomes(), strict=True)
            luck = self._streams.draw("chance", self._hand, len(state.history()))
            self._move({state.current_player(): moves[drawn(weights, luck)]}, happened)
            state = self._state
        self._pay(happened)
        if state.is_terminal():
            self._finish(opens, happened)
            return
        self._opens = opens
        happened.wakes += [Wake(agent=self._players[player], tick=opens) for player in movers(state)]

    def _move(self, moves: Mapping[int, int], happened: Happened) -> None:
        """Change the position; a fact for each move, seen by those who learn of it."""
        state = self._state
        for player, move in sorted(moves.items()):
            text = self._words.label(state.action_to_string(player, move))
            kind, actor = ("deal", "") if state.is_chance_node() else ("action", self._players[player])
            self._fact(happened, kind, {"text": text}, witnesses(state, moves, player), actor)
        self._state = moved(state, moves)
        self._moves = {}

    def _pay(self, happened: Happened) -> None:
        """What the returns have grown by, to everybody at the end and before it wherever something was won."""
        returns = self._state.returns()
        gains = [new - old for new, old in zip(returns, self._paid, strict=True)]
        if self._state.is_terminal() or any(gains):
            self._paid = returns
            for agent, gain in zip(self._players, gains, strict=True):
                happened.rewards[agent] = happened.rewards.get(agent, 0.0) + gain

    def _finish(self, now: int, happened: Happened) -> None:
        """Lay the cards open, tell everybody its own result, and start the next game if there is one."""
        returns, best = self._state.returns(), max(self._state.returns())
        everybody = range(len(self._players))
        shown = self._words.showdown([known(self._state, player) for player in everybody])
        if shown:
            cards = {self._players[player]: held for player, held in shown.items()}
            opened = self._fact(happened, "showdown", {"cards": cards}, everybody)
        for player, (agent, got) in enumerate(zip(self._players, returns, strict=True)):
            place = "lost" if got < best else "won" if returns.count(best) == 1 else "drew"
            data = {"seat": player + 1, "agent": agent, "got": got, "place": place}
            self._last[agent] = [(self._fact(happened, "result", data, (player,)), result(got))]
            if others := [f"{self._who(player, other)} had {held}" for other, held in shown.items() if other != player]:
                self._last[agent].append((opened, sentence(", ".join(others))))
        self._over = self._hand >= self._params.hands
        if self._over:
            happened.ended |= dict.fromkeys(self._agents, "terminated")
        else:
            self._start(now + self._params.pause, happened)

    def _who(self, player: int, other: int) -> str:
        return who({"me": player, "players": self._players}, other)

    def _fact(
        self, happened: Happened, kind: str, data: dict[str, JSON], to: Sequence[int], actor: AgentId = ""
    ) -> FactId:
        """A fact of the game in progress, seen by these players."""
        audience = tuple(self._players[player] for player in to)
        everybody = len(audience) == len(self._players)
        fact = Fact(
            id=self._facts,
            kind=kind,
            actor=actor,
            audience=ALL if everybody else audience,
            data={"hand": self._hand, **data},
        )
        happened.facts.append(fact)
        self._facts += 1
        for agent in audience:
            self._seen[agent].append(fact.id)
        return fact.id

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set the number of games; Leave, which ends it for all. Raises ValueError for what cannot be done."""
        match change:
            case Say():
                return self._say(change)
            case Set():
                self._params = changed(self._params, change, self.changeable, self._name)
                return Outcome()
            case Join():
                raise ValueError(f"nobody can join {self._name}: all its seats are taken")
            case Leave():
                return self._leave(change.agent)

    def _say(self, say: Say) -> Outcome:
        readers = self._notices.readers(say)
        fact = Fact(id=self._facts, kind="message", audience=say.to, data={"text": say.text})
        self._facts += 1
        self._notices.post(readers, fact.id, f"News: {say.text}")
        return Outcome(facts=[fact])

    def _leave(self, agent: AgentId) -> Outcome:
        """The game in progress stays unfinished: its other players cannot go on."""
        if agent not in self._agents:
            raise ValueError(f"nobody here is called {agent}")
        happened = Happened()
        if not self._over:
            self._over = True
            happened.ended |= {other: "terminated" for other in self._agents if other != agent}
        return happened.outcome()

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "agents": list(self._agents),
            "players": list(self._players),
            "hand": self._hand,
            "history": self._state.history(),
            "moves": {str(player): move for player, move in self._moves.items()},
            "opens": self._opens,
            "paid": list(self._paid),
            "over": self._over,
            "seen": {agent: list(facts) for agent, facts in self._seen.items()},
            "last": {agent: [list(item) for item in items] for agent, items in self._last.items()},
            "unread": self._notices.state(),
            "facts": self._facts,
        }
