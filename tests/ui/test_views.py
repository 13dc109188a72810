"""Every view on real recorded runs: what a watcher has to find there is there, and nothing is broken."""

from __future__ import annotations

import io
import json
import math
import shutil
import sqlite3
from contextlib import closing
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars
import pytest
from streamlit.testing.v1 import AppTest

from sim.fork import fork
from sim.library import measure
from sim.metrics.following import moments
from sim.record.browse import END, Browse
from sim.record.committed import lock_of
from sim.record.project import Project
from sim.record.reader import Run
from sim.record.store import Store
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.scenarios.yaml_text import read_yaml
from sim.sweep import sweep
from sim.types import Measurement
from tests.sim.rows import call, decision, event, manifest, member
from tests.ui.conftest import CLASS, SCENARIOS, SCRIPTED, SYNTHETIC, WORLDS, Seen, text_of
from tests.ui.corpus import NAMES
from ui.charts import Series, heat, in_steps, inked, lines
from ui.data import axis
from ui.parts import as_csv, as_parquet
from ui.views.decision import shares

RUNS = [*WORLDS, *SCRIPTED]
VIEWS = ("runs", "play", "live", "agent", "measures", "interview", "whatif", "compare", "training")
CANNOT = "are not those that the view"


def clean(test: AppTest) -> AppTest:
    assert not test.exception, test.exception
    assert 'class="failure"' not in text_of(test)
    return test


# --- runs ---------------------------------------------------------------------------------------------


def test_the_list_has_every_run_and_how_it_stands(seen: Seen) -> None:
    rows = clean(seen("runs")).dataframe[0].value
    by_run = {row["run"]: row for row in rows.to_dict("records")}
    assert {*RUNS, "waiting", "hostile"} <= by_run.keys()
    assert by_run["market"]["state"] == "finished"
    assert by_run["market"]["progress"] == 1
    assert by_run["waiting"]["state"] == "not started"
    assert "efficiency" in by_run["market"]["measures"]
    assert by_run["broken <img src=x onerror=hit()>"]["state"] == "not readable"


def test_a_run_of_another_record_version_is_told_as_that(
    seen: Seen, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    shutil.copy(folder / "waiting.db", tmp_path / "old.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as raw, raw:
        raw.execute("UPDATE run SET schema_version = 3")
    assert clean(seen("runs")).dataframe[0].value["state"].tolist() == ["record version 3"]
    assert "has record version 3, this agora-sim reads" in text_of(seen("live", run="old"))


def test_the_list_is_searched_by_words_of_ids_and_tags(seen: Seen) -> None:
    assert [row["run"] for row in seen("runs", search="BARG r1").dataframe[0].value.to_dict("records")] == [
        "bargaining-at10-r1-2",
        "bargaining-at10-r1",
    ]
    assert "No run has these words" in text_of(seen("runs", search="nowhere"))


def test_an_empty_folder_says_what_to_do(seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path / "none"))
    for view in ("runs", "live", "agent", "measures", "whatif"):
        assert "agora run SCENARIO" in text_of(clean(seen(view)))
    assert "it takes two runs" in text_of(clean(seen("compare")))
    assert not (tmp_path / "none").exists(), "looking makes nothing"


def test_a_plan_says_what_a_run_is_expected_to_cost(seen: Seen) -> None:
    """As the runs of the folder that are equal to it have cost."""
    test = seen("runs")
    scenario = str(SCENARIOS / WORLDS["bargaining"])
    test.selectbox(key="start-scenario").set_value(scenario).run()
    next(one for one in test.text_area if one.label.startswith("Other changes")).set_value(SYNTHETIC)
    next(one for one in test.button if one.label == "Show the plan").click()
    assert "of this scenario took" in text_of(clean(test.run()))


def test_a_seat_can_be_taken_for_every_agent_of_a_scenario(seen: Seen) -> None:
    test = clean(seen("play"))
    test.selectbox(key="play-scenario").set_value(str(SCENARIOS / WORLDS["bargaining"])).run()
    seats = next(one for one in clean(test).selectbox if one.label == "Your seat")
    assert seats.options == [f"{side}-{number}" for side in ("host", "guest") for number in range(1, 5)]
    assert [one.label for one in test.button] == ["Take the seat"]


# --- live ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_every_world_is_drawn_by_a_view_of_its_own_at_any_moment(
    seen: Seen, folder: Path, run: str, share: float
) -> None:
    with Browse(folder / f"{run}.db") as browse:
        tick = round(share * browse.end()[1])
    text = text_of(clean(seen("live", run=run, tick=tick)))
    assert CANNOT not in text
    assert f"<b>{run}</b>" in text


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("market", ["Book of apple", "bid", "price"]),
        ("bargaining", ["I keep", "accepts", "deal:"]),
        ("poker", ["Hand 4", "as a watcher", "won", "lost"]),
        ("hunt", ["round 5", "hunter-"]),
        ("forum", ["#street", "votes", "Latest direct messages"]),
        ("disclosure", ["s for:", "over:"]),
        ("prices", ["Period 20", "notes of period 20"]),
        ("checks", ["task for alice-1", "hands in:", "alice-2: ", "over: episodes"]),
    ],
)
def test_a_watcher_reads_what_happened(seen: Seen, run: str, words: list[str]) -> None:
    text = text_of(seen("live", run=run))
    assert [word for word in words if word not in text] == []


