"""The log's hash, what is put when, and how a replay is compared."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import pytest

from sim.calls import Calls
from sim.host import Host
from sim.kernel import Decision, Table, Unaskable, WorldError
from sim.log import MOST_WAITING, Divergence, Log, Named, checked
from sim.simulate import player, simulate
from sim.streams import Root, Streams
from sim.types import APPLIED, Fact, Outcome, Request, Wake
from tests.stage import Asker, Stage, Yes


def hash_of(rows: Sequence[Named]) -> str:
    """As anybody can compute it: lines of JSON, but for the hashes themselves."""
    running = blake2b(digest_size=16)
    for kind, row in rows:
        if kind != "events" or row[4] != "tick":
            line = json.dumps([kind, row], separators=(",", ":"), default=lambda blob: b64encode(blob).decode())
            running.update(line.encode() + b"\n")
    return running.hexdigest()


def test_the_hash_is_that_of_all_rows_as_lines_of_json() -> None:
    run = simulate(Stage(), [player(Yes(), "a", 1), player(Yes(), "b", 2)], until=5)
    assert {kind for kind, _ in run.rows} == {"events", "decisions", "facts"}
    marks = [place for place, (_, row) in enumerate(run.rows) if row[4] == "tick"]
    assert [json.loads(run.rows[place][1][6]) for place in marks] == [hash_of(run.rows[:place]) for place in marks]
    assert run.hash == hash_of(run.rows)


def test_rows_are_put_by_rounds_or_sooner_where_they_are_many() -> None:
    put: list[list[Named]] = []
    log = Log(0, lambda rows: put.append(list(rows)))
    for number in range(MOST_WAITING + 2):
        log.fact(1, 0, Fact(id=number, kind="word"))
    log.mark(1, 0)
    log.mark(1, 0)
    log.event(2, 0, "end")
    assert [len(rows) for rows in put] == [MOST_WAITING, 3], "nothing new is no round"
    log.mark(2, 0)
    rows = [row for each in put for row in each]
    assert [row[1] for _, row in rows] == list(range(MOST_WAITING + 5))
    assert log.hash == hash_of(rows)


@pytest.mark.parametrize(("kind", "left"), [("did", (3, 0, 2, "did")), ("\ud800", (2, 0, "tick", ""))])
def test_an_event_that_breaks_off_leaves_the_rows_it_came_to(kind: str, left: tuple[Any, ...]) -> None:
    """All but one that cannot be coded, which has nothing to say beside what went wrong."""

    def rule(stage: Stage, now: int, actions: Sequence[object]) -> Outcome:
        agent, last = ("zed", kind) if now == 3 else ("a", "did")
        return Outcome(facts=[stage.fact(last)], results=[APPLIED], wakes=[Wake(agent=agent, tick=now)])

    rows: list[Named] = []
    streams = Streams(Root(0), ("table", 0))
    table = Table(
        Stage(rule), [player(Yes(), "a", 1)], streams=streams, log=Log(0, rows.extend), submit=lambda *_: None
    )
    with pytest.raises(WorldError, match=r"tick 3: .*zed"):
        Host(Calls({})).run([table])
    assert rows[-1][1][2:6] == left


def test_what_has_happened_is_put_before_a_model_is_asked_about_it() -> None:
    """An event in which many are asked takes long, and what led to it is not to wait so long for its commit."""
    rows: list[Named] = []
    told: list[list[str]] = []

    def ask(decision: Decision, requests: Sequence[Request]) -> None:
        told.append([row[5] for kind, row in rows if kind == "facts"])
        raise Unaskable

    streams = Streams(Root(0), ("table", 0))
    table = Table(Stage(), [player(Asker(), "a", 1)], streams=streams, log=Log(0, rows.extend), submit=ask, until=2)
    Host(Calls({})).run([table])
    assert told == [[], ["did"]]


def test_a_replay_is_compared_row_by_row_and_goes_on_where_the_record_ends() -> None:
    rows: list[Named] = [("facts", (0, seq, 5, "a")) for seq in range(4)]
    kept: list[Named] = []
    put = checked(iter(rows[:3]), kept.extend)
    put(rows[:2])
    put(rows[2:])
    assert kept == rows[3:]
    with pytest.raises(Divergence, match=r"table 0, seq 1, tick 5(?s:.*)recorded: facts \(5, 'a'\)(?s:.*)\(5, 'b'\)"):
        checked(iter(rows), kept.extend)([rows[0], ("facts", (0, 1, 5, "b"))])


def test_a_last_event_with_what_cannot_be_coded_stops_the_run() -> None:
    """No row is lost in silence because nothing comes after it."""
    last = Outcome(facts=[Fact(id=0, kind="\ud800")], results=[APPLIED], ended={"a": "terminated"})
    with pytest.raises(WorldError, match="gave what does not fit: UnicodeEncodeError"):
        simulate(Stage(lambda *_: last), [player(Yes(), "a", 1)])
