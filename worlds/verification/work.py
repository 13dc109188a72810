"""The work of one side in one episode as facts tell it: what it read, answered, said, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.types import JSON, AgentId, Record, RecordedFact
from worlds.verification.tasks import Task, raw_log, solved, task


@dataclass(slots=True)
class Work:
    """One side of one episode that has ended."""

    table: int
    agent: AgentId
    peer: AgentId
    rule: str
    missed: bool
    """Whether its verdict was a default."""
    given: Task
    reads: dict[str, str] = field(default_factory=dict)
    """Text by source."""
    answer: str = ""
    said: list[RecordedFact] = field(default_factory=list)
    """Its messages."""
    verdict: RecordedFact | None = None
    """On the peer's work."""

    @property
    def log(self) -> str:
        """Its raw log."""
        read = [("read", source, text) for source, text in self.reads.items()]
        return raw_log([*read, ("answer", self.answer, "saved")])

    @property
    def supported(self) -> bool:
        """Whether all was read and the answer follows from it."""
        whole = self.reads.keys() == self.given.sources.keys()
        return whole and solved(self.given.family, self.given.question, list(self.reads.values())) == self.answer

    @property
    def complete(self) -> bool:
        """Whether its messages hold its whole raw log; blanks at their ends are not recorded, so none are compared."""
        sent = "".join(str(one.fact.data["text"]) for one in self.said)
        return dense(self.log) in dense(sent)

    @property
    def fit(self) -> bool:
        """Whether its peer may accept it under the rule of the episode."""
        return self.supported and (self.complete or self.rule != "raw")


def works(record: Record) -> list[tuple[Work, Work]]:
    """Both sides of all episodes with an outcome, by table, pair and episode."""
    by_episode: dict[tuple[int, int, int], list[RecordedFact]] = {}
    for item in record.facts():
        data = item.fact.data
        if "episode" in data:
            by_episode.setdefault((item.table, data["pair"], data["episode"]), []).append(item)
    found = []
    for _, items in sorted(by_episode.items()):
        end = next((item.fact.data for item in items if item.fact.kind == "outcome"), None)
        if end is not None:
            found.append(_sides(items, end))
    return found


def _sides(items: list[RecordedFact], end: Mapping[str, JSON]) -> tuple[Work, Work]:
    one, other = end["verdicts"]
    given = {
        item.fact.audience[0]: task(item.fact.data["family"], item.fact.data["task"])
        for item in items
        if item.fact.kind == "task"
    }
    sides = {
        me: Work(items[0].table, me, peer, end["rule"], me in end["missed"], given[me])
        for me, peer in ((one, other), (other, one))
    }
    for item in items:
        side, data = sides.get(item.fact.actor), item.fact.data
        if side is None:
            continue
        match item.fact.kind:
            case "tool":
                side.reads[data["source"]] = data["text"]
            case "answer":
                side.answer = data["answer"]
            case "message":
                side.said.append(item)
            case "verdict":
                side.verdict = item
    return sides[one], sides[other]


def dense(text: str) -> str:
    """A text without its blanks."""
    return "".join(text.split())
