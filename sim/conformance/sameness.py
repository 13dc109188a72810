"""Whether two objects are alike all through: of one type and made of equal parts, however deep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TypeAlias

Seen: TypeAlias = dict[tuple[int, int], tuple[object, object]]
"""Pairs by their ids, kept alive so that an id stands for one object only."""

_WHOLE = (str, bytes, int, float, complex, bool, type(None))
_ALONE = (type, FunctionType, BuiltinFunctionType, ModuleType)


def same(one: object, other: object) -> bool:
    """Whether a deep copy of one could be the other. Classes, functions and modules are alike only to themselves."""
    return _same(one, other, {})


def _same(one: object, other: object, seen: Seen) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, _ALONE):
        return False
    if isinstance(one, _WHOLE):
        return one == other or (one != one and other != other)
    if (pair := (id(one), id(other))) in seen:
        return True
    seen[pair] = (one, other)
    return _parts_same(one, other, seen)


def _parts_same(one: object, other: object, seen: Seen) -> bool:
    if type(one) is dict and isinstance(other, Mapping):
        return list(one) == list(other) and _each(one.values(), other.values(), seen)
    if type(one) in (list, tuple) and isinstance(other, Iterable):
        return _each(one, other, seen)  # type: ignore[arg-type]
    if isinstance(one, set | frozenset):
        return one == other
    try:
        first, second = one.__reduce_ex__(4), other.__reduce_ex__(4)
    except TypeError:  # cannot be taken apart, as a lock
        return one == other
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return len(first) == len(second) and all(_part(a, b, seen) for a, b in zip(first, second, strict=True))


def _part(one: object, other: object, seen: Seen) -> bool:
    """A part of what pickling an object would write; its items come as iterators."""
    if hasattr(one, "__next__") and hasattr(other, "__next__"):
        return _each(one, other, seen)  # type: ignore[arg-type]
    return _same(one, other, seen)


def _each(ones: Iterable[object], others: Iterable[object], seen: Seen) -> bool:
    left, right = list(ones), list(others)
    return len(left) == len(right) and all(_same(a, b, seen) for a, b in zip(left, right, strict=True))
