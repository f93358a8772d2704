"""NVIDIA GPUs through NVML: the backend for machines without DCGM."""

import time
from collections.abc import Callable

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuReading, GpuSample, ProfilingState
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.host_files import HostFiles
from dynolog.sources.nvidia_proc import nvidia_devices
from dynolog.sources.nvml.backoff import Backoff
from dynolog.sources.nvml.context import SessionContext
from dynolog.sources.nvml.errors import Code, unavailable, words
from dynolog.sources.nvml.gpu import Gpu
from dynolog.sources.nvml.inventory import Inventory, KnownGpu, fell_off
from dynolog.sources.nvml.pci import as_in_sysfs, gpus_on_bus
from dynolog.sources.nvml.session import Notices, Session
from dynolog.sources.nvml.values import Gathered
from dynolog.sources.nvml.xid import XidCounts

# Polling more often upset old drivers, and GPM needs 100 ms between two samples.
_LEAST_INTERVAL_S = 0.5
# What PCI shows, which changes only when somebody takes a card out or gives it to a virtual machine.
_BUS_S = 60.0
# A device that is not there may be back after a reset, but only a new session of NVML sees it.
_REVIVAL_S, _LONGEST_REVIVAL_S = 300.0, 3600.0
# No device answers: the session itself may be broken.
_RENEWAL_S, _LONGEST_RENEWAL_S = 10.0, 600.0
_NO_GPM = "no GPU here has GPM (Hopper or newer, driver 525 or newer), the counters that NVML can read without DCGM"
# With these it is the device that is broken, not the session.
_OF_THE_DEVICE = frozenset({Code.GPU_IS_LOST, Code.RESET_REQUIRED, Code.GPU_NOT_FOUND})


