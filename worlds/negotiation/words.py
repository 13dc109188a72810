"""Bargaining in plain words: short lines that a very small model can follow."""

from __future__ import annotations

from collections.abc import Mapping

from sim.types import JSON


def rules(pie: int, messages: bool) -> str:
    """The rules as told to both sides."""
    said = " An offer may come with a short message." if messages else ""
    return (
        f"You and a partner divide {pie} points. You take turns: one offers a split, the other accepts or "
        f"rejects it.{said} After a rejection the other one makes the next offer. Every round of waiting makes "
        "points worth less. If you never agree, both get 0."
    )


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view: the round, what was refused, what is offered and said."""
    pie, offering = view["pie"], view["stage"] == "offer"
    limit = f" of {view['last_round']}" if view["last_round"] else ""
    lines = [f"Round {view['round']}{limit}.", *(f"News: {text}" for text in view["news"])]
    if (kept := view["refused"]) is not None:
        yours, theirs = (pie - kept, kept) if offering else (kept, pie - kept)
        who = "You rejected your partner's" if offering else "Your partner rejected your"
        lines.append(f"{who} offer: {yours} for you, {theirs} for them.")
    if not offering:
        lines.append(f"Your partner offers: {view['offered']} for you, {pie - view['offered']} for them.")
    if view["message"]:
        lines.append(f'They say: "{view["message"]}"')
    return "\n".join(lines)


def words(view: Mapping[str, JSON]) -> str:
    """The view in full, with what waiting costs and the range of answers."""
    loss = f"Waiting one round costs you {_percent(view['discount'])} of your points"
    if view["partner_discount"] is not None:
        loss += f" and your partner {_percent(view['partner_discount'])}"
    final = view["round"] == view["last_round"]
    if view["stage"] == "offer":
        last = "This is the last round. " if final else ""
        ask = f"{last}Make an offer: how many points do you keep, from 0 to {view['pie']}? Your partner gets the rest."
        return f"{news(view)}\n{loss}.\n{ask}"
    worth = _short(view["offered"] * view["discount"] ** (view["round"] - 1))
    otherwise = "If you reject, both get 0." if final else "If you reject, you make the next offer."
    return f"{news(view)}\n{loss}.\nAccepting now is worth {worth} to you. {otherwise}\nAnswer accept or reject."


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _percent(discount: float) -> str:
    return f"{_short(100 * (1 - discount))}%"
