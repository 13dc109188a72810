"""Stored episodes told again, to see what no record holds: each turn with the world's whole state, and other courses.

No model is asked: every mind says what it said. What it would have earned by another answer is told with all the
others' answers as they were, as external regret has it, whatever they would have made of the change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from sim.kernel import Player, Table
from sim.lineage import Lineage
from sim.log import NoLog
from sim.record.reader import Run
from sim.runs import cast_rows
from sim.scenarios.cast import thaw
from sim.scenarios.plan import Plan, TablePlan, plan
from sim.scenarios.scenario import loads
from sim.streams import Streams
from sim.types import JSON, Action, AgentId, Member, Mind, RecordedDecision, Result, Turn

Place: TypeAlias = tuple[AgentId, int]
"""A seat and the number of its decision in the episode, as `Row` counts them."""


class Otherwise(ValueError):
    """An episode does not go on as it did after another answer; the text says where."""


class Moment(Struct, frozen=True, kw_only=True):
    """What a decision was asked in."""

    turn: Turn
    state: JSON
    """Everything in the world."""
    member: Member
    """Whose turn it is."""


class Course(Struct, frozen=True, kw_only=True):
    """One telling of an episode."""

    moments: Mapping[Place, Moment]
    earned: Mapping[AgentId, float]
    last: JSON
    """The world's whole state at the end."""


class Episode:
    """One table of a run that is over."""

    def __init__(
        self, plan: Plan, table: TablePlan, forks: Sequence[tuple[int, int]], decisions: Iterable[RecordedDecision]
    ) -> None:
        self._plan, self._table, self._forks = plan, table, forks
        self._said: dict[tuple[AgentId, int, int], tuple[int, Action]] = {}
        turns: Counter[AgentId] = Counter()
        for one in decisions:
            agent = one.action.agent
            self._said[agent, one.action.seen, one.nth] = turns[agent], one.action
            turns[agent] += 1
        self._told: Course | None = None

    def told(self) -> Course:
        """As it was."""
        if self._told is None:
            self._told = self._tell({})
        return self._told

    def earned(self, place: Place, answer: JSON) -> Mapping[AgentId, float]:
        """What everybody would have earned with another answer there. Raises Otherwise where the others' do not fit."""
        return self._tell({place: answer}).earned

    def _tell(self, instead: Mapping[Place, JSON]) -> Course:
        moments: dict[Place, Moment] = {}
        asked: Counter[tuple[AgentId, int]] = Counter()
        log = _Heard()

        def say(member: Member, turn: Turn) -> Action:
            key = turn.agent, turn.now, asked[turn.agent, turn.now]
            asked[turn.agent, turn.now] += 1
            if key not in self._said:  # dropped, or never due
                return Action(answer=turn.default)
            number, said = self._said[key]
            place = turn.agent, number
            if not instead:
                moments[place] = Moment(turn=turn, state=self._table.world.state(), member=member)
            elif turn.format != self.told().moments[place].turn.format:
                raise _Unlike
            return _again(said, instead.get(place, said.answer))

        self._run(say, log)
        if instead and log.stepped != {key: said.how for key, (_, said) in self._said.items()}:
            ((agent, number),) = instead
            raise Otherwise(
                f"table {self._table.table}: had {agent} answered {instead[agent, number]!r} in turn {number}, the "
                "others would have been asked something else than they were"
            )
        return Course(moments=moments, earned=dict(log.earned), last=None if instead else self._table.world.state())

    def _run(self, say: Callable[[Member, Turn], Action], log: _Heard) -> None:
        one = self._table
        table = Table(
            one.world,
            [_again_by(player, say) for player in one.players],
            streams=one.streams,
            log=log,
            submit=_nobody,
            until=self._plan.until,
            stops=self._plan.stops,
            interventions=[(at, change, joins and _again_by(joins, say)) for at, change, joins in one.interventions],
            branches=self._forks,
            mind_path=one.mind_path,
            branch=one.branch,
        )
        table.start()
        while not table.finished:
            table.advance()


class _Unlike(Exception):
    """What a mind raises at a turn that offers other answers than it did; the kernel makes it a fault."""


class _Again:
    """A mind that says what it is told to."""

    def __init__(self, member: Member, say: Callable[[Member, Turn], Action]) -> None:
        self.state: object = None
        self._member, self._say = member, say

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """At once."""
        yield from ()
        return self._say(self._member, turn)


class _Heard(NoLog):
    """Keeps what was earned, and how each decision came about."""

    def __init__(self) -> None:
        super().__init__()
        self.earned: defaultdict[AgentId, float] = defaultdict(float)
        self.stepped: dict[tuple[AgentId, int, int], str] = {}

    def event(self, tick: int, round_: int, kind: str, agent: str = "", data: Any = None) -> None:
        """Rewards count."""
        if kind == "rewards":
            for each, reward in data.items():
                self.earned[each] += reward

    def decision(self, tick: int, round_: int, decision: Any, result: Result) -> None:
        """By whom, when and how."""
        action = decision.action
        self.stepped[action.agent, action.seen, decision.nth] = action.how


def _again(said: Action, answer: JSON) -> Action:
    return Action(answer=answer, how=said.how, reason=said.reason, recalls=said.recalls)


def _again_by(player: Player, say: Callable[[Member, Turn], Action]) -> Player:
    return Player(player.member, _Again(player.member, say), player.think)


def _nobody(*_: object) -> None:
    raise AssertionError("who says it again asks nobody")


# --- the episodes behind rows ---------------------------------------------------------------------------------


def episodes(path: Path) -> list[Episode]:
    """All tables of a run. Raises ScenarioError, and FileNotFoundError where it was forked from one that is gone."""
    with Run(path) as run, Lineage(run.manifest()) as lineage:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        planned = plan(scenario, thaw(cast_rows(run), scenario), manifest.branches)
        return [Episode(planned, one, lineage.branches, run.decisions(one.table)) for one in planned.tables]


class Past:
    """The episodes behind rows, from the runs in a folder; each run is opened once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, list[Episode]] = {}

    def __getitem__(self, name: str) -> Episode:
        """By `Row.episode`."""
        run, _, table = name.rpartition(":")
        if run not in self._runs:
            self._runs[run] = episodes(self._folder / f"{run}.db")
        return self._runs[run][int(table)]
