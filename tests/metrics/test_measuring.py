"""Frames of a record, several runs together, and `agora measure` with metrics and secrets of one's own."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from sim.library import secrets_file
from sim.metrics.frames import field, frames, texts
from sim.metrics.pooling import pooled
from sim.types import Measurement, Secret
from tests.commands import Agora
from tests.metrics.society import Society, values

SCENARIO = """
name: coins
clock: {until: 20}
world: {use: "tests.sim.coins:Coins", rounds: 4, period: 5}
cast:
  - {name: a, agent: "agents.scripted:Constant", with: {answer: heads}, think: 1}
  - {name: b, agent: "agents.scripted:Constant", with: {answer: tails}, think: 1}
"""
METRIC = """
from sim.metrics.frames import frames
from sim.types import Measurement

def secrets(record):
    known = [secret for member in record.cast() for secret in member.secrets]
    yield Measurement(metric="secrets", value=float(len(known)), n=len(frames(record).decisions))

def broken(record):
    raise ValueError("no such thing")

number = 3
"""


def measured(value: float | None, unit: str = "", **more: object) -> Measurement:
    return Measurement(metric="m", value=value, unit=unit, n=10, **more)  # type: ignore[arg-type]


# --- several runs ------------------------------------------------------------------------------------------


def test_runs_are_clusters() -> None:
    numbers = {f"r{n}": [measured(value, excluded={"late": 1})] for n, value in enumerate((1, 2, 1, 2))}
    (found,) = pooled(numbers)
    assert found.value == 1.5
    assert found.ci == pytest.approx((0.581307, 2.418693), abs=5e-7)
    assert (found.n, found.n_clusters, found.ci_method, found.excluded) == (40, 4, "t over runs", {"late": 4})


def test_ratios_are_pooled_on_logs() -> None:
    (found,) = pooled({"a": [measured(10, "ratio")], "b": [measured(40, "ratio")], "c": [measured(160, "ratio")]})
    assert found.value == pytest.approx(40)
    assert found.ci_method == "t on logs over runs"


def test_the_interval_of_shares_ends_where_shares_do() -> None:
    """Mean 0.75, t(1) = 12.706 and a standard error of 0.25 reach far beyond; one that is no share stays as it is."""
    (found,) = pooled({"a": [measured(0.5, "share")], "b": [measured(1, "share")]})
    assert (found.value, found.ci) == (0.75, (0.0, 1.0))
    (found,) = pooled({"a": [measured(0.5, "share")], "b": [measured(1.5, "share")]})
    assert found.ci == pytest.approx((1 - 12.706 / 2, 1 + 12.706 / 2), abs=1e-3)


def test_where_no_run_has_any_the_bound_is_exact() -> None:
    """None of twenty: 1 − .05^(1/20) at most, and of all of them no less than 1 less that."""
    for value, ends in ((0, (0, 0.139108)), (1, (0.860892, 1))):
        (found,) = pooled({"a": [measured(value, "share")], "b": [measured(value, "share")]})
        assert found.ci == pytest.approx(ends, abs=1e-6)
        assert found.ci_method == "exact, one-sided over runs"
        assert found.flags == ("design effect unknown", "n_clusters<20")


def test_runs_without_a_value_are_counted_and_flags_say_of_how_many() -> None:
    numbers = {"a": [measured(None, flags=("odd",))], "b": [measured(3, flags=("n_clusters<2",))], "c": []}
    (found,) = pooled(numbers)
    assert (found.value, found.n_clusters, found.ci) == (3, 1, None)
    assert found.excluded == {"runs without a value": 2}
    assert found.flags == ("odd (1 of 3 runs)", "n_clusters<2")


def test_what_is_wrong_with_the_interval_of_a_run_is_not_told_of_that_over_runs() -> None:
    own = [measured(value, "share", flags=("design effect unknown",) * (not value)) for value in (0, 0.5)]
    (found,) = pooled({str(n): [one] for n, one in enumerate(own)})
    assert (found.ci_method, found.flags) == ("t over runs", ("n_clusters<20",))


def test_fewer_than_twenty_runs_are_flagged_whatever_the_runs_say_of_themselves() -> None:
    for runs, flags in ((19, ("n_clusters<20",)), (20, ()), (1, ("n_clusters<2",))):
        own = measured(1, flags=("n_clusters<2", "n_clusters<20"))
        (found,) = pooled({f"r{n}": [own] for n in range(runs)})
        assert found.flags == flags
    (nothing,) = pooled({f"r{n}": [measured(None)] for n in range(3)})
    assert (nothing.value, nothing.flags) == (None, ())


def test_numbers_about_different_things_stay_apart() -> None:
    numbers = [measured(1, of={"agent": "a"}), measured(2, of={"agent": "b"})]
    assert values(pooled({"r": numbers, "s": numbers})).keys() == {"m agent=a", "m agent=b"}


# --- frames ------------------------------------------------------------------------------------------------


@pytest.fixture
def society(tmp_path: Path) -> Society:
    made = Society(tmp_path / "run.db", tables=2)
    made.member("ann", role="buyer", model="small", secrets=[SECRET])
    first = made.say("ann", 1, "hello", table=1)
    made.act("ann", 5, seen=3, shows=[first], recalls=[first], calls=[{}], table=1)
    made.look("ann", 7, [first], table=1)
    made.fact(9, "message", "ann", answers=[first], table=1, text="again", more={"b": "two", "a": ["one", 1]})
    return made


SECRET = Secret(subject="ann", attribute="code", value="4711", holder="ann", norms=({"to": "bob"},), severity=3)


def test_frames_hold_the_record(society: Society) -> None:
    run = society.run()
    read = frames(run)
    assert read.facts.select("tbl", "tick", "id", "kind", "actor").rows() == [
        (1, 1, 0, "message", "ann"),
        (1, 9, 1, "message", "ann"),
    ]
    assert read.facts.select(field("data", "text"))["text"].to_list() == ["hello", "again"]
    assert read.decisions["seen"].to_list() == [1, 3, 7]
    assert read.shows["fact"].to_list() == [0, 0]
    assert read.recalls.rows() == [(1, 3, 0)]
    assert read.answers["fact"].to_list() == [0]
    assert read.exposures.rows() == [(1, "ann", 0, 3, 3, 5)]
    assert read.cast.rows() == [(0, 0, "ann", "buyer", "small"), (1, 0, "ann", "buyer", "small")]
    assert read.calls.select("purpose", "finish", "text").rows() == [("act", "stop", "yes")]
    assert read.events["kind"].to_list() == ["start", "tick", "start", "tick"]


def test_texts_come_in_the_order_of_their_keys() -> None:
    assert texts('{"text": "again", "more": {"b": "two", "a": ["one", 1]}}') == "one\ntwo\nagain"
    assert texts("{}") == ""


def test_a_table_is_read_once_and_let_go(society: Society) -> None:
    run = society.run()
    assert frames(run).facts is frames(run).facts
    gone = weakref.ref(run)
    run.close()
    del run
    gc.collect()
    assert gone() is None


def test_an_empty_record_has_empty_frames(tmp_path: Path) -> None:
    run = Society(tmp_path / "run.db").run()
    read = frames(run)
    assert all(len(frame) == 0 for frame in (read.facts, read.decisions, read.exposures, read.cast, read.calls))


def test_secrets_can_be_told_later(society: Society) -> None:
    late = Secret(subject="ann", attribute="street", value="Elm Street", holder="ann")
    assert [one.secrets for one in society.run([late]).cast(1)] == [(SECRET, late)]


# --- the command -------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, agora: Agora) -> Path:
    (tmp_path / "coins.yaml").write_text(SCENARIO)
    (tmp_path / "mine.py").write_text(METRIC)
    assert agora("run", "coins.yaml", "-q", "--name", "c1").code == 0
    return tmp_path


def test_honesty_stands_at_the_head(here: Path, agora: Agora) -> None:
    nothing, head, *rows = agora("measure", "c1").out.splitlines()
    assert nothing.startswith("c1 has nothing to measure")
    assert head.split() == ["honesty", "value", "unit", "n", "flags"]
    assert rows[0].split()[:2] == ["honesty.default_rate", "–"]
    only = agora("measure", "c1", "--metric", "sim.metrics.honesty:fault_rate").out.splitlines()
    assert [line.split()[0] for line in only] == ["honesty", "honesty.fault_rate"]


def test_an_unfit_run_is_marked(here: Path, agora: Agora) -> None:
    models = "models={m: {engine: synthetic, garbage: 1.0}}"
    cast = "cast=[{name: a, count: 2, agent: agents.llm:LLMAgent, model: m, think: 1}]"
    said = agora("run", "coins.yaml", "-q", "--name", "bad", "--set", models, "--set", cast)
    assert "not fit for claims: default rate 100.0% > 5%" in said.out
    for command in ("measure", "show"):
        assert "not fit for claims: default rate of a-1 100.0% > 20%" in agora(command, "bad").out.splitlines()


def test_a_metric_of_ones_own_on_stored_runs(here: Path, agora: Agora) -> None:
    (here / "secrets.yaml").write_text("secrets:\n  - {subject: a, attribute: code, value: '4711', holder: a}\n")
    assert agora("measure", "c1", "--metric", "./mine.py:secrets").out.split()[-3:] == ["secrets", "0", "8"]
    for seed in (2, 3):
        agora("run", "coins.yaml", "-q", "--name", f"c{seed}", "--set", f"seed={seed}")
    said = agora("measure", "c1", "c2", "c3", "c1", "--metric", "./mine.py:secrets", "--secrets", "secrets.yaml")
    assert said.out.splitlines()[1].split() == ["secrets", "1", "24", "all", "clusters", "alike"]
    assert said.out.splitlines()[2:] == [" Fewer than 20 runs are too few for headline numbers."], "once a table"
    assert "failed: ValueError: no such thing" in agora("measure", "c1", "--metric", "./mine.py:broken").out


def test_each_number_again_of_what_was_chosen(here: Path, agora: Agora) -> None:
    """Most answers are garbage; of what is about honesty nothing is said again, nor where all is chosen."""
    (here / "mine.py").write_text(
        METRIC.replace("def broken", "def chosen(record):\n    yield from both(secrets)(record)\n\ndef broken")
        + "from sim.metrics.chosen import both\n"
    )
    models = "models={m: {engine: synthetic, garbage: 0.7}}"
    cast = "cast=[{name: a, count: 2, agent: agents.llm:LLMAgent, model: m, think: 1}]"
    agora("run", "coins.yaml", "-q", "--name", "bad", "--set", models, "--set", cast)
    metrics = [
        *("--metric", "./mine.py:secrets", "--metric", "./mine.py:broken"),
        *("--metric", "sim.metrics.honesty:stale_rate"),
    ]
    said = agora("measure", "bad", "--chosen", *metrics).out.splitlines()
    plain, again = (line.split() for line in said if line.startswith(" secrets"))
    assert (plain[1:], again[1:4]) == (["0", "8"], ["decisions", "chosen", "0"])
    assert int(again[4]) < 8
    assert sum("honesty." in line for line in said) == sum("failed:" in line for line in said) == 1
    usual = agora("measure", "c1", "--chosen", *metrics).out
    assert "chosen" not in usual
    own = agora("measure", "bad", "--chosen", "--metric", "./mine.py:chosen").out
    assert own.count("decisions chosen") == 1, "what says so by itself says it once"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--chosen", "--across", "a:b"], "--chosen is about metrics of single runs; leave --across out"),
        (["--metric", "./mine.py:number"], "--metric ./mine.py:number cannot be called"),
        (["--metric", "./mine.py:secret"], "did you mean secrets?"),
        (["--metric", "honesty"], "'honesty' names nothing; write module:Name"),
        (["--secrets", "none.yaml"], "none.yaml"),
        (["--secrets", "coins.yaml"], "coins.yaml: "),
    ],
)
def test_what_will_not_do_is_told(here: Path, agora: Agora, options: list[str], told: str) -> None:
    said = agora("measure", "c1", *options)
    assert said.code == 2
    assert told in said.line


def test_a_file_of_secrets_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("secrets: [{subject: a, attribute: code, value: 4711, holder: a}]")
    with pytest.raises(ValueError, match=r"s\.yaml: Expected `str`, got `int` - at `\$\.secrets\[0\]\.value`"):
        secrets_file(file)
    known = "subject: a, attribute: salary, value: '4711', holder: a"
    file.write_text(f"secrets: [{{{known}, tolerance: 50, prior: [0, 9000]}}, {{{known}, prior: [5000, 9000]}}]")
    with pytest.raises(ValueError, match=r"s\.yaml: secrets\.1\.prior: \[5000\.0, 9000\.0\] does not hold"):
        secrets_file(file)
