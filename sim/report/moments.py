"""Records that are worth a look: interventions, answers that went wrong, secrets told, facts that metrics name most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

import orjson

from sim.metrics.privacy.disclosures import Told
from sim.quantities import readable
from sim.record.committed import Row
from sim.record.reader import decision_of, fact_of
from sim.record.survey import WINDOW, Survey
from sim.report.hiding import Mask
from sim.report.model import Moment, Moments, Said
from sim.types import Measurement
from sim.wording import audience, told

EACH = 8
"""Of each kind of moment."""
CITED = 5
"""Facts that are there because metrics name them."""
AROUND = 3
"""Records before and after one that are shown with it."""
LOOKED = 60
"""Rows of the log among which they are looked for."""
WITNESSES = 12
"""Names of those who saw a fact."""
LONGEST = 1_200
"""Characters of one record."""
REASON = 140
"""Characters of why one is notable."""
ODD = ("faulted", "defaulted", "retried")
"""How decisions come about that are worth a look."""

Place: TypeAlias = tuple[int, int]
"""Table and seq."""


class Finder:
    """Collects the moments of one run; `prefix` tells those of several runs apart."""

    def __init__(self, run: Survey, mask: Mask, prefix: str) -> None:
        self._run = run
        self._mask = mask
        self._prefix = prefix
        self._tick_ms = run.manifest().tick_ms
        self._why: dict[Place, list[str]] = {}
        self.left_out = 0

    def anchor(self, table: int, seq: int) -> str:
        """Of the moment at a place in the log."""
        return f"{self._prefix}-t{table}-s{seq}"

    def of_fact(self, table: int, fact: int, why: str) -> Place | None:
        """Take a fact in; its place, None where there is none of that id."""
        found = self._run.facts_by_id(table, [fact]).get(fact)
        if found is None:
            return None
        self._take((found.table, found.seq), why)
        return found.table, found.seq

    def _take(self, place: Place, why: str) -> None:
        reasons = self._why.setdefault(place, [])
        if why not in reasons:
            reasons.append(why)

    def changes(self) -> None:
        """Take interventions in."""
        found = self._run.changes(EACH + 1)
        self.left_out += len(found) > EACH
        for one in found[:EACH]:
            self._take((one.table, one.seq), f"intervention: {one.change.get('do', '')}")

    def odd(self) -> None:
        """Take in decisions that were not answered at once."""
        for how in ODD:
            found, count = self._run.odd(how, EACH)
            self.left_out += count - len(found)
            for one in found:
                self._take(
                    (one.table, one.seq), f"decision {how}" + (f": {one.action.reason}" if one.action.reason else "")
                )

    def cited(self, found: Iterable[Measurement]) -> None:
        """Take in facts that the most metrics name, some from all over the run."""
        metrics: dict[Place, set[str]] = {}
        weight: Counter[Place] = Counter()
        for one in found:
            for event in one.events:
                place = event if isinstance(event, tuple) else (int(one.of.get("table", 0) or 0), event)
                if one.metric not in metrics.setdefault(place, set()):
                    metrics[place].add(one.metric)
                    weight[place] += 1
        for table, fact in _spread(weight):
            names = sorted(metrics[table, fact])
            self.of_fact(table, fact, f"named by {', '.join(names[:3])}" + (" and more" if len(names) > 3 else ""))

    def told(self, found: Sequence[Told]) -> list[tuple[Told, Place | None]]:
        """Take in secrets that were told, and say where each is."""
        made = []
        for number, one in enumerate(found):
            why = f"told {one.secret.attribute} of {one.secret.subject}"
            place = self.of_fact(one.table, one.fact, why) if number < 2 * EACH else None
            made.append((one, place))
        self.left_out += max(0, len({(one.table, one.fact) for one in found[2 * EACH :]}))
        return made

    def moments(self) -> Moments:
        """All that was taken in, in the order of the log."""
        found = tuple(self._moment(place, why) for place, why in sorted(self._why.items()))
        return Moments(moments=found, left_out=self.left_out)

    def _moment(self, place: Place, why: Sequence[str]) -> Moment:
        table, seq = place
        rows = self._run.log_between(table, seq - LOOKED, seq + LOOKED)
        rows = [row for row in rows if row[0] != "events" or row[1][4] == "change"]
        at = next(number for number, row in enumerate(rows) if row[1][1] == seq)
        near = rows[max(0, at - AROUND) : at + AROUND + 1]
        name, row = rows[at]
        return Moment(
            anchor=self.anchor(table, seq),
            table=table,
            seq=seq,
            at=self._time(row[2]) + (f", table {table}" if self._run.tables > 1 else ""),
            why=tuple(_cut(self._mask.text(one), REASON) for one in why),
            around=tuple(self._said(*each, itself=each[1][1] == seq) for each in near),
            saw=self._saw(row) if name == "facts" else "",
        )

    def _time(self, tick: int) -> str:
        return readable(tick, self._tick_ms)

    def _said(self, name: str, row: Row, itself: bool) -> Said:
        at = self._time(row[2])
        if name == "facts":
            fact = fact_of(row)
            one = fact.fact
            words = self._words(one.data)
            return Said(
                at=at, who=one.actor or "the world", kind=one.kind, text=words, to=audience(fact), fact=one.id,
                itself=itself,
            )  # fmt: skip
        if name == "decisions":
            decision = decision_of(row)
            action, result = decision.action, decision.result
            notes = [self._mask.text(note) for note in (action.reason, result.reason) if note]
            words = " · ".join([self._words(action.answer), *notes])
            kind = f"decision, {action.how}" + (", stale" if result.status == "stale" else "")
            return Said(at=at, who=action.agent, kind=kind, text=words, itself=itself)
        return Said(
            at=at, who="from outside", kind="intervention", text=self._words(orjson.loads(row[6])), itself=itself
        )

    def _words(self, data: object) -> str:
        return _cut(told(self._mask.data(data)), LONGEST)

    def _saw(self, row: Row) -> str:
        fact = fact_of(row)
        agents = self._run.saw(fact)
        if not agents:
            goes_on = self._run.end(fact.table)[0] > fact.seq + WINDOW
            return f"nobody in the {WINDOW:,} records that follow" if goes_on else "nobody"
        more = f" and {len(agents) - WITNESSES} more" if len(agents) > WITNESSES else ""
        return ", ".join(agents[:WITNESSES]) + more


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _spread(weight: Mapping[Place, int]) -> list[Place]:
    """The places of most weight; of those of one weight some from first to last."""
    found: list[Place] = []
    for _, group in groupby(sorted(weight, key=lambda place: (-weight[place], place)), key=weight.__getitem__):
        same, room = list(group), CITED - len(found)
        step = max(1, -(-len(same) // room)) if room else 0
        found += same[::step][:room] if room else []
    return found
