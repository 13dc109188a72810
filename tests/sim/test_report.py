"""Reports: the same numbers in every form, honesty first, texts that stay texts, secrets that stay secret, pairs."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from markdown_it import MarkdownIt

from sim.fork import fork
from sim.library import PROJECT, measure
from sim.metrics import luck as shared_luck
from sim.metrics.analysis import counterfactuals
from sim.metrics.collusion import markups, unlikely
from sim.metrics.luck import Traces
from sim.metrics.safety import statements
from sim.record.project import Project
from sim.record.survey import Earned, Survey
from sim.report import markdown
from sim.report.compare import Condition, changes, conditions, differences, luck, means
from sim.report.compose import composed
from sim.report.gather import Gathered
from sim.report.hiding import Mask
from sim.report.markdown import as_markdown
from sim.report.method import UNKNOWN, described, reached
from sim.report.model import Line, Measures, Moments, Note, Part, Report, Section, Table, lines, shown
from sim.report.moments import EACH, _spread
from sim.report.numbers import ROWS, forest, headline, labels, measures, verdict
from sim.report.outcome import AGENTS, rewards
from sim.report.series import plots
from sim.report.several import together
from sim.report.tables import COLUMNS, as_csv, as_json
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.types import Measurement, Secret
from tests.commands import Agora
from tests.sim.rows import manifest
from tests.ui.corpus import CORPUS, hostile_copy
from worlds.privacy import attacks
from worlds.verification import outcomes

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FORUM = SCENARIOS / "platforms" / "forum_llm.yaml"
BARGAINING = SCENARIOS / "negotiation" / "bargaining_rubinstein.yaml"
HUNT = SCENARIOS / "games" / "stag_hunt_llm.yaml"
SYNTHETIC = "models.small.engine=synthetic"


def made(folder: Path, scenario: Path, name: str, *sets: str, budget: int | None = None) -> Path:
    path = create(load(scenario, list(sets)), folder, name)
    go(path, budget=budget)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forum with secrets, a hunt whose model answers garbage, one that a budget has stopped, one not started."""
    where = tmp_path_factory.mktemp("runs")
    made(where, FORUM, "forum", SYNTHETIC)
    made(where, HUNT, "garbled", SYNTHETIC, "models.small.garbage=0.5")
    made(where, HUNT, "stopped", SYNTHETIC, budget=9_000)
    create(load(HUNT, [SYNTHETIC]), where, "waiting")
    return where


@pytest.fixture(scope="module")
def forum(folder: Path) -> Report:
    return composed([folder / "forum.db"], "agora report forum")


def blocks(report: Report, kind: type[Any]) -> Iterator[Any]:
    for section in report.sections():
        yield from (block for block in section.blocks if isinstance(block, kind))


def section(report: Report, title: str) -> Section:
    return next(one for one in report.sections() if one.title == title)


def key(line: Line) -> tuple[str, str, str, str, str]:
    return line.metric, line.about, line.shown, f"{line.n:,}", line.interval


def in_markdown(text: str) -> set[tuple[str, ...]]:
    """Rows of tables of measures: measure, of, value, n, interval."""
    found = set()
    heads: list[str] = []
    for row in grids(text):
        if row is None:
            heads = []
        elif not heads:
            heads = row
        elif {"measure", "clusters"} <= set(heads):
            cells = dict(zip(heads, row, strict=True))
            found.add(tuple(cells.get(name, "") for name in ("measure", "of", "value", "n", "95% interval")))
    return found


def grids(text: str) -> Iterator[list[str] | None]:
    """Rows of the tables of a Markdown text, as it reads when rendered; None before each table."""
    row: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "table_open":
            yield None
        elif token.type == "tr_open":
            row = []
        elif token.type == "inline" and token.level > 2:
            row.append("".join(child.content for child in token.children or ()))
        elif token.type == "tr_close":
            yield row


# --- the same in all forms -----------------------------------------------------------------------------


