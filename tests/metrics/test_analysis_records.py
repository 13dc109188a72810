"""Analysis of records: calibration, sets that cover, what another policy would have earned."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import pytest

from sim.metrics.analysis import calibration, conformal, offpolicy
from sim.metrics.family import Relative
from tests.metrics.dealings import told
from tests.metrics.society import Society, values

STATED = [(0.9, True), (0.9, True), (0.9, True), (0.9, False), (0.6, True), (0.6, True), (0.6, False), (0.6, False)]


def stated(*tables: Sequence[tuple[Any, Any]], agents: str = "a") -> Any:
    """Probabilities and outcomes by table, from agents in turn."""
    return told(
        [
            [
                ("forecast", agents[n % len(agents)], {"probability": given, "outcome": happened})
                for n, (given, happened) in enumerate(table)
            ]
            for table in tables
        ]
    )


# --- calibration ---------------------------------------------------------------------------------------------


def test_calibration_by_hand() -> None:
    """Four of .9, three of which come true, and four of .6, two of which do, eight times each; at two tables."""
    found = values(calibration.all(stated(STATED * 4, STATED * 4)))
    assert found["calibration.brier"].value == pytest.approx((3 * 0.01 + 0.81 + 2 * 0.16 + 2 * 0.36) / 8)
    assert found["calibration.reliability"].value == pytest.approx((0.15**2 + 0.1**2) / 2)
    assert found["calibration.resolution"].value == pytest.approx(0.125**2)
    assert found["calibration.uncertainty"].value == pytest.approx(5 * 3 / 64)
    assert found["calibration.ece"].value == pytest.approx(0.125)
    assert found["calibration.ece"].flags == ("15 bins",)
    loss = -(3 * log(0.9) + log(0.1) + 2 * log(0.6) + 2 * log(0.4)) / 8
    assert found["calibration.log_loss"].value == pytest.approx(loss)
    assert found["calibration.overconfidence"].value == pytest.approx(0.75 - 5 / 8)
    assert found["calibration.overconfidence"].null["p"] == 0.5, "two of four ways to flip signs"


def test_few_predictions_and_none() -> None:
    few = values(calibration.all(stated(STATED)))
    assert few["calibration.brier"].value is not None
    assert (few["calibration.ece"].value, few["calibration.ece"].flags[0]) == (None, "fewer than 50 predictions")
    odd = values(calibration.all(stated([(1.2, True), (0.5, "won"), (None, True), (0.5, True)])))
    assert odd["calibration.brier"].n == 1
    assert odd["calibration.brier"].excluded == {"no probability, or no outcome": 2}
    assert {one.value for one in calibration.all(stated([]))} == {None}
    ruled_out = values(calibration.all(stated([(0.0, True)] * 50)))["calibration.log_loss"]
    assert (ruled_out.value, ruled_out.flags) == (None, ("something happened that was ruled out",))


def test_calibration_knows_neither_names_nor_the_side_that_is_named() -> None:
    plain = values(calibration.all(stated(STATED * 4, STATED * 4, agents="ab")))
    other = values(calibration.all(stated(STATED * 4, STATED * 4, agents="zy")))
    assert plain["calibration.brier agent=a"].value == other["calibration.brier agent=z"].value
    turned = values(calibration.all(stated(*[[(1 - p, not y) for p, y in STATED * 4]] * 2)))
    for name in ("brier", "log_loss", "overconfidence"):
        assert turned[f"calibration.{name}"].value == pytest.approx(plain[f"calibration.{name}"].value)


# --- conformal sets ------------------------------------------------------------------------------------------


def test_coverage_by_hand() -> None:
    """Nine scores of 1 to 9 calibrate at 20%: 8 is the limit, and covers three of five at two other tables."""
    tables = [[1.0, 2, 3, 4], [5.0, 6, 7, 8, 9], [8.0, 1, 9], [2.0, 10]]
    found = values(conformal.covered(tables, 0.2, {}, {}, 99))
    assert found["conformal.threshold"].value == 8
    assert found["conformal.coverage"].value == pytest.approx(3 / 5)
    assert (found["conformal.coverage"].n, found["conformal.coverage"].n_clusters) == (5, 2)
    few = values(conformal.covered(tables, 0.05, {}, {}))["conformal.coverage"]
    assert few.value is None
    assert few.flags == ("fewer than 19 scores to calibrate on, or some of them infinite",)
    assert {one.value for one in conformal.covered([], 0.1, {}, {})} == {None}
    assert {one.value for one in conformal.covered([[1.0] * 20], 0.1, {}, {})} == {None}


def test_sets_of_stated_outcomes() -> None:
    """Of what came true .9 was said: below −log .9 lies one outcome of two; of .5 none, of .95 one."""
    record = stated([(0.9, True)] * 10, [(0.5, True), (0.95, False), (0.1, False)])
    found = values(conformal.forecasts(record))
    assert found["conformal.threshold scores=stated"].value == pytest.approx(-log(0.9))
    assert found["conformal.coverage scores=stated"].value == pytest.approx(1 / 3)
    assert found["conformal.set_size scores=stated"].value == pytest.approx(2 / 3)
    assert {one.value for one in conformal.forecasts(stated([]))} == {None}


def test_scores_of_recorded_choices(tmp_path: Path) -> None:
    """Ten choices of probability ½ calibrate; of three others two are as likely; what was cut off does not count."""
    society = Society(tmp_path / "run.db", tables=2)
    society.member("ann")
    for tick in range(10):
        society.act("ann", tick, calls=[{"logprobs": [log(0.5)]}])
    for tick, likely in enumerate((0.5, 0.6, 0.2)):
        society.act("ann", tick, calls=[{"logprobs": [log(likely)]}], table=1)
    society.act("ann", 20, calls=[{"finish": "length"}, {"form": '{"text":20}'}], table=1)
    found = values(conformal.all(society.run()))["conformal.coverage scores=choices"]
    assert found.value == pytest.approx(2 / 3)
    assert found.excluded == {"choices without a log-probability of what was sampled": 1}


def test_each_role_is_covered_by_itself_and_sets_of_choices_have_sizes(tmp_path: Path) -> None:
    """Sellers are sure (.9), buyers are not (.5): the limit of all, −log .5, covers the sellers' .6, their own not.

    Of a new choice of two with .6 and .4 one option is within −log .5; where an option is not known it has no size.
    """
    society = Society(tmp_path / "run.db", tables=2)
    for agent, role in (("ann", "buyer"), ("bob", "seller")):
        society.member(agent, role=role)
        for tick in range(10):
            society.act(agent, tick, calls=[{"logprobs": [log(0.5 if role == "buyer" else 0.9)]}])
    for tick, options in enumerate(([log(0.6), log(0.4)], [log(0.6), None])):
        society.act("bob", tick, calls=[{"logprobs": [log(0.6)], "options": options}], table=1)
    found = values(conformal.all(society.run()))
    assert found["conformal.coverage scores=choices"].value == 1
    assert found["conformal.coverage role=seller scores=choices"].value == 0
    assert found["conformal.threshold role=seller scores=choices"].value == pytest.approx(-log(0.9))
    assert found["conformal.coverage role=buyer scores=choices"].value is None, "no buyer chose later"
    size = found["conformal.set_size scores=choices"]
    assert (size.value, size.n, size.n_clusters) == (1, 1, 1)
    assert size.excluded == {"some outcome has no probability": 1}


def test_cases_that_came_to_be_other_ones_are_flagged() -> None:
    shifted = [[float(n)] * 2 for n in range(10)] + [[float(n)] * 2 for n in range(20, 30)]
    for tables, flags in ((shifted, (conformal.SHIFTED,)), ([[1.0, 2]] * 20, ())):
        *_, found = conformal.covered(tables, 0.1, {}, {}, 99)
        assert [flag for flag in found.flags if flag == conformal.SHIFTED] == list(flags)


# --- another policy ------------------------------------------------------------------------------------------


def played(path: Path, name: str, chances: Sequence[float], wins: Sequence[float], **call: Any) -> Relative:
    """A decision at each table, with the probability of what was done, and what it earned."""
    society = Society(path / f"{name}.db", tables=len(chances))
    society.member("ann")
    for table, (chance, won) in enumerate(zip(chances, wins, strict=True)):
        society.act("ann", 1, calls=[{"logprobs": [log(chance)], **call}], table=table)
        society.logs[table].event(1, 0, "rewards", "", {"ann": won, "bob": 9})
    return Relative(id=name, record=society.run(), scenario={"models": name})


def test_another_policy_is_valued(tmp_path: Path) -> None:
    """Half of fifty choices win 1; the target takes these with ¾ instead of ½, and would earn ¾."""
    wins = [float(n % 2) for n in range(50)]
    one = played(tmp_path, "one", [0.5] * 50, wins)
    other = played(tmp_path, "other", [0.25 + 0.5 * win for win in wins], wins)
    found = values(offpolicy.compared([one, other]))
    about = " behaviour=one target=other"
    value = found[f"offpolicy.value{about}"]
    assert value.value == pytest.approx(0.75)
    assert value.ci is not None
    assert found[f"offpolicy.behaviour{about}"].value == pytest.approx(0.5)
    assert found[f"offpolicy.effective_size{about}"].value == pytest.approx(50**2 / (25 * (1.5**2 + 0.5**2)))
    assert values(offpolicy.compared([one, played(tmp_path, "same", [0.5] * 50, wins)]))[
        "offpolicy.value behaviour=one target=same"
    ].value == pytest.approx(0.5)


def test_a_reward_is_weighed_by_what_was_seen_before_it(tmp_path: Path) -> None:
    """Ratios 1½ and ½, rewards 1 between them and 2 after: 1½·1 + ¾·2 by decision, ¾·3 by the whole trajectory."""

    def twice(name: str, first: float, second: float) -> Relative:
        society = Society(tmp_path / f"{name}.db", tables=40)
        society.member("ann")
        for table, log_of in enumerate(society.logs):
            for tick, chance, won in ((1, first, 1), (3, second, 2)):
                society.act("ann", tick, calls=[{"logprobs": [log(chance)]}], table=table)
                log_of.event(tick + 1, 0, "rewards", "", {"ann": won})
        return Relative(id=name, record=society.run(), scenario={"models": name})

    found = values(offpolicy.compared([twice("one", 0.5, 0.5), twice("other", 0.75, 0.25)]))
    about = " behaviour=one target=other"
    assert found[f"offpolicy.per_decision{about}"].value == pytest.approx(1.5 * 1 + 0.75 * 2)
    assert found[f"offpolicy.ips{about}"].value == pytest.approx(0.75 * 3)
    assert found[f"offpolicy.value{about}"].value == pytest.approx(3)
    assert found[f"offpolicy.largest_weight{about}"].value == pytest.approx(1 / 40)


def test_a_greedy_answer_has_no_weight(tmp_path: Path) -> None:
    one, other = (
        played(tmp_path, name, [0.5] * 40, [1.0] * 40, sampling='{"temperature":0}') for name in ("one", "other")
    )
    (value, *_) = offpolicy.compared([one, other])
    assert value.excluded == {"log-probabilities of another distribution than was sampled": 40}


def test_there_is_no_value_of_a_part(tmp_path: Path) -> None:
    """What the target did not score, or another distribution, is no ground for a value."""
    one = played(tmp_path, "one", [0.5] * 40, [1.0] * 40)
    other = played(tmp_path, "other", [0.5] * 39, [1.0] * 39)
    missing = values(offpolicy.compared([one, other]))["offpolicy.value behaviour=one target=other"]
    assert (missing.value, missing.excluded) == (None, {"the target was not asked": 1})
    assert missing.flags == ("the target's log-probabilities of what was done are not all recorded",)
    asked = played(tmp_path, "asked", [0.5] * 40, [1.0] * 40, messages='[["user","00"]]')
    (elsewhere, *_) = offpolicy.compared([one, asked])
    assert (elsewhere.value, elsewhere.excluded) == (None, {"the target was asked something else": 40})
    (alone, *_) = offpolicy.compared([one])
    assert (alone.value, alone.flags) == (None, ("only the behaviour's log-probabilities are recorded",))
    few = played(tmp_path, "few", [0.5] * 3, [1.0] * 3)
    (refused, *_) = offpolicy.compared([few, played(tmp_path, "two", [0.5] * 3, [1.0] * 3)])
    assert (refused.value, refused.flags[0]) == (None, "effective sample size below 30")
