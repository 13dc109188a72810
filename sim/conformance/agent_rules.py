"""The rules of `sim.types:Agent`: deciding changes nothing, ends, is legal, and survives whatever models say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from random import Random

from sim.answers import illegal
from sim.calls import digest
from sim.conformance.findings import Broken, Finding, Findings
from sim.conformance.sameness import same
from sim.conformance.trials import MOST_CALLS, legal_text
from sim.streams import Streams
from sim.types import Action, Agent, Completion, Message, Mind, Request, Turn

Answer = Callable[[Request], Completion]

GARBAGE_TURNS = 3
"""First turns at which models answer garbage."""
_LONG = "blah " * 20_000
GARBAGE: dict[str, Completion] = {
    "a failed call": Completion(text=None, finish="error", error="refused"),
    "no text": Completion(text=None),
    "an empty text": Completion(text=""),
    "spaces": Completion(text=" \n\t "),
    "prose": Completion(text="As a language model I would rather talk about the weather."),
    "half an object": Completion(text='{"act": "bu', finish="length"),
    "an object of something else": Completion(text='{"colour": "red", "act": null}'),
    "a list": Completion(text="[1, 2, 3]"),
    "not a number": Completion(text='{"price": NaN, "act": "bid"}'),
    "control characters": Completion(text="\x00\x1b[31m\u202e\x07"),
    "thinking without an end": Completion(text="<think>Let me see"),
    "a very long text": Completion(text=_LONG, finish="length"),
}
"""Completions that answer nothing, by what they are."""


def agent_findings(make: Callable[[], Agent], turns: Sequence[Turn]) -> list[Finding]:
    """What is wrong with an agent that lives through these turns of one agent id, in order; `sim.check:turns_of`
    draws some from a world."""
    found = Findings()
    with suppress(Broken):
        _AgentRules(make, found).check(turns)
    return list(found)


def sensible(request: Request) -> Completion:
    """A legal answer, drawn from a hash of the request."""
    return Completion(text=legal_text(request.format, Random(digest(request, ""))))


class _AgentRules:
    """The checks of one agent."""

    def __init__(self, make: Callable[[], Agent], found: Findings) -> None:
        self.found = found
        try:
            self.agent = make()
        except Exception as error:
            found.add("it is built from its member", f"{type(error).__name__}: {error}")
            raise Broken from error
        self.first: dict[str, Message] = {}
        """First message of the requests made under the same rules."""

    def check(self, turns: Sequence[Turn]) -> None:
        """Find what is wrong, turn by turn; what it wants to remember it is given, as the kernel does."""
        if not self.found.expect("it has a state", hasattr(self.agent, "state"), "there is no attribute `state`"):
            raise Broken
        for n, turn in enumerate(turns):
            streams = Streams(n)
            asked, action = self._decided(turn, streams, sensible)
            self._again(turn, streams, asked, action)
            self._closed(turn, streams, len(asked))
            self._static(turn, asked)
            if asked and n < GARBAGE_TURNS:
                self._garbage(turn, streams)
            if action.state is not None:
                self.agent.state = action.state

    def _decided(self, turn: Turn, streams: Streams, answer: Answer, why: str = "") -> tuple[list[Request], Action]:
        """Let it decide, nothing of it changing, and look at what comes of it."""
        where = f"tick {turn.now}, {turn.agent}{why}"
        before = self._copy()
        asked: list[Request] = []
        try:
            action = _run(self.agent.act(turn, streams), answer, asked)
        except Exception as error:
            rule = "it survives what models say" if why else "it decides without an exception"
            self.found.add(rule, f"{where}: {type(error).__name__}: {error}")
            raise Broken from error
        self.found.expect("deciding changes nothing of it", same(self.agent, before), where)
        if not self.found.expect("it decides by an Action", isinstance(action, Action), f"{where}: {action!r}"):
            raise Broken
        reason = None if action.answer == turn.default else illegal(turn.format, action.answer)
        self.found.expect("its answers are legal", reason is None, f"{where}: {action.answer!r}: {reason}")
        return asked, action

    def _copy(self) -> Agent:
        try:
            return deepcopy(self.agent)
        except Exception as error:
            self.found.add("it can be deep-copied", f"{type(error).__name__}: {error}")
            raise Broken from error

    def _again(self, turn: Turn, streams: Streams, asked: Sequence[Request], action: Action) -> None:
        """A copy in the same place decides the same."""
        others: list[Request] = []
        other = _run(self._copy().act(turn, streams), sensible, others)
        equal = (other.answer, other.how) == (action.answer, action.how) and same(other.state, action.state)
        where = f"tick {turn.now}, {turn.agent}"
        self.found.expect(
            "one turn, one decision", equal and same(others, list(asked)), f"{where}: a copy decides otherwise"
        )

    def _closed(self, turn: Turn, streams: Streams, yields: int) -> None:
        """A mind that is dropped at any yield leaves the agent as it was."""
        where = f"tick {turn.now}, {turn.agent}"
        for stop in range(1, yields + 1):
            before = self._copy()
            mind = self.agent.act(turn, streams)
            requests = mind.send(None)  # type: ignore[arg-type]
            try:
                for _ in range(stop - 1):
                    requests = mind.send([sensible(request) for request in requests])
                mind.close()
            except StopIteration:
                return
            except RuntimeError as error:
                self.found.add("a mind can be dropped", f"{where}, at yield {stop}: {error}")
            self.found.expect("a dropped mind leaves no trace", same(self.agent, before), f"{where}, at yield {stop}")

    def _static(self, turn: Turn, asked: Sequence[Request]) -> None:
        """Prompts begin with what never changes, for the prefix cache."""
        for request in asked:
            if request.purpose == "act" and request.messages:
                first = self.first.setdefault(turn.rules, request.messages[0])
                where = f"tick {turn.now}, {turn.agent}: the first message is another than before"
                self.found.expect("what never changes comes first", first == request.messages[0], where)

    def _garbage(self, turn: Turn, streams: Streams) -> None:
        for name, completion in GARBAGE.items():
            self._decided(turn, streams, _always(completion), f", answered by {name}")


def _always(completion: Completion) -> Answer:
    return lambda _request: completion


def _run(mind: Mind, answer: Answer, asked: list[Request]) -> Action:
    """Run a mind to its end. Raises ValueError where it asks for ever, or for no requests."""
    completions: Sequence[Completion] | None = None
    try:
        while len(asked) <= MOST_CALLS:
            requests = list(mind.send(completions))  # type: ignore[arg-type]
            if not all(isinstance(request, Request) for request in requests):
                raise ValueError(f"it yields {requests!r}, not requests")
            asked += requests
            completions = [answer(request) for request in requests]
    except StopIteration as stop:
        action: Action = stop.value
        return action
    raise ValueError(f"it makes more than {MOST_CALLS} calls for one decision")
