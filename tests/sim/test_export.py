import runpy
import sys
from contextlib import closing
from hashlib import blake2b

import pyarrow.parquet as pq
import pytest

import sim.record.export
from sim.record.export import export_parquet
from sim.record.reader import Run
from sim.record.schema import RUN_FILE
from sim.record.store import Store
from tests.sim.rows import call, decision, event, fact, manifest, member


@pytest.fixture
def run(tmp_path):
    with Store.create(tmp_path / "run.db", manifest(params={"rounds": 3})) as store:
        store.text("hello")
        store.put("cast", member(0, "ann"))
        store.put("events", event(0, "start", {"ü": [1.5, None]}))
        store.put("facts", fact(1, 0, answers=[3, 1]))
        store.put("calls", call("ann", options=(-0.25, None)))
        store.put("calls", call("ann", 1))
        store.put("decisions", decision(2, "ann", seen=4, shows=[7, 0, 300], recalls=[2]))
        store.put("decisions", decision(3, "bob"))
        store.flush()
        with closing(Run(store.path)) as run:
            yield run


def test_every_table_becomes_a_file_with_its_columns(run, tmp_path):
    files = export_parquet(run, tmp_path / "new" / "out")
    assert sorted(file.name for file in (tmp_path / "new" / "out").iterdir()) == sorted(file.name for file in files)
    for name, table in RUN_FILE.tables.items():
        assert pq.read_schema(tmp_path / "new" / "out" / f"{name}.parquet").names == table.columns.keys()


def test_coded_columns_are_written_out(run, tmp_path):
    export_parquet(run, tmp_path / "out")
    read = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() for name in RUN_FILE.tables}
    assert [row["shows"] for row in read["decisions"]] == [[0, 7, 300], []]
    assert read["facts"][0]["answers"] == [1, 3]
    assert read["events"][0]["data"] == '{"ü":[1.5,null]}'
    assert read["texts"] == [{"hash": blake2b(b"hello", digest_size=16).hexdigest(), "text": "hello"}]
    asked = read["calls"][0]
    assert (asked["ids"], asked["prompt_ids"], asked["digest"]) == ([5, 49151], None, "01" * 16)
    assert asked["logprobs"] == pytest.approx([-0.5, -0.1], abs=1e-7)
    assert [row["option_logprobs"] for row in read["calls"]] == [[-0.25, None], None]
    assert (read["run"][0]["params"], read["run"][0]["fork_tick"], read["policies"]) == ('{"rounds":3}', None, [])


def test_exposures_have_a_row_for_each_fact_shown(run, tmp_path):
    export_parquet(run, tmp_path)
    rows = pq.read_table(tmp_path / "exposures.parquet").to_pylist()
    assert rows == [{"tbl": 0, "seq": 2, "agent": "ann", "tick": 4, "fact": shown} for shown in (0, 7, 300)]


def test_long_tables_are_written_in_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(sim.record.export, "GROUP", 4_000)
    with Store.create(tmp_path / "run.db", manifest()) as store:
        for seq in range(9_000):
            store.put("facts", fact(seq, seq))
        store.flush()
        with closing(Run(store.path)) as run:
            export_parquet(run, tmp_path)
    file = pq.ParquetFile(tmp_path / "facts.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [4_000, 4_000, 1_000]
    assert file.read()["id"].to_pylist() == list(range(9_000))
    assert pq.read_table(tmp_path / "exposures.parquet").num_rows == 0


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[ui\]'"):
        runpy.run_path(sim.record.export.__file__)
