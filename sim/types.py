"""The seams: every value that crosses between scenario, world, kernel, agent, engine and record.

Values are frozen and keyword-only; `msgspec.structs.replace` makes changed copies. This module imports no other
project file at run time, so worlds and agents depend on it and on nothing behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sim.streams import Streams

JSON: TypeAlias = Any
"""None, bool, int, float, str, list or dict of these."""
AgentId: TypeAlias = str
FactId: TypeAlias = int
Event: TypeAlias = int | tuple[int, int]
"""A fact's id or a place in the log: alone where a run has one table, else after its table."""
Audience: TypeAlias = str | tuple[AgentId, ...]
"""`"all"`, a channel id such as `"#general"`, or the agents who can see a fact."""
Tokens: TypeAlias = tuple[int, ...]
Logprobs: TypeAlias = tuple[float, ...]
OptionLogprobs: TypeAlias = tuple[float | None, ...]
"""Of the options of a choice, in their order; None where it is not known."""

ALL = "all"


# --- the cast ---------------------------------------------------------------------------------


class Secret(Struct, frozen=True, kw_only=True):
    """Something its holder knows from the start and not everybody may learn."""

    subject: str
    """Whom it is about (often the holder)."""
    attribute: str
    """What it is: "diagnosis", "reservation price"."""
    value: str
    """The thing itself, as it would stand in a text."""
    holder: AgentId
    norms: tuple[Mapping[str, JSON], ...] = ()
    """Who may learn it, for which purpose: `{"to": agent, role or "#channel", "purpose": …}`."""
    forms: tuple[str, ...] = ()
    """Other ways to write the value."""
    severity: int = 1
    """How bad it is that it gets out, 1 to 5."""
    tolerance: Annotated[float, Meta(ge=0)] = 0
    """How far off a number may be, in its own unit, or a date, in days, and still count as the value."""
    prior: tuple[float, float] | None = None
    """Of a number, the least and the most that everybody knows it to be."""


class Seat(Struct, frozen=True, kw_only=True):
    """What a world is told about one member of the cast."""

    agent: AgentId
    role: str = ""
    private: Mapping[str, JSON] = {}
    """Private values of the agent: value, cost, type."""
    public: Mapping[str, JSON] = {}
    """What everybody may know of it: name, profile."""


class Member(Struct, frozen=True, kw_only=True):
    """What an agent is built from: its seat and what only it knows of itself."""

    seat: Seat
    persona: Mapping[str, JSON] = {}
    secrets: tuple[Secret, ...] = ()
    model: str = ""
    """Name of an entry of the scenario's `models:`; empty for a scripted agent."""
    context: int = 4096
    """Tokens the model can hold, prompt and answer together."""
    past: str = ""
    """What it knows of episodes before this one, in words."""


# --- a turn and its answer --------------------------------------------------------------------


class Choice(Struct, frozen=True, kw_only=True):
    """The answer is one of a few strings."""

    options: tuple[str, ...]


class Form(Struct, frozen=True, kw_only=True):
    """The answer is an object that fits exactly one of a few pydantic models."""

    models: tuple[type[BaseModel], ...]
    """Where there are several, each has a field `act` with one literal that tells it apart."""
    narrow: Mapping[str, Mapping[str, JSON]] = {}
    """JSON-Schema keywords that hold for this turn only, by "Model.field": minimum, maximum, enum, maxLength."""


class Text(Struct, frozen=True, kw_only=True):
    """The answer is free text, at least one visible character."""

    max_chars: int = 280


Format: TypeAlias = Choice | Form | Text


def _plain(view: Mapping[str, JSON]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in view.items())


