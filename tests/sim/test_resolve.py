"""Dotted paths: what they name, and what is said where they name nothing."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sim.scenarios.resolve import ResolveError, keywords, resolve, source_hash

HERE = Path(__file__).parent


def refusal(path: str, base: Path = HERE) -> str:
    with pytest.raises(ResolveError) as caught:
        resolve(path, base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_a_module_path_names_an_object_of_the_module() -> None:
    from sim.types import Fact

    assert resolve("sim.types:Fact", HERE) is Fact


def test_a_file_path_names_an_object_of_a_file_beside_the_scenario(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "class Mine:\n    pass\n")
    mine = resolve("./own.py:Mine", tmp_path)
    assert isinstance(mine, type)
    assert mine is resolve("./own.py:Mine", tmp_path)
    (tmp_path / "deeper").mkdir()
    assert resolve("../own.py:Mine", tmp_path / "deeper") is mine


def test_threads_that_name_one_file_get_all_of_it(tmp_path: Path) -> None:
    write(tmp_path, "slow.py", "import time\ntime.sleep(0.1)\nclass Mine:\n    pass\n")
    with ThreadPoolExecutor(4) as threads:
        found = {each.result() for each in [threads.submit(resolve, "./slow.py:Mine", tmp_path) for _ in range(4)]}
    assert len(found) == 1


def test_threads_that_name_one_module_get_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "slowly_imported.py", "import time\ntime.sleep(0.1)\nclass Mine:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        found = {each.result() for each in [threads.submit(resolve, "slowly_imported:Mine", HERE) for _ in range(4)]}
    assert len(found) == 1


def test_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    for folder, value in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "own.py", f"value = {value}\n")
    assert [resolve("./own.py:value", tmp_path / folder) for folder in "ab"] == [1, 2]


def test_an_edited_file_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "value = 1\n")
    assert resolve("./own.py:value", tmp_path) == 1
    write(tmp_path, "own.py", "value = 2\n")
    assert resolve("./own.py:value", tmp_path) == 2


def test_models_and_dataclasses_work_in_a_file(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom pydantic import BaseModel\n"
    text += "class Inner(BaseModel):\n    x: int = 1\nclass Outer(BaseModel):\n    inner: Inner = Inner()\n"
    text += "@dataclass(slots=True)\nclass Data:\n    outer: Outer\n"
    write(tmp_path, "own.py", text)
    outer = resolve("./own.py:Outer", tmp_path)
    assert callable(outer)
    assert outer().inner.x == 1


@pytest.mark.parametrize("path", ["", "sim.types", "sim.types:", ":Fact", "sim.types:a b", "./own.py"])
def test_a_path_needs_a_module_and_a_name(path: str) -> None:
    assert "write module:Name, or ./file.py:Name" in refusal(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("sim.types:Fct", "sim.types has no 'Fct'; did you mean Fact?"),
        ("sim.tyes:Fact", "no module sim.tyes; did you mean types?"),
        ("sim.types.deeper:Fact", "no module sim.types.deeper: sim.types is a module, not a package"),
        ("a b.c:Fact", "'a b.c' is no module; write module:Name, or ./file.py:Name beside the scenario"),
        (
            "nowhere_at_all.deeper:X",
            "no module nowhere_at_all; is it installed? a file beside the scenario is written ./file.py:Name",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(path: str, message: str) -> None:
    assert refusal(path) == message


def test_an_unknown_file_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "")
    assert refusal("./owm.py:X", tmp_path).endswith("did you mean ./own.py?")
    assert refusal("./a\0b.py:X", tmp_path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero"),
        ("import not_installed_at_all\n", "cannot be imported: ModuleNotFoundError: No module named"),
        ("raise ValueError('a\\nb')\n", "cannot be imported: ValueError: a b"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(tmp_path: Path, text: str, what: str) -> None:
    write(tmp_path, "own.py", text)
    before = set(sys.modules)
    assert what in refusal("./own.py:X", tmp_path)
    assert not {name for name in set(sys.modules) - before if name.startswith("own_")}


def test_a_missing_dependency_is_told_from_an_unknown_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "needy_module.py", "import not_installed_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert refusal("needy_module:X") == "needy_module needs 'not_installed_at_all', which is not installed"


def test_a_file_without_the_right_ending(tmp_path: Path) -> None:
    write(tmp_path, "own.txt", "X = 1\n")
    assert "its name must end in .py" in refusal("./own.txt:X", tmp_path)


def test_the_source_hash_follows_the_file(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "class Mine:\n    pass\n")
    before = source_hash(resolve("./own.py:Mine", tmp_path))
    assert before == source_hash(resolve("./own.py:Mine", tmp_path))
    write(tmp_path, "own.py", "class Mine:\n    x = 1\n")
    assert source_hash(resolve("./own.py:Mine", tmp_path)) not in ("", before)
    assert source_hash(3) == ""


# --- constructors, unimported -----------------------------------------------------------------------


def test_keywords_are_read_without_importing(tmp_path: Path) -> None:
    text = "import not_installed_at_all\nclass Engine:\n    def __init__(self, model, *, speed=1): ...\n"
    write(tmp_path, "heavy.py", text)
    assert keywords("./heavy.py:Engine", tmp_path) == {"model", "speed"}


@pytest.mark.parametrize(
    "text",
    [
        "class Engine:\n    def __init__(self, **settings): ...\n",
        "class Engine(Base): ...\n",
        "from elsewhere import Engine\n",
        "Engine = make()\n",
    ],
)
def test_keywords_that_cannot_be_told(tmp_path: Path, text: str) -> None:
    write(tmp_path, "heavy.py", text)
    assert keywords("./heavy.py:Engine", tmp_path) is None


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("./heavy.py:Engin", "did you mean Engine?"),
        ("./heavi.py:Engine", "did you mean ./heavy.py?"),
        ("./broken.py:Engine", "is not Python"),
        ("nowhere_at_all:Engine", "no module nowhere_at_all"),
        ("sim.nowhere:Engine", "no module sim.nowhere"),
        ("__main__:Engine", "__main__"),
    ],
)
def test_an_engine_that_is_not_there(tmp_path: Path, path: str, what: str) -> None:
    write(tmp_path, "heavy.py", "class Engine: ...\n")
    write(tmp_path, "broken.py", "def (\n")
    with pytest.raises(ResolveError, match=what.replace(".", r"\.").replace("?", r"\?")):
        keywords(path, tmp_path)


def test_the_engines_that_come_with_the_install_are_there() -> None:
    from sim.scenarios.scenario_schema import ENGINES

    assert "slots" in (keywords(ENGINES["synthetic"], HERE) or ())
    assert "base_url" in (keywords(ENGINES["openai"], HERE) or ())
    assert "dtype" in (keywords(ENGINES["vllm"], HERE) or ())
