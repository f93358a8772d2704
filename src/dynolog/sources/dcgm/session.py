"""Everything that belongs to one connection with an engine: groups, watches, and reading them. When the connection goes, all of it goes."""

import time
from collections.abc import Callable, Sequence

import msgspec

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection
from dynolog.sources.dcgm.devices import Instance, list_gpus, list_instances
from dynolog.sources.dcgm.field_choice import Choice
from dynolog.sources.dcgm.fields import OF_INSTANCES
from dynolog.sources.dcgm.library import SOURCE
from dynolog.sources.dcgm.profiling import Profiling
from dynolog.sources.dcgm.reader import Entity, Gathered, Reader
from dynolog.sources.dcgm.watching import EntityGroup, Watch, in_groups, keep_s
from dynolog.sources.dcgm.xid import XidCounts, XidWatch

SLOW_PERIOD_S = 30.0
# At boot the first watch may fail and the next one work.
_PAUSES_S = (0.1, 0.3, 1.0)
_GRACE_S = 1.0


class Round(msgspec.Struct, kw_only=True):
    """What one round of reading found. `slow` is None in rounds that do not read the slow fields."""

    gpus: tuple[int, ...]
    instances: tuple[Instance, ...]
    fast: dict[Entity, Gathered]
    slow: dict[Entity, Gathered] | None
    refused: dict[int, str]


