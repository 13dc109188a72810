"""Recipes: YAML files that name the slots of an update, checked line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from sim.scenarios.located import Keys, ScenarioError, nearest
from sim.scenarios.overrides import overridden
from sim.scenarios.strict import Many, Strict, checked
from sim.scenarios.yaml_text import read_yaml, text_of
from sim.types import JSON
from training.credit import Tag, Term
from training.curriculum import Curriculum
from training.filtering import Filter
from training.modulation import Modulation
from training.returns import GAE, SMDP, CrossEpisode, Q
from training.returns import Tree as TreeReturn
from training.reward import Source
from training.schedule import Schedule, Weight
from training.slots import (
    CE,
    NFSP,
    Actors,
    Aggregation,
    Clip,
    Correction,
    Count,
    Extra,
    Independent,
    KLBeh,
    NeuRD,
    NeuRDFit,
    NoCorrection,
    NoTrust,
    Population,
    Positive,
    Ratio,
    Self,
    Stored,
    Structure,
    TokenMean,
    Tree,
    Trial,
    Trust,
    TVMask,
    Value,
)
from training.stops import Monitor

FOLDER = Path(__file__).parent / "recipes"
"""The recipes that come with the install."""

Mark: TypeAlias = Literal["code", "paper", "abstract", "knowledge", "textbook"]


class PolicySettings(Strict):
    """What is trained of the base model."""

    kind: Literal["lora", "full"] = "lora"
    """An adapter, or a copy of all weights."""
    layers: Count | None = None
    """Only the last so many layers get adapters; null: all."""
    rank: Count = 16
    """Of an adapter."""
    alpha: Positive = 32.0
    """An adapter's scale times its rank."""
    targets: Many[str] = Field(default=("q_proj", "k_proj", "v_proj", "o_proj"), min_length=1)
    """Layers that an adapter changes."""
    keep: Count = 2
    """Versions kept, beside those that something names."""


def _uphill(rate: Weight) -> Weight:
    """The learning rate, if it is never below 0. Raises ValueError."""
    least = min(value for _, value in rate.points) if isinstance(rate, Schedule) else rate
    if least < 0:
        raise ValueError(f"{least:g} is wrong; expected at least 0")
    return rate


Rate: TypeAlias = Annotated[Weight, AfterValidator(_uphill)]
Beta: TypeAlias = Annotated[float, Field(ge=0, lt=1)]


class Optimiser(Strict):
    """How parameters move."""

    kind: Literal["adamw", "sgd", "gauss_newton"] = "adamw"
    """gauss_newton: solves the least squares of `neurd_fit`; a step moves each logit to where it belongs."""
    lr: Rate = 1e-6
    """Learning rate, or its schedule over updates; of gauss_newton the share of the solved step, mostly 1."""
    critic_lr: Rate = 1e-3
    """The critics' own, who are small and begin with nothing."""
    betas: Annotated[tuple[Beta, Beta], Field(strict=False)] = (0.9, 0.999)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    grad_clip: Positive | None = 1.0
    """Largest norm of the gradient; null: any."""
    epochs: Count = 1
    """Passes over the rows of one update."""
    minibatches: Count = 1
    """Steps of one pass."""
    damping: Positive = 1e-3
    """Of gauss_newton: added to each output's own curvature, as a share of their mean."""
    reach: Positive = 1.0
    """Of gauss_newton: the most that one step wants to move a logit."""


class Rollout(Strict):
    """How much is played for one update, and how tokens are sampled."""

    episodes: Count = 64
    """Episodes of one update, all of their branches and attempts included."""
    temperature: Positive = 1.0
    top_p: float = 1.0
    """1; what is cut off would have to be known for the ratio to be right."""
    max_tokens: Count = 256
    """Longest answer."""
    logprobs: bool = True
    """Whether log-probabilities of what was sampled are recorded."""