def test_a_moment_shows_nothing_of_the_future(seen: Seen, folder: Path) -> None:
    with Browse(folder / "forum.db") as run:
        first = run.last_facts(0, END, 1000)[::-1]
        posts = [one for one in first if one.fact.kind == "post"]
    text = text_of(seen("live", run="forum", tick=posts[3].tick))
    assert posts[3].fact.data["text"] in text
    assert posts[4].fact.data["text"] not in text


def test_as_one_player_the_other_one_s_card_lies_face_down(seen: Seen) -> None:
    everything = text_of(seen("live", run="poker", tick=1))
    mine = text_of(clean(seen("live", run="poker", tick=1, viewer="player-1")))
    assert "face down" not in everything
    assert mine.count("face down") == 1


def test_the_clock_steps_from_fact_to_fact(seen: Seen) -> None:
    test = seen("live", run="bargaining", tick=14)
    test.button(key="play")
    forward = next(one for one in test.button if one.label == "Next")
    clean(forward.click().run())
    assert test.session_state["tick"] == 16
    back = next(one for one in test.button if one.label == "Back")
    clean(back.click().run())
    assert test.session_state["tick"] == 14
    clean(test.text_input(key="jump").set_value("1m").run())
    assert test.session_state["tick"] == 60


def test_a_played_run_goes_on_by_itself_and_stops_at_its_end(seen: Seen) -> None:
    test = seen("live", run="bargaining", tick=100)
    test.button(key="play").click().run()
    for _ in range(6):
        test.run()
    assert test.session_state["tick"] == 113
    assert not test.session_state["playing"]


@pytest.mark.parametrize(("below", "words"), [("Who saw whom", "exposed"), ("Activity", ""), ("One fact", "Shown to")])
def test_what_stands_below(seen: Seen, below: str, words: str) -> None:
    test = seen("live", run="forum")
    test.segmented_control(key="below").set_value(below).run()
    assert words in text_of(clean(test))


def test_the_timeline_is_filtered_and_turned_page_by_page(seen: Seen) -> None:
    test = seen("live", run="forum")
    test.multiselect(key="kinds").set_value(["join"]).run()
    test.multiselect(key="actors").set_value(["patient-1"]).run()
    text = text_of(clean(test)).split("Latest direct messages")[1]
    assert "patient-1" in text
    assert "neighbour-1</b>" not in text
    test = seen("live", run="forum")
    first = text_of(test)
    test.button(key="page-timeline-older").click().run()
    assert "fact 109<" in first
    assert "fact 80<" in text_of(clean(test))


# --- agent --------------------------------------------------------------------------------------------


def test_an_agent_is_shown_whole(seen: Seen) -> None:
    text = text_of(clean(seen("agent", run="bargaining", agent="host-1")))
    for words in (
        "Grace",
        "nurse",
        "Secret: patience",
        "may learn it: nobody",
        "You and a partner divide 100 points",
        "Raw output",
    ):
        assert words in text, words


def test_a_decision_is_named_in_the_address(seen: Seen, folder: Path) -> None:
    with Browse(folder / "forum.db") as run:
        wanted = run.last_decisions(0, END, 5, "patient-1")[-1]
    test = clean(seen("agent", run="forum", agent="patient-1", decision=wanted.seq))
    assert f"seen {run_time(wanted.action.seen)}" in text_of(test)
    for side in ("Why: what it was shown", "Why: back to the origin"):
        test.segmented_control(key="side").set_value(side).run()
        clean(test)
    assert "lead to this one" in text_of(test)


