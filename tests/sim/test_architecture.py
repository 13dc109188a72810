"""The shape of the repository: who may import whom, where luck and clocks may be read, and what a start costs."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("sim", "agents", "worlds", "training", "ui")

PURE = {
    *("sim.types", "sim.streams", "sim.quantities", "sim.answers", "sim.intervals", "sim.fingerprint", "sim.cores"),
    "sim.cuts",
}
"""What agents and worlds may import of `sim`."""
MAY: dict[str, set[str]] = {
    "sim": {"sim"},
    "agents": {"agents", *PURE},
    "worlds": {"worlds", *PURE},
    "training": {"training", "sim", "agents"},
    "ui": {"ui", "sim"},
}
BOUND = "sim.metrics"
"""What metrics bound to the facts of a world may import besides: modules of `worlds` that no run needs."""
COMPOSES = {"sim/commands/cli.py", "sim/commands/trained.py"}
"""The composition root, in two files, which may import all others inside its commands."""
HEAVY: dict[str, set[str]] = {
    "vllm": {"agents/engines/vllm_process.py", "agents/engines/vllm_mask.py"},
    "torch": {
        "agents/engines/vllm_process.py",
        "agents/engines/vllm_mask.py",
        "agents/engines/embedded.py",
        "agents/engines/drawing.py",
        "agents/engines/lexicon.py",
        "agents/engines/reading.py",
        "agents/engines/torch.py",
        "agents/engines/weights.py",
        "training/policy.py",
        "training/streams.py",
        "training/packing.py",
        "training/checkpoint.py",
        "training/forward.py",
        "training/learner.py",
        "training/loop.py",
        "training/loss.py",
        "training/diagnostics.py",
        "training/tensorboard.py",
        "training/critic.py",
        "training/gauss_newton.py",
        "training/readout.py",
        "training/trunk.py",
    },
    "transformers": {
        "agents/engines/embedded.py",
        "agents/engines/reading.py",
        "agents/engines/torch.py",
        "agents/engines/weights.py",
        "training/policy.py",
    },
    "openai": {"agents/engines/openai.py"},
    "pyarrow": {"sim/record/export.py"},
    "ray": set(),
    "streamlit": {"ui/app.py", "ui/markup.py", "ui/parts.py", "ui/views/", "ui/scenes/"},
    "plotly": {"ui/charts.py", "ui/parts.py"},
    "pyspiel": {"worlds/games/openspiel_rules.py", "training/extensive.py"},
}
"""Libraries, each with the modules, or folders of them, that own it."""
MEASURES = {"numpy", "polars", "scipy", "rapidfuzz"}
"""Libraries of metrics, which no run needs that is not measured; the page writes frames."""
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "time_ns", "monotonic_ns", "now", "utcnow", "today"}
READS_THE_CLOCK = {
    "sim/commands/progress.py": "the live display",
    "sim/commands/following.py": "how long measuring takes, for as long a rest",
    "sim/runs.py": "when a run was made",
    "sim/fork.py": "when a run was made",
    "sim/steering/pace.py": "how fast simulated time may pass",
    "sim/record/project.py": "when a number was computed",
    "sim/record/store.py": "how long rows have waited for their commit",
}
"""Modules that may read the wall clock, and for what; engines, whose latency is wall time, may too."""
DRAWS = {"sim/conformance/world_rules.py", "sim/check.py"}
"""The conformance checks watch the module's own generator, and leave it as it was."""


def modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> list[str]:
    """Modules that a file imports anywhere in it, relative ones made absolute."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = name(path).removesuffix(".py").removesuffix("/__init__").split("/")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level]) + "." if node.level else ""
            module = base + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def allowed(module: str, folder: str) -> bool:
    """Whether an import of ours is in the table; others are not its business."""
    if module.split(".")[0] not in OURS:
        return True
    may = MAY[folder] | ({BOUND} if folder == "worlds" else set())
    return any(module == one or module.startswith(one + ".") for one in may) or module == "sim"


def dotted(path: Path) -> str:
    return name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def bound() -> set[str]:
    """Modules of worlds that read records with `sim.metrics`."""
    found = {dotted(path) for path in modules("worlds") if any(one.startswith(BOUND) for one in imported(path))}
    assert found
    return found


@pytest.mark.parametrize("folder", MAY)
def test_imports_follow_the_table(folder: str) -> None:
    wrong = [
        f"{name(path)} imports {module}"
        for path in modules(folder)
        if name(path) not in COMPOSES
        for module in imported(path)
        if not allowed(module, folder)
    ]
    assert not wrong


def test_no_world_needs_the_metrics_that_are_bound_to_it() -> None:
    """So that a run which is not measured loads none of their libraries."""
    metrics = bound()
    wrong = [
        f"{dotted(path)} imports {module}"
        for path in modules("worlds")
        if dotted(path) not in metrics
        for module in imported(path)
        if module in metrics
    ]
    assert not wrong


def test_the_table_would_notice() -> None:
    assert not allowed("agents.llm", "sim")
    assert not allowed("worlds.games", "agents")
    assert not allowed("agents.llm", "worlds")
    assert not allowed("sim.kernel", "agents")
    assert not allowed("sim.kernel.Table", "worlds")
    assert allowed("sim.types.Turn", "worlds")
    assert allowed("math", "worlds")


def test_nothing_is_imported_by_a_string() -> None:
    """`import_module("agents…")` would go round the table."""
    for path in modules("sim"):
        if name(path) in COMPOSES:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
                literal = [one.value for one in node.args if isinstance(one, ast.Constant)]
                assert not [one for one in literal if str(one).split(".")[0] in OURS[1:]], name(path)


@pytest.mark.parametrize("path", sorted(COMPOSES))
def test_the_composition_root_imports_others_inside_its_commands_only(path: str) -> None:
    for node in tree(ROOT / path).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = ast.unparse(node)
            assert not any(f" {folder}" in source for folder in OURS if folder != "sim"), source


@pytest.mark.parametrize("library", HEAVY)
def test_heavy_libraries_have_one_home(library: str) -> None:
    at = {name(path) for path in modules(*OURS) for module in imported(path) if module.split(".")[0] == library}
    homes = {one for one in HEAVY[library] if one in at or any(module.startswith(one) for module in at)}
    assert homes == HEAVY[library], "every home is lived in"
    assert {module for module in at if not module.startswith(tuple(HEAVY[library]))} == set()


@pytest.mark.parametrize("library", sorted(MEASURES))
def test_libraries_of_metrics_stay_there(library: str) -> None:
    found = [path for path in modules(*OURS) if any(module.split(".")[0] == library for module in imported(path))]
    at = {name(path) for path in found if dotted(path) not in bound()}
    assert at
    assert all(each.startswith("sim/metrics/") for each in at - {"ui/parts.py", "sim/intervals.py"})


def test_no_module_level_luck() -> None:
    """Luck is keyed: `random.Random(seed)` is a generator of one's own, everything else of the module is shared."""
    wrong = []
    for path in modules("sim", "agents", "worlds"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "random":
                wrong += [f"{name(path)}: {alias.name}" for alias in node.names if alias.name != "Random"]
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if text.startswith(("random.", "np.random", "numpy.random", "secrets.", "uuid.uuid")):
                wrong += [f"{name(path)}: {text}"] * (text != "random.Random" and name(path) not in DRAWS)
    assert not wrong


def clocks(path: Path) -> set[str]:
    """Calls that read the wall clock."""
    found = set()
    named: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            named |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node.func)
        head, _, last = text.rpartition(".")
        if text in named or (head.split(".")[-1] in ("time", "datetime", "date") and last in CLOCKS):
            found.add(text)
    return found


def test_the_wall_clock_is_read_in_few_places() -> None:
    wrong = {
        name(path): read
        for path in modules("sim", "agents", "worlds")
        if (read := clocks(path)) and name(path) not in READS_THE_CLOCK and not name(path).startswith("agents/engines/")
    }
    assert not wrong


@pytest.mark.parametrize("path", modules(*OURS), ids=name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path))


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


def test_agents_are_ours() -> None:
    assert Path(run_python("import agents; print(agents.__file__)")) == ROOT / "agents" / "__init__.py"


def test_the_core_imports_nothing_heavy() -> None:
    worlds = [dotted(path) for path in modules("worlds") if path.stem != "__init__" and dotted(path) not in bound()]
    ours = [
        "sim.commands.cli",
        "sim.runs",
        "sim.commands.checking",
        "sim.commands.doctor",
        "agents.llm",
        "agents.scripted",
        *worlds,
    ]
    code = (
        f"import sys, {', '.join(ours)}; print([one for one in {sorted(MEASURES.union(HEAVY))} if one in sys.modules])"
    )
    assert run_python(code) == "[]"


def test_help_is_quick() -> None:
    """CPU time, which a busy machine stretches less than wall time; the least of several tries."""
    agora = Path(sys.executable).with_name("agora")
    least = float("inf")
    for _ in range(8):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = subprocess.run([agora, "--help"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if least < 0.3:
            break
    assert "resume" in shown.stdout
    assert least < 0.3, f"agora --help takes {least:.2f} s of CPU time"