class Recipe(Strict):
    """One update, slot by slot."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """As the file; `…_like` where the formula could not be checked."""
    status: Literal["verified", "unverified"]
    """Whether the formula was read in public code or in the paper."""
    source: Many[Mark] = Field(min_length=1)
    """Where it was read."""
    structure: Structure
    actors: Actors = Self(kind="self")
    reward: Many[Source] = ()
    credit: Many[Term] = ()
    modulation: Many[Modulation] = ()
    ratio: Ratio = Ratio()
    trust: Trust = Clip(kind="clip")
    correction: Correction = NoCorrection(kind="none")
    extra: Many[Extra] = ()
    filter: Many[Filter] = ()
    curriculum: Many[Curriculum] = ()
    aggregation: Aggregation = TokenMean(kind="token")
    policy: PolicySettings = PolicySettings()
    optimiser: Optimiser = Optimiser()
    rollout: Rollout = Rollout()
    monitor: Monitor = Monitor()
    updates: Count = 200
    threads: Count = 2
    """Threads of the trainer; results repeat bit by bit only with the same number."""

    def resolved(self) -> dict[str, JSON]:
        """Everything that holds, defaults included, as `loads` would read it."""
        found: dict[str, JSON] = self.model_dump(mode="json")
        return found


def load(recipe: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe file, or a shipped recipe by its name; `overrides` are `dotted.key=value`. Raises ScenarioError."""
    path = Path(recipe)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{recipe}.yaml"
        if not path.is_file():
            raise ScenarioError(str(recipe), None, "", f"no such recipe; {nearest(str(recipe), shipped())}")
    return loads(text_of(path), str(path), overrides)


def loads(text: str, file: str = "recipe.yaml", overrides: Sequence[str] = ()) -> Recipe:
    """As `load`, from the text of a recipe."""
    located = read_yaml(text, file)
    if not isinstance(located.data, dict):
        raise located.error((), "expected a mapping with name, status, source and structure")
    located = overridden(located, overrides)
    recipe = checked(Recipe, located.data, located)
    for keys, message in _clashes(recipe):
        raise located.error(keys, message)
    return recipe


def heads_of(recipe: Recipe, *sees: str) -> list[str]:
    """Critics that the recipe trains, all or those that see `prompt` or `state`."""
    values = [extra for extra in recipe.extra if isinstance(extra, Value) and (not sees or extra.sees in sees)]
    return sorted({head for extra in values for head in extra.heads})


def shipped() -> list[str]:
    """Names of the recipes that come with the install."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def json_schema() -> dict[str, Any]:
    """JSON Schema of a recipe file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Recipe.model_json_schema()}


# --- slots that must fit together --------------------------------------------------------------------


def _clashes(recipe: Recipe) -> Iterator[tuple[Keys, str]]:
    """Where two slots do not go together, and what would be right."""
    yield from _clashes_of_status(recipe)
    yield from _clashes_of_sampling(recipe)
    yield from _clashes_of_credit(recipe)
    yield from _clashes_of_loss(recipe)


def _clashes_of_status(recipe: Recipe) -> Iterator[tuple[Keys, str]]:
    like, verified = recipe.name.endswith("_like"), recipe.status == "verified"
    if like == verified:
        right = "unverified" if like else f"verified, or the name {recipe.name}_like"
        yield ("status",), f"{recipe.status} does not go with the name {recipe.name}; expected {right}"
    if verified and not {"code", "paper", "textbook"} & set(recipe.source):
        yield ("source",), "a verified recipe was read in code, a paper or a textbook; name which"


def _clashes_of_sampling(recipe: Recipe) -> Iterator[tuple[Keys, str]]:
    if recipe.rollout.top_p != 1:
        yield ("rollout", "top_p"), f"{recipe.rollout.top_p} is wrong; expected 1: the ratio is biased under any other"
    reads: list[Keys] = [("ratio", "denominator")] if recipe.ratio.denominator == "behaviour" else []
    reads += [] if isinstance(recipe.correction, NoCorrection) else [("correction", "kind")]
    reads += [("extra", number) for number, one in enumerate(recipe.extra) if isinstance(one, KLBeh)]
    reads += [("credit", number) for number, one in enumerate(recipe.credit) if isinstance(one.returns, Q)]
    reads += [("modulation", number) for number, one in enumerate(recipe.modulation) if one.kind == "entropy"]
    reads += [("reward", number) for number, one in enumerate(recipe.reward) if one.kind in ("log_ratio", "anchored")]
    reads += [("structure", "rule")] if isinstance(recipe.structure, Tree) else []
    if reads and not recipe.rollout.logprobs:
        yield reads[0], "this reads recorded log-probabilities; set rollout.logprobs: true"


