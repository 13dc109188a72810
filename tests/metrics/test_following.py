"""A run measured while it goes on: what is grown equals what is read at once, and what is kept is so far or final."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.library import PROJECT, measured_by, usual_metrics
from sim.metrics.following import moments
from sim.metrics.frames import Frames, frames, grown
from sim.record.prefix import Mark, Prefix
from sim.record.project import Numbers
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.steering.channel import connect
from sim.types import Measurement
from tests.commands import Agora
from tests.laws.societies import society
from tests.metrics.society import Society
from tests.sim.processes import Process, until

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHIPPED = {
    "negotiation/bargaining_llm.yaml": (),
    "games/covert_signals.yaml": ("tables=2",),
    "games/kuhn_llm.yaml": (),
    "games/stag_hunt_llm.yaml": (),
    "markets/apple_market_llm.yaml": (),
    "markets/apple_ring.yaml": (),
    "platforms/forum_injection.yaml": (),
    "platforms/forum_llm.yaml": (),
    "pricing/oligopoly_llm.yaml": (),
    "privacy/disclosure_llm.yaml": (),
    "verification/verification_llm.yaml": (),
}
"""One of each world and of each list of metrics, with what makes it small."""
TABLES = ("facts", "decisions", "events", "calls")


# --- frames that grow ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    """Two tables that go on by turns, whose calls are committed in another order than that of their keys."""
    made = Society(tmp_path_factory.mktemp("grown") / "run.db", tables=2)
    for agent in ("zoe", "ann"):
        made.member(agent)
    said: tuple[list[int], list[int]] = ([], [])
    for tick in range(1, 9):
        for table, agent in ((tick % 2, "zoe"), (0, "ann")):
            shows = said[table][-3:]
            made.act(agent, tick, shows=shows, recalls=shows[:1], calls=[{}] * (tick % 3), table=table)
            said[table].append(made.fact(tick, "message", agent, answers=shows[-2:], table=table, text=f"{tick}"))
    made.run().close()
    return Prefix(made.path)


def cuts(whole: Mark) -> st.SearchStrategy[list[Mark]]:
    """Marks on the way, each no earlier than the one before in any table."""
    ends = [seq for seq, _ in whole.logs]
    ways = [st.lists(st.integers(-1, end), min_size=3, max_size=3).map(sorted) for end in ends]
    calls = st.lists(st.integers(0, whole.calls), min_size=3, max_size=3).map(sorted)
    return st.tuples(st.tuples(*ways), calls).map(
        lambda drawn: [Mark(tuple((way[n], 0) for way in drawn[0]), drawn[1][n]) for n in range(3)]
    )


def read(record: Prefix, names: Sequence[str] = TABLES) -> Frames:
    found = frames(record)
    for name in names:
        getattr(found, name)
    return found


def alike(one: Frames, other: Frames) -> bool:
    return all(
        len(one.read[name]) == len(other.read[name])
        and all(each.equals(that) for each, that in zip(one.read[name], other.read[name], strict=True))
        for name in TABLES
    )


@settings(max_examples=15)
@given(data=st.data())
def test_frames_grown_in_any_steps_are_those_read_at_once(whole: Prefix, data: st.DataObject) -> None:
    before = None
    for mark in [*data.draw(cuts(whole.mark)), whole.mark]:
        with Prefix(whole.path, upto=mark) as now:
            if before is not None:
                grown(now, before)
            read(now, data.draw(st.lists(st.sampled_from(TABLES), unique=True)))
            if mark == whole.mark:
                assert alike(read(now), read(whole))
                assert frames(now).exposures.equals(frames(whole).exposures)
        before = now


def test_growing_reads_only_what_has_come_since(whole: Prefix) -> None:
    end = whole.mark
    earlier = Mark(tuple((seq - 2, 0) for seq, _ in end.logs), end.calls - 1)
    for name in TABLES:
        rows = [row for page in whole.since(name, earlier) for row in page]
        assert len(rows) == (1 if name == "calls" else sum(row[1] > earlier.logs[row[0]][0] for row in rows))
        assert [row for page in whole.since(name, end) for row in page] == []
    assert sum(len(page) for name in TABLES[:3] for page in whole.since(name, earlier)) == 4


def test_a_prefix_shows_nothing_that_came_later(whole: Prefix) -> None:
    upto = Mark(((5, 2), (3, 1)), 2)
    assert (upto.rows, upto.tick, Mark(((-1, -1), (3, 1)), 0).tick) == (10, 1, 0)
    with Prefix(whole.path, upto=upto) as run:
        assert max(one.seq for one in run.facts(table=0)) <= 5
        assert [one.seq for one in run.facts("message", 1)] == [one.seq for one in whole.facts(table=1) if one.seq < 4]
        assert max(one.seq for one in run.decisions(1)) <= 3
        assert run.last_seq(0) == 5
        for name, most in (("facts", 5), ("events", 5), ("decisions", 5)):
            assert all(row[1] <= (most, 3)[row[0]] for page in run.pages(name) for row in page)
        keys = [row[:5] for page in run.pages("calls") for row in page]
        assert len(keys) == 2
        assert keys == sorted(keys)


@pytest.mark.parametrize("name", SHIPPED)
def test_numbers_of_grown_frames_are_those_of_a_record_opened_anew(name: str, tmp_path: Path) -> None:
    """Every metric of scenarios of all worlds."""
    dry = [f"models.{model}.engine=synthetic" for model in load(SCENARIOS / name).models]
    path = create(load(SCENARIOS / name, [*dry, *SHIPPED[name]]), tmp_path)
    go(path)
    with Prefix(path) as afresh:
        end, metrics = afresh.mark, usual_metrics(afresh)
        expected = [measured_by(metric, afresh) for metric in metrics]
    assert not [flag for found in expected for one in found for flag in one.flags if flag.startswith("failed")]
    third, middle = (
        Prefix(path, upto=Mark(tuple((seq * part // 3, 0) for seq, _ in end.logs), end.calls * part // 3))
        for part in (1, 2)
    )
    with third, middle, Prefix(path) as now:
        read(third)
        grown(middle, third)
        grown(now, middle)
        assert [measured_by(metric, now) for metric in metrics] == expected


# --- a run that goes on --------------------------------------------------------------------------------------

METRICS = ("sim.metrics.honesty:stale_rate", "sim.metrics.provenance:reach")


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Society]:
    """A run that this process holds."""
    made = Society(tmp_path / "runs" / "hand.db")
    made.member("ann")
    made.act("ann", 3)
    yield made
    made.store.close()


def committed(made: Society) -> Path:
    for log in made.logs:
        log.hand_on()
    made.store.flush()
    return made.path


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Process]:
    """A run in a process of its own, paused after some steps, of which a follower sees some."""
    path = create(society("matrix", latency="uniform(1ms, 3ms)", slots=6), tmp_path / "runs", "on")
    process = Process(path)
    with connect(path) as channel:
        for _ in range(6):
            before = channel.status()["events"]
            channel.step("tick")
            until(lambda before=before: channel.status()["events"] > before)
    until(lambda: rows(path))
    yield process
    process.kill()


def rows(path: Path) -> int:
    """Rows of its log that are committed."""
    with Prefix(path) as now:
        return now.mark.rows


def so_far(path: Path) -> list[tuple[int, Measurement]]:
    numbers = path.with_name(PROJECT)
    if not numbers.exists():
        return []
    with Numbers(numbers) as found:
        return found.so_far(path.stem)


def final(path: Path) -> list[Measurement]:
    with Numbers(path.with_name(PROJECT)) as found:
        return [one for _, one in found.measurements(run=path.stem)]


def when(true: Callable[[], object], do: Callable[[], object], run: Process) -> None:
    """Do something as soon as something is true, beside what is going on; a run for which it never is, is ended."""

    def wait() -> None:
        try:
            until(true)
            do()
        except BaseException:
            run.kill()
            raise

    threading.Thread(target=wait).start()


def gone_on(path: Path) -> None:
    with connect(path) as channel:
        channel.go()


def ordered(found: Sequence[Measurement]) -> list[Measurement]:
    return sorted(found, key=lambda one: (one.metric, str(sorted(one.of.items()))))


def test_numbers_so_far_are_replaced_and_end_with_the_run(going: Society, agora: Agora) -> None:
    path = committed(going)
    seen = moments(path, METRICS)
    first = next(seen)
    assert (first.status, first.mark) == ("running", Mark(((1, 3),), 0))
    assert next(seen) == first, "nothing has happened since"
    assert so_far(path) == [(3, one) for one in ordered(first.found)]

    going.act("ann", 8, stale=True)
    committed(going)
    second = next(seen)
    assert (second.mark.tick, second.found[0].value) == (8, 0.5)
    assert so_far(path) == [(8, one) for one in ordered(second.found)]
    assert final(path) == []
    assert "measured so far, at 8s" in agora("show", "hand").out

    going.store.update(status="finished")
    assert [moment.status for moment in seen] == ["finished"]
    assert so_far(path) == []
    assert final(path) == ordered(second.found)
    assert "so far" not in agora("show", "hand").out


def test_two_who_follow_one_run_do_not_disturb_each_other(going: Society) -> None:
    path = committed(going)
    one, other, third = moments(path, METRICS), moments(path, METRICS), moments(path, METRICS[:1])
    assert next(one) == next(other)
    going.act("ann", 8)
    committed(going)
    late = next(third)
    assert [tick for tick, found in so_far(path) if found in late.found] == [8], "the latest of each number"
    assert {tick for tick, _ in so_far(path)} == {3, 8}
    assert next(other) == next(one)
    assert {tick for tick, _ in so_far(path)} == {8}
    going.store.update(status="finished")
    assert [moment.status for moment in (*one, *other, *third)] == ["finished"] * 3
    assert {found.metric for found in final(path)} == {found.metric for found in next(moments(path, METRICS)).found}


def test_the_command_shows_numbers_until_the_run_has_ended(running: Process, agora: Agora) -> None:
    path = running.path
    when(lambda: so_far(path), lambda: gone_on(path), running)
    said = agora("measure", "on", "--follow", "--every", "10ms")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("on is running: numbers so far, at ")
    assert "on is finished" in lines
    assert running.ended() == "finished"
    last = said.out[said.out.index("on is finished\n") + len("on is finished\n") :]
    assert last == agora("measure", "on").out
    assert agora("measure", "on", "--follow", "-q").out == f"on is finished\n{last}"


def test_ctrl_c_leaves_the_numbers_so_far_and_a_kill_does_not_end_them(
    running: Process, agora: Agora, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = running.path
    main = threading.main_thread().ident
    assert main
    monkeypatch.setenv("FORCE_COLOR", "1")

    def interrupt() -> None:
        time.sleep(1)  # what is kept is drawn
        signal.pthread_kill(main, signal.SIGINT)

    when(lambda: so_far(path), interrupt, running)
    said = agora("measure", "on", "--follow", "--every", "100ms")
    assert said.code == 0
    assert "numbers so far, at" in said.out
    assert "━" in said.out, "how much of the time is over"
    assert "Go on: agora measure on --follow" in said.out
    assert so_far(path)
    monkeypatch.delenv("FORCE_COLOR")

    running.kill()
    assert [moment.status for moment in moments(path)] == ["interrupted"]
    assert "measured so far, at" in agora("show", "on").out
    go(path)
    assert "so far" not in agora("show", "on").out
    assert agora("measure", "on").code == 0
    assert so_far(path) == []


def test_a_run_that_has_not_started_is_not_waited_for(agora: Agora, tmp_path: Path) -> None:
    create(society("matrix"), tmp_path / "runs", "new")
    said = agora("measure", "new", "--follow")
    assert said.out == "new is not started, so there is nothing to measure. Start it: agora resume new\n"
    assert not (tmp_path / "runs" / PROJECT).exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--every", "0"], "--every '0' is no time to rest; write a duration like 500ms, 5s or 1m"),
        (["--every", "soon"], "--every 'soon' is no time to rest"),
        (["--metric", "./none.py:name"], "none.py"),
        (["--across", "a:b"], "--follow measures one run alone; name one, without --across"),
        (["--chosen"], "--follow measures one run alone; name one, without --across and --chosen"),
    ],
)
def test_what_will_not_do_is_told(agora: Agora, tmp_path: Path, options: list[str], told: str) -> None:
    create(society("matrix"), tmp_path / "runs", "new")
    said = agora("measure", "new", "--follow", *options)
    assert said.code == 2
    assert told in said.line
