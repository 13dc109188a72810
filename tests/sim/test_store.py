import os
import random
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from hashlib import blake2b
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim.record.store
from sim.log import Log
from sim.record.committed import SchemaMismatch, held
from sim.record.reader import Run
from sim.record.sqlite import FileFailure, writable
from sim.record.store import BATCH, HEIGHT, RecordFailure, RunLocked, Store
from sim.types import CallKey, Completion, Usage
from tests.sim.rows import PYTHON, call, event, fact, manifest, numbered

KEY = CallKey(0, "ann", 0, 0, 0)
TBL = count()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "a b?#%.db"


@pytest.fixture
def store(path):
    with Store.create(path, manifest()) as store:
        yield store


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


# --- rows go in and come out ------------------------------------------------------------------------


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
integer = st.integers(-(2**63), 2**63 - 1)
hashed = st.none() | st.binary(min_size=16, max_size=16)
rows = st.lists(
    st.one_of(
        st.tuples(st.just("events"), st.tuples(integer, integer, text, text, text)),
        st.tuples(
            st.just("facts"), st.tuples(integer, integer, integer, text, text, text, text, st.binary(max_size=9))
        ),
        st.tuples(
            st.just("decisions"),
            st.tuples(
                *(integer, integer, text, integer, integer, text, text, text, text, text),
                *(st.binary(max_size=9), st.binary(max_size=9), st.none() | integer, st.none() | text),
                *(integer, hashed, hashed, st.none() | text),
            ),
        ),
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows)
def test_rows_come_back_bit_for_bit(store, monkeypatch, rows):
    monkeypatch.setattr(sim.record.store, "HEIGHT", 3)  # some rows in whole statements, some left over
    tbl = next(TBL)
    there = [(name, (tbl, seq, *row)) for seq, (name, row) in enumerate(rows)]
    for name, row in there:
        store.put(name, row)
    store.flush()
    assert repr(list(store.log(tbl))) == repr(there)


def test_columns_of_one_value_are_stored_in_every_row(store):
    """Their value is bound once for many rows, whatever it is, and one row that differs is kept as it is."""
    same = ("ann", 1, 0, '"go"', "chosen", "", "applied", "", b"\1", b"", None, None, 0, None, b"h", None)
    other = ("bob", 2, 1, '"no"', "forced", "r", "stale", "w", b"", b"\2", 3, "key", 4, b"d", None, "glad")
    there = [("decisions", (0, seq, 5, 0, *(other if seq == 60 else same))) for seq in range(2 * HEIGHT + 7)]
    for name, row in there:
        store.put(name, row)
    store.flush()
    assert repr(list(store.log(0))) == repr(there)


def test_the_log_is_the_merge_by_seq_of_each_table(store):
    many = 2 * BATCH + 500
    for seq in range(many):
        store.put(*numbered(seq, tbl=0))
        store.put(*numbered(seq, tbl=3))
    store.flush()
    assert list(store.log(3)) == [numbered(seq, tbl=3) for seq in range(many)]
    assert list(store.log(0)) == [numbered(seq) for seq in range(many)]
    assert [store.last_seq(tbl) for tbl in (0, 1, 3)] == [many - 1, -1, many - 1]
    assert list(store.log(1)) == []


def test_a_log_ends_where_it_ended_when_asked_for(store):
    for seq in range(10):
        store.put(*numbered(seq))
    store.flush()
    log = store.log(0)
    first = next(log)
    for seq in range(10, 20):
        store.put(*numbered(seq))
    store.flush()
    assert [first, *log] == [numbered(seq) for seq in range(10)]


def test_what_waits_for_long_is_committed_with_the_next_row_or_on_demand(store, monkeypatch):
    monkeypatch.setattr(sim.record.store, "INTERVAL", 0.05)
    store.flush()
    store.put(*numbered(0))
    assert store.last_seq(0) == -1
    store.commit_due()
    assert store.last_seq(0) == -1
    time.sleep(0.06)
    store.put(*numbered(1))
    assert store.last_seq(0) == 1
    store.put(*numbered(2))
    time.sleep(0.06)
    store.commit_due()
    assert store.last_seq(0) == 2


def test_a_full_batch_does_not_wait_for_the_clock(path, monkeypatch):
    monkeypatch.setattr(sim.record.store, "INTERVAL", 3600)
    with Store.create(path, manifest()) as store:
        for seq in range(BATCH):
            store.put(*numbered(seq))
        assert store.last_seq(0) == BATCH - 1


def test_no_more_than_2_000_rows_wait_however_long_an_event_is(path, monkeypatch):
    """Those that the log keeps back are among them."""
    monkeypatch.setattr(sim.record.store, "INTERVAL", 3600)
    with Store.create(path, manifest()) as store:
        log = Log(0, store.extend)
        most = 0
        for number in range(4_000):
            log.event(0, number // 700, "change")
            most = max(most, log.seq - 1 - store.last_seq(0))
            if number % 700 == 699:
                log.mark(0, number // 700)
        assert most <= 2_000


def test_a_transaction_that_is_interrupted_is_made_whole_by_the_next(store, monkeypatch):
    insert = sim.record.store._insert

    def interrupted(connection, table, rows):
        insert(connection, table, rows)
        raise KeyboardInterrupt

    store.put(*numbered(0))
    store.put(*numbered(1))
    monkeypatch.setattr(sim.record.store, "_insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.flush()
    monkeypatch.undo()
    assert store.last_seq(0) == -1
    store.put(*numbered(2))
    store.flush()
    assert list(store.log(0)) == [numbered(seq) for seq in range(3)]


def test_rows_whose_taking_is_interrupted_are_taken_as_far_as_it_came(path):
    """Ctrl-C may come between any two of them."""

    class Broken(list):
        def __iter__(self):
            yield from self[:3]
            raise KeyboardInterrupt

    with Store.create(path, manifest()) as store:
        store.put("texts", (b"a" * 16, "a"))
        with pytest.raises(KeyboardInterrupt):
            store.extend(Broken(numbered(seq) for seq in range(5)))
    with closing(Run(path)) as run:
        assert list(run.log(0)) == [numbered(seq) for seq in range(3)]


# --- texts and calls --------------------------------------------------------------------------------


def test_texts_are_kept_once_under_their_hash(path, store):
    name = store.text("Grüße\x00!")
    assert name == blake2b("Grüße\x00!".encode(), digest_size=16).hexdigest()
    assert store.text("Grüße\x00!") == name != store.text("")
    store.close()
    with Store.open(path) as again:
        assert again.text("Grüße\x00!") == name
        again.flush()
        assert again.text_of(name) == "Grüße\x00!"
        assert sum(map(len, again.pages("texts"))) == 2
        with pytest.raises(KeyError, match="no text 00"):
            again.text_of("00" * 16)


def test_forgotten_texts_are_still_kept_once(store, monkeypatch):
    monkeypatch.setattr(sim.record.store, "RECENT", 2)
    names = [store.text(text) for text in "abcab"]
    store.flush()
    assert sum(map(len, store.pages("texts"))) == 3
    assert [store.text_of(name) for name in names] == list("abcab")


def test_a_call_is_found_by_its_key(store):
    system = store.text("You trade apples.")
    asked = store.text("Price?")
    messages = f'[["system","{system}"],["user","{asked}"]]'
    store.put("calls", call("ann", messages=messages, options=(-0.5, None)))
    store.flush()
    completion = Completion(
        text="yes",
        ids=(5, 49151),
        logprobs=(-0.5, -0.10000000149011612),
        distribution="processed",
        option_logprobs=(-0.5, None),
        usage=Usage(prompt=10, cached=4, completion=2),
        latency=0.25,
    )
    assert store.completion(KEY) == (b"\x01" * 16, completion)
    assert store.completion(KEY._replace(call=1)) is None
    assert store.completion(KEY._replace(agent="bob")) is None
    assert store.request_text(KEY) == (
        '[system] You trade apples.\n[user] Price?\nformat {"choice":["yes","no"]}, seed 5, policy \'\''
    )


def test_the_request_of_a_form_shows_its_schema(store):
    schema = store.text('{"type":"object"}')
    store.put("calls", call("ann", form=f'{{"form":"{schema}"}}'))
    store.flush()
    assert store.request_text(KEY).startswith('format {"form":{"type":"object"}}, seed 5')


# --- the manifest and the file ----------------------------------------------------------------------


def test_the_manifest_comes_back_and_changes_durably(path):
    made = manifest(params={"goods": ["apple"], "limit": None}, versions={"agora-sim": "0.1"}, fork_tick=3)
    with Store.create(path, made) as store:
        assert store.manifest().model_dump() == {**made.model_dump(), "pid": os.getpid()}
        store.update(status="finished", hash="ab", hashes={"code": "c"})
        with closing(Run(path)) as run:
            found = run.manifest()
            assert (found.status, found.hash, found.hashes, found.params) == (
                "finished",
                "ab",
                {"code": "c"},
                made.params,
            )
        with pytest.raises(TypeError, match="no field state"):
            store.update(state="finished")


def test_where_a_file_cannot_be_made_it_is_said_why(tmp_path):
    with pytest.raises(FileFailure, match=r"a\.db\.new: unable to open database file"):
        sim.record.store._build(tmp_path / "nowhere" / "a.db", manifest(), {})


def test_a_run_for_which_there_is_no_room_is_not_made(path):
    """A limit on the size of files stands for a full disk; the cast is more than SQLite keeps in memory."""
    long = "x" * 1_000
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(FileFailure, match=r"\.db\.new: "):
            Store.create(path, manifest(), cast=[(0, n, f"a-{n}", *"1234", long, *"67", 0, "") for n in range(4_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(path.parent.glob("*.db")) + list(path.parent.glob("*.new"))


def test_a_run_is_never_made_over_another(path, store):
    store.put(*numbered(0))
    store.close()
    with pytest.raises(FileExistsError, match="there is a run"):
        Store.create(path, manifest())
    with Store.open(path) as again:  # the refused one let go of the lock
        assert again.last_seq(0) == 0


def test_what_a_killed_creation_leaves_is_no_obstacle(path):
    path.parent.mkdir()
    path.with_name(path.name + ".new").write_bytes(b"half a file")
    path.with_name(path.name + ".new-journal").write_bytes(b"half a journal")
    Store.create(path, manifest()).close()
    with closing(Run(path)) as run:
        assert run.manifest().name == "test"


def test_a_run_at_rest_is_one_file(path, store):
    for seq in range(100):
        store.put(*numbered(seq))
    store.close()
    store.close()
    files = sorted(path.parent.iterdir())
    assert files == [path, path.with_name(path.name + ".lock")]
    with closing(Run(path)) as run:
        assert len(list(run.log(0))) == 100
        assert sorted(path.parent.iterdir()) == files


def test_a_reader_at_work_does_not_hinder_closing(path, store):
    for seq in range(5_000):
        store.put(*numbered(seq))
    store.flush()
    with closing(Run(path)) as run:
        log = run.log(0)
        next(log)
        store.close()
        assert len(list(log)) == 4_999
    with Store.open(path) as again:
        assert again.last_seq(0) == 4_999


def test_a_missing_run_is_missing(path):
    for open_it in (Store.open, Run):
        with pytest.raises(FileNotFoundError, match="there is no"):
            open_it(path)
    assert not path.parent.exists()


def test_another_record_version_is_refused_with_advice(path, store):
    store.update(versions={"agora-sim": "9.2"})
    store.close()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE run SET schema_version = 99")
    for open_it in (Store.open, Run):
        with pytest.raises(SchemaMismatch, match=r"version 99, this agora-sim reads 5: open it with agora-sim 9\.2"):
            open_it(path)
    assert not held(path)


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_a_file_that_is_no_run_is_refused_untouched(tmp_path, content):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(SchemaMismatch, match="is not a run"):
        Store.open(path)
    assert path.read_bytes() == content


def test_durability_is_a_pragma(tmp_path):
    found = []
    for synchronous in ("NORMAL", "FULL"):
        engine = writable(tmp_path / "x.db", synchronous)
        with closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            found.append([cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")])
        engine.dispose()
    assert found == [["wal", 1], ["wal", 2]]


# --- who may write ----------------------------------------------------------------------------------


def test_a_second_writer_is_refused_by_name(path, store):
    for refused in (lambda: Store.open(path), lambda: Store.create(path, manifest())):
        with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
            refused()
    assert held(path)
    store.close()
    assert not held(path)


def test_a_reader_that_asks_whether_a_run_is_held_hinders_nobody(path, store):
    store.close()
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            held(path)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(10):
            Store.open(path).close()
    finally:
        stop.set()
        asking.join()


# --- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("facts", fact(2, 0)[:-1]),
        ("facts", numbered(0)[1]),
        ("nonsense", (1,)),
        ("events", (*event(2)[:-1], "\ud800")),
        ("events", event(2**63)),
    ],
)
def test_a_row_that_cannot_be_written_stops_the_record_there(path, table, row):
    store = Store.create(path, manifest())
    store.put(*numbered(0))
    store.put(*numbered(1))
    store.flush()
    store.put(table, row)
    store.put(*numbered(3))
    with pytest.raises(RecordFailure, match="cannot be written"):
        store.flush()
    with pytest.raises(RecordFailure):
        store.put(*numbered(4))
    with pytest.raises(RecordFailure):
        store.close()
    assert not held(path)
    with Store.open(path) as again:
        assert list(again.log(0)) == [numbered(0), numbered(1)]


def test_rows_that_fit_their_table_only_together_are_refused(path):
    store = Store.create(path, manifest())
    for seq in range(7):  # of six values each, as many as six events have
        store.put("events", tuple(range(6 * seq, 6 * seq + 6)))
    with pytest.raises(RecordFailure, match="7 rows have the values of 6"):
        store.close()
    with Store.open(path) as again:
        assert list(again.log(0)) == []


def test_a_closed_store_takes_nothing(store):
    store.close()
    with pytest.raises(RecordFailure, match="closed"):
        store.put(*numbered(0))
    with pytest.raises(RecordFailure, match="closed"):
        store.flush()


@pytest.fixture
def writers():
    server = subprocess.Popen(PYTHON, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    with server:
        yield server
        server.stdin.close()


def begin(server, path, count, limit=0):
    """Start a process that writes numbered rows; its id."""
    server.stdin.write(f"{count} {limit} {path}\n")
    return int(server.stdout.readline())


def test_a_full_disk_is_told_and_leaves_a_prefix(path, writers):
    begin(writers, path, 100_000, limit=200_000)
    assert writers.stdout.readline().startswith("RecordFailure: ")
    assert writers.stdout.readline() == "gone\n"
    with Store.open(path) as store:
        log = list(store.log(0))
    assert 0 < len(log) < 100_000
    assert log == [numbered(seq) for seq in range(len(log))]


def test_killed_at_any_moment_the_log_is_a_prefix_and_goes_on(tmp_path, writers):
    luck = random.Random(20)
    for number, mark in enumerate((0, *(luck.randrange(6_000) for _ in range(7)))):
        path = tmp_path / f"{number}.db"
        child = begin(writers, path, 1_000_000)
        try:
            watch(path, mark)
            time.sleep(luck.random() * 0.05)
        finally:
            os.kill(child, signal.SIGKILL)
        assert writers.stdout.readline() == "gone\n"
        check_recovered(path, mark)


def watch(path, mark):
    """Return once so many rows are committed."""
    until(path.exists)
    with closing(Run(path)) as run:
        until(lambda: run.last_seq(0) >= mark)
        assert run.status == "running"


def check_recovered(path, mark):
    with closing(Run(path)) as run:
        assert run.status == "interrupted"
        assert len(list(run.log(0))) > mark or mark == 0
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Store.open(path) as store:
        there = store.last_seq(0) + 1
        assert list(store.log(0)) == [numbered(seq) for seq in range(there)]
        for seq in range(there, there + 100):
            store.put(*numbered(seq))
        store.flush()
        assert store.last_seq(0) == there + 99
