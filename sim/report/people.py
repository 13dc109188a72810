"""Who took part, which secrets they hold, and which of these got to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sim.commands.terminal import short
from sim.metrics.privacy.disclosures import told
from sim.record.survey import Survey
from sim.report.hiding import Mask
from sim.report.model import Cell, Link, Note, Section, Table, num
from sim.report.moments import Finder
from sim.types import Member

AGENTS = 60
"""Most agents in a table."""
LEAKS = 200
"""Most disclosures in a list."""
OPEN = 25
"""Most rows of a table that is not folded."""


def leak_sections(run: Survey, finder: Finder, prefix: str, secrets: bool) -> list[Section]:
    """Who told which secret to whom, of a run whose cast holds secrets."""
    if not secrets:
        return []
    found = told(run)
    rows: list[tuple[Cell, ...]] = []
    for one, place in finder.told(found[:LEAKS]):
        name = f"fact {one.fact}" + (f" of table {one.table}" if run.tables > 1 else "")
        where: Cell = Link(name, finder.anchor(*place)) if place else name
        secret = one.secret
        rows.append(
            (where, one.sender, one.recipient, secret.attribute, secret.subject, secret.holder, num(secret.severity))
        )
    said = "No message told a secret to anybody whom its norms do not name, as far as the search for values finds it."
    if not rows:
        return [Section(anchor=f"{prefix}-leaks", title="What leaked", blocks=(Note(text=said),))]
    often = "Once" if len(found) == 1 else f"{len(found):,} times"
    said = (
        f"{often} a message told a secret to somebody whom its norms do not name. Told again is not "
        "counted; what a world itself takes for a leak stands in its own measures."
    )
    counts = Counter((one.secret.attribute, one.sender) for one in found)
    tellers = tuple((*key, num(count)) for key, count in counts.most_common(AGENTS))
    heads = ("where", "told by", "to", "attribute", "about", "held by", "severity (1–5)")
    blocks = (
        Note(text=said, tone="warn"),
        Table(
            title="By attribute",
            heads=("attribute", "told by", "times"),
            rows=tellers,
            left_out=len(counts) - len(tellers),
        ),
        Table(
            title="Disclosures", heads=heads, rows=tuple(rows), left_out=len(found) - len(rows), folded=len(rows) > OPEN
        ),
    )
    return [Section(anchor=f"{prefix}-leaks", title="What leaked", blocks=blocks)]


def cast_section(run: Survey, mask: Mask, prefix: str) -> Section:
    """Roles, then agents one by one."""
    roles = [(role or "none", model or "scripted", num(count)) for role, model, count in run.roles()]
    members = run.cast(0)
    rows = tuple(_member(one, mask) for one in members[:AGENTS])
    heads = ("agent", "role", "model", "persona", "private values", "secrets it holds")
    of = "" if run.tables < 2 else f" at table 0 of {run.tables}"
    blocks = (
        Table(title="Roles", heads=("role", "model", "agents"), rows=tuple(roles)),
        Table(
            title=f"Who took part{of}",
            heads=heads,
            rows=rows,
            left_out=len(members) - len(rows),
            folded=len(rows) > OPEN,
        ),
    )
    return Section(anchor=f"{prefix}-cast", title="Cast", blocks=blocks)


def _member(one: Member, mask: Mask) -> tuple[Cell, ...]:
    persona = one.persona
    said = [str(persona[key]) for key in ("name", "age", "occupation", "style") if key in persona]
    goals = persona.get("goals")
    if isinstance(goals, list) and goals:
        said.append(f"wants to {'; '.join(map(str, goals))}")
    private = mask.data(dict(one.seat.private))
    secrets = [f"{each.attribute}: {mask.secret(each)}{_norms(each.norms)}" for each in one.secrets]
    return (
        one.seat.agent,
        one.seat.role,
        one.model or "scripted",
        mask.text(", ".join(said)),
        ", ".join(f"{key} {short(value)}" for key, value in private.items()),
        "; ".join(secrets),
    )


def _norms(norms: Sequence[Any]) -> str:
    to = [str(norm.get("to", "")) for norm in norms]
    return f" (for {', '.join(to)})" if to else " (for nobody)"
