"""An agent as it was at a moment of a stored run: the run is replayed from its record up to there, and only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.calls import Calls, Recorded
from sim.host import Host
from sim.kernel import Decision
from sim.lineage import Lineage
from sim.log import NoLog
from sim.record.reader import Run
from sim.runs import cast_rows, table_of
from sim.scenarios.cast import thaw
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.types import Agent, AgentId, Join, Request
from sim.voices import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """A copy of an agent."""

    agent: Agent
    """Its mind, with its state as it was."""
    rules: str
    """The rules of its latest turn."""


class _Heard(Calls):
    """Calls that note under which rules an agent asks."""

    def __init__(self, agent: AgentId, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.rules = ""
        self._agent = agent

    def submit(self, decision: Decision, requests: Sequence[Request]) -> None:
        """As always."""
        if decision.player.id == self._agent:
            self.rules = decision.turn.rules
        super().submit(decision, requests)


def recall(path: Path, agent: AgentId, at: int, table: int = 0) -> Recollection:
    """An agent after all that happened through a tick. Raises Divergence, and RecordEnds where the record ends before.

    Nothing that happens is compared with the record but the requests.
    """
    with Run(path) as run, Lineage(run.manifest()) as lineage:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        planned = plan(scenario, thaw(cast_rows(run), scenario), manifest.branches)
        pool = Pool(scenario.base)
        calls = _Heard(
            agent,
            pool.voices(planned.models),
            records=[Recorded(lookup=run.completion, request_text=run.request_text, complete=True)],
            one_table=len(planned.tables) == 1,
            eras=lineage.eras(pool),
        )
        host, one = Host(calls), planned.tables[table]
        host.run([table_of(planned, one, host, NoLog(table), lineage.branches)], last=at)
        joined = [who for _, change, who in one.interventions if who and isinstance(change, Join)]
        players = {player.id: player for player in (*one.players, *joined)}
        return Recollection(agent=players[agent].agent, rules=calls.rules)
