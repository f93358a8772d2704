"""The daemon, with two faults that can be switched on from outside by files in the directory that SOAK_CONTROL names.

`hung_mount` (a FIFO): statvfs(3) of `mount` beside it does not return until somebody opens the FIFO for writing, as with a server of
NFS that is gone. `no_memory`: the memory collector gets no memory.
"""

import errno
import os
import sys
from typing import Any

import msgspec

from dynolog.collectors import registry
from dynolog.collectors.spec import Collector, CollectorSpec, Context
from dynolog.sources.host_files import unavailable

_CONTROL = os.environ["SOAK_CONTROL"]
_statvfs = os.statvfs


def _hanging_statvfs(path: str) -> os.statvfs_result:
    if path == f"{_CONTROL}/mount" and os.path.exists(f"{_CONTROL}/hung_mount"):
        os.close(os.open(f"{_CONTROL}/hung_mount", os.O_RDONLY))
    return _statvfs(path)


class _WithoutMemory:
    """A collector whose reads fail while the file is there; in turn as Python does it and as open(2) does."""

    def __init__(self, collector: Collector[Any]) -> None:
        self._collector = collector
        self.compute = collector.compute
        self._failures = 0

    def read(self) -> Any:
        if os.path.exists(f"{_CONTROL}/no_memory"):
            self._failures += 1
            if self._failures % 2:
                raise MemoryError
            raise unavailable("/proc/meminfo", OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))
        return self._collector.read()


def _with_faults(spec: CollectorSpec) -> CollectorSpec:
    def make(context: Context) -> Collector[Any]:
        return _WithoutMemory(spec.factory(context))

    return msgspec.structs.replace(spec, factory=make) if spec.name == "memory" else spec


os.statvfs = _hanging_statvfs  # type: ignore[assignment] # only texts are asked for
registry.COLLECTORS = tuple(map(_with_faults, registry.COLLECTORS))

if __name__ == "__main__":
    from dynolog.daemon.main import main

    sys.exit(main())