def test_all_forms_have_the_same_numbers(forum: Report, folder: Path) -> None:
    wanted = [key(one) for one in lines(forum)]
    assert len(wanted) > 20
    back = msgspec.json.decode(as_json(forum), type=Report)
    assert [key(one) for one in lines(back)] == wanted
    assert back.parts[0].run == "forum"
    rows = list(csv.DictReader(io.StringIO(as_csv(forum))))
    assert tuple(rows[0]) == COLUMNS
    for row, one in zip(rows, lines(forum), strict=True):
        assert (row["metric"], row["shown"], int(row["n"])) == (one.metric, one.shown, one.n)
        assert (float(row["value"]) if row["value"] else None) == one.value
        assert shown(None if one.value is None else float(row["value"])) == one.shown
    assert in_markdown(as_markdown(forum)) == set(wanted)


def test_a_report_has_what_agora_measure_gives(forum: Report, folder: Path) -> None:
    given = {(one.metric, msgspec.json.encode(one.of)): one.value for one in measure(folder / "forum.db")}
    assert {(one.metric, msgspec.json.encode(one.of)): one.value for one in lines(forum)} == given


def test_numbers_of_earlier_metrics_are_kept(folder: Path, tmp_path: Path) -> None:
    path = made(tmp_path, BARGAINING, "talk")
    project = Project(tmp_path / PROJECT)
    judge = {"Se": 0.9, "id": "j"}
    project.measure("talk", [Measurement(metric="judged.kindness", value=0.5, null={"p": 0.25}, judge=judge)])
    project.measure("talk", [Measurement(metric="some.module:all", value=None, flags=("failed: NameError",))])
    project.close()
    found = list(lines(composed([path], "")))
    assert "some.module:all" not in {one.metric for one in found}, "what failed once is no number"
    (line,) = [one for one in found if one.metric == "judged.kindness"]
    assert line.notes == "test of no effect: p 0.25; judge: Se 0.9, id j"


def test_a_report_is_the_same_each_time(forum: Report, folder: Path) -> None:
    assert composed([folder / "forum.db"], "agora report forum") == forum


def test_every_measure_is_explained(forum: Report) -> None:
    (glossary,) = [one for one in forum.method[0].blocks if getattr(one, "title", "") == "What each measure is"]
    told = {one.name: one.text for one in glossary.entries}
    assert set(told) == {one.metric for one in lines(forum)}
    assert told["honesty.parse_failure_first"].startswith("Decisions whose first answer was not legal")
    assert told["posting_gini"].startswith("Gini")
    assert not [name for name, text in told.items() if text.startswith(UNKNOWN)]


def test_a_measure_is_told_by_the_module_that_makes_it() -> None:
    """Names made of a family and a part, functions of another module, and what only the module says."""
    modules = reached([outcomes, statements, markups, attacks])
    assert described("pricing.lerner", modules) == "(p − c)/p: the mark-up as a share of the price."
    assert described("pricing.price_index", modules).startswith("How far firms are above competition")
    assert described("attack.executed", modules).startswith("Attacks on a record")
    assert described("attack.exposure_risk_ratio", modules).startswith("How many times as likely the harmful act")
    assert described("deception.detection_accuracy", modules).startswith("Ratings as calls")
    assert described("verification.task_accuracy", modules).startswith("Share of tasks that were done right")
    assert described("nobody.knows", modules) == UNKNOWN
    among_runs = reached([shared_luck, counterfactuals, unlikely])
    assert described("luck.logs_apart", among_runs).startswith(
        "The tick from which on two runs of the same luck differ"
    )
    assert described("conformal.set_width", among_runs).startswith("Of one change how wide a set")
    assert described("steganography.likelihood_gap", among_runs).startswith("How much likelier a token")


def noted(**more: Any) -> str:
    (line,) = measures("a", [Measurement(metric="a.b", **more)], "run").lines
    return line.notes


