"""What is printed: which measurements, which columns, how numbers and texts look on a terminal and in a pipe."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from sim.commands.measured import ASIDE, ROWS, listed, measurement_table
from sim.commands.show import verified
from sim.commands.terminal import PIPED, Framed, cell, columns, number, say, short
from sim.types import Measurement
from sim.verify import Verified


def measurement(metric: str, value: float | None = 1.0, **of: Any) -> Measurement:
    return Measurement(metric=metric, value=value, n=3, of=of)


def about(found: list[Measurement]) -> list[dict[str, Any]]:
    return [dict(one.of) for one in found]


def printed(thing: object, terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal, color_system=None)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


# --- which measurements --------------------------------------------------------------------------------


def test_the_general_comes_before_the_particular_and_numbers_count() -> None:
    agents = [measurement("m", agent=f"a-{n}") for n in (10, 9, 2)]
    role, overall, other = measurement("m", role="buyer"), measurement("m"), measurement("l")
    found, left = listed([*agents, role, overall, other])
    assert (found, left) == ([other, overall, role, *agents[::-1]], 0)


def test_a_metric_keeps_to_its_rows() -> None:
    family = [measurement("m"), *(measurement("m", agent=f"a-{n}") for n in range(40))]
    found, left = listed([*family, measurement("z")])
    assert about(found) == [{}, *({"agent": f"a-{n}"} for n in range(ROWS - 1)), {}]
    assert left == 41 - ROWS
    everything, none = listed(family, everything=True)
    assert (about(everything), none) == (about(family), 0)


def test_periods_are_left_to_all_where_there_is_an_overall_number() -> None:
    periods = [measurement("m", period=n, good="apple") for n in range(1, 12)]
    assert about(listed([*periods, measurement("m")])[0]) == [{}]
    found, left = listed(periods)
    assert [one.of["period"] for one in found] == [9, 10, 11]
    assert left == len(periods) - ASIDE
    mixed = [measurement("g", agent="a"), measurement("g", mover="first"), measurement("g", mover="second")]
    assert about(listed(mixed)[0]) == [{"mover": "first"}, {"mover": "second"}, {"agent": "a"}]


def test_measurements_as_a_table() -> None:
    full = Measurement(
        metric="m", value=12345.6, unit="s", n=1200, ci=(0.123456, 2e7), flags=("small",), of={"b": 1, "a": 2}
    )
    text = printed(measurement_table([full, measurement("n", None)]))
    head, first, second = (line.split() for line in text.splitlines())
    assert head == ["measure", "of", "value", "unit", "n", "interval", "flags"]
    assert first == ["m", "a", "2,", "b", "1", "12,346", "s", "1,200", "[0.1235,", "20,000,000]", "small"]
    assert second == ["n", "–", "3"]
    assert printed(measurement_table([measurement("n")])).split() == ["measure", "value", "n", "n", "1", "3"]


# --- how it looks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (138.7216286667721, "138.7"),
        ([138.7216286667721, 82.0], "[138.7, 82]"),
        ({"a": (0.000123456, 1)}, "{a: [0.0001235, 1]}"),
        (12345.678, "12346"),
        (12345678, "12345678"),
        ("x", "x"),
        (True, "True"),
    ],
)
def test_values_are_short(value: object, text: str) -> None:
    assert short(value) == text


def test_numbers_keep_their_digits_before_the_point() -> None:
    shown = [number(value) for value in (0.966612, 82.0, 999.96, 12345.6, -1e6, 1e20, 0.0)]
    assert shown == ["0.9666", "82", "1000", "12,346", "-1,000,000", "1e+20", "0"]


def test_empty_columns_are_left_out() -> None:
    assert printed(columns(("a", "b", "c"), [("1", "", ""), ("2", "", "x")])).split() == ["a", "c", "1", "2", "x"]
    assert printed(columns(("a", "b"), [])).split() == ["a"]


def test_a_text_is_framed_on_a_terminal_only() -> None:
    framed = Framed("one\n    10s  did  everything\n", "act at 5s", "stop")
    assert "╭─ act at 5s" in printed(framed, terminal=True)
    assert "│     10s  did  everything" in printed(framed, terminal=True)
    lines = [line.rstrip() for line in printed(framed).splitlines()]
    bar = " " * 12 + "|"
    assert lines == [" " * 12 + "act at 5s  stop", f"{bar} one", f"{bar}     10s  did  everything", bar]


def test_lines_in_a_pipe_are_whole_and_end_where_they_end(capsys: pytest.CaptureFixture[str]) -> None:
    say(cell("x" * 1_500), columns(("a", "b"), [("1" * 300, "2"), ("3", "4" * 300)]), Framed("y " * 900, "t", ""))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "x" * 1_500
    assert [len(line.split()) for line in lines[1:4]] == [2, 2, 2]
    assert lines[5].split() == ["|", *("y" * 900)]
    assert len(lines) == 6
    assert not any(line.endswith(" ") for line in lines)
    assert PIPED < 1_500


def test_one_event_is_one() -> None:
    assert verified("a", Verified(events=1, whole=True)) == "a: 1 event replayed to its end, all equal"
    many = verified("a", Verified(events=1_200, whole=False))
    assert many == "a: 1,200 events replayed as far as the record reaches (the run is not finished), all equal"
