"""How a run came out: numbers about everybody, decisions, model calls, rewards."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from sim.commands.show import FORMS, HOWS
from sim.intervals import t_quantile
from sim.record.reader import Counts
from sim.record.survey import Earned, Survey
from sim.report.model import Block, Cell, Note, Plot, Points, Section, Table, num
from sim.report.numbers import headline, labels
from sim.types import Measurement

AGENTS, DRAWN = 60, 30
"""Most agents in a table, and in a figure."""
OPEN = 25
"""Most rows of a table that is not folded."""


def outcome_section(run: Survey, numbers: Sequence[Measurement], prefix: str, name: str) -> Section:
    """What a run came to, before the measures by family."""
    counts = run.counts()
    first = headline(numbers)
    blocks: list[Block] = [] if first is None else [first]
    blocks.append(_decisions(counts))
    if counts.calls:
        blocks.append(_calls(counts))
    if earned := run.earned():
        blocks += rewards(earned, name)
    else:
        blocks.append(Note(text="The world gave no rewards."))
    return Section(anchor=f"{prefix}-outcome", title="Outcome", blocks=tuple(blocks))


def _decisions(counts: Counts) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for form, name in FORMS.items():
        if by_how := counts.decisions.get(form):
            total = sum(by_how.values())
            rows.append((name, num(total), *(_share(by_how.get(how, 0), total) for how in HOWS)))
    total = sum(sum(by_how.values()) for by_how in counts.decisions.values())
    rows.append(("of these no longer possible when due", _share(counts.stale, total), *("" for _ in HOWS)))
    return Table(title="Decisions by form of answer", heads=("form", "all", *HOWS), rows=tuple(rows))


def _share(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.1%})" if total else "0"


def _calls(counts: Counts) -> Table:
    rows = [(purpose, f"{count:,}") for purpose, count in counts.calls.items()]
    rows += [
        ("failed", f"{counts.failed:,}"),
        ("cut off at the length limit", f"{counts.cut:,}"),
        ("prompt tokens", f"{counts.tokens.prompt:,}"),
        ("of these cached", _share(counts.tokens.cached, counts.tokens.prompt)),
        ("sampled tokens", f"{counts.tokens.completion:,}"),
    ]
    return Table(title="Model calls", heads=("calls", "how many"), rows=tuple(rows))


def rewards(earned: Sequence[Earned], name: str) -> list[Block]:
    """Rewards by role, then by agent; over several tables the mean with the interval of the spread between them."""
    several = any(one.tables > 1 for one in earned)
    word = "mean reward a table" if several else "reward"
    first = sorted(earned, key=lambda one: -one.total / one.tables)[:AGENTS]
    shown = [(one, one.total / one.tables, _interval(one)) for one in first]
    rows: list[tuple[Cell, ...]] = []
    for one, mean, ci in shown:
        low, high = (num(ci[0]), num(ci[1])) if ci else ("", "")
        rows.append((one.agent, one.role, num(mean), low, high, num(one.tables) if several else ""))
    by_agent = Table(
        title="Rewards by agent, the largest first",
        heads=("agent", "role", word, "low", "high", "tables"),
        rows=tuple(rows),
        left_out=len(earned) - len(shown),
        folded=len(rows) > OPEN,
    )
    drawn = [_drawn(shown, word, name)] if len(shown) > 1 else []
    return [*_by_role(earned, word), *drawn, by_agent]


def _by_role(earned: Sequence[Earned], word: str) -> list[Table]:
    """Means over the agents of each role, where there are several roles."""
    roles: dict[str, list[Earned]] = {}
    for one in earned:
        roles.setdefault(one.role, []).append(one)
    rows = [
        (role or "none", num(len(group)), num(sum(one.total for one in group) / sum(one.tables for one in group)))
        for role, group in sorted(roles.items())
    ]
    return [Table(title="Rewards by role", heads=("role", "agents", word), rows=tuple(rows))] if len(rows) > 1 else []


def _drawn(shown: Sequence[tuple[Earned, float, tuple[float, float] | None]], word: str, name: str) -> Plot:
    some = shown[:DRAWN]
    points = Points(
        name=word,
        x=tuple(mean for _, mean, _ in some),
        y=(),
        low=tuple(ci[0] if ci else None for *_, ci in some),
        high=tuple(ci[1] if ci else None for *_, ci in some),
        mode="markers",
    )
    caption = "Bars are 95% intervals (t over tables)." if any(ci for *_, ci in some) else "One table: no intervals."
    return Plot(
        kind="intervals",
        title=f"Rewards of {name} by agent",
        caption=caption + (f" The first {DRAWN} of {len(shown)} in the table." if len(shown) > DRAWN else ""),
        x=word,
        y="agent",
        series=(points,),
        labels=labels(one.agent for one, *_ in some),
    )


def _interval(one: Earned) -> tuple[float, float] | None:
    """t over tables; None for fewer than two."""
    n = one.tables
    if n < 2:
        return None
    mean = one.total / n
    spread = max(0.0, one.squares - n * mean**2) / (n - 1)
    half = t_quantile(0.95, n - 1) * sqrt(spread / n)
    return mean - half, mean + half
