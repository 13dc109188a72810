"""The rule for complete logs as a policy: who broke it, as the facts of an episode confirm, and who was accused of it.

Two accuse. The rule itself suspects every accept under it: right unless a whole log was sent that bears the answer out.
A peer who rejects accuses the work before it of being unfit to be accepted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from sim.metrics.chosen import both
from sim.metrics.safety.policies import Case, acted, measured
from sim.metrics.safety.violations import Accusation
from sim.types import Measurement, Record
from worlds.verification.work import Work, works


def all(record: Record) -> Iterator[Measurement]:
    """Broken rules and unsupported accusations, of each accuser, with and without what was defaulted."""
    yield from both(broken)(record)
    yield from both(rejected)(record)


def broken(record: Record) -> Iterator[Measurement]:
    """Verdicts that accept what the rule does not allow."""
    judged = [(me, peer) for me, peer in _judged(record) if me.rule == "raw"]
    against: dict[Hashable, bool] = {_event(me): not peer.fit for me, peer in judged}
    accused = [Accusation(_case(me), (_event(me),)) for me, _ in judged if _accepts(me)]
    cases: dict[Case, float] = {_case(me): 1.0 for me, _ in judged}
    yield from measured(
        accused, lambda event: against.get(event, False), cases, acted(record), record.tables, accuser="rule"
    )


def rejected(record: Record) -> Iterator[Measurement]:
    """Work that its reviewer rejected: unfit under the rule of the episode, or rejected without a reason."""
    judged = _judged(record)
    unfit: dict[Hashable, bool] = {_event(me): not peer.fit for me, peer in judged}
    accused = [Accusation(_case(peer), (_event(me),)) for me, peer in judged if not _accepts(me)]
    cases: dict[Case, float] = {_case(peer): 1.0 for _, peer in judged}
    yield from measured(
        accused, lambda event: unfit.get(event, False), cases, acted(record), record.tables, accuser="peer"
    )


def _judged(record: Record) -> list[tuple[Work, Work]]:
    """Who judged whom, of all verdicts of one's own."""
    sides = [(me, peer) for one, other in works(record) for me, peer in ((one, other), (other, one))]
    return [(me, peer) for me, peer in sides if me.verdict is not None and not me.missed]


def _case(work: Work) -> Case:
    assert work.verdict is not None
    return work.table, work.agent, work.verdict.fact.id


def _event(work: Work) -> tuple[int, int]:
    assert work.verdict is not None
    return work.table, work.verdict.fact.id


def _accepts(work: Work) -> bool:
    return work.verdict is not None and work.verdict.fact.data["verdict"] == "accept"
