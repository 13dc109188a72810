"""Judges: rubrics, blinding, balance, rates freed of known errors; a judging is a run, verified and resumed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from sim.check import check_world
from sim.commands.failures import BadInput
from sim.library import measure
from sim.metrics.judging.judge import truth
from sim.metrics.privacy.canaries import canary, find
from sim.record.project import Project
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.located import ScenarioError
from sim.streams import Streams
from sim.studies.docket import drawn, judging
from sim.studies.judging import Docket, Item, Judging, blinded, questions
from sim.studies.rubric import read_calibration, read_rubric
from sim.types import Request, Secret
from sim.verify import verify
from tests.benchmarks.contagion import platform
from tests.commands import Agora
from tests.laws.test_law4_kills import log_of
from tests.metrics.calibration_set import FILE, lines
from tests.metrics.society import values

RUBRIC = FILE.with_suffix(".yaml")
NAME = "judge.states_secret"


# --- judges of known errors --------------------------------------------------------------------------------


def text_of(request: Request) -> str:
    return request.messages[-1].text


def exact(request: Request) -> str:
    """Yes where the secret's value stands in the message."""
    secret, message = (part.split(">>>")[0] for part in text_of(request).split("<<<\n")[1:])
    return "yes" if secret.strip().rsplit(" is ", 1)[1] in message else "no"


def first_option(request: Request) -> str:
    """The option that comes first."""
    return request.format.options[0]  # type: ignore[union-attr]


def ruled(shows: Mapping[str, str]) -> bool:
    """What the rule says."""
    about, value = shows["secret"].removeprefix("the ").split(" is ", 1)
    attribute, subject = about.split(" of ")
    wanted = canary(Secret(subject=subject, attribute=attribute, value=value, holder=subject))
    return any(match.sure for _, match in find(shows["message"], [wanted]))


def erring(request: Request) -> str:
    """As the rule, but wrong of one text in eight, whatever the order."""
    secret, message = (part.split("\n>>>")[0] for part in text_of(request).split("<<<\n")[1:])
    wrong = Random(f"{secret} {message}").random() < 0.125
    return "yes" if ruled({"secret": secret, "message": message}) != wrong else "no"


def longer(request: Request) -> str:
    """The longer of two texts."""
    one, other = (part.split("\n>>>")[0] for part in text_of(request).split("<<<\n")[1:])
    return "first" if len(one) > len(other) else "second"


def model(rule: str) -> str:
    return f"{{engine: synthetic, rule: 'tests.sim.test_judging:{rule}'}}"


@pytest.fixture(scope="module")
def parent(tmp_path_factory: Any) -> Path:
    path = create(platform(5, 1.0, False, people=8), tmp_path_factory.mktemp("runs"), "leaks")
    go(path)
    return path


def judged(parent: Path, folder: Path, rule: str, calibrated: bool = True, **more: Any) -> dict[str, Any]:
    """All that a judging gives, by name."""
    rubric = read_rubric(RUBRIC)
    known = read_calibration(FILE, rubric) if calibrated else []
    path = judging([parent], folder, rubric, model(rule), known, **more)
    assert go(path).status == "finished"
    return {name.removesuffix(f" run={parent.stem}"): one for name, one in values(measure(path)).items()}


# --- files -------------------------------------------------------------------------------------------------


