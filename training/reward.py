"""Reward sources: what each row is paid, from the record and from what was worked out beside it.

A recipe lists sources; each gives one stream of numbers, one a row, and a term of credit sums those that it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp, fsum, log
from typing import Annotated, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from sim.scenarios.strict import Strict
from training import options
from training.extras import NO_EXTRAS, Extras
from training.paths import Decision, decisions, trajectories
from training.schedule import Weight, at
from training.slots import Count
from training.trajectory import Row, earned

_T = TypeVar("_T")
LEAST = 1e-12
"""Probabilities are taken for no smaller than this in logarithms."""


class _Source(Strict):
    weight: Weight = 1.0


class Outcome(_Source):
    """What the seat earned in the whole episode, at its last decision."""

    kind: Literal["outcome"]


class Step(_Source):
    """The row's own reward."""

    kind: Literal["step"]


class Format(_Source):
    """A constant for decisions whose answer the model itself gave, another for the rest."""

    kind: Literal["format"]
    valid: float = 0.0
    invalid: float = -0.1


class Keep(_Source):
    """A constant for decisions that keep their subgoal, so that switching is not forgotten (HiPER); 0 for the rest."""

    kind: Literal["keep"]
    penalty: float = -0.3


class InfoGain(_Source):
    """p(truth | after the row) − p(truth | before it), p the exponential of the mean log-probability (IGPO).

    0 at a trajectory's last decision, which is the answer.
    """

    kind: Literal["info_gain"]
    truth: str
    """`module:name` of what names the true answer, from the world's whole state and the agent; None: there is none."""
    lead: str = ""
    """Words of the agent's answer that come before the truth."""


class LogRatio(_Source):
    """β·(log π − log π_ref) of the decision's tokens, their mean or sum.

    π is the policy, or the policy shown what is hidden from the actor; both come with the extras.
    """

    kind: Literal["log_ratio"]
    beta: float = 1.0
    agg: Literal["mean", "sum"] = "mean"


class Anchored(_Source):
    """The row's reward − η·log(π/π_ref) of the own decision, + η·log(π/π_ref) of others' decisions after it (R-NaD).

    Of n seats each other one counts 1/(n−1), so a zero-sum game stays one. The reference is the learner's own earlier
    self, renewed every `renew` updates.
    """

    kind: Literal["anchored"]
    eta: Weight = 0.2
    renew: Count = 100


class Regret(_Source):
    """What was earned minus what the best constant option would have earned, at a trajectory's last decision.

    The others' answers stay as they were (external regret), so it is for games whose players move at once, or unseen.
    """

    kind: Literal["regret"]


class Proposal(_Source):
    """What a proposed task is worth, at its proposer's last decision; with p the share of solvers who succeeded.

    difficulty: 1 − p (SSP). learnability: p(1 − p), highest where solvers succeed half of the time. Solvers get nothing
    of it.
    """

    kind: Literal["proposal"]
    pays: Literal["difficulty", "learnability"] = "learnability"
    success: float = 0.0
    """Return above which a solver succeeded."""
    untried: float = 0.0
    """What a proposal is worth that nobody tried: the world had no task to make of it."""


class Judge(_Source):
    """A judge's score of the row: the number of the verdict that a model gives."""

    kind: Literal["judge"]
    model: str = "judge"
    """Who judges: an entry of the scenario's `models:` that does not learn."""
    rubric: Annotated[str, Field(min_length=1)]
    """What it is told to judge by."""
    scores: dict[str, float] = Field(default={"no": 0.0, "yes": 1.0}, min_length=2)
    """Its verdicts, of which it has to choose one, and what each pays."""
    about: Literal["answer", "episode"] = "answer"
    """What it reads: an answer with what was asked, or all of a seat's in an episode, paid at the last."""


Source: TypeAlias = Annotated[
    Outcome | Step | Format | Keep | InfoGain | LogRatio | Anchored | Regret | Proposal | Judge,
    Field(discriminator="kind"),
]


class Rewards(Struct, frozen=True, kw_only=True):
    """What the sources come to."""

    streams: Mapping[str, tuple[float, ...]]
    """One number a row, by the source's kind."""
    own: tuple[tuple[float, ...], ...]
    """The part of a row's reward that is known for each of its options; empty: none."""

    def total(self, names: Sequence[str] = ()) -> list[float]:
        """Sum of the named streams, or of all. Raises ValueError for a name there is none of."""
        if missing := [name for name in names if name not in self.streams]:
            raise ValueError(f"no reward source {missing[0]!r}; there are {sorted(self.streams)}")
        return [fsum(each) for each in zip(*(self.streams[name] for name in names or self.streams), strict=True)]

    def known(self, names: Sequence[str] = ()) -> tuple[tuple[float, ...], ...]:
        """The part of `total` that is known for each option."""
        return self.own if not names or "anchored" in names else ((),) * len(self.own)


