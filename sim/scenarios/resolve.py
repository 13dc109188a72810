"""Dotted paths of scenario files: `module:Name`, or `./file.py:Name` beside the scenario, to the object.

No registry: whatever can be imported can be used. A file is imported under a name made from its folder and content, so
two files of one name do not meet, and an edited file is read anew.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import threading
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from sim.scenarios.located import nearest

_importing = threading.RLock()
"""Held while a file is imported: threads that name it meanwhile get all of it."""


class ResolveError(ValueError):
    """A dotted path stands for nothing; the text is one line."""


def resolve(path: str, base: Path) -> object:
    """The object that a dotted path names; files are looked for from the folder `base`. Raises ResolveError."""
    where, name = split(path)
    module = _file_module(where, base) if is_file(where) else _module(where)
    if not hasattr(module, name):
        names = [each for each in vars(module) if not each.startswith("_")]
        raise ResolveError(f"{where} has no {name!r}; {nearest(name, names)}")
    return getattr(module, name)


def split(path: str) -> tuple[str, str]:
    """The module or file, and the name in it. Raises ResolveError."""
    where, colon, name = path.rpartition(":")
    if not colon or not where or not name.isidentifier():
        raise ResolveError(f"{path!r} names nothing; write module:Name, or ./file.py:Name beside the scenario")
    return where, name


def is_file(where: str) -> bool:
    """Whether the first part of a dotted path is a file."""
    return where.startswith(("./", "../")) or where.endswith(".py")


def source_hash(thing: object) -> str:
    """Hash (hex) of the source file that defines a class or function; empty where there is none."""
    module = inspect.getmodule(thing)
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return ""
    return blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()


def keywords(path: str, base: Path) -> frozenset[str] | None:
    """Keywords that a class's constructor takes, read off its source without importing it; None: not to be told.

    So a scenario can be checked on a machine where the engine it names cannot be imported. Raises ResolveError.
    """
    where, name = split(path)
    source = _source(where, base)
    if source is None:
        return None
    tree = _parsed(source, where)
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if not found:
        if name in _bindings(tree):
            return None
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        raise ResolveError(f"{where} has no class {name!r}; {nearest(name, classes)}")
    for node in found[-1].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            if node.args.kwarg is not None:
                return None
            return frozenset(arg.arg for arg in [*node.args.args[1:], *node.args.kwonlyargs])
    return None


def _bindings(tree: ast.Module) -> set[str]:
    """Names that a module imports or assigns."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _source(where: str, base: Path) -> str | None:
    """Source text of a module or file; None for a module without one."""
    if is_file(where):
        return _read(where, base).decode(errors="replace")
    _check_parents(where)
    try:
        spec = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise _unknown_module(where)
    file = spec.origin
    return Path(file).read_text(encoding="utf-8") if file and file.endswith(".py") else None


@lru_cache(64)
def _parsed(source: str, where: str) -> ast.Module:
    """Read only; a training loads its scenario at every turn."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ResolveError(f"{where} is not Python: {error}") from None


def _read(where: str, base: Path) -> bytes:
    try:
        return (base / where).read_bytes()
    except (OSError, ValueError):
        known = [f"./{path.name}" for path in base.glob("*.py")]
        raise ResolveError(f"no file {where} beside the scenario (in {base}); {nearest(where, known)}") from None


def _file_module(where: str, base: Path) -> ModuleType:
    source = _read(where, base)
    file = (base / where).resolve()
    mark = blake2b(str(file).encode() + b"\0" + source, digest_size=8).hexdigest()
    name = f"{file.stem}_{mark}"
    with _importing:
        return sys.modules.get(name) or _loaded(where, file, name, source)


def _loaded(where: str, file: Path, name: str, source: bytes) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ResolveError(f"{where} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise _failed(where, error) from error
    return module


def _module(where: str) -> ModuleType:
    if where not in sys.modules:
        _check_parents(where)
    try:  # also where it is there: another thread may be importing it, and is waited for
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(error.name + ".")):
            raise _unknown_module(where) from None
        raise ResolveError(f"{where} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise _failed(where, error) from error


def _check_parents(where: str) -> None:
    """Import the packages around a module, so that an unknown one is told from a broken one."""
    parent = where.rpartition(".")[0]
    if not all(part.isidentifier() for part in where.split(".")):
        raise ResolveError(f"{where!r} is no module; write module:Name, or ./file.py:Name beside the scenario")
    if parent and not hasattr(_module(parent), "__path__"):
        raise ResolveError(f"no module {where}: {parent} is a module, not a package")


def _unknown_module(where: str) -> ResolveError:
    parent, _, last = where.rpartition(".")
    siblings = getattr(sys.modules.get(parent), "__path__", None) if parent else None
    names = [info.name for info in pkgutil.iter_modules(siblings)] if siblings is not None else []
    hint = nearest(last, names) if names else "is it installed? a file beside the scenario is written ./file.py:Name"
    return ResolveError(f"no module {where}; {hint}")


def _failed(where: str, error: Exception) -> ResolveError:
    text = " ".join(str(error).split())
    return ResolveError(f"{where} cannot be imported: {type(error).__name__}: {text}")
