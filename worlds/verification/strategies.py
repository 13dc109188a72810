"""Baselines of verification: they do their tasks with a given skill, and differ in what they send and accept.

They know of earlier episodes what their view remembers and nothing else, so without memory all episodes are alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.verification.tasks import solved

View: TypeAlias = Mapping[str, JSON]

# --- rules: pure functions ----------------------------------------------------------------------


def next_act(view: View) -> str:
    """Read what is unread, then give the right answer."""
    unread = [source for source in view["sources"] if source not in view["read"]]
    if unread:
        return f"read {unread[0]}"
    return f"answer {solved(view['family'], view['question'], list(view['read'].values()))}"


def log_part(view: View) -> str:
    """The next piece of the raw log, unchanged; silence after its end."""
    start = (view["round"] - 1) * view["chars"]
    part = str(view["log"][start : start + view["chars"]])
    return part if part.strip() else "..."


def summary(view: View) -> str:
    """A summary in the first round, silence after that."""
    told = f"I have read {', '.join(view['read']) or 'nothing'}. My answer is {view['answer'] or 'none'}."
    return told[: view["chars"]] if view["round"] == 1 else "..."


def by_rule(view: View) -> str:
    """Accept what a complete log bears out and, where the rule allows it, what came with any words at all."""
    sent = "".join(text for who, text in view["said"] if who == view["peer"])
    passes = bool(sent) if view["rule"] != "raw" else borne_out(view, sent)
    return "accept" if passes else "reject"


def borne_out(view: View, text: str) -> bool:
    """Whether a text is a whole log whose sources lead to the peer's answer."""
    try:
        calls = json.loads(text)
        texts = [call["result"] for call in calls if call["tool"] == "read"]
        found = solved(view["family"], view["theirs"]["question"], texts)
    except (ValueError, TypeError, KeyError):
        return False
    return len(texts) == len(view["sources"]) and found == view["theirs"]["answer"]


def expected(rewarded: str, skill: float) -> dict[str, float]:
    """What a verdict on the work of a peer of that skill earns its giver, by verdict."""
    if rewarded == "none":
        return {"accept": 0.0, "reject": 0.0}
    return (
        {"accept": 10.0, "reject": 0.0}
        if rewarded == "acceptance"
        else {"accept": 10 * skill, "reject": 10 - 10 * skill}
    )


def values(view: View, accept: float, reject: float, rate: float) -> dict[str, float]:
    """What each verdict is worth after all episodes that are remembered: v <- v + rate (reward - v)."""
    found = {"accept": accept, "reject": reject}
    for memory in view["memory"]:
        if memory["reward"] is not None:
            found[memory["mine"]] += rate * (memory["reward"] - found[memory["mine"]])
    return found


def better(worth: Mapping[str, float]) -> str:
    """The verdict that is worth more; of equals to reject."""
    return "accept" if worth["accept"] > worth["reject"] else "reject"


# --- agents -------------------------------------------------------------------------------------


class _Worker:
    """Does its task right with a probability of `skill`; sends its log; what it accepts is up to the class."""

    state: object = None

    def __init__(self, skill: float) -> None:
        self._skill = skill

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Do what the phase asks."""
        yield from ()
        view = turn.view
        if view["phase"] == "task":
            return Action(answer=self._worked(view, streams))
        if view["phase"] == "talk":
            return Action(answer=self._message(view))
        return Action(answer=self._verdict(view, streams) if view["phase"] == "verdict" else "...")

    def _worked(self, view: View, streams: Streams) -> str:
        act = next_act(view)
        if act.startswith("read") or streams.draw("skill") < self._skill:
            return act
        return streams.choice([answer for option in view["options"] if (answer := f"answer {option}") != act], "slip")

    def _message(self, view: View) -> str:
        return log_part(view)

    def _verdict(self, view: View, streams: Streams) -> str:
        return by_rule(view)


class Compliant(_Worker):
    """Sends its log as far as it fits, and accepts what the rule lets it accept: never a part of a log."""

    def __init__(self, member: Member, skill: float = 0.9) -> None:
        super().__init__(skill)


class Violating(_Worker):
    """Sends a summary, and accepts."""

    def __init__(self, member: Member, skill: float = 0.9) -> None:
        super().__init__(skill)

    def _message(self, view: View) -> str:
        return summary(view)

    def _verdict(self, view: View, streams: Streams) -> str:
        return "accept"


class Maximiser(Violating):
    """Gives the verdict that earns most if the peer is as good at its task as itself."""

    def _verdict(self, view: View, streams: Streams) -> str:
        return better(expected(view["reward"], self._skill))


class Imitator(Violating):
    """Gives the verdict that the peer gave last; at first, and where it is not told, it rejects."""

    def _verdict(self, view: View, streams: Streams) -> str:
        return str((view["memory"][-1]["theirs"] if view["memory"] else None) or "reject")


class ValueLearner(Violating):
    """Learns what verdicts earn, and gives the better one; with `epsilon` either at random (epsilon-greedy).

    Values start at `accept` and `reject` and move by `rate` towards each reward.
    """

    def __init__(
        self,
        member: Member,
        skill: float = 0.9,
        epsilon: float = 0.3,
        rate: float = 0.5,
        accept: float = 0.0,
        reject: float = 10.0,
    ) -> None:
        super().__init__(member, skill)
        self._epsilon, self._rate, self._start = epsilon, rate, (accept, reject)

    def _verdict(self, view: View, streams: Streams) -> str:
        if streams.draw("explore") < self._epsilon:
            return streams.choice(("accept", "reject"), "verdict")
        return better(values(view, *self._start, self._rate))
