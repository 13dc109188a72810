"""A small world that keeps all the rules, and worlds and agents that each break one of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from sim.types import (
    APPLIED,
    Action,
    Choice,
    Fact,
    Form,
    Join,
    Leave,
    Member,
    Message,
    Outcome,
    Request,
    Say,
    Set,
    Text,
    Turn,
    Wake,
)

OPTIONS = Choice(options=("heads", "tails"))


class Coins:
    """Everybody guesses a coin at the end of each period; only the guesser learns how it went."""

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)
        rounds: int = 8
        period: int = 20

    metrics: ClassVar[Any] = ()
    changeable: ClassVar[Any] = frozenset({"period"})

    def __init__(self, params: Any) -> None:
        self.params = params

    def reset(self, seats: Sequence[Any], streams: Any) -> Outcome:
        self.streams, self.period = streams, self.params.period
        self.round, self.facts = 0, []
        self.agents = [seat.agent for seat in seats]
        self.guesses: dict[str, str] = {}
        return self.opened(0)

    def opened(self, now: int) -> Outcome:
        self.round, self.guesses = self.round + 1, {}
        self.closes = now + self.period
        return Outcome(wakes=[Wake(agent=agent, tick=now) for agent in self.agents], timers=[self.closes])

    def observe(self, now: int, agent: str) -> Turn | None:
        if agent not in self.agents or agent in self.guesses:
            return None
        mine = [fact for fact in self.facts if fact.audience == "all" or agent in fact.audience][-3:]
        return Turn(
            agent=agent,
            now=now,
            view={"round": self.round, "news": [dict(fact.data) for fact in mine]},
            format=OPTIONS,
            default="heads",
            rules="Guess the coin.",
            shows=tuple(fact.id for fact in mine),
        )

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        self.guesses |= {action.agent: action.answer for action in actions}
        results = [APPLIED] * len(actions)
        if now < self.closes or self.round > self.params.rounds:
            return Outcome(results=results)
        coin = self.coin()
        rewards = {agent: float(guess == coin) for agent, guess in self.guesses.items() if agent in self.agents}
        facts = [self.fact("coin", (agent,), side=coin) for agent in rewards]
        if self.round == self.params.rounds:
            self.round += 1
            ended: Any = dict.fromkeys(self.agents, "terminated")
            return Outcome(facts=facts, results=results, rewards=rewards, ended=ended)
        opened = self.opened(now)
        return replace(opened, facts=facts, results=results, rewards=rewards)

    def coin(self) -> str:
        return str(self.streams.choice(OPTIONS.options, "coin", self.round))

    def change(self, now: int, change: Any) -> Outcome:
        match change:
            case Say():
                return Outcome(facts=[self.fact("message", change.to, text=change.text)])
            case Set():
                self.period = change.value
            case Leave():
                self.agents.remove(change.agent)
            case Join():
                self.agents.append(change.seat.agent)
        return Outcome()

    def fact(self, kind: str, to: Any, **data: Any) -> Fact:
        self.facts.append(Fact(id=len(self.facts), kind=kind, audience=to, data=data))
        return self.facts[-1]

    def state(self) -> Any:
        return {
            "round": self.round,
            "closes": self.closes,
            "period": self.period,
            "guesses": dict(self.guesses),
            "agents": list(self.agents),
            "facts": [dict(fact.data) for fact in self.facts],
        }


# --- one rule broken each ------------------------------------------------------------------------


class Remembers(Coins):
    """Keeps its facts over a reset."""

    facts: list[Fact]

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        self.resets = 0

    def reset(self, seats: Any, streams: Any) -> Outcome:
        self.resets += 1
        return super().reset(seats, streams)

    def state(self) -> Any:
        return {**super().state(), "resets": self.resets}


class Counts(Coins):
    """Counts who looks."""

    looks = 0

    def observe(self, now: int, agent: str) -> Turn | None:
        self.looks += 1
        return super().observe(now, agent)

    def state(self) -> Any:
        return {**super().state(), "looks": self.looks}


class Wavers(Coins):
    """Says something else at every look."""

    _looks = 0

    def observe(self, now: int, agent: str) -> Turn | None:
        self._looks += 1
        turn = super().observe(now, agent)
        return turn and replace(turn, view={**turn.view, "look": self._looks})


class Turned(Coins):
    """Turns that can be changed by a subclass."""

    new: ClassVar[dict[str, Any]] = {}

    def observe(self, now: int, agent: str) -> Turn | None:
        turn = super().observe(now, agent)
        return turn and replace(turn, **self.new)


class Misnames(Turned):
    new: ClassVar[dict[str, Any]] = {"agent": "somebody"}


class Late(Turned):
    new: ClassVar[dict[str, Any]] = {"now": -1}


class IllegalDefault(Turned):
    new: ClassVar[dict[str, Any]] = {"default": "edge"}


class Unheard(Turned):
    new: ClassVar[dict[str, Any]] = {"shows": (10_000,)}


class Peeks(Coins):
    """Shows everybody everything."""

    def observe(self, now: int, agent: str) -> Turn | None:
        turn = super().observe(now, agent)
        return turn and replace(turn, shows=tuple(fact.id for fact in self.facts))


class Boundless(Turned):
    class Novel(BaseModel):
        text: str

    new: ClassVar[dict[str, Any]] = {"format": Form(models=(Novel,)), "default": {"text": ""}}


class Twins(Turned):
    new: ClassVar[dict[str, Any]] = {"format": Choice(options=("heads", "heads")), "default": "heads"}


class Mute(Turned):
    new: ClassVar[dict[str, Any]] = {"format": Text(max_chars=0)}


class Impossible(Turned):
    class Odd(BaseModel):
        number: int = Field(ge=1, le=3, multiple_of=7)

    new: ClassVar[dict[str, Any]] = {"format": Form(models=(Odd,)), "default": {"number": 1}}


class Unreadable(Turned):
    new: ClassVar[dict[str, Any]] = {"recap": lambda view: view["nothing"]}


class Wordless(Turned):
    new: ClassVar[dict[str, Any]] = {"render": lambda view: None}


class Stepped(Coins):
    """Outcomes of steps that can be changed by a subclass."""

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        return self.spoilt(now, super().step(now, actions))

    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return outcome


class Forgetful(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, results=())


class Silent(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Any:
        return None


class Backwards(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, timers=[now])


class Yesterday(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, wakes=[Wake(agent=self.agents[0], tick=now - 1)])


class Calls(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, wakes=[Wake(agent="nobody", tick=now)])


class Pays(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, rewards={"nobody": 1.0})


class Infinite(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, rewards={self.agents[0]: float("inf")})


class Ends(Stepped):
    def spoilt(self, now: int, outcome: Outcome) -> Outcome:
        return replace(outcome, ended=dict.fromkeys(outcome.ended, "asleep"))  # type: ignore[arg-type]


class Skips(Coins):
    """Leaves a number out."""

    def fact(self, kind: str, to: Any, **data: Any) -> Fact:
        made = super().fact(kind, to, **data)
        return replace(made, id=made.id + 1)


class Foretells(Coins):
    """Answers facts that are not there yet."""

    def fact(self, kind: str, to: Any, **data: Any) -> Fact:
        made = super().fact(kind, to, **data)
        return replace(made, answers=(made.id,))


class Unwritable(Coins):
    """A fact that no file can hold."""

    def fact(self, kind: str, to: Any, **data: Any) -> Fact:
        return super().fact(kind, to, **data, who={"ann", "ben"})


class Invents(Coins):
    """Speaks to somebody who is not there."""

    def fact(self, kind: str, to: Any, **data: Any) -> Fact:
        return super().fact(kind, ("nobody",), **data)


class NotANumber(Coins):
    def state(self) -> Any:
        return {**super().state(), "mean": float("nan")}


class Shared(Coins):
    """Hands out its own list."""

    def reset(self, seats: Any, streams: Any) -> Outcome:
        self.log: list[str] = []
        return super().reset(seats, streams)

    def coin(self) -> str:
        self.log.append(super().coin())
        return self.log[-1]

    def state(self) -> Any:
        return {**super().state(), "log": self.log}


class Tied(Coins):
    """Shares what it has paid with every copy of itself."""

    paid: ClassVar[list[str]] = []

    def coin(self) -> str:
        self.paid.append("")
        return OPTIONS.options[len(self.paid) % 2]

    def reset(self, seats: Any, streams: Any) -> Outcome:
        self.paid.clear()
        return super().reset(seats, streams)


class Gambles(Coins):
    """Takes its luck from anywhere."""

    def coin(self) -> str:
        return random.choice(OPTIONS.options)


class Deaf(Coins):
    """Breaks when it is spoken to."""

    def change(self, now: int, change: Any) -> Outcome:
        if isinstance(change, Say) and change.to != "all":
            raise KeyError("to")
        return super().change(now, change)


class Fixed(Coins):
    """Declares changeable what it refuses to change."""

    def change(self, now: int, change: Any) -> Outcome:
        if isinstance(change, Set):
            raise ValueError("no")
        return super().change(now, change)


class Clings(Coins):
    """Wakes those who have left."""

    def change(self, now: int, change: Any) -> Outcome:
        return Outcome() if isinstance(change, Leave) else super().change(now, change)


class Breaks(Coins):
    """Raises in the third round."""

    def coin(self) -> str:
        if self.round == 3:
            raise ZeroDivisionError("of luck")
        return super().coin()


class Blind(Coins):
    """Cannot be asked about somebody who has guessed."""

    def observe(self, now: int, agent: str) -> Turn | None:
        if agent in self.guesses:
            raise KeyError(agent)
        return super().observe(now, agent)


class Bare(Coins):
    Params: Any = None


class Unlisted(Coins):
    metrics: ClassVar[Any] = ["mean"]


class Unnamed(Coins):
    changeable: ClassVar[Any] = ["period"]


class Refuses(Coins):
    def __init__(self, params: Any) -> None:
        raise ValueError("not today")


class Hurries(Coins):
    """Depends on who was seen first, in a variable of the class."""

    first: ClassVar[list[int]] = []

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        self.first.append(now)
        outcome = super().step(now, actions)
        return replace(outcome, facts=[*outcome.facts, self.fact("count", "all", n=len(self.first))])


# --- agents ---------------------------------------------------------------------------------------


class Guesser:
    """Keeps all the rules; asks nothing."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state: Any = 0

    def act(self, turn: Turn, streams: Any) -> Any:
        return Action(answer=turn.default, state=self.state + 1)
        yield


