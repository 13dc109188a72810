"""The frozen cast: keyed draws, personas, secrets, and the way into the record and back."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.record.schema import CastRow
from sim.scenarios.cast import Frozen, cast_hash, freeze, rows, thaw
from sim.scenarios.located import ScenarioError
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.streams import Streams

HERE = Path(__file__).parent
TEXT = """\
name: tiny
seed: 7
clock: {tick: 1s, until: 2h}
world: {use: "./tiny_society.py:Tiny"}
models: {small: {engine: synthetic, context: 2048}}
cast:
  - name: buyer
    count: 3
    agent: ./tiny_society.py:Fixed
    model: small
    role: buyer
    private: {value: "uniform(80, 120)", nested: [{cost: "integer(1, 1000000)"}], wait: 1m, word: plain, n: 3}
    public: {town: "uniform(1, 2)"}
    secrets:
      - {attribute: limit, value: {private: value}, norms: [{to: seller, purpose: trade}], audience: ["#friends"]}
      - {attribute: illness, value: "choice(flu, none at all)", subject: somebody}
      - {attribute: habit, value: 20s}
  - {name: seller, agent: ./tiny_society.py:Fixed, private: {cost: "normal(10, 2)"}, think: 5s}
interventions:
  - {at: 1h, do: join, entry: {name: late, agent: ./tiny_society.py:Fixed, private: {value: "uniform(0, 1)"}}}
