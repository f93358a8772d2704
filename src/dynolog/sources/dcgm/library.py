"""Finding libdcgm, loading it, and learning from itself which version it is."""

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_longlong, c_uint, c_uint16, c_void_p
from typing import Any

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError

SOURCE = "dcgm"
MAJORS = (2, 3, 4)
# Newest first: where several are installed, the newest fits the driver best.
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
    "/usr/local/dcgm/lib64",
)
_NAMES = ("libdcgm.so.4", "libdcgm.so.3", "libdcgm.so.2", "libdcgm.so")
_VERSION = re.compile(rb"version:\s*(\d+)\.([\w.+-]+)")

_HANDLE, _GROUP, _FIELDS = c_void_p, c_void_p, c_void_p
_REQUIRED: dict[str, list[Any]] = {
    "dcgmInit": [],
    "dcgmShutdown": [],
    "dcgmStartEmbedded": [c_int, POINTER(_HANDLE)],
    "dcgmStopEmbedded": [_HANDLE],
    "dcgmConnect_v2": [c_char_p, POINTER(structs.ConnectV2Params), POINTER(_HANDLE)],
    "dcgmDisconnect": [_HANDLE],
    "dcgmGetAllSupportedDevices": [_HANDLE, POINTER(c_uint), POINTER(c_int)],
    "dcgmGroupCreate": [_HANDLE, c_int, c_char_p, POINTER(_GROUP)],
    "dcgmGroupAddEntity": [_HANDLE, _GROUP, c_uint, c_uint],
    "dcgmGroupDestroy": [_HANDLE, _GROUP],
    "dcgmFieldGroupCreate": [_HANDLE, c_int, POINTER(c_uint16), c_char_p, POINTER(_FIELDS)],
    "dcgmFieldGroupDestroy": [_HANDLE, _FIELDS],
    "dcgmWatchFields": [_HANDLE, _GROUP, _FIELDS, c_longlong, c_double, c_int],
    "dcgmUnwatchFields": [_HANDLE, _GROUP, _FIELDS],
    "dcgmUpdateAllFields": [_HANDLE, c_int],
    "dcgmEntitiesGetLatestValues": [
        _HANDLE,
        POINTER(structs.GroupEntityPair),
        c_uint,
        POINTER(c_uint16),
        c_uint,
        c_uint,
        c_void_p,
    ],
}
# Without one of these a part is missing, not the whole.
_OPTIONAL: dict[str, list[Any]] = {
    "dcgmHostengineVersionInfo": [_HANDLE, POINTER(structs.VersionInfo)],
    "dcgmGetGpuInstanceHierarchy": [_HANDLE, POINTER(structs.MigHierarchy)],
    "dcgmGetValuesSince_v2": [
        _HANDLE,
        _GROUP,
        _FIELDS,
        c_longlong,
        POINTER(c_int64),
        structs.ValueCallback,
        c_void_p,
    ],
    "dcgmProfGetSupportedMetricGroups": [_HANDLE, c_void_p],
    "dcgmProfWatchFields": [_HANDLE, POINTER(structs.ProfWatchFields)],
    "dcgmProfUnwatchFields": [_HANDLE, POINTER(structs.ProfUnwatchFields)],
    "dcgmProfPause": [_HANDLE],
    "dcgmProfResume": [_HANDLE],
}