def test_notes_are_words() -> None:
    assert noted(value=1.0, flags=("n_clusters<2",)) == "one cluster: no interval"
    alone = noted(value=1.0, ci=(0.0, 2.0), flags=("n_clusters<2",))
    assert alone == "one cluster: the interval is of the spread within it"
    assert noted(value=None, flags=("n_clusters<2",), denominator="deals") == "none there: deals"
    assert noted(value=None, n=34, denominator="calm offers") == "undefined: calm offers is 0 or unknown"
    assert noted(value=None, excluded={"unfinished": 1_200}) == "left out: 1,200 unfinished"
    exact = {"stat": 0.6, "p": 1.4e-52, "method": "exact"}
    assert noted(value=0.6, null=exact) == "test of no effect: p < 0.0001 (exact)"
    drawn = {"stat": 0.6, "p": 0.005, "mean": 2e-17, "method": "dealt anew", "n_perm": 199}
    assert noted(value=0.6, null=drawn) == "test of no effect: p 0.005, by chance 0 (dealt anew, 199 draws)"
    table = headline([Measurement(metric="a.b", value=None), Measurement(metric="a.c", value=1.0)])
    assert table is not None
    assert [row[-1] for row in table.rows] == ["nothing to measure it on", ""]


def test_figures_say_why_there_is_no_interval() -> None:
    def caption(*clusters: int) -> str:
        made = [Measurement(metric=f"a.{n}", value=0.5, unit="share", n_clusters=m) for n, m in enumerate(clusters)]
        (plot,) = forest(measures("a", made, "run"), "run")
        return plot.caption

    assert caption(1, 1).endswith("says nothing of the spread between.")
    assert caption(20, 20) == "2 of 2 have no interval."


def test_periods_stand_together_and_so_do_agents() -> None:
    periods = [Measurement(metric="a.b", value=1.0, of={"period": n}) for n in range(5)]
    agents = [Measurement(metric="a.c", value=1.0, of={"agent": f"x{n}"}) for n in range(13)]
    found = measures("a", [*periods, Measurement(metric="a.c", value=1.0), *agents], "run")
    assert [one.about for one in found.lines] == [*(f"period {n}" for n in range(5)), ""]
    assert len(found.more) == 13
    of = {"episode": 5.0}
    assert measures("a", [Measurement(metric="a.d", value=1.0, of=of)], "run").lines[0].about == "episode 5"


# --- honesty -------------------------------------------------------------------------------------------


def test_honesty_comes_first(forum: Report) -> None:
    assert forum.parts[0].sections[0].title == "How honest the run is"
    assert forum.verdict == ()
    (table,) = [one for one in forum.parts[0].sections[0].blocks if isinstance(one, Table)]
    assert [row[2].shown for row in table.rows] == ["0.05", "0.2", "0.02", "0"]
    assert {row[4] for row in table.rows} == {"within"}


def test_a_run_beyond_a_threshold_is_marked_before_all_else(folder: Path) -> None:
    report = composed([folder / "garbled.db"], "")
    assert report.verdict[0].startswith("not fit for claims: default rate")
    assert as_markdown(report).startswith("> **not fit for claims: default rate")
    assert list(msgspec.json.decode(as_json(report)))[:2] == ["shape", "verdict"]
    first = next(csv.DictReader(io.StringIO(as_csv(report))))
    assert (first["metric"], first["fit_for_claims"]) == ("honesty.fit_for_claims", "no")
    assert "not fit for claims" in first["flags"]


def test_decisions_that_went_wrong_stand_among_those_around_them(folder: Path) -> None:
    report = composed([folder / "garbled.db"], "")
    (found,) = blocks(report, Moments)
    odd = [one for one in found.moments if any(why.startswith("decision defaulted") for why in one.why)]
    assert odd
    assert found.left_out > 0
    for moment in found.moments:
        assert [one.itself for one in moment.around].count(True) == 1
    assert len(found.moments) <= 6 * EACH


# --- runs that are not finished ------------------------------------------------------------------------