def run_time(tick: int) -> str:
    from sim.quantities import readable

    return readable(tick, 1000.0)


def test_probabilities_of_legal_actions_by_hand() -> None:
    """What was sampled has the product of its tokens' probabilities; what is left belongs to the others."""
    two = '{"choice":["bet","pass"]}'
    assert told(two, "bet", math.log(0.25)) == {"bet": (0.25, True), "pass": (0.75, False)}
    three = '{"choice":["fold","call","raise"]}'
    half = math.log(0.5)
    assert told(three, "call", half) == {"call": (0.5, True), "the other 2 together": (0.5, False)}
    known = (math.log(0.3), half, math.log(0.2))
    every = {"fold": (0.3, False), "call": (0.5, True), "raise": (0.2, False)}
    assert told(three, "call", half, known) == every
    assert told(three, "call", half, (known[0], half, None)) == every
    assert told(three, "call", half, (None, half, None)) == told(three, "call", half)
    assert told(three, "call", 0.0, (-math.inf, 0.0, -math.inf))["raise"] == (0.0, False)
    assert list(told(three, "raise", half, (None, None, half))) == ["raise", "the other 2 together"]
    assert told('{"choice":["go"]}', "go", 0.0) == {"go": (1.0, True)}
    for form, said in ((two, "neither"), ('{"text":80}', "bet"), ("no JSON", "bet")):
        assert shares(form, said, 0.0) == []


def told(*told_of: Any) -> dict[str, Any]:
    """How likely each action was, rounded, and whether it was chosen."""
    return {one.action: (round(one.p, 9), one.chosen) for one in shares(*told_of)}


