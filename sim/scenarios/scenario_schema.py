"""What a scenario file may hold, as pydantic models that keep everything as it was written.

What the names in it stand for (worlds, agents, metrics) and what the durations come to in ticks is
`sim.scenarios.binding`'s.
"""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, JsonValue, PrivateAttr, Tag

from sim.quantities import DISTRIBUTION_HELP, DURATION_HELP, milliseconds, ticks
from sim.scenarios.located import Keys, Located, ScenarioError, shown
from sim.scenarios.persona import Persona
from sim.scenarios.strict import Many, Strict
from sim.types import JSON, Sampling

ENGINES = {
    "vllm": "agents.engines.vllm:VLLMEngine",
    "torch": "agents.engines.torch:TorchEngine",
    "openai": "agents.engines.openai:OpenAIEngine",
    "synthetic": "agents.engines.synthetic:SyntheticEngine",
    "human": "agents.engines.human:HumanEngine",
}
"""Short names of the engines that come with the install."""
PERSON = "agents.human:Human"
"""The mind of a seat that a person takes."""
LONGEST = 1e15
"""Longest duration in milliseconds (31,000 years) or ticks."""
SHARE = re.compile(r"\d+(\.\d+)?%")
"""A part of something."""
STOP_RULE = re.compile(r"\s*([1-9][0-9]{0,11})\s+([A-Za-z_][\w -]*?)\s*")


def _duration(value: object) -> object:
    length: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        length = value
    elif isinstance(value, str):
        length = float(value) if value.strip().isdecimal() else milliseconds(value)
    if length is None or length < 0:
        raise ValueError(f"{shown(value)} is not {DURATION_HELP}, or a whole number of ticks")
    if length > LONGEST:
        raise ValueError(f"{shown(value)} is too long; expected at most 30,000 years")
    return value