class DcgmLibrary:
    """One loaded libdcgm: its functions by name, its version, and its layouts of what differs between majors."""

    def __init__(self, path: str, native: ctypes.CDLL) -> None:
        self.path = path
        self._functions: dict[str, Any] = {}
        self.version, self.major = _version_of(path, native)
        if self.major not in MAJORS:
            raise SourceUnavailable(
                SOURCE,
                f"{path} is DCGM {self.version}, and this version knows 2, 3 and 4",
                "install DCGM 4, point --dcgm_lib_path at one of them, or use --gpu_backend=nvml",
            )
        self._bind(native)
        meta: type[ctypes.Structure] = structs.FieldMetaV2 if self.major == 2 else structs.FieldMetaV3
        self._field_by_id = _function(native, path, "DcgmFieldGetById")
        self._field_by_id.restype, self._field_by_id.argtypes = POINTER(meta), [c_uint16]
        self._field_by_tag = _function(native, path, "DcgmFieldGetByTag")
        self._field_by_tag.restype, self._field_by_tag.argtypes = POINTER(meta), [c_char_p]

    def _bind(self, native: ctypes.CDLL) -> None:
        for name, arguments in _REQUIRED.items():
            function = _function(native, self.path, name)
            function.restype, function.argtypes = c_int, arguments
            self._functions[name] = function
        for name, arguments in _OPTIONAL.items():
            if (function := getattr(native, name, None)) is not None:
                function.restype, function.argtypes = c_int, arguments
                self._functions[name] = function

    def has(self, name: str) -> bool:
        """Whether this version has a function that others lack."""
        return name in self._functions

    def code(self, name: str, *arguments: Any) -> int:
        """Call a function; its return code. A function that this version lacks answers as one that is not supported."""
        function = self._functions.get(name)
        return codes.NOT_SUPPORTED if function is None else int(function(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises DcgmError when it does not answer OK."""
        code = self.code(name, *arguments)
        if code != codes.OK:
            raise DcgmError(name, code)

    def field_meta(self, name: str) -> Any | None:
        """What DCGM says of a field by number (`203`) or tag (`gpu_utilization`); None when it has no such field. Only after dcgmInit."""
        if not name.isdecimal():
            found = self._field_by_tag(name.encode())
        elif int(name) < 1 << 16:
            found = self._field_by_id(int(name))
        else:
            return None
        return found.contents if found else None


def _function(native: ctypes.CDLL, path: str, name: str) -> Any:
    try:
        return getattr(native, name)
    except AttributeError:
        raise SourceUnavailable(
            SOURCE, f"{path} lacks the function {name}", "it is damaged or not DCGM: install DCGM again"
        ) from None


def _version_of(path: str, native: ctypes.CDLL) -> tuple[str, int]:
    """(`4.1.1`, 4), from what the library says of its build."""
    ask = _function(native, path, "dcgmVersionInfo")
    ask.restype, ask.argtypes = c_int, [POINTER(structs.VersionInfo)]
    info = structs.VersionInfo(version=structs.struct_version(structs.VersionInfo, 2))
    code = ask(ctypes.byref(info))
    match = _VERSION.search(info.rawBuildInfoString)
    if code != codes.OK or match is None:
        raise SourceUnavailable(
            SOURCE,
            f"{path} does not say its version: {codes.words(code)}",
            "install DCGM 2.1 or later (4 is best), or use --gpu_backend=nvml",
        )
    return f"{match[1].decode()}.{match[2].decode()}", int(match[1])


def candidates(path: str, folders: Sequence[str], by_name: Sequence[str]) -> Iterator[str]:
    """Where libdcgm may be: at `path`, versions beside it, the usual folders, and wherever the loader finds it by name."""
    seen = set()
    beside = [f"{path.removesuffix('/')}.{major}" for major in reversed(MAJORS)] if path else []
    places = [path, *beside, *(f"{folder}/{name}" for folder in folders for name in _NAMES)]
    for place in places:
        # Several folders are links to one another.
        if place and os.path.exists(place) and (real := os.path.realpath(place)) not in seen:
            seen.add(real)
            yield place
    yield from by_name


def load(path: str, folders: Sequence[str] = _FOLDERS, by_name: Sequence[str] = _NAMES) -> DcgmLibrary:
    """The first libdcgm that loads and that this version can talk to. Raises SourceUnavailable with what was wrong with the best one."""
    refusal: SourceUnavailable | None = None
    for place in candidates(path, folders, by_name):
        try:
            return DcgmLibrary(place, ctypes.CDLL(place))
        except SourceUnavailable as error:
            refusal = refusal or error
        except OSError as error:
            # A bare name that the loader does not find is no finding; a file that is there and cannot be loaded is.
            if "/" in place and refusal is None:
                refusal = SourceUnavailable(SOURCE, f"{place} cannot be loaded: {error}", "install DCGM again")
    if refusal is not None:
        raise refusal
    raise SourceUnavailable(
        SOURCE,
        f"libdcgm is neither at {path} nor in the usual folders",
        "install the package datacenter-gpu-manager-4-core, or say where it is with --dcgm_lib_path",
    )