"""
PEOPLE = "".join(f"- {{id: p{number}, name: P{number}, goals: [win]}}\n" for number in range(6))


def scenario(*overrides: str, base: Path = HERE, text: str = TEXT) -> Scenario:
    return loads(text, base, overrides=overrides)


def by_id(table: list[Frozen]) -> dict[str, Frozen]:
    return {frozen.member.seat.agent: frozen for frozen in table}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tiny_society.py").write_text((HERE / "tiny_society.py").read_text())
    (tmp_path / "people.yaml").write_text(PEOPLE)
    return tmp_path


# --- who is in it -------------------------------------------------------------------------------


def test_the_cast_stands_in_order_joiners_last() -> None:
    (table,) = freeze(scenario())
    assert [(each.place, each.member.seat.agent, each.entry, each.joined) for each in table] == [
        (0, "buyer-1", "buyer", 0),
        (1, "buyer-2", "buyer", 0),
        (2, "buyer-3", "buyer", 0),
        (3, "seller", "seller", 0),
        (4, "late", "late", 3600),
    ]
    assert [each.think for each in table] == ["1", "1", "1", "5s", "1"]


def test_a_member_is_what_the_entry_says() -> None:
    buyer = freeze(scenario())[0][0].member
    assert (buyer.seat.role, buyer.model, buyer.context) == ("buyer", "small", 2048)
    assert 80 <= buyer.seat.private["value"] < 120
    assert buyer.seat.private["wait"] == 60
    assert (buyer.seat.private["word"], buyer.seat.private["n"]) == ("plain", 3)
    assert buyer.seat.public == {"town": "uniform(1, 2)"}
    assert freeze(scenario())[0][3].member.context == 4096


def test_draws_are_those_of_the_streams() -> None:
    buyer = by_id(freeze(scenario())[0])["buyer-2"].member.seat.private
    streams = Streams(7).sub("cast", "buyer-2")
    assert buyer["value"] == 80 + 40 * streams.draw("private", "value")
    assert buyer["nested"][0]["cost"] == 1 + int(streams.draw("private", "nested", 0, "cost") * 1_000_000)


def test_secrets_are_texts_of_their_holder() -> None:
    member = by_id(freeze(scenario())[0])["buyer-1"].member
    limit, illness, habit = member.secrets
    assert limit.value == f"{member.seat.private['value']:.6g}"
    assert (limit.subject, limit.holder) == ("buyer-1", "buyer-1")
    assert limit.norms == ({"to": "seller", "purpose": "trade"}, {"to": "#friends"})
    assert illness.value in ("flu", "none at all")
    assert (illness.subject, illness.holder, illness.norms) == ("somebody", "buyer-1", ())
    assert habit.value == "20s"


def test_secrets_have_other_forms_and_a_severity() -> None:
    spelled = "{attribute: a, value: 84500, forms: [84.5k, eighty], severity: 4}"
    cast = freeze(scenario(f"cast.buyer.secrets=[{spelled}, {{attribute: b, value: c}}]"))
    one, other = cast[0][0].member.secrets
    assert (one.forms, one.severity, other.forms, other.severity) == (("84.5k", "eighty"), 4, (), 1)
    assert thaw(rows(cast), scenario())[0][0].member.secrets == (one, other)


def test_a_secret_has_a_tolerance_and_a_prior_range() -> None:
    """Of 84500 half of a percent is 422.5; a share is one of what was drawn."""
    spelled = "{attribute: a, value: 84500, tolerance: 0.5%, prior: [0, 200000]}"
    drawn = "{attribute: b, value: 'integer(200, 200)', tolerance: 1%}, {attribute: c, value: 2024-05-03, tolerance: 2}"
    cast = freeze(scenario(f"cast.buyer.secrets=[{spelled}, {drawn}]"))
    one, other, day = cast[0][0].member.secrets
    assert (one.tolerance, one.prior, other.tolerance, other.prior, day.tolerance) == (422.5, (0, 200000), 2, None, 2)
    assert thaw(rows(cast), scenario())[0][0].member.secrets == (one, other, day)


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("value: lupus, tolerance: 1", "tolerance: 'lupus' has none; it goes with a value that is a number"),
        ("value: 84.5k, tolerance: 5%", "tolerance: '5%' of '84.5k' is nothing"),
        ("value: 100, tolerance: 26%", "tolerance: 26 is too much; expected at most 25% of 100"),
        ("value: '2024-05-03', prior: [1, 2]", "prior: '2024-05-03' has none"),
        ("value: 100, prior: [110, 200]", "prior: [110.0, 200.0] does not hold the value 100"),
        ("value: 100, prior: [90, 110], tolerance: 10", "prior: [90.0, 110.0] is no wider than the tolerance"),
        ("value: {private: n}, prior: [5, 4]", "prior: [5.0, 4.0] does not hold the value 3"),
    ],
)
def test_a_tolerance_that_will_not_do_is_told(secret: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(f"cast.buyer.secrets.0.{told.split(': ')[0]}")) as error:
        freeze(scenario(f"cast.buyer.secrets=[{{attribute: a, {secret}}}]"))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("value", "text"), [("3", "3"), ("2.50", "2.5"), ("'integer(4, 4)'", "4"), ("{private: n}", "3")]
)
def test_secrets_of_numbers_are_written_plainly(value: str, text: str) -> None:
    cast = freeze(scenario(f"cast.buyer.secrets=[{{attribute: a, value: {value}}}]"))
    assert cast[0][0].member.secrets[0].value == text


# --- draws are keyed ----------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(count=st.integers(2, 12), more=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_one_agent_more_changes_nobody_else(count: int, more: int, seed: int) -> None:
    few = by_id(freeze(scenario(f"cast.buyer.count={count}", f"seed={seed}"))[0])
    many = by_id(freeze(scenario(f"cast.buyer.count={count + more}", f"seed={seed}"))[0])
    assert {agent: frozen.member for agent, frozen in few.items()}.items() <= {
        agent: frozen.member for agent, frozen in many.items()
    }.items()


def test_a_new_entry_in_front_and_a_new_private_value_change_no_draw() -> None:
    before = by_id(freeze(scenario())[0])
    text = TEXT.replace(
        "cast:\n", "cast:\n  - {name: idle, agent: ./tiny_society.py:Fixed, private: {v: 'uniform(0, 1)'}}\n"
    )
    after = by_id(freeze(scenario("cast.buyer.private.extra='uniform(0, 1)'", text=text))[0])
    for agent, frozen in before.items():
        assert frozen.member.seat.private.items() <= after[agent].member.seat.private.items()
        assert frozen.member.secrets == after[agent].member.secrets


def test_seeds_agents_keys_and_tables_have_luck_of_their_own() -> None:
    first, second = freeze(scenario("tables=2"))
    other = freeze(scenario("seed=8"))[0]
    values = [frozen.member.seat.private["value"] for table in (first, second, other) for frozen in table[:3]]
    assert len(set(values)) == len(values)


def test_more_tables_change_no_table() -> None:
    assert freeze(scenario())[0] == freeze(scenario("tables=3"))[0]
    assert freeze(scenario("tables=2"))[1] == freeze(scenario("tables=3"))[1]


# --- personas -------------------------------------------------------------------------------------


def personas(table: list[Frozen]) -> dict[str, str]:
    return {frozen.member.seat.agent: str(frozen.member.persona.get("id", "")) for frozen in table}


def test_sampled_personas_are_others_for_each_agent_and_the_same_at_each_table(home: Path) -> None:
    sampled = ("cast.buyer.persona={sample: people.yaml}", "cast.seller.persona={sample: people.yaml}")
    first, second = freeze(scenario(*sampled, "tables=2", base=home))
    dealt = personas(first)
    assert len({dealt[agent] for agent in ("buyer-1", "buyer-2", "buyer-3", "seller")}) == 4
    assert dealt["late"] == ""
    assert personas(second) == dealt
    assert first[0].member.persona["goals"] == ["win"]


def test_a_larger_entry_keeps_the_personas_of_its_earlier_members(home: Path) -> None:
    sampled = "cast.buyer.persona={sample: people.yaml}"
    few = personas(freeze(scenario(sampled, base=home))[0])
    many = personas(freeze(scenario(sampled, "cast.buyer.count=14", base=home))[0])
    assert few.items() <= many.items()
    for cycle in (range(1, 7), range(7, 13)):
        assert len({many[f"buyer-{number}"] for number in cycle}) == 6


def test_a_persona_is_picked_by_id_or_written_inline(home: Path) -> None:
    picked, inline = "cast.buyer.persona={file: people.yaml, id: p4}", "cast.seller.persona={name: Sue, age: 30}"
    table = by_id(freeze(scenario(picked, inline, base=home))[0])
    assert table["buyer-1"].member.persona == {"id": "p4", "name": "P4", "goals": ["win"]}
    assert table["seller"].member.persona == {"name": "Sue", "age": 30}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{sample: peple.yaml}", "cast.buyer.persona.sample: no file 'peple.yaml' in"),
        ("{file: peple.yaml, id: a}", "cast.buyer.persona.file: no file 'peple.yaml' in"),
        ("{file: people.yaml, id: q4}", "cast.buyer.persona.id: people.yaml has no persona 'q4'; choose one of p0, p1"),
        ("{sample: broken.jsonl}", "broken.jsonl:2: 1.age: -4 is wrong; expected at least 0"),
    ],
)
def test_a_missing_or_wrong_persona_is_one_line(home: Path, spec: str, message: str) -> None:
    (home / "broken.jsonl").write_text('{"id": "a"}\n{"id": "b", "age": -4}\n')
    with pytest.raises(ScenarioError) as caught:
        freeze(scenario(f"cast.buyer.persona={spec}", base=home))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# --- into the record and back ---------------------------------------------------------------------


def test_rows_have_the_columns_of_the_record() -> None:
    assert list(CastRow.model_fields) == [
        *("tbl", "place", "agent", "role", "private", "public", "persona", "secrets", "model", "think"),
        *("joined", "past"),
    ]
    for row in rows(freeze(scenario())):
        assert len(row) == len(CastRow.model_fields)
        assert [type(value) for value in row] == [int, int, *[str] * 8, int, str]


def test_a_stored_cast_comes_back_the_same_without_the_files(home: Path) -> None:
    read = scenario("cast.buyer.persona={sample: people.yaml}", "tables=2", base=home)
    frozen = freeze(read)
    stored = rows(frozen)
    (home / "people.yaml").unlink()
    again = thaw(reversed(stored), loads(TEXT, home, overrides=["tables=2"]))
    assert again == frozen
    assert list(again[0][0].member.seat.private) == list(frozen[0][0].member.seat.private)
    assert cast_hash(again) == cast_hash(frozen)


def test_the_hash_follows_the_cast() -> None:
    hashes = {
        cast_hash(freeze(scenario(*overrides)))
        for overrides in ((), ("seed=8",), ("tables=2",), ("cast.seller.think=6s",), ("cast.seller.role=x",))
    }
    assert len(hashes) == 5
    assert cast_hash(freeze(scenario())) in hashes


def test_a_stored_cast_of_another_scenario_is_refused() -> None:
    stored = rows(freeze(scenario("tables=2")))
    for overrides, what in (
        (("cast.buyer.count=2",), "whom this scenario does not name"),
        (("cast.buyer.count=4", "tables=2"), "the stored cast lacks 'buyer-4' at table 0"),
        ((), "has 'buyer-1' at table 1"),
    ):
        with pytest.raises(ScenarioError, match=what):
            thaw(stored, scenario(*overrides))
