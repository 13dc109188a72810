"""Training: whether policies learn, how exploitable they are, who beats whom, and signs of collapse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import streamlit as st

from sim.library import PROJECT
from sim.record.browse import Browse
from sim.record.project import Numbers
from sim.types import Measurement
from ui import charts, data
from ui.markup import clipped, failure, hint, plotted, prose, show, tag
from ui.parts import choice, figure, table, title
from ui.scenes import draw, fitting

GROUPS: dict[str, tuple[str, ...]] = {
    "Learning": ("return", "success", "fitness", "best_fitness"),
    "Exploitability": ("nash_conv", "average_nash_conv", "strategy_nash_conv", "best_strategy_nash_conv"),
    "Collapse monitors": (
        *("legal_rate", "entropy", "decision_entropy", "reward_std", "kept_rate", "length"),
        *("mutual_information", "retrieval_gain"),
    ),
    "Updates": ("loss", "kl", "clip_fraction", "gradient_norm", "ess", "mismatch_far"),
}
"""Curves by what they tell, the most telling first; the rest comes after them."""
STOPPED = "train.stopped"
MATRIX = 24
"""Most players of a heat map."""
ROLLOUTS = 200
"""Newest stored games that can be chosen."""


def page() -> None:
    """The curves of one training, its league, its games."""
    title("Training")
    folders = trainings()
    with st.sidebar:
        written = st.text_input(
            "Folder of a training",
            key="training-folder",
            placeholder="another one",
            help="As given to agora train --out",
        )
    if written:
        folders = [Path(written)] if (Path(written) / "train.yaml").is_file() else []
        if not folders:
            failure(f"{written} holds no training: there is no train.yaml in it")
            return
    if not folders:
        hint("There is no training beside the runs. Make one with: agora train RECIPE --scenario FILE --out FOLDER")
        return
    with st.sidebar:
        folder = Path(choice("Training", [str(one) for one in folders], "training", lambda one: Path(one).name))
    place = folder / PROJECT
    if not place.exists():
        hint("This training has not finished an update yet.")
        return
    with Numbers(place) as numbers:
        found = [one for _, one in numbers.measurements(run=folder.name)]
    show(tag("div", f"{clipped(str(folder), 120)} · {_updates(found)} updates", cls="dim"))
    _stopped(found)
    sides = ["Curves", *(["League"] if any(_is_league(one) for one in found) else []), "Games"]
    side = st.segmented_control(
        "Side", sides, default=sides[0], key="training-side", label_visibility="collapsed", required=True
    )
    if side == "League":
        _league(found)
    elif side == "Games":
        _games(folder)
    else:
        _curves(found)


def trainings() -> list[Path]:
    """Folders of trainings in the working folder and beside the runs."""
    bases = dict.fromkeys((Path(), data.folder().parent))
    found = {path.parent for base in bases for depth in ("*", "*/*") for path in base.glob(f"{depth}/train.yaml")}
    return sorted(found)


def _updates(found: Iterable[Measurement]) -> int:
    return max((int(one.of["update"]) for one in found if "update" in one.of), default=0)


def _stopped(found: Iterable[Measurement]) -> None:
    """Why it ended before its time, if it did after its last update."""
    last = [one for one in found if one.metric == STOPPED and one.flags]
    if last:
        failure(f"stopped after update {int(last[-1].value or 0)}: {', '.join(last[-1].flags)}")


def _is_league(one: Measurement) -> bool:
    return one.metric.startswith("league.")


# --- curves ---------------------------------------------------------------------------------------------


def _curves(found: Sequence[Measurement]) -> None:
    curves: dict[str, list[Measurement]] = {}
    for one in found:
        if "update" in one.of and not _is_league(one) and one.metric != STOPPED and one.value is not None:
            curves.setdefault(_curve(one), []).append(one)
    if not curves:
        hint("No numbers have been kept yet.")
        return
    names: dict[str, list[str]] = {}
    for name in curves:
        names.setdefault(name.split(" ")[0], []).append(name)
    for group, keys in GROUPS.items():
        there = [key for key in keys if key in names]
        if there:
            show(tag("h2", group))
            _row_of([(key, names[key]) for key in there], curves)
    rest = sorted(set(names) - {key for keys in GROUPS.values() for key in keys})
    if rest:
        more = st.multiselect("More curves", rest, key="more-curves", format_func=lambda one: clipped(one, 60))
        _row_of([(key, names[key]) for key in more], curves)


def _curve(one: Measurement) -> str:
    """Name of the curve that a number is on: its metric, and whatever it is about but the update."""
    rest = " ".join(f"{key}={value}" for key, value in sorted(one.of.items()) if key != "update")
    return f"{one.metric.removeprefix('train.')} {rest}".strip()


def _row_of(wanted: Sequence[tuple[str, Sequence[str]]], curves: dict[str, list[Measurement]]) -> None:
    """Figures two in a row, one for each key, with a line for each policy or subject."""
    for place, (key, names) in enumerate(wanted):
        if place % 2 == 0:
            columns = st.columns(2)
        series = []
        for name in sorted(names)[:8]:
            points = sorted(curves[name], key=lambda one: int(one.of["update"]))
            x, y = [int(one.of["update"]) for one in points], [float(one.value or 0) for one in points]
            series.append(
                charts.Series(name=plotted(name, 40), x=x, y=y, mode="lines" if len(x) > 40 else "lines+markers")
            )
        with columns[place % 2]:
            made = charts.lines(series, "update", plotted(key.replace("_", " "), 40), height=290)
            made.update_layout(showlegend=len(series) > 1)
            figure(
                charts.in_steps(made),
                f"curve-{re.sub(r'[^A-Za-z0-9_.-]', '-', key)}",
                "A number of the training by update",
            )


# --- the league -----------------------------------------------------------------------------------------


def _league(found: Sequence[Measurement]) -> None:
    ratings: dict[str, Measurement] = {}
    for one in sorted((one for one in found if one.metric == "league.rating"), key=lambda one: int(one.of["update"])):
        ratings[str(one.of["player"])] = one
    ranked = sorted(ratings, key=lambda player: -(ratings[player].ci or (ratings[player].value or 0.0,))[0])
    show(tag("h2", "Ladder, by what a strength is at least"))
    rows = [
        {
            "player": player,
            "rating": ratings[player].value,
            "low": (ratings[player].ci or (None, None))[0],
            "high": (ratings[player].ci or (None, None))[1],
            "games": ratings[player].n,
            "update": ratings[player].of["update"],
        }
        for player in ranked
    ]
    left, right = st.columns(2)
    with left:
        table(rows, "ladder")
    with right:
        drawn = [
            (plotted(one, 30), float(ratings[one].value or 0), *(ratings[one].ci or (None, None))) for one in ranked
        ]
        figure(charts.intervals(drawn[:MATRIX], "rating"), "ratings", "Ratings with their intervals")
    for metric, words, unit in (("league.payoff", "Mean return", "return"), ("league.win_rate", "Win rate", "share")):
        _matrix([one for one in found if one.metric == metric], ranked, words, unit)


def _matrix(found: Sequence[Measurement], ranked: Sequence[str], words: str, unit: str) -> None:
    if not found:
        return
    met = {(str(one.of["player"]), str(one.of["opponent"])): one.value for one in found}
    known = {name for pair in met for name in pair}
    names = [one for one in ranked if one in known] + sorted(known - set(ranked))
    names = names[:MATRIX]
    show(tag("h2", f"{words} of the player in the row against the one in the column"))
    labels = [plotted(one, 24) for one in names]
    values = [[met.get((one, other)) for other in names] for one in names]
    figure(charts.heat(labels, labels, values, unit, "player", "against"), f"league-{unit}", f"{words} between players")


# --- games ----------------------------------------------------------------------------------------------


def _games(folder: Path) -> None:
    """Stored games of the last updates, as they went."""
    files = sorted((folder / "rollouts").glob("*.db"), reverse=True)[:ROLLOUTS]
    if not files:
        hint("No games of this training are kept.")
        return
    columns = st.columns([3, 1])
    with columns[0]:
        name = choice("Games of", [path.stem for path in files], "games")
    head = data.head(folder / "rollouts", name)
    if not head.readable:
        failure(head.cause)
        return
    with columns[1]:
        at = int(st.number_input(f"Table (of {head.tables})", 0, max(0, head.tables - 1), key="games-table"))
    with Browse(head.path) as run:
        now = data.moment(run, head, at)
        speakers = {member.model or "scripted" for member in data.members(run, at)}
        calls = [call for one in run.last_decisions(at, now.seq, 4) for call in run.calls_of(one)]
        versions = sorted({call.completion.policy or call.policy for call in calls} - {""})
        spoken = f"Spoken by {', '.join(versions) or ', '.join(sorted(speakers))}"
        show(prose(spoken))
        draw(now, fitting(data.kinds(run, at)))
