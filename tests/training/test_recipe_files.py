"""What a recipe file may hold, and the one line that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.scenarios.located import ScenarioError
from sim.scenarios.yaml_text import write_yaml
from training.recipe import FOLDER, json_schema, load, loads, shipped

GRPO = (FOLDER / "grpo.yaml").read_text(encoding="utf-8")
CRITIC = "[{returns: {kind: gae}, baseline: {kind: critic}}]"

WRONG = {
    "trust.kind=clop": "trust.kind: 'clop' is wrong; expected 'none', 'clip', 'dual', 'cispo', 'tv_mask', ",
    "trust.low=0.1": "trust.low: unknown key; did you mean lo?",
    "trust.lo=-1": "trust.lo: -1 is wrong; expected at least 0",
    "optimiser.lr=-1": "optimiser.lr: -1 is wrong; expected at least 0",
    "optimiser.critic_lr={points: [[0, 1.0], [9, -0.1]]}": "optimiser.critic_lr: -0.1 is wrong; expected at least 0",
    "optimiser.betas=[0.9, 1.5]": "optimiser.betas.1: 1.5 is wrong; expected less than 1",
    "trust={kind: neurd}": "trust.kind: neurd needs credit for all legal options; expected returns {kind: q}",
    "trust={kind: tv_mask}": "tv_mask compares with the behaviour policy; expected ratio.denominator behaviour",
    "rollout.top_p=0.9": "rollout.top_p: 0.9 is wrong; expected 1",
    "ratio={unit: turn}": "ratio: agg own does not go with unit turn; expected geo_mean or product",
    "ratio={agg: product}": "ratio: agg product does not go with unit token; expected own",
    "ratio={denominator: none}": "trust.kind: clip needs a ratio",
    "extra=[{kind: kl_ref}]": "extra.0.weight: missing",
    "structure={kind: independent}": "credit.0.key: independent episodes make groups of one; choose the structure gr",
    f"credit={CRITIC}": "credit.0: the critic value is never trained; add {kind: value, heads: [value]} under extra",
    "extra=[{kind: value, heads: [far]}]": "extra.0.heads: no term of credit reads the critic far, so it learns",
    "credit.0.key=[gruop]": "credit.0.key: 'gruop' is nothing that rows are keyed by; did you mean group?",
    "credit.0.only={colour: red}": "credit.0.only: 'colour' is nothing that rows are keyed by",
    "credit.0.rewards=[step]": "credit.0.rewards: step is no reward source of this recipe; there is only outcome",
    "credit.0.baseline={kind: critic}": "credit.0: scale std does not go with the critic's baseline; expected one",
    "credit.0.returns={kind: gae, level: token}": "credit.0: returns by token need the baseline critic, not mean",
    "credit.0.returns={kind: smdp, level: low, head: low}": "credit.0: returns smdp need the baseline critic, not mean",
    "credit.0.returns={kind: tree}": "credit.0: nodes and branches need the structure tree",
    "credit.0.key=[parent]": "credit.0: nodes and branches need the structure tree",
    "credit.0.returns={kind: xep}": "credit.0.returns: returns xep need the structure trial",
    "credit.0.returns={kind: q}": "credit.0.returns: returns q need the trust region neurd",
    "reward=[]": "credit.0: credit needs a reward source; add one under reward",
    "reward=[{kind: step}, {kind: step}]": "reward.1.kind: step stands twice; add their weights",
    "structure={kind: stored}": "structure.kind: stored rows have old policies; credit needs episodes that are played",
    "actors={kind: nfsp}": "actors.kind: the actors nfsp and the term {kind: ce, labels: reservoir} go together",
    "name=grpo_like": "status: verified does not go with the name grpo_like; expected unverified",
    "status=unverified": "status: unverified does not go with the name grpo; expected verified, or the name grpo_like",
    "source=[abstract]": "source: a verified recipe was read in code, a paper or a textbook; name which",
    "curriculum=[{kind: horizon, stages: [[3, 1], [2, 2]]}]": "curriculum.0.stages: the counts [3, 2] do not rise",
    "modulation=[{kind: whiten, by: [colour]}]": "modulation.0.by: 'colour' is nothing that rows are keyed by",
    "extra=[{kind: value, sees: all}]": "extra.0.sees: 'all' is wrong; expected 'prompt' or 'state'",
    "threads=0": "threads: 0 is wrong; expected at least 1",
    "treads=2": "treads: unknown key; did you mean threads?",
}
"""One override of GRPO, and how the error's line goes on after the file."""


