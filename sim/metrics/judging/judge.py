"""What a judge's verdicts come to: rates freed of its known errors, how well it agrees with people and with itself.

Without texts that people have judged there is no rate. Where a rule can tell, its rate stands beside the judge's, and
texts that people have judged weigh as often as the run has texts of which the rule says the same: they may be drawn by
it, as `agora judge --draw` does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sim.intervals import wilson
from sim.metrics.judging.agreement import cohen_kappa, flip_rate, gwet_ac1, krippendorff_alpha, observed_agreement
from sim.metrics.judging.judged import Accuracy, Corrected, accuracy, ppi_by_strata, rogan_gladen
from sim.types import JSON, Event, Measurement, Record

ENOUGH, POSITIVES = 100, 30
"""Texts judged by people, and positives among them, that a rate should rest on."""
TAKEN = "verdicts taken for independent"


class Verdicts(NamedTuple):
    """What a judging came to."""

    params: Mapping[str, JSON]
    """Of its world, `sim.studies.judging:Docket`."""
    said: Mapping[int, Sequence[str]]
    """Verdicts on each item, by its place, in the order asked; empty where no legal one came."""
    known: Sequence[int]
    """Places of the items that people have judged, of which there is a first verdict."""

    @property
    def items(self) -> Sequence[Mapping[str, JSON]]:
        """The items."""
        found: Sequence[Mapping[str, JSON]] = self.params["items"]
        return found

    def yes(self, place: int) -> bool:
        """Whether the first verdict on an item is the positive one."""
        return bool(self.said[place][0] == self.params["positive"])

    def right(self, place: int) -> bool:
        """Whether people call an item positive."""
        return bool(truth(self.items[place]["labels"]) == self.params["positive"])


def truth(labels: Sequence[str]) -> str:
    """What counts as right: the option that most people chose, the earliest of equals; empty without people."""
    return max(labels, key=list(labels).count) if labels else ""


def verdicts(record: Record) -> Verdicts:
    """All of a judging so far."""
    said: dict[int, list[str]] = defaultdict(list)
    for data in sorted((row.fact.data for row in record.facts("verdict")), key=lambda each: each["question"]):
        said[data["item"]].append(data["verdict"])
    items = record.params["items"]
    known = [place for place, item in enumerate(items) if item["labels"] and said.get(place, [""])[0]]
    return Verdicts(record.params, said, known)


def rates(record: Record) -> Iterator[Measurement]:
    """Of each run judged the rate of the positive option, corrected two ways, beside the rule's; then of the judge."""
    found = verdicts(record)
    by_run: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(found.items):
        if item["run"] and place in found.said:
            by_run[item["run"]].append(place)
    for run, places in by_run.items():
        yield from _of_run(found, run, places)
    yield from reliability(found)


def reliability(found: Verdicts) -> Iterator[Measurement]:
    """Sensitivity, specificity, agreement with people, theirs with each other, how often a judge contradicts itself."""
    known, items = found.known, found.items
    measured = _accuracy(found)
    for name, value, n, ci in _shares(measured):
        yield _about_judge(found, name, value, n, ci, "texts that people have judged", "wilson" if ci else "")
    pairs = [(truth(items[place]["labels"]), found.said[place][0]) for place in known]
    yield _about_judge(found, "kappa", cohen_kappa(pairs), len(pairs), None, "texts that people have judged")
    yield _about_judge(found, "ac1", gwet_ac1(pairs), len(pairs), None, "texts that people have judged")
    several = [items[place]["labels"] for place in known if len(items[place]["labels"]) > 1]
    yield _about_judge(
        found, "alpha_of_people", krippendorff_alpha(several), len(several), None, "texts that several judged"
    )
    for name, place in (("flips_by_order", 1), ("flips_by_chance", 2)):
        asked = {one: (each[0], each[place]) for one, each in found.said.items() if len(each) > place}
        whole: dict[Hashable, Sequence[Hashable]] = {one: each for one, each in asked.items() if all(each)}
        value = flip_rate(whole)
        ci = None if value is None else wilson(value * len(whole), len(whole))
        yield _about_judge(found, name, value, len(whole), ci, "texts asked twice", "wilson" if ci else "")


