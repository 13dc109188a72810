"""Trees of small worlds, and language-model agents as tables: prompts of play, probabilities of what is sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from math import log
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agents.engines.encoding import Encoder
from agents.engines.torch import TorchEngine
from agents.llm import LLMAgent
from agents.scripted import RandomLegal
from sim.scenarios.scenario import loads
from sim.simulate import player, simulate
from sim.types import Choice, Logprobs, Member, Message, Request, Sampling, Seat, Text, Tokens, Turn
from training.constraint import choice_masks
from training.extensive import CHANCE, END, Tree, TreeError, tree
from training.tabulate import TabulateError, asked, from_engine, from_model, questions, tabulate
from worlds.games.matrix import Matrix
from worlds.games.openspiel import OpenSpielGame, OpenSpielParams
from worlds.games.openspiel_strategies import KUHN_BETS
from worlds.games.settings import MatrixParams

KUHN = """
name: kuhn
tables: 2
clock: {tick: 1s, until: 2h}
world: {use: "worlds.games.openspiel:OpenSpielGame", game: kuhn_poker}
models:
  small: {engine: synthetic, model: any}
cast:
  - {name: player, count: 2, agent: "agents.llm:LLMAgent", model: small, with: {memory_tokens: 0}}
"""
MASKS = choice_masks(lambda text: [ord(char) for char in text], 0)


def spiel(game: str, **settings: Any) -> OpenSpielGame:
    return OpenSpielGame(OpenSpielParams(game=game, **settings))


def cast(*agents: str) -> list[Seat]:
    return [Seat(agent=agent) for agent in agents or ("ann", "bob")]


def minds(memory_tokens: int | None = 0) -> list[LLMAgent]:
    return [LLMAgent(Member(seat=seat, model="small"), memory_tokens=memory_tokens) for seat in cast()]


@pytest.fixture(scope="module")
def kuhn() -> Tree:
    return tree(spiel("kuhn_poker"), cast())


# --- trees ------------------------------------------------------------------------------------------


def test_kuhn_has_its_twelve_information_states(kuhn: Tree) -> None:
    assert set(kuhn.options) == set(KUHN_BETS)
    assert set(kuhn.options.values()) == {("pass", "bet")}
    assert [kuhn.owner[key] for key in ("0:0", "1:2b")] == [0, 1]
    assert kuhn.before["0:1pb"] == ("0:1", 0)
    assert kuhn.before["1:1b"] is None
    assert {len(turns) for turns in kuhn.turns.values()} == {2}
    assert sum(node.seat == END for node in kuhn.nodes) == 6 * 5
    assert all(sum(node.payoffs) == 0 for node in kuhn.nodes if node.seat == END)
    assert kuhn.nodes[0].seat == CHANCE
    assert all(child > at for at, node in enumerate(kuhn.nodes) for child in node.children)


def test_simultaneous_moves_follow_each_other_unseen() -> None:
    found = tree(Matrix(MatrixParams(game="pd")), cast())
    assert [node.key for node in found.nodes if node.key] == ["0:", "1:", "1:"]
    assert [node.payoffs for node in found.nodes if node.payoffs] == [(3, 3), (0, 5), (5, 0), (1, 1)]


def test_rounds_add_up() -> None:
    found = tree(Matrix(MatrixParams(game="pd", rounds=2)), cast())
    assert found.before["1:0,1"] == ("1:", 1)
    assert max(node.payoffs for node in found.nodes if node.payoffs) == (10, 0)
    assert len(found.options) == 2 * (1 + 4)


def test_openspiel_s_simultaneous_games_too() -> None:
    found = tree(spiel("goofspiel(num_cards=3,imp_info=True)"), cast())
    assert sum(node.seat == END for node in found.nodes) > 100


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (Matrix(MatrixParams(game="pd", rounds=5)), "has no key"),
        (Matrix(MatrixParams(game="pd", continuation=0.5)), "can't be enumerated"),
        (Matrix(MatrixParams(game="pd", talk="restricted")), "has no key"),
        (spiel("kuhn_poker", hands=2), "set world.hands to 1"),
        (spiel("tic_tac_toe"), "more than 1000 nodes"),
    ],
)
def test_what_has_no_small_tree_is_refused(world: Any, reason: str) -> None:
    with pytest.raises(TreeError, match=reason):
        tree(world, cast(), largest=1000)


class Forgetful(Matrix):
    """Its key leaves out what was played."""

    def observe(self, now: int, agent: str) -> Turn | None:
        turn = super().observe(now, agent)
        return turn and replace(turn, key=f"{turn.view['me']}:{turn.view['round']}")


def test_imperfect_recall_is_refused() -> None:
    with pytest.raises(TreeError, match="'1:2' differs"):
        tree(Forgetful(MatrixParams(game="pd", rounds=2)), cast())


# --- prompts ----------------------------------------------------------------------------------------


def test_prompts_are_those_of_play() -> None:
    """What a run asks of its models is in the table of questions, under the same key."""
    scenario = loads(KUHN, Path())
    known = {request.messages for request in questions(scenario).asked.values()}
    heard: list[Request] = []

    class Listening(Known):
        def submit(self, request: Request) -> Future[Any]:
            heard.append(request)
            return super().submit(request)

    names = dict(zip(("ann", "bob"), ("player-1", "player-2"), strict=True))
    for seed in range(20):
        agents = [player(mind, mind.member) for mind in minds()]
        simulate(spiel("kuhn_poker"), agents, seed=seed, engines={"small": Listening()})
    assert len(heard) > 40
    assert {_renamed(request.messages, names) for request in heard} <= known


def _renamed(messages: tuple[Message, ...], names: dict[str, str]) -> tuple[Message, ...]:
    for old, new in names.items():
        messages = tuple(
            replace(each, text=each.text.replace(f"You are {old}.", f"You are {new}.")) for each in messages
        )
    return messages


def test_scripted_seats_are_asked_nothing(kuhn: Tree) -> None:
    mind = minds()[0]
    found = asked(kuhn, [mind, RandomLegal(Member(seat=cast()[1]))])
    assert set(found) == {key for key, seat in kuhn.owner.items() if seat == 0}


def test_an_agent_with_memory_is_refused(kuhn: Tree) -> None:
    with pytest.raises(TabulateError, match="set memory_tokens to 0"):
        asked(kuhn, minds(memory_tokens=None))
    moody = [LLMAgent(mind.member, memory_tokens=0, emotion={"start": "anger"}) for mind in minds()]
    with pytest.raises(TabulateError, match="has an emotion"):
        asked(kuhn, moody)


class Leaking(OpenSpielGame):
    """Shows how many cards could still be where, by mistake the other's."""

    def observe(self, now: int, agent: str) -> Turn | None:
        turn = super().observe(now, agent)
        hidden = self.state()["history"][1]
        return turn and replace(turn, rules=f"{turn.rules} {hidden}")


