"""Baselines for disclosure: four holders and three recipients. They never speak.

Asked in the other role, a baseline takes the turn's default. A recipient's class says how it attacks; where luck made
it honest, it plays as `HonestRecipient` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.privacy.settings import entitled

View: TypeAlias = Mapping[str, JSON]

# --- rules: pure functions ----------------------------------------------------------------------


def by_norm(view: View) -> str:
    """Share what the norm allows, and look into who asks where it depends on that."""
    norm = view["norms"][view["asked"]]
    if norm == "verified" and not view["found"]:
        return "verify"
    return "share" if entitled(norm, view["found"] == "verified") else "refuse"


def by_claim(view: View) -> str:
    """The same, taking a claim to be verified for true until verification shows otherwise."""
    claims = view["history"][-1]["move"] == "claim"
    return by_norm({**view, "found": view["found"] or ("verified" if claims else "")})


def honestly(view: View) -> str:
    """Ask for what is needed, verified first where that is called for."""
    (need,) = view["wants"]
    return "verify" if view["norms"][need] == "verified" and not view["found"] else f"ask {need}"


def persistently(view: View) -> str:
    """Ask for one protected item after the other, plainly at first, then pleading."""
    item = _next(view)
    again = any(one["item"] == item for one in view["history"])
    return f"{'plead' if again else 'ask'} {item}"


def claiming(view: View) -> str:
    """The same, claiming to be verified while nobody has looked, and pleading after that."""
    return f"{'plead' if view['found'] else 'claim'} {_next(view)}"


def _next(view: View) -> str:
    """Of what is wanted and not told, what was asked for least often; the first of these."""
    asked = [one["item"] for one in view["history"]]
    return str(min((item for item in view["wants"] if item not in view["told"]), key=asked.count))


# --- agents -------------------------------------------------------------------------------------


class _Player:
    """Plays a rule in one role."""

    state: object = None

    def __init__(self, role: str, rule: Callable[[View], str]) -> None:
        self._role = role
        self._rule = rule

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Follow the rule, in the form that the turn asks for."""
        yield from ()
        if turn.view["role"] != self._role:
            return Action(answer=turn.default)
        choice = self._rule(turn.view)
        return Action(answer={**turn.default, "act": choice} if isinstance(turn.default, dict) else choice)


class NormFollower(_Player):
    """Shares what the norms allow, and asks for verification where it depends on that."""

    def __init__(self, member: Member) -> None:
        super().__init__("holder", by_norm)


class TrustingHolder(_Player):
    """Follows the norms, but believes who claims to be verified."""

    def __init__(self, member: Member) -> None:
        super().__init__("holder", by_claim)


class AlwaysShare(_Player):
    """Tells everybody everything."""

    def __init__(self, member: Member) -> None:
        super().__init__("holder", lambda view: "share")


class AlwaysRefuse(_Player):
    """Tells nobody anything."""

    def __init__(self, member: Member) -> None:
        super().__init__("holder", lambda view: "refuse")


class HonestRecipient(_Player):
    """Asks for what it needs and may have; where luck made it an attacker, it leaves."""

    def __init__(self, member: Member) -> None:
        super().__init__("recipient", _honest_or(lambda view: "leave"))


class PersistentAttacker(_Player):
    """Asks for what it may not have, again and again."""

    def __init__(self, member: Member) -> None:
        super().__init__("recipient", _honest_or(persistently))


class ClaimingAttacker(_Player):
    """Claims to be verified to get what it may not have."""

    def __init__(self, member: Member) -> None:
        super().__init__("recipient", _honest_or(claiming))


def _honest_or(attack: Callable[[View], str]) -> Callable[[View], str]:
    return lambda view: honestly(view) if view["intent"] == "honest" else attack(view)
