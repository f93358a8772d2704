"""Where all facts about captures come together on the socket thread: polls, deaths, files seen."""

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from dynolog.ipc.handler import Sender
from dynolog.ipc.wire import ACTIVITIES, ConfigRequest, ContextMessage
from dynolog.model.clock import Clock
from dynolog.model.trainer import Peer
from dynolog.profiling.captures import Capture, Subject
from dynolog.profiling.estimate import timing_of
from dynolog.profiling.host_windows import HostSampler, HostWindows, NoHostSampler
from dynolog.profiling.inspector import Facts
from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.profiling.observations import Observation
from dynolog.profiling.registry import SILENT_S, ProcessWatch, Registry
from dynolog.profiling.request_log import LoggedRequest, RequestLog
from dynolog.profiling.trainer import Trainer


class FileWatch(Protocol):
    """Looks for the files of captures off the socket thread (profiling.trace_watch)."""

    def watch(self, capture_id: str, host_pid: int, uid: int, candidate_paths: tuple[str, ...]) -> None:
        """Begin to look for files of that user; returns at once."""
        ...

    def look_last(self, capture_id: str) -> None:
        """The process has ended: look once more and report what is there, or NothingThere. Returns at once."""
        ...

    def forget(self, capture_id: str) -> None:
        """End; an unknown id is ignored."""
        ...

    def open(self, capture_id: str) -> int:
        """A descriptor of the checked file. Blocks; raises OSError."""
        ...

    @property
    def stalled(self) -> str:
        """A sentence while a disk holds it up, else ""."""
        ...

    def close(self) -> None:
        """Stop everything."""
        ...


MakeFileWatch = Callable[[asyncio.AbstractEventLoop, Callable[[str, Observation], None]], FileWatch]


class CaptureDesk:
    """Implements ipc.handler.RequestHandler: registers who polls, and gives each poll the config that waits for it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        reader: Facts,
        make_watch: MakeFileWatch,
        processes: ProcessWatch | None = None,
        *,
        sampler: HostSampler | None = None,
    ) -> None:
        self._clock = clock
        self._host = HostWindows(sampler or NoHostSampler(), clock)
        self.registry = Registry(
            loop, clock, reader, on_died=self._on_died, on_silent=self._on_silent, processes=processes
        )
        self.log = RequestLog(self._on_over)
        self.watch = make_watch(loop, self._on_observation)

    # --- messages of trainers (ipc.handler.RequestHandler) -----------------------------------------------------------

    def on_request(self, peer: Peer, sender: Sender, request: ConfigRequest) -> str | None:
        """The config that waits for this trainer, "" when there is none."""
        trainer = self.registry.poll(peer, sender, request.job_id, request.pids)
        if trainer is None:
            return ""
        trainer.ready = bool(request.mask & ACTIVITIES)
        capture = trainer.active_capture
        if capture is None:
            return ""
        text = capture.on_poll(ready=trainer.ready, uid=peer.uid)
        if text is None:
            return ""
        if trainer.verified:
            self.watch.watch(capture.id, trainer.host_pid, peer.uid, capture.paths)
        return text

    def on_context(self, peer: Peer, sender: Sender, message: ContextMessage) -> int:
        """How many processes of that job are on that GPU."""
        return self.registry.context(peer, sender, message.gpu, message.pid, message.job_id)

    def on_reply_failed(self, peer: Peer, sender: Sender, text: str) -> None:  # noqa: ARG002 - of the Protocol
        """The config waits again."""
        trainer = self.registry.at(peer, sender)
        capture = trainer.active_capture if trainer is not None else None
        if capture is not None and not capture.is_pending:
            self.watch.forget(capture.id)
            capture.on_reply_failed("the trainer's socket did not take it")

    # --- captures ----------------------------------------------------------------------------------------------------

    def arm(
        self,
        request: LoggedRequest,
        trainer: Trainer,
        path: str,
        config: KinetoConfig,
        *,
        asked_by: str,
        expected_s: float,
        host_interval_ms: int = 0,
    ) -> Capture:
        """A new pending capture that will write `path`; its config is given to the trainer's next ready poll.

        With `host_interval_ms` the host is sampled meanwhile.
        """
        previous = trainer.active_capture
        if previous is not None:
            previous.on_replaced(asked_by)
        capture_id = f"{request.id}.{len(request.captures)}"
        details = trainer.details
        capture = Capture(
            capture_id=capture_id,
            request_id=request.id,
            subject=Subject(
                pid=trainer.pid,
                host_pid=trainer.host_pid,
                uid=trainer.uid,
                job=trainer.job.text,
                rank=details.rank if details else None,
                world_size=details.world_size if details else None,
                name=trainer.name,
                path=path,
            ),
            config=config,
            timing=timing_of(trainer, config),
            asked_by=asked_by,
            expected_s=expected_s,
            clock=self._clock,
            on_change=self._on_change,
        )
        self.log.add(request, capture)
        if host_interval_ms and not config.memory_snapshot:
            self._host.arm(capture, config, host_interval_ms)
        trainer.capture = capture
        return capture

    def new_request(self, group_id: str = "") -> LoggedRequest:
        """A request with an id that cannot be guessed; `group_id` is what the caller calls the group that it belongs to."""
        return self.log.open(os.urandom(8).hex(), group_id)

    def busy_with(self, trainer: Trainer) -> str | None:
        """Who asked for what this trainer is busy with, and since when; None when it can be asked."""
        capture = trainer.active_capture
        if capture is None or capture.may_be_replaced:
            return None
        since_s = max(self._clock.wall_ns() - capture.asked_wall_ns, 0) / 1e9
        return f"a trace asked for by {capture.asked_by}, {since_s:.0f} s ago, is still {capture.state} (capture {capture.id})"

    def close(self) -> None:
        """Stop watching processes and files, and let all waiters go."""
        self.registry.close()
        self.watch.close()
        for request in self.log:
            request.release()

    # --- facts -------------------------------------------------------------------------------------------------------

    def _on_change(self, capture: Capture) -> None:
        self._host.on_change(capture)
        self.log.changed(capture)

    def _on_died(self, trainer: Trainer) -> None:
        capture = trainer.active_capture
        if capture is None:
            return
        capture.on_death(f"the process {trainer.host_pid or trainer.pid} ended")
        if not capture.state.is_final:
            self.watch.look_last(capture.id)

    def _on_silent(self, trainer: Trainer) -> None:
        capture = trainer.active_capture
        if capture is not None:
            capture.on_left(f"the trainer has not polled for {SILENT_S} s and was dropped")

    def _on_observation(self, capture_id: str, observation: Observation) -> None:
        capture = self.log.find(capture_id)
        if capture is not None:
            capture.on_observation(observation)

    def _on_over(self, capture: Capture) -> None:
        self.watch.forget(capture.id)
