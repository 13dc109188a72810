"""A forum view in words: short lines that a small model can follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sim.types import JSON

RULES = (
    "You are a member of an internet forum. In each visit you do one thing. All members of a community can read its "
    "posts and comments; a message is read by one person only. Write one or two short sentences, as yourself."
)
"""The same for everybody at every turn."""


def words(view: Mapping[str, JSON]) -> str:
    """The whole view."""
    where = ", ".join(view["communities"]) or "no community"
    quiet = [] if view["feed"] or view["thread"] else ["There are no posts here yet."]
    return "\n".join((f"It is {view['time']}. You are in {where}.", *_lines(view, view["feed"]), *quiet))


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view, to be remembered."""
    return "\n".join(_lines(view, [item for item in view["feed"] if item["new"]])) or "Nothing new."


def _lines(view: Mapping[str, JSON], feed: Iterable[JSON]) -> list[str]:
    lines = [f"Your last act did not work: {view['note']}."] if view["note"] else []
    lines += [f"Notice: {_line(text)}" for text in view["notices"]]
    lines += [f"Message to you from {m['by']}: {_line(m['text'])}" for m in view["messages"]]
    lines += [f"Reply from {r['by']} to your post {r['post']}: {_line(r['text'])}" for r in view["replies"]]
    if thread := view["thread"]:
        lines.append("You opened " + _post(view, thread, len(thread["comments"])))
        lines += [f"- {_who(view, comment)}: {_line(comment['text'])}" for comment in thread["comments"]]
    lines += [_post(view, item, item["comments"]) for item in feed]
    return lines


def _post(view: Mapping[str, JSON], item: JSON, comments: int) -> str:
    counts = [f"score {item['score']}"] * bool(item["score"]) + [f"comments {comments}"] * bool(comments)
    aside = f" ({', '.join(counts)})" if counts else ""
    return f"{item['post']} by {_who(view, item)} in {item['community']}{aside}: {_line(item['text'])}"


def _who(view: Mapping[str, JSON], item: JSON) -> str:
    return "you" if item["by"] == view["you"] else str(item["by"])


def _line(text: str) -> str:
    """On one line, so that nobody's text can pass for a line of the forum's own."""
    return " ".join(text.split())
