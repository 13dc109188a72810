"""Every view on real recorded runs: what a watcher has to find there is there, and nothing is broken."""

from __future__ import annotations

import io
import shutil
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import polars
import pytest
from streamlit.testing.v1 import AppTest

from sim.record.browse import END, Browse
from sim.record.project import Project
from sim.types import Measurement
from tests.ui.conftest import SCRIPTED, WORLDS, Seen, text_of
from tests.ui.corpus import NAMES
from ui.parts import as_csv, as_parquet

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


def test_two_runs_beside_each_other(seen: Seen) -> None:
    text = text_of(clean(seen("compare", runs="bargaining,bargaining-at10-r1")))
    assert "are equal up to" in text
    assert "Paired differences" in text
    text = text_of(clean(seen("compare", runs="bargaining,bargaining-at10")))
    assert "are equal event by event" in text


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


def test_a_training_with_its_curves_league_and_games(seen: Seen) -> None:
    test = seen("training")
    assert not test.exception
    assert "stopped after update 3: legal_rate below 0.5" in text_of(test)
    assert "Exploitability" in text_of(test)
    test.segmented_control(key="training-side").set_value("Games").run()
    assert not test.exception
    assert "Hand 4" in text_of(test)


def test_an_interview_is_read_back(seen: Seen) -> None:
    text = text_of(clean(seen("interview", run="bargaining", agent="host-1")))
    assert "Why did you offer that?" in text
    assert "agent=" not in text_of(clean(seen("interview", run="bargaining", agent="guest-1")))
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


def test_html_is_made_and_shown_in_one_module_only() -> None:
    for path in sorted((Path(__file__).parents[2] / "ui").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if path.name != "markup.py":
            assert "st.html" not in source, path
            assert "Html(" not in source.replace("-> Html", ""), path
        assert "unsafe_allow" not in source, path
        assert "st.markdown" not in source, path


# --- downloads ----------------------------------------------------------------------------------------


def test_tables_come_down_as_csv_and_parquet() -> None:
    rows = [{"a": 1, "b": "=1+1"}, {"a": None, "b": 'x,"y"'}]
    assert as_csv(rows).decode() == 'a,b\n1,\'=1+1\n,"x,""y"""\n'
    assert polars.read_parquet(io.BytesIO(as_parquet(rows))).to_dicts() == rows
