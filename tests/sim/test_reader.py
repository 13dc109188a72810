import hashlib
import json
from contextlib import closing

import pytest

from sim.record.reader import Run
from sim.record.store import Store
from sim.types import (
    Action,
    CallKey,
    Fact,
    Measurement,
    Member,
    Message,
    Record,
    RecordedDecision,
    RecordedFact,
    Result,
    Seat,
    Secret,
    Usage,
)
from tests.sim.rows import call, decision, event, fact, manifest, member

SECRET = {"subject": "ann", "attribute": "diagnosis", "value": "asthma", "holder": "ann", "norms": [{"to": "bob"}]}


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "run.db", manifest(params={"rounds": 3})) as store:
        fill(store)
        store.flush()
        yield store


@pytest.fixture
def run(store):
    with closing(Run(store.path)) as run:
        yield run


def fill(store):
    """Two tables: at the first, ann speaks twice, once in a model's words; at the second, nothing is said."""
    rules, asked = store.text("The rules."), store.text("Well?")
    messages = json.dumps([["system", rules], ["user", asked]])
    for row in (member(1, "bob"), member(0, "ann", secrets=json.dumps([SECRET])), member(0, "ann", tbl=1)):
        store.put("cast", row)
    store.put("events", event(0, "start", []))
    store.put("facts", fact(1, 0, "say", actor="ann", audience="#main", data={"text": "hi"}))
    store.put("calls", call("ann", 0, purpose="memory", form='{"text":80}', finish="length", messages=messages))
    store.put("calls", call("ann", 1, messages=messages, text="no"))
    store.put("decisions", decision(2, "ann", shows=[0], recalls=[0], calls=2))
    store.put("events", event(3, "rewards", {"ann": 1.5, "bob": -1}, tick=5))
    store.put("facts", fact(4, 1, "trade", audience=("ann", "bob"), data={"price": 2}, answers=[0], tick=6))
    store.put("calls", call("bob", 0, tick=6, source="parent", finish="error", text=None, purpose="human"))
    store.put("calls", call("bob", 1, tick=6, source="repeat", finish="error", text=None))
    store.put("decisions", decision(5, "bob", tick=8, seen=6, how="defaulted", status="stale", shows=[0, 1], calls=2))
    store.put("decisions", decision(6, "ann", tick=9, seen=7, shows=[0, 1]))
    store.put("events", event(7, "rewards", {"ann": 0.25}, tick=9))
    store.put("decisions", decision(0, "ann", tbl=1))


def test_it_is_a_record(run):
    record: Record = run

    def spoken(record):
        said = [recorded.fact.id for recorded in record.facts("say")]
        yield Measurement(metric="spoken", value=float(len(said)), events=tuple(said))

    assert next(iter(spoken(record))).events == (0,)
    assert (record.params, record.tables) == ({"rounds": 3}, 2)


def test_members_come_in_cast_order(run):
    ann, bob = run.cast()
    assert bob == Member(
        seat=Seat(agent="bob", role="buyer", private={"value": 3}, public={"name": "A"}),
        persona={"age": 40},
        model="small",
    )
    assert ann.secrets == (
        Secret(subject="ann", attribute="diagnosis", value="asthma", holder="ann", norms=({"to": "bob"},)),
    )
    assert [member.seat.agent for member in run.cast(1)] == ["ann"]
    assert run.cast(2) == []


def test_facts(run):
    said = Fact(id=0, kind="say", actor="ann", audience="#main", data={"text": "hi"})
    trade = Fact(id=1, kind="trade", audience=("ann", "bob"), data={"price": 2}, answers=(0,))
    everything = [
        RecordedFact(table=0, seq=1, tick=0, fact=said),
        RecordedFact(table=0, seq=4, tick=6, fact=trade),
    ]
    assert list(run.facts()) == list(run.facts(table=0)) == everything
    assert list(run.facts("trade")) == everything[1:]
    assert list(run.facts("trade", 1)) == list(run.facts(table=1)) == []


def test_decisions(run):
    first = RecordedDecision(
        table=0,
        seq=2,
        tick=5,
        nth=0,
        action=Action(answer="yes", recalls=(0,), agent="ann", seen=0, shows=(0,)),
        result=Result(),
        calls=2,
    )
    found = list(run.decisions())
    assert found[0] == first
    assert [(one.table, one.seq) for one in found] == [(0, 2), (0, 5), (0, 6), (1, 0)]
    assert (found[1].result, found[1].action.how) == (Result(status="stale", reason="sold"), "defaulted")
    assert [one.seq for one in run.decisions(0, agent="ann")] == [2, 6]


