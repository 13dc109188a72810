"""`agora play`: a person takes a seat in the terminal, while the run goes on in another thread.

The terminal's thread is the main one, so that Ctrl-C reaches whoever is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.commands.answering import Read, asked, line
from sim.commands.failures import BadInput
from sim.commands.terminal import Framed, plain, say
from sim.record.reader import Run
from sim.runs import Session, go
from sim.scenarios.binding import agents_named, nobody
from sim.scenarios.located import nearest, shown
from sim.scenarios.scenario import load, loads
from sim.scenarios.scenario_schema import Scenario
from sim.steering.channel import served
from sim.steering.control import Control
from sim.steering.live import Refused
from sim.steering.people import peoples, taking
from sim.types import AgentId

LOOK = 0.05
"""Seconds between looks at whether the seat is asked."""


def seated(path: Path, sets: Sequence[str], seat: AgentId) -> tuple[Scenario, AgentId]:
    """A scenario with a person in a seat: the one named, or the only one that the scenario gives to a person.

    Raises ScenarioError, BadInput.
    """
    scenario = load(path, sets)
    people = peoples(scenario)
    if seat and seat not in people:
        if agents_named(scenario, seat) != [seat]:
            raise BadInput(f"--seat: {nobody(scenario, (), seat).message}")
        return load(path, [*taking(seat), *sets]), seat
    return scenario, _only(people, seat)


def seat_of(path: Path, seat: AgentId) -> AgentId:
    """The seat that a person has in a stored run. Raises BadInput."""
    with Run(path) as run:
        manifest = run.manifest()
    people = peoples(loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario"))
    if seat and seat not in people:
        raise BadInput(f"--seat {shown(seat)}: no person plays it in {path.stem}; {nearest(seat, people)}")
    return _only(people, seat)


def _only(people: Sequence[AgentId], seat: AgentId) -> AgentId:
    if seat or len(people) == 1:
        return seat or people[0]
    raise BadInput(f"--seat is missing; {nearest('', people) if people else 'name an agent of the cast'}")


def played(path: Path, seat: AgentId, budget: int | None = None, read: Read = line) -> Session:
    """Run a stored run, a person answering for one seat; Ctrl-C, or the end of what is typed, leaves it resumable."""
    control: Future[Control] = Future()

    @contextmanager
    def beside(session: Session) -> Iterator[None]:
        with served(session) as found:
            control.set_result(found)
            yield

    with ThreadPoolExecutor(1, "run") as pool:
        run = pool.submit(go, path, budget=budget, beside=beside)
        try:
            _talk(run, control, seat, read)
        except (KeyboardInterrupt, EOFError):
            _stop(run, control)
        try:
            return run.result()
        except KeyboardInterrupt:
            _stop(run, control, now=True)
            return run.result()


def _talk(run: Future[Session], control: Future[Control], seat: AgentId, read: Read) -> None:
    """Put every question to the person until the run is over."""
    begun = False
    while not run.done():
        mine = [one for one in (control.result().questions() if control.done() else ()) if one["agent"] == seat]
        if not mine:
            time.sleep(LOOK)
            continue
        if not begun:
            say(Framed(mine[0]["about"], f"you are {seat}", "Ctrl-C: leave, to go on later"))
            begun = True
        say(Framed(mine[0]["text"], f"{seat} at {mine[0]['time']}", ""))
        while not _taken(control.result(), mine[0], read):
            pass


def _taken(control: Control, question: dict[str, Any], read: Read) -> bool:
    """Ask once; whether that is done with: answered, or not asked any more."""
    given = asked(question, read)
    try:
        control.answer(question["id"], given)
    except Refused as refused:
        say(plain(str(refused), "yellow"))
        return question["id"] not in {one["id"] for one in control.questions()}
    return True


def _stop(run: Future[Session], control: Future[Control], now: bool = False) -> None:
    """End the run, at the latest once it has begun."""
    while not run.done():
        try:
            control.result(LOOK).stop(now)
            return
        except (Refused, TimeoutError):
            time.sleep(LOOK)