def test_an_unfinished_run_has_its_numbers_so_far(folder: Path) -> None:
    report = composed([folder / "stopped.db"], "")
    assert "paused" in report.notes[0].text
    assert "so far" in report.notes[0].text
    found = {(one.metric, str(one.of)): one.value for one in measure(folder / "stopped.db")}
    assert {(one.metric, str(one.of)): one.value for one in lines(report)} == found
    assert found
    with closing(sqlite3.connect(folder / PROJECT)) as project:
        assert not project.execute("SELECT 1 FROM measurements WHERE run = 'stopped'").fetchall()


def test_a_run_that_has_not_started_says_so(folder: Path) -> None:
    report = composed([folder / "waiting.db"], "")
    assert report.notes[0].text == "waiting is not started, so there is nothing to measure."
    assert not list(lines(report))
    assert as_csv(report).count("\n") == 1
    assert "not been measured" in as_markdown(report)


def test_a_world_without_measures(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(
        "name: tiny\nclock: {until: 1m}\nworld: {use: tests.sim.tiny_society:Silent}\n"
        "cast: [{name: a, count: 2, agent: agents.scripted:RandomLegal}]\n"
    )
    report = composed([made(tmp_path, tmp_path / "tiny.yaml", "tiny")], "")
    assert {one.metric.partition(".")[0] for one in lines(report)} == {"honesty"}
    assert Note(text="The world gave no rewards.") in section(report, "Outcome").blocks
    assert as_markdown(report)


# --- texts of others -----------------------------------------------------------------------------------


def test_hostile_texts_are_text_in_markdown(folder: Path, tmp_path: Path) -> None:
    report = composed([hostile_copy(folder / "forum.db", tmp_path)], "")
    text = as_markdown(report)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inside = [child for token in tokens for child in (token.children or ())]
    assert not [one for one in (*tokens, *inside) if one.type in ("html_block", "html_inline", "image")]
    assert all(str(one.attrs["href"]).startswith("#") for one in inside if one.type == "link_open")
    for mark in ("\x1b", "\u202e", "\u200b", "\x00"):
        assert mark not in text
    read = "\n".join(one.content for one in inside)
    assert CORPUS[0] in read
    assert "[click](javascript:hit())" in read
    assert len(text) < 200_000, "a text of a megabyte is cut"
    cells = [cell for row in csv.reader(io.StringIO(as_csv(report))) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "@", "\t") or cell.startswith(("+", "-H"))]
    assert '\'=HYPERLINK("https://outside.example")' in cells


@pytest.mark.parametrize("text", [one for one in CORPUS if len(one) < 200])
def test_a_text_reads_as_it_is_in_markdown(text: str) -> None:
    (_, inline, _) = MarkdownIt("commonmark").parse(markdown.text(text))
    read = "".join(child.content for child in inline.children or ())
    assert read == " ⏎ ".join(markdown.visible(text).splitlines())


# --- secrets -------------------------------------------------------------------------------------------


def test_secrets_are_hidden_unless_they_are_asked_for(folder: Path, tmp_path: Path) -> None:
    with Survey(folder / "forum.db") as run:
        held = [one for member in run.cast() for one in member.secrets]
        (first, *_) = run.thinned("post", 1)
    value = held[0].value
    path = tmp_path / "forum.db"
    path.write_bytes((folder / "forum.db").read_bytes())
    with closing(sqlite3.connect(path)) as db, db:
        data = msgspec.json.encode({**first.fact.data, "text": f"It is {value}, you know."}).decode()
        db.execute("UPDATE facts SET data = ?, actor = ? WHERE seq = ?", (data, held[0].holder, first.seq))
    closed, opened = (composed([path], "", show) for show in (False, True))
    for write in (as_markdown, as_json, as_csv):
        assert value not in write(closed)
    assert value in as_markdown(opened)
    assert "The values of 4 secrets are hidden" in closed.notes[0].text
    assert section(closed, "What leaked")
    table = next(one for one in section(closed, "Cast").blocks if isinstance(one, Table) and len(one.heads) > 3)
    assert any("diagnosis: [hidden] (for #health, patient)" in row for row in table.rows)