def rewards(sources: Sequence[Source], rows: Sequence[Row], extras: Extras = NO_EXTRAS, update: int = 0) -> Rewards:
    """The streams of all sources, each times its weight. Raises ValueError where an array they read is missing."""
    streams: dict[str, tuple[float, ...]] = {}
    own: list[tuple[float, ...]] = [()] * len(rows)
    for source in sources:
        weight = at(source.weight, update)
        if isinstance(source, Anchored):
            stream, own = anchored(rows, extras, at(source.eta, update))
            own = [tuple(weight * each for each in terms) for terms in own]
        else:
            stream = _stream(source, rows, extras)
        streams[source.kind] = tuple(weight * number for number in stream)
    return Rewards(streams=streams, own=tuple(own))


def _stream(source: Source, rows: Sequence[Row], extras: Extras) -> list[float]:
    match source:
        case Outcome():
            return outcome(rows)
        case Step():
            return [row.reward for row in rows]
        case Format():
            return form(rows, source)
        case Keep():
            return kept(rows, source.penalty)
        case InfoGain():
            return info_gain(rows, extras)
        case LogRatio():
            return log_ratio(rows, extras, source.beta, source.agg)
        case Regret():
            return regret(rows, extras)
        case Proposal():
            return proposal(rows, source)
        case Judge():
            return list(_given("judge", extras.judge, rows))
    raise ValueError(f"{source.kind} is no source of its own")


def _given(name: str, array: tuple[_T, ...], rows: Sequence[Row]) -> tuple[_T, ...]:
    if len(array) != len(rows):
        raise ValueError(f"extras.{name} holds {len(array)} rows, not {len(rows)}")
    return array


def outcome(rows: Sequence[Row]) -> list[float]:
    """The trajectory's whole reward at its last decision, 0 before; a branch's with what its trunk earned before it."""
    paid = [0.0] * len(rows)
    paths = trajectories(rows)
    before: dict[tuple[str, str], float] = {}
    for path in paths:
        earned = 0.0
        for place, decision in enumerate(path):
            row = rows[decision[0]]
            if row.parent and place:
                before[row.seat, row.parent] = earned
            earned += row.reward
    for path in paths:
        first = rows[path[0][0]]
        whole = fsum([*(rows[decision[0]].reward for decision in path), before.get((first.seat, first.parent), 0.0)])
        for index in path[-1]:
            paid[index] = whole
    return paid


def proposal(rows: Sequence[Row], source: Proposal) -> list[float]:
    """What the proposer of each episode is paid."""
    solved: defaultdict[str, list[bool]] = defaultdict(list)
    paths = trajectories(rows)
    for path in paths:
        row = rows[path[0][0]]
        if row.role == "solver":
            solved[row.episode].append(fsum(rows[decision[0]].reward for decision in path) > source.success)
    paid = [0.0] * len(rows)
    for path in paths:
        row = rows[path[0][0]]
        if row.role == "proposer":
            worth = _worth(solved[row.episode], source)
            for index in path[-1]:
                paid[index] = worth
    return paid


def _worth(solved: Sequence[bool], source: Proposal) -> float:
    """Of one proposal, by whether each of its solvers succeeded."""
    if not solved:
        return source.untried
    p = sum(solved) / len(solved)
    return 1 - p if source.pays == "difficulty" else p * (1 - p)


def learnt_returns(rows: Sequence[Row]) -> list[float]:
    """What each seat with a row that is learnt from earned in each episode."""
    seats = dict.fromkeys((row.episode, row.seat) for row in rows if row.trained)
    whole = earned(replace(row, reward=paid) for row, paid in zip(rows, outcome(rows), strict=True))
    return [whole[seat] for seat in seats]


def info_gain(rows: Sequence[Row], extras: Extras) -> list[float]:
    """Change of the true answer's probability over each decision but the last of its trajectory."""
    before = _given("truth_before", extras.truth_before, rows)
    after = _given("truth_after", extras.truth_after, rows)
    last = {index for path in trajectories(rows) for index in path[-1]}
    paid = [0.0] * len(rows)
    for decision in decisions(rows):
        first = decision[0]
        for index in decision:
            paid[index] = 0.0 if first in last else exp(after[first]) - exp(before[first])
    return paid


