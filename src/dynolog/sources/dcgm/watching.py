"""Groups of entities and watches of fields: what the engine is asked to sample, and how often."""

import ctypes
import os
from collections.abc import Iterable, Sequence
from itertools import count

from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.connection import Connection

_MICROSECONDS = 1_000_000
# Names of groups are the engine's, not the client's.
_numbers = count()


def _name() -> bytes:
    return b"dynolog_%d_%d" % (os.getpid(), next(_numbers))


def in_groups(entities: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    """As many as one group takes at a time."""
    most = structs.MAX_ENTITIES_OF_A_GROUP
    return [entities[start : start + most] for start in range(0, len(entities), most)]


class EntityGroup:
    """A group of entities in the engine. `refused` are those that it did not take, and the code."""

    def __init__(self, connection: Connection, entities: Iterable[tuple[int, int]]) -> None:
        """Raises DcgmError."""
        self._connection = connection
        self.id = ctypes.c_void_p()
        library = connection.library
        library.call("dcgmGroupCreate", connection.handle, structs.GROUP_EMPTY, _name(), ctypes.byref(self.id))
        self.members: list[tuple[int, int]] = []
        self.refused: dict[tuple[int, int], int] = {}
        for entity in entities:
            code = library.code("dcgmGroupAddEntity", connection.handle, self.id, *entity)
            if code in codes.CONNECTION_LOST:
                raise DcgmError("dcgmGroupAddEntity", code)
            if code == codes.OK:
                self.members.append(entity)
            else:
                self.refused[entity] = code

    def close(self) -> None:
        """Remove it from the engine. Never raises."""
        self._connection.library.code("dcgmGroupDestroy", self._connection.handle, self.id)


class FieldGroup:
    """A list of fields in the engine."""

    def __init__(self, connection: Connection, field_ids: Sequence[int]) -> None:
        """Raises DcgmError."""
        self._connection = connection
        self.field_ids = tuple(field_ids)
        self.id = ctypes.c_void_p()
        numbers = (ctypes.c_uint16 * len(field_ids))(*field_ids)
        connection.library.call(
            "dcgmFieldGroupCreate", connection.handle, len(field_ids), numbers, _name(), ctypes.byref(self.id)
        )

    def close(self) -> None:
        """Remove it from the engine. Never raises."""
        self._connection.library.code("dcgmFieldGroupDestroy", self._connection.handle, self.id)


class Watch:
    """Fields that the engine samples for a group of entities every `period_s`.

    The engine's window is the watch's period, so what is read at the same interval is that interval's, and never an average over the
    time since somebody started. `refused` are the fields that it does not take; the others are watched all the same.
    """

    def __init__(
        self, connection: Connection, group: EntityGroup, field_ids: Sequence[int], period_s: float, keep_s: float
    ) -> None:
        """Raises DcgmError when not even one field can be watched because of something that concerns all."""
        self._connection = connection
        self._group = group
        self._period_us = round(period_s * _MICROSECONDS)
        self._keep_s = keep_s
        self._field_groups: list[FieldGroup] = []
        self.refused: dict[int, int] = {}
        try:
            for start in range(0, len(field_ids), structs.MAX_FIELDS_OF_A_GROUP):
                self._add(field_ids[start : start + structs.MAX_FIELDS_OF_A_GROUP])
        except DcgmError:
            self.close()
            raise

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The fields that are watched."""
        return tuple(number for group in self._field_groups for number in group.field_ids)

    @property
    def field_group_ids(self) -> list[ctypes.c_void_p]:
        """The engine's ids of the lists of fields."""
        return [group.id for group in self._field_groups]

    def _add(self, field_ids: Sequence[int]) -> None:
        """Watch a list; when a field in it is refused, its halves, until it alone is left out."""
        try:
            self._field_groups.append(self._watched(field_ids))
        except DcgmError as error:
            if error.code not in codes.FIELD_REFUSED:
                raise
            if len(field_ids) == 1:
                self.refused[field_ids[0]] = error.code
                return
            middle = len(field_ids) // 2
            self._add(field_ids[:middle])
            self._add(field_ids[middle:])

    def _watched(self, field_ids: Sequence[int]) -> FieldGroup:
        connection = self._connection
        fields = FieldGroup(connection, field_ids)
        try:
            connection.library.call(
                "dcgmWatchFields", connection.handle, self._group.id, fields.id, self._period_us, self._keep_s, 0
            )
        except DcgmError:
            fields.close()
            raise
        return fields

    def close(self) -> None:
        """Have the engine stop. Never raises."""
        for fields in self._field_groups:
            self._connection.library.code("dcgmUnwatchFields", self._connection.handle, self._group.id, fields.id)
            fields.close()
        self._field_groups.clear()


def keep_s(period_s: float) -> float:
    """How long the engine keeps samples. Keeping two samples or seconds only lost values while the engine was late."""
    return max(3 * period_s, 30.0)