def _distribution(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{shown(value)} is not {DISTRIBUTION_HELP}")
    return value


def _tolerance(value: object) -> object:
    if SHARE.fullmatch(value) if isinstance(value, str) else isinstance(value, int | float) and 0 <= value < inf:
        return value
    raise ValueError(f"{shown(value)} is no tolerance; expected a number from 0, or a share of the value like 5%")


def _tick(value: str) -> str:
    length = milliseconds(value)
    if not length or length > LONGEST:
        raise ValueError(f"{shown(value)} is no length of a tick; expected {DURATION_HELP}, more than 0")
    return value


def _stop_rule(value: str) -> str:
    if not STOP_RULE.fullmatch(value):
        raise ValueError(f'{shown(value)} is no stop rule; write a number and a kind of fact, like "40 trades"')
    return value


Duration: TypeAlias = Annotated[int | str, BeforeValidator(_duration)]
Quantity: TypeAlias = Annotated[int | float | str, BeforeValidator(_distribution)]
StopRule: TypeAlias = Annotated[str, AfterValidator(_stop_rule)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[^\W\d_][\w-]*$", max_length=64)]
"""A letter, then letters, digits, - and _."""
Dotted: TypeAlias = Annotated[str, Field(pattern=r"^[^:]+:[A-Za-z_]\w*$")]
"""`module:Name`, or `./file.py:Name` beside the scenario."""


class Clock(Strict):
    """Simulated time."""

    tick: Annotated[str, AfterValidator(_tick)] = "1s"
    """Length of one tick."""
    until: Duration | None = None
    """End of the run; null where the world ends by itself."""

    @property
    def tick_ms(self) -> float:
        """Milliseconds per tick."""
        return milliseconds(self.tick) or 0.0


class WorldSpec(Strict):
    """The world and its own parameters."""

    model_config = ConfigDict(extra="allow")

    use: Dotted
    """The world's class."""

    @property
    def params(self) -> dict[str, JSON]:
        """The world's own parameters, as written."""
        return dict(self.model_extra or {})


class ModelSettings(Strict):
    """One way to have model calls answered. Further keys are settings of the engine."""

    model_config = ConfigDict(extra="allow")

    engine: str
    """vllm, torch, openai, synthetic, human, or the `module:Name` of an engine."""
    model: str = ""
    """The engine's name for the model; `embedded` is the one that comes with the install."""
    temperature: float = Field(default=0.8, ge=0, le=10)
    """Of sampling; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Share of the probability that is sampled from."""
    max_tokens: int = Field(default=256, ge=1)
    """Longest answer."""
    context: int = Field(default=4096, ge=64)
    """Tokens that prompt and answer may take together."""
    record_tokens: bool = False
    """Whether prompt token ids are recorded."""
    policy: str = ""
    """Adapter `name@v` that speaks, one of the engine's `adapters`; empty: the model itself.

    A name without a version is a learner's, for `agora train`.
    """

    @property
    def engine_path(self) -> str:
        """Dotted path of the engine's class."""
        return ENGINES.get(self.engine, self.engine)

    @property
    def person(self) -> bool:
        """Whether a person answers."""
        return self.engine_path == ENGINES["human"]

    @property
    def needs_adapters(self) -> bool:
        """Whether the engine speaks only with the adapters that it is given."""
        return self.engine_path in (ENGINES["vllm"], ENGINES["torch"])

    @property
    def sampling(self) -> Sampling:
        """How its tokens are drawn."""
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)

    @property
    def settings(self) -> dict[str, JSON]:
        """The engine's own settings, as written."""
        return dict(self.model_extra or {})


class Sampled(Strict):
    """A persona dealt from a file, another one for each agent."""

    sample: str
    """The file, beside the scenario."""


class Picked(Strict):
    """One persona of a file."""

    file: str
    """The file, beside the scenario."""
    id: str
    """The persona's id in it."""


def _persona_kind(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return "sample" if "sample" in value else "file" if "file" in value else "inline"


PersonaSpec: TypeAlias = Annotated[
    Annotated[Sampled, Tag("sample")] | Annotated[Picked, Tag("file")] | Annotated[Persona, Tag("inline")],
    Discriminator(
        _persona_kind,
        custom_error_type="persona",
        custom_error_message="expected {sample: file}, {file: …, id: …} or a persona's own keys",
    ),
]


class Norm(Strict):
    """Who may learn a secret, and for what."""

    to: str
    """An agent, a role or a #channel."""
    purpose: str = ""
    """Empty: any."""


class FromPrivate(Strict):
    """The text of one of the agent's private values."""

    private: str
    """The private value's key."""


class SecretSpec(Strict):
    """Something every agent of the entry knows and not everybody may learn."""

    attribute: str = Field(min_length=1)
    """What it is: diagnosis, reservation price."""
    value: str | int | float | FromPrivate
    """A text, a distribution, or `{private: key}`."""
    subject: str = ""
    """Whom it is about; empty: the agent itself."""
    forms: Many[str] = ()
    """Other ways to write the value."""
    severity: int = Field(default=1, ge=1, le=5)
    """How bad it is that it gets out."""
    tolerance: Annotated[int | float | str, AfterValidator(_tolerance)] = 0
    """How far off a number or a date may be and still count as told."""
    prior: Annotated[tuple[float, float], Field(strict=False)] | None = None
    """Of a number: the least and the most that everybody knows it to be."""
    norms: Many[Norm] = ()
    """Who may learn it."""
    audience: Many[str] = ()
    """Short for norms without a purpose."""


class CastEntry(Strict):
    """One agent, or `count` agents alike; they are called `name`, or `name-1` to `name-count`."""

    name: Name
    """The agent's id, or what their ids start with."""
    count: int = Field(default=1, ge=1)
    """How many."""
    agent: Dotted
    """The agent's class."""
    settings: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    """Keywords of the class's constructor."""
    model: str = ""
    """An entry of `models`; empty for agents that use none."""
    role: str = ""
    """The agent's role in the world."""
    persona: PersonaSpec | None = None
    """Who the agent is."""
    private: dict[str, JsonValue] = Field(default_factory=dict)
    """Private values; distributions are drawn for each agent, durations become ticks."""
    public: dict[str, JsonValue] = Field(default_factory=dict)
    """What everybody may know."""
    secrets: Many[SecretSpec] = ()
    """What it knows and not everybody may learn."""
    think: Quantity = 1
    """How long a decision takes; a distribution."""

    @property
    def agents(self) -> list[str]:
        """The ids of its agents."""
        return [self.name] if self.count == 1 else [f"{self.name}-{n}" for n in range(1, self.count + 1)]


class Taken(Strict):
    """Who decides for an agent instead of what its entry names."""

    agent: Dotted
    """The mind's class."""
    settings: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    """Keywords of the class's constructor."""
    model: str = ""
    """An entry of `models`; empty for minds that use none."""


class SayAt(Strict):
    """A message from outside."""

    do: Literal["say"]
    """Always say."""
    at: Duration
    """When."""
    text: str = Field(min_length=1)
    """What is said."""
    to: str | Many[str] = "all"
    """all, a #channel, an agent, an entry of the cast, or a list of agents and entries."""
    table: int | None = Field(default=None, ge=0)
    """The only table that it reaches; all of them where not given."""


class SetAt(Strict):
    """A new value for a parameter that the world lets change."""

    do: Literal["set"]
    """Always set."""
    at: Duration
    """When."""
    key: str
    """The parameter."""
    value: JsonValue
    """Its new value."""
    table: int | None = Field(default=None, ge=0)
    """The only table that it reaches; all of them where not given."""


class JoinAt(Strict):
    """A new agent takes a seat."""

    do: Literal["join"]
    """Always join."""
    at: Duration
    """When."""
    entry: CastEntry
    """Who: an entry as in `cast`, of count 1."""


class LeaveAt(Strict):
    """An agent leaves for good."""

    do: Literal["leave"]
    """Always leave."""
    at: Duration
    """When."""
    agent: str
    """Its id."""
    table: int | None = Field(default=None, ge=0)
    """The only table that it reaches; all of them where not given."""


class ActAt(Strict):
    """An agent does something else than it decides."""

    do: Literal["act"]
    """Always act."""
    at: Duration
    """From when: its first decision that is performed at that time or later."""
    agent: str
    """Its id."""
    answer: JsonValue
    """What it does instead, in the form that its turn asks for."""
    table: int | None = Field(default=None, ge=0)
    """The only table that it reaches; all of them where not given."""


class BecomeAt(Strict):
    """From its next turn on an agent is another one, or another mind decides for it; the world does not hear of it.

    It keeps its seat, its secrets and its think time, and its memory where its mind's class stays the same.
    """

    do: Literal["become"]
    """Always become."""
    at: Duration
    """When."""
    agent: str
    """Its id."""
    persona: Persona | None = None
    """Keys of its persona that are new."""
    use: Dotted | None = None
    """The new class of its mind."""
    settings: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    """Keywords of the class's constructor: all of a new class, those that are new of the same."""
    model: str | None = None
    """Another entry of `models`; empty for a mind that uses none."""
    table: int | None = Field(default=None, ge=0)
    """The only table that it reaches; all of them where not given."""


Intervention: TypeAlias = Annotated[SayAt | SetAt | JoinAt | LeaveAt | ActAt | BecomeAt, Field(discriminator="do")]


class Stop(Strict):
    """When to stop before `clock.until`."""

    after: StopRule | Many[StopRule]
    """A number of facts of a kind, like "40 trades"; of several, whichever comes first."""


class RecordSettings(Strict):
    """How the run is stored."""

    durable: Literal["normal", "power"] = "normal"
    """normal survives the death of the process, power the loss of power."""
    states: bool = False
    """Whether each decision carries a hash of the world's whole state, as training that compares moments needs it."""


class Limits(Strict):
    """Sizes past which a scenario is taken for a mistake; raise them where it is none."""

    agents: int = Field(default=1_000_000, ge=1)
    """Agents of all tables together."""
    tables: int = Field(default=100_000, ge=1)
    """Tables."""
    ticks: int = Field(default=1_000_000_000, ge=1)
    """Ticks up to `clock.until`."""


class Scenario(Strict):
    """A whole scenario file."""

    name: str = Field(pattern=r"^\w[\w .-]*$", max_length=100)
    """What the run is called."""
    seed: int = Field(default=0, ge=0)
    """Of every draw."""
    clock: Clock = Clock()
    """Simulated time."""
    world: WorldSpec
    """The society's rules."""
    models: dict[Name, ModelSettings] = Field(default_factory=dict)
    """By the names that the cast uses."""
    cast: Many[CastEntry] = Field(min_length=1)
    """Who takes part, in the order that breaks ties."""
    seats: dict[Name, Taken] = Field(default_factory=dict)
    """Agents, by id, for whom another mind decides than their entry's: a person's, for one."""
    interventions: Many[Intervention] = ()
    """What is done to the world from outside."""
    measure: Many[Dotted] = ()
    """Metrics beside the world's own."""
    stop: Stop | None = None
    """When to end early."""
    tables: int = Field(default=1, ge=1)
    """Independent copies of the world, each with luck of its own."""
    group: int = Field(default=1, ge=1)
    """Tables in a row that start alike: one cast and one luck of the world for all of them, the minds' luck apart."""
    record: RecordSettings = RecordSettings()
    """How the run is stored."""
    limits: Limits = Limits()
    """Sizes that are taken for mistakes."""

    _located: Located = PrivateAttr()
    _base: Path = PrivateAttr()

    @property
    def source(self) -> str:
        """The file's text."""
        return self._located.text

    @property
    def located(self) -> Located:
        """What the file says, overrides included, and where."""
        return self._located

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self._base

    @property
    def entries(self) -> list[tuple[Keys, CastEntry]]:
        """All cast entries with where they stand: the cast's, then those of joiners in file order."""
        seated: list[tuple[Keys, CastEntry]] = [(("cast", index), entry) for index, entry in enumerate(self.cast)]
        joining: list[tuple[Keys, CastEntry]] = [
            (("interventions", index, "entry"), change.entry)
            for index, change in enumerate(self.interventions)
            if isinstance(change, JoinAt)
        ]
        return [*seated, *joining]

    def spoken(self, entry: CastEntry, agent: str) -> str:
        """The entry of `models` that speaks for an agent of a cast entry; empty for none."""
        return self.seats[agent].model if agent in self.seats else entry.model

    def ticks(self, keys: Keys, value: int | str) -> int:
        """The duration at these keys in ticks, within the limits. Raises ScenarioError."""
        try:
            count = ticks(value, self.clock.tick_ms)
        except ValueError as error:
            raise self.error(keys, str(error)) from None
        if count > (most := self.limits.ticks):
            message = f"{shown(value)} is {count:,} ticks of {self.clock.tick}, more than limits.ticks = {most:,}"
            raise self.error(keys, f"{message}; choose a longer clock.tick or an earlier time, or raise limits.ticks")
        return count

    def error(self, keys: Keys, message: str) -> ScenarioError:
        """An error about the value at these keys."""
        return self._located.error(keys, message)
