"""Numbers for texts that repeat: a column of names is a column of int32 beside one table."""

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")


class Numbering(dict[K, int], Generic[K]):
    """Gives each new key the next number, from 0."""

    def __missing__(self, key: K) -> int:
        number = self[key] = len(self)
        return number

    def of(self, keys: list[K]) -> NDArray[np.int32]:
        """The number of each key."""
        count = len(keys)
        # Often all are the same: to compare them is cheaper than to look each up.
        if count and keys[0] == keys[-1] and keys.count(keys[0]) == count:
            return np.full(count, self[keys[0]], np.int32)
        return np.fromiter(map(self.__getitem__, keys), np.int32, count)
