"""What of a view reached the prompt: records by hand, an agent with little room, and one with enough."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents.memory import clip
from sim.cuts import CUT, cut
from sim.metrics import prompts
from sim.metrics.prompts import reached
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from tests.metrics.society import Society, values

FORUM = Path(__file__).parents[2] / "scenarios" / "platforms" / "forum_llm.yaml"
LOST, CUTS, SERVER = "honesty.facts_not_in_prompt", "honesty.cut_prompts", "honesty.prompts_cut_by_server"


@pytest.fixture
def society(tmp_path: Path) -> Society:
    made = Society(tmp_path / "run.db")
    made.member("ann", model="small")
    made.member("bob", model="small")
    return made


def test_by_hand(society: Society) -> None:
    """Of five facts shown to a model three stand in its prompts, one as a JSON string, and one only in a later call."""
    words = ["good morning to all", 'the "roof"\nleaks', "bring a ladder", "at noon", "rain is coming"]
    facts = [society.fact(1, "message", "bob", text=text) for text in words]
    silent = society.fact(1, "trade", "bob", price=3)
    whole = {"messages": society.prompt("rules", 'Now: good morning to all; "the \\"roof\\"\\nleaks"')}
    later = {"messages": society.prompt("rules", "What matters? at noon")}
    society.act("ann", 2, shows=[facts[0], facts[1], facts[2], facts[3], silent], calls=[whole, later])
    society.act("bob", 2, shows=[facts[4]], calls=[{"messages": society.prompt("rules", "Now: nothing")}])
    society.act("ann", 3, shows=facts)
    found = values(reached(society.run()))
    lost = found[LOST]
    assert (lost.value, lost.n, lost.events) == (pytest.approx(2 / 5), 5, (2, 4))
    assert len(lost.decisions) == 2
    assert found[CUTS].value == 0


def test_what_a_world_tells_in_other_words_is_left_out_but_where_something_was_cut(society: Society) -> None:
    """Of a kind that stands in no prompt nobody knows whether it was told, unless the prompt says that it was cut."""
    deal = society.fact(1, "deal", text="value 1")
    said = society.fact(1, "message", "bob", text="hello there")
    society.act("ann", 2, shows=[deal], calls=[{"messages": society.prompt("The thing is worth 1 to you.")}])
    society.act("bob", 2, shows=[deal, said], calls=[{"messages": society.prompt(cut("hello there " * 20, 30))}])
    found = values(reached(society.run()))
    assert (found[LOST].value, found[LOST].n, found[LOST].excluded) == (1 / 2, 2, {"told in other words": 1})
    assert (found[CUTS].value, found[CUTS].n) == (1 / 2, 2)


def test_without_texts_prompts_or_calls_there_is_no_share(society: Society) -> None:
    trade = society.fact(1, "trade", "bob", price=3)
    society.act("ann", 2, shows=[trade], calls=[{}])
    society.act("bob", 2, shows=[trade])
    assert [(one.value, one.n) for one in reached(society.run())] == [(None, 0)] * 3


def test_a_server_that_counts_too_few_tokens_dropped_some(society: Society) -> None:
    """800 bytes are 100 tokens at the most that a token can hold, and half as many were counted; once none were."""
    for tick, tokens in enumerate((200, 100, 50, 0)):
        society.act("ann", tick, calls=[{"messages": society.prompt(f"{tick} {'so ' * 266}"), "prompt_tokens": tokens}])
    found = values(reached(society.run()))[SERVER]
    assert (found.value, found.n, found.excluded) == (pytest.approx(1 / 3), 3, {"not counted": 1})


def test_of_many_decisions_one_in_some_is_looked_at(society: Society, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MOST", 2)
    fact = society.fact(1, "message", "bob", text="hello there")
    for tick in range(2, 7):
        society.act("ann", tick, shows=[fact], calls=[{"messages": society.prompt(f"{tick} hello there")}])
    found = values(reached(society.run()))[LOST]
    assert (found.value, found.n, found.flags) == (0, 2, ("one decision in 3", "n_clusters<2"))


@pytest.mark.parametrize(("context", "least", "most"), [(4_096, 0, 0), (1_000, 0.01, 0.5), (500, 0.9, 1)])
def test_an_agent_with_little_room_is_found_out(tmp_path: Path, context: int, least: float, most: float) -> None:
    settings = ("models.small.engine=synthetic", f"models.small.context={context}")
    with Run(go(create(load(FORUM, settings), tmp_path)).path) as run:
        found = values(reached(run))
    assert found[LOST].n > 50
    assert least <= found[LOST].value <= most
    assert bool(found[CUTS].value) == bool(most)
    assert found[SERVER].value == 0


def test_what_an_agent_cuts_says_so() -> None:
    assert not re.search(CUT, clip("short", 5))
    assert all(re.search(CUT, clip(text * 100, 100)) for text in ("word ", "[… 3 …] ", "7\n"))
