"""Looking at many things of which one may hang: a process that holds its own mmap lock, a file system whose server is dead."""

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
# A look takes a millisecond; one that takes so long will not end by itself soon.
PATIENCE_S = 1.0
# Each hanging look keeps a thread; beyond so many the machine is in such trouble that waiting for more tells nothing.
_MOST_HANGING = 4


class Looks(Generic[Item, Answer]):
    """The answers by item in their order; items that are gone have none; `hanging` are those that did not answer."""

    def __init__(self) -> None:
        self.answers: dict[Item, Answer] = {}
        self.hanging: list[Item] = []


def look_at_each(
    items: Iterable[Item], look: Callable[[Item], Answer | None], patience_s: float = PATIENCE_S
) -> Looks[Item, Answer]:
    """Call `look` on each, one after another, on a thread that is left behind when it hangs. OSError and ValueError mean no answer."""
    looks: Looks[Item, Answer] = Looks()
    waiting = list(items)[::-1]
    while waiting and len(looks.hanging) < _MOST_HANGING:
        worker = _Worker(waiting, look, looks.answers)
        while not worker.wait(patience_s):
            pass
        if worker.hangs_on:
            looks.hanging.append(worker.hangs_on[0])
            waiting = worker.left
        else:
            waiting = []
    looks.hanging += waiting[::-1]
    return looks


class _Worker(Generic[Item, Answer]):
    """One thread at work on its own copy of what is left, until it is done or given up."""

    def __init__(self, waiting: list[Item], look: Callable[[Item], Answer | None], answers: dict[Item, Answer]) -> None:
        self.left = list(waiting)
        self.hangs_on: list[Item] = []
        self._look = look
        self._answers = answers
        self._current: list[Item] = []
        self._done = 0
        self._seen = -1
        self._lock = threading.Lock()
        self._given_up = False
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="look", daemon=True).start()

    def wait(self, patience_s: float) -> bool:
        """Whether it is over: all done, or nothing new for so long."""
        if self._ended.wait(patience_s):
            return True
        with self._lock:
            # Between two looks, or before the first one, the thread has only not had its turn on a busy machine.
            if self._done != self._seen or not self._current:
                self._seen = self._done
                return False
            self._given_up = True
            self.hangs_on = self._current
        return True

    def _run(self) -> None:
        while item := self._next():
            try:
                answer = self._look(item[0])
            except (OSError, ValueError):  # it has gone, or is not ours to see
                answer = None
            self._keep(item[0], answer)
        self._ended.set()

    def _next(self) -> list[Item]:
        """The next one in a list of its own; an empty list when there is nothing more to do here."""
        with self._lock:
            self._current = [self.left.pop()] if self.left and not self._given_up else []
            return self._current

    def _keep(self, item: Item, answer: Answer | None) -> None:
        with self._lock:
            self._done += 1
            if answer is not None and not self._given_up:
                self._answers[item] = answer