def test_every_option_is_shown_with_its_probability(
    seen: Seen, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls of one decision: in the first all is known, in the second only what two have together."""
    half, four = math.log(0.5), '{"choice":["buy","sell","hold","wait"]}'
    with Store.create(tmp_path / "told.db", manifest(id="told", name="told", status="finished")) as store:
        store.put("cast", member(0, "ann"))
        store.put("events", event(0))
        every = [*map(math.log, (0.3, 0.5, 0.15, 0.05))]
        store.put("calls", call("ann", 0, form=four, text="sell", logprobs=(half, 0.0), options=every))
        some = (math.log(0.2), half, None, None)
        store.put("calls", call("ann", 1, form=four, text="sell", logprobs=(half, 0.0), options=some))
        store.put("decisions", decision(1, "ann", tick=0, calls=2))
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    test = clean(seen("agent", run="told", agent="ann", decision=1))
    first, second = [one.value for one in test.dataframe if "action" in one.value.columns]
    assert first["action"].tolist() == ["buy", "sell", "hold", "wait"]
    assert first["p"].tolist() == pytest.approx([0.3, 0.5, 0.15, 0.05])
    assert first["p"].sum() == pytest.approx(1)
    assert first["chosen"].tolist() == [False, True, False, False]
    assert second["action"].tolist() == ["buy", "sell", "the other 2 together"]
    assert second["p"].tolist() == pytest.approx([0.2, 0.5, 0.3])


def test_a_decided_choice_shows_its_legal_actions(seen: Seen, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the stored games of a training, whose engine gives log-probabilities."""
    monkeypatch.setenv("AGORA_RUNS", str(folder.parent / "lessons" / "rollouts"))
    test = clean(seen("agent", run="update-000001-0"))
    assert "Legal actions" in text_of(test)
    frames = [one.value.to_dict("records") for one in test.dataframe if "action" in one.value.columns]
    assert sum(row["p"] for row in frames[0]) == pytest.approx(1)
    assert {row["action"] for row in frames[0]} == {"bet", "pass"}


def test_what_an_agent_has_become_is_told(
    seen: Seen, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = {"at": 10, "do": "become", "agent": "host-1", "persona": {"style": "curt"}}
    go(fork(folder / "bargaining.db", tmp_path, 10, edits=[edit]))
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    assert "Another from 10s on: persona style curt" in text_of(clean(seen("agent", agent="host-1")))
    assert "Another from" not in text_of(clean(seen("agent", agent="guest-1")))


def test_what_an_agent_felt_is_drawn_over_time(seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moods = "{emotion: {start: joy, moves: {joy: {fear: 1}, fear: {joy: 1}}}}"
    sets = [f"seats.hunter-1={{agent: 'agents.llm:LLMAgent', model: small, with: {moods}}}", "world.continuation=0"]
    path = create(load(SCENARIOS / WORLDS["hunt"], [SYNTHETIC, *sets]), tmp_path, "moods")
    go(path)
    with Run(path) as run:
        felt = [one.action.feels for one in run.decisions() if one.action.agent == "hunter-1"]
    assert {*felt} == {"joy", "fear"}
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    test = clean(seen("agent", agent="hunter-1"))
    (drawn,) = [json.loads(one.proto.spec)["data"][0] for one in test.get("plotly_chart")]
    assert drawn["y"] == felt
    assert f"felt {felt[-1]}<" in text_of(test)
    assert [row["felt"] for row in test.dataframe[0].value.to_dict("records")] == felt[::-1]
    other = clean(seen("agent", agent="hunter-2"))
    assert not other.get("plotly_chart")
    assert "felt" not in other.dataframe[0].value.columns


def test_a_rule_based_agent_says_so(seen: Seen) -> None:
    assert "follows a rule" in text_of(clean(seen("agent", run="rubinstein", agent="even")))


# --- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_measures_with_the_events_behind_them(seen: Seen, run: str) -> None:
    test = clean(seen("measures", run=run))
    assert len(test.dataframe) == 1
    assert 'class="card"' in text_of(test) or run == "poker"


def test_a_run_that_is_not_fit_for_claims_says_so_first(
    seen: Seen, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(folder / "market.db", tmp_path / "market.db")
    with Project(tmp_path / "project.db") as project:
        why = "not fit for claims: default_rate 40.0% > 10%"
        project.measure("market", [Measurement(metric="honesty.fit_for_claims", value=0, flags=(why,))])
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    assert escape(why) in text_of(clean(seen("measures", run="market")))
    (row,) = clean(seen("runs")).dataframe[0].value.to_dict("records")
    assert row["measures"] == "not fit for claims"


def test_a_run_without_numbers_says_how_to_get_them(seen: Seen) -> None:
    assert "agora measure waiting" in text_of(clean(seen("measures", run="waiting")))


def test_a_run_that_goes_on_shows_its_numbers_so_far_and_a_button_that_measures_it(
    seen: Seen, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "market.db"
    shutil.copy(folder / "market.db", path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE run SET status = 'running'")
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    with lock_of(path):
        test = clean(seen("measures"))
        assert [one.label for one in test.button if not one.disabled] == ["Measure while it runs"]
        assert "Nothing is measured" in text_of(test)
        moment = next(moments(path))
        test = clean(test.run())
        assert f"so far, at {run_time(moment.mark.tick)}" in text_of(test)
        assert "efficiency" in text_of(test)
        (row,) = clean(seen("runs")).dataframe[0].value.to_dict("records")
        assert "efficiency" in row["measures"]
        assert row["measures"].endswith(f"so far, at {run_time(moment.mark.tick)}")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE run SET status = 'finished'")
    assert "Nothing is measured" in text_of(clean(seen("measures"))), "numbers so far are not taken for final ones"
    measure(path)
    test = clean(seen("measures"))
    assert "so far" not in text_of(test)
    assert not test.button


def test_two_runs_beside_each_other(seen: Seen) -> None:
    text = text_of(clean(seen("compare", runs="bargaining,bargaining-at10-r1")))
    assert "are equal up to" in text
    assert "Paired differences" in text
    text = text_of(clean(seen("compare", runs="bargaining,bargaining-at10")))
    assert "are equal event by event" in text
    assert "First divergence" in text_of(clean(seen("compare"))), "the newest two that can be read"


def test_settings_of_a_sweep_beside_each_other(seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ["world.max_rounds=[1, 20]"]
    cells = sweep(SCENARIOS / SCRIPTED["rubinstein"], tmp_path, over=settings, seeds=3, name="talks").cells
    for path in [path for cell in cells for path in cell.runs][:-1]:
        go(path)
        measure(path)
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path))
    assert "it takes two runs" not in text_of(clean(seen("compare")))
    test = clean(seen("compare", what="settings of a sweep"))
    text = text_of(test)
    assert "What setting 2 changes: world.max_rounds=20" in text
    differences, means = (one.value.to_dict("records") for one in test.dataframe)
    assert {row["pairs"] for row in differences} == {2}, "the last run is not finished"
    (early, late) = [row for row in means if (row["metric"], row["of"]) == ("bargaining.efficiency", "all")]
    assert (early["setting"], early["runs"], late["setting"], late["runs"]) == (1, 3, 2, 2)
    (row,) = [row for row in differences if (row["metric"], row["of"]) == ("bargaining.efficiency", "all")]
    assert row["difference"] == pytest.approx(row["after"] - row["before"])


def test_an_effect_is_a_mean_of_paired_differences(seen: Seen) -> None:
    test = clean(seen("whatif", run="bargaining"))
    assert "max_rounds" in text_of(test)
    effects = test.dataframe[0].value.to_dict("records")
    rounds = next(row for row in effects if row["metric"] == "bargaining.agreement_rate")
    assert rounds["pairs"] == 2
    assert rounds["after"] - rounds["before"] == pytest.approx(rounds["difference"])


@pytest.mark.parametrize("change", ["a parameter of the world", "a setting of a model"])
def test_other_changes_have_fields_of_their_own(seen: Seen, change: str) -> None:
    test = seen("whatif", run="bargaining")
    clean(test.segmented_control(key="change").set_value(change).run())
    assert [one.label for one in test.text_input] == ["At", "New value"]


def test_what_an_agent_becomes_is_written_as_an_edit(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that the button starts has what was written in it."""
    test = seen("whatif", run="bargaining")
    clean(test.segmented_control(key="change").set_value("an agent").run())
    test.selectbox(key="pick-agent").set_value("guest-2").run()
    test.text_area[0].set_value("give way\nbe liked")
    test.text_area[1].set_value("style: [curt")
    assert 'class="failure"' in text_of(test.run()), "no YAML"
    test.text_area[1].set_value("style: curt")
    clean(test.run())
    asked: list[object] = []
    monkeypatch.setattr("ui.controls.fork", lambda *words: asked.extend(words))
    next(one for one in test.button if one.label == "Fork and run").click().run()
    edit = read_yaml(asked[2][1], "edit").data  # type: ignore[index]
    assert edit == {
        "do": "become",
        "agent": "guest-2",
        "persona": {"style": "curt", "goals": ["give way", "be liked"]},
    }


def test_a_training_with_its_curves_league_and_games(seen: Seen) -> None:
    test = clean(seen("training"))
    assert "3 updates" in text_of(test)
    assert "Exploitability" in text_of(test)
    clean(test.segmented_control(key="training-side").set_value("League").run())
    ladder = test.dataframe[0].value.to_dict("records")
    assert {"kuhn", "kuhn@2", "kuhn@3"} <= {row["player"] for row in ladder}
    assert all(row["low"] < row["rating"] < row["high"] for row in ladder)
    assert "Win rate of the player in the row" in text_of(test)
    clean(test.segmented_control(key="training-side").set_value("Games").run())
    assert "Hand " in text_of(test)


def test_a_training_that_was_stopped_says_why(seen: Seen) -> None:
    text = text_of(seen("training", training=CLASS))
    assert escape("stopped after update 3: <img src=x onerror=hit()>") in text


def test_an_interview_is_read_back(seen: Seen) -> None:
    text = text_of(clean(seen("interview", run="bargaining", agent="host-1")))
    assert "Why did you offer that?" in text
    assert "agent=" not in text_of(clean(seen("interview", run="bargaining", agent="guest-1")))
    assert escape(NAMES[0]) in text_of(clean(seen("interview", run="hostile", agent=NAMES[1])))
    assert "nobody to ask" in text_of(clean(seen("interview", run="rubinstein")))


# --- nothing is written -------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_a_look_changes_no_file(seen: Seen, folder: Path, view: str) -> None:
    def state() -> dict[str, tuple[int, int]]:
        """Of all files but those that SQLite keeps beside one while it is read."""
        found = [path for path in folder.iterdir() if not path.name.endswith(("-shm", "-wal"))]
        return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = state()
    seen(view)
    assert state() == before


# --- texts are texts ----------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Elements and attributes of markup."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"@{name}" for name, _ in attrs)}


OURS = {"div", "span", "b", "h1", "h2", "table", "thead", "tbody", "tr", "td", "th", "details", "summary", "style"}


def hostile(seen: Seen) -> list[AppTest]:
    tests = [seen("runs")]
    tests += [seen(view, run="hostile") for view in ("live", "measures", "whatif")]
    tests += [seen("interview", run="hostile", agent=NAMES[1]), seen("play")]
    tests.append(seen("training", training=CLASS))
    for side in ("League", "Games"):
        test = seen("training", training=CLASS)
        tests.append(test.segmented_control(key="training-side").set_value(side).run())
    tests.append(seen("agent", run="hostile", agent=NAMES[1]))
    tests += [seen("live", run="hostile", viewer=NAMES[0]), seen("compare", runs="hostile,market")]
    for below in ("Who saw whom", "Activity", "One fact"):
        test = seen("live", run="hostile")
        tests.append(test.segmented_control(key="below").set_value(below).run())
    for side in ("Why: what it was shown", "Why: back to the origin"):
        test = seen("agent", run="hostile", agent=NAMES[-1])
        tests.append(test.segmented_control(key="side").set_value(side).run())
    return tests


def test_hostile_texts_change_nothing_but_text(seen: Seen) -> None:
    for test in hostile(seen):
        assert not test.exception, test.exception
        text = text_of(test)
        parser = Tags()
        parser.feed(text)
        assert parser.found <= {*OURS, "@class", "@role", "@style"}
        assert not any(mark in text for mark in ("\x1b", "\u202e", "\u200b", "\x00"))
        assert len(text) < 1_500_000, "a line of a megabyte is folded and cut"
        markdown = [
            one.value for kind in ("markdown", "caption", "title", "header", "error", "info") for one in test.get(kind)
        ]
        labels = [one.label for kind in ("button", "checkbox", "expander", "metric") for one in test.get(kind)]
        for name in NAMES:
            assert not [one for one in (*markdown, *labels) if name in str(one)]


def test_html_is_made_and_shown_in_one_module_and_in_the_frame_of_a_report() -> None:
    for path in sorted((Path(__file__).parents[2] / "ui").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if path.name != "markup.py":
            assert "st.html" not in source, path
            assert "Html(" not in source.replace("-> Html", "") or path.match("report/html.py"), path
        assert "unsafe_allow" not in source, path
        assert "st.markdown" not in source, path


@pytest.mark.parametrize(
    ("milliseconds", "unit", "title"),
    [(0, 1_000, "seconds"), (179_999, 1_000, "seconds"), (180_000, 60_000, "minutes"),
     (12 * 3_600_000, 3_600_000, "hours"), (100 * 86_400_000, 86_400_000, "days")],
)  # fmt: skip
def test_an_axis_of_time_is_in_units_fit_for_its_length(milliseconds: float, unit: float, title: str) -> None:
    assert axis(milliseconds) == (unit, f"simulated time ({title})")


# --- downloads ----------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    """Relative, by WCAG 2."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "ground"), [("light", "#ffffff"), ("dark", "#171614")])
def test_what_is_written_in_a_figure_stands_out(theme: str, ground: str) -> None:
    plain = heat(["a"], ["b"], [[1.0]], "share", "row", "column")
    before = plain.to_json()
    shown = inked(plain, theme).to_plotly_json()
    axis = shown["layout"]["xaxis"]
    bar = shown["data"][0]["colorbar"]
    inks = {shown["layout"]["font"]["color"], axis["tickfont"]["color"], bar["tickfont"]["color"]}
    dark, bright = sorted((luminance(inks.pop()), luminance(ground)))
    assert not inks
    assert (bright + 0.05) / (dark + 0.05) >= 7
    assert plain.to_json() == before, "what is downloaded stays as it is"
    assert inked(plain, None) is plain


def test_an_axis_that_counts_has_whole_numbers() -> None:
    few, many = (in_steps(lines([Series(name="a", x=range(n), y=range(n))], "round", "points")) for n in (3, 30))
    assert (few.layout.xaxis.dtick, few.layout.xaxis.tickformat) == (1, "d")
    assert (many.layout.xaxis.dtick, many.layout.xaxis.tickformat) == (None, "d")


def test_tables_come_down_as_csv_and_parquet() -> None:
    rows = [{"a": 1, "b": "=1+1"}, {"a": None, "b": 'x,"y"'}]
    assert as_csv(rows).decode() == 'a,b\n1,\'=1+1\n,"x,""y"""\n'
    assert polars.read_parquet(io.BytesIO(as_parquet(rows))).to_dicts() == rows
