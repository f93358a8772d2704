"""One object for equal values: what thousands of trainers of one job have in common is kept once."""

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar, cast

_Value = TypeVar("_Value", bound=Hashable)
# Jobs and launchers of a machine; beyond it values are only not shared.
_MOST_KEPT = 512


def shared(value: _Value) -> _Value:
    """An equal value of the same type that was given before, else this one. For immutable values only."""
    return cast("_Value", _first(value))


@lru_cache(maxsize=_MOST_KEPT, typed=True)
def _first(value: Hashable) -> Hashable:
    return value
