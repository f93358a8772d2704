"""The requests that the daemon remembers, their captures, and who waits for a change of them."""

import asyncio
from collections.abc import Callable, Iterator

from dynolog.model.capture import CaptureState
from dynolog.model.errors import RequestError
from dynolog.model.trace_request import RequestProgress
from dynolog.profiling.captures import Capture

MOST_FINISHED = 1024
_MANY = 64
_GATHER_S = 0.1


class LoggedRequest:
    """One request: its captures, and a version that grows with every change of one of them."""

    __slots__ = ("_waiters", "captures", "group_id", "id", "unfinished", "version")

    def __init__(self, request_id: str, group_id: str = "") -> None:
        self.id = request_id
        self.group_id = group_id
        self.captures: list[Capture] = []
        self.version = 0
        self.unfinished = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def done(self) -> bool:
        """Whether all its captures are final."""
        return self.unfinished == 0

    def changed(self) -> None:
        """A capture of it has changed."""
        self.version += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def progress(self) -> RequestProgress:
        """As it stands."""
        return RequestProgress(
            request_id=self.id,
            group_id=self.group_id,
            version=self.version,
            done=self.done,
            captures=tuple(capture.info() for capture in self.captures),
        )

    async def wait(self, seen_version: int, timeout_s: float) -> None:
        """Until the version is above `seen_version`, all is done, or `timeout_s` is over."""
        if self.done or self.version > seen_version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=timeout_s)
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()
        # Thousands of captures change one by one, and each answer tells all of them: gather what comes at the same time.
        if self.unfinished and len(self.captures) >= _MANY:
            await asyncio.sleep(_GATHER_S)

    def release(self) -> None:
        """Let all waiters go, as the daemon ends."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class RequestLog:
    """Requests by id, oldest first. At most `most_finished` finished captures are kept, but always the newest request.

    `on_over(capture)` is called when nothing more can be asked of the file of a capture: it ended without one, or is forgotten.
    """

    def __init__(self, on_over: Callable[[Capture], None], most_finished: int = MOST_FINISHED) -> None:
        self._requests: dict[str, LoggedRequest] = {}
        self._captures: dict[str, Capture] = {}
        self._active: set[str] = set()
        self._on_over = on_over
        self._most_finished = most_finished

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._requests.values())

    @property
    def active(self) -> int:
        """How many captures are not final."""
        return len(self._active)

    def written_files(self) -> set[tuple[int, str]]:
        """The host pid and path of each trace that was written and is remembered."""
        found = self._captures.values()
        return {(one.subject.host_pid, one.path) for one in found if one.state is CaptureState.WRITTEN}

    def open(self, request_id: str, group_id: str = "") -> LoggedRequest:
        """A new request, without captures yet."""
        request = LoggedRequest(request_id, group_id)
        self._requests[request_id] = request
        return request

    def add(self, request: LoggedRequest, capture: Capture) -> None:
        """A new capture of it."""
        request.captures.append(capture)
        request.unfinished += 1
        self._captures[capture.id] = capture
        self._active.add(capture.id)

    def changed(self, capture: Capture) -> None:
        """Captures call this at every change."""
        request = self._requests[capture.request_id]
        if capture.state.is_final and capture.id in self._active:
            self._active.discard(capture.id)
            request.unfinished -= 1
            if capture.state is not CaptureState.WRITTEN:
                self._on_over(capture)
            self._forget_oldest()
        request.changed()

    def request(self, request_id: str) -> LoggedRequest:
        """Raises RequestError("not_found")."""
        try:
            return self._requests[request_id]
        except KeyError:
            raise RequestError(
                "not_found",
                f"no request {request_id[:64]!r}: the daemon forgets old ones, and all of them when it restarts; "
                "`dyno trace` lists those it has",
            ) from None

    def capture(self, capture_id: str) -> Capture:
        """Raises RequestError("not_found")."""
        try:
            return self._captures[capture_id]
        except KeyError:
            raise RequestError(
                "not_found",
                f"no capture {capture_id[:64]!r}: the daemon forgets old ones, and all of them when it restarts",
            ) from None

    def find(self, capture_id: str) -> Capture | None:
        """The capture, if it is still remembered."""
        return self._captures.get(capture_id)

    def _forget_oldest(self) -> None:
        finished = len(self._captures) - len(self._active)
        if finished <= self._most_finished:
            return
        newest = next(reversed(self._requests))
        for request in list(self._requests.values()):
            if finished <= self._most_finished:
                return
            if request.done and request.id != newest:
                finished -= len(request.captures)
                del self._requests[request.id]
                for capture in request.captures:
                    del self._captures[capture.id]
                    if capture.state is CaptureState.WRITTEN:
                        self._on_over(capture)
