"""The profiling fields (1001 and on), which need hardware that one user at a time can hold.

They are only asked for when a person wants them, apart from all other fields, so that a refusal costs nothing else. When somebody else
holds the hardware (another DCGM, Nsight, any CUPTI tool), that is said, and it is asked for again after a while; never by force.
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dynolog.model.gpu import ProfilingState
from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection
from dynolog.sources.dcgm.devices import Instance
from dynolog.sources.dcgm.reader import Entity
from dynolog.sources.dcgm.watching import EntityGroup, Watch, in_groups, keep_s

_FIRST_RETRY_S, _LONGEST_RETRY_S = 60.0, 600.0
HOLDERS = "dcgm-exporter or another DCGM, Nsight, or a profiler in a job may hold it"
_PASSES_V1, _PASSES_V2 = 2, 3


class MetricGroup(msgspec.Struct, frozen=True):
    """Fields that are counted together. Of the groups with one `major` only one at a time can be."""

    major: int
    fields: tuple[int, ...]


class ProfilingWatch:
    """Watched profiling fields of GPUs that have the same ones, with their instances."""

    def __init__(self, connection: Connection, entities: Sequence[Entity], period_s: float) -> None:
        """Raises DcgmError."""
        self._connection = connection
        self._period_s = period_s
        self._group = EntityGroup(connection, entities)
        self._watch: Watch | None = None
        self._is_own_call = connection.library.major == 2 and connection.library.has("dcgmProfWatchFields")

    def start(self, field_ids: Sequence[int]) -> None:
        """Raises DcgmError; then nothing is watched."""
        if self._is_own_call and len(field_ids) <= structs.MAX_PROFILING_WATCH_FIELDS:
            request = structs.ProfWatchFields(
                version=structs.struct_version(structs.ProfWatchFields, 1),
                groupId=self._group.id.value,
                numFieldIds=len(field_ids),
                fieldIds=(ctypes.c_uint16 * structs.MAX_PROFILING_WATCH_FIELDS)(*field_ids),
                updateFreq=round(self._period_s * 1e6),
                maxKeepAge=keep_s(self._period_s),
            )
            library = self._connection.library
            library.call("dcgmProfWatchFields", self._connection.handle, ctypes.byref(request))
            return
        self._is_own_call = False
        self._watch = Watch(self._connection, self._group, field_ids, self._period_s, keep_s(self._period_s))
        if not self._watch.field_ids:
            raise DcgmError("dcgmWatchFields", next(iter(self._watch.refused.values()), codes.PROFILING_NOT_SUPPORTED))

    def close(self) -> None:
        """Let go of the hardware. Never raises."""
        if self._watch is not None:
            self._watch.close()
        elif self._is_own_call:
            request = structs.ProfUnwatchFields(
                version=structs.struct_version(structs.ProfUnwatchFields, 1), groupId=self._group.id.value
            )
            self._connection.library.code("dcgmProfUnwatchFields", self._connection.handle, ctypes.byref(request))
        self._group.close()


class Profiling:
    """What is profiled with one connection. `fields_of` tells for each GPU what it may be read for; a missing GPU has none."""

    def __init__(
        self, connection: Connection, wanted: Sequence[int], period_s: float, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._wanted = tuple(wanted)
        self._period_s = period_s
        self._clock = clock
        self._watches: list[ProfilingWatch] = []
        self._gpus: tuple[int, ...] = ()
        self._instances: tuple[Instance, ...] = ()
        self._retry_s = _FIRST_RETRY_S
        self._retry_at: float | None = None
        self.is_paused = False
        self._is_engine_paused = False
        self._settled_at = 0.0
        self.fields_of: dict[int, tuple[int, ...]] = {}
        self.why = ""
        self.without: dict[int, str] = {}  # GPUs that have no such counters, and why
        self.left_out: tuple[int, ...] = ()  # fields that cannot be counted beside the others

    @property
    def state(self) -> ProfilingState:
        """What a person should know."""
        if not self._wanted:
            return ProfilingState.OFF
        if self.is_paused:
            return ProfilingState.PAUSED
        if self._retry_at is not None:
            return ProfilingState.TAKEN
        return ProfilingState.ON if self.fields_of else ProfilingState.OFF

    @property
    def is_settling(self) -> bool:
        """Whether the counters were begun so lately that blanks are no fault: the first window is not over yet."""
        return self._clock() < self._settled_at

    def start(self, gpus: Sequence[int], instances: Sequence[Instance]) -> None:
        """Watch what these have. Raises DcgmError only when the connection is lost."""
        self._gpus, self._instances = tuple(gpus), tuple(instances)
        self._stop()
        self.without, self.why, self.left_out = {}, "", ()
        if not self._wanted or self.is_paused:
            return
        self._retry_at = None
        self._settled_at = self._clock() + 2 * self._period_s
        alike: dict[tuple[MetricGroup, ...], list[int]] = {}
        for gpu in gpus:
            try:
                alike.setdefault(tuple(self._groups_of(gpu)), []).append(gpu)
            except DcgmError as error:
                self._refused([gpu], error)
        for groups, members in alike.items():
            self._watch(groups, members)
        if self._retry_at is None:
            self._retry_s = _FIRST_RETRY_S

    def retry_if_due(self) -> None:
        """Ask again for what somebody else held. Raises DcgmError only when the connection is lost."""
        if self._retry_at is not None and not self.is_paused and self._clock() >= self._retry_at:
            self._retry_s = min(self._retry_s * 2, _LONGEST_RETRY_S)
            self.start(self._gpus, self._instances)

    def pause(self) -> bool:
        """Let another tool have the hardware; False when none is held or wanted here."""
        if self.state is ProfilingState.OFF:
            return False
        if self.is_paused:
            return True
        if self.fields_of:
            if self._connection.library.code("dcgmProfPause", self._connection.handle) != codes.OK:
                return False
            self._is_engine_paused = True
        self.is_paused = True
        return True

    def resume(self) -> bool:
        """Take it again; False when there is nothing to take."""
        if not self.is_paused:
            # Another client of the engine may have paused it, or a daemon that was killed meanwhile: resuming is for all.
            library, handle = self._connection.library, self._connection.handle
            return self.state is ProfilingState.ON and library.code("dcgmProfResume", handle) == codes.OK
        if not self._resume_engine():
            return False
        self.is_paused = False
        self._settled_at = self._clock() + 2 * self._period_s
        if not self.fields_of:  # devices changed meanwhile, or somebody else had the hardware
            self._retry_at = self._clock()
        return True

    def _resume_engine(self) -> bool:
        if self._is_engine_paused:
            code = self._connection.library.code("dcgmProfResume", self._connection.handle)
            self._is_engine_paused = code != codes.OK
        return not self._is_engine_paused

    def renew(self) -> bool:
        """Pause, resume and watch anew, once: it brings back counters that went blank after an error. Raises DcgmError as `start` does."""
        library, handle = self._connection.library, self._connection.handle
        done = library.code("dcgmProfPause", handle) == codes.OK and library.code("dcgmProfResume", handle) == codes.OK
        self.start(self._gpus, self._instances)
        return done

    def _watch(self, groups: tuple[MetricGroup, ...], gpus: list[int]) -> None:
        """Watch GPUs that have the same fields; apart from one another where the engine does not take them together."""
        wanted = [number for number in self._wanted if any(number in group.fields for group in groups)]
        if not wanted:
            self.without.update(dict.fromkeys(gpus, "no such counters"))
            return
        whole = [(structs.ENTITY_GPU, gpu) for gpu in gpus]
        parts = [instance.entity for instance in self._instances if instance.gpu in gpus]
        try:
            counted = self._start(groups, wanted, [*whole, *parts])
        except DcgmError as error:
            if error.code != codes.GROUP_INCOMPATIBLE or len(whole) + len(parts) == 1:
                self._refused(gpus, error)
            elif len(gpus) > 1:
                for gpu in gpus:
                    self._watch(groups, [gpu])
            else:
                self._watch_apart(groups, wanted, gpus[0], parts)
        else:
            self.fields_of.update(dict.fromkeys(gpus, counted))

    def _watch_apart(self, groups: tuple[MetricGroup, ...], wanted: list[int], gpu: int, parts: list[Entity]) -> None:
        """A GPU, and each of its instances, by themselves."""
        for entity in ((structs.ENTITY_GPU, gpu), *parts):
            try:
                self.fields_of[gpu] = self._start(groups, wanted, [entity])
            except DcgmError as error:
                self._refused([gpu], error)

    def _start(self, groups: tuple[MetricGroup, ...], wanted: list[int], entities: list[Entity]) -> tuple[int, ...]:
        """The fields that are counted now: all, or those that can be at once. Raises DcgmError; then none of these is watched."""
        began: list[ProfilingWatch] = []
        try:
            for some in in_groups(entities):
                watch = ProfilingWatch(self._connection, some, self._period_s)
                began.append(watch)
                try:
                    watch.start(wanted)
                except DcgmError as error:
                    if error.code != codes.PROFILING_MULTI_PASS:
                        raise
                    at_once = one_pass(groups, wanted)
                    self.left_out = tuple(number for number in wanted if number not in at_once)
                    wanted = at_once
                    watch.start(wanted)
        except DcgmError:
            for watch in began:
                watch.close()
            raise
        self._watches += began
        return tuple(wanted)

    def _refused(self, gpus: Iterable[int], error: DcgmError) -> None:
        if error.code in codes.CONNECTION_LOST:
            raise error
        if error.code in codes.NO_PROFILING:
            self.without.update(dict.fromkeys(gpus, codes.words(error.code)))
            return
        # In use, a failed module, a time-out: all of them go when the other user does.
        self._retry_at = self._clock() + self._retry_s
        self.why = f"{codes.words(error.code)}: {HOLDERS}; asked again in {self._retry_s:.0f} s"

    def _groups_of(self, gpu: int) -> list[MetricGroup]:
        """What a GPU can count. Raises DcgmError."""
        library, handle = self._connection.library, self._connection.handle
        request: Any
        if library.major == 2:
            group = EntityGroup(self._connection, [(structs.ENTITY_GPU, gpu)])
            request = structs.ProfGetMetricGroupsV2(
                version=structs.struct_version(structs.ProfGetMetricGroupsV2, _PASSES_V1), groupId=group.id.value
            )
            code = library.code("dcgmProfGetSupportedMetricGroups", handle, ctypes.byref(request))
            group.close()
        else:
            request = structs.ProfGetMetricGroupsV3(
                version=structs.struct_version(structs.ProfGetMetricGroupsV3, _PASSES_V2), gpuId=gpu
            )
            code = library.code("dcgmProfGetSupportedMetricGroups", handle, ctypes.byref(request))
        if code != codes.OK:
            raise DcgmError("dcgmProfGetSupportedMetricGroups", code)
        return [
            MetricGroup(group.majorId, tuple(group.fieldIds[: group.numFieldIds]))
            for group in request.metricGroups[: min(request.numMetricGroups, structs.MAX_PROFILING_GROUPS)]
        ]

    def _stop(self) -> None:
        """Watch nothing; a pause stays a pause."""
        for watch in self._watches:
            watch.close()
        self._watches.clear()
        self.fields_of.clear()

    def close(self) -> None:
        """Let go of the hardware. Never raises."""
        self._stop()
        self._resume_engine()


def one_pass(groups: Iterable[MetricGroup], wanted: Sequence[int]) -> list[int]:
    """The most of `wanted` that can be counted at once: of the groups with one major the one that has most of them."""
    best: dict[int, list[int]] = {}
    for group in groups:
        useful = [number for number in wanted if number in group.fields]
        if len(useful) > len(best.get(group.major, [])):
            best[group.major] = useful
    chosen = {number for numbers in best.values() for number in numbers}
    return [number for number in wanted if number in chosen]
