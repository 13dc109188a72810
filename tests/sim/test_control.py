"""A run under control: paused, stepped, slowed and stopped without a trace in its log; interventions that replay."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.fork import branch, fork
from sim.record.reader import Run
from sim.record.store import Store
from sim.runs import Session, create, go
from sim.scenarios.plan import Branch
from sim.scenarios.scenario import dump, extended, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.steering.control import Control
from sim.steering.live import Refused
from sim.verify import verify
from tests.laws.societies import society
from tests.laws.test_law4_kills import log_of
from tests.sim.processes import until

SCENARIO = loads(
    """
    {name: tiny, clock: {until: 1h}, world: {use: "tests.sim.tiny_society:Tiny"},
     cast: [{name: a, agent: "tests.sim.tiny_society:Fixed"}]}
    """,
    Path(),
)
DEEP: Any = "deep"
for _ in range(900):
    DEEP = [DEEP]


@contextmanager
def going(path: Path, paused: bool = True) -> Iterator[tuple[Control, Future[Session]]]:
    """The control of the run, which goes on in another thread; what it came to, once it is over."""
    ready: Future[Control] = Future()

    @contextmanager
    def beside(session: Session) -> Iterator[None]:
        control = Control(session)
        if paused:
            control.pause()
        ready.set_result(control)
        yield
        control.close()

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(go, path, beside=beside)
        control = ready.result(30)
        try:
            yield control, ended
            control.go()
        finally:
            if sys.exc_info()[0]:  # whatever went wrong, the run does not outlive its test
                with suppress(Refused):
                    control.stop()
            ended.result(60)


def at(control: Control, tick: int) -> None:
    """Step until simulated time has reached a tick."""
    until(lambda: control.status()["phase"] == "running")
    while control.status()["tick"] < tick:
        stepped(control, "tick")


def stepped(control: Control, by: str = "event") -> None:
    """Let one step happen."""
    before = control.status()["events"]
    control.step(by)
    until(lambda: control.status()["events"] > before)


def changed(name: str, **more: Any) -> Scenario:
    """A society with other keys."""
    data = {**society(name).located.data, **more}
    return loads(write_yaml(data), Path(), file=f"{name}.yaml")


def changes(path: Path) -> list[tuple[int, Any]]:
    with Run(path) as run:
        return [(tick, data) for _, tick, data in run.events("change")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that nobody touched."""
    folder = tmp_path_factory.mktemp("plain")
    made = {world: create(society(world), folder, world.replace(" ", "-")) for world in ("matrix", "double auction")}
    for path in made.values():
        go(path)
    return made


# --- time ------------------------------------------------------------------------------------------


def test_pause_steps_and_speed_leave_no_trace(plain: dict[str, Path], tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "held")
    with going(path) as (control, ended):
        until(lambda: control.status()["phase"] == "running")
        time.sleep(0.1)
        assert control.status()["tick"] == 0, "it is paused before its first event"
        at(control, 20)
        stood = control.status()
        time.sleep(0.1)
        assert control.status() == stood
        assert stood["paused"]
        control.speed(2000)
        control.go()
        until(lambda: control.status()["tick"] > stood["tick"])
        assert control.status()["speed"] == pytest.approx(2000)
        control.speed(None)
        assert ended.result(30).status == "finished"
    assert log_of(path) == log_of(plain["matrix"])


def test_a_step_is_one_event(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "steps")
    with going(path) as (control, _):
        until(lambda: control.status()["phase"] == "running")
        for number in range(12):
            assert control.status()["events"] == number
            stepped(control)
            time.sleep(0.04)


def test_speed_is_simulated_seconds_a_second(tmp_path: Path) -> None:
    """Twenty simulated seconds at 40 a second take half a second, however fast the models are."""
    path = create(changed("matrix", clock={"until": "20s"}), tmp_path, "paced")
    began = 0.0
    with going(path) as (control, ended):
        until(lambda: control.status()["phase"] == "running")
        control.speed(40)
        began = time.monotonic()
        control.go()
        ended.result(30)
    with Run(path) as run:
        last = run.last_tick(0)
    assert time.monotonic() - began >= last / 40 - 0.05


def test_stop_leaves_a_run_that_goes_on(plain: dict[str, Path], tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "stopped")
    with going(path) as (control, ended):
        at(control, 10)
        control.stop()
        assert ended.result(30).status == "interrupted"
    assert go(path).status == "finished"
    assert log_of(path) == log_of(plain["matrix"])


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_is_said_is_recorded_as_it_was_said(text: str) -> None:
    """Whatever signs it holds; the record is read back when the run is replayed."""
    scenario = extended(SCENARIO, [{"at": 5, "do": "say", "text": text}], "test")
    again = loads(dump(scenario), Path())
    assert again.interventions[-1] == scenario.interventions[-1]
    assert getattr(again.interventions[-1], "text", None) == text


