"""Matrix games in plain words: short lines that a very small model can follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.types import JSON
from worlds.games.payoffs import Game


def rules(game: Game, me: int, talk: str, tokens: Sequence[str]) -> str:
    """The rules as told to one player, with every payoff in a sentence."""
    others = "one other player" if game.players == 2 else f"{game.players - 1} other players"
    lines = [f"You play a game with {others}. In each round all choose at the same time."]
    lines += _by_count(game) if game.by_count else _by_cell(game, me)
    lines.append("You want as many points as you can get.")
    if talk == "explicit":
        lines.append("Before each round everybody may say something short to the others.")
    if talk == "restricted":
        lines.append(f"Before each round everybody says one word to the others: {_either(tokens)}.")
    return "\n".join(lines)


def _by_cell(game: Game, me: int) -> list[str]:
    lines = []
    for joint, own in sorted(game.table.items(), key=lambda cell: (cell[0][me], cell[0])):
        labels = [mine[a] for mine, a in zip(game.actions, joint, strict=True)]
        mine = labels.pop(me)
        if game.players == 2:
            tail = f"the other chooses {labels[0]}, you get {_short(own[me])} and they get {_short(own[1 - me])}."
        else:
            tail = f"the others choose {', '.join(labels)}, you get {_short(own[me])}."
        lines.append(f"If you choose {mine} and {tail}")
    return lines


def _by_count(game: Game) -> list[str]:
    first = game.actions[0][0]
    lines = []
    for action, label in enumerate(game.actions[0]):
        cells = [(action, *(int(other >= k) for other in range(game.players - 1))) for k in range(game.players)]
        gets = ", ".join(f"{_short(game.table[cell][0])} if {k} do" for k, cell in enumerate(cells))
        lines.append(f"If you choose {label}, it depends on how many of the others choose {first}: you get {gets}.")
    return lines


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view: the round, the last result, what was said."""
    of = f" of {view['rounds']}" if view["rounds"] else ""
    lines = [f"Round {view['round']}{of}.", *(f"News: {text}" for text in view["news"])]
    if view["recent"]:
        lines.append(_result(view))
    for seat, text in view["heard"]:
        who = "You say" if seat == view["me"] else f"{_other(view, seat)} says"
        lines.append(f'{who}: "{text}"')
    return "\n".join(lines)


def recap(view: Mapping[str, JSON]) -> str:
    """What is worth remembering: the last result once, when the round begins, and what was said."""
    return news(view if view["fresh"] else {**view, "recent": ()})


def words(view: Mapping[str, JSON]) -> str:
    """The view in full, with the question and its answers."""
    if view["phase"] == "move":
        return f"{news(view)}\nChoose: {_either(view['actions'][view['me']])}."
    to = "the other player" if len(view["players"]) == 2 else "the others"
    if view["tokens"]:
        return f"{news(view)}\nBefore you choose, say one word to {to}: {_either(view['tokens'])}."
    return f"{news(view)}\nBefore you choose, say something short to {to}."


def _result(view: Mapping[str, JSON]) -> str:
    me, joint, actions = view["me"], view["recent"][-1], view["actions"]
    got = f"You got {_short(view['got'])}, in all {_short(view['total'])}."
    mine = f"Last round you chose {actions[me][joint[me]]}"
    if len(joint) == 2:
        return f"{mine} and the other player chose {actions[1 - me][joint[1 - me]]}. {got}"
    labels = [actions[seat][action] for seat, action in enumerate(joint) if seat != me]
    counts = [f"{labels.count(label)} chose {label}" for label in dict.fromkeys(labels)]
    return f"{mine}. Of the others {', '.join(counts)}. {got}"


def _other(view: Mapping[str, JSON], seat: int) -> str:
    return "The other player" if len(view["players"]) == 2 else str(view["players"][seat])


def _either(labels: Sequence[str]) -> str:
    *most, last = labels
    return f"{', '.join(most)} or {last}" if most else last


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