def test_what_is_hidden() -> None:
    debt = Secret(subject="ada", attribute="debt in euros", value="84500", holder="ada")
    illness = Secret(subject="ada", attribute="diagnosis", value="asthma", holder="ada")
    mask = Mask([debt, illness])
    assert (
        mask.text("I owe 84500, and Asthma; asthmatic")
        == "I owe [debt in euros hidden], and [diagnosis hidden]; asthmatic"
    )
    assert mask.data({"n": 84500, "m": 845001, "ok": True}) == {"n": "[debt in euros hidden]", "m": 845001, "ok": True}
    assert mask.data({"text": "my debt is 84.5k"}) == {"text": "[hidden: it tells debt in euros]"}
    assert Mask([debt], shown=True).data({"text": "84500"}) == {"text": "84500"}
    assert Mask([]).text("84500") == "84500"


# --- bounds --------------------------------------------------------------------------------------------


def test_what_is_too_much_is_counted() -> None:
    many = [Measurement(metric="a.b", value=1.0, of={"agent": f"x{n}"}) for n in range(ROWS + 50)]
    found = measures("a", [Measurement(metric="a.b", value=0.5), *many], "run")
    assert found.lines[0].about == ""
    assert len(found.lines) + len(found.more) == ROWS
    assert found.left_out == 51
    assert headline(many) is None


def test_labels_are_short_and_apart() -> None:
    one, other, _ = labels(["x" * 90, "x" * 90, "y"])
    assert one != other
    assert len(other) < 60


def test_facts_that_many_metrics_name_come_from_all_over_the_run() -> None:
    weight = {(0, fact): 1 for fact in range(100)} | {(0, 7): 3}
    assert _spread(weight) == [(0, 7), (0, 0), (0, 26), (0, 51), (0, 76)]
    assert _spread({}) == []


def test_long_series_are_thinned(folder: Path) -> None:
    with Survey(folder / "forum.db") as run:
        every = run.thinned("join", 1_000)
        assert len(every) == run.kinds_of_all()["join"] == 32
        assert [one.fact.id for one in run.thinned("join", 8)] == [one.fact.id for one in every[::4]]


def test_rewards_are_means_over_tables_with_intervals(tmp_path: Path) -> None:
    path = made(tmp_path, SCENARIOS / "games" / "kuhn.yaml", "kuhn", "tables=3", "world.hands=4")
    with Survey(path) as run:
        each = [run.rewards(table) for table in range(3)]
        found = {one.agent: one for one in run.earned()}
    for agent, one in found.items():
        got = [rewards[agent] for rewards in each]
        assert (one.tables, one.total, one.squares) == (
            3,
            pytest.approx(sum(got)),
            pytest.approx(sum(x * x for x in got)),
        )
    table = next(one for one in blocks(composed([path], ""), Table) if one.title.startswith("Rewards by agent"))
    assert table.heads[3:5] == ("low", "high")


def test_the_largest_rewards_of_all_come_first() -> None:
    """However many agents there are: the largest of them, not of those who came first."""
    many = [Earned(agent=f"a{n}", role="", tables=1, total=float(n), squares=float(n * n)) for n in range(AGENTS + 40)]
    table = next(one for one in rewards(many, "run") if isinstance(one, Table) and one.title.startswith("Rewards by a"))
    assert [row[0] for row in table.rows[:2]] == [f"a{AGENTS + 39}", f"a{AGENTS + 38}"]
    assert table.left_out == 40


