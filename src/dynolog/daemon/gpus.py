"""The GPUs as the RPC asks for them: what there is to see, and pausing the profiling (rpc.services.GpuService)."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from dynolog.collectors.gpu import SPEC, source_of
from dynolog.model.flag import Settings
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.pipeline.device_records import DeviceBoard
from dynolog.sources.gpu_registry import NONE
from dynolog.sources.gpu_source import Answer, GpuSource

# How long a request waits for the driver; a client waits for 10 s.
_PATIENCE_S = 5.0
# For the child to let go of the library when the daemon stops.
_STOP_S = 0.5


class Gpus:
    """Made and used on the socket thread; nothing here waits for a driver. Raises FlagError."""

    def __init__(self, settings: Settings, board: DeviceBoard, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._board = board
        self._loop = loop
        kernel_interval_s = settings.number("kernel_monitor_reporting_interval_s")
        self.source: GpuSource = source_of(settings, settings.text("root_dir"), kernel_interval_s)

    @property
    def is_enabled(self) -> bool:
        """Whether GPUs are monitored at all; a reload may change it."""
        return self._settings.on(SPEC.enable_flag)

    @property
    def is_wanted(self) -> bool:
        """Whether devices are to be read: with --gpu_backend=none there is nothing that could fail."""
        return self.is_enabled and self.source.options.backend != NONE

    def status(self) -> GpuStatus:
        """The source of all."""
        return self.source.status() if self.is_enabled else GpuStatus(enabled=False)

    def devices(self) -> Sequence[GpuDevice]:
        """The devices of the last report; none while they are not read: old values look like present ones."""
        return self._board.latest(SPEC.name) if self.is_enabled and not self.source.status().why else ()

    async def pause(self, duration_s: float) -> bool:
        """Pause profiling; False when there is none to pause, or the driver has not answered in 5 s."""
        return await self._wish(lambda answer: self.source.pause(duration_s, answer))

    async def resume(self) -> bool:
        """Resume profiling now; False when there is none to resume."""
        return await self._wish(self.source.resume)

    def close(self) -> None:
        """End the child."""
        self.source.close(_STOP_S)

    async def _wish(self, ask: Callable[[Answer], None]) -> bool:
        if not self.is_enabled:
            return False
        answered: asyncio.Future[bool] = self._loop.create_future()

        def answer(done: bool) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
                self._loop.call_soon_threadsafe(settle, done)

        def settle(done: bool) -> None:
            if not answered.done():
                answered.set_result(done)
            elif done:
                # The client was told that nothing was done: make that true.
                self.source.resume(lambda _: None)

        ask(answer)
        try:
            return await asyncio.wait_for(answered, _PATIENCE_S)
        except TimeoutError:
            return False