# --- interventions ---------------------------------------------------------------------------------


def stepped_in(path: Path) -> list[tuple[int, Any]]:
    """Run it, and say, set and see somebody leave on the way."""
    with going(path) as (control, ended):
        at(control, 10)
        (said,) = control.intervene({"do": "say", "text": "A fire!", "to": ["slow-1", "quick"]})
        assert said["tick"] == control.status()["tick"] + 1
        at(control, 40)
        control.intervene({"do": "leave", "agent": "slow-2"})
        control.go()
        assert ended.result(30).status == "finished"
    return changes(path)


def test_interventions_are_inputs(plain: dict[str, Path], tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "live")
    found = stepped_in(path)
    assert [data["do"] for _, data in found] == ["say", "say", "leave"]
    assert found[0][1]["to"] == ["slow-1", "quick-1", "quick-2"]
    assert 10 < found[0][0] < 30 < found[2][0]
    assert log_of(path) != log_of(plain["matrix"])
    assert verify(path).whole
    child = fork(path, tmp_path, 5)
    session = go(child)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert log_of(child) == log_of(path), "a fork that changes nothing is identical, what was done live included"


def test_it_is_as_if_the_scenario_had_said_so(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "live")
    found = stepped_in(path)
    written = [
        {"at": found[0][0], "do": "say", "text": "A fire!", "to": ["slow-1", "quick"]},
        {"at": found[2][0], "do": "leave", "agent": "slow-2"},
    ]
    before = society("matrix").located.data["interventions"]
    same = create(changed("matrix", interventions=[*before, *written]), tmp_path, "same")
    go(same)
    assert log_of(same) == log_of(path)