def _clashes_of_credit(recipe: Recipe) -> Iterator[tuple[Keys, str]]:
    names = [source.kind for source in recipe.reward]
    for number, source in enumerate(recipe.reward):
        if source.kind in names[:number]:
            yield ("reward", number, "kind"), f"{source.kind} stands twice; add their weights"
    heads = {head for one in recipe.extra if isinstance(one, Value) for head in one.heads}
    for number, term in enumerate(recipe.credit):
        at: Keys = ("credit", number)
        for name in term.rewards:
            if name not in names:
                yield (*at, "rewards"), f"{name} is no reward source of this recipe; {nearest(name, names)}"
        if not recipe.reward:
            yield at, "credit needs a reward source; add one under reward"
        for head in {term.head, term.returns.high if isinstance(term.returns, SMDP) else ""} - heads - {""}:
            yield at, f"the critic {head} is never trained; add {{kind: value, heads: [{head}]}} under extra"
        if isinstance(recipe.structure, Tree) and isinstance(term.span, Tag) and "summary" in term.span.tags:
            yield (*at, "span"), "a tree has no rows of what is written into memories; expected another structure"
        if "group" in term.key and isinstance(recipe.structure, Independent):
            yield (
                (*at, "key"),
                "independent episodes make groups of one; choose the structure group, or a key without group",
            )
        if (isinstance(term.returns, TreeReturn) or "parent" in term.key) and not isinstance(recipe.structure, Tree):
            yield at, "nodes and branches need the structure tree"
        if isinstance(term.returns, CrossEpisode) and not isinstance(recipe.structure, Trial):
            yield (*at, "returns"), "returns xep need the structure trial"
    whole = heads_of(recipe, "state")
    for number, term in enumerate(recipe.credit):
        inside = isinstance(term.returns, GAE) and term.returns.level == "token"
        if term.head in whole and inside:
            yield ("credit", number, "returns"), f"the critic {term.head} sees states, not tokens; expected level turn"
    if both := set(whole) & set(heads_of(recipe, "prompt")):
        yield ("extra",), f"the critic {min(both)} sees either the prompt or the state"
    for number, one in enumerate(recipe.extra):
        unread = sorted(set(one.heads) - {term.head for term in recipe.credit}) if isinstance(one, Value) else []
        if unread:
            yield ("extra", number, "heads"), f"no term of credit reads the critic {unread[0]}, so it learns nothing"
    if recipe.modulation and not recipe.credit:
        yield ("modulation",), "nothing is there to modulate; add credit, or leave it out"


def _clashes_of_loss(recipe: Recipe) -> Iterator[tuple[Keys, str]]:
    legal = [isinstance(term.returns, Q) for term in recipe.credit]
    neurd = isinstance(recipe.trust, NeuRD | NeuRDFit)
    if neurd and not (legal and all(legal)):
        yield ("trust", "kind"), "neurd needs credit for all legal options; expected returns {kind: q} in every term"
    if not neurd and any(legal):
        yield ("credit", legal.index(True), "returns"), "returns q need the trust region neurd"
    if recipe.optimiser.kind == "gauss_newton" and (not isinstance(recipe.trust, NeuRDFit) or recipe.extra):
        yield ("optimiser", "kind"), "gauss_newton solves least squares; expected the trust region neurd_fit alone"
    if neurd and recipe.modulation:
        yield ("modulation",), "neurd takes its advantages as they are; leave modulation out"
    if recipe.ratio.denominator == "none" and not isinstance(recipe.trust, NoTrust | NeuRD | NeuRDFit):
        yield (
            ("trust", "kind"),
            f"{recipe.trust.kind} needs a ratio; expected denominator old or behaviour, or trust none",
        )
    if isinstance(recipe.trust, TVMask) and recipe.ratio.denominator != "behaviour":
        yield ("trust", "kind"), "tv_mask compares with the behaviour policy; expected ratio.denominator behaviour"
    if recipe.ratio.denominator == "behaviour" and not isinstance(recipe.correction, NoCorrection):
        yield ("correction", "kind"), "a ratio against the behaviour policy holds the correction; expected none"
    if isinstance(recipe.structure, Stored) and recipe.credit:
        yield ("structure", "kind"), "stored rows have old policies; credit needs episodes that are played"
    if any(isinstance(one, CE) and one.labels == "reservoir" for one in recipe.extra) != isinstance(
        recipe.actors, NFSP
    ):
        yield ("actors", "kind"), "the actors nfsp and the term {kind: ce, labels: reservoir} go together"
    if not recipe.credit and not recipe.extra and not isinstance(recipe.actors, Population):
        yield ("credit",), "nothing is learnt; add credit, or a term under extra"