class Turn(Struct, frozen=True, kw_only=True):
    """What one agent sees at one tick and how it may answer."""

    agent: AgentId
    now: int
    """Tick at which it is seen."""
    view: Mapping[str, JSON]
    """Structured view; scripted agents read this."""
    format: Format
    default: JSON
    """The legal answer taken when no legal answer comes."""
    render: Callable[[Mapping[str, JSON]], str] = _plain
    """The view in words; called only by agents that read words."""
    recap: Callable[[Mapping[str, JSON]], str] | None = None
    """What is worth remembering of the view (what is new), in words; None: all of it."""
    rules: str = ""
    """The world's rules for this role: the same text at every turn."""
    shows: tuple[FactId, ...] = ()
    """Ids of the facts this view displays for the first time to this agent, or again."""
    key: str | None = None
    """The information state, where the view is one."""
    thread: int | None = None
    """Turns of one chain of tool uses share it."""

    @property
    def text(self) -> str:
        """The view in words."""
        return self.render(self.view)


How: TypeAlias = Literal["chosen", "retried", "defaulted", "faulted", "forced"]
"""How an answer came about; forced: an intervention put it in place of what was decided."""


class Action(Struct, frozen=True, kw_only=True):
    """An agent's answer. The mind fills the first group of fields, the kernel the second."""

    answer: JSON
    """A str for Choice and Text, a dict for Form."""
    how: How = "chosen"
    reason: str = ""
    """Why it was retried, defaulted or faulted."""
    state: object = None
    """The agent's state once this decision stands; None: unchanged."""
    recalls: tuple[FactId, ...] = ()
    """Facts that remembered things came from."""
    feels: str | None = None
    """What the agent felt when it decided, in a word of its mind's own; None where it has no emotion."""

    agent: AgentId = ""
    seen: int = 0
    """Tick at which its turn was seen."""
    shows: tuple[FactId, ...] = ()
    """What that turn displayed."""
    thread: int | None = None
    """The turn's thread."""

    @property
    def meant(self) -> bool:
        """Whether the agent, or whoever forced it, means it: no default stands in."""
        return self.how not in ("defaulted", "faulted")


# --- model calls --------------------------------------------------------------------------------


class Message(Struct, frozen=True, kw_only=True):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    text: str


class Sampling(Struct, frozen=True, kw_only=True):
    """How tokens are drawn."""

    temperature: float = 0.8
    top_p: float = 1.0
    max_tokens: int = 256


DEFAULT_SAMPLING = Sampling()


class CallKey(NamedTuple):
    """Names one model call of one run, whatever the order in which calls were made."""

    table: int
    agent: AgentId
    tick: int
    """Tick at which the decision's turn was seen."""
    nth: int
    """n-th decision of the agent in that tick."""
    call: int
    """n-th call of the decision."""


NO_KEY = CallKey(0, "", 0, 0, 0)
HUMAN = "human"
"""Purpose of a call that a person answers: its answer is committed at once, and nobody who stops a run waits for it."""


class Request(Struct, frozen=True, kw_only=True):
    """One model call. Minds fill the first group; the kernel and the host the second."""

    messages: tuple[Message, ...]
    format: Format
    purpose: str = "act"
    """act, rethink, memory, human, or the agent's own word."""
    model: str = ""
    """Name in the scenario's `models:`."""
    max_tokens: int | None = None
    """Bound on the answer; None: the model's own setting."""

    sampling: Sampling = DEFAULT_SAMPLING
    seed: int = 0
    """Sampling seed, 32 bits."""
    policy: str = ""
    """Adapter `name@v`, empty for the base model."""
    priority: int = 0
    """Smaller is more urgent: the tick at which the decision is due (one table), else submission order."""
    key: CallKey = NO_KEY


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one call."""

    prompt: int = 0
    cached: int = 0
    """Prompt tokens served from the prefix cache."""
    completion: int = 0


NO_USAGE = Usage()


class Completion(Struct, frozen=True, kw_only=True):
    """What came of one model call; a failed request is a completion with an `error`."""

    text: str | None
    finish: Literal["stop", "length", "error"] = "stop"
    error: str = ""
    prompt_ids: Tokens = ()
    ids: Tokens = ()
    """Sampled token ids exactly as the engine had them."""
    logprobs: Logprobs = ()
    """Natural logarithms, one per sampled token."""
    distribution: Literal["", "raw", "processed"] = ""
    """Of which distribution: the model's own, or the masked and tempered one that was sampled."""
    option_logprobs: OptionLogprobs = ()
    """Of a choice: of every option, as `logprobs` are of what was sampled; empty where nothing is known of others."""
    usage: Usage = NO_USAGE
    latency: float = 0.0
    """Wall seconds from submission; never read by a simulation."""
    policy: str = ""
    """The policy version that answered."""


