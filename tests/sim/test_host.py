"""Engines that break, calls that are lost, and a host that is stopped."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from msgspec.structs import replace

from sim.calls import Calls, Voice
from sim.host import Host, Paused
from sim.kernel import Table
from sim.log import Log
from sim.simulate import player
from sim.streams import Root, Streams
from sim.types import Completion, EngineFailure, Request, Say, Usage
from tests.stage import Asker, Stage

YES = Completion(text="yes", usage=Usage(prompt=10, completion=1))


class Scripted:
    """An engine whose n-th call goes as the test says: a completion, an exception, or a future."""

    def __init__(self, call: Callable[[int, Request], Any]) -> None:
        self._call = call
        self.calls = 0

    def submit(self, request: Request) -> Future[Completion]:
        self.calls += 1
        given = self._call(self.calls, request)
        if isinstance(given, Future):
            return given
        future: Future[Completion] = Future()
        future.set_result(given)
        return future

    def score(self, requests: Any, continuations: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None: ...


class Rows:
    """Keeps what is put."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def text(self, text: str) -> str:
        return text

    def put(self, table: str, row: tuple[Any, ...]) -> None:
        self.calls.append(row)

    def flush(self) -> None: ...


def hosted(
    call: Callable[[int, Request], Any], agent: Any = None, budget: int | None = None, think: int = 1
) -> tuple[Host, Rows, Any]:
    """A host, what it recorded, and a table of one agent that asks until tick 5."""
    rows = Rows()
    calls = Calls({"m": Voice(engine=Scripted(call), model="m")}, store=rows)
    host = Host(calls, budget=budget)
    table = Table(
        Stage(), [player(agent or Asker(), "a", think)], streams=Streams(Root(0), ("table", 0)),
        log=Log(0, lambda rows: None), submit=calls.submit, pump=host.pump, until=5,
    )  # fmt: skip
    return host, rows, table


def raising(error: BaseException) -> Future[Completion]:
    future: Future[Completion] = Future()
    future.set_exception(error)
    return future


def cancelled() -> Future[Completion]:
    future: Future[Completion] = Future()
    future.cancel()
    return future


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda: raising(EngineFailure("dead")), "dead"),
        (lambda: raising(RuntimeError("a bug")), "RuntimeError: a bug"),
        (cancelled, "CancelledError"),
        (lambda: None, "NoneType"),
    ],
)
def test_a_call_that_breaks_is_the_engine_s_failure(broken: Any, why: str) -> None:
    host, rows, table = hosted(lambda n, _request: YES if n < 3 else broken())
    with pytest.raises(EngineFailure, match=why):
        host.run([table])
    assert len(rows.calls) == 2, "what came before is kept"


@pytest.mark.parametrize("error", [EngineFailure("dead"), RuntimeError("a bug")])
def test_an_engine_that_takes_no_call_has_failed_and_is_not_waited_for(error: Exception) -> None:
    def call(n: int, _request: Request) -> Any:
        if n == 2:
            host.stop = "tick"  # Ctrl-C at the same moment
            raise error
        return YES

    host, rows, table = hosted(call, Asker(together=3))
    with pytest.raises(EngineFailure, match=str(error)):
        host.run([table])
    assert host.calls.in_flight == 0
    assert len(rows.calls) == 1


def test_stopping_waits_for_calls_in_flight_and_keeps_them() -> None:
    late: Future[Completion] = Future()

    def call(n: int, _request: Request) -> Any:
        host.stop = "tick"
        return late

    host, rows, table = hosted(call)
    late.add_done_callback(lambda _future: None)
    import threading

    threading.Timer(0.1, late.set_result, (YES,)).start()
    with pytest.raises(Paused):
        host.run([table])
    assert len(rows.calls) == 1


def test_a_mind_sees_of_a_completion_what_the_record_holds() -> None:
    seen: list[Completion] = []

    class Looks(Asker):
        def act(self, turn: Any, streams: Any) -> Any:
            mind = super().act(turn, streams)
            requests = next(mind)
            completions = yield requests
            seen.extend(completions)
            try:
                mind.send(completions)
            except StopIteration as stop:
                return stop.value

    whole = replace(YES, text="yes\ud800", error="\ud800", prompt_ids=(1, 2), ids=(3,), logprobs=(-0.1,))
    whole = replace(whole, option_logprobs=(-0.1, None))
    host, rows, table = hosted(lambda _n, _request: whole, Looks())
    host.run([table])
    assert seen[0].text == "yes?"
    assert seen[0].error == "?"
    assert seen[0].prompt_ids == ()
    assert seen[0].ids == (3,)
    assert seen[0].logprobs[0] != -0.1
    assert seen[0].logprobs[0] == pytest.approx(-0.1)
    assert seen[0].option_logprobs == (seen[0].logprobs[0], None)
    row = rows.calls[0]
    assert (row[13], row[15], row[16]) == ("yes?", "?", None)


def test_the_budget_is_what_engines_were_paid() -> None:
    host, rows, table = hosted(lambda _n, _request: YES, budget=25)
    with pytest.raises(Paused, match="25 tokens is spent"):
        host.run([table])
    assert len(rows.calls) == 3
    assert host.calls.spent == 33


# --- what other threads want -------------------------------------------------------------------------


def test_it_plays_through_a_tick_and_no_further() -> None:
    host, _, table = hosted(lambda _n, _request: YES)
    host.run([table], last=3)
    assert table.now == 3
    assert not table.finished
    assert host.events == 4, "ticks 0 to 3"


def test_orders_are_followed_between_events_and_may_bring_an_earlier_one() -> None:
    late: Future[Completion] = Future()
    host, _, table = hosted(lambda n, _request: late if n == 1 else YES, think=4)
    seen: list[Any] = []

    def order() -> None:
        seen.append((table.now, table.next, table.ready, table.thinking("a"), table.thinking("nobody")))
        table.intend(1, Say(text="now"))
        table.intend(99, Say(text="after the end"))

    def while_waiting() -> None:
        """For the answer that is due at tick 4: it comes once the order has been followed."""
        if not seen:
            host.orders.put(order)
        elif table.world.changes and not late.done():
            late.set_result(YES)

    host._idle = while_waiting
    host.run([table])
    assert seen == [(0, 4, False, (0, 0), None)]
    assert [(tick, change.text) for tick, change in table.world.changes] == [(1, "now")]
    assert table.finished
