"""The slots of a recipe that other modules interpret: who plays what, and the loss.

The other slots stand beside their functions: `credit.Term`, `reward.Source`, `modulation.Modulation`,
`filtering.Filter`, `curriculum.Curriculum`.

Notation of the loss: π the policy that is trained, π_old the trainer's copy at the start of the update, μ the behaviour
policy that sampled, π_ref a frozen reference, A the advantage of a token, ρ the ratio of the `ratio` slot.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from sim.scenarios.strict import Many, Strict
from sim.types import JSON
from training.genes import Gene
from training.schedule import Weight

Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Aggregate: TypeAlias = Literal["own", "geo_mean", "product"]
"""How the token ratios of a unit become one: each its own, their geometric mean, or their product."""
Unit: TypeAlias = Literal["token", "turn", "segment", "sequence"]
"""What shares one ratio: a token, a row, the decisions between two subgoals, all rows of one seat in an episode."""


# --- structure: what is rolled out ------------------------------------------------------------


class Independent(Strict):
    """Episodes that have nothing in common."""

    kind: Literal["independent"]


class Group(Strict):
    """Episodes that start alike, `size` of each start."""

    kind: Literal["group"]
    size: Count


class Tree(Strict):
    """Episodes that branch at chosen decisions; the rows sampled at one node share `Row.parent`."""

    kind: Literal["tree"]
    size: Count
    """Trunks from one start."""
    nodes: Count
    """Nodes that branch in one start, those of the trunks with the highest scores."""
    branches: Count
    """Further branches at each of them."""
    rule: Literal["surprisal", "entropy_rise"]
    """Score: the mean −log μ of what was sampled, or what that, as an estimate of the entropy, exceeds the seat's first
    decision by."""
    penalty: float = 0.0
    """Taken off a node's score for every branch it already has: the first question of all trunks is one node."""


class Trial(Strict):
    """`attempts` episodes one after the other, each knowing of those before."""

    kind: Literal["trial"]
    size: Count
    """Trials from one start."""
    attempts: Count
    reflect: bool = True
    """Whether a reflection is written between two episodes."""


class Propose(Strict):
    """A proposer makes a task, solvers try it, in one episode of a world with these two roles."""

    kind: Literal["propose"]
    proposals: Count
    """From one source task."""
    attempts: Count
    """At one proposed task."""


class Chop(Strict):
    """Episodes cut by summaries wherever the context grows too long."""

    kind: Literal["chop"]
    size: Count
    """Episodes from one start."""
    context: Count
    """Tokens of memory at which a summary takes the place of what came before."""
    summaries: Count
    """Most summaries of a seat in an episode; where it needed more, it counts as truncated."""


class Stored(Strict):
    """Nothing is rolled out: the rows of runs that exist."""

    kind: Literal["stored"]


Structure: TypeAlias = Annotated[
    Independent | Group | Tree | Trial | Propose | Chop | Stored, Field(discriminator="kind")
]


# --- actors: who samples ------------------------------------------------------------------------


class _Acting(Strict):
    explore: Weight = 0.0
    """ε: share of uniform exploration that is mixed into the learner's behaviour."""


class Self(_Acting):
    """The learner plays every trained seat."""

    kind: Literal["self"]


class Fixed(_Acting):
    """The other seats are played by what the scenario names: scripted, frozen or remote."""

    kind: Literal["fixed"]


class Lagged(_Acting):
    """The other seats are played by one of the learner's last versions."""

    kind: Literal["lagged"]
    last: Count
    """How many versions back, drawn uniformly."""


class Pool(_Acting):
    """The other seats are drawn from a pool of stored policies."""

    kind: Literal["pool"]
    weight: Literal["uniform", "pfsp_hard", "pfsp_var", "match_quality", "meta_nash", "replicator"]
    """Weight of an opponent; with x the learner's win rate against it, pfsp_hard is (1−x)^power, pfsp_var x(1−x)."""
    power: Positive = 2.0
    """Of `pfsp_hard`."""
    add_every: Count = 1
    """Updates after which the learner joins the pool."""
    side: Literal["all", "other"] = "all"
    """Whether pools are one, or one for each role."""


