"""From start to stop: what is opened in which order, signals, reload, and a stop in time."""

import asyncio
import errno
import gc
import logging
import signal
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from dynolog import __version__
from dynolog.collectors.registry import COLLECTORS
from dynolog.daemon import exit_codes
from dynolog.daemon.flag_parser import ParsedFlags
from dynolog.daemon.glog import GlogSink
from dynolog.daemon.idle_flags import idle_flags
from dynolog.daemon.recent_troubles import RecentTroubles
from dynolog.daemon.service_manager import ServiceManager
from dynolog.daemon.wiring import Daemon
from dynolog.exporters.registry import LIVE_FLAGS
from dynolog.model.errors import AddressInUse, DynologError, FlagError
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.reload import ReloadReport
from dynolog.pipeline.config import config_of

_log = logging.getLogger(__name__)
# What stopping may take beside --shutdown_timeout_s, which is for exporters with a queue of their own: 2 s for all together.
_PIPELINE_STOP_S = 0.4
_LOCAL_STOP_S = 1.0


def exit_code_of(error: BaseException) -> int:
    """The exit code for an error at start, by the first system error behind it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressInUse):
            return exit_codes.ADDRESS_IN_USE
        if isinstance(cause, FlagError):
            return exit_codes.BAD_FLAG
        if isinstance(cause, OSError):
            if cause.errno == errno.EADDRINUSE:
                return exit_codes.ADDRESS_IN_USE
            if cause.errno in (errno.EACCES, errno.EPERM):
                return exit_codes.NO_PERMISSION
        cause = cause.__cause__
    return exit_codes.FAILED


class LifeCycle:
    """Runs one daemon. `reread` parses the command line and flag files again, for a reload."""

    def __init__(
        self,
        settings: Settings,
        sink: GlogSink,
        troubles: RecentTroubles,
        reread: Callable[[], ParsedFlags],
        said: tuple[str, ...],
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._troubles = troubles
        self._reread = reread
        self._said = said
        self._daemon: Daemon | None = None
        self._stopped_by = ""
        self._manager = ServiceManager()
        self._reloading = asyncio.Lock()
        self._hangup: asyncio.Task[ReloadReport] | None = None

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises DynologError when it cannot start."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve(loop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()
            self._stop_threads()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop, number, stop)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup, loop)
        loop.set_exception_handler(_on_loop_error)
        _log.info("Starting dynolog, version = %s", __version__)
        for sentence in (*self._said, *idle_flags(self._settings)):
            _log.warning("%s", sentence)
        daemon = self._daemon = Daemon(self._settings, self._sink, self._troubles, loop, said=self._said, reload=self)
        try:
            daemon.rpc.start()
            if daemon.ipc is not None:
                daemon.ipc.start()
            daemon.pipeline.start()
            self._say_what_runs(daemon)
            # What was made so far lives as long as the daemon: the collector of cycles need not look at it again.
            gc.collect()
            gc.freeze()
            self._manager.ready(loop, f"serves on {', '.join(daemon.rpc.addresses)}")
            await stop.wait()
            _log.info("Stopping: %s", self._stopped_by)
        finally:
            self._manager.stopping()
            await daemon.rpc.stop()
            if daemon.ipc is not None:
                daemon.ipc.close()
            daemon.traces.close()
            daemon.host.burst.close()
            self._manager.close()

    def _say_what_runs(self, daemon: Daemon) -> None:
        _log.info("RPC listens on %s", ", ".join(daemon.rpc.addresses))
        if daemon.ipc is not None:
            _log.info("IPC monitor listens on %s", ", ".join(daemon.ipc.addresses))
        else:
            _log.info("IPC monitor is off: no process can be traced; --enable_ipc_monitor turns it on")
        interval = self._settings.number("kernel_monitor_reporting_interval_s")
        names = [status.name for status in daemon.pipeline.statuses()]
        _log.info("Running kernel monitor loop : interval = %g s. Collectors: %s", interval, ", ".join(names) or "none")
        if not daemon.exporters:
            _log.warning("no destination is on: records are kept for dyno metrics only: --use_JSON logs them")
        if self._settings.text("spool_dir") and not any(status.spool for status in daemon.fanout.statuses()):
            _log.warning("--spool_dir has no effect: no exporter that keeps records for later is on")
        _log.info("dynolog is ready")

    def _on_stop(self, number: int, stop: asyncio.Event) -> None:
        self._stopped_by = signal.Signals(number).name
        stop.set()

    def _on_hangup(self, loop: asyncio.AbstractEventLoop) -> None:
        # Kept, because the loop holds its tasks by weak references only.
        self._hangup = loop.create_task(self.reload())

    async def reload(self) -> ReloadReport:
        """Reopen the log and read everything again that can change while the daemon runs (rpc.services.ReloadService)."""
        async with self._reloading:
            self._manager.reloading()
            try:
                return await self._reload()
            finally:
                self._manager.reloaded()

    async def _reload(self) -> ReloadReport:
        self._sink.reopen()
        try:
            parsed = self._reread()
        except DynologError as error:
            _log.error("reload: log reopened, flags not reloaded: %s", error)
            return ReloadReport(errors=(f"flags not reloaded: {error}",))
        before = Settings(self._settings.flags.values(), self._settings.given)
        kept, changed, refused = self._take_over(parsed)
        for sentence in parsed.warnings:
            _log.warning("%s", sentence)
        if kept:
            _log.warning("reload: these take effect at the next start: %s", ", ".join(kept))
        parts: list[ReloadReport] = []
        if self._daemon is not None:
            self._daemon.pipeline.reconfigure(config_of(self._settings, COLLECTORS))
            exporters = await self._daemon.reload_exporters(before)
            parts = [exporters, self._daemon.selections.reload(), await self._daemon.rpc.reload()]
        changed += [one for part in parts for one in part.changed]
        _log.info("reload: log reopened; %s", f"now in effect: {', '.join(changed)}" if changed else "no flag changed")
        return ReloadReport(
            changed=tuple(changed),
            waiting=(*kept, *(one for part in parts for one in part.waiting)),
            errors=(*refused, *(one for part in parts for one in part.errors)),
            warnings=parsed.warnings,
        )

    def _take_over(self, parsed: ParsedFlags) -> tuple[list[str], list[str], list[str]]:
        """Put the flags that changed into effect: the names of those that must wait, what changed, and why some were refused."""
        old, new = dict(self._settings.given), parsed.given
        differing = {name for name in {**old, **new} if old.get(name) != new.get(name)}
        exporters = differing & LIVE_FLAGS
        waiting = {name for name in differing if not self._settings.flags[name].live}
        wanted = _without(new, old, waiting)
        refused: list[str] = []
        if exporters and self._daemon is not None and (error := self._daemon.refuses_exporters(wanted)):
            refused.append(f"flags of exporters not reloaded: {error}")
            _log.error("reload: %s", refused[0])
            wanted = _without(wanted, old, exporters)
            differing -= exporters
        self._settings.update(wanted)
        changed = [self._shown(name) for name in differing - waiting]
        return sorted(f"--{name}" for name in waiting), sorted(changed), refused

    def _shown(self, name: str) -> str:
        return f"--{name}" if self._settings.flags[name].secret else f"--{name}={self._settings.value(name)}"

    def _stop_threads(self) -> None:
        if self._daemon is None:
            return
        if not self._daemon.pipeline.stop(_PIPELINE_STOP_S):
            _log.warning("a collector hangs and is left behind")
        self._daemon.gpus.close()
        timeout_s = self._settings.number("shutdown_timeout_s")
        if not self._daemon.fanout.close(min(timeout_s, _LOCAL_STOP_S), timeout_s):
            _log.warning("not everything could be delivered within --shutdown_timeout_s")


def _without(
    new: Mapping[str, FlagValue], old: Mapping[str, FlagValue], names: AbstractSet[str]
) -> dict[str, FlagValue]:
    """`new`, but what `old` gives for these names."""
    kept = {name: old[name] for name in names if name in old}
    return {name: value for name, value in new.items() if name not in names} | kept


def _on_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    error = context.get("exception")
    _log.error("%s", context.get("message"), exc_info=error if isinstance(error, BaseException) else None)