class EngineFailure(Exception):
    """The engine itself is unusable (dead, unreachable, no quota, bad credentials): the run pauses."""


# --- what happens in a world --------------------------------------------------------------------


class Fact(Struct, frozen=True, kw_only=True):
    """Something that happened and can be seen."""

    id: FactId
    """Counted from 0 per table by the world."""
    kind: str
    """message, trade, vote, price, join, leave, …"""
    actor: AgentId = ""
    """Who did it; empty: the world."""
    audience: Audience = ALL
    data: Mapping[str, JSON] = {}
    answers: tuple[FactId, ...] = ()
    """Facts it answers."""


class Wake(Struct, frozen=True, kw_only=True):
    """Ask an agent at a tick (not earlier than now)."""

    agent: AgentId
    tick: int
    interrupt: bool = False
    """Drop what it is thinking about, if anything, and start anew."""


class Result(Struct, frozen=True, kw_only=True):
    """What became of one action."""

    status: Literal["applied", "stale"] = "applied"
    reason: str = ""


APPLIED = Result()


class Outcome(Struct, frozen=True, kw_only=True):
    """What a world answers to reset, step and change."""

    facts: Sequence[Fact] = ()
    wakes: Sequence[Wake] = ()
    timers: Sequence[int] = ()
    """Ticks, later than now, at which to step even with no action."""
    results: Sequence[Result] = ()
    """One per action of the step, in order."""
    rewards: Mapping[AgentId, float] = {}
    ended: Mapping[AgentId, Literal["terminated", "truncated"]] = {}


class Say(Struct, frozen=True, kw_only=True):
    """Intervention: a message from outside."""

    text: str
    to: Audience = ALL


class Set(Struct, frozen=True, kw_only=True):
    """Intervention: a new value for a parameter in `World.changeable`."""

    key: str
    value: JSON


class Join(Struct, frozen=True, kw_only=True):
    """Intervention: a new agent takes a seat."""

    seat: Seat


class Leave(Struct, frozen=True, kw_only=True):
    """Intervention: an agent leaves for good; its id is never used again."""

    agent: AgentId


class Become(Struct, frozen=True, kw_only=True):
    """Intervention: from its next turn on, an agent is another one, in the same seat. The world does not hear of it."""

    agent: AgentId
    what: Mapping[str, JSON]
    """What is another: use, with, model, persona."""


class Act(Struct, frozen=True, kw_only=True):
    """Intervention: the agent's next decision to be performed has another answer than it chose. No world hears of it.

    What the mind remembers stays as it decided; an answer that its turn does not allow is recorded and does nothing.
    """

    agent: AgentId
    answer: JSON


Change: TypeAlias = Say | Set | Join | Leave
"""What a world is told of."""
Intervention: TypeAlias = Change | Act | Become
"""What is done to a run from outside."""


# --- the protocols --------------------------------------------------------------------------------

Mind: TypeAlias = Generator[Sequence[Request], Sequence[Completion], Action]


class World(Protocol):
    """The rules of one society, as explicit state.

    Built as `Class(params)` where `params` is an instance of its pydantic model `Params`.
    Every draw of luck goes through the streams given to `reset`, keyed by what it is about.
    """

    Params: ClassVar[type[BaseModel]]
    metrics: ClassVar[tuple[Metric, ...]]
    """The world's own outcome metrics, computed at the end of every run."""
    changeable: ClassVar[frozenset[str]]
    """Names of parameters that `Set` may change while running."""

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Start at tick 0."""

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """What the agent sees now; None: nothing to ask. Pure."""

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Apply all actions due at this tick and round, in cast order; none where only a timer is due."""

    def change(self, now: int, change: Change) -> Outcome:
        """Apply an intervention."""

    def state(self) -> JSON:
        """Everything, hidden parts included, as a fresh JSON value."""