def test_a_prompt_that_tells_more_than_the_information_state_is_refused() -> None:
    leaking = tree(Leaking(OpenSpielParams(game="kuhn_poker")), cast())
    with pytest.raises(TabulateError, match="information state '0:0' gives different prompts"):
        asked(leaking, minds())


class Pondering(LLMAgent):
    """Thinks aloud before it chooses."""

    def act(self, turn: Turn, streams: Any) -> Any:
        yield (Request(messages=(), format=Text()),)


def test_an_agent_that_is_asked_something_else_first_is_refused(kuhn: Tree) -> None:
    agents = [Pondering(mind.member, memory_tokens=0) for mind in minds()]
    with pytest.raises(TabulateError, match="something else before it chooses in '0:0'"):
        asked(kuhn, agents)


# --- probabilities ----------------------------------------------------------------------------------


class Known:
    """Bets with a probability that its prompt decides, or by the temperature; draws by the request's seed."""

    def __init__(self, lost: float = 0.0) -> None:
        self._lost = lost
        self.scored: list[Request] = []

    def bet(self, request: Request) -> float:
        share = {"jack": 0.25, "queen": 0.5, "king": 0.75}[
            request.messages[-1].text.split("Your card is the ")[1].split(".")[0]
        ]
        return share if request.sampling.temperature == 1 else 0.5

    def submit(self, request: Request) -> Future[Any]:
        from sim.types import Completion

        future: Future[Any] = Future()
        future.set_result(Completion(text="bet" if request.seed % 1000 < 1000 * self.bet(request) else "pass"))
        return future

    def score(self, requests: Sequence[Request], continuations: Sequence[Tokens]) -> Future[Sequence[Logprobs]]:
        self.scored += requests
        future: Future[Sequence[Logprobs]] = Future()
        scores = []
        for request, ids in zip(requests, continuations, strict=True):
            bet = self.bet(request)
            share = bet if ids == MASKS(("pass", "bet")).sequences[1] else 1 - bet - self._lost
            scores.append((log(share), *(0.0,) * (len(ids) - 1)))
        future.set_result(scores)
        return future

    def close(self) -> None:
        pass


