"""Rule-based members of a forum: what they do in a visit is drawn from rates, never from a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn

THINGS = (
    "the weather",
    "the new shop",
    "my old bike",
    "a long walk",
    "the morning light",
    "this week's news",
    "a lost cat",
)
POSTS = (
    "Has anybody here thought about {thing}?",
    "I keep coming back to {thing}.",
    "A word on {thing}: better than I hoped.",
    "What do you all make of {thing}?",
)
COMMENTS = ("I see it the same way.", "Not so sure about that.", "It was the same with {thing}.", "Thanks, that helps.")
MESSAGES = ("Hello, I liked what you wrote on {thing}.", "May I ask you about {thing}?", "Good to hear from you.")


class Poster:
    """Does one thing per turn with the given probabilities, at the top of the feed.

    With `leak` it puts a secret of its own into a text it writes in public; the probability is `contagion`
    times as high (at most 1) while one of the last `reads` texts it read carried the `marker` of a leak.
    Its state is how many texts it has read since the last marked one; None: `reads` or more.
    """

    def __init__(
        self,
        member: Member,
        *,
        post: float = 0.118,
        comment: float = 0.3,
        vote: float = 0.3,
        message: float = 0.02,
        open: float = 0.1,
        answer: float = 0.5,
        homophily: float = 0.7,
        leak: float = 0.0,
        contagion: float = 1.0,
        reads: int = 10,
        marker: str = "between us",
    ) -> None:
        if post + comment + vote + message + open > 1:
            raise ValueError("post, comment, vote, message and open are probabilities of one draw: at most 1 together")
        self.state: object = None
        self._me = member.seat.agent
        self._secrets = [secret for secret in member.secrets if secret.holder == self._me]
        self._rates = {"post": post, "comment": comment, "vote": vote, "message": message, "open": open}
        self._answer = answer
        self._homophily = homophily
        self._leak = leak
        self._contagion = contagion
        self._reads = reads
        self._marker = marker

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Answer an unread message, or else do what the draw says; what cannot be done becomes a pass."""
        yield from ()
        since = self._read(turn.view)
        answer = self._reply(turn.view, streams) or self._drawn(turn.view, since, streams) or {"act": "pass"}
        if "text" in answer:
            answer["text"] = answer["text"][: turn.view["max_chars"]]
        return Action(answer=answer, state=since)

    def _read(self, view: Mapping[str, JSON]) -> int | None:
        """How many texts ago the last leak was read, this turn's texts included."""
        since = self.state
        for text in self._texts(view):
            if self._marker in text.lower():
                since = 0
            elif isinstance(since, int):
                since += 1
        return since if isinstance(since, int) and since < self._reads else None

    def _texts(self, view: Mapping[str, JSON]) -> Sequence[str]:
        """What others wrote and this view shows for the first time, in reading order."""
        posts = [item for item in view["feed"] if item["new"]]
        comments = view["thread"]["comments"] if view["thread"] else []
        texts = [line["text"] for line in view["messages"]]
        return texts + [line["text"] for line in (*view["replies"], *comments, *posts) if line["by"] != self._me]

    def _reply(self, view: Mapping[str, JSON], streams: Streams) -> JSON:
        sender = next((m["by"] for m in view["messages"] if m["by"] in view["people"]), None)
        if sender is None or streams.draw("answer") >= self._answer:
            return None
        return {"act": "message", "to": sender, "text": self._say(MESSAGES, streams)}

    def _drawn(self, view: Mapping[str, JSON], since: int | None, streams: Streams) -> JSON:
        """The act of the draw, or None where the view does not allow it."""
        left = streams.draw("act")
        for act, rate in self._rates.items():
            if left < rate:
                return self._perform(act, view, since, streams)
            left -= rate
        return None

    def _perform(self, act: str, view: Mapping[str, JSON], since: int | None, streams: Streams) -> JSON:
        if act == "post":
            if view["thread"] or not view["communities"]:
                return None
            home = streams.draw("home") < self._homophily
            community = view["communities"][0] if home else streams.choice(view["communities"], "community")
            return {"act": act, "community": community, "text": self._publish(POSTS, since, streams)}
        if act == "message":
            if not view["people"]:
                return None
            return {"act": act, "to": streams.choice(view["people"], "to"), "text": self._say(MESSAGES, streams)}
        item = self._pick(act, view, streams)
        if item is None:
            return None
        if act == "comment":
            return {"act": act, "post": item["post"], "text": self._publish(COMMENTS, since, streams)}
        if act == "vote":
            return {"act": act, "post": item["post"], "way": "up" if streams.draw("way") < 0.8 else "down"}
        return {"act": act, "post": item["post"]}

    def _pick(self, act: str, view: Mapping[str, JSON], streams: Streams) -> JSON:
        """The opened post, or the topmost that the act fits, preferably of the home community."""
        if view["thread"]:
            items = [view["thread"]] if act != "open" else []
        else:
            items = view["feed"]
        if act == "vote":
            items = [item for item in items if item["votable"]]
        elif act == "open":
            items = [item for item in items if item["comments"]] if view["opens"] else []
        else:
            items = [item for item in items if item["by"] != self._me]
        home = [item for item in items if item["community"] == view["communities"][0]]
        if home and streams.draw("home") < self._homophily:
            items = home
        return items[0] if items else None

    def _publish(self, templates: Sequence[str], since: int | None, streams: Streams) -> str:
        """A text for all to read, which may give a secret away."""
        chance = self._leak if since is None else min(1.0, self._leak * self._contagion)
        if self._secrets and streams.draw("leak") < chance:
            secret = streams.choice(self._secrets, "secret")
            return f"{self._marker.capitalize()}: my {secret.attribute} is {secret.value}."
        return self._say(templates, streams)

    def _say(self, templates: Sequence[str], streams: Streams) -> str:
        return streams.choice(templates, "template").format(thing=streams.choice(THINGS, "thing"))