@pytest.mark.parametrize(
    ("scenario", "sets", "title"),
    [
        (BARGAINING, (), "Offers"),
        (HUNT, (SYNTHETIC,), "Actions over rounds"),
        (SCENARIOS / "markets" / "apple_market.yaml", ("world.periods=1", "clock.until=10m"), "Prices of apple"),
        (SCENARIOS / "games" / "kuhn.yaml", ("tables=1", "world.hands=5"), "Returns hand by hand"),
        (SCENARIOS / "privacy" / "disclosure_llm.yaml", (SYNTHETIC,), "Conversations in which something was told"),
        (SCENARIOS / "verification" / "verification_llm.yaml", (SYNTHETIC,), "Verdicts over episodes"),
        (SCENARIOS / "pricing" / "oligopoly_llm.yaml", (SYNTHETIC,), "Choices of the firms"),
        (SCENARIOS / "opinions" / "opinions.yaml", ("tables=1",), "Opinions"),
        (SCENARIOS / "opinions" / "conformity.yaml", ("tables=1",), "Answers by their place in the order"),
    ],
)
def test_each_kind_of_world_has_a_figure_of_its_own(
    scenario: Path, sets: Sequence[str], title: str, tmp_path: Path
) -> None:
    with Survey(made(tmp_path, scenario, "run", *sets)) as run:
        drawn = {one.title: one for one in plots(run, run.tables, run.manifest().tick_ms)}
    assert drawn[title].series[0].x
    assert "Facts over time" in drawn


# --- several runs --------------------------------------------------------------------------------------


def turns(*seen: int) -> Traces:
    """What a run shows in which one agent had turns at these ticks."""
    calls = ("tbl", "agent", "tick", "nth", "call", "digest", "answer")
    kinds = {"tbl": pl.Int64, "agent": pl.String, "seen": pl.Int64, "nth": pl.Int64}
    rows = [(0, place, tick, tick) for place, tick in enumerate(seen)]
    return Traces(
        pl.DataFrame(rows, dict.fromkeys(("tbl", "place", "tick", "hash"), pl.Int64), orient="row"),
        pl.DataFrame([(0, "ann", tick, 0) for tick in seen], kinds, orient="row"),
        pl.DataFrame(schema=dict.fromkeys(calls, pl.String)),
    )


def gathered(name: str, seed: int, scenario: dict[str, Any], *numbers: Measurement, **more: Any) -> Gathered:
    shown_luck = more.pop("traces", turns())
    return Gathered(
        part=Part(run=name, verdict=verdict(numbers), sections=()),
        facts=tuple((key, "") for key in ("seed", "models", "status", "simulated time", "decisions", "tokens")),
        manifest=manifest(id=name, name="frost", seed=seed, **more),
        scenario={"name": "frost", "world": {"use": "w:W", "life": 1}, **scenario, "seed": seed},
        status="finished",
        numbers=numbers,
        metrics=(),
        traces=shown_luck,
        mask=Mask(()),
        hidden=0,
    )


def number(value: float | None, metric: str = "a.b", unit: str = "", **of: Any) -> Measurement:
    return Measurement(metric=metric, value=value, unit=unit, n=10, of=of)


COLD = {"world": {"use": "w:W", "life": 9}}


def test_pairs_of_seeds_by_hand() -> None:
    base = [gathered(f"b{n}", n, {}, number(value)) for n, value in enumerate((10, 12, 9, 13))]
    cold = [gathered(f"c{n}", n, COLD, number(value)) for n, value in enumerate((11, 14, 10, 15))]
    ((one, other),) = conditions([*base, *cold])
    assert (one.name, other.name, other.what) == ("frost A", "frost B", "world.life: 9 (the first: 1)")
    (found,), pairs = differences(one, other)
    assert pairs == found.pairs == 4
    assert found.estimate.value == 1.5
    assert found.estimate.ci == pytest.approx((0.581307, 2.418693), abs=1e-6)
    assert found.p == 2 / 16
    assert (found.base, found.treated) == (11, 12.5)


def test_pairs_need_a_value_on_both_sides() -> None:
    base = [gathered("b0", 0, {}, number(1.0)), gathered("b1", 1, {}, number(None))]
    cold = [gathered("c0", 0, COLD, number(3.0)), gathered("c1", 1, COLD, number(5.0))]
    (found,), pairs = differences(*conditions([*base, *cold])[0])
    assert (found.pairs, pairs, found.estimate.value, found.estimate.ci) == (1, 2, 2.0, None)