def _of_run(found: Verdicts, run: str, places: Sequence[int]) -> Iterator[Measurement]:
    given = [place for place in places if found.said[place][0]]
    name, strata = found.params["name"], _strata(found, given)
    measured = _accuracy(found, strata)
    flags, told = tuple(_flags(found, run)), _told(found, measured)
    hits = [place for place in given if found.yes(place)]
    common: dict[str, Any] = {
        "unit": "share",
        "n": len(given),
        "n_clusters": len({found.items[place]["table"] for place in given}),
        "events": _events(found, hits),
        "denominator": "texts judged",
        "excluded": {"no verdict": len(places) - len(given)} if len(given) < len(places) else {},
        "judge": told,
        "of": {"run": run},
    }
    for metric, method, value in _corrected(found, measured, strata, given):
        more = value.flags + ((TAKEN,) if value.ci else ())
        yield Measurement(
            metric=f"judge.{name}{metric}", value=value.value, ci=value.ci, ci_method=method if value.ci else "",
            flags=(*flags, *more), **common,
        )  # fmt: skip
    yield from _by_rule(found, run, places)


def _strata(found: Verdicts, given: Sequence[int]) -> Mapping[int, str]:
    """By place what a rule says of a text, where it says it of all texts that people know and of each kind judged;
    else nothing."""
    rules = {place: str(found.items[place]["rule"]) for place in (*found.known, *given)}
    known = {rules[place] for place in found.known}
    return rules if given and "" not in known and {rules[place] for place in given} <= known else {}


def _corrected(
    found: Verdicts, measured: Accuracy | None, strata: Mapping[int, str], given: Sequence[int]
) -> Iterator[tuple[str, str, Corrected]]:
    """The rate by prediction-powered inference and by Rogan and Gladen's estimator; none without calibration."""
    if measured is None or not given:
        yield "", "", Corrected(None, None)
        yield ".rogan_gladen", "", Corrected(None, None)
        return
    raw = sum(map(found.yes, given)) / len(given)
    by_errors = rogan_gladen(raw, measured.se, measured.sp, len(given), measured.positives, measured.negatives)
    said, human, judge = (
        {
            kind: [float(told(one)) for one in places if strata.get(one, "") == kind]
            for kind in {*strata.values()} or {""}
        }
        for told, places in ((found.yes, given), (found.right, found.known), (found.yes, found.known))
    )
    weak = by_errors.value is None
    yield "", "normal, prediction-powered", by_errors if weak else _within(ppi_by_strata(said, human, judge))
    yield ".rogan_gladen", "Lang and Reiczigel", by_errors


def _within(found: Corrected) -> Corrected:
    """A rate between 0 and 1."""
    assert found.value is not None
    value = min(1.0, max(0.0, found.value))
    ci = found.ci and (max(0.0, found.ci[0]), min(1.0, found.ci[1]))
    return Corrected(value, ci, () if value == found.value else ("clipped",))


def _by_rule(found: Verdicts, run: str, places: Sequence[int]) -> Iterator[Measurement]:
    """The rate that a rule gives, and how often the judge says the same."""
    ruled = [place for place in places if found.items[place]["rule"]]
    if not ruled:
        return
    name = found.params["name"]
    hits = [place for place in ruled if found.items[place]["rule"] == "yes"]
    yield Measurement(
        metric=f"judge.{name}.by_rule",
        value=len(hits) / len(ruled),
        unit="share",
        n=len(ruled),
        n_clusters=len({found.items[place]["table"] for place in ruled}),
        ci=wilson(len(hits), len(ruled)),
        ci_method="wilson",
        events=_events(found, hits),
        denominator="texts judged, of which a rule can tell",
        flags=(TAKEN,),
        of={"run": run},
    )
    pairs = [(place in hits, found.yes(place)) for place in ruled if found.said[place][0]]
    value = observed_agreement(pairs)
    yield Measurement(
        metric=f"judge.{name}.agrees_with_rule", value=value, unit="share", n=len(pairs),
        denominator="texts judged, of which a rule can tell", of={"run": run},
    )  # fmt: skip


