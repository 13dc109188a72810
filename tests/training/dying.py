"""Trainings that are killed with -9 at a moment drawn at random, while something of theirs is being written."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

from sim.streams import Streams

HEAVY = ["training.loop", "worlds.games.openspiel", "agents.llm", "agents.engines.torch"]


def moment(most: int, name: str) -> int:
    """One of the first so many things that are written, by luck of that name."""
    return Streams(0).integer(1, most, name)


def killed(train: Callable[..., object], *args: object, at: int) -> None:
    """Train in a process of its own, which dies when it comes to write the so-manyth thing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    process = context.Process(target=_dying, args=(train, args, at))
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL


def _dying(train: Callable[..., object], args: tuple[object, ...], at: int) -> None:
    from sim.record import store
    from training import checkpoint, learner, sync

    count = 0

    def counted(method: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count >= at:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*given, **named)

        return call

    store._insert = counted(store._insert)
    checkpoint.write = counted(checkpoint.write)
    for owner, name in ((learner.Learner, "_step"), (sync.Publisher, "publish")):
        setattr(owner, name, counted(getattr(owner, name)))
    train(*args)
