"""NVIDIA GPUs through DCGM, as a GPU backend."""

import time
from collections.abc import Callable

from dynolog.model.errors import SourceUnavailable
from dynolog.model.gpu import GpuSample
from dynolog.sources.dcgm.codes import CONNECTION_LOST, DcgmError
from dynolog.sources.dcgm.connection import AUTO, LOCAL_ENGINE, connect, engine_answers
from dynolog.sources.dcgm.devices import pci_gpus
from dynolog.sources.dcgm.field_choice import Choice, choose
from dynolog.sources.dcgm.library import SOURCE, DcgmLibrary, load
from dynolog.sources.dcgm.readings import Readings
from dynolog.sources.dcgm.session import SLOW_PERIOD_S, Session
from dynolog.sources.gpu_backend import GpuOptions
from dynolog.sources.host_files import HostFiles

_PROBE_PERIOD_S, _FOREIGN_PERIOD_S = 30.0, 3600.0


class DcgmBackend:
    """Reads NVIDIA GPUs through libdcgm; see GpuBackend for what each method promises.

    Neither the library nor an engine is touched before `open`. With the address `auto`, an embedded engine is given up for a local host
    engine as soon as one answers: two engines would fight for the profiling hardware.
    """

    def __init__(
        self,
        options: GpuOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        probe: Callable[[], bool] = engine_answers,
    ) -> None:
        self._options = options
        self._clock = clock
        self._wall_us = wall_us
        self._probe = probe
        self._host = HostFiles(options.root_dir)
        self._library: DcgmLibrary | None = None
        self._session: Session | None = None
        self._choice: Choice | None = None
        self._joined = False  # a local host engine was found and is waited for when it goes
        self._next_probe = 0.0
        self._pci_gpus = 0
        self._next_pci = 0.0
        self._readings = Readings(clock)
        self._xid_since_us = 0
        self._is_paused = False

    def open(self) -> None:
        """Load the library, reach an engine, watch."""
        self.close()
        self._library = self._library or load(self._options.dcgm_lib_path)
        try:
            self._open_session(self._library, LOCAL_ENGINE if self._joined else self._options.dcgm_standalone_address)
        except DcgmError as error:
            self.close()
            raise SourceUnavailable(SOURCE, str(error), "see the host engine's log") from error

    def _open_session(self, library: DcgmLibrary, address: str) -> None:
        connection = connect(library, address, self._probe)
        self._joined = self._options.dcgm_standalone_address == AUTO and not connection.is_embedded
        self._choice = choose(library, self._options.dcgm_fields)
        # What happened before this process started is history; what happened while the engine was out of reach is not.
        since_us = self._xid_since_us = self._xid_since_us or self._wall_us()
        try:
            self._session = Session(connection, self._choice, self._options.interval_s, self._clock, since_us)
        except BaseException:
            connection.close()
            raise
        if self._is_paused:
            self._session.profiling.pause()
        self._readings.start(self._choice, connection.version)
        self._next_probe = self._clock() + _PROBE_PERIOD_S

    def sample(self) -> GpuSample:
        """One reading of every device. An engine that went away is joined again at once, or the sample fails: nothing old is given."""
        self._prefer_host_engine()
        try:
            return self._sample()
        except DcgmError as error:
            if error.code not in CONNECTION_LOST:
                raise SourceUnavailable(SOURCE, str(error), "see the host engine's log") from error
        self.open()
        try:
            return self._sample()
        except DcgmError as error:
            raise SourceUnavailable(SOURCE, str(error), "start nv-hostengine (systemctl start nvidia-dcgm)") from error

    def _sample(self) -> GpuSample:
        session = self._session
        if session is None:
            raise SourceUnavailable(SOURCE, "not open")
        now_us = self._wall_us()
        # First: a GPU that its error has made vanish is not asked about any more once that is noticed.
        self._xid_since_us = session.read_xids(self._readings.xids)
        found = session.read(now_us)
        if self._clock() >= self._next_pci:
            self._pci_gpus = pci_gpus(self._host)
            self._next_pci = self._clock() + SLOW_PERIOD_S
        return self._readings.sample(session, found, now_us, self._pci_gpus)

    def _prefer_host_engine(self) -> None:
        """Look now and then whether a local host engine has been started since."""
        session = self._session
        is_own = session is not None and session.connection.is_embedded
        if not is_own or self._options.dcgm_standalone_address != AUTO or self._clock() < self._next_probe:
            return
        self._next_probe = self._clock() + _PROBE_PERIOD_S
        if self._probe():
            self.open()
            if not self._joined:
                # Something else listens there: our own engine is not to be started anew all the time.
                self._next_probe = self._clock() + _FOREIGN_PERIOD_S

    def pause_profiling(self) -> bool:
        """Let another tool have the profiling hardware."""
        self._is_paused = self._session is not None and self._session.profiling.pause()
        return self._is_paused

    def resume_profiling(self) -> bool:
        """Take it again."""
        self._is_paused = False
        return self._session is not None and self._session.profiling.resume()

    def close(self) -> None:
        """End the session; counts of errors are kept for the next."""
        if self._session is not None:
            self._session.close()
            self._session = None