def test_rewards_are_summed(run):
    assert run.rewards() == {"ann": 1.75, "bob": -1}
    assert run.rewards(1) == {}


def test_what_an_agent_was_shown(run):
    ann = [(one.tick, one.decision, one.fact.fact.id) for one in run.seen_by("ann")]
    assert ann == [(0, 2, 0), (7, 6, 1)]
    assert [one.fact.fact.id for one in run.seen_by("bob")] == [0, 1]
    assert list(run.seen_by("ann", table=1)) == []


def test_what_was_said_to_whom(run):
    assert [one.fact.id for one in run.channel("#main")] == [0]
    assert [one.fact.id for one in run.channel(("ann", "bob"))] == [1]
    assert list(run.channel("all")) == []


def test_the_calls_of_a_decision(run):
    memory, act = run.calls_of(next(run.decisions()))
    assert act.key == CallKey(0, "ann", 0, 0, 1)
    assert act.messages == (Message(role="system", text="The rules."), Message(role="user", text="Well?"))
    assert (memory.purpose, act.purpose, act.completion.text, act.completion.ids) == ("memory", "act", "no", (5, 49151))
    assert (memory.format, act.sampling["max_tokens"], act.seed, act.source) == ('{"text":80}', 9, 5, "engine")
    assert run.calls_of(next(run.decisions(1))) == []


def test_counts(run):
    counts = run.counts()
    assert counts.decisions == {"": {"chosen": 2}, "choice": {"chosen": 1, "defaulted": 1}}
    assert counts.stale == 1
    assert counts.calls == {"memory": 1, "act": 2, "human": 1}
    assert counts.sources == {"engine": 2, "parent": 1, "repeat": 1}
    assert (counts.failed, counts.cut, counts.tokens) == (2, 1, Usage(prompt=40, cached=16, completion=8))


def test_an_empty_run_counts_nothing(tmp_path):
    with Store.create(tmp_path / "run.db", manifest()) as store, closing(Run(store.path)) as run:
        counts = run.counts()
        assert (run.tables, list(run.facts()), list(run.decisions())) == (0, [], [])
        assert (counts.decisions, counts.calls, counts.tokens) == ({}, {}, Usage())


def test_what_is_committed_meanwhile_is_there(store, run):
    assert run.status == "running"
    for seq in range(8, 5_000):
        store.put("facts", fact(seq, seq, "price"))
    store.flush()
    prices = run.facts("price")
    assert next(prices).fact.id == 8
    store.put("facts", fact(5_000, 5_000, "price"))
    store.flush()
    assert [one.fact.id for one in prices] == list(range(9, 5_001))


@pytest.mark.parametrize("status", ["paused", "failed", "finished"])
def test_a_status_stands_but_for_running_with_nobody_there(store, run, status):
    store.close()
    assert run.status == "interrupted"
    with Store.open(store.path) as again:
        again.update(status=status)
    assert run.status == status


def test_reading_changes_nothing(store):
    store.close()
    before = hashlib.sha256(store.path.read_bytes()).digest()
    files = sorted(store.path.parent.iterdir())
    with closing(Run(store.path)) as run:
        run.counts()
        list(run.seen_by("ann"))
        assert run.status == "interrupted"
    assert hashlib.sha256(store.path.read_bytes()).digest() == before
    assert sorted(store.path.parent.iterdir()) == files


def test_every_table_can_be_paged_through(run):
    counts = {name: sum(map(len, run.pages(name))) for name in ("run", "cast", "calls", "texts", "policies")}
    assert counts == {"run": 1, "cast": 3, "calls": 4, "texts": 2, "policies": 0}


def test_pages_follow_each_other_in_key_order(store, run):
    for agent in range(4_500):
        store.put("cast", member(agent, f"x{agent:04}", tbl=agent % 2 + 5))
    store.flush()
    pages = list(run.pages("cast"))
    keys = [(row[0], row[2]) for page in pages for row in page]
    assert len(pages) == 3
    assert keys == sorted(set(keys))
    assert len(keys) == 4_503