class League(_Acting):
    """Main agents, main exploiters and league exploiters, each with its own shares of opponents."""

    kind: Literal["league"]
    self_play: Share = 0.35
    """Share of a main agent's games against itself."""
    pfsp: Share = 0.5
    """Share against the pool, the hard ones first; the rest is against those that it beat once and no longer beats."""
    main_exploiters: Annotated[int, Field(ge=0)] = 1
    """Learners that play the main agents only."""
    league_exploiters: Annotated[int, Field(ge=0)] = 1
    """Learners that play the whole pool, and start anew."""
    add_every: Count = 10
    """Updates after which the main agents' newest versions join the pool."""
    beats: Share = 0.7
    """Win rate beyond which an exploiter joins."""
    patience: Count = 100
    """Updates after which it joins in any case."""
    reset_share: Share = 0.25
    """Probability that a league exploiter starts anew when it has joined; a main exploiter always does."""

    @model_validator(mode="after")
    def _whole(self) -> League:
        if self.self_play + self.pfsp > 1:
            raise ValueError(f"self_play {self.self_play} and pfsp {self.pfsp} are more than 1 together")
        return self


class PSRO(_Acting):
    """Best responses to what a meta-solver makes of the members, one policy at a time; two seats."""

    kind: Literal["psro"]
    solver: Literal["meta_nash", "replicator", "uniform"] = "meta_nash"
    """Of the empirical game of all members."""
    every: Count = 50
    """Updates of one best response, which then joins."""
    games: Count = 100
    """Games of any two members in each order, by which the empirical game is known."""
    anew: bool = False
    """Whether each best response starts from the policy's first version instead of its last."""


class NFSP(_Acting):
    """The best response acts with probability `eta`, the average policy otherwise."""

    kind: Literal["nfsp"]
    eta: Share = 0.1
    reservoir: Count = 100_000
    """Best-response decisions kept, each seen one with equal chance."""


class Mix(_Acting):
    """Each decision of the learner's seats is sampled by a version drawn from its last ones."""

    kind: Literal["mix"]
    last: Count


class Teacher(_Acting):
    """Each decision is the teacher's with probability `beta`, else the learner's."""

    kind: Literal["teacher"]
    policy: str
    """The teacher: an adapter `name@v`, or a name of the scenario's `models`."""
    beta: Weight
    over: Literal["update", "turn"] = "update"
    """What `beta` is a function of: updates done, or the decision's number in its episode."""


class Population(_Acting):
    """A genetic search over prompts or settings of a frozen model; no gradients."""

    kind: Literal["population"]
    size: Annotated[int, Field(ge=2)]
    elite: Count
    """Best members that pass on unchanged."""
    crossover: Share = 0.5
    mutation: Share = 0.1
    space: dict[str, Gene] = Field(default_factory=dict)
    """What may be chosen, by the scenario's dotted key: below `cast.NAME`, or a number of sampling of `models.NAME`."""

    @model_validator(mode="after")
    def _leaves_children(self) -> Population:
        if self.elite >= self.size:
            raise ValueError(f"an elite of {self.elite} leaves no place for children among {self.size}")
        return self


Actors: TypeAlias = Annotated[
    Self | Fixed | Lagged | Pool | League | PSRO | NFSP | Mix | Teacher | Population, Field(discriminator="kind")
]


# --- ratio ----------------------------------------------------------------------------------------


class Ratio(Strict):
    """ρ: how likely what was said is under π, against the policy of `denominator`."""

    unit: Unit = "token"
    agg: Aggregate = "own"
    denominator: Literal["old", "behaviour", "none"] = "old"
    """π_old, μ, or none: the plain policy gradient, ρ = π / stopped(π)."""

    @model_validator(mode="after")
    def _fits(self) -> Ratio:
        if (self.unit == "token") != (self.agg == "own"):
            right = "own" if self.unit == "token" else "geo_mean or product"
            raise ValueError(f"agg {self.agg} does not go with unit {self.unit}; expected {right}")
        return self


# --- trust region -----------------------------------------------------------------------------------


class NoTrust(Strict):
    """Loss −ρA."""

    kind: Literal["none"]


class Clip(Strict):
    """Loss −min(ρA, clip(ρ, 1−lo, 1+hi)·A) (PPO)."""

    kind: Literal["clip"]
    lo: Annotated[float, Field(ge=0, le=1)] = 0.2
    hi: Annotated[float, Field(ge=0)] = 0.2


class Dual(Clip):
    """As `clip`; where A < 0 the loss is at most −c·A."""

    kind: Literal["dual"]  # type: ignore[assignment]
    c: Annotated[float, Field(gt=1)] = 3.0


