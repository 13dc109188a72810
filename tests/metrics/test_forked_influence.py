"""Influence by forks in which an agent does something else: which decisions are compared, and what comes of them."""

from __future__ import annotations

from math import log2
from pathlib import Path

import orjson
import pytest

from sim.metrics.family import Relative
from sim.metrics.society.forked_influence import UNKNOWN, Sample, compared, measured
from sim.record.reader import Run
from tests.metrics.society import Society, values

STATE = ("p", 5, 0)


def test_who_talks_and_moves_nobody_is_lazy(tmp_path: Path) -> None:
    """b answers alike whatever a does. a has three of four sampled tokens, one of four, or none of them."""
    for n, (talk, said) in enumerate((((3, 1), "more than an equal share"), ((1, 3), ""), ((0, 4), "hardly a token"))):
        runs = []
        for act in ("", "up", "down"):
            made = Society(tmp_path / f"{n}{act}.db")
            for name, tokens in zip("ab", talk, strict=True):
                made.member(name)
                made.act(name, 1, answer="hm", calls=[{}] * tokens)
            if act:
                made.logs[0].event(5, 0, "change", "", {"do": "act", "agent": "a", "answer": act})
            made.act("a", 6, answer=act or "up")
            made.act("b", 8, seen=6, answer="so")
            change = {"interventions": [{"at": "5s", "do": "act", "agent": "a", "answer": act}]}
            more = {"parent": "p", "tick": 5, "change": orjson.dumps(change).decode()} if act else {}
            runs.append(Relative(id=act or "p", record=made.run(), scenario={}, **more))  # type: ignore[arg-type]
        one = values(compared(runs, 9))["influence.largest agent=a"]
        assert (one.value, bool(one.flags), said in "".join(one.flags)) == (0, bool(said), True)


def told(path: Path, act: str, answer: str, forced: bool, names: str = "abc", answers: bool = True) -> Run:
    """a acts at tick 6; b had begun before and is due at once, and answers at 8; c answers always alike."""
    a, b, c = names
    made = Society(path)
    for name in names:
        made.member(name)
    made.act(a, 2, answer="early")
    if forced:
        made.logs[0].event(5, 0, "change", "", {"do": "act", "agent": a, "answer": act})
    made.act(a, 6, answer=act)
    made.act(b, 7, seen=4, answer="begun before")
    if answers:
        made.act(b, 8, seen=6, answer=answer)
    made.act(c, 9, seen=8, answer="hm")
    made.act(a, 10, answer="later")
    return made.run()


def family(path: Path, names: str = "abc") -> list[Relative]:
    """b does what a did: untreated runs of three lucks, and forks to either act of each."""
    runs = [Relative(id="p", record=told(path / "p.db", "up", "up", False, names), scenario={})]
    for luck in range(3):
        for act in ("", "up", "down"):
            if not luck and not act:
                continue
            does = act or ("up", "down", "up")[luck]
            intervention = {"at": "5s", "do": "act", "agent": names[0], "answer": act}
            change = orjson.dumps({"interventions": [intervention]}).decode() if act else ""
            record = told(path / f"{luck}{act}.db", does, does, bool(act), names)
            more = {"parent": "p", "tick": 5, "replicate": luck, "change": change}
            runs.append(Relative(id=f"{luck}{act}", record=record, scenario={}, **more))  # type: ignore[arg-type]
    return runs


@pytest.mark.parametrize("names", ["abc", "zyx"])
def test_who_follows_and_who_does_not(tmp_path: Path, names: str) -> None:
    """b copies a, whose own acts are two of three up: H(⅓) bits. c answers alike whatever a does: none."""
    a, b, c = names
    runs = family(tmp_path, names)
    again = {"parent": "p", "tick": 5, "replicate": 1}
    runs.append(Relative(id="again", record=runs[3].record, scenario={}, **again))  # type: ignore[arg-type]
    found = values(compared(runs))
    pairs = {f"influence.causal agent={a} other={b}", f"influence.causal agent={a} other={c}"}
    assert found.keys() == {*pairs, f"influence.largest agent={a}"}
    follows, ignores = found[f"influence.causal agent={a} other={b}"], found[f"influence.causal agent={a} other={c}"]
    assert follows.value == pytest.approx(-2 / 3 * log2(2 / 3) - 1 / 3 * log2(1 / 3))
    assert (follows.n, follows.n_clusters, follows.flags) == (9, 1, ("n_clusters<2",))
    assert follows.null["p"] < 0.06
    assert (ignores.value, ignores.null["p"]) == (0, 1)
    largest = found[f"influence.largest agent={a}"]
    assert (largest.value, largest.n, largest.flags) == (follows.value, 2, ())
    assert values(compared(runs[::-1], 9))[f"influence.causal agent={a} other={b}"].value == follows.value


def test_what_is_no_fork_of_an_act_does_not_count(tmp_path: Path) -> None:
    parent = Relative(id="p", record=told(tmp_path / "p.db", "up", "up", False), scenario={})
    change = '{"interventions":[{"do":"say","text":"hi"}]}'
    record = told(tmp_path / "f.db", "up", "up", False)
    said = Relative(id="f", record=record, scenario={}, parent="p", tick=5, change=change)
    assert list(compared([parent, said])) == list(compared([parent])) == list(compared([])) == []


def test_forks_without_an_answer_are_counted(tmp_path: Path) -> None:
    runs = family(tmp_path)
    change = orjson.dumps({"interventions": [{"at": "5s", "do": "act", "agent": "a", "answer": "up"}]}).decode()
    mute = told(tmp_path / "mute.db", "up", "", True, answers=False)
    runs.append(Relative(id="m", record=mute, scenario={}, parent="p", tick=5, replicate=9, change=change))
    found = values(compared(runs, 9))["influence.causal agent=a other=b"]
    assert (found.n, found.excluded) == (9, {"no answer": 1})


def test_an_unknown_policy_is_said() -> None:
    """All untreated acts alike: of two acts that are followed, one bit."""
    found = measured([Sample(STATE, n, n > 1, act, act) for n in range(4) for act in ("up", "down")[: 1 + (n > 1)]], 9)
    assert found.value == pytest.approx(1)
    assert UNKNOWN in found.flags
