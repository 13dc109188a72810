"""What every shipped recipe sets, slot by slot, as the papers have it: a slot that is swapped is told.

Advantages are worked out in `by_hand`; these are the slots that no advantage shows: who plays what, and the loss.
"""

from __future__ import annotations

import pytest

from sim.scenarios.strict import Strict
from training.recipe import Recipe, load, shipped
from training.schedule import Schedule

CLIP = "token own old | clip lo=0.2 hi=0.2"
PLAIN = "token own none | none"
DPPO = "token own behaviour | tv_mask delta=0.2"
ONE_SIDED = f"{DPPO} side=below"
K3 = "kl_ref estimator=k3 weight=0.001"
NEAR = "kl_beh weight=0.001"
VALUE = "value weight=0.5 clip=0.2"

TABLE = {
    "aem_like": f"group size=8 | self | {CLIP} | outcome | entropy power=1",
    "agentrl_like": (
        f"group size=8 | mix last=4 | {CLIP} | outcome | whiten by=family unit=token | {K3} | stale most=4"
    ),
    "alphastar_like": (
        f"independent | league self_play=0.35 pfsp=0.5 main_exploiters=1 league_exploiters=1 | {CLIP} | outcome"
    ),
    "arpo_like": f"tree size=4 nodes=4 branches=1 rule=entropy_rise | self | {CLIP} | outcome | {K3}",
    "at2po": (
        "tree size=4 nodes=4 branches=2 rule=surprisal penalty=0.1 | self | turn geo_mean old | "
        f"clip lo=0.2 hi=0.2 | outcome | {K3}"
    ),
    "atod_like": f"group size=8 | self | {ONE_SIDED} | outcome | ref_kl weight=1@0→0@100 teacher=teacher | {NEAR}",
    "bi_level_gae": f"independent | self | {CLIP} | step | whiten ddof=1 eps=1e-08 | {VALUE}",
    "dagger": f"independent | teacher policy=teacher beta=1@0→0@20 | {PLAIN} | – | ce weight=1 labels=teacher",
    "dapo_like": (
        "group size=8 | self | token own old | clip lo=0.2 hi=0.28 | outcome | range_gate lo=0 hi=1 | overlong"
    ),
    "dpo": f"stored | self | {PLAIN} | outcome | dpo beta=0.1 pairs=best_worst key=group unit=episode",
    "dr_grpo": f"group size=8 | self | {CLIP} | outcome | const length=256",
    "dr_mas": "group size=8 | self | token own old | dual lo=0.2 hi=0.2 c=3 | outcome+format",
    "echo": f"group size=8 | self | {DPPO} | outcome | ce_obs weight=0.1 | {NEAR}",
    "epo_like": (
        f"group size=8 | self | {CLIP} | outcome | entropy weight=0.001 | "
        "entropy_band lo=0.8 hi=1.2 weight=0.001@0→0.00087@75→0.00018@76→4e-05@150"
    ),
    "evoemo_like": (
        "group size=8 | population size=20 elite=4 crossover=0.5 mutation=0.1 "
        f"space=cast.host.with.emotion.start,cast.host.with.emotion.moves,models.small.temperature | {PLAIN} | outcome"
    ),
    "expert_corrections_like": (
        f"independent | teacher policy=teacher beta=0@0→1@3 over=turn | {PLAIN} | – | ce weight=1 labels=teacher"
    ),
    "gigpo": f"group size=8 | self | {CLIP} | step",
    "grpo": f"group size=8 | self | {CLIP} | outcome | {K3} | seq",
    "gspo_like": "group size=8 | self | sequence geo_mean old | clip lo=0.0003 hi=0.0004 | outcome | per_rollout",
    "gtpo_like": f"group size=8 | self | {CLIP} | step",
    "guided_opd_like": (
        f"independent | teacher policy=teacher beta=0.5@0→0@100 | {ONE_SIDED} | – | "
        f"ref_kl weight=1 teacher=teacher | {NEAR}"
    ),
    "hierarchical_grpo": f"propose proposals=8 attempts=4 | self | {DPPO} | outcome | {NEAR}",
    "hiper": f"independent | self | {CLIP} | step+keep | value weight=0.5 heads=low,high,termination",
    "igpo": f"group size=8 | self | {CLIP} | info_gain+outcome | {K3}",
    "lamer": f"trial size=8 attempts=3 reflect=True | self | {CLIP} | step",
    "magic_like": (
        f"group size=8 | pool weight=uniform side=other | {CLIP} | judge | {K3} | "
        "phase length=10 learn=attacker,defender"
    ),
    "marshal": (
        "independent | self | token own old | dual lo=0.2 hi=0.2 c=3 | step | whiten ddof=1 eps=1e-08 | "
        "kl_ref estimator=k3 weight=0.2"
    ),
    "maxrl": f"group size=8 | self | {CLIP} | outcome",
    "memopilot_like": f"group size=8 | fixed | {CLIP} | step",
    "neurd_fit_like": ("independent | self explore=0.05 | token own none | neurd_fit alpha=2@0→0.1@45 c=3 | anchored"),
    "neurd_like": "independent | self explore=0.1 | token own none | neurd c=2 | anchored",
    "nfsp_like": f"independent | nfsp eta=0.1 reservoir=100000 | {CLIP} | outcome | ce weight=1 labels=reservoir",
    "opd": f"independent | self | {ONE_SIDED} | – | ref_kl weight=1 teacher=teacher | {NEAR}",
    "opsd": f"independent | self | {ONE_SIDED} | – | ref_kl weight=1 shown=demonstration | {NEAR}",
    "prime_rl": f"group size=8 | self | {DPPO} | outcome | {NEAR} | stale most=8 | zero_advantage",
    "progress_advantage": f"independent | self | {CLIP} | log_ratio",
    "psro_like": f"independent | psro solver=meta_nash every=50 games=100 | {CLIP} | outcome",
    "ragen2": (
        "group size=16 | self | token own old | clip lo=0.2 hi=0.28 | step+format | group_std ddof=1 | "
        "entropy weight=0.001 | var_top_p p=0.9 eps=0.01"
    ),
    "reinforce": f"independent | self | {PLAIN} | outcome",
    "rloo": f"group size=8 | self | {CLIP} | outcome",
    "rmft": f"group size=8 | self | {PLAIN} | regret | ce weight=1 labels=rows | best_k k=2",
    "s_ppo_like": f"independent | self | token own old | bias_norm c0=1 lo=0.2 hi=0.2 | outcome | {VALUE}",
    "scaling_inter_rl": f"group size=8 | self | {CLIP} | step | {K3} | horizon stages=0,10,100,20,200,30",
    "sft": f"stored | self | {PLAIN} | outcome | ce weight=1 labels=rows | at_least value=1",
    "skill_sd_like": f"group size=8 | self | {ONE_SIDED} | outcome | ref_kl weight=1 shown=skills | {NEAR}",
    "spiral": f"independent | self | {CLIP} | outcome | zero_advantage",
    "ssp_like": f"propose proposals=8 attempts=4 | self | {CLIP} | outcome | {K3}",
    "st_ppo_like": f"independent | self | turn geo_mean old | bias_norm c0=1 lo=0.2 hi=0.2 | outcome | {VALUE}",
    "starpo": f"group size=16 | self | {CLIP} | step+format | whiten ddof=1 eps=1e-08 | {VALUE} | {K3}",
    "starpo_s": (
        "group size=16 | self | token own old | clip lo=0.2 hi=0.28 | step+format | "
        f"whiten ddof=1 eps=1e-08 | {VALUE} | entropy weight=0.001 | top_k share=0.25"
    ),
    "supo_like": f"chop size=8 context=2048 summaries=4 | self | {CLIP} | outcome | overlong",
    "sweet_rl_actor_like": (
        f"tree size=1 nodes=8 branches=7 rule=surprisal | self | {PLAIN} | log_ratio | "
        "dpo beta=0.1 pairs=halves key=parent unit=turn"
    ),
    "sweet_rl_critic_like": (
        f"group size=8 | self | {PLAIN} | outcome | bt beta=0.1 pairs=halves key=group unit=episode"
    ),
    "turn_ppo": f"independent | self | turn product old | clip lo=0.2 hi=0.2 | step | {VALUE}",
    "unstable_baselines": (
        f"independent | pool weight=match_quality | {PLAIN} | outcome+format | whiten by=family unit=row"
    ),
}
"""By recipe: structure; actors; ratio; trust region; reward sources; then what there is of modulation, extra terms,
filters, curriculum and engine correction, and an aggregation other than by token."""