class Cispo(Strict):
    """Loss −stopped(clip(ρ, 1−lo, 1+hi))·A·log π: the weight is clipped, no token loses its gradient."""

    kind: Literal["cispo"]
    lo: Annotated[float, Field(ge=0, le=1)] = 0.2
    hi: Annotated[float, Field(ge=0)] = 0.2


class TVMask(Strict):
    """Loss −ρA on kept tokens (DPPO); the difference is one of probabilities, π − μ."""

    kind: Literal["tv_mask"]
    delta: Annotated[float, Field(gt=0, le=1)] = 0.2
    side: Literal["advantage", "below"] = "advantage"
    """advantage: drop where A > 0 and π−μ > delta, or A < 0 and π−μ < −delta; below: where π−μ < −delta."""


class Soft(Strict):
    """Loss −(4/τ)·σ(τ(ρ−1))·A (SAPO)."""

    kind: Literal["soft"]
    tau: Positive = 1.0


class BiasNorm(Strict):
    """As `clip`; the step is divided by max(1, ‖C‖/c0), C the gradient that clipping took away."""

    kind: Literal["bias_norm"]
    c0: Positive
    lo: Annotated[float, Field(ge=0, le=1)] = 0.2
    hi: Annotated[float, Field(ge=0)] = 0.2


class NeuRD(Strict):
    """Loss −Σ_a y_a·A_a over all legal options, y their centred logits.

    No gradient where it would push y_a further beyond ±c.
    """

    kind: Literal["neurd"]
    c: Positive = 2.0


class NeuRDFit(Strict):
    """Loss ½·Σ_a (y_a − y*_a)², summed over distinct questions: the tabular NeuRD step, fitted.

    y* = y⁰ + α·Ā, where a step ends at ±c and what is beyond it stays. y are the centred logits of all legal options,
    y⁰ those at the start of the update, Ā the mean advantage over the rows that asked the question. Many optimiser
    steps (`epochs`) fit one step of the table.
    """

    kind: Literal["neurd_fit"]
    alpha: Weight = 0.2
    c: Positive = 3.0


Trust: TypeAlias = Annotated[
    NoTrust | Clip | Dual | Cispo | TVMask | Soft | BiasNorm | NeuRD | NeuRDFit, Field(discriminator="kind")
]


# --- engine correction: π_old against the μ that the engine says it sampled from ------------------------


class NoCorrection(Strict):
    """None."""

    kind: Literal["none"]


class Trunc(Strict):
    """The loss is weighted with min(π_old/μ, cap), stopped."""

    kind: Literal["trunc"]
    unit: Unit = "token"
    agg: Aggregate = "own"
    cap: Positive = 2.0


class Mask(Strict):
    """What lies outside lo ≤ π_old/μ ≤ hi is dropped, whole units at a time."""

    kind: Literal["mask"]
    unit: Unit = "token"
    agg: Aggregate = "own"
    lo: Annotated[float, Field(ge=0)] = 0.5
    hi: Positive = 2.0


class DropNegKL(Strict):
    """Sequences with A < 0 whose mean log(μ/π) over their tokens exceeds the threshold are dropped (OPSM)."""

    kind: Literal["drop_neg_kl"]
    threshold: Positive


Correction: TypeAlias = Annotated[NoCorrection | Trunc | Mask | DropNegKL, Field(discriminator="kind")]


# --- extra terms: added to the loss, each with its weight -------------------------------------------------


class KLRef(Strict):
    """Weight × estimate of KL(π ‖ π_ref) on sampled tokens.

    With x = log π_ref − log π: k1 = −x, k2 = x²/2, k3 = e^x − x − 1.
    """

    kind: Literal["kl_ref"]
    estimator: Literal["k1", "k2", "k3"] = "k3"
    weight: Weight


class KLBeh(Strict):
    """Weight × (log π − log μ)² on sampled tokens."""

    kind: Literal["kl_beh"]
    weight: Weight


class Entropy(Strict):
    """−Weight × entropy of π at sampled tokens (a bonus for a positive weight)."""

    kind: Literal["entropy"]
    weight: Weight


class EntropyBand(Strict):
    """Weight × (max(0, H − hi·H̄) + max(0, lo·H̄ − H)), H̄ the mean entropy so far at the same turn number."""

    kind: Literal["entropy_band"]
    lo: Annotated[float, Field(ge=0)] = 0.8
    hi: Positive = 1.2
    weight: Weight


