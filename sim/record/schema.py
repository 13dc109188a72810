"""The tables of a run file and of the project file: the one place where columns are named.

Rows of the run file's tables are plain tuples in the order of the fields below. A field that holds a list or an
object is JSON text, but for the manifest's, which the mapping turns into values.
"""

from __future__ import annotations

from sqlalchemy import JSON as JSONText
from sqlalchemy import BigInteger, Index, MetaData, Table
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from sim.types import JSON

SCHEMA_VERSION = 5
"""Raised whenever a column of the run file changes, or what the log's hash is."""

LOG = ("events", "decisions", "facts")
"""The tables whose merge by `seq` is a table's log."""

_CLUSTERED = {"sqlite_with_rowid": False}
_run = registry(metadata=MetaData())
_project = registry(metadata=MetaData())


class _Run(SQLModel, registry=_run):
    """A table of the run file."""

    metadata = _run.metadata


class _Project(SQLModel, registry=_project):
    """A table of the project file."""

    metadata = _project.metadata


class _Logged(_Run):
    tbl: int = Field(primary_key=True)
    """Game table, counted from 0."""
    seq: int = Field(primary_key=True)
    """Place in the table's log, counted from 0 over events, decisions and facts together."""
    tick: int = Field(sa_type=BigInteger)
    round: int
    """Round within the tick."""


class EventRow(_Logged, table=True):
    """What the kernel did."""

    __tablename__ = "events"
    __table_args__ = _CLUSTERED
    kind: str
    """start, change, rewards, ended, tick or end."""
    agent: str
    """Whom it is about, where it is about one."""
    data: str
    """JSON; of a tick: the hash of the log so far."""


class DecisionRow(_Logged, table=True):
    """A decision that was stepped, at the tick at which it was due."""

    __tablename__ = "decisions"
    __table_args__ = _CLUSTERED
    agent: str
    seen: int = Field(sa_type=BigInteger)
    """Tick at which its turn was seen."""
    nth: int
    """n-th decision of the agent in that tick."""
    answer: str
    """JSON."""
    how: str
    """chosen, retried, defaulted, faulted or forced."""
    reason: str
    status: str
    """applied or stale."""
    why: str
    """Why it was stale."""
    shows: bytes
    """Fact ids of the view, delta-coded."""
    recalls: bytes
    """Fact ids behind what was remembered, delta-coded."""
    thread: int | None
    key: str | None
    """Information state."""
    calls: int
    """Model calls it took."""
    digest: bytes | None
    """Hash over the digests of its requests."""
    state: bytes | None
    """Hash of the world's whole state when the turn was seen, where the scenario asks for it."""
    feels: str | None
    """What the agent felt when it decided, where its mind has an emotion."""


class FactRow(_Logged, table=True):
    """Something that happened in the world."""

    __tablename__ = "facts"
    __table_args__ = (Index("facts_by_kind", "tbl", "kind"), _CLUSTERED)
    id: int
    """The world's own count, per table."""
    kind: str
    actor: str
    audience: str
    """JSON: a text or a list of agents."""
    data: str
    """JSON."""
    answers: bytes
    """Fact ids, delta-coded."""


class CallRow(_Run, table=True):
    """One model call: what was asked and what came of it."""

    __tablename__ = "calls"
    tbl: int = Field(primary_key=True)
    agent: str = Field(primary_key=True)
    tick: int = Field(primary_key=True, sa_type=BigInteger)
    nth: int = Field(primary_key=True)
    call: int = Field(primary_key=True)
    purpose: str
    model: str
    """Name in the scenario's `models:`."""
    policy: str
    """The adapter asked for."""
    digest: bytes
    """What makes two requests equal."""
    messages: str
    """JSON [[role, hash of a text in hex], …]."""
    format: str
    """JSON {"choice": options}, {"form": hash of the schema's text} or {"text": characters}."""
    sampling: str
    """JSON."""
    seed: int = Field(sa_type=BigInteger)
    text: str | None
    finish: str
    """stop, length or error."""
    error: str
    prompt_ids: bytes | None
    ids: bytes | None
    logprobs: bytes | None
    distribution: str
    """Of which distribution the log-probabilities are: raw or processed."""
    option_logprobs: bytes | None
    """Of the options of a choice, in their order; NaN, or no value at all, where they are not known."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    latency: float
    """Wall seconds."""
    answered_by: str
    """The policy version that answered."""
    source: str
    """engine; parent: taken from the run it was forked from; repeat: asked again after a crash."""


class CastRow(_Run, table=True):
    """A member of the cast."""

    __tablename__ = "cast"
    tbl: int = Field(primary_key=True)
    place: int
    """Place in cast order."""
    agent: str = Field(primary_key=True)
    role: str
    private: str
    """JSON."""
    public: str
    """JSON."""
    persona: str
    """JSON."""
    secrets: str
    """JSON list of secrets, each an object with the fields of `sim.types.Secret`."""
    model: str
    think: str
    """Distribution of its think time, as written."""
    joined: int = Field(sa_type=BigInteger)
    """Tick at which it took its seat."""
    past: str
    """What it knew of episodes before."""


class TextRow(_Run, table=True):
    """A text under its hash: prompts and schemas are many and mostly the same."""

    __tablename__ = "texts"
    hash: bytes = Field(primary_key=True)
    """blake2b of 16 bytes."""
    text: str


class PolicyRow(_Run, table=True):
    """A policy version that a model of the run may speak with."""

    __tablename__ = "policies"
    policy: str = Field(primary_key=True)
    """Adapter `name@v`."""
    base: str
    """SHA-256 of the weights it adapts, where they are known."""
    hash: str
    """SHA-256 of its own weights; empty for a policy of an endpoint's own."""
    parent: str
    """The version it was trained from; empty for none."""


