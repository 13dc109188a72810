"""Matrix games: n players, simultaneous moves, one-shot or repeated, with or without talk beforehand.

Moves are hidden until everybody of a match has answered, or until the deadline, when whoever is missing plays the
default; so who thinks faster learns nothing. Matches are independent of each other and keep their own rounds.
A player who leaves ends a match of two; in a larger one its seat plays the default from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel

from sim.streams import Streams
from sim.types import (
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
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
    Text,
    Turn,
    Wake,
)
from worlds.changes import changed
from worlds.games.matches import PAIRINGS, Match
from worlds.games.outcomes import METRICS
from worlds.games.paraphrase import paraphrased
from worlds.games.payoffs import text
from worlds.games.settings import MatrixParams
from worlds.games.words import recap, rules, words
from worlds.happened import Happened
from worlds.notices import Notices

SILENCE = "..."
"""The words of whoever has nothing to say; nobody hears them."""


class Matrix:
    """Matches of a normal-form game; rewards are the payoffs of each round."""

    Params: ClassVar[type[BaseModel]] = MatrixParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"rounds", "continuation", "deadline", "channel"})

    def __init__(self, params: MatrixParams) -> None:
        self._given = params
        self._game = params.table()
        self._rules = [
            rules(self._game, me, params.talk, params.tokens) if params.rules else ""
            for me in range(self._game.players)
        ]
        safe = self._game.safe
        self._default = safe if params.default is None else (params.default,) * self._game.players

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Make the matches and open those that can start. Raises ValueError where the seats do not fit the game."""
        agents = [seat.agent for seat in seats]
        self._params = self._given
        self._streams = streams
        if self._params.pairing == "all_in_one" and len(agents) != self._game.players:
            raise ValueError(f"this game is for {self._game.players} players in one match, not for {len(agents)}")
        groups = PAIRINGS[self._params.pairing](agents, self._game.players)
        self._matches = [Match(number, players) for number, players in enumerate(groups)]
        self._deadlines: dict[int, list[int]] = {}
        self._agenda: dict[AgentId, list[int]] = {agent: [] for agent in agents}
        self._lobby: list[AgentId] = []
        self._notices = Notices("a matrix game", agents)
        self._facts = 0
        for match in self._matches:
            for agent in match.players:
                self._agenda[agent].append(match.number)
        happened = Happened()
        self._start(0, happened, agents)
        return happened.outcome()

    def _fact(
        self,
        happened: Happened,
        kind: str,
        to: Audience,
        data: dict[str, JSON],
        actor: AgentId = "",
        answers: tuple[FactId, ...] = (),
    ) -> FactId:
        happened.facts.append(Fact(id=self._facts, kind=kind, actor=actor, audience=to, data=data, answers=answers))
        self._facts += 1
        return self._facts - 1

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question of the agent's match; None where it has answered, or has no match."""
        match = self._current(agent)
        if match is None or not match.asks or now < match.opens or agent in match.given:
            return None
        me = match.players.index(agent)
        notices = self._notices.next(agent)
        shown = [match.result] if match.result is not None else []
        shown += [fact for fact, _, _ in match.heard] + [fact for fact, _ in notices]
        return Turn(
            agent=agent,
            now=now,
            view=self._view(match, me, [text for _, text in notices]),
            format=self._format(match, me),
            default=self._answer_for(match, me),
            render=words,
            recap=recap,
            rules=self._rules[me],
            shows=tuple(shown),
            key=self._key(match, me),
        )

    def _key(self, match: Match, me: int) -> str | None:
        """The joint moves so far; None where something was said, or where the view has forgotten the first of them."""
        if self._params.talk != "none" or match.played > len(match.recent):
            return None
        return f"{me}:{' '.join(text(joint) for joint in match.recent)}"

    def _view(self, match: Match, me: int, notices: list[str]) -> dict[str, JSON]:
        params = self._params
        played = bool(match.recent)
        return {
            "phase": match.phase,
            "fresh": match.phase == "talk" or params.talk == "none",
            "match": match.number,
            "round": match.round,
            "rounds": None if params.continuation else max(params.rounds, match.round),
            "me": me,
            "players": list(match.players),
            "actions": self._game.actions,
            "payoffs": self._game.views[me],
            "tokens": list(params.tokens) if params.talk == "restricted" else [],
            "heard": [(seat, text) for _, seat, text in match.heard],
            "recent": list(match.recent),
            "got": match.got[me] if played else None,
            "total": match.totals[me] if played else 0.0,
            "tally": dict(match.tally),
            "news": notices,
        }

    def _format(self, match: Match, me: int) -> Choice | Text:
        if match.phase == "move":
            return Choice(options=self._game.actions[me])
        if self._params.talk == "restricted":
            return Choice(options=self._params.tokens)
        return Text(max_chars=self._params.message_chars)

    def _answer_for(self, match: Match, me: int) -> str:
        """The answer of whoever gives none."""
        if match.phase == "move":
            return self._game.actions[me][self._default[me]]
        return self._params.tokens[0] if self._params.talk == "restricted" else SILENCE

    def _current(self, agent: AgentId) -> Match | None:
        agenda = self._agenda.get(agent)
        return self._matches[agenda[0]] if agenda else None

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take answers in; close the phases that are complete or out of time."""
        happened = Happened()
        touched: set[int] = set()
        late = {number for number in self._deadlines.pop(now, ()) if self._matches[number].closes == now}
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if not refusal:
                touched.add(self._take(action))
        for number in sorted(touched | late):
            if self._matches[number].complete or number in late:
                self._close(now, self._matches[number], happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        match = self._current(action.agent)
        if match is None:
            return "no match to play"
        if not match.asks or action.seen < match.opens:
            return "that round is over"
        if action.agent in match.given:
            return "already answered"
        options = self._format(match, match.players.index(action.agent))
        legal = isinstance(action.answer, str) and (isinstance(options, Text) or action.answer in options.options)
        return "" if legal else f"not an answer to the question: {match.phase}"

    def _take(self, action: Action) -> int:
        """Keep an answer, hidden; returns its match."""
        self._notices.read(action.agent, action.shows)
        number = self._agenda[action.agent][0]
        match = self._matches[number]
        match.given[action.agent] = action.answer if action.meant or match.phase == "move" else SILENCE
        if match.phase == "move" and not action.meant:
            match.missed.append(action.agent)
        return number

    def _close(self, now: int, match: Match, happened: Happened) -> None:
        """End a phase with what was given."""
        missing = [agent for agent in match.present if agent not in match.given]
        if match.phase == "talk":
            self._speak(match, happened)
            self._ask("move", now, match, happened, missing)
            return
        match.missed += [agent for agent in match.players if agent not in match.given]
        self._resolve(match, happened)
        params = self._params
        luck = ("continue", match.number, match.round)
        if match.round < params.rounds or (params.continuation and self._streams.draw(*luck) < params.continuation):
            self._next_round(now + params.pause, match, happened, missing)
        else:
            self._end(now, match, "rounds", happened)

    def _speak(self, match: Match, happened: Happened) -> None:
        """Everybody hears at once what each has said."""
        for seat, agent in enumerate(match.players):
            said = self._carried(match.given.get(agent, SILENCE).strip())
            if said != SILENCE:
                data = {"match": match.number, "round": match.round, "text": said}
                match.heard.append((self._fact(happened, "message", match.players, data, agent), seat, said))

    def _carried(self, said: str) -> str:
        """What arrives of words."""
        channel = self._params.channel if self._params.talk == "explicit" else "open"
        return SILENCE if channel == "cut" else paraphrased(said) if channel == "paraphrased" else said

    def _resolve(self, match: Match, happened: Happened) -> None:
        """Play the moves against each other."""
        labels = [match.given.get(agent, self._answer_for(match, me)) for me, agent in enumerate(match.players)]
        joint = tuple(mine.index(label) for mine, label in zip(self._game.actions, labels, strict=True))
        payoffs = self._game.table[joint]
        paid = {agent: own for agent, own in zip(match.players, payoffs, strict=True) if agent not in match.gone}
        data = {
            "match": match.number,
            "round": match.round,
            "moves": dict(zip(match.players, labels, strict=True)),
            "payoffs": paid,
            "missed": [agent for agent in match.players if agent in match.missed],
        }
        spoken = tuple(fact for fact, _, _ in match.heard)
        match.score(joint, payoffs, self._fact(happened, "round", match.players, data, answers=spoken))
        happened.rewards |= paid

    def _next_round(self, opens: int, match: Match, happened: Happened, late: Iterable[AgentId] = ()) -> None:
        match.next_round()
        self._ask("move" if self._params.talk == "none" else "talk", opens, match, happened, late)

    def _ask(
        self,
        phase: Literal["talk", "move"],
        opens: int,
        match: Match,
        happened: Happened,
        late: Iterable[AgentId] = (),
    ) -> None:
        """Open a phase; whoever still thinks about the last one is called off."""
        match.ask(phase, opens, self._params.deadline)
        happened.wakes += [Wake(agent=agent, tick=opens, interrupt=agent in late) for agent in match.present]
        if match.closes is not None:
            happened.timers.append(match.closes)
            self._deadlines.setdefault(match.closes, []).append(match.number)

    # --- from match to match -------------------------------------------------------------------------

    def _start(self, now: int, happened: Happened, agents: Iterable[AgentId]) -> None:
        """Open the matches for which everybody is free; who has none left has ended."""
        for agent in agents:
            match = self._current(agent)
            if match is None:
                happened.ended[agent] = "terminated"
            elif match.phase == "waiting" and all(self._current(other) is match for other in match.players):
                self._fact(happened, "match", match.players, self._set_up(match))
                self._next_round(now, match, happened)

    def _set_up(self, match: Match) -> dict[str, JSON]:
        """Who plays what: the labels of all actions, and everybody's payoffs by joint action, written "0,1"."""
        payoffs = {text(joint): list(own) for joint, own in self._game.table.items()}
        actions = [list(mine) for mine in self._game.actions]
        return {"match": match.number, "players": list(match.players), "actions": actions, "payoffs": payoffs}

    def _end(self, now: int, match: Match, reason: str, happened: Happened) -> None:
        """Close a match, played or not, and see who can go on."""
        if match.phase != "waiting":
            totals = dict(zip(match.players, match.totals or [0.0] * len(match.players), strict=True))
            data = {"match": match.number, "rounds": match.played, "totals": totals, "reason": reason}
            self._fact(happened, "match_end", match.players, data)
        match.phase, match.closes = "over", None
        for agent in match.present:
            self._agenda[agent].remove(match.number)
        self._start(now + self._params.pause, happened, match.present)

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set; Leave; Join, where matches are fixed groups. Raises ValueError for what cannot be done."""
        happened = Happened()
        match change:
            case Say():
                self._say(change, happened)
            case Set():
                self._params = changed(self._params, change, self.changeable, "a matrix game")
            case Join():
                self._join(now, change.seat.agent, happened)
            case Leave():
                self._leave(now, change.agent, happened)
        return happened.outcome()

    def _say(self, say: Say, happened: Happened) -> None:
        readers = self._notices.readers(say)
        fact = self._fact(happened, "message", say.to, {"text": say.text})
        self._notices.post(readers, fact, say.text)

    def _join(self, now: int, agent: AgentId, happened: Happened) -> None:
        """Joiners wait until they are enough for a match of their own."""
        if self._params.pairing not in ("fixed", "across"):
            raise ValueError(f"nobody can join a game that is played {self._params.pairing}: its matches are set")
        self._notices.admit(agent)
        self._agenda[agent] = []
        self._lobby.append(agent)
        if len(self._lobby) == self._game.players:
            players, self._lobby = tuple(self._lobby), []
            for player in players:
                self._agenda[player].append(len(self._matches))
            self._matches.append(Match(len(self._matches), players))
            self._start(now, happened, players)

    def _leave(self, now: int, agent: AgentId, happened: Happened) -> None:
        self._notices.known([agent])
        self._lobby = [other for other in self._lobby if other != agent]
        for number in self._agenda.pop(agent, []):
            match = self._matches[number]
            match.gone.append(agent)
            if self._game.players == 2 or not match.present:
                self._end(now, match, "left", happened)
            elif match.complete:
                self._close(now, match, happened)

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "matches": [match.json() for match in self._matches],
            "agenda": {agent: list(numbers) for agent, numbers in self._agenda.items()},
            "lobby": list(self._lobby),
            "unread": self._notices.state(),
            "facts": self._facts,
        }