def test_a_parameter_is_set_in_the_worlds_own_terms(tmp_path: Path) -> None:
    path = create(society("double auction"), tmp_path, "market")
    with going(path) as (control, _):
        at(control, 10)
        (effect,) = control.intervene({"do": "set", "key": "order_life", "value": "10s"})
        assert effect == {"table": 0, "tick": effect["tick"], "do": "set", "key": "order_life", "value": 10}
    assert verify(path).whole
    assert (effect["tick"], {"do": "set", "key": "order_life", "value": 10}) in changes(path)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"do": "say"}, "text: missing"),
        ({"do": "say", "text": "Hi", "to": "slow-9"}, "to: no agent has the id 'slow-9'"),
        ({"do": "say", "text": "Hi", "at": 3}, "at: an intervention on a run that is going on comes at its next"),
        ({"do": "set", "key": "weather", "value": 1}, "key: .* lets nobody change 'weather'"),
        ({"do": "leave", "agent": "nobody"}, "agent: no agent has the id 'nobody'"),
        ({"do": "leave", "agent": "slow-1", "why": 1}, "why: unknown key"),
        ({"do": "join", "entry": {}}, "agora fork RUN"),
        ({"do": "say", "text": DEEP}, "it cannot be read: RecursionError|nested more than"),
        ({"do": "dance"}, "do: 'dance' is no command"),
        ({}, "do: None is no command"),
        ([], r"do: \[\] is no command"),
        ({"do": "say", "text": "Hi", "table": 3}, "no table 3 is going on"),
        ({"do": "say", "text": "Hi", "table": "x"}, "table: 'x' is no table"),
        ({"do": "speed", "speed": 0}, "speed: 0 is no speed"),
        ({"do": "speed", "speed": True}, "speed: True is no speed"),
        ({"do": "speed", "speed": "fast"}, "speed: 'fast' is no speed"),
        ({"do": "step", "by": "year"}, "by: 'year' is no step"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_no_trace(spec: Any, why: str, plain: Any, tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "refused")
    with going(path) as (control, _):
        at(control, 5)
        with pytest.raises(Refused, match=why):
            control.obey(spec)
    assert log_of(path) == log_of(plain["matrix"])


def test_of_several_tables_each_has_its_own_moment(tmp_path: Path) -> None:
    path = create(changed("matrix", tables=3), tmp_path, "tables")
    with going(path) as (control, _):
        at(control, 20)
        effects = control.intervene({"do": "say", "text": "Listen."})
        (only,) = control.intervene({"do": "leave", "agent": "slow-1"}, table=1)
        assert only["table"] == 1
    assert {one["table"] for one in effects} == {0, 1, 2}
    assert verify(path).whole
    with Run(path) as run:
        for one in effects:
            said = {"do": "say", "text": "Listen.", "to": "all"}
            assert (one["tick"], said) in [(tick, data) for _, tick, data in run.events("change", one["table"])]
        left = [data for table in range(3) for _, _, data in run.events("change", table) if data["do"] == "leave"]
    assert len(left) == 1
    with pytest.raises(ValueError, match="interventions on single tables"):
        branch(path, tmp_path, [Branch(1, 10, 1)])


def test_after_an_interruption_what_is_recorded_stays_as_it_was(tmp_path: Path) -> None:
    """An intervention right after resuming comes after all that is recorded, calls in the dark included."""
    path = create(society("matrix"), tmp_path, "again")
    with going(path) as (control, _):
        at(control, 60)
        control.stop()
    recorded = log_of(path)
    with Run(path) as run:
        last = max(run.last_tick(0), run.last_call(0))
    assert last >= 40
    with going(path) as (control, _):
        until(lambda: control.status()["phase"] == "running")
        assert control.status()["tick"] == 0
        (effect,) = control.intervene({"do": "say", "text": "Here we are."})
        assert effect["tick"] == last + 1
    assert log_of(path)[: len(recorded)] == recorded
    assert verify(path).whole


def test_in_a_fork_it_comes_after_the_fork(plain: dict[str, Path], tmp_path: Path) -> None:
    child = fork(plain["matrix"], tmp_path, 50)
    with going(child) as (control, _):
        until(lambda: control.status()["phase"] == "running")
        (effect,) = control.intervene({"do": "say", "text": "From now on."})
        assert effect["tick"] == 50
    assert verify(child).whole
    assert [row for row in log_of(child) if row[1][2] < 50] == [
        row for row in log_of(plain["matrix"]) if row[1][2] < 50
    ]


def test_at_the_end_nothing_can_be_done(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "ended")
    with going(path, paused=False) as (control, ended):
        ended.result(30)
        with pytest.raises(Refused, match="the run is done"):
            control.intervene({"do": "say", "text": "Too late."})
    waiting = create(society("matrix"), tmp_path, "stopping")
    with going(waiting) as (control, _):
        at(control, 5)
        control._session.tables[0].until = control.status()["tick"]
        with pytest.raises(Refused, match="it is at its end"):
            control.intervene({"do": "say", "text": "Too late."})


def test_what_waits_when_the_run_ends_is_refused(tmp_path: Path) -> None:
    """The host does not come to the order: the run is over before."""
    path = create(society("matrix"), tmp_path, "over")
    with going(path) as (control, _):
        at(control, 5)
        host = control._session.host
        assert host is not None
        host._obey = lambda: None  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(control.intervene, {"do": "say", "text": "Now?"})
            until(lambda: control._waiting)
            control.stop()
            with pytest.raises(Refused, match="the run has ended"):
                asked.result(30)
    assert threading.active_count() < 50


def test_from_every_prefix_after_it_the_run_goes_on_to_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a crash leaves is a prefix of what was put; once an intervention is committed, it is in all of them."""
    path = create(society("matrix"), tmp_path, "whole")
    extend, update, rows, since = Store.extend, Store.update, [], []

    def noting(store: Store, several: Any) -> None:
        rows.extend(several)
        extend(store, several)

    def committing(store: Store, **fields: Any) -> None:
        update(store, **fields)
        since.extend([len(rows)] * ("scenario" in fields))

    with monkeypatch.context() as patched, going(path) as (control, ended):
        at(control, 20)
        patched.setattr(Store, "extend", noting)
        rows += _committed(control)
        patched.setattr(Store, "update", committing)
        control.intervene({"do": "say", "text": "A fire!", "to": "quick"})
        control.go()
        assert ended.result(30).status == "finished"
    with Run(path) as run:
        scenario = run.manifest().scenario
    for place in sorted({since[0], since[0] + 1, (since[0] + len(rows)) // 2, len(rows) - 1}):
        cut = create(society("matrix"), tmp_path, "cut")
        with Store.open(cut) as store:
            for table, row in rows[:place]:
                store.put(table, row)
            store.update(scenario=scenario)
        assert not verify(cut).whole
        assert go(cut).status == "finished"
        assert log_of(cut) == log_of(path)


def _committed(control: Control) -> list[tuple[str, Any]]:
    """All rows so far, calls and texts first."""
    store = control._session.store
    assert store is not None
    control._order(store.flush)
    calls = [(name, row) for name in ("texts", "calls") for page in store.pages(name) for row in page]
    return [*calls, *store.log(0)]
