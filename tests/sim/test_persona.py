"""Personas: what a file may hold, how a wrong one is named, and how they are dealt."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenarios.located import ScenarioError
from sim.scenarios.persona import Deck, Persona, read
from sim.streams import Streams

ANNA = """\
- id: anna
  name: Anna
  age: 41
  occupation: baker
  big_five: {openness: 0.7, conscientiousness: 1, extraversion: 0, agreeableness: 0.5, neuroticism: 0.2}
  demographics: {country: NO, income: 3}
  goals: [sell bread, sleep]
  style: short sentences
  background: Grew up by the sea.
- {id: bo}
"""


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def refusal(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


def test_a_yaml_list_is_read(tmp_path: Path) -> None:
    anna, bo = read(write(tmp_path, "p.yaml", ANNA))
    assert (anna.name, anna.age, anna.goals) == ("Anna", 41, ("sell bread", "sleep"))
    assert anna.big_five is not None
    assert anna.big_five.conscientiousness == 1.0
    assert anna.demographics == {"country": "NO", "income": 3}
    assert bo == Persona(id="bo")


def test_jsonl_is_the_same(tmp_path: Path) -> None:
    people = read(write(tmp_path, "p.yaml", ANNA))
    lines = "\n".join(orjson.dumps(each.model_dump(exclude_defaults=True)).decode() for each in people)
    assert read(write(tmp_path, "p.jsonl", "\ufeff" + lines + "\n\n")) == people


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.yaml", "", ": holds no list of personas; write one, each entry with an id"),
        ("p.yaml", "id: a", ":1: holds no list of personas; write one, each entry with an id"),
        ("p.yaml", "[]", ":1: holds no list of personas; write one, each entry with an id"),
        ("p.yaml", "- {id: a}\n- {name: B}", ":2: B: has no id; every persona of a file needs one of its own"),
        ("p.yaml", "- id: a\n- id: a", ":2: 1.id: 'a' is another entry's id; every persona needs its own"),
        ("p.yaml", "- id: a\n  nam: b", ":2: 0.nam: unknown key; did you mean name?"),
        ("p.yaml", "- id: a\n  age: old", ":2: 0.age: 'old' is wrong; expected a whole number"),
        ("p.yaml", "- id: a\n  goals: all", ":2: 0.goals: 'all' is wrong; expected a list"),
        ("p.yaml", "- id: 3", ":1: 0.id: 3 is wrong; expected a text"),
        ("p.yaml", "- 3", ":1: 0: 3 is wrong; expected a mapping"),
        ("p.yaml", "- id: a\n  demographics: {x: [1]}", ":2: 0.demographics.x: [1] is wrong; expected a text"),
        ("p.jsonl", '{"id": "a"}\n\n{"id": "b", "age": -1}', ":3: 1.age: -1 is wrong; expected at least 0"),
        ("p.csv", "id\na", ": is no persona file; its name must end in .yaml, .yml or .jsonl"),
    ],
)
def test_a_wrong_file_is_named_with_line_and_entry(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert refusal(write(tmp_path, name, text)) == message


def test_lines_that_are_no_json_are_named(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, "p.jsonl", '{"id": "a"}\n{"id": NaN}')).startswith(":2: not JSON (")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml") == ": no such file"
    (tmp_path / "latin.yaml").write_bytes(b"- id: caf\xe9")
    assert "cannot be read as a UTF-8 text" in refusal(tmp_path / "latin.yaml")


@pytest.mark.parametrize("share", ["1.1", "-0.1", "'0.5'", "true", ".nan"])
def test_big_five_are_shares(tmp_path: Path, share: str) -> None:
    others = "conscientiousness: 0, extraversion: 0, agreeableness: 0, neuroticism: 0"
    message = refusal(write(tmp_path, "p.yaml", f"- id: a\n  big_five: {{openness: {share}, {others}}}"))
    assert message.startswith(":2: 0.big_five.openness: ")


def test_big_five_are_given_all_or_none(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "p.yaml", "- id: a\n  big_five: {openness: 0.5}"))
    assert message == ":2: 0.big_five.conscientiousness: missing; this key is required"


# --- dealing --------------------------------------------------------------------------------------


def people(count: int) -> list[Persona]:
    return [Persona(id=f"p{number}") for number in range(count)]


def dealt(size: int, agents: list[str], seed: int = 1) -> dict[str, str]:
    deck = Deck(people(size), Streams(seed))
    return {agent: deck.deal(agent).id for agent in agents}


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 30), count=st.integers(1, 70), seed=st.integers(0, 1000))
def test_nobody_is_dealt_twice_before_all_are_dealt(size: int, count: int, seed: int) -> None:
    names = list(dealt(size, [f"a-{number}" for number in range(count)], seed).values())
    for start in range(0, count, size):
        hand = names[start : start + size]
        assert len(set(hand)) == len(hand)


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 30), count=st.integers(1, 40), more=st.integers(1, 10), seed=st.integers(0, 1000))
def test_more_agents_at_the_end_change_nobody_before_them(size: int, count: int, more: int, seed: int) -> None:
    agents = [f"a-{number}" for number in range(count + more)]
    few = dealt(size, agents[:count], seed)
    assert few.items() <= dealt(size, agents, seed).items()


def test_one_agent_more_in_front_changes_few_of_the_others() -> None:
    agents = [f"a-{number}" for number in range(20)]
    before, after = dealt(200, agents), dealt(200, ["new", *agents])
    assert sum(before[agent] != after[agent] for agent in agents) <= 3


def test_every_persona_is_as_likely() -> None:
    counts = [0] * 5
    for seed in range(1000):
        counts[int(dealt(5, ["a"], seed)["a"][1])] += 1
    assert sum((count - 200) ** 2 / 200 for count in counts) < 18.47  # chi-square, 4 degrees of freedom, p = 0.001
