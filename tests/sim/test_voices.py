"""Engines that are built when first needed, and by whom."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from agents.engines.synthetic import SyntheticEngine
from sim.types import Engine, EngineFailure
from sim.voices import LateEngine


def test_those_who_share_an_engine_wait_for_it_once() -> None:
    built = []

    def build() -> Engine:
        time.sleep(0.05)
        built.append(SyntheticEngine())
        return built[-1]

    late = LateEngine("slow", build)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: late.start(), range(4))) == set(built)
    late.close()
    assert len(built) == 1


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (EngineFailure("no such key"), "no such key"),
        (ImportError("no torch"), "the engine small is not installed: no torch"),
        (RuntimeError("no room"), "the engine small does not start: no room"),
    ],
)
def test_one_that_does_not_start_is_not_tried_by_each_of_them(error: Exception, why: str) -> None:
    tries = 0

    def build() -> Engine:
        nonlocal tries
        tries += 1
        raise error

    late = LateEngine("small", build)
    for _ in range(3):
        with pytest.raises(EngineFailure, match=why):
            late.start()
    assert tries == 1


def test_one_that_is_given_up_is_not_waited_for_and_closed_when_it_is_there() -> None:
    engine, begun, go_on, closed = SyntheticEngine(), Event(), Event(), Event()
    engine.close = closed.set  # type: ignore[method-assign]

    def build() -> Engine:
        begun.set()
        go_on.wait(10)
        return engine

    late = LateEngine("slow", build)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(late.start)
        assert begun.wait(10)
        assert late.starting
        late.give_up()
        with pytest.raises(EngineFailure, match="the engine slow was not waited for"):
            waiting.result(10)
    assert not late.starting
    go_on.set()
    assert closed.wait(10)
    assert late.built is None
