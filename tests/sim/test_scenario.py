"""Scenario files: what is read, what is refused and how, overrides, and the way back to text."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenarios.binding import agents_named, bind, singular
from sim.scenarios.located import ScenarioError
from sim.scenarios.scenario import dump, json_schema, load, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.strict import known_keys
from sim.scenarios.yaml_text import read_yaml, write_yaml
from sim.voices import Pool

HERE = Path(__file__).parent
QUICK = settings(max_examples=40, deadline=None)

TEXT = """\
name: tiny
seed: 7
clock: {tick: 1s, until: 2h}
world:
  use: ./tiny_society.py:Tiny
  period: 10m
  fee: {share: 0.5}
models:
  small: {engine: synthetic, model: none, temperature: 0.5, slots: 3}
cast:
  - name: buyer
    count: 3
    agent: ./tiny_society.py:Fixed
    model: small
    role: buyer
    private: {value: "uniform(80, 120)"}
    think: lognormal(20s, 0.5)
  - {name: seller, agent: ./tiny_society.py:Fixed, with: {answer: "no"}, think: 5s}
interventions:
  - {at: 1h, do: say, text: A frost., to: all}
measure: [./tiny_society.py:nothing]
stop: {after: 40 trades}
"""


def scenario(*overrides: str, text: str = TEXT) -> Scenario:
    return loads(text, HERE, overrides=overrides)


def refusal(*overrides: str, text: str = TEXT) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(*overrides, text=text)
    message = str(caught.value)
    assert "\n" not in message
    return message


def taken_or_refused(text: str) -> bool:
    """Whether a text is a scenario, or refused in one line that names the file."""
    try:
        loads(text, HERE)
    except ScenarioError as error:
        return str(error).startswith("scenario.yaml") and "\n" not in str(error)
    return True


# --- reading ----------------------------------------------------------------------------------


def test_every_key_is_read() -> None:
    read = scenario()
    assert (read.name, read.seed, read.clock.tick_ms, read.clock.until) == ("tiny", 7, 1000.0, "2h")
    assert read.world.params == {"period": "10m", "fee": {"share": 0.5}}
    assert read.models["small"].sampling.temperature == 0.5
    assert read.models["small"].settings == {"slots": 3}
    assert read.models["small"].engine_path == "agents.engines.synthetic:SyntheticEngine"
    assert read.cast[0].agents == ["buyer-1", "buyer-2", "buyer-3"]
    assert read.cast[1].agents == ["seller"]
    assert read.cast[1].settings == {"answer": "no"}
    assert (read.tables, read.record.durable) == (1, "normal")
    assert read.source == TEXT
    assert read.base == HERE


def test_names_and_durations_are_bound() -> None:
    bound = bind(scenario())
    assert bound.until == 7200
    assert bound.params.model_dump()["period"] == 600
    assert dict(bound.stops) == {"trade": 40, "trades": 40}
    assert [metric.__name__ for metric in bound.metrics] == ["answers_given", "nothing"]
    assert bound.thinks["seller"].ticks(0.5) == 5


def test_ticks_follow_the_clock() -> None:
    bound = bind(scenario("clock.tick=100ms"))
    assert bound.until == 72_000
    assert bound.params.model_dump()["period"] == 6_000
    assert bound.thinks["seller"].ticks(0.5) == 50


def test_a_scenario_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "tiny_society.py").write_text((HERE / "tiny_society.py").read_text())
    (tmp_path / "a.yaml").write_text("\ufeff" + TEXT, encoding="utf-8")
    assert load(tmp_path / "a.yaml").base == tmp_path
    assert load(str(tmp_path / "a.yaml"), ["seed=9"]).seed == 9


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    for path, what in (("none.yaml", "no such file"), ("latin.yaml", "UTF-8"), (".", "cannot be read")):
        with pytest.raises(ScenarioError, match=what):
            load(tmp_path / path)


def test_a_metric_of_the_world_is_taken_once() -> None:
    bound = bind(scenario("measure=['./tiny_society.py:answers_given']"))
    assert len(bound.metrics) == 1


@pytest.mark.parametrize(
    ("word", "one"),
    [
        ("trades", "trade"),
        ("votes", "vote"),
        ("replies", "reply"),
        ("matches", "match"),
        ("responses", "response"),
        ("passes", "pass"),
        ("prices", "price"),
        ("pass", "pass"),
        ("deal", "deal"),
    ],
)
def test_stop_rules_count_the_singular_kind(word: str, one: str) -> None:
    assert singular(word) == one


def test_of_several_stop_rules_the_smaller_number_of_a_kind_counts() -> None:
    assert dict(bind(scenario("stop.after=[40 trades, 3 deals, 9 trade]")).stops) == {
        "trade": 9,
        "trades": 40,
        "deal": 3,
        "deals": 3,
    }


def test_names_stand_for_agents() -> None:
    read = scenario()
    assert agents_named(read, "buyer") == ["buyer-1", "buyer-2", "buyer-3"]
    assert agents_named(read, "buyer-2") == ["buyer-2"]
    assert agents_named(read, "seller") == ["seller"]
    for nobody in ("buyer-0", "buyer-4", "buyer-02", "seller-1", "buyer-", "", "buyer-²", "buyer-" + "9" * 50):
        assert agents_named(read, nobody) == []


# --- refusals: unknown keys -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "key", "meant"),
    [
        ("seed: 7", "sed: 7", "sed", "seed"),
        ("until: 2h", "unti: 2h", "clock.unti", "until"),
        ("period: 10m", "perod: 10m", "world.perod", "period"),
        ("{share: 0.5}", "{shar: 0.5}", "world.fee.shar", "share"),
        ("temperature: 0.5", "temprature: 0.5", "models.small.temprature", "temperature"),
        ("slots: 3", "slot: 3", "models.small.slot", "slots"),
        ("count: 3", "cuont: 3", "cast.buyer.cuont", "count"),
        ('with: {answer: "no"}', 'with: {anwser: "no"}', "cast.seller.with.anwser", "answer"),
        ("text: A frost.", "txt: A frost.", "interventions.0.txt", "text"),
        ("{after: 40 trades}", "{aftr: 40 trades}", "stop.aftr", "after"),
    ],
)
def test_an_unknown_key_names_file_line_key_and_what_was_meant(old: str, new: str, key: str, meant: str) -> None:
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    what = "unknown setting of ./tiny_society.py:Fixed" if ".with." in key else "unknown key"
    assert refusal(text=TEXT.replace(old, new)) == f"scenario.yaml:{line}: {key}: {what}; did you mean {meant}?"


ADAPTED = "models.small={engine: vllm, model: m, policy: trader@2, adapters: {trader@2: ./a, trader@1: ./b}}"


def test_a_policy_speaks_for_the_model() -> None:
    assert scenario().models["small"].policy == ""
    read = scenario(ADAPTED)
    assert read.models["small"].policy == "trader@2"
    assert "policy" not in read.models["small"].settings
    assert loads(dump(read), HERE).models == read.models
    assert Pool(HERE).voices(read.models)["small"].policy == "trader@2"


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ("models.small.policy=trader@3", "'trader@3' is none of the model's adapters; did you mean trader@2?"),
        (
            "models.small.policy=seller@9",
            "'seller@9' is none of the model's adapters; choose one of trader@1, trader@2",
        ),
        ("models.small.adapters=null", "'trader@2' is none of the model's adapters; add its folder: adapters: {"),
        ("models.small.adapters=[trader@2]", "'trader@2' is none of the model's adapters; add its folder"),
    ],
)
def test_a_policy_is_one_of_the_adapters(change: str, hint: str) -> None:
    assert f": models.small.policy: {hint}" in refusal(ADAPTED, change)


def test_an_endpoint_may_know_policies_of_its_own() -> None:
    assert scenario("models.small={engine: openai, model: m, policy: trader@2}").models["small"].policy == "trader@2"


def test_an_unknown_key_like_no_other_lists_those_there_are() -> None:
    assert "there is only after" in refusal("stop={zzz: 1}")
    assert "choose one of tick, until" in refusal("clock.zzz=1")


def test_keys_of_a_mapping_of_models_are_known() -> None:
    assert "did you mean minimum?" in refusal("world.fees={a: {minimun: 2}}")


def test_known_keys_follow_the_branch_of_a_union() -> None:
    assert known_keys(Scenario, ["interventions", 0, "leave"]) == {"do", "at", "agent", "table"}
    assert "big_five" in known_keys(Scenario, ["cast", 0, "persona", "inline"])


# --- refusals: yaml -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("- a", "expected a mapping"),
        ("just words", "expected a mapping"),
        ("name: a\nname: b", "scenario.yaml:2: name: written twice, first on line 1"),
        ("clock:\n\ttick: 1s", "scenario.yaml:2: not YAML: a tab indents this line"),
        ("name: a: b", "scenario.yaml:1: not YAML: mapping values"),
        ("name: [a", "not YAML"),
        ("name: 'a", "not YAML"),
        ("name: \x01", "not YAML"),
        ("name: a\n---\nname: b", "a second document"),
        ("name: !!python/object/apply:os.system [echo]", "the tag"),
        ("name: !secret a", "the tag"),
        ("!!map {name: a}", "the tag"),
        ("seed: .nan", "not a finite number"),
        ("seed: -.inf", "not a finite number"),
        ("seed: 1e999", "not a finite number"),
        ("seed: " + "9" * 5000, "does not fit 64 bits"),
        ("seed: 9223372036854775808", "does not fit 64 bits"),
        ("1: 2", "cannot be a key"),
        ("[a]: 2", "cannot be a key"),
        ("null: 2", "cannot be a key"),
        ("<<: {a: 1}", "cannot be a key"),
        ("name: *nobody", "names no complete value"),
        ("name: &a [*a]", "names no complete value"),
        ("[" * 100_000, "not YAML"),
        ("x: " + "[" * 70 + "]" * 70, "nested more than"),
        ('name: "\\ud800"', "scenario.yaml:1"),
    ],
)
def test_yaml_that_cannot_be_used(text: str, what: str) -> None:
    assert what in refusal(text=text)


def test_aliases_cannot_blow_up() -> None:
    text = "a: &a0 [x, x, x, x, x, x, x, x, x]\n"
    for depth in range(9):
        text += f"b{depth}: &a{depth + 1} [{', '.join([f'*a{depth}'] * 9)}]\n"
    assert "more than 1,000,000 values" in refusal(text=text)


def test_aliases_share_nothing() -> None:
    data = read_yaml("a: &x {k: [1]}\nb: *x", "f").data
    assert data["a"] == data["b"]
    assert data["a"] is not data["b"]
    assert data["a"]["k"] is not data["b"]["k"]


def test_plain_words_follow_yaml_1_2() -> None:
    data = read_yaml("[yes, no, on, 1:30, 2024-01-01, 0x1f, 1_000, ~, true, 1e3, .5, +4, '5', nan]", "f").data
    expected = ["yes", "no", "on", "1:30", "2024-01-01", "0x1f", "1_000", None, True, 1000.0, 0.5, 4, "5", "nan"]
    assert data == expected


# --- refusals: values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("name=null", "expected a text"),
        ("name=a/b", "expected a text like"),
        ("seed=x", "expected a whole number"),
        ("seed=true", "expected a whole number"),
        ("seed=7.5", "expected a whole number"),
        ("seed=-1", "expected at least 0"),
        ("tables=0", "expected at least 1"),
        ("clock=4", "expected a mapping"),
        ("clock.tick=0s", "no length of a tick"),
        ("clock.tick=fast", "no length of a tick"),
        ("clock.tick=" + "9" * 400 + "w", "no length of a tick"),
        ("clock.until=soon", "is not a duration"),
        ("clock.until=true", "is not a duration"),
        ("clock.until=1.5", "is not a duration"),
        ("clock.until=-5", "is not a duration"),
        ("clock.until=" + "9" * 400 + "w", "too long"),
        ("clock.until=1ms", "shorter than half a tick"),
        ("world=3", "expected a mapping"),
        ("world.rounds=x", "expected a whole number"),
        ("world.rounds=0", "expected at least 1"),
        ("world.period=soon", "is not a duration"),
        ("world.period=" + "9" * 400 + "w", "world"),
        ("world.price=nan", "not a finite number"),
        ("world.fees={a: {share: nan}}", "world.fees.a.share: nan is not a finite number"),
        ("world.goods=3", "expected a list"),
        ("models.small.engine=vlm", "did you mean vllm?"),
        ("models.small.engine=3", "expected a text"),
        ("models.small.engine=nowhere.at_all:Engine", "no module nowhere"),
        ("models.small.engine=agents.engines.synthetic:Synthetic", "did you mean SyntheticEngine?"),
        ("models.small.temperature=-1", "expected at least 0"),
        ("models.small.temperature=hot", "expected a number"),
        ("models.small.top_p=0", "expected more than 0"),
        ("models.small.max_tokens=5000", "leaves no room"),
        ("models={'a b': {engine: synthetic}}", "expected a text like"),
        ("cast=[]", "expected at least 1"),
        ("cast=3", "expected a list"),
        ("cast.0=3", "expected a mapping"),
        ("cast.0.name=all", "means everybody"),
        ("cast.0.name=3", "expected a text"),
        ("cast.0.name=a b", "expected a text like"),
        ("cast.1.name=buyer", "another entry's name"),
        ("cast.1.name=buyer-2", "also the id of an agent of 'buyer'"),
        ("cast.0.count=0", "expected at least 1"),
        ("cast.0.count='3'", "expected a whole number"),
        ("cast.0.agent=Fixed", "expected a text like"),
        ("cast.0.agent=./tiny_society.py:Fixd", "did you mean Fixed?"),
        ("cast.0.agent=./tiny_society.py:number", "is no agent"),
        ("cast.0.agent=./tiny_society.py:Bare", "has no act"),
        ("cast.0.agent=./tiny_society.py:Demanding", "cast.buyer.with.tempo: missing"),
        ("cast.0.model=smal", "did you mean small?"),
        ("cast.0.private={a: 'unform(1, 2)'}", "cast.buyer.private.a: 'unform(1, 2)' is not"),
        ("cast.0.private={a: [0, {b: 'uniform(2, 1)'}]}", "cast.buyer.private.a.1.b"),
        ("cast.0.private={a: 'normal(1e999, 1)'}", "not finite"),
        ("cast.0.private={a: 'lognormal(1, 500)'}", "not finite"),
        ("cast.0.private=3", "expected a mapping"),
        ("cast.0.secrets=[{attribute: a, value: {private: valu}}]", "did you mean value?"),
        ("cast.0.secrets=[{attribute: a, value: 'uniform(2, 1)'}]", "cast.buyer.secrets.0.value"),
        ("cast.0.secrets=[{attribute: a, value: 5, tolerance: 5 %}]", "expected a number from 0, or a share"),
        ("cast.0.secrets=[{attribute: a, value: 5, tolerance: -1}]", "cast.buyer.secrets.0.tolerance: -1 is no"),
        ("cast.0.secrets=[{attribute: a, value: 5, prior: [1]}]", "cast.buyer.secrets.0.prior"),
        ("cast.0.secrets=[{value: a}]", "cast.buyer.secrets.0.attribute: missing"),
        ("cast.0.persona=3", "expected {sample: file}"),
        ("cast.0.persona={sample: a.yaml, id: b}", "unknown key"),
        ("cast.0.persona={age: -3}", "expected at least 0"),
        ("cast.0.think=often", "holds a word"),
        ("cast.0.think=true", "is not a number"),
        ("cast.0.think=-3", "can be negative"),
        ("cast.0.think='uniform(-3, 5)'", "can be negative"),
        ("cast.0.think='choice(5s, never)'", "holds a word"),
        ("cast.0.think='exponential(1e400)'", "not finite"),
        ("cast.0.think=1ms", "shorter than half a tick"),
        ("cast.0.think=" + "9" * 400 + "w", "not finite"),
        ("interventions.0.do=sing", "expected 'say', 'set', 'join', 'leave', 'act'"),
        ("interventions=[{at: 1h}]", "interventions.0.do: missing"),
        ("interventions.0.at=later", "is not a duration"),
        ("interventions.0.to=byer", "did you mean buyer?"),
        ("interventions.0.to=[seller, nobody]", "no agent has the id 'nobody'"),
        ("interventions.0.to=3", "is wrong; expected"),
        ("measure=[./tiny_society.py:nothin]", "did you mean nothing?"),
        ("measure=[./tiny_society.py:number]", "cannot be called"),
        ("measure=./tiny_society.py:nothing", "expected a list"),
        ("stop.after=many", "is no stop rule"),
        ("stop.after=0 trades", "is no stop rule"),
        ("stop.after=[3 trades, x]", "is no stop rule"),
        ("record.durable=yes", "expected 'normal' or 'power'"),
        ("world.use=worlds.marketz.nothing:X", "no module worlds.marketz"),
        ("world.use=./nowhere.py:X", "no file ./nowhere.py beside the scenario"),
        ("world.use=./tiny_society.py:Tinny", "did you mean Tiny?"),
        ("world.use=./tiny_society.py:number", "is no world"),
        ("world.use=./tiny_society.py:Bare", "no pydantic model Params"),
        ("world.use=Tiny", "expected a text like"),
    ],
)
def test_a_wrong_value_is_one_line_that_says_what_would_be_right(override: str, what: str) -> None:
    message = refusal(override)
    assert what in message
    assert "pydantic.dev" not in message
    assert len(message) < 600


def test_what_is_missing_is_said() -> None:
    assert refusal(text="name: a\ncast: []") == "scenario.yaml:1: world: missing; this key is required"
    gone = TEXT.replace("    agent: ./tiny_society.py:Fixed\n", "")
    assert "cast.buyer.agent: missing" in refusal(text=gone)


def test_a_list_that_is_too_short_is_said() -> None:
    file = HERE.parents[1] / "scenarios" / "opinions" / "opinions.yaml"
    with pytest.raises(ScenarioError, match=r"world\.ends: \['a'\] is wrong; expected more values"):
        bind(load(file, ["world.ends=[a]"]))


def test_a_run_must_have_an_end() -> None:
    endless = TEXT.replace(", until: 2h", "").replace("stop: {after: 40 trades}", "")
    message = refusal(text=endless)
    assert message.startswith("scenario.yaml:3: clock.until: missing, and nothing else stops the run")
    assert bind(scenario("clock.until=null", text=endless)).until is None
    assert bind(scenario("stop.after=3 trades", text=endless)).until is None


@pytest.mark.parametrize(
    ("overrides", "limit", "raised"),
    [
        (("cast.buyer.count=1000000000",), "limits.agents", "limits.agents=2000000000"),
        (("tables=1000000000",), "limits.tables", "limits.tables=1000000000"),
        (("tables=90000", "cast.buyer.count=100"), "limits.agents", "limits.agents=10000000"),
        (("clock.tick=1ms", "clock.until=10400w"), "limits.ticks", "limits.ticks=10000000000000"),
        (("interventions.0.at=2000000000",), "limits.ticks", "limits.ticks=2000000000"),
    ],
)
def test_absurd_sizes_are_refused_unless_the_limit_is_raised(
    overrides: tuple[str, ...], limit: str, raised: str
) -> None:
    message = refusal(*overrides)
    assert limit in message
    assert "raise" in message
    if "tables=1000000000" in overrides:
        raised_too = (raised, "limits.agents=9000000000")
        assert scenario(*overrides, *raised_too).tables == 1_000_000_000
    else:
        scenario(*overrides, raised)


def test_settings_are_checked_against_the_constructor() -> None:
    assert scenario("cast.0.agent=./tiny_society.py:Open", "cast.0.with={anything: [1]}").cast[0].settings
    assert scenario("cast.0.agent=./tiny_society.py:Demanding", "cast.0.with={tempo: 3}")
    assert "unknown setting" in refusal("cast.0.with={member: 3}")


def test_settings_of_ones_own_engine_are_checked_without_importing_it() -> None:
    models = "models={small: {engine: './tiny_society.py:Answers', model: m, speed: 3}}"
    assert scenario(models).models["small"].settings == {"speed": 3}
    assert "did you mean speed?" in refusal(models, "models.small.sped=4")


# --- overrides ----------------------------------------------------------------------------------


def test_overrides_set_values_by_key_index_and_name() -> None:
    read = scenario(
        "clock.until=1h", "cast.0.count=2", "cast.seller.count=4", "models.small.engine=synthetic", "seed=9", "seed=10"
    )
    assert (read.clock.until, read.cast[0].count, read.cast[1].count, read.seed) == ("1h", 2, 4, 10)


def test_overrides_make_mappings_that_are_not_there() -> None:
    assert scenario("record.durable=power").record.durable == "power"
    assert scenario("world.fee.minimum=3").world.params["fee"] == {"share": 0.5, "minimum": 3}
    assert scenario("cast.seller.with.notes=[a]").cast[1].settings == {"answer": "no", "notes": ["a"]}
    bare = TEXT.replace("  fee: {share: 0.5}\n", "")
    assert scenario("world.fee.minimum=3", text=bare).world.params["fee"] == {"minimum": 3}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("clock.unti=1h", "--set clock.unti=1h: clock.unti: unknown key; did you mean until?"),
        ("clok.until=1h", "--set clok.until=1h: clok: unknown key; did you mean clock?"),
        ("cast.byer.count=3", "--set cast.byer.count=3: cast: no entry is named 'byer'; did you mean buyer?"),
        ("cast.7.count=3", "--set cast.7.count=3: cast: no entry 7; the list has 2, counted from 0"),
        ("cast.buyer.cont=3", "--set cast.buyer.cont=3: cast.buyer.cont: unknown key; did you mean count?"),
        ("world.perid=3", "--set world.perid=3: world.perid: unknown key; did you mean period?"),
        ("seed.x=3", "--set seed.x=3: seed: 7 has no keys below it; there is no 'x' to set"),
        ("cast.buyer.count=[", "--set cast.buyer.count=[: not YAML: did not find expected node content"),
    ],
)
def test_a_wrong_override_is_named(override: str, message: str) -> None:
    assert refusal(override) == message


@pytest.mark.parametrize("text", ["seed", "=3", "a..b=1", "", "."])
def test_an_override_needs_a_key_and_a_value(text: str) -> None:
    assert "write key=value" in refusal(text)


def test_overrides_leave_other_places_alone() -> None:
    text = TEXT.replace("period: 10m", "period: never")
    assert refusal("world.fee={share: 1.0}", text=text).startswith("scenario.yaml:6: world.period:")
    assert "scenario.yaml" not in refusal("world.fee={share: x}")


@QUICK
@given(
    seed=st.integers(0, 2**63 - 1),
    count=st.integers(1, 50),
    until=st.integers(1, 100_000),
    temperature=st.floats(0, 10),
    role=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
)
def test_an_override_is_as_if_written(seed: int, count: int, until: int, temperature: float, role: str) -> None:
    data = read_yaml(TEXT, "f").data
    data["seed"] = seed
    data["cast"][0] |= {"count": count, "role": role}
    data["clock"]["until"] = until
    data["models"]["small"]["temperature"] = temperature
    written = loads(write_yaml(data), HERE)
    set_ = scenario(
        f"seed={seed}",
        f"cast.buyer.count={count}",
        f"cast.0.role={write_yaml(role)}",
        f"clock.until={until}",
        f"models.small.temperature={temperature!r}",
    )
    assert written.model_dump() == set_.model_dump()


# --- back to text ---------------------------------------------------------------------------------


def test_a_dump_holds_the_overrides() -> None:
    read = scenario("cast.buyer.count=5", "world.fee.minimum=2")
    again = loads(dump(read), HERE)
    assert again.model_dump() == read.model_dump()
    assert again.cast[0].count == 5
    assert dump(again) == dump(read)


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.text().filter(lambda key: key != "<<")
JSONS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(JSONS)
def test_what_is_written_is_read_back(value: object) -> None:
    assert read_yaml(write_yaml(value), "f").data == value


@pytest.mark.parametrize(
    "text", ["\x85", "a\u2028b", "\r\n", "yes", "1e3", "~", "<<", "- a", "\ufeff", "#x", "é: ü", "𝔘"]
)
def test_texts_that_yaml_could_take_for_something_else(text: str) -> None:
    assert read_yaml(write_yaml({"a": text}), "f").data == {"a": text}


@QUICK
@given(st.sampled_from(list(read_yaml(TEXT, "f").places)), JSONS)
def test_any_value_anywhere_is_taken_or_refused_in_one_line(keys: tuple[str | int, ...], value: object) -> None:
    data = read_yaml(TEXT, "f").data
    node = data
    for step in keys[:-1]:
        node = node[step]
    if keys:
        node[keys[-1]] = value
    else:
        data = value
    assert taken_or_refused(write_yaml(data))


@QUICK
@given(st.integers(0, len(TEXT) - 1), st.text(max_size=3))
def test_any_edit_of_the_text_is_taken_or_refused_in_one_line(at: int, inserted: str) -> None:
    assert taken_or_refused(TEXT[:at] + inserted + TEXT[at + 1 :])


# --- JSON Schema ------------------------------------------------------------------------------------


def test_the_json_schema_knows_every_key() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == set(Scenario.model_fields)
    entry = schema["$defs"]["CastEntry"]
    assert "with" in entry["properties"]
    assert entry["additionalProperties"] is False
    assert entry["properties"]["think"]["description"]
    assert schema["$defs"]["WorldSpec"]["additionalProperties"] is True
