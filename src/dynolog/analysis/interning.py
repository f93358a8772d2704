"""Numbers for texts that repeat: a column of names is a column of int32 beside one table."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")


class Numbering(dict[K, int], Generic[K]):
    """Gives each new key the next number, from 0."""

    def __missing__(self, key: K) -> int:
        number = self[key] = len(self)
        return number

    def of(self, keys: Iterable[K], count: int) -> NDArray[np.int32]:
        """The numbers of `count` keys."""
        return np.fromiter(map(self.__getitem__, keys), np.int32, count)