def test_probabilities_are_those_of_the_engine() -> None:
    ready = questions(loads(KUHN, Path()))
    found = tabulate(ready.asked, from_engine(Known(), MASKS, temperature=1.0))
    assert set(found) == set(KUHN_BETS)
    for key, row in found.items():
        assert row["bet"] == pytest.approx((0.25, 0.5, 0.75)[int(key[2])])
        assert sum(row.values()) == pytest.approx(1)
    warm = tabulate(ready.asked, from_engine(Known(), MASKS, temperature=2.0))
    assert {row["bet"] for row in warm.values()} == {0.5}


def test_the_policy_is_named_and_equal_questions_are_read_once() -> None:
    known = Known()
    request = Request(
        messages=(Message(role="user", text="Your card is the jack."),), format=Choice(options=("pass", "bet"))
    )
    found = tabulate({"a": request, "b": request}, from_engine(known, MASKS, 1.0, policy="one@3"))
    assert found["a"] == found["b"]
    assert [each.policy for each in known.scored] == ["one@3"] * 2


def test_options_that_lack_probability_are_an_error() -> None:
    ready = questions(loads(KUHN, Path()))
    with pytest.raises(TabulateError, match=r"have probability 0\.9000 together"):
        tabulate(ready.asked, from_engine(Known(lost=0.1), MASKS, 1.0))


def test_greedy_decoding_has_no_probabilities() -> None:
    with pytest.raises(TabulateError, match="temperature 0"):
        from_engine(Known(), MASKS, 0.0)


@pytest.fixture(scope="module")
def engine(tiny_folder: Path, one_thread: None) -> Iterator[TorchEngine]:
    made = TorchEngine(str(tiny_folder), max_model_len=1024, threads=1)
    yield made
    made.close()


def test_a_tiny_model_plays_as_its_table_says(engine: TorchEngine, kuhn: Tree) -> None:
    found = tabulate(asked(kuhn, minds()), from_engine(engine, engine.mask, temperature=0.5))
    counts: dict[str, Counter[str]] = {key: Counter() for key in found}

    class Counting(OpenSpielGame):
        def step(self, now: int, actions: Sequence[Any]) -> Any:
            for action in actions:
                turn = self.observe(now, action.agent)
                assert turn is not None
                assert turn.key is not None
                counts[turn.key][action.answer] += 1
            return super().step(now, actions)

    world = Counting(OpenSpielParams(game="kuhn_poker"))
    sampling = Sampling(temperature=0.5)
    for seed in range(1000):
        agents = [player(mind, mind.member) for mind in minds()]
        simulate(world, agents, seed=seed, engines={"small": engine}, sampling=sampling, record=False)
    assert sum(seen.total() > 30 for seen in counts.values()) >= 9
    for key, seen in counts.items():
        n, share = seen.total(), found[key]["bet"]
        assert abs(seen["bet"] - n * share) <= 4 * (n * share * (1 - share)) ** 0.5 + 1, key


def test_engine_and_trainer_read_the_same_table(engine: TorchEngine, tiny_folder: Path, kuhn: Tree) -> None:
    from training.policy import Base

    base = Base(str(tiny_folder))
    encoder = Encoder(base.tokenizer, "tiny", 1024)
    ready = asked(kuhn, minds())
    with base.plain() as model:
        here = tabulate(ready, from_model(model, encoder.prompt, encoder.mask, temperature=0.5))
    there = tabulate(ready, from_engine(engine, engine.mask, temperature=0.5))
    for key, row in here.items():
        assert row == pytest.approx(there[key], abs=1e-5)
    assert len({row["bet"] for row in here.values()}) > 6