def test_runs_of_one_luck_come_to_their_mean() -> None:
    base = [gathered("b0", 0, {}, number(1.0)), gathered("again", 0, {}, number(3.0))]
    (found,), _ = differences(*conditions([*base, gathered("c0", 0, COLD, number(5.0))])[0])
    assert found.estimate.value == 3.0


def test_seeds_are_the_clusters_of_means() -> None:
    runs = [
        gathered(f"r{n}", seed, {}, number(value)) for n, (seed, value) in enumerate([(1, 0.0), (1, 2.0), (2, 3.0)])
    ]
    (found,) = means(Condition("frost", "", runs))
    assert (found.value, found.n_clusters, found.n) == (2.0, 2, 30)


def test_means_over_few_seeds_say_so_once_and_carry_it_each() -> None:
    numbers = (number(1.0), number(2.0, "a.c"))
    for seeds, told in ((19, 1), (20, 0)):
        sections = together([gathered(f"r{n}", n, {}, *numbers) for n in range(seeds)])
        (means_of,) = [one for one in sections if one.title.startswith("Means")]
        notes = [one.text for one in means_of.blocks if isinstance(one, Note)]
        assert sum("too few for headline numbers" in text for text in notes) == told
        (table,) = [one for one in means_of.blocks if isinstance(one, Measures)]
        assert {("n_clusters<20" in line.flags, line.notes) for line in table.lines} == {(bool(told), "")}


def test_false_discoveries_are_kept_in_check() -> None:
    sure = [(f"a.m{n}", n) for n in range(12)]
    base = [gathered(f"b{s}", s, {}, *(number(0.0, name) for name, _ in sure)) for s in range(10)]
    cold = [
        gathered(f"c{s}", s, COLD, *(number(1.0 + s if n == 0 else (-1.0) ** s, name) for name, n in sure))
        for s in range(10)
    ]
    sections = together([*base, *cold])
    table = next(one for part in sections for one in part.blocks if getattr(one, "title", "").startswith("Paired"))
    so = table.heads.index("so")
    assert [row[0] for row in table.rows if row[so] == "stands"] == ["a.m0"]
    assert sections[0].title == "How honest each run is"


def test_a_report_says_where_pairs_part_and_to_how_many_measures_their_luck_was_of_use() -> None:
    """Of three pairs the first is alike to the end; `a.noise` varies more between the sides than within them."""
    base = [
        gathered(f"b{n}", n, {}, number(10.0 * n), number(noise, "a.noise"), traces=turns(0, 4))
        for n, noise in enumerate((0.0, 1.0, 2.0))
    ]
    seen = (turns(0, 4), turns(0, 3, 5), turns(0, 4, 5))
    cold = [
        gathered(f"c{n}", n, COLD, number(10.0 * n + each), number(2.0 - n, "a.noise"), traces=seen[n])
        for n, each in enumerate((1.0, 2.0, 4.0))
    ]
    (compared,) = [one for one in together([*base, *cold]) if "against" in one.title]
    *_, note, table = compared.blocks
    assert isinstance(note, Note)
    assert "less uncertain" in note.text
    assert "1 of 2 measures" in note.text
    assert isinstance(table, Table)
    assert table.title == "Where shared luck ends"
    assert [tuple(getattr(cell, "shown", cell) for cell in row) for row in table.rows] == [
        ("b0", "c0", "nowhere", "nowhere", "nowhere", "1"),
        ("b1", "c1", "3s", "3s, ann", "nowhere", "0.25"),
        ("b2", "c2", "5s", "5s, ann", "nowhere", "0.6667"),
    ]


def test_conditions_without_a_shared_seed_stand_side_by_side() -> None:
    runs = [gathered("b", 1, {}, number(1.0)), gathered("c", 2, COLD, number(2.0))]
    (compared,) = [one for one in together(runs) if "against" in one.title]
    assert any("nothing is paired" in one.text for one in compared.blocks if isinstance(one, Note))
    assert not [one for one in compared.blocks if isinstance(one, Table)]


