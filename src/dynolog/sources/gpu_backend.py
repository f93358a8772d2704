"""What a GPU backend is. Each runs in a child process of its own, so a call that hangs or crashes costs one source."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dynolog.model.gpu import GpuSample


class GpuOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is told at its start. Intervals in seconds; paths as given by the flags."""

    backend: str
    interval_s: float = 10.0
    root_dir: str = "/"
    dcgm_lib_path: str = "/lib64/libdcgm.so"
    dcgm_fields: tuple[str, ...] = ()
    dcgm_fields_given: bool = False
    dcgm_standalone_address: str = "auto"
    environment: Mapping[str, str] = {}


class GpuBackend(Protocol):
    """One way to reach accelerators. All calls come from one thread of the child, one at a time."""

    def open(self) -> None:
        """Load the library or find the files, and the devices. Raises SourceUnavailable (what, why, remedy); may be called again."""
        ...

    def sample(self) -> GpuSample:
        """One reading of every device. Raises SourceUnavailable when the whole backend has gone; then it is opened again."""
        ...

    def pause_profiling(self) -> bool:
        """Let go of the profiling hardware; False when this backend holds none."""
        ...

    def resume_profiling(self) -> bool:
        """Take it again; False when this backend holds none."""
        ...

    def close(self) -> None:
        """Let go of everything. Never raises."""
        ...