@pytest.mark.parametrize(("override", "line"), WRONG.items())
def test_wrong_recipes(override: str, line: str) -> None:
    with pytest.raises(ScenarioError) as error:
        loads(GRPO, "grpo.yaml", [override])
    text = str(error.value)
    assert "\n" not in text
    assert line in text


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["ratio.denominator=behaviour"], "ratio.denominator"),
        (["correction={kind: trunc}"], "correction.kind"),
        (["extra=[{kind: kl_beh, weight: 0.1}]"], "extra.0"),
        (["modulation=[{kind: entropy}]"], "modulation.0"),
        (["reward=[{kind: log_ratio}]"], "reward.0"),
    ],
)
def test_what_reads_log_probabilities_needs_them_recorded(more: list[str], line: str) -> None:
    loads(GRPO, "grpo.yaml", more)
    with pytest.raises(
        ScenarioError, match=f"{line}: this reads recorded log-probabilities; set rollout.logprobs: true"
    ):
        loads(GRPO, "grpo.yaml", [*more, "rollout.logprobs=false"])


def test_more_that_does_not_go_together() -> None:
    both = ["ratio.denominator=behaviour", "correction={kind: mask}"]
    with pytest.raises(ScenarioError, match="a ratio against the behaviour policy holds the correction; expected none"):
        loads(GRPO, "grpo.yaml", both)
    with pytest.raises(ScenarioError, match="nothing is learnt; add credit, or a term under extra"):
        loads(GRPO, "grpo.yaml", ["credit=[]", "extra=[]"])
    with pytest.raises(ScenarioError, match="modulation: nothing is there to modulate"):
        loads(GRPO, "grpo.yaml", ["credit=[]", "modulation=[{kind: whiten}]"])
    with pytest.raises(ScenarioError, match="modulation: neurd takes its advantages as they are"):
        load("neurd_like", ["modulation=[{kind: whiten}]"])
    with pytest.raises(ScenarioError, match="the critic value sees states, not tokens; expected level turn"):
        load("starpo", ["extra=[{kind: value, sees: state}]"])
    with pytest.raises(ScenarioError, match="the critic value sees either the prompt or the state"):
        load("turn_ppo", ["extra=[{kind: value}, {kind: value, sees: state}]"])
    with pytest.raises(ScenarioError, match="high is never trained"):
        load("hiper", ["extra=[{kind: value, heads: [low, termination]}]"])


def test_errors_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GRPO.replace("kind: group, size: 8", "kind: group, size: 0"), encoding="utf-8")
    line = next(n for n, each in enumerate(GRPO.splitlines(), 1) if each.startswith("structure"))
    with pytest.raises(ScenarioError) as error:
        load(path)
    assert str(error.value) == f"{path}:{line}: structure.size: 0 is wrong; expected at least 1"
    with pytest.raises(ScenarioError, match="no such file"):
        load(tmp_path / "none.yaml")
    path.write_bytes(b"\xff")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load(path)
    with pytest.raises(ScenarioError, match="expected a mapping"):
        loads("[]")
    with pytest.raises(ScenarioError, match="gropo: no such recipe; did you mean grpo"):
        load("gropo")


@pytest.mark.parametrize("name", shipped())
def test_what_is_resolved_can_be_written_and_read_again(name: str) -> None:
    recipe = load(name)
    assert loads(write_yaml(recipe.resolved())) == recipe


def test_names_say_what_was_verified() -> None:
    for name in shipped():
        recipe = load(name)
        assert (recipe.status == "unverified") == name.endswith("_like")


def test_the_schema_knows_all_slots() -> None:
    slots = {"structure", "actors", "credit", "reward", "modulation", "ratio", "trust", "correction", "extra", "filter"}
    assert slots < set(json_schema()["properties"])