def test_what_a_condition_changes() -> None:
    first = {"seed": 1, "world": {"use": "w:W", "life": 1}, "cast": [{"name": "a"}], "gone": 1}
    other = {"seed": 2, "world": {"use": "w:W", "life": 2}, "cast": [{"name": "b"}]}
    assert changes(first, other).splitlines() == [
        "world.life: 2 (the first: 1)",
        "cast.1.name: b (the first: a)",
        "gone: nothing (the first: 1)",
    ]


def test_forks_are_paired_with_what_would_have_been(tmp_path: Path) -> None:
    parent = made(tmp_path, BARGAINING, "talk")
    paths = [parent]
    for replicate in range(2):
        for sets in ([], ["max_rounds=1"]):
            if replicate or sets:
                paths.append(fork(parent, tmp_path, 10, sets=sets, replicate=replicate))
                go(paths[-1])
    report = composed(paths, "")
    assert len({luck(one) for one in (gathered("a", 1, {}), gathered("b", 1, {}, replicate=1, fork_tick=10))}) == 2
    (compared,) = [one for one in report.together if "against" in one.title]
    said = " ".join(one.text for one in compared.blocks if isinstance(one, Note))
    assert "2 pairs of runs share their luck" in said
    assert "All pairs are of one seed" in said
    assert "max_rounds" in said


def test_unrelated_runs(folder: Path, tmp_path: Path) -> None:
    report = composed([folder / "forum.db", folder / "garbled.db"], "")
    assert [one.title for one in report.together][:3] == ["How honest each run is", "The runs", "Side by side"]
    assert not [one for one in report.together if "against" in one.title]
    assert report.verdict[0].startswith("garbled: not fit for claims")
    assert [part.run for part in report.parts] == ["forum", "garbled"]
    assert {one.run for one in lines(report)} == {"forum", "garbled"}


# --- the command ---------------------------------------------------------------------------------------


def test_the_command_writes_every_form_and_overwrites_nothing(agora: Agora, tmp_path: Path) -> None:
    made(tmp_path / "runs", BARGAINING, "talk")
    for form in ("html", "md", "json", "csv"):
        said = agora("report", "talk", "--format", form)
        assert (said.code, said.out) == (0, f"talk-report.{form}\n"), said.err
    before = (tmp_path / "talk-report.md").read_text()
    again = agora("report", "talk", "--format", "md")
    assert again.code == 2
    assert again.line == "agora: talk-report.md is there already; choose another file with -o, or remove it"
    assert agora("report", "last", "-o", "other.md").code == 0
    assert (tmp_path / "other.md").read_text() == before
    assert {one.name for one in tmp_path.iterdir()} == {
        "runs", "other.md", *(f"talk-report.{form}" for form in ("html", "md", "json", "csv")),
    }  # fmt: skip
    assert "`agora report talk --format md`" in before


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("nobody",), ("no run 'nobody'", "talk")),
        (("talk", "nobody"), ("no run 'nobody'",)),
        (("talk", "--format", "pdf"), ("--format 'pdf'", "html", "csv")),
        (("talk", "--format", "csv", "-o", "a.md"), ("a.md ends in md", "--format is csv")),
        (("talk", "-o", "runs"), ("runs is a folder",)),
        (("talk", "-o", "nowhere/a.html"), ("there is no folder nowhere",)),
    ],
)
def test_bad_input_is_one_line(words: Sequence[str], parts: Sequence[str], agora: Agora, tmp_path: Path) -> None:
    create(load(BARGAINING, []), tmp_path / "runs", "talk")
    said = agora("report", *words)
    assert said.code == 2
    for part in parts:
        assert part in said.line
    assert [one.name for one in tmp_path.iterdir()] == ["runs"]


def test_an_interrupted_report_leaves_nothing(agora: Agora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(load(BARGAINING, []), tmp_path / "runs", "talk")

    def interrupted(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.commands.reporting.CORE", {"md": interrupted})
    assert agora("report", "talk", "--format", "md").code == 130
    assert [one.name for one in tmp_path.iterdir()] == ["runs"]
