"""From a stored run to what a report says of it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.library import PROJECT, measured, standing, usual_metrics
from sim.metrics.luck import Traces, traces
from sim.quantities import readable
from sim.record.project import Project
from sim.record.schema import Manifest
from sim.record.survey import Survey
from sim.report.hiding import Mask
from sim.report.model import Block, Note, Part, Section, Source
from sim.report.moments import Finder
from sim.report.numbers import families, family_section, honesty_section, verdict
from sim.report.outcome import outcome_section
from sim.report.people import cast_section, leak_sections
from sim.report.series import plots
from sim.scenarios.yaml_text import read_yaml
from sim.types import Measurement, Metric

TEXT = 40_000
"""Characters of a scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A run as a report needs it: what is said of it, and what several are compared by."""

    part: Part
    facts: tuple[tuple[str, str], ...]
    """What the run is, in words: head and value."""
    manifest: Manifest
    scenario: dict[str, Any]
    status: str
    numbers: Sequence[Measurement]
    metrics: Sequence[Metric]
    traces: Traces
    """Of its luck."""
    mask: Mask
    hidden: int
    """Secrets whose values are hidden."""


def gather(path: Path, prefix: str, show_secrets: bool, step: Callable[[str], None]) -> Gathered:
    """Measure a run and say what there is to say of it; `step` hears what is being done."""
    with Survey(path) as run:
        step("measuring")
        numbers, metrics = _numbers(run)
        step("reading")
        manifest, status = run.manifest(), standing(run)
        secrets = [one for table in range(run.tables) for member in run.cast(table) for one in member.secrets]
        mask = Mask(secrets, show_secrets)
        scenario = _scenario(manifest)
        facts = tuple(_facts(run, manifest, status, scenario))
        luck = traces(run)
        sections = _sections(run, manifest, numbers, mask, prefix, bool(secrets))
        part = Part(run=manifest.id, verdict=verdict(numbers), sections=tuple(sections))
    return Gathered(
        part=part,
        facts=facts,
        manifest=manifest,
        scenario=scenario,
        status=status,
        numbers=numbers,
        metrics=metrics,
        traces=luck,
        mask=mask,
        hidden=0 if show_secrets else len({(one.holder, one.attribute) for one in secrets}),
    )


def _numbers(run: Survey) -> tuple[list[Measurement], list[Metric]]:
    """What `agora measure` gives, and what else was measured on the run before, but for metrics that failed then."""
    found = measured(run)
    known = {(one.metric, str(sorted(one.of.items()))) for one in found}
    kept = run.path.with_name(PROJECT)
    if run.manifest().status == "finished" and kept.exists():
        project = Project(kept)
        before = [one for _, one in project.measurements(run=run.manifest().id) if not _failed(one)]
        project.close()
        found += [one for one in before if (one.metric, str(sorted(one.of.items()))) not in known]
    return found, usual_metrics(run) if found else []


def _failed(one: Measurement) -> bool:
    return any(flag.startswith("failed: ") for flag in one.flags)


def _scenario(manifest: Manifest) -> dict[str, Any]:
    try:
        found = read_yaml(manifest.scenario, "scenario").data
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _facts(run: Survey, manifest: Manifest, status: str, scenario: dict[str, Any]) -> list[tuple[str, str]]:
    """What a run is, in words."""
    counts, tables = run.counts(), run.tables
    ends = [run.end(table)[1] for table in range(tables)]
    world = scenario.get("world")
    used = str(world.get("use", "?")) if isinstance(world, dict) else "?"
    decisions = sum(sum(by_how.values()) for by_how in counts.decisions.values())
    found = [
        ("run", manifest.id),
        ("scenario", manifest.name),
        ("world", used),
        ("seed", str(manifest.seed)),
        ("models", models(scenario)),
        ("status", f"{status}: {manifest.cause}" if manifest.cause else status),
        ("made (UTC)", manifest.created[:16].replace("T", " ")),
        ("tables", f"{tables:,}"),
        ("clock tick", readable(1, manifest.tick_ms)),
        ("simulated time", readable(max(ends, default=0), manifest.tick_ms)),
        ("decisions", f"{decisions:,}"),
        ("model calls", f"{sum(counts.calls.values()):,}"),
        ("tokens", f"{counts.tokens.prompt:,} of prompts, {counts.tokens.completion:,} sampled"),
    ]
    if manifest.parent:
        moment = "" if manifest.fork_tick is None else f" at {readable(manifest.fork_tick, manifest.tick_ms)}"
        luck = f", luck {manifest.replicate}" if manifest.replicate else ""
        found.append(("forked from", f"{Path(manifest.parent).stem}{moment}{luck}"))
    return found


def models(scenario: dict[str, Any]) -> str:
    """Who speaks, in words."""
    given = scenario.get("models")
    if not isinstance(given, dict) or not given:
        return "scripted"
    known = [(name, one) for name, one in given.items() if isinstance(one, dict)]
    said = [f"{name}: {one.get('policy') or one.get('model') or '?'} ({one.get('engine', '?')})" for name, one in known]
    return ", ".join(said)


def _sections(
    run: Survey, manifest: Manifest, numbers: Sequence[Measurement], mask: Mask, prefix: str, secrets: bool
) -> list[Section]:
    finder = Finder(run, mask, prefix)
    by_family = families(numbers)
    own = by_family.pop("honesty", [])
    leaks = leak_sections(run, finder, prefix, secrets)
    finder.changes()
    finder.odd()
    finder.cited(numbers)
    moments = finder.moments()
    return [
        honesty_section(own, manifest.id, prefix),
        outcome_section(run, numbers, prefix, manifest.id),
        *(family_section(name, found, manifest.id, prefix) for name, found in by_family.items()),
        _section(
            prefix, "course", "What happened", [*plots(run, run.tables, manifest.tick_ms)], "Nothing has happened."
        ),
        *leaks,
        cast_section(run, mask, prefix),
        _section(
            prefix,
            "notable",
            "Notable events",
            [_marked(manifest.tick_ms), moments] if moments.moments else [],
            "Nothing stands out.",
        ),
        _text(manifest, mask, prefix),
    ]


def _marked(tick_ms: float) -> Note:
    return Note(
        text="Interventions, decisions that needed a second try or a default, secrets that were told, and facts that "
        "measures name; each with the records just before and after it in the log. Times and durations within records "
        f"are in ticks of {readable(1, tick_ms)}."
    )


def _section(prefix: str, name: str, title: str, blocks: Sequence[Block], nothing: str) -> Section:
    return Section(anchor=f"{prefix}-{name}", title=title, blocks=tuple(blocks) or (Note(text=nothing),))


def _text(manifest: Manifest, mask: Mask, prefix: str) -> Section:
    text = mask.text(manifest.scenario)
    source = Source(title="The scenario as it was run", text=text[:TEXT], left_out=max(0, len(text) - TEXT))
    return Section(anchor=f"{prefix}-scenario", title="Scenario", blocks=(source,))
