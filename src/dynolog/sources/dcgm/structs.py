"""The structures of libdcgm's interface (`dcgm_structs.h`, `dcgm_fields.h` of DCGM 2, 3 and 4).

Names are the vendor's, without the `dcgm` in front. Where majors differ, the layouts of both are here; everything else has stayed the
same from 2.1 to 4.5. A test compares sizes, offsets and versions with what a C compiler makes of the same facts.
"""

import ctypes
from ctypes import c_char, c_double, c_int, c_int64, c_longlong, c_short, c_ubyte, c_uint, c_uint16, c_uint64

MAX_DEVICES = 32
MAX_STRING = 256
MAX_BLOB = 4096
MAX_HIERARCHY = MAX_DEVICES * 14
MAX_PROFILING_GROUPS = 10
MAX_PROFILING_FIELDS_V1 = 8
MAX_PROFILING_FIELDS_V2 = 64
MAX_PROFILING_WATCH_FIELDS = 16
MAX_FIELDS_OF_A_GROUP = 128
MAX_ENTITIES_OF_A_GROUP = 64

OPERATION_MODE_AUTO = 1
GROUP_EMPTY = 1

ENTITY_NONE = 0
ENTITY_GPU = 1
ENTITY_GPU_INSTANCE = 4
ENTITY_COMPUTE_INSTANCE = 5

TYPE_BINARY = ord("b")
TYPE_DOUBLE = ord("d")
TYPE_INT64 = ord("i")
TYPE_STRING = ord("s")
TYPE_TIMESTAMP = ord("t")


class VersionInfo(ctypes.Structure):
    """`dcgmVersionInfo_v2`."""

    _fields_ = [("version", c_uint), ("rawBuildInfoString", c_char * (MAX_STRING * 2))]


class ConnectV2Params(ctypes.Structure):
    """`dcgmConnectV2Params_v2`."""

    _fields_ = [
        ("version", c_uint),
        ("persistAfterDisconnect", c_uint),
        ("timeoutMs", c_uint),
        ("addressIsUnixSocket", c_uint),
    ]


class GroupEntityPair(ctypes.Structure):
    """`dcgmGroupEntityPair_t`."""

    _fields_ = [("entityGroupId", c_uint), ("entityId", c_uint)]


class Value(ctypes.Union):
    """The value of a field: which member counts is told by its type."""

    _fields_ = [("i64", c_int64), ("dbl", c_double), ("str", c_char * MAX_STRING), ("blob", c_char * MAX_BLOB)]


class FieldValueV1(ctypes.Structure):
    """`dcgmFieldValue_v1`: what callbacks get."""

    _fields_ = [
        ("version", c_uint),
        ("fieldId", c_uint16),
        ("fieldType", c_uint16),
        ("status", c_int),
        ("ts", c_int64),
        ("value", Value),
    ]


class FieldValueV2(ctypes.Structure):
    """`dcgmFieldValue_v2`: what dcgmEntitiesGetLatestValues fills."""

    _fields_ = [
        ("version", c_uint),
        ("entityGroupId", c_uint),
        ("entityId", c_uint),
        ("fieldId", c_uint16),
        ("fieldType", c_uint16),
        ("status", c_int),
        ("unused", c_uint),
        ("ts", c_int64),
        ("value", Value),
    ]


class FieldFormat(ctypes.Structure):
    """`dcgm_field_output_format_t`."""

    _fields_ = [("shortName", c_char * 10), ("unit", c_char * 4), ("width", c_short)]


class FieldMetaV2(ctypes.Structure):
    """`dcgm_field_meta_t` of DCGM 2: without the level at which the field can be asked."""

    _fields_ = [
        ("fieldId", c_uint16),
        ("fieldType", c_char),
        ("size", c_ubyte),
        ("tag", c_char * 48),
        ("scope", c_int),
        ("nvmlFieldId", c_int),
        ("valueFormat", ctypes.POINTER(FieldFormat)),
    ]


class FieldMetaV3(ctypes.Structure):
    """`dcgm_field_meta_t` of DCGM 3 and 4."""

    _fields_ = [
        ("fieldId", c_uint16),
        ("fieldType", c_char),
        ("size", c_ubyte),
        ("tag", c_char * 48),
        ("scope", c_int),
        ("nvmlFieldId", c_int),
        ("entityLevel", c_uint),
        ("valueFormat", ctypes.POINTER(FieldFormat)),
    ]


