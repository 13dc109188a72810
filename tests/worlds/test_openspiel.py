"""OpenSpiel games: values from theory, any play against pyspiel alone, what stays hidden, words, interventions."""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.scripted import Constant, RandomLegal
from sim.check import check_agent, check_world, turns_of
from sim.intervals import FEW
from sim.record.reader import Run
from sim.runs import create, go
from sim.samples import sample
from sim.scenarios.scenario import load as scenario_of
from sim.simulate import Simulation, player, simulate
from sim.streams import Streams
from sim.types import Action, Choice, Fact, Join, Leave, Member, Outcome, RecordedFact, Say, Seat, Set, Turn
from sim.verify import verify
from tests.worlds.playing import Played, play
from worlds.games.openspiel import OpenSpielGame, OpenSpielParams
from worlds.games.openspiel_rules import MOST, load, moved, witnesses
from worlds.games.openspiel_strategies import (
    KUHN_BETS,
    AlwaysBet,
    AlwaysPass,
    KuhnNash,
    Minimax,
    Tabular,
    best,
    kuhn,
    kuhn_nash,
    value,
)
from worlds.games.openspiel_words import NAMED, Leduc

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "games"
PLAYTHROUGHS = Path(__file__).parent / "playthroughs"
SMALL = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "liars_dice": "liars_dice",
    "tic_tac_toe": "tic_tac_toe",
    "goofspiel": "goofspiel(num_cards=4,imp_info=True)",
    "first_sealed_auction": "first_sealed_auction(max_value=4)",
}
"""The games with words of their own, as they are played here."""
LISTED = [
    "backgammon", "battleship", "blotto", "breakthrough", "bridge", "catch", "checkers", "coin_game", "connect_four",
    "coop_box_pushing", "crazy_eights", "dark_hex", "dots_and_boxes", "euchre", "gin_rummy", "hanabi", "hearts",
    "kriegspiel", "kuhn_poker(players=3)", "leduc_poker(players=3)", "markov_soccer",
    "liars_dice(numdice=2,bidding_rule=reset-quantity)", "matching_pennies_3p", "matrix_rps", "nim", "oshi_zumo",
    "othello", "phantom_ttt", "pig", "repeated_leduc_poker", "sheriff", "skat", "tiny_bridge_4p", "tiny_hanabi",
    "trade_comm", "turn_based_simultaneous_game(game=goofspiel(num_cards=3,imp_info=True))", "universal_poker",
]  # fmt: skip


class Chosen(Streams):
    """Luck by choice: the uniform of every chance node of a hand, in order."""

    __slots__ = ("_uniforms",)

    def __init__(self, uniforms: Sequence[float]) -> None:
        super().__init__(0)
        self._uniforms = uniforms

    def draw(self, *path: Any) -> float:
        return self._uniforms[path[-1]]


def names(game: str) -> list[str]:
    return [f"p{n}" for n in range(load(game).num_players())]


def fresh(game: str, luck: Streams | None = None, **params: Any) -> OpenSpielGame:
    world = OpenSpielGame(OpenSpielParams(game=game, **params))
    world.reset([Seat(agent=name) for name in names(game)], luck or Streams(1))
    return world