def form(rows: Sequence[Row], source: Format) -> list[float]:
    """What each decision's answer earns by its form; the answer is the last of its rows."""
    paid = [0.0] * len(rows)
    for decision in decisions(rows):
        answer = rows[decision[-1]]
        for index in decision:
            paid[index] = source.valid if answer.valid else source.invalid if answer.how else 0.0
    return paid


def kept(rows: Sequence[Row], penalty: float) -> list[float]:
    """The penalty at each decision that said whether it switches its subgoal, and set itself no new one."""
    paid = [0.0] * len(rows)
    for decision in decisions(rows):
        said = {span.kind for index in decision for span in rows[index].spans}
        if "switch" in said and "subgoal" not in said:
            for index in decision:
                paid[index] = penalty
    return paid


def log_ratio(rows: Sequence[Row], extras: Extras, beta: float, agg: Literal["mean", "sum"]) -> list[float]:
    """β·(log π − log π_ref), mean or sum over the decision's tokens; 0 for one without tokens."""
    policy = _given("policy", extras.policy or tuple(row.logprobs for row in rows), rows)
    reference = _given("reference", extras.reference, rows)
    paid = [0.0] * len(rows)
    for decision in decisions(rows):
        total = fsum(fsum(policy[index]) - fsum(reference[index]) for index in decision)
        tokens = sum(len(policy[index]) for index in decision)
        for index in decision:
            paid[index] = beta * (total / max(1, tokens) if agg == "mean" else total)
    return paid


def anchored(rows: Sequence[Row], extras: Extras, eta: float) -> tuple[list[float], list[tuple[float, ...]]]:
    """The anchored rewards, and the own term of every option. An episode's rows must come in log order.

    What others do before a seat's first decision counts for that one. Rows whose reference is empty have no term.
    """
    own = [_own(row, index, extras, eta) for index, row in enumerate(rows)]
    terms = [_taken(row, index, own[index], extras, eta) for index, row in enumerate(rows)]
    paid = [row.reward for row in rows]
    episodes: defaultdict[str, list[tuple[Decision, float]]] = defaultdict(list)
    for decision in decisions(rows):
        term = fsum(terms[index] for index in decision)
        episodes[rows[decision[0]].episode].append((decision, term))
        for index in decision:
            paid[index] += term
    for made in episodes.values():
        latest: dict[str, Decision] = {}
        for decision, _ in reversed(made):
            latest[rows[decision[0]].seat] = decision
        for decision, term in made:
            seat = rows[decision[0]].seat
            latest[seat] = decision
            for other in latest.keys() - {seat}:
                for index in latest[other]:
                    paid[index] -= term / (len(latest) - 1)
    return paid, own


def _own(row: Row, index: int, extras: Extras, eta: float) -> tuple[float, ...]:
    """−η·log(π/π_ref) of each option."""
    reference = extras.reference_options[index] if extras.reference_options else ()
    if not row.options or not reference:
        return ()
    return tuple(
        -eta * (log(max(share, LEAST)) - other) for share, other in zip(options.policy(row), reference, strict=True)
    )


def _taken(row: Row, index: int, own: Sequence[float], extras: Extras, eta: float) -> float:
    """−η·log(π/π_ref) of what was said."""
    if own:
        return own[options.chosen(row)]
    reference = extras.reference[index] if extras.reference else ()
    return -eta * (fsum(row.logprobs) - fsum(reference)) if reference else 0.0


def regret(rows: Sequence[Row], extras: Extras) -> list[float]:
    """Minus the external regret of each trajectory, at its last decision.

    Raises ValueError where the options change: no constant answer is there to regret.
    """
    earned = _given("counterfactual", extras.counterfactual, rows)
    paid = [0.0] * len(rows)
    for path in trajectories(rows):
        choices = [decision[-1] for decision in path if rows[decision[-1]].options]
        if len({rows[index].options for index in choices}) > 1:
            raise ValueError(f"{rows[choices[0]].episode}: the options change, so regret is not defined")
        totals = [fsum(each) for each in zip(*(earned[index] for index in choices), strict=True)]
        got = fsum(earned[index][options.chosen(rows[index])] for index in choices)
        for index in path[-1]:
            paid[index] = got - max(totals, default=got)
    return paid
