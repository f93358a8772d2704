"""The heap of this process."""

import ctypes
from functools import cache
from typing import Any


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_memory_back() -> bool:
    """Hand free pages of the heap back to the kernel (malloc_trim(3)); False where the C library has no such call. About a millisecond."""
    trim = _malloc_trim()
    return bool(trim is not None and trim(0))
