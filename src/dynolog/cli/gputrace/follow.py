"""Following a request to its end."""

import sys
import time
from collections import Counter

from dynolog.cli.daemon_clock import clock_offset_ns
from dynolog.cli.exit_codes import UNREACHABLE, CommandError, Interrupted
from dynolog.cli.gputrace.one_request import ask_about
from dynolog.cli.gputrace.progress_views import ProgressView, choose_view
from dynolog.cli.target_words import command_for
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import RequestProgress
from dynolog.rpc.client import CannotReach, NoAnswer, Target
from dynolog.rpc.messages import WaitTrace

_ASK_FOR_S = 20.0  # one waitTrace; the daemon answers at once when something changes
_OUTAGES_BORNE = 10
_PAUSE_S = 1.0


class Follower:
    """Asks for a request until it is done. `wait_timeout_s` None waits for as long as it takes."""

    def __init__(
        self, target: Target, request_id: str, *, wait_timeout_s: float | None = None, pause_s: float = _PAUSE_S
    ) -> None:
        self._target = target
        self._request_id = request_id
        self._deadline = None if wait_timeout_s is None else time.monotonic() + wait_timeout_s
        self._pause_s = pause_s
        self._progress: RequestProgress | None = None

    def follow(self, view: ProgressView) -> RequestProgress:
        """The request when it is done or time is up. Raises Interrupted on Ctrl-C, CommandError when the daemon is lost."""
        outages = 0
        try:
            while True:
                try:
                    self._progress = self._ask()
                    outages = 0
                except (CannotReach, NoAnswer, RequestError) as error:
                    if isinstance(error, RequestError) and not error.is_temporary:
                        raise
                    outages += 1
                    self._bear(outages, error)
                    continue
                view.show(self._progress)
                if self._progress.done or self._left_s() <= 0:
                    return self._progress
        except KeyboardInterrupt:
            raise Interrupted(self._interrupted()) from None

    def _left_s(self) -> float:
        return _ASK_FOR_S if self._deadline is None else self._deadline - time.monotonic()

    def _ask(self) -> RequestProgress:
        wait_s = max(min(_ASK_FOR_S, self._left_s()), 0.0)
        seen = -1 if self._progress is None else self._progress.version
        request = WaitTrace(request_id=self._request_id, seen_version=seen, timeout_s=wait_s)
        try:
            return ask_about(self._target, request)
        except RequestError as error:
            if error.code == "not_found" and self._progress is not None:
                raise CommandError(
                    f"the daemon no longer knows request {self._request_id}: it was restarted. "
                    "Traces that had been delivered are still written where it was said"
                ) from None
            raise

    def _bear(self, outages: int, error: Exception) -> None:
        """A daemon may be restarted while a trace goes on: wait a little, then give up."""
        if outages >= _OUTAGES_BORNE:
            raise CommandError(
                f"{error}; traces that had been delivered are still written where it was said. "
                f"When it is back: {command_for(self._target, 'trace', self._request_id)}",
                UNREACHABLE,
            ) from None
        time.sleep(self._pause_s)

    def _interrupted(self) -> str:
        words = "it"
        if self._progress is not None:
            states = Counter(str(capture.state) for capture in self._progress.captures if not capture.state.is_final)
            words = ", ".join(f"{number} {state}" for state, number in states.items()) or "it"
        return (
            f"interrupted: request {self._request_id} goes on in the daemon ({words}): "
            f"follow it with `{command_for(self._target, 'trace', self._request_id)}`"
        )


def follow(target: Target, request_id: str, *, as_json: bool, wait_timeout_s: float | None) -> RequestProgress:
    """Follow with the view that fits stdout."""
    view = choose_view(as_json=as_json, clock_offset_ns=clock_offset_ns(target) if sys.stdout.isatty() else 0)
    try:
        return Follower(target, request_id, wait_timeout_s=wait_timeout_s).follow(view)
    finally:
        view.close()
