"""Collusion in prices, from records: how far above competition, and what follows a forced deviation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sim.intervals import ALIKE
from sim.metrics.collusion.deviation import response
from sim.metrics.collusion.markups import all as markups
from sim.metrics.collusion.punishment import impulse_response
from sim.metrics.family import Relative
from sim.record.reader import Run
from sim.types import Measurement, Seat, Set
from tests.metrics.society import Society, values
from tests.worlds.playing import play
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.strategies import BestReply, Constant, GrimTrigger

FIRMS = ("one", "two")


def duopoly(kind: Any, forced: float | str | None = None, names: Sequence[str] = FIRMS, **params: Any) -> Any:
    """Twenty periods; the first firm is forced in the tenth."""
    shock = [(18, Set(key="forced", value={names[0]: forced}), None)] if forced is not None else []
    cast = [(Seat(agent=name), kind) for name in names]
    return play(Oligopoly, cast, {"periods": 20, "window": 10, "pause": 2, **params}, interventions=shock)


def relatives(*pairs: tuple[Any, Any]) -> list[Relative]:
    """Runs, each with a fork at tick 18."""
    found = []
    for number, (alone, forced) in enumerate(pairs):
        found.append(Relative(id=f"r{number}", record=alone, scenario={}))
        fork = Relative(id=f"f{number}", record=forced, scenario={}, parent=f"r{number}", tick=18, change="forced")
        found.append(fork)
    return found


def told(kind: Any, forced: float | str = "best_reply", **params: Any) -> dict[str, Measurement]:
    return values(response(relatives((duopoly(kind, **params), duopoly(kind, forced, **params)))))


# --- how far above competition -----------------------------------------------------------------------------


def test_the_benchmarks_are_0_and_1() -> None:
    ends: list[tuple[Any, float]] = [("nash", 0.0), ("optimum", 1.0)]
    for at, gain in ends:
        found = values(markups(duopoly(partial(Constant, at=at))))
        for name in ("profit_gain", "price_index"):
            for of in ("", " agent=one", " agent=two"):
                assert found[f"pricing.{name}{of}"].value == pytest.approx(gain, abs=1e-9)
        assert found["pricing.profit_gain"].n == 10
        assert found["pricing.profit_gain"].flags == ("n_clusters<2",)
    assert found["pricing.lerner"].value == pytest.approx(1 - 1 / 1.92498, abs=1e-5)
    assert found["pricing.price_lift"].value == pytest.approx(1.92498 / 1.47293 - 1, abs=1e-5)
    assert len(found["pricing.profit_gain"].events) == 20, "a sale of each firm and period"


def test_costs_that_are_passed_on() -> None:
    """Of two firms at Nash prices the slope is their difference in price over that in cost; alike costs have none."""
    cast = [
        (Seat(agent=name, private={"cost": cost}), partial(Constant, at="nash"))
        for name, cost in (("a", 1), ("b", 1.2))
    ]
    played = play(Oligopoly, cast, {"periods": 4, "window": 3, "pause": 2})
    point = played.data("benchmark")[0]["nash"]["prices"]
    found = values(markups(played))["pricing.pass_through"]
    assert found.value == pytest.approx((point[1] - point[0]) / 0.2)
    assert 0 < (found.value or 0) < 1
    assert found.n == 3
    alike = values(markups(duopoly(partial(Constant, at="nash"))))["pricing.pass_through"]
    assert (alike.value, alike.excluded) == (None, {"tables whose firms have the same cost": 1})


def test_forced_periods_are_left_out() -> None:
    found = values(markups(duopoly(partial(Constant, at="optimum"), "best_reply", window=20)))
    assert found["pricing.profit_gain"].excluded == {"forced": 1}
    assert found["pricing.profit_gain"].value == pytest.approx(1.0)


def test_prices_that_still_move_are_flagged() -> None:
    assert "prices still move at 1 of 1 tables" in values(markups(duopoly(BestReply)))["pricing.price_index"].flags


def test_names_do_not_matter() -> None:
    one, other = (values(markups(duopoly(BestReply, names=names))) for names in (FIRMS, ("y", "x")))
    assert one["pricing.profit_gain"] == other["pricing.profit_gain"]
    for before, after in (("one", "y"), ("two", "x")):
        key = "pricing.lerner agent="
        assert one[key + before].value == other[key + after].value


def test_a_record_without_a_market_has_no_number(tmp_path: Path) -> None:
    assert all(one.value is None for one in markups(Society(tmp_path / "run.db").run()))


# --- what follows a deviation ------------------------------------------------------------------------------


def prices(path: Path, rival: Sequence[float], own: Sequence[float], forced: bool, private: bool = False) -> Run:
    """A market by hand from period 1 on; profits are prices less 1."""
    made = Society(path)
    for firm in FIRMS:
        made.member(firm)
    if forced:
        made.fact(1, "forced", audience=(), period=1, chosen={"one": own[0]})
    for period, pair in enumerate(zip(own, rival, strict=True), 1):
        chosen = dict(zip(FIRMS, pair, strict=True))
        made.fact(period, "period", audience=() if private else "all", period=period, chosen=chosen, missed=[])
        for firm, price in chosen.items():
            made.fact(period, "sale", firm, audience=(firm,), period=period, price=price, profit=price - 1, quantity=1)
    return made.run()


def by_hand(folder: Path, number: int = 0, **more: Any) -> tuple[Run, Run]:
    """The worked examples of the estimators: a rival at 1.8 that falls to 1.5 and comes back in the fourth period."""
    rival, own = [1.8, 1.5, 1.4, 1.6, 1.75, 1.8], [1.6, 1.2, 1.3, 1.7, 1.8, 1.8]
    alone = prices(folder / f"a{number}.db", [1.8] * 6, [1.8] * 6, forced=False, **more)
    return alone, prices(folder / f"f{number}.db", rival, own, forced=True, **more)


def test_a_response_by_hand(tmp_path: Path) -> None:
    found = values(response(relatives(by_hand(tmp_path)), after=5, discount=0.9, tolerance=0.03))
    assert found["deviation.depth"].value == pytest.approx((0.3 + 0.4 + 0.2) / 3)
    assert found["deviation.area"].value == pytest.approx(0.95)
    assert found["deviation.return_time"].value == 4
    assert found["deviation.gain"].value == pytest.approx(-0.2 - 0.9 * 0.6 - 0.81 * 0.5 - 0.729 * 0.1)
    assert found["deviation.punished_share"].value == 1
    path = [found[f"deviation.response firms=rivals tau={tau}"].value for tau in range(6)]
    assert path == pytest.approx([0, -0.3, -0.4, -0.2, -0.05, 0])
    assert all(one.ci is None and "n_clusters<2" in one.flags for one in found.values() if one.unit == "money")


def test_runs_are_clusters_and_forks_of_one_are_not(tmp_path: Path) -> None:
    pairs = [by_hand(tmp_path, number) for number in range(3)]
    many = values(response(relatives(*pairs), after=5))
    assert (many["deviation.depth"].n, many["deviation.depth"].n_clusters) == (3, 3)
    assert (many["deviation.depth"].ci, many["deviation.depth"].flags) == (None, (ALIKE,))
    assert many["deviation.depth"].null["p"] == 0.25, "the least that three runs can say"
    assert many["deviation.response firms=rivals tau=2"].null["band"] == pytest.approx([-0.4, -0.4])
    turned = values(response(relatives(*pairs)[::-1], after=5))
    assert {key: (one.value, one.n) for key, one in turned.items()} == {
        key: (one.value, one.n) for key, one in many.items()
    }


def test_rivals_who_do_not_see_prices_are_no_test(tmp_path: Path) -> None:
    found = values(response(relatives(by_hand(tmp_path, private=True))))
    assert found["deviation.depth"].value is None
    assert found["deviation.depth"].excluded == {"rivals do not see prices": 1}


def test_prices_by_fiat_gain_and_are_not_punished() -> None:
    found = told(partial(Constant, at="optimum"))
    assert found["deviation.depth"].value == 0
    assert found["deviation.gain"].value == pytest.approx(0.0745, abs=0.01)
    assert found["deviation.punished_share"].value == 0


def test_best_replies_are_no_deviation() -> None:
    found = told(BestReply, levels=15)
    assert found["deviation.depth"].value is None
    assert found["deviation.depth"].excluded == {"forced to what it did anyway": 1}


def test_a_grim_trigger_punishes_for_ever() -> None:
    found = told(GrimTrigger)
    assert found["deviation.punished_share"].value == 1
    assert found["deviation.depth"].value == pytest.approx(1.92498 - 1.47293, abs=1e-4)
    assert found["deviation.gain"].value is not None
    assert found["deviation.gain"].value < 0
    assert found["deviation.return_time"].value is None
    assert "1 of 1 not back" in found["deviation.return_time"].flags


def test_a_band_holds_the_whole_path() -> None:
    """Wider than the pointwise intervals, as it has to hold at all places at once."""
    paths = [[0.1 * (n % 3), -0.2 * (n % 4), 0.05 * (n % 5)] for n in range(20)]
    found = impulse_response(paths)
    assert found is not None
    for low, high, reach in zip(found.low, found.high, found.reach, strict=True):
        assert 2 * reach > high - low