class Asks(Guesser):
    """Keeps all the rules; asks twice."""

    def system(self, turn: Turn) -> str:
        return turn.rules

    def act(self, turn: Turn, streams: Any) -> Any:
        messages = (Message(role="system", text=self.system(turn)), Message(role="user", text=turn.text))
        request = Request(messages=messages, format=turn.format)
        first, _ = yield [request, replace(request, purpose="memory")]
        (third,) = yield [request]
        return Action(answer=self.read(turn, first, third), state=self.state + 1)

    def read(self, turn: Turn, *completions: Any) -> Any:
        return turn.default


class Grows(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        self.state += 1
        return Action(answer=turn.default)
        yield


class Hoards(Asks):
    """Changes itself before the first yield."""

    def act(self, turn: Turn, streams: Any) -> Any:
        self.seen = turn.now
        return (yield from super().act(turn, streams))


class Tidies(Asks):
    """Puts back what it has changed, but only if it gets to the end."""

    def act(self, turn: Turn, streams: Any) -> Any:
        self.busy = True
        action = yield from super().act(turn, streams)
        del self.busy
        return action


class Stubborn(Asks):
    """Will not be dropped."""

    def act(self, turn: Turn, streams: Any) -> Any:
        request = Request(messages=(Message(role="system", text=turn.rules),), format=turn.format)
        try:
            yield [request]
        except GeneratorExit:
            yield [request]
        return Action(answer=turn.default)


class Cheats(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        return Action(answer="edge")
        yield


class Shrugs(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        return "heads"
        yield


class Fails(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        raise LookupError("no idea")
        yield


class Dices(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        return Action(answer=random.choice(("heads", "tails")), state=random.random())
        yield


class Trusts(Asks):
    """Believes that a model always says something."""

    def read(self, turn: Turn, *completions: Any) -> Any:
        return completions[0].text.strip() and turn.default


class Believes(Asks):
    """Takes any text for an answer."""

    def read(self, turn: Turn, *completions: Any) -> Any:
        return completions[0].text


class Shuffles(Asks):
    """Begins its prompts with what changes at every turn."""

    def system(self, turn: Turn) -> str:
        return f"It is {turn.now}. {turn.rules}"


class Endless(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        while True:
            yield [Request(messages=(Message(role="user", text="Well?"),), format=turn.format)]


class Mumbles(Guesser):
    def act(self, turn: Turn, streams: Any) -> Any:
        yield ["Well?"]
        return Action(answer=turn.default)


class Stateless(Guesser):
    def __init__(self, member: Member) -> None:
        pass


class Uncopied(Guesser):
    def __init__(self, member: Member) -> None:
        super().__init__(member)
        self.reading = (line for line in ())


class Unbuilt(Guesser):
    def __init__(self, member: Member) -> None:
        raise ValueError("no persona")