def test_the_calibration_set_is_what_its_script_makes() -> None:
    assert FILE.read_bytes() == lines()
    known = read_calibration(FILE, read_rubric(RUBRIC))
    counts = Counter(truth(one.labels) for one in known)
    assert counts["yes"] >= 30
    assert sum(counts.values()) >= 100


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('positive: "yes"', "positive: maybe", "positive: "),
        ("question:", "qestion:", "qestion: unknown key; did you mean question?"),
        ("sees: [secret, message]", "sees: []", "sees: [] is wrong; expected at least 1"),
        ("sees: [secret, message]", "sees: [secret]\ncompare: [a, b]", "compare: name two of the fields in sees"),
    ],
)
def test_a_wrong_rubric_is_one_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rubric.yaml"
    file.write_text(RUBRIC.read_text().replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read_rubric(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"shows": {"message": "a"}, "labels": ["yes"]}', "has no secret; states_secret shows secret, message"),
        ('{"shows": {"secret": "a", "message": "b"}, "labels": ["yess"]}', "'yess' is no option of states_secret"),
        ('{"shows": {"secret": "a", "message": "b"}, "labels": []}', "expected at least 1"),
        ("{", "not JSON"),
    ],
)
def test_a_wrong_calibration_set_is_one_line(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(ScenarioError) as caught:
        read_calibration(file, read_rubric(RUBRIC))
    assert str(caught.value).startswith(f"{file}:2: ")
    assert message in str(caught.value)


# --- blindness and balance -----------------------------------------------------------------------------------


def test_names_are_letters_and_other_words_are_hidden() -> None:
    shows = {"secret": "the salary of ann-1 is 5", "message": "Bob, ANN-1 and ann-12 ask smollm. bobby"}
    assert blinded(shows, ["bob", "ann-1", "ann-12"], ["smollm"]) == {
        "secret": "the salary of Person A is 5",
        "message": "Person B, Person A and Person C ask (hidden). bobby",
    }
    assert blinded(shows, [], []) == shows


def test_names_never_reach_the_judge(parent: Path, tmp_path: Path) -> None:
    path = judging([parent], tmp_path, read_rubric(RUBRIC), model("exact"), most=30)
    go(path)
    with Run(path) as run, Run(parent) as there:
        asked = " ".join(message.text for call in run.calls() for message in call.messages)
        hidden = {word for member in there.cast() for word in (member.seat.agent, member.seat.role)}
    assert "Person A" in asked
    assert not any(word in asked for word in hidden)


def test_half_of_the_items_are_asked_with_the_order_turned() -> None:
    docket = Docket(items=tuple(Item(shows={"message": str(n)}, labels=("yes",) * (n < 4)) for n in range(20)))
    asked = questions(docket, Streams(3))
    assert sum(one.turned for one in asked if one.item >= 4) in (7, 8, 9)
    first = {one.item: one.turned for one in reversed(asked)}
    assert sum(first.values()) == 10
    for item in range(4):
        assert [one.turned != first[item] for one in asked if one.item == item] == [False, True, False]
    assert questions(docket, Streams(3)) == asked
    assert questions(docket, Streams(4)) != asked


def test_of_two_texts_the_verdict_is_on_those_that_were_meant(parent: Path, tmp_path: Path) -> None:
    file = tmp_path / "rubric.yaml"
    file.write_text(
        "name: longer\nquestion: Which is longer?\noptions: [first, second]\npositive: first\n"
        "sees: [short, long]\ncompare: [short, long]\nitems: tests.sim.test_judging:pairs\n"
    )
    rubric = read_rubric(file)
    path = judging([parent], tmp_path, rubric, model("longer"))
    go(path)
    with Run(path) as run:
        facts = [row.fact.data for row in run.facts("verdict")]
    assert {one["verdict"] for one in facts} == {"second"}
    assert {one["turned"] for one in facts} == {True, False}


def pairs(record: Any) -> Any:
    """A long and a short text, ten times."""
    from sim.metrics.judging.judged_items import Shown

    return [Shown(0, number, {"short": "a" * number, "long": "b" * 40}) for number in range(10)]


def test_where_nothing_was_said_there_is_nothing_to_judge(tmp_path: Path) -> None:
    silent = create(platform(5, 1.0, False, people=8), tmp_path, "silent")
    with pytest.raises(BadInput, match=r"nothing to judge: .*rubric states_secret finds nothing in silent"):
        judging([silent], tmp_path, read_rubric(RUBRIC), "{engine: synthetic}")


# --- rates -------------------------------------------------------------------------------------------------


def test_without_people_there_is_no_rate(parent: Path, tmp_path: Path) -> None:
    found = judged(parent, tmp_path, "exact", calibrated=False, most=40)
    for name in (NAME, f"{NAME}.rogan_gladen"):
        assert (found[name].value, found[name].ci) == (None, None)
        assert "uncalibrated" in found[name].flags
    assert found[f"{NAME}.by_rule"].value is not None
    assert found[f"{NAME}.agrees_with_rule"].value == 1
    assert found[f"{NAME}.kappa"].value is None


def test_a_judge_s_rate_stands_beside_the_rule_s(parent: Path, tmp_path: Path) -> None:
    """`exact` misses what is written otherwise: its sensitivity is below 1 and the corrected rate above the rule's."""
    found = judged(parent, tmp_path, "exact", most=40)
    rate, rule = found[NAME], found[f"{NAME}.by_rule"]
    assert rate.ci[0] <= rate.value <= rate.ci[1]
    assert rate.value >= rule.value
    assert set(rate.judge) >= {"id", "Se", "Sp", "kappa", "n_cal", "ac1"}
    assert (rate.judge["n_cal"], rate.judge["id"]) == (200, "synthetic")
    assert rate.flags == ("calibrated on texts from elsewhere", "verdicts taken for independent")
    assert found[f"{NAME}.flips_by_order"].value == found[f"{NAME}.flips_by_chance"].value == 0
    assert 0.3 < found[f"{NAME}.sensitivity"].value < 0.9
    with Run(parent) as run:
        leaks = {row.fact.id for row in run.facts() if "between us" in row.fact.data.get("text", "").lower()}
    assert set(rule.events) <= leaks


def test_known_errors_are_taken_off(parent: Path, tmp_path: Path) -> None:
    found = judged(parent, tmp_path, "erring", most=60)
    rule = found[f"{NAME}.by_rule"].value
    for name in (NAME, f"{NAME}.rogan_gladen"):
        low, high = found[name].ci
        assert low <= found[name].value <= high
        assert found[name].value == pytest.approx(rule, abs=0.1)
    assert found[f"{NAME}.flips_by_order"].value == 0


def test_a_judge_that_takes_the_first_option_says_nothing(parent: Path, tmp_path: Path) -> None:
    found = judged(parent, tmp_path, "first_option", most=20)
    assert found[f"{NAME}.flips_by_order"].value == 1
    assert found[f"{NAME}.flips_by_chance"].value == 0
    assert found[NAME].value is None
    assert "judge too weak" in found[NAME].flags


def test_texts_are_drawn_for_people_by_the_rule_and_weigh_as_often_as_there_are_such(
    parent: Path, tmp_path: Path
) -> None:
    """Hits are many of those drawn and few of all; people are right of each, and the judge of seven in eight."""
    rubric = read_rubric(RUBRIC)
    texts = drawn([parent], rubric, 60)
    assert drawn([parent], rubric, 60) == texts != drawn([parent], rubric, 60, seed=1)
    assert len({tuple(each.values()) for each in texts}) == 60
    labels = ["yes" if ruled(each) else "no" for each in texts]
    assert labels.count("yes") == 9, "all that there are, of 345 texts"
    assert sum(map(ruled, drawn([parent], rubric, 12))) == 6
    assert labels not in (sorted(labels), sorted(labels)[::-1]), "the order tells nothing"
    assert not re.search(r"\b[a-z]+-\d", " ".join(each["message"] for each in texts)), "blinded"
    file = tmp_path / "known.jsonl"
    known = [{"shows": each, "labels": [label]} for each, label in zip(texts, labels, strict=True)]
    file.write_bytes(b"\n".join(map(orjson.dumps, known)))
    path = judging([parent], tmp_path, rubric, model("erring"), read_calibration(file, rubric), most=120)
    assert go(path).status == "finished"
    found = {name.removesuffix(f" run={parent.stem}"): one for name, one in values(measure(path)).items()}
    truth_of = found[f"{NAME}.by_rule"].value
    for name in (NAME, f"{NAME}.rogan_gladen"):
        assert found[name].value == pytest.approx(truth_of, abs=0.05)
        assert found[name].ci[0] <= truth_of <= found[name].ci[1]
    assert found[NAME].judge["judged"] == []
    assert found[NAME].judge["flips"] == 0
    assert "calibrated on texts from elsewhere" not in found[NAME].flags
    file.write_bytes(b"\n".join(orjson.dumps(one) for one in known if one["labels"] == ["no"]))
    path = judging([parent], tmp_path, rubric, model("erring"), read_calibration(file, rubric), most=120)
    go(path)
    assert "people know no text of which the rule says yes" in values(measure(path))[f"{NAME} run={parent.stem}"].flags
    with pytest.raises(BadInput, match="--draw 99999 is more than there are"):
        drawn([parent], rubric, 99999)


# --- runs --------------------------------------------------------------------------------------------------


def test_a_judging_keeps_the_rules_of_a_world() -> None:
    check_world(
        Judging, ["a", "b"], Docket(items=tuple(Item(shows={"message": str(n)}, labels=("yes",)) for n in range(5)))
    )


def test_a_judging_is_verified_and_gone_on_with(parent: Path, tmp_path: Path) -> None:
    rubric = read_rubric(RUBRIC)
    whole, parts = (judging([parent], tmp_path, rubric, model("erring"), most=30) for _ in range(2))
    go(whole)
    assert go(parts, budget=500).status == "paused"
    assert go(parts).status == "finished"
    assert verify(whole).whole
    assert [row for _, row in log_of(parts)] == [row for _, row in log_of(whole)]


def test_the_command(parent: Path, agora: Agora) -> None:
    words = (
        "--rubric",
        str(RUBRIC),
        "--calibration",
        str(FILE),
        "--most",
        "20",
        "--runs",
        str(parent.parent),
        "--quiet",
    )
    texts = agora("judge", str(parent), "--rubric", str(RUBRIC), "--draw", "4").out.splitlines()
    assert [orjson.loads(text)["labels"] for text in texts] == [[]] * 4
    assert "--model is missing" in agora("judge", str(parent), "--rubric", str(RUBRIC)).line
    done = agora("judge", str(parent), *words, "--runs", str(parent.parent), "--model", model("exact"))
    assert done.code == 0, done.err
    assert f"{NAME}.by_rule" in done.out
    with Project(parent.with_name("project.db")) as project:
        kept = {one.metric for _, one in project.measurements(run=parent.stem)}
    assert {NAME, f"{NAME}.rogan_gladen", f"{NAME}.by_rule"} <= kept
    assert "is none of the run's models" in agora("judge", str(parent), *words, "--model", "small").line
    shown = orjson.loads(lines().split(b"\n")[0])["shows"]
    assert set(shown) == {"secret", "message"}
