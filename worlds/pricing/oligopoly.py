"""Oligopoly: firms set prices or quantities period after period and see what came of it.

Choices are hidden until all have chosen or the deadline has come, so who thinks faster learns nothing. There is no
talk: what firms know of each other is in the market data. Left out on purpose: entry, capacities, investment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel

from sim.answers import illegal
from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Fact,
    FactId,
    Format,
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
from worlds.happened import Happened
from worlds.notices import Notices
from worlds.pricing.answers import NOTES, answer, asked
from worlds.pricing.demand import best_level, written
from worlds.pricing.ledger import Page, Period, by_firm
from worlds.pricing.outcomes import METRICS
from worlds.pricing.settings import OligopolyParams, grid, labels, nearest
from worlds.pricing.words import news, rules, words

NOBODY: Audience = ()
"""Of facts that the record keeps and no firm sees."""


class Oligopoly:
    """One market of all seats; rewards are the profits of each period."""

    Params: ClassVar[type[BaseModel]] = OligopolyParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"periods", "deadline", "cost", "forced"})

    def __init__(self, params: OligopolyParams) -> None:
        self._given = params

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Open the first period. Raises ValueError where a private value or the levels do not fit."""
        if not seats:
            raise ValueError("an oligopoly needs at least one firm")
        self._params = self._given
        self._seats = {seat.agent: seat for seat in seats}
        self._firms = [seat.agent for seat in seats]
        self._notices = Notices("an oligopoly", self._firms)
        self._notebooks: dict[AgentId, Page] = {}
        self._history: list[Period] = []
        self._period, self._opens = 0, 0
        self._closes: int | None = None
        self._chosen: dict[AgentId, float] = {}
        self._missed: list[AgentId] = []
        self._facts = 0
        happened = Happened()
        self._open_market(happened)
        self._levels = self._made_levels()
        self._labels = {agent: labels(levels) for agent, levels in self._levels.items()}
        self._ceiling = self._params.ceiling or self._reach()
        nash = zip(self._firms, self._benchmarks["nash"], strict=True)
        self._usual = {agent: self._possible(agent, wanted) for agent, wanted in nash}
        self._forced = self._checked(self._params.forced)
        self._rules = rules(self._params)
        self._next_period(0, happened)
        return happened.outcome()

    def _open_market(self, happened: Happened) -> None:
        """Take the market of the firms that are here, and put its benchmarks on record."""
        self._market = self._params.market([self._seats[agent] for agent in self._firms])
        self._written = written(self._market)
        self._benchmarks = {"nash": self._market.nash(), "optimum": self._market.optimum()}
        points = {name: self._point(chosen) for name, chosen in self._benchmarks.items()}
        data = {"firms": list(self._firms), "market": self._written, **points}
        self._fact(happened, "benchmark", NOBODY, data)

    def _point(self, chosen: Sequence[float]) -> dict[str, JSON]:
        sales = self._market.sell(chosen)
        return {
            "chosen": list(chosen),
            "prices": list(sales.prices),
            "quantities": list(sales.quantities),
            "profits": list(sales.profits),
            "surplus": sales.surplus,
        }

    def _made_levels(self) -> dict[AgentId, tuple[float, ...]]:
        """What each firm can choose; nothing where the choice is free."""
        given = self._params.levels
        if given is None:
            return {}
        if isinstance(given, tuple):
            return dict.fromkeys(self._firms, given)
        ends = zip(self._firms, *self._benchmarks.values(), strict=True)
        return {agent: grid(low, high, given, self._params.margin) for agent, low, high in ends}

    def _reach(self) -> float:
        """The largest number of a free choice: twice the joint optimum's price, or all that the market can take."""
        if self._params.demand == "cournot":
            return self._params.intercept / self._params.slope
        return 2 * max(self._benchmarks["optimum"])

    def _possible(self, agent: AgentId, wanted: float) -> float:
        """What a firm can choose that comes closest."""
        if (levels := self._levels.get(agent)) is None:
            return min(wanted, self._ceiling)
        return levels[nearest(levels, wanted)]

    def _fact(self, happened: Happened, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = "") -> FactId:
        happened.facts.append(Fact(id=self._facts, kind=kind, actor=actor, audience=to, data=data))
        self._facts += 1
        return self._facts - 1

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question of the period in progress; None where the firm has answered it."""
        if agent not in self._firms or now < self._opens or agent in self._chosen:
            return None
        public = self._params.monitoring == "public"
        notices = self._notices.next(agent)
        page = self._notebooks.get(agent)
        past = [fact for period in self._history for fact in period.facts(agent, public)]
        noted = [page.fact] if page else []
        return Turn(
            agent=agent,
            now=now,
            view=self._view(agent, [text for _, text in notices]),
            format=self._format(agent),
            default=self._as_before(agent),
            render=words,
            recap=news,
            rules=self._rules,
            shows=(*past, *noted, *(fact for fact, _ in notices)),
            key=self._key(agent),
        )

    def _view(self, agent: AgentId, notices: list[str]) -> dict[str, JSON]:
        public = self._params.monitoring == "public"
        return {
            "period": self._period,
            "chooses": self._params.chooses,
            "me": agent,
            "firms": list(self._firms),
            "cost": self._market.costs[self._firms.index(agent)],
            "levels": self._levels,
            "labels": self._labels.get(agent, ()),
            "ceiling": self._ceiling,
            "market": self._written,
            "benchmarks": self._benchmarks,
            "told": self._params.told,
            "history": [period.seen_by(agent, public) for period in self._history],
            "notebook": self._noted(agent) if self._params.notebook else None,
            "news": notices,
        }

    def _noted(self, agent: AgentId) -> dict[str, str]:
        page = self._notebooks.get(agent)
        return dict(page.notes) if page else dict.fromkeys(NOTES, "")

    def _format(self, agent: AgentId) -> Format:
        params = self._params
        longest = params.note_chars if params.notebook else None
        return asked(params.chooses, self._labels.get(agent, ()), self._ceiling, longest)

    def _as_before(self, agent: AgentId) -> JSON:
        """The answer of a firm that gives none: what it did last, at first its part of the Nash equilibrium."""
        usual: float | str = self._usual[agent]
        if agent in self._levels:
            usual = self._labels[agent][self._levels[agent].index(self._usual[agent])]
        return answer(self._format(agent), usual, self._params.chooses, self._noted(agent))

    def _key(self, agent: AgentId) -> str | None:
        """Levels chosen so far; None where they are not all seen, the view has forgotten some, or firms keep notes."""
        params = self._params
        if not self._levels or params.notebook or params.monitoring == "private" or self._period > params.history + 1:
            return None
        past = [
            ",".join(str(self._levels[firm].index(chosen)) for firm, chosen in period.chosen.items())
            for period in self._history
        ]
        return f"{self._firms.index(agent)}:{' '.join(past)}"

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take choices in; close the period where all have chosen or its time is over."""
        happened = Happened()
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if not refusal:
                self._take(action, happened)
        if self._firms and (len(self._chosen) == len(self._firms) or now == self._closes):
            self._close(now, happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        if action.agent not in self._firms:
            return "not in the market"
        if action.seen < self._opens:
            return "that period is over"
        if action.agent in self._chosen:
            return "already chosen"
        return illegal(self._format(action.agent), action.answer) or ""

    def _take(self, action: Action, happened: Happened) -> None:
        """Keep a choice, hidden, and the new page of the notebook."""
        agent, given = action.agent, action.answer
        self._notices.read(agent, action.shows)
        chosen = given[self._params.chooses] if isinstance(given, dict) else given
        if not action.meant:
            self._missed.append(agent)
        if isinstance(chosen, str):
            chosen = self._levels[agent][self._labels[agent].index(chosen)]
        self._chosen[agent] = float(chosen)
        if self._params.notebook and action.meant:
            written_now = {"period": self._period, **{name: given[name] for name in ("observations", *NOTES)}}
            fact = self._fact(happened, "notes", (agent,), written_now, agent)
            self._notebooks[agent] = Page({name: given[name] for name in NOTES}, fact)

    def _close(self, now: int, happened: Happened) -> None:
        """Sell what was chosen, and go on."""
        late = [agent for agent in self._firms if agent not in self._chosen]
        chosen = {agent: self._chosen.get(agent, self._usual[agent]) for agent in self._firms}
        chosen |= self._forced_on(chosen, happened)
        sales = by_firm(self._firms, self._market.sell(list(chosen.values())))
        self._keep(chosen, sales, [agent for agent in self._firms if agent in (*self._missed, *late)], happened)
        self._usual |= chosen
        if self._period < self._params.periods:
            self._next_period(now + self._params.pause, happened, late)
        else:
            happened.ended |= dict.fromkeys(self._firms, "terminated")
            self._firms = []

    def _keep(
        self,
        chosen: dict[AgentId, float],
        sales: dict[AgentId, tuple[float, float, float]],
        missed: list[AgentId],
        happened: Happened,
    ) -> None:
        """Put a period on record."""
        public = self._params.monitoring == "public"
        told = {"period": self._period, "chosen": dict(chosen), "missed": missed}
        fact = self._fact(happened, "period", ALL if public else NOBODY, told)
        own: dict[AgentId, FactId] = {}
        for agent, (price, quantity, profit) in sales.items():
            data = {"period": self._period, "price": price, "quantity": quantity, "profit": profit}
            own[agent] = self._fact(happened, "sale", (agent,), data, agent)
            happened.rewards[agent] = profit
        period = Period(self._period, chosen, sales, fact, own)
        self._history = [*self._history, period][-self._params.history :]

    def _next_period(self, opens: int, happened: Happened, late: Iterable[AgentId] = ()) -> None:
        """Ask everybody; whoever still thinks about the last period is called off."""
        self._period, self._opens = self._period + 1, opens
        self._chosen, self._missed = {}, []
        self._closes = None if self._params.deadline is None else opens + self._params.deadline
        happened.wakes += [Wake(agent=agent, tick=opens, interrupt=agent in late) for agent in self._firms]
        if self._closes is not None:
            happened.timers.append(self._closes)

    # --- interventions -----------------------------------------------------------------------------

    def _checked(self, forced: Mapping[AgentId, JSON]) -> dict[AgentId, JSON]:
        """What firms are forced to do. Raises ValueError where one is not here, or cannot do it."""
        for agent, wanted in forced.items():
            if agent not in self._firms:
                raise ValueError(f"forced: no firm here is called {agent!r}, only {', '.join(self._firms)}")
            if wanted != "best_reply" and wanted > self._ceiling:
                raise ValueError(f"forced: {agent} can choose at most {self._ceiling:g}, not {wanted:g}")
        return dict(forced)

    def _forced_on(self, chosen: dict[AgentId, float], happened: Happened) -> dict[AgentId, float]:
        """What firms are forced to do in this period, once; a best reply is one to the period before."""
        forced = {agent: self._wanted(agent, wanted) for agent, wanted in self._forced.items() if agent in chosen}
        if forced:
            self._fact(happened, "forced", NOBODY, {"period": self._period, "chosen": dict(forced)})
        self._forced = {}
        return forced

    def _wanted(self, agent: AgentId, wanted: float | str) -> float:
        if not isinstance(wanted, str):
            return self._possible(agent, wanted)
        me, before = self._firms.index(agent), [self._usual[firm] for firm in self._firms]
        if levels := self._levels.get(agent):
            return best_level(self._market, me, before, levels)
        return self._possible(agent, self._market.best_reply(me, before))

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set; Leave, after which the others go on. Raises ValueError for what cannot be done."""
        happened = Happened()
        match change:
            case Say():
                self._say(change, happened)
            case Set():
                self._set(change, happened)
            case Join():
                raise ValueError("nobody can join an oligopoly: its firms are set")
            case Leave():
                self._leave(now, change.agent, happened)
        return happened.outcome()

    def _say(self, say: Say, happened: Happened) -> None:
        readers = self._notices.readers(say)
        fact = self._fact(happened, "message", say.to, {"text": say.text})
        self._notices.post(readers, fact, say.text)

    def _set(self, change: Set, happened: Happened) -> None:
        params = changed(self._params, change, self.changeable, "an oligopoly")
        if change.key == "forced":
            self._forced = self._checked(params.forced)
            return
        self._params = params
        if change.key == "cost" and self._firms:
            self._open_market(happened)

    def _leave(self, now: int, agent: AgentId, happened: Happened) -> None:
        self._notices.known([agent])
        if agent not in self._firms:
            return
        self._firms = [other for other in self._firms if other != agent]
        self._chosen.pop(agent, None)
        self._fact(happened, "exit", ALL, {"period": self._period, "firm": agent})
        if self._firms:
            self._open_market(happened)
            if len(self._chosen) == len(self._firms):
                self._close(now, happened)

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "firms": list(self._firms),
            "market": dict(self._written),
            "benchmarks": {name: list(chosen) for name, chosen in self._benchmarks.items()},
            "levels": {agent: list(levels) for agent, levels in self._levels.items()},
            "ceiling": self._ceiling,
            "period": self._period,
            "opens": self._opens,
            "closes": self._closes,
            "given": dict(self._chosen),
            "missed": list(self._missed),
            "usual": dict(self._usual),
            "forced": dict(self._forced),
            "history": [period.json() for period in self._history],
            "notebooks": {agent: [dict(page.notes), page.fact] for agent, page in self._notebooks.items()},
            "unread": self._notices.state(),
            "facts": self._facts,
        }