def _accuracy(found: Verdicts, strata: Mapping[int, str] = MappingProxyType({})) -> Accuracy | None:
    """Of the texts that people know, each as often as the texts judged that are of its stratum."""
    human, judge = ([told(place) for place in found.known] for told in (found.right, found.yes))
    if not strata:
        return accuracy(human, judge)
    known = Counter(strata[place] for place in found.known)
    judged = Counter(strata.values())
    judged.subtract(known)
    return accuracy(human, judge, [judged[strata[place]] / known[strata[place]] for place in found.known])


def _told(found: Verdicts, measured: Accuracy | None) -> dict[str, JSON]:
    """Who judged, and how well."""
    pairs = [(truth(found.items[place]["labels"]), found.said[place][0]) for place in found.known]
    told: dict[str, JSON] = {"id": found.params["judge"], "judged": found.params["judged"], "n_cal": len(found.known)}
    told["flips"] = flip_rate({place: said for place, said in found.said.items() if all(said)})
    if measured:
        told |= {"Se": measured.se, "Sp": measured.sp, "Se_ci": measured.se_ci, "Sp_ci": measured.sp_ci}
        told |= {"kappa": cohen_kappa(pairs), "ac1": gwet_ac1(pairs), "positives": measured.positives}
    return told


def _flags(found: Verdicts, run: str) -> Iterator[str]:
    """Why a rate is not to be trusted."""
    positives = sum(map(found.right, found.known))
    if not found.known:
        yield "uncalibrated"
        return
    if positives in (0, len(found.known)):
        yield "uncalibrated: people call all texts the same"
    if len(found.known) < ENOUGH:
        yield f"fewer than {ENOUGH} texts judged by people"
    if positives < POSITIVES:
        yield f"fewer than {POSITIVES} of them positive"
    rules = [{found.items[place]["rule"] for place in places} - {""} for places in (found.known, _judged(found, run))]
    if rules[0] and rules[1] - rules[0]:
        yield f"people know no text of which the rule says {min(rules[1] - rules[0])}"
    own = {tuple(sorted(item["shows"].items())) for item in found.items if item["run"] == run}
    if not any(tuple(sorted(found.items[place]["shows"].items())) in own for place in found.known):
        yield "calibrated on texts from elsewhere"
    if found.params["judge"] in found.params["judged"]:
        yield "the judge is the model judged"


def _judged(found: Verdicts, run: str) -> list[int]:
    return [place for place, item in enumerate(found.items) if item["run"] == run]


def _events(found: Verdicts, places: Sequence[int]) -> tuple[Event, ...]:
    """Where the messages stand in their run."""
    several = any(item["table"] for item in found.items)
    rows = dict.fromkeys((found.items[place]["table"], found.items[place]["fact"]) for place in places)
    return tuple(rows) if several else tuple(fact for _, fact in rows)


def _shares(measured: Accuracy | None) -> Iterator[tuple[str, float | None, int, tuple[float, float] | None]]:
    if measured is None:
        yield "sensitivity", None, 0, None
        yield "specificity", None, 0, None
        return
    yield "sensitivity", measured.se, measured.positives, measured.se_ci
    yield "specificity", measured.sp, measured.negatives, measured.sp_ci


def _about_judge(
    found: Verdicts, name: str, value: float | None, n: int, ci: tuple[float, float] | None, over: str, method: str = ""
) -> Measurement:
    return Measurement(
        metric=f"judge.{found.params['name']}.{name}", value=value, n=n, n_clusters=n, ci=ci, ci_method=method,
        unit="share" if ci else "", denominator=over,
    )  # fmt: skip