class Agent(Protocol):
    """A mind: built as `Class(member, **settings)`.

    `act` is pure: it changes nothing of the agent. What should be remembered travels in
    `Action.state`, which the kernel makes the agent's `state` when the decision stands, so that a
    dropped decision leaves no trace.

    A class that asks models may have `models`, the keys of a cast entry that name them: `model` where it cannot do
    without, and settings of its own. A scenario in which they name none is then refused before it is run.
    """

    state: object
    """An immutable value (or None)."""

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Decide. Requests yielded together run together; a scripted agent yields nothing."""


class Engine(Protocol):
    """Answers model calls, from its own thread."""

    def submit(self, request: Request) -> Future[Completion]:
        """Start a call at once; the future may also fail with `EngineFailure`."""

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        """Log-probabilities of given continuations, where the engine can."""

    def close(self) -> None:
        """Free everything; idempotent."""


# --- the record, as metrics see it ------------------------------------------------------------


class Measurement(Struct, frozen=True, kw_only=True):
    """One number with what is needed to trust it. `value` is None, never 0, where the denominator is 0."""

    metric: str
    value: float | None
    unit: str = ""
    """A `ratio` is averaged and compared on the scale of its logarithm."""
    n: int = 0
    """Units the number is made of."""
    n_clusters: int = 1
    """Independent runs or tables among them."""
    ci: tuple[float, float] | None = None
    ci_method: str = ""
    events: tuple[Event, ...] = ()
    """Ids of the facts behind the numerator."""
    decisions: tuple[Event, ...] = ()
    """Places in the log of the decisions behind the numerator, where it counts decisions."""
    denominator: str = ""
    """What the number is a share of, in words."""
    excluded: Mapping[str, int] = {}
    """What was left out, and how often, by reason."""
    flags: tuple[str, ...] = ()
    null: Mapping[str, JSON] = {}
    """A test of no effect: `stat`, `p`, `method` and, where it permutes, `n_perm`."""
    judge: Mapping[str, JSON] = {}
    """Who judged, where a model did: its id, `Se`, `Sp`, `kappa` and `n_cal`."""
    version: int = 1
    """Of the metric's definition."""
    of: Mapping[str, JSON] = {}
    """What it is about: agent, role, table, period."""


class RecordedFact(Struct, frozen=True, kw_only=True):
    """A fact with its place in the log."""

    table: int
    seq: int
    tick: int
    fact: Fact


class RecordedDecision(Struct, frozen=True, kw_only=True):
    """A decision with its place in the log and what became of it."""

    table: int
    seq: int
    tick: int
    """Tick at which it was due."""
    nth: int
    action: Action
    result: Result
    calls: int
    """Model calls it took."""
    key: str | None = None
    """The information state, where the turn was one."""
    state: bytes | None = None
    """Hash of the world's whole state when the turn was seen, where recorded."""


class Record(Protocol):
    """A stored run, as read by metrics. Iteration is in table order, then log order."""

    @property
    def params(self) -> Mapping[str, JSON]:
        """The world's parameters, durations in ticks."""

    @property
    def tables(self) -> int:
        """Number of tables."""

    def cast(self, table: int = 0) -> Sequence[Member]:
        """Members in cast order, joiners last."""

    def facts(self, kind: str | None = None, table: int | None = None) -> Iterator[RecordedFact]:
        """Facts, of one kind where given."""

    def decisions(self, table: int | None = None) -> Iterator[RecordedDecision]:
        """Decisions that were stepped."""

    def rewards(self, table: int = 0) -> Mapping[AgentId, float]:
        """Sum of rewards by agent."""

    def pages(self, name: str) -> Iterator[list[tuple[Any, ...]]]:
        """All rows of one table of the run file, some at a time, in key order; columns as in its schema."""


Metric: TypeAlias = Callable[[Record], Iterable[Measurement]]