class MigEntityInfo(ctypes.Structure):
    """`dcgmMigEntityInfo_t`."""

    _fields_ = [
        ("gpuUuid", c_char * 128),
        ("nvmlGpuIndex", c_uint),
        ("nvmlInstanceId", c_uint),
        ("nvmlComputeInstanceId", c_uint),
        ("nvmlMigProfileId", c_uint),
        ("nvmlProfileSlices", c_uint),
    ]


class MigHierarchyInfo(ctypes.Structure):
    """`dcgmMigHierarchyInfo_v2`."""

    _fields_ = [("entity", GroupEntityPair), ("parent", GroupEntityPair), ("info", MigEntityInfo)]


class MigHierarchy(ctypes.Structure):
    """`dcgmMigHierarchy_v2` (DCGM 2.1 and later; 2.0 has a v1 without the driver's ids)."""

    _fields_ = [("version", c_uint), ("count", c_uint), ("entityList", MigHierarchyInfo * MAX_HIERARCHY)]


class ProfMetricGroupV1(ctypes.Structure):
    """`dcgmProfMetricGroupInfo_v1` (DCGM 2)."""

    _fields_ = [
        ("majorId", c_uint16),
        ("minorId", c_uint16),
        ("numFieldIds", c_uint),
        ("fieldIds", c_uint16 * MAX_PROFILING_FIELDS_V1),
    ]


class ProfMetricGroupV2(ctypes.Structure):
    """`dcgmProfMetricGroupInfo_v2` (DCGM 3 and 4)."""

    _fields_ = [
        ("majorId", c_uint16),
        ("minorId", c_uint16),
        ("numFieldIds", c_uint),
        ("fieldIds", c_uint16 * MAX_PROFILING_FIELDS_V2),
    ]


class ProfGetMetricGroupsV2(ctypes.Structure):
    """`dcgmProfGetMetricGroups_v2` (DCGM 2): asks for a group of GPUs that must be alike."""

    _fields_ = [
        ("version", c_uint),
        ("unused", c_uint),
        ("groupId", c_uint64),
        ("numMetricGroups", c_uint),
        ("unused1", c_uint),
        ("metricGroups", ProfMetricGroupV1 * MAX_PROFILING_GROUPS),
    ]


class ProfGetMetricGroupsV3(ctypes.Structure):
    """`dcgmProfGetMetricGroups_v3` (DCGM 3 and 4): asks for one GPU."""

    _fields_ = [
        ("version", c_uint),
        ("unused", c_uint),
        ("gpuId", c_uint),
        ("numMetricGroups", c_uint),
        ("metricGroups", ProfMetricGroupV2 * MAX_PROFILING_GROUPS),
    ]


class ProfWatchFields(ctypes.Structure):
    """`dcgmProfWatchFields_v1` (DCGM 2; later ones take profiling fields in dcgmWatchFields)."""

    _fields_ = [
        ("version", c_uint),
        ("groupId", c_uint64),
        ("numFieldIds", c_uint),
        ("fieldIds", c_uint16 * MAX_PROFILING_WATCH_FIELDS),
        ("updateFreq", c_longlong),
        ("maxKeepAge", c_double),
        ("maxKeepSamples", c_int),
        ("flags", c_uint),
    ]


class ProfUnwatchFields(ctypes.Structure):
    """`dcgmProfUnwatchFields_v1` (DCGM 2)."""

    _fields_ = [("version", c_uint), ("groupId", c_uint64), ("flags", c_uint)]


# int callback(entity group, entity, values, count, user data): what dcgmGetValuesSince_v2 calls for each value.
ValueCallback = ctypes.CFUNCTYPE(c_int, c_uint, c_uint, ctypes.POINTER(FieldValueV1), c_int, ctypes.c_void_p)


def struct_version(structure: type[ctypes.Structure], number: int) -> int:
    """The `version` member: size and number in one, so that a library can tell which layout it was given."""
    return ctypes.sizeof(structure) | number << 24