class NvmlBackend:
    """Reads all GPUs through one session. The clocks (monotonic and Unix time, in seconds) are replaced by tests."""

    def __init__(
        self,
        options: GpuOptions,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._host = HostFiles(options.root_dir)
        # Half of a short interval, so that a round that comes a little early is a round.
        self._least_interval_s = min(_LEAST_INTERVAL_S, options.interval_s / 2)
        self._now_s = now_s
        self._wall_s = wall_s
        self._session = Session()
        self._notices = Notices()
        self._inventory = Inventory()
        self._xids = XidCounts()
        self._context: SessionContext | None = None
        self._gpus: list[Gpu] = []
        self._broken: list[tuple[KnownGpu, str]] = []
        self._revival = Backoff(_REVIVAL_S, _LONGEST_REVIVAL_S)
        self._renewal = Backoff(_RENEWAL_S, _LONGEST_RENEWAL_S)
        self._on_bus = 0
        self._next_bus_s = float("-inf")
        self._latest: GpuSample | None = None
        self._sampled_s = 0.0

    # --- the session --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start a session and find the devices. Raises SourceUnavailable."""
        self._end_session()
        self._session.open()
        self._context = SessionContext(self._session, self._notices)
        try:
            self._find_all(self._context)
        except SourceUnavailable:
            self._end_session()
            raise

    def _find_all(self, context: SessionContext) -> None:
        nvml = context.nvml
        try:
            count = int(nvml.nvmlDeviceGetCount())
        except nvml.NVMLError as error:
            raise unavailable(error.value) from error
        failed = [(index, code) for index in range(count) if (code := self._find(context, index))]
        uuids = {device.index: device.uuid for device in nvidia_devices(self._host)} if failed else {}
        for index, code in failed:
            # The kernel's side of the driver may still know who it is.
            shown = {gpu.known.device for gpu in self._gpus} | {known.device for known, _ in self._broken}
            known = self._inventory.nameless(index, uuids.get(index, ""), shown)
            self._broken.append((known, words(code)))
        if not self._gpus and not self._broken and not len(self._inventory):
            on_bus = len(gpus_on_bus(self._host))
            raise SourceUnavailable(
                "nvml",
                f"the driver shows no GPU (PCI shows {on_bus})",
                "the kernel log says why it did not take them; a container must be given the devices" if on_bus else "",
            )
        asleep = [gpu.known.device for gpu in self._gpus if not gpu.is_kept_awake]
        self._notices.say(
            "nvml_persistence",
            f"nvml: persistence mode is off on GPU {', '.join(asleep)}: when the last process leaves it, the driver shuts it down, "
            "which costs the next one seconds and resets limits and error counters: start nvidia-persistenced or run nvidia-smi -pm 1"
            if asleep
            else "",
        )

    def _find(self, context: SessionContext, index: int) -> int:
        """Add the GPU; the error code when it does not even say who it is, else 0."""
        nvml = context.nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = str(nvml.nvmlDeviceGetUUID(handle))
        except nvml.NVMLError as error:
            return int(error.value)
        known = self._inventory.recognise(
            index,
            uuid,
            str(context.optional(nvml.nvmlDeviceGetName, handle) or ""),
            as_in_sysfs(str(context.optional(lambda device: nvml.nvmlDeviceGetPciInfo_v3(device).busId, handle) or "")),
            context.optional(nvml.nvmlDeviceGetMinorNumber, handle),
        )
        gpu = Gpu(context, handle, known)
        self._gpus.append(gpu)
        try:
            gpu.listen()
        except nvml.NVMLError as error:
            self._notices.say(
                f"nvml_xid_{known.device}", f"nvml: Xids of GPU {known.device} cannot be counted: {words(error.value)}"
            )
        return 0

    def _end_session(self) -> None:
        for gpu in self._gpus:
            gpu.close()
        self._gpus, self._broken = [], []
        if self._context is not None:
            self._context.xids.close()
            self._context = None
        self._session.close()

    def close(self) -> None:
        """Let go of everything. Never raises."""
        self._end_session()

    # --- profiling ----------------------------------------------------------------------------------------------------

    def pause_profiling(self) -> bool:
        """False: GPM takes no lock, so nobody has to wait for it."""
        return False

    def resume_profiling(self) -> bool:
        """False: nothing was let go."""
        return False

    # --- samples ------------------------------------------------------------------------------------------------------

    def sample(self) -> GpuSample:
        """A reading of every device; the last one again when it was made a moment ago. Raises SourceUnavailable."""
        now_s = self._now_s()
        if self._latest is not None and now_s - self._sampled_s < self._least_interval_s:
            return msgspec.structs.replace(self._latest, age_s=max(now_s - self._sampled_s, 0.0))
        if not self._session.is_open:
            self.open()
        self._revive(now_s)
        readings = self._read_all(now_s)
        if not self._is_session_gone():
            self._renewal.worked()
        elif self._renewal.is_due(now_s):
            # As after a reload of the driver, or when a container loses its device files: a new session works, or says why not.
            self._renewal.tried(now_s)
            self.open()
            readings = self._read_all(now_s)
        self._latest, self._sampled_s = self._made(readings), now_s
        return self._latest

    def _read_all(self, now_s: float) -> list[GpuReading]:
        self._drain_xids()
        readings: list[GpuReading] = []
        for gpu in self._gpus:
            readings += gpu.read(now_s, self._xids_of(gpu.known))
        readings += [known.lost(why, self._xids_of(known)) for known, why in self._broken]
        shown = {reading.device for reading in readings}
        readings += [fell_off(known, self._xids_of(known)) for known in self._inventory.missing(shown)]
        return sorted(readings, key=lambda reading: int(reading.device))

    def _drain_xids(self) -> None:
        assert self._context is not None
        try:
            self._context.xids.drain(self._xids, self._wall_s())
        except self._context.nvml.NVMLError as error:
            self._notices.say("nvml_xid", f"nvml: Xids cannot be read: {words(error.value)}")
        else:
            self._notices.say("nvml_xid", "")

    def _xids_of(self, known: KnownGpu) -> Gathered:
        gathered = Gathered()
        self._xids.gather(known.uuid, gathered)
        return gathered

    def _is_session_gone(self) -> bool:
        """Whether no device answers, and none of them says that it is itself to blame."""
        codes = {gpu.lost_code for gpu in self._gpus}
        return bool(codes) and 0 not in codes and not codes & _OF_THE_DEVICE

    def _revive(self, now_s: float) -> None:
        """Now and then a new session, while devices are missing."""
        if now_s >= self._next_bus_s:
            self._on_bus = len(gpus_on_bus(self._host))
            self._next_bus_s = now_s + _BUS_S
        if self._latest is None or self._latest.seen >= self._latest.expected:
            self._revival.worked()
        elif not self._revival.is_waiting:
            self._revival.tried(now_s)
        elif self._revival.is_due(now_s):
            self._revival.tried(now_s)
            self.open()

    def _made(self, readings: list[GpuReading]) -> GpuSample:
        whole = [reading for reading in readings if reading.gpu_instance_id is None]
        is_profiled = any(gpu.is_profiled for gpu in self._gpus)
        return GpuSample(
            backend="nvml",
            readings=tuple(readings),
            expected=max(len(whole), self._on_bus),
            seen=sum(reading.is_up for reading in whole),
            driver_version=self._session.driver_version,
            library_version=self._session.library_version,
            profiling=ProfilingState.ON if is_profiled else ProfilingState.OFF,
            profiling_why="" if is_profiled else _NO_GPM,
            blank_values=sum(gpu.blank for gpu in self._gpus),
            notices=self._notices.all(),
        )