class Manifest(_Run, table=True):
    """What a run is and how it stands; the single row of its table."""

    __tablename__ = "run"
    id: str = Field(primary_key=True)
    schema_version: int = SCHEMA_VERSION
    name: str
    scenario: str
    """The scenario with every default and override in place."""
    source: str = ""
    """The scenario file as written."""
    base: str = ""
    """Folder that its paths start from."""
    seed: int = Field(sa_type=BigInteger)
    status: str = "running"
    """running, paused, interrupted, failed or finished, as last written: see `sim.record.reader.Run.status`."""
    cause: str = ""
    """Why it is paused or failed."""
    created: str = ""
    """ISO 8601, UTC."""
    versions: dict[str, JSON] = Field(default_factory=dict, sa_type=JSONText)
    """Package versions by distribution name."""
    hashes: dict[str, JSON] = Field(default_factory=dict, sa_type=JSONText)
    """Of code, models and cast."""
    params: dict[str, JSON] = Field(default_factory=dict, sa_type=JSONText)
    """The world's parameters, durations in ticks."""
    tick_ms: float = 1000.0
    parent: str = ""
    """The run it was forked from, or that its tables branch from."""
    fork_tick: int | None = Field(default=None, sa_type=BigInteger)
    replicate: int = 0
    branches: list[JSON] = Field(default_factory=list, sa_type=JSONText)
    """Of each table, `[table, tick, luck]` of a `sim.scenarios.plan.Branch`; empty: the tables stand for themselves."""
    hash: str = ""
    """Of the tables' logs, once finished."""
    pid: int | None = None
    """The process that holds it, or held it last."""


class MeasurementRow(_Project, table=True):
    """One number about one run."""

    __tablename__ = "measurements"
    run: str = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    of: str = Field(primary_key=True)
    """JSON with sorted keys: what it is about."""
    value: float | None
    unit: str
    n: int
    n_clusters: int
    ci_low: float | None
    ci_high: float | None
    ci_method: str
    events: str
    """JSON list of fact ids, or of pairs of table and fact id."""
    excluded: str
    """JSON."""
    flags: str
    """JSON."""
    computed: str
    """When, ISO 8601, UTC."""
    decisions: str = Field("[]", sa_column_kwargs={"server_default": "[]"})
    """JSON list like `events`, of places in the log."""
    denominator: str = Field("", sa_column_kwargs={"server_default": ""})
    null_test: str = Field("{}", sa_column_kwargs={"server_default": "{}"})
    """JSON."""
    judge: str = Field("{}", sa_column_kwargs={"server_default": "{}"})
    """JSON."""
    version: int = Field(1, sa_column_kwargs={"server_default": "1"})


class SoFarRow(_Project, table=True):
    """What was measured on a run that had not ended; gone as soon as its final numbers are kept."""

    __tablename__ = "so_far"
    run: str = Field(primary_key=True)
    asked: str = Field(primary_key=True)
    """The metrics that were asked for; empty: the usual ones."""
    tick: int = Field(sa_type=BigInteger)
    """Up to which the numbers hold, of the table that was furthest behind."""
    rows: int = Field(sa_type=BigInteger)
    """Rows of the logs of all tables up to which they hold."""
    computed: str
    """When, ISO 8601, UTC."""
    found: str
    """JSON list of objects, each with the columns of `measurements`."""


class TagRow(_Project, table=True):
    """A word that a person put on a run."""

    __tablename__ = "tags"
    run: str = Field(primary_key=True)
    tag: str = Field(primary_key=True)


class RatingRow(_Project, table=True):
    """How strong a policy is within a pool."""

    __tablename__ = "ratings"
    pool: str = Field(primary_key=True)
    policy: str = Field(primary_key=True)
    rating: float
    deviation: float
    games: int


RUN_FILE: MetaData = _run.metadata
PROJECT_FILE: MetaData = _project.metadata
TABLES: dict[str, Table] = {**RUN_FILE.tables, **PROJECT_FILE.tables}
"""Every table by its name."""
