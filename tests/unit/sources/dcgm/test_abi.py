"""The layouts of the binding against those that a C compiler makes of the header's facts."""

import ctypes
from pathlib import Path

import pytest

from dynolog.sources.dcgm import structs
from fakes.dcgm.library import MAJORS, abi

_STRUCTS: dict[str, type[ctypes.Structure]] = {
    "dcgmVersionInfo_v2": structs.VersionInfo,
    "dcgmConnectV2Params_v2": structs.ConnectV2Params,
    "dcgmGroupEntityPair_t": structs.GroupEntityPair,
    "dcgmFieldValue_v1": structs.FieldValueV1,
    "dcgmFieldValue_v2": structs.FieldValueV2,
    "dcgm_field_output_format_t": structs.FieldFormat,
    "dcgmMigEntityInfo_t": structs.MigEntityInfo,
    "dcgmMigHierarchyInfo_v2": structs.MigHierarchyInfo,
    "dcgmMigHierarchy_v2": structs.MigHierarchy,
    "dcgmProfWatchFields_v1": structs.ProfWatchFields,
    "dcgmProfUnwatchFields_v1": structs.ProfUnwatchFields,
}
_OF_2: dict[str, type[ctypes.Structure]] = {
    "dcgm_field_meta_t": structs.FieldMetaV2,
    "dcgmProfMetricGroupInfo_t": structs.ProfMetricGroupV1,
    "dcgmProfGetMetricGroups_t": structs.ProfGetMetricGroupsV2,
}
_OF_3: dict[str, type[ctypes.Structure]] = {
    "dcgm_field_meta_t": structs.FieldMetaV3,
    "dcgmProfMetricGroupInfo_t": structs.ProfMetricGroupV2,
    "dcgmProfGetMetricGroups_t": structs.ProfGetMetricGroupsV3,
}
_NUMBERS = {"dcgmProfGetMetricGroups_t": {2: 2, 3: 3, 4: 3}, "dcgmProfWatchFields_v1": {2: 1}}


@pytest.mark.parametrize("major", MAJORS)
def test_sizes_offsets_and_versions_are_those_of_c(tmp_path: Path, major: int) -> None:
    known = _STRUCTS | (_OF_2 if major == 2 else _OF_3)
    seen = set()
    for name, number in abi(tmp_path, major).items():
        if name.endswith("!"):
            kind = name[:-1]
            version = _NUMBERS.get(kind, {}).get(major, 1 if kind.endswith("_v1") else 2)
            assert structs.struct_version(known[kind], version) == number, name
        elif "." in name:
            kind, _, member = name.partition(".")
            assert getattr(known[kind], member).offset == number, name
            seen.add((kind, member))
        else:
            assert ctypes.sizeof(known[name]) == number, name
    assert len(seen) >= 40


def test_versions_that_the_vendors_own_assertions_pin() -> None:
    """The numbers of `DCGM_CASSERT` in dcgm_structs_internal.h, which neither side here was made from."""
    assert structs.struct_version(structs.VersionInfo, 2) == 0x2000204
    assert structs.struct_version(structs.ConnectV2Params, 2) == 0x2000010
    assert ctypes.sizeof(structs.FieldValueV1) == 0x1018  # dcgmInjectFieldValue_version1 is 0x1001018
