"""What is fuzzed: something that takes bytes, the errors that it declares, and the time that it may take."""

import contextlib
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

Feed = Callable[[bytes], object]

# Of the thread's own CPU time, so that a busy machine is not taken for a slow parser. Instrumented code runs at a fifth of its speed.
BASE_S = 1.0
PER_KIB_S = 0.01
# One input in so many is also fed repeated to this size: what takes quadratic time shows then.
REPEAT_EVERY = 200
REPEATED_BYTES = 1 << 16


class TooSlow(Exception):  # noqa: N818 - it is what was found
    """An input took more CPU time than its size allows."""


class Target(NamedTuple):
    """`make` gets an empty directory, and what closes at the end whatever it opens, and gives what takes the bytes.

    `declared` are the errors that may come out, and no others.

    `modules` are those of `dynolog` that it is there for. `largest` is the size of inputs in bytes; `share` is the part of the inputs that
    it gets of a run over all targets, where 1 is usual and a slow one gets less.
    """

    name: str
    make: Callable[[str, ExitStack], Feed]
    declared: tuple[type[Exception], ...] = ()
    modules: tuple[str, ...] = ()
    largest: int = 2048
    share: float = 1.0


def plain(
    name: str, feed: Feed, *declared: type[Exception], modules: Sequence[str] = (), largest: int = 2048
) -> Target:
    """A target that needs nothing but the bytes."""
    return Target(name, lambda _directory, _stack: feed, declared, tuple(modules), largest)


class Checker:
    """Feeds inputs to a target until it is closed. Raises what the target must not raise, and TooSlow."""

    def __init__(self, target: Target, directory: str) -> None:
        self._declared = target.declared
        self._stack = ExitStack()
        self._feed = target.make(directory, self._stack)
        self.inputs = 0

    def close(self) -> None:
        """Close what the target has opened."""
        self._stack.close()

    def __call__(self, data: bytes) -> None:
        """One input, and now and then the same many times over."""
        self.inputs += 1
        self._one(data)
        if data and self.inputs % REPEAT_EVERY == 0:
            self._one(data * (REPEATED_BYTES // len(data)))

    def _one(self, data: bytes) -> None:
        started_s = time.thread_time()
        with contextlib.suppress(*self._declared):
            self._feed(data)
        spent_s = time.thread_time() - started_s
        if spent_s > BASE_S + PER_KIB_S * len(data) / 1024:
            raise TooSlow(f"{spent_s:.1f} s of CPU time for {len(data):,} bytes that begin with {data[:60]!r}")


def text_of(data: bytes) -> str:
    """Bytes as the text that a program gets for an argument or a file name."""
    return data.decode("utf-8", "surrogateescape")
