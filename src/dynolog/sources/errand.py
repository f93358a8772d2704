"""One call that may never return, on a thread of its own."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Errand(Generic[Result]):
    """Runs `call` on a daemon thread, at most one at a time: a call that hangs costs one thread and nothing else.

    The owner starts it, waits as long as it can afford, and takes the outcome of a call that has returned; what a call
    answered after its owner stopped waiting is there at the next look.
    """

    def __init__(self, name: str, call: Callable[[], Result]) -> None:
        self._name = name
        self._call = call
        self._thread: threading.Thread | None = None
        self._outcome: Result | Exception | None = None

    @property
    def running(self) -> bool:
        """Whether the last call has not returned yet."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Begin a call, forgetting the outcome of the last; False (and nothing done) while the last one runs."""
        if self.running:
            return False
        self._outcome = None
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait for the call at most so long; whether it has returned."""
        if self._thread is not None:
            self._thread.join(max(timeout_s, 0.0))
        return not self.running

    def take(self) -> Result | None:
        """What the call returned, once; None when there is nothing new. Raises what the call raised."""
        if self.running:
            return None
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _run(self) -> None:
        try:
            self._outcome = self._call()
        except Exception as error:  # noqa: BLE001 - the boundary of the thread: take() raises it where it is counted
            self._outcome = error