class Session:
    """Watches the chosen fields of all devices, follows devices that come and go, and reads."""

    def __init__(
        self, connection: Connection, choice: Choice, period_s: float, clock: Callable[[], float], xid_since_us: int
    ) -> None:
        """Raises SourceUnavailable when nothing can be watched."""
        self.connection = connection
        self._choice = choice
        self._period_s = period_s
        self.slow_period_s = max(period_s, SLOW_PERIOD_S)
        self._clock = clock
        self.reader = Reader(connection, choice.by_id, choice.texts)
        self.profiling = Profiling(connection, choice.profiling, period_s, clock)
        self.refused_fields: dict[int, int] = {}
        self._gpus: tuple[int, ...] = ()
        self._instances: tuple[Instance, ...] = ()
        self._refused_gpus: dict[int, str] = {}
        self._groups: list[EntityGroup] = []
        self._watches: list[Watch] = []
        self._xid: XidWatch | None = None
        self._xid_since_us = xid_since_us
        self._next_slow = 0.0
        self._watch_patiently()

    # --- watching -----------------------------------------------------------------------------------------------------

    def _watch_patiently(self) -> None:
        for pause_s in (*_PAUSES_S, None):
            try:
                gpus = list_gpus(self.connection)
                if not gpus:
                    raise SourceUnavailable(SOURCE, "it supports no GPU of this machine", "use --gpu_backend=nvml")
                self._watch_all(gpus, list_instances(self.connection))
            except DcgmError as error:
                self._forget()
                if error.code in codes.CONNECTION_LOST:
                    raise
                if pause_s is None:
                    raise SourceUnavailable(
                        SOURCE, f"nothing can be watched: {error}", "see the host engine's log"
                    ) from error
                time.sleep(pause_s)
            else:
                return

    def _watch_all(self, gpus: tuple[int, ...], instances: tuple[Instance, ...]) -> None:
        """Groups and watches of these devices, in place of all earlier ones. Raises DcgmError."""
        self._forget()
        self._gpus, self._instances = gpus, instances
        if not gpus:
            return
        whole = self._group([(structs.ENTITY_GPU, gpu) for gpu in gpus])
        self._refused_gpus = {entity[1]: codes.words(code) for entity, code in whole.refused.items()}
        self._watch(whole, self._choice.fast, self._period_s)
        self._watch(whole, self._choice.slow, self.slow_period_s)
        if instances:
            for some in in_groups([instance.entity for instance in instances]):
                self._watch(self._group(some), self._of_instances(), self._period_s)
        if self.connection.library.has("dcgmGetValuesSince_v2"):
            self._xid = XidWatch(self.connection, whole, self._period_s, self._xid_since_us)
        self.profiling.start(tuple(gpu for gpu in gpus if gpu not in self._refused_gpus), instances)
        # Values for the first round: else they are there only after the first period.
        self.connection.library.code("dcgmUpdateAllFields", self.connection.handle, 1)
        self._next_slow = 0.0

    def _group(self, entities: Sequence[Entity]) -> EntityGroup:
        group = EntityGroup(self.connection, entities)
        self._groups.append(group)
        return group

    def _watch(self, group: EntityGroup, field_ids: tuple[int, ...], period_s: float) -> None:
        if field_ids and group.members:
            watch = Watch(self.connection, group, field_ids, period_s, keep_s(period_s))
            self._watches.append(watch)
            self.refused_fields.update(watch.refused)

    def _of_instances(self) -> tuple[int, ...]:
        return tuple(number for number in OF_INSTANCES if number in self._choice.by_id)

    def _forget(self) -> None:
        """Take everything out of the engine. Never raises."""
        if self._xid is not None:
            self._xid.close()
            self._xid = None
        for watch in self._watches:
            watch.close()
        for group in self._groups:
            group.close()
        self._watches.clear()
        self._groups.clear()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read_xids(self, counts: XidCounts) -> int:
        """Count the errors since the last time; the time (µs) from which on they are not counted yet. Raises DcgmError."""
        if self._xid is not None:  # None where this DCGM cannot give them with their times
            self._xid.read(counts)
            self._xid_since_us = self._xid.since_us
        return self._xid_since_us

    def read(self, now_us: int) -> Round:
        """One round; `now_us` is Unix time. Raises DcgmError when the connection is lost, or nothing can be watched any more."""
        self._follow_devices()
        is_slow = self._clock() >= self._next_slow  # at once where devices have changed
        self.profiling.retry_if_due()
        found: dict[Entity, Gathered] = {}
        oldest_us = now_us - round((2 * self._period_s + _GRACE_S) * 1e6)
        for field_ids, entities in self._plans().items():
            self.reader.read(entities, field_ids, oldest_us, found)
        slow: dict[Entity, Gathered] | None = None
        if is_slow:
            slow = {}
            oldest_us = now_us - round((2 * self.slow_period_s + _GRACE_S) * 1e6)
            self.reader.read([(structs.ENTITY_GPU, gpu) for gpu in self._readable()], self._slow_ids(), oldest_us, slow)
            self._next_slow = self._clock() + self.slow_period_s
        return Round(
            gpus=self._gpus, instances=self._instances, fast=found, slow=slow, refused=dict(self._refused_gpus)
        )

    def _follow_devices(self) -> None:
        """Watch anew when a GPU came or went, or was divided in another way."""
        gpus = list_gpus(self.connection)
        is_due = gpus != self._gpus or self._clock() >= self._next_slow
        instances = list_instances(self.connection) if is_due else self._instances
        if gpus != self._gpus or instances != self._instances:
            self._watch_all(gpus, instances)

    def _readable(self) -> list[int]:
        return [gpu for gpu in self._gpus if gpu not in self._refused_gpus]

    def _slow_ids(self) -> list[int]:
        return [number for number in self._choice.slow if number not in self.refused_fields]

    def _plans(self) -> dict[tuple[int, ...], list[Entity]]:
        """Entities by the fields that they are asked for."""
        plans: dict[tuple[int, ...], list[Entity]] = {}
        profiled = {} if self.profiling.is_paused else self.profiling.fields_of
        fast = tuple(number for number in self._choice.fast if number not in self.refused_fields)
        for gpu in self._readable():
            plans.setdefault(fast + profiled.get(gpu, ()), []).append((structs.ENTITY_GPU, gpu))
        parts = self._of_instances()
        for instance in self._instances:
            plans.setdefault(parts + profiled.get(instance.gpu, ()), []).append(instance.entity)
        return plans

    def close(self) -> None:
        """End it. Never raises."""
        self.profiling.close()
        self._forget()
        self.connection.close()
