"""Games as OpenSpiel has them: how to load one, who is to move, what one player knows, who learns of a move.

The one module that imports pyspiel, and only when a game is loaded. States are pyspiel's own; no function changes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

NO_MOVE = -1
"""In a joint move, for a player who has none."""
MOST = 64
"""Moves in place of the one made that are tried to see who learns of it; where there are more, only the mover does."""


@cache
def load(text: str) -> Any:
    """A game by its OpenSpiel string. Raises ValueError, in one line, where it cannot be played here."""
    try:
        import pyspiel
    except ImportError as missing:
        raise ValueError("OpenSpiel is not installed: pip install -e '.[games]'") from missing
    name = text.partition("(")[0].strip()
    if name not in (names := pyspiel.registered_names()):
        near = get_close_matches(name, names, n=1)
        raise ValueError(f"OpenSpiel has no game {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    try:
        game = pyspiel.load_game(text)
    except pyspiel.SpielError as error:
        raise ValueError(" ".join(str(error).splitlines()[:2])) from error
    kind = game.get_type()
    if kind.dynamics == kind.Dynamics.MEAN_FIELD:
        raise ValueError(f"{name} is a mean-field game: it has no players that could be agents")
    if kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{name} draws its luck itself: a run of it could not be repeated")
    if not game.num_distinct_actions():
        raise ValueError(f"{name} has moves without end: they cannot be listed")
    if not (kind.provides_information_state_string or kind.provides_observation_string):
        raise ValueError(f"{name} does not say what one player knows")
    return game


def movers(state: Any) -> tuple[int, ...]:
    """Who is to move now: one player, several at the same time, or nobody (chance, the end)."""
    if state.is_terminal() or state.is_chance_node():
        return ()
    if state.is_simultaneous_node():
        return tuple(player for player in range(state.num_players()) if state.legal_actions(player))
    return (state.current_player(),)


def moved(state: Any, moves: Mapping[int, int]) -> Any:
    """The state after a move of each mover, or of chance, by player."""
    child = state.clone()
    if state.is_simultaneous_node():
        child.apply_actions([moves.get(player, NO_MOVE) for player in range(state.num_players())])
    else:
        child.apply_action(moves[state.current_player()])
    return child


def known(state: Any, player: int) -> str:
    """All that a player knows: its information state, or what it observes in games that have none."""
    if state.get_game().get_type().provides_information_state_string:
        return str(state.information_state_string(player))
    return str(state.observation_string(player))


def board(state: Any, player: int) -> str:
    """The position as a reader wants it: the board where nothing is hidden, otherwise all that the player knows."""
    kind = state.get_game().get_type()
    if kind.information == kind.Information.PERFECT_INFORMATION and kind.provides_observation_string:
        return str(state.observation_string(player))
    return known(state, player)


def witnesses(state: Any, moves: Mapping[int, int], mover: int) -> tuple[int, ...]:
    """Who learns which move was made: its mover, and those who know something else than before and than after any
    other move that was open to the mover. Chance is player -1.
    """
    players, kind = range(state.num_players()), state.get_game().get_type()
    if kind.information == kind.Information.PERFECT_INFORMATION:
        return tuple(players)
    chance = state.is_chance_node()
    legal = [move for move, _ in state.chance_outcomes()] if chance else state.legal_actions(mover)
    if len(legal) > MOST:
        return tuple(player for player in players if player == mover)
    after = moved(state, moves)
    others = [state, *(moved(state, {**moves, mover: move}) for move in legal if move != moves[mover])]
    return tuple(
        player
        for player in players
        if player == mover or all(known(other, player) != known(after, player) for other in others)
    )