class Value(Strict):
    """Weight × ½(V − target)²; with `clip`, V moves at most that far from its value at sampling.

    Mean over all states that have a target. Critics learn at `critic_lr` and leave the policy as it is.
    """

    kind: Literal["value"]
    weight: Weight = 0.5
    clip: Positive | None = None
    heads: Many[str] = ("value",)
    """Critics, by the `head` of the credit terms that use them."""
    sees: Literal["prompt", "state"] = "prompt"
    """What they read: what the policy does, or the world's whole state, hidden parts included."""


class CEObs(Strict):
    """Weight × cross entropy on the tokens of the prompt that the environment wrote."""

    kind: Literal["ce_obs"]
    weight: Weight = 0.1


class RefKL(Strict):
    """−Weight × ρ·stopped(log π_teacher − log π): reverse KL to a teacher on what the learner sampled.

    Ratio and trust region are those of their slots.
    """

    kind: Literal["ref_kl"]
    weight: Weight = 1.0
    teacher: str = ""
    """An adapter `name@v` or a name of the scenario's `models`; empty: π itself, given what `shown` names."""
    shown: Literal["", "demonstration", "skills"] = ""
    """What stands before the prompt when the teacher scores."""
    script: str = ""
    """Demonstrates: the `module:Name` of a scripted agent, whose answer to the same view is shown; empty: the answers
    of the seat's best episode among those that started alike, where it earned less."""
    settings: dict[str, JSON] = Field(default_factory=dict)
    """Of the scripted agent, as under `with` in a scenario."""
    skills: str = ""
    """A file of skills in words, beside the scenario; empty: what the learner itself says at every update of its best
    and its worst episode."""
    tokens: Count = 512
    """Most tokens of what is shown; it is cut there, and where the model could not read it with prompt and answer."""

    @model_validator(mode="after")
    def _fits(self) -> RefKL:
        if (self.script or self.settings) and self.shown != "demonstration":
            raise ValueError("script and settings are of demonstrations; expected shown: demonstration")
        if self.skills and self.shown != "skills":
            raise ValueError(f"the file {self.skills} would not be read; expected shown: skills")
        return self


class CE(Strict):
    """Weight × cross entropy on labelled tokens."""

    kind: Literal["ce"]
    weight: Weight = 1.0
    labels: Literal["rows", "teacher", "reservoir"] = "rows"
    """The kept rows' own tokens, a teacher's answers at kept rows and at its own, or the NFSP reservoir."""
    teacher: str = ""
    """Of the labels `teacher`: the `module:Name` of a scripted agent; empty: the actors' teacher."""
    settings: dict[str, JSON] = Field(default_factory=dict)
    """Of the scripted agent, as under `with` in a scenario."""


class _Paired(Strict):
    beta: Positive = 0.1
    pairs: Literal["best_worst", "halves"] = "best_worst"
    """Which are compared: the best with the worst, or each of the upper half with one of the lower half."""
    key: Many[str] = ("group",)
    """What the two of a pair share."""
    unit: Literal["turn", "episode"] = "episode"
    """What they are: decisions or trajectories."""


class DPO(_Paired):
    """−log σ(β·((log π/π_ref)(better) − (log π/π_ref)(worse))), summed over tokens, mean over pairs."""

    kind: Literal["dpo"]


class BT(_Paired):
    """Bradley–Terry: −log σ(β·ΣA(better) − β·ΣA(worse)), sums over the rows of a trajectory, mean over pairs.

    A of a row is the mean over its tokens of log π/π_ref, both given what is hidden from the actor.
    """

    kind: Literal["bt"]


Extra: TypeAlias = Annotated[
    KLRef | KLBeh | Entropy | EntropyBand | Value | CEObs | RefKL | CE | DPO | BT, Field(discriminator="kind")
]


# --- aggregation: from token losses to one number ----------------------------------------------------------


class TokenMean(Strict):
    """Sum over all learnt tokens of the batch, by their number."""

    kind: Literal["token"]


class SeqMean(Strict):
    """Mean over rows of the mean over a row's learnt tokens."""

    kind: Literal["seq"]


class Const(Strict):
    """Mean over rows of the sum over a row's learnt tokens, by a fixed length (Dr.GRPO; 1 leaves the sum)."""

    kind: Literal["const"]
    length: Count


class PerRollout(Strict):
    """Mean over (episode, seat) of the mean over all learnt tokens there."""

    kind: Literal["per_rollout"]


Aggregation: TypeAlias = Annotated[TokenMean | SeqMean | Const | PerRollout, Field(discriminator="kind")]