def told(value: object) -> str:
    if isinstance(value, Schedule):
        return "→".join(f"{number:g}@{count:g}" for count, number in value.points)
    if isinstance(value, tuple | list | dict):
        return ",".join(map(told, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def words(setting: Strict) -> str:
    """Its kind, and what is set of it."""
    given = {name: getattr(setting, name) for name in type(setting).model_fields if name in setting.model_fields_set}
    return " ".join([str(given.pop("kind")), *(f"{name}={told(value)}" for name, value in given.items())])


def line(recipe: Recipe) -> str:
    """The recipe's line of the table."""
    ratio = recipe.ratio
    first = [words(recipe.structure), words(recipe.actors), f"{ratio.unit} {ratio.agg} {ratio.denominator}"]
    sources = "+".join(source.kind for source in recipe.reward) or "–"
    rest = [*recipe.modulation, *recipe.extra, *recipe.filter, *recipe.curriculum]
    others = [one for one in (recipe.correction, recipe.aggregation) if one.kind not in ("none", "token")]
    return " | ".join([*first, words(recipe.trust), sources, *map(words, [*rest, *others])])


def test_every_recipe_has_its_line() -> None:
    assert sorted(TABLE) == shipped()


@pytest.mark.parametrize("name", TABLE)
def test_slots_are_those_of_the_table(name: str) -> None:
    assert line(load(name)) == TABLE[name]


@pytest.mark.parametrize(
    "change",
    [
        "structure={kind: independent}",
        "structure.size=4",
        "actors={kind: lagged, last: 3}",
        "ratio={unit: turn, agg: geo_mean}",
        "trust={kind: dual}",
        "trust.hi=0.28",
        "correction={kind: trunc}",
        "extra=[]",
        "extra.0.weight=0.01",
        "extra.0.estimator=k1",
        "reward=[{kind: step}]",
        "filter=[{kind: zero_advantage}]",
        "modulation=[{kind: whiten}]",
        "curriculum=[{kind: horizon, stages: [[0, 10], [5, 20]]}]",
        "aggregation={kind: token}",
    ],
)
def test_a_swapped_slot_is_another_line(change: str) -> None:
    changes = [change, "credit.0.key=[family]"] if "independent" in change else [change]
    assert line(load("grpo", changes)) != TABLE["grpo"]