def seen(world: OpenSpielGame, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def options(turn: Turn) -> tuple[str, ...]:
    assert isinstance(turn.format, Choice)
    return turn.format.options


def asked(world: OpenSpielGame, game: str, now: int = 0) -> list[Turn]:
    return [turn for name in names(game) if (turn := world.observe(now, name))]


def act(turn: Turn, answer: Any) -> Action:
    return Action(answer=answer, agent=turn.agent, seen=turn.now, shows=turn.shows)


def do(world: OpenSpielGame, agent: str, answer: Any, now: int = 0) -> Outcome:
    return world.step(now, [act(seen(world, agent, now), answer)])


def match(game: str, *makers: Any, seed: int = 0, **params: Any) -> Played:
    """Games between the makers' agents, called p0, p1, …"""
    cast = [(Seat(agent=name), make) for name, make in zip(names(game), makers, strict=True)]
    return play(OpenSpielGame, cast, {"game": game, **params}, seed=seed)


def member(agent: str = "p0") -> Member:
    return Member(seat=Seat(agent=agent))


# --- theory -------------------------------------------------------------------------------------------


def expected(world: OpenSpielGame, game: str, policies: Mapping[str, Tabular]) -> float:
    """What the first player gets from here on in the mean."""
    turns = asked(world, game)
    if not turns:
        return 0.0
    [turn] = turns
    total = 0.0
    for answer, probability in policies[turn.agent].policy(turn).items():
        if probability:
            after = copy.deepcopy(world)
            got = after.step(0, [act(turn, answer)]).rewards.get("p0", 0.0)
            total += probability * (got + expected(after, game, policies))
    return total


def kuhn_value(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """The mean over all deals and all lines of play."""
    policies = {"p0": Tabular(member(), first), "p1": Tabular(member(), second)}
    deals = [(first / 6, second / 4) for first in (1, 3, 5) for second in (1, 3)]
    worlds = [fresh("kuhn_poker", Chosen(deal)) for deal in deals]
    return sum(expected(world, "kuhn_poker", policies) for world in worlds) / len(worlds)


UNIFORM = kuhn([0.5] * 12)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_kuhn_poker_is_worth_a_loss_of_an_eighteenth(alpha: float) -> None:
    assert kuhn_value(kuhn_nash(alpha), kuhn_nash(0)) == pytest.approx(-1 / 18, abs=1e-12)


def test_kuhn_poker_against_uniform_play() -> None:
    """Uniform against uniform 1/8; the equilibrium gains 1/18 + alpha/3 as first and 1/6 as second."""
    assert kuhn_value(UNIFORM, UNIFORM) == pytest.approx(1 / 8, abs=1e-12)
    for alpha in (0.0, 0.2, 1 / 3):
        assert kuhn_value(kuhn_nash(alpha), UNIFORM) == pytest.approx(1 / 18 + alpha / 3, abs=1e-12)
    assert kuhn_value(UNIFORM, kuhn_nash(0)) == pytest.approx(-1 / 6, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_no_reply_beats_the_equilibrium(alpha: float) -> None:
    """All pure replies of either seat: what a player does in one information state is 0 or 1 in six of them."""
    pure = [[float(n >> bit & 1) for bit in range(6)] for n in range(64)]
    nash = kuhn_nash(alpha)
    assert max(kuhn_value(kuhn([*bets, *[0.0] * 6]), nash) for bets in pure) == pytest.approx(-1 / 18, abs=1e-12)
    assert min(kuhn_value(nash, kuhn([*[0.0] * 6, *bets])) for bets in pure) == pytest.approx(-1 / 18, abs=1e-12)


def test_the_keys_of_the_kuhn_tables_are_those_of_the_game() -> None:
    keys = set()
    for seed in range(60):
        keys |= {turn.key for turn, _ in transcript("kuhn_poker", seed)[0]}
    assert keys == set(KUHN_BETS)


def share(counts: Counter[str], place: str) -> float:
    return counts[place] / counts.total()


def outcomes_of_x(*makers: Any, hands: int) -> Counter[str]:
    record = match("tic_tac_toe", *makers, hands=hands)
    return Counter(data["place"] for data in record.data("result") if data["seat"] == 1)


def test_tic_tac_toe_between_random_players() -> None:
    """58.49% won by x, 12.70% drawn, 28.81% won by o, within four standard errors of 1,500 games."""
    counts = outcomes_of_x(RandomLegal, RandomLegal, hands=1500)
    for place, wanted in {"won": 0.5849, "drew": 0.1270, "lost": 0.2881}.items():
        assert share(counts, place) == pytest.approx(wanted, abs=4 * (wanted * (1 - wanted) / 1500) ** 0.5)


def test_minimax_never_loses() -> None:
    """96.78% won as x against a random player, never lost; a draw against itself."""
    counts = outcomes_of_x(Minimax, RandomLegal, hands=600)
    assert counts["lost"] == 0
    assert share(counts, "won") == pytest.approx(0.9678, abs=4 * (0.9678 * 0.0322 / 600) ** 0.5)
    assert outcomes_of_x(RandomLegal, Minimax, hands=200)["won"] == 0
    assert outcomes_of_x(Minimax, Minimax, hands=50) == {"drew": 50}


def test_minimax_exactly() -> None:
    """All games of minimax as x against a random player, each with its probability."""

    def chances(board: str, mark: str) -> tuple[float, float]:
        """Chances that x wins, that nobody does."""
        empty = [cell for cell in range(9) if board[cell] == "."]
        if "xxx" in lines(board):
            return 1.0, 0.0
        if not empty or "ooo" in lines(board):
            return 0.0, float("ooo" not in lines(board))
        chosen = [empty[n] for n in best(board, "x")] if mark == "x" else empty
        after = [chances(f"{board[:c]}{mark}{board[c + 1 :]}", "xo"[mark == "x"]) for c in chosen]
        return sum(won for won, _ in after) / len(after), sum(drawn for _, drawn in after) / len(after)

    def lines(board: str) -> list[str]:
        return [*(board[n : n + 3] for n in (0, 3, 6)), *(board[n::3] for n in range(3)), board[::4], board[2:7:2]]

    assert chances("." * 9, "x") == pytest.approx((0.9678, 0.0322), abs=5e-5)
    assert value("." * 9, "x") == 0


# --- any game -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [*LISTED, *SMALL.values()])
def test_games_are_played_to_their_end(game: str) -> None:
    makers = [RandomLegal] * len(names(game))
    cast = [player(make(member(name)), name) for name, make in zip(names(game), makers, strict=True)]
    world = OpenSpielGame(OpenSpielParams(game=game))
    simulate(world, cast, until=100_000, record=False)
    state = world.state()
    assert state["over"]
    assert json.loads(json.dumps(state)) == state
    assert copy.deepcopy(world).state() == state


def replayed(game: str, history: Sequence[int]) -> Any:
    """The state after a history, by pyspiel alone."""
    state, rest = load(game).new_initial_state(), list(history)
    while rest:
        if state.is_simultaneous_node():
            joint, rest = rest[: state.num_players()], rest[state.num_players() :]
            state.apply_actions(joint)
        else:
            state.apply_action(rest.pop(0))
    return state


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_legal_play_gives_what_pyspiel_gives(data: st.DataObject) -> None:
    games = [
        *SMALL.values(),
        "matrix_pd",
        "tiny_hanabi",
        "cliff_walking",
        "oshi_zumo(coins=6)",
        "kuhn_poker(players=3)",
    ]
    game = data.draw(st.sampled_from(games))
    world = fresh(game, Streams(data.draw(st.integers(0, 50))))
    won = dict.fromkeys(names(game), 0.0)
    now = 0
    while not world.state()["over"]:
        turns = asked(world, game, now)
        chosen = data.draw(st.lists(st.sampled_from(turns), min_size=1, unique_by=lambda turn: turn.agent))
        for turn in chosen:
            outcome = world.step(now, [act(turn, data.draw(st.sampled_from(options(turn))))])
            for agent, reward in outcome.rewards.items():
                won[agent] += reward
        now += 1
    alone = replayed(game, world.state()["history"])
    assert alone.is_terminal()
    assert list(won.values()) == pytest.approx(alone.returns())


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel(num_cards=4)", "leduc_poker"])
def test_one_seed_one_log(game: str) -> None:
    def run(seed: int) -> Simulation:
        cast = [player(RandomLegal(member(name)), name, "integer(1, 4)") for name in names(game)]
        return simulate(OpenSpielGame(OpenSpielParams(game=game, hands=5, rotate=True)), cast, seed=seed)

    assert run(3).hash == run(3).hash != run(4).hash


def test_luck_does_not_depend_on_play() -> None:
    deals = [
        [data["text"] for data in match("kuhn_poker", maker, AlwaysPass, hands=30).data("deal")]
        for maker in (AlwaysBet, AlwaysPass)
    ]
    assert deals[0] == deals[1]
    assert set(Counter(deals[0])) == {"jack", "queen", "king"}


# --- what stays hidden -------------------------------------------------------------------------------------


def transcript(game: str, seed: int) -> tuple[list[tuple[Turn, int]], list[Fact], OpenSpielGame]:
    """All turns of a random play, each with the number of facts before it; its facts; the world at its end."""
    world = OpenSpielGame(OpenSpielParams(game=game))
    luck = Streams(seed)
    facts = list(world.reset([Seat(agent=name) for name in names(game)], luck.sub("world")).facts)
    turns: list[tuple[Turn, int]] = []
    while now := asked(world, game):
        turns += [(turn, len(facts)) for turn in now]
        actions = [act(turn, sample(turn.format, luck.generator(len(turns), turn.agent))) for turn in now]
        facts += world.step(0, actions).facts
    return turns, facts, world


HIDES = [game for game in SMALL.values() if game != "tic_tac_toe"]


@pytest.mark.parametrize("game", HIDES)
def test_a_view_is_the_same_whatever_is_hidden(game: str) -> None:
    """Plays that look alike to a player, whatever the others hold or bid: equal views, words, options and keys."""
    alike: dict[Any, set[str]] = {}
    hidden: dict[Any, set[Any]] = {}
    for seed in range(600):
        turns, facts, world = transcript(game, seed)
        made = [fact.id for fact in facts if fact.kind in ("deal", "action")]
        moves = dict(zip(made, world.state()["history"], strict=True))
        for turn, before in turns:
            known = (turn.agent, *((fact, moves[fact]) for fact in turn.shows if fact in moves))
            shown = json.dumps([turn.view, turn.text, options(turn), turn.key, turn.rules, turn.default, turn.shows])
            alike.setdefault(known, set()).add(shown)
            hidden.setdefault(known, set()).add(tuple(moves[n] for n in made if n < before and n not in turn.shows))
    assert all(len(shown) == 1 for shown in alike.values())
    assert sum(len(secrets) > 1 for secrets in hidden.values()) >= 6, "too little was varied"


def test_every_other_card_leaves_the_view_as_it_is() -> None:
    """Kuhn: with the queen in hand, the other's jack or king shows in nothing, and the same before and after a pass."""
    deals = {"jack": (3 / 6, 1 / 4), "king": (3 / 6, 3 / 4)}
    views = []
    for deal in deals.values():
        world = fresh("kuhn_poker", Chosen(deal))
        turns = [seen(world, "p0")]
        do(world, "p0", "pass")
        do(world, "p1", "bet")
        turns.append(seen(world, "p0"))
        views.append([(t.view, t.text, t.format, t.key, t.shows) for t in turns])
    assert views[0] == views[1]


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "liars_dice", "first_sealed_auction(max_value=4)"])
def test_a_deal_is_for_its_player(game: str) -> None:
    for seed in range(20):
        _, facts, _ = transcript(game, seed)
        deals = [fact for fact in facts if fact.kind == "deal"]
        assert [fact.audience for fact in deals[:2]] == [("p0",), ("p1",)]
        public = {"leduc_poker": "all"}.get(game, ())
        assert all(fact.audience == public for fact in deals[2:])


def test_who_learns_of_a_move() -> None:
    bids = [fact for fact in transcript("first_sealed_auction(max_value=4)", 1)[1] if fact.kind == "action"]
    assert [fact.audience for fact in bids] == [("p0",), ("p1",)]
    for game in ("kuhn_poker", "leduc_poker", "liars_dice", "tic_tac_toe", "goofspiel(num_cards=4)"):
        assert {fact.audience for fact in transcript(game, 1)[1] if fact.kind == "action"} == {"all"}
    state = load(SMALL["goofspiel"]).new_initial_state()
    state = moved(state, {-1: 0})
    assert witnesses(state, {0: 3, 1: 1}, 0) == (0,)
    assert witnesses(state, {0: 2, 1: 2}, 0) == (0, 1), "equal bids give each other away"
    blotto = load("blotto").new_initial_state()
    assert len(blotto.legal_actions(0)) > MOST
    assert witnesses(blotto, {0: 1, 1: 2}, 0) == (0,), "too many to try"


def test_results_are_private_and_open_cards_are_not() -> None:
    world = fresh("kuhn_poker", Chosen((1 / 6, 3 / 4)))
    do(world, "p0", "bet")
    facts = do(world, "p1", "bet").facts
    assert [(fact.kind, fact.audience) for fact in facts] == [
        ("action", "all"), ("showdown", "all"), ("result", ("p0",)), ("result", ("p1",)),
    ]  # fmt: skip
    assert facts[1].data["cards"] == {"p0": "the jack", "p1": "the king"}
    world = fresh("kuhn_poker", Chosen((1 / 6, 3 / 4)))
    do(world, "p0", "bet")
    assert "showdown" not in [fact.kind for fact in do(world, "p1", "pass").facts]


# --- turns, words ------------------------------------------------------------------------------------------


def test_kuhn_in_words() -> None:
    world = fresh("kuhn_poker", Chosen((3 / 6, 3 / 4, 0, 0, 0, 0)), hands=2)
    first = seen(world, "p0")
    assert first.text == (
        "Game 1 of 2.\nYour card is the queen. You are the first to speak.\nYou can pass, or bet 1 coin."
    )
    assert (options(first), first.default, first.key) == (("pass", "bet"), "pass", "0:1")
    do(world, "p0", "pass")
    assert "Your card is the king. The other player passed.\n" in seen(world, "p1").text
    do(world, "p1", "bet")
    again = seen(world, "p0")
    assert again.text.splitlines()[1:] == [
        "Your card is the queen. You passed, then the other player bet.",
        "You can pass and give up 1 coin, or bet 1 more coin and stay in.",
    ]
    assert again.key == "0:1pb"
    outcome = do(world, "p0", "bet")
    assert outcome.rewards == {"p0": -2.0, "p1": 2.0}
    assert outcome.wakes[0].tick == 1
    assert world.observe(0, "p0") is None
    turn = seen(world, "p0", 1)
    assert turn.text.splitlines()[1:3] == ["Last game you lost 2.", "The other player had the king."]
    do(world, "p0", "bet", 1)
    assert "Last game you won 2." in seen(world, "p1", 1).text


def test_news_is_told_once() -> None:
    world = fresh("kuhn_poker", hands=2)
    for agent, answer in (("p0", "pass"), ("p1", "pass")):
        do(world, agent, answer)
    fact = world.change(0, Say(text="Be bold.")).facts[0]
    turn = seen(world, "p0", 1)
    assert "News: Be bold." in turn.text
    assert fact.id in turn.shows
    do(world, "p0", "pass", 1)
    do(world, "p1", "bet", 1)
    again = seen(world, "p0", 1).text
    assert "Be bold" not in again
    assert "Last game" not in again


def test_options_of_the_six_games() -> None:
    wanted = {
        "kuhn_poker": ("pass", "bet"),
        "leduc_poker": ("call", "raise"),
        "tic_tac_toe": ("a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"),
        "goofspiel": ("1", "2", "3", "4"),
    }
    for name, told in wanted.items():
        assert options(seen(fresh(SMALL[name]), "p0")) == told
    dice = fresh("liars_dice")
    assert options(seen(dice, "p0"))[:8] == (
        "1 one", "1 two", "1 three", "1 four", "1 five", "1 six", "2 ones", "2 twos",
    )  # fmt: skip
    do(dice, "p0", "2 fives")
    assert options(seen(dice, "p1")) == ("2 sixes", "challenge")
    do(dice, "p1", "2 sixes")
    last = seen(dice, "p0")
    assert (options(last), last.default) == (("challenge",), "challenge")
    assert last.text.endswith("Do you challenge the last bid? No bid is higher.")
    leduc = fresh("leduc_poker")
    do(leduc, "p0", "raise")
    turn = seen(leduc, "p1")
    assert (options(turn), turn.default) == (("fold", "call", "raise"), "fold")


def test_a_move_whose_words_are_taken_carries_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    world = fresh("matrix_rps")
    monkeypatch.setattr(world._words, "label", lambda text: "move" if text != "Paper" else text)
    assert options(seen(world, "p0")) == ("move [0]", "Paper", "move [2]")
    assert do(world, "p0", "move [2]").results[0].status == "applied"


def test_leduc_says_who_did_what() -> None:
    """For three players with another one starting: as OpenSpiel's own history has it."""
    for game in ("leduc_poker", "leduc_poker(players=3,starting_player=1)"):
        words = Leduc("Leduc", load(game).get_parameters(), len(names(game)))
        for seed in range(80):
            turns, facts, _ = transcript(game, seed)
            verbs = {"fold": "folded", "call": "called", "raise": "raised"}
            done = [(int(f.actor[1]), verbs[f.data["text"]]) for f in facts if f.kind == "action"]
            before = [move for moves in words._rounds(words._read(turns[-1][0].view["known"])) for move in moves]
            assert before == done[: len(before)]
            assert len(before) >= len(done) - 1


def test_names_stay_as_they_are() -> None:
    world = OpenSpielGame(OpenSpielParams(game="kuhn_poker(players=3)"))
    world.reset([Seat(agent=name) for name in ("ann", "ben", "McCoy")], Streams(1))
    world.step(0, [act(seen(world, "ann"), "pass")])
    assert " ann passed.\n" in seen(world, "ben").text
    assert "2 other players" in seen(world, "ben").rules


def test_other_games_are_shown_as_they_are() -> None:
    turn = seen(fresh("connect_four"), "p0")
    assert turn.text.startswith("You are player 1 of 2.\n.......\n")
    assert turn.rules.startswith("You play Connect Four with one other player.")
    assert "nobody else" in fresh("catch", Streams(0))._rules


def test_rules_need_not_be_told() -> None:
    told, untold = seen(fresh("kuhn_poker"), "p0"), seen(fresh("kuhn_poker", rules=False), "p0")
    assert (untold.rules, untold.text, untold.key) == ("", told.text, told.key)


def golden(game: str) -> str:
    """A random play with all that was seen, asked, answered and became of it."""
    world, luck = OpenSpielGame(OpenSpielParams(game=game, hands=2, rotate=True)), Streams(7)
    lines = [f"# {game}", *world._rules.splitlines()]

    def tell(outcome: Outcome) -> None:
        for fact in outcome.facts:
            lines.append(f"  {fact.kind} #{fact.id} of {fact.actor or '-'} to {fact.audience}: {json.dumps(fact.data)}")
        if outcome.rewards:
            lines.append(f"  rewards {dict(outcome.rewards)}")

    tell(world.reset([Seat(agent=name) for name in names(game)], luck.sub("world")))
    for now in range(100):
        if world.state()["over"]:
            break
        for turn in asked(world, game, now):
            answer = sample(turn.format, luck.generator(now, turn.agent))
            lines += [
                f"{now} {turn.agent} {turn.key!r} shows {turn.shows}",
                *(f"| {x}" for x in turn.text.splitlines()),
            ]
            lines.append(f"> {answer} of {', '.join(options(turn))}; default {turn.default}")
            tell(world.step(now, [act(turn, answer)]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", NAMED)
def test_the_golden_playthroughs(name: str) -> None:
    """After a wanted change: `python -m tests.worlds.test_openspiel` writes them anew."""
    assert golden(SMALL[name]) == (PLAYTHROUGHS / f"{name}.txt").read_text(encoding="utf-8")


def test_no_game_with_words_lacks_a_playthrough() -> None:
    assert {path.stem for path in PLAYTHROUGHS.iterdir()} == set(NAMED) == set(SMALL)


# --- turns that cannot be taken, interventions ------------------------------------------------------------


def test_simultaneous_moves_wait_for_each_other() -> None:
    world = fresh("goofspiel(num_cards=4)")
    late = seen(world, "p1")
    assert do(world, "p0", "4").facts == []
    assert world.observe(0, "p0") is None
    assert seen(world, "p1") == late
    twice = Action(answer="3", agent="p0", seen=0)
    assert world.step(1, [twice]).results[0].reason == "you have moved already"
    outcome = world.step(3, [act(late, "1")])
    assert [fact.data["text"] for fact in outcome.facts if fact.kind == "action"] == ["4", "1"]
    assert {wake.agent: wake.tick for wake in outcome.wakes} == {"p0": 3, "p1": 3}


def test_what_cannot_be_played_is_stale() -> None:
    world = fresh("kuhn_poker")
    first = seen(world, "p0")
    for action, reason in [
        (Action(answer="pass", agent="p1", seen=0), "not your turn"),
        (Action(answer="pass", agent="zoe", seen=0), "not your turn"),
        (act(first, "fold"), "not a legal move"),
        (act(first, None), "not a legal move"),
    ]:
        [result] = world.step(0, [action]).results
        assert (result.status, result.reason) == ("stale", reason)
    do(world, "p0", "pass", 2)
    do(world, "p1", "bet", 2)
    assert world.step(2, [act(first, "pass")]).results[0].reason == "not your turn", "it saw an earlier position"
    do(world, "p0", "pass", 2)
    assert world.step(2, [act(first, "pass")]).results[0].reason == "the game is over"


def test_seats_rotate() -> None:
    record = match("kuhn_poker(players=3)", *[RandomLegal] * 3, hands=4, rotate=True)
    assert [data["players"][0] for data in record.data("hand")] == ["p0", "p1", "p2", "p0"]
    assert record.ended == dict.fromkeys(["p0", "p1", "p2"], "terminated")


def test_rewards_come_as_they_are_won() -> None:
    world = fresh("cliff_walking")
    assert do(world, "p0", "UP").rewards == {"p0": -1.0}


def test_interventions() -> None:
    world = fresh("kuhn_poker")
    world.change(0, Set(key="hands", value=2))
    do(world, "p0", "pass")
    assert not do(world, "p1", "pass").ended
    for change, says in [
        (Set(key="rotate", value=True), "hands"),
        (Join(seat=Seat(agent="zoe")), "seats are taken"),
        (Say(text="x", to="#hall"), "#hall"),
        (Say(text="x", to=("zoe",)), "zoe"),
        (Leave(agent="zoe"), "zoe"),
    ]:
        with pytest.raises(ValueError, match=says):
            world.change(1, change)
    assert world.change(1, Leave(agent="p0")).ended == {"p1": "terminated"}
    assert world.change(1, Leave(agent="p1")).ended == {}
    assert asked(world, "kuhn_poker", 1) == []


@pytest.mark.parametrize(
    ("game", "says"),
    [
        ("kuhn_pokr", "did you mean 'kuhn_poker'"),
        ("qqq", "has no game 'qqq'$"),
        ("kuhn_poker(player=2)", "Unknown parameter 'player'"),
        ("mfg_garnet", "mean-field"),
        ("negotiation", "draws its luck itself"),
        ("crossword", "without end"),
    ],
)
def test_games_that_cannot_be_played(game: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        load(game)


def test_a_game_that_hides_what_players_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspiel

    class Mute:
        def get_type(self) -> Any:
            return type("Kind", (), {
                "dynamics": 0, "Dynamics": pyspiel.GameType.Dynamics, "chance_mode": 0,
                "ChanceMode": pyspiel.GameType.ChanceMode, "provides_information_state_string": False,
                "provides_observation_string": False,
            })  # fmt: skip

        def num_distinct_actions(self) -> int:
            return 2

    load.cache_clear()
    monkeypatch.setattr(pyspiel, "load_game", lambda _: Mute())
    with pytest.raises(ValueError, match="what one player knows"):
        load("kuhn_poker")


def test_without_openspiel_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    load.cache_clear()
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ValueError, match=r"pip install -e '\.\[games\]'"):
        OpenSpielParams(game="kuhn_poker")


def test_seats_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="for 2 players, not for 3"):
        OpenSpielGame(OpenSpielParams(game="kuhn_poker")).reset([Seat(agent=name) for name in "abc"], Streams(1))


# --- agents, metrics, conformance, scenarios --------------------------------------------------------------


def test_tables() -> None:
    turn = seen(fresh("kuhn_poker", Chosen((1 / 6, 1 / 4))), "p0")
    assert Tabular(member(), {}).policy(turn) == {"pass": 0.5, "bet": 0.5}
    assert Tabular(member(), {"0:0": {"bet": 1}}).policy(turn) == {"pass": 0.0, "bet": 1.0}
    with pytest.raises(ValueError, match="raise is not among"):
        Tabular(member(), {"0:0": {"raise": 1}}).policy(turn)
    for row in ({"bet": 0.5}, {"bet": 1.5, "pass": -0.5}):
        with pytest.raises(ValueError, match="0:0"):
            Tabular(member(), {"0:0": row})
    with pytest.raises(ValueError, match="1/3"):
        kuhn_nash(0.4)


def test_metrics() -> None:
    """Bet against pass: the second always gives up."""
    measured = match("kuhn_poker", AlwaysBet, AlwaysPass, hands=10).measured(OpenSpielGame.metrics)
    one = measured["openspiel.mean_return seat=1"]
    assert (one.value, one.n, one.n_clusters, one.ci, one.flags) == (1.0, 10, 1, None, (FEW,))
    rate = measured["openspiel.win_rate agent=p1"]
    assert (rate.value, rate.ci, rate.flags) == (0.0, None, (FEW,))
    drawn = match("tic_tac_toe", Minimax, Minimax).measured(OpenSpielGame.metrics)
    assert drawn["openspiel.draw_rate seat=2"].value == 1.0
    assert drawn["openspiel.mean_return seat=2"].ci is None
    cut = play(
        OpenSpielGame, [(Seat(agent=name), AlwaysBet) for name in ("p0", "p1")], {"game": "kuhn_poker", "hands": 9},
        interventions=[(3, Leave(agent="p0"), None)],
    )  # fmt: skip
    assert cut.measured(OpenSpielGame.metrics)["openspiel.mean_return seat=1"].excluded == {"unfinished": 1}


def test_tables_are_the_clusters() -> None:
    """a wins 3 of 4, 1 of 4 and 2 of 4: se √(3/2 · 2)/12, t of two degrees 4.3027; games in a table add nothing."""
    kept = Played({}, [Seat(agent="a")], tables=3)
    for table, won in enumerate((3, 1, 2)):
        for hand in range(4):
            data = {"hand": hand, "seat": 1, "agent": "a", "got": float(hand < won)}
            fact = Fact(id=hand, kind="result", data={**data, "place": "won" if hand < won else "lost"})
            kept.played.append(RecordedFact(table=table, seq=hand, tick=hand, fact=fact))
    measured = kept.measured(OpenSpielGame.metrics)
    rate, paid = measured["openspiel.win_rate agent=a"], measured["openspiel.mean_return agent=a"]
    half = 4.302653 * 3**0.5 / 12
    assert rate.ci == pytest.approx((max(0, 0.5 - half), min(1, 0.5 + half)), abs=1e-6)
    assert paid.ci == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    assert (rate.n, rate.n_clusters, rate.events[:2]) == (12, 3, ((0, 0), (0, 1)))
    assert measured["openspiel.draw_rate agent=a"].ci_method == "exact, one-sided"


@pytest.mark.parametrize(
    ("params", "agent"),
    [
        ({"game": "kuhn_poker", "hands": 6, "rotate": True}, partial(KuhnNash, alpha=0.2)),
        ({"game": "leduc_poker(players=3)", "hands": 2}, partial(Constant, answer="call")),
        ({"game": "goofspiel(num_cards=4,imp_info=True)", "hands": 2, "pause": 5}, RandomLegal),
        ({"game": "tic_tac_toe"}, Minimax),
        ({"game": "hanabi"}, RandomLegal),
    ],
)
def test_the_world_keeps_the_rules_of_the_seams(params: dict[str, Any], agent: Any) -> None:
    check_world(OpenSpielGame, names(params["game"]), params, agent)


@pytest.mark.parametrize("kind", [KuhnNash, AlwaysBet, AlwaysPass, partial(Tabular, table={})])
def test_the_baselines_keep_the_rules_of_the_seams(kind: Any) -> None:
    turns = turns_of(OpenSpielGame, ["p0", "p1"], {"game": "kuhn_poker", "hands": 5})
    check_agent(lambda: kind(member()), [turn for mine in turns.values() for turn in mine])


def test_minimax_keeps_the_rules_of_the_seams() -> None:
    turns = turns_of(OpenSpielGame, ["p0", "p1"], {"game": "tic_tac_toe"})
    check_agent(lambda: Minimax(member()), [turn for mine in turns.values() for turn in mine])


def test_the_shipped_scenario(tmp_path: Path) -> None:
    path = go(create(scenario_of(SCENARIOS / "kuhn.yaml", ["tables=2", "world.hands=20"]), tmp_path)).path
    with Run(path) as run:
        assert len(list(run.facts("result"))) == 80
    assert verify(path).whole


def test_the_shipped_model_scenario_on_the_synthetic_engine(tmp_path: Path) -> None:
    scenario = scenario_of(SCENARIOS / "kuhn_llm.yaml", ["models.small.engine=synthetic", "tables=2"])
    with Run(go(create(scenario, tmp_path)).path) as run:
        assert len(list(run.facts("hand"))) == 8
        assert len(list(run.facts("result"))) == 16


def written() -> Iterator[Path]:
    """Write all playthroughs anew."""
    for name, game in SMALL.items():
        path = PLAYTHROUGHS / f"{name}.txt"
        path.write_text(golden(game), encoding="utf-8")
        yield path


if __name__ == "__main__":
    print(*written(), sep="\n")
