"""A session with DCGM's engine: one inside this process, or a host engine that runs already."""

import ctypes
import socket
from collections.abc import Callable

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.dcgm import codes, structs
from dynolog.sources.dcgm.codes import DcgmError
from dynolog.sources.dcgm.library import SOURCE, DcgmLibrary

AUTO = "auto"
LOCAL_ENGINE = "localhost:5555"
_PORT = 5555
_PROBE_TIMEOUT_S = 0.3
_CONNECT_TIMEOUT_MS = 3000
_LOCAL_ADDRESSES = ("127.0.0.1", "::1")


def engine_answers() -> bool:
    """Whether something accepts connections on the port of a local host engine."""
    for address in _LOCAL_ADDRESSES:
        try:
            with socket.create_connection((address, _PORT), _PROBE_TIMEOUT_S):
                return True
        except OSError:
            continue
    return False


class CannotJoin(SourceUnavailable):
    """A host engine that does not let us in, and the code that it or its absence gave."""

    def __init__(self, address: str, code: int) -> None:
        super().__init__(SOURCE, f"the host engine at {address} cannot be joined: {codes.words(code)}", _remedy(code))
        self.code = code


class Connection:
    """A handle to an engine. `engine` says which: `embedded`, or the address of a host engine."""

    def __init__(self, library: DcgmLibrary, handle: ctypes.c_void_p, engine: str, version: str) -> None:
        self.library = library
        self.handle = handle
        self.engine = engine
        self.version = version

    @property
    def is_embedded(self) -> bool:
        """Whether the engine is inside this process."""
        return self.engine == ""

    def close(self) -> None:
        """End the session. Its watches and groups go with it. Never raises."""
        self.library.code("dcgmStopEmbedded" if self.is_embedded else "dcgmDisconnect", self.handle)
        self.library.code("dcgmShutdown")


def connect(library: DcgmLibrary, address: str, probe: Callable[[], bool] = engine_answers) -> Connection:
    """A session with the engine that `address` names: `auto`, "" or `embedded`, HOST[:PORT], or the path of a unix socket.

    What listens on the port of a local host engine need not be one: with `auto` it is then left alone. Raises SourceUnavailable.
    """
    try:
        library.call("dcgmInit")
    except DcgmError as error:
        raise SourceUnavailable(SOURCE, str(error), _remedy(error.code)) from error
    try:
        if address == AUTO:
            return _join_or_start(library) if probe() else _start_embedded(library)
        return _start_embedded(library) if address in ("", "embedded") else _join(library, address)
    except BaseException:
        library.code("dcgmShutdown")
        raise


def _join_or_start(library: DcgmLibrary) -> Connection:
    try:
        return _join(library, LOCAL_ENGINE)
    except CannotJoin as error:
        if error.code == codes.VERSION_MISMATCH:
            raise
    return _start_embedded(library)


def _start_embedded(library: DcgmLibrary) -> Connection:
    handle = ctypes.c_void_p()
    code = library.code("dcgmStartEmbedded", structs.OPERATION_MODE_AUTO, ctypes.byref(handle))
    if code != codes.OK:
        raise SourceUnavailable(SOURCE, f"the embedded engine does not start: {codes.words(code)}", _remedy(code))
    return Connection(library, handle, "", library.version)


def _join(library: DcgmLibrary, address: str) -> Connection:
    """Connect to a host engine; what it is not allowed or able to do is said with what to do."""
    is_unix = address.startswith(("/", "unix:"))
    parameters = structs.ConnectV2Params(
        version=structs.struct_version(structs.ConnectV2Params, 2),
        timeoutMs=_CONNECT_TIMEOUT_MS,
        addressIsUnixSocket=int(is_unix),
    )
    target = address.removeprefix("unix:").replace("//", "/") if is_unix else address.removeprefix("tcp://")
    handle = ctypes.c_void_p()
    code = library.code("dcgmConnect_v2", target.encode(), ctypes.byref(parameters), ctypes.byref(handle))
    if code != codes.OK:
        raise CannotJoin(address, code)
    connection = Connection(library, handle, address, library.version)
    try:
        connection.version = _engine_version(connection)
    except BaseException:
        library.code("dcgmDisconnect", handle)
        raise
    return connection


def _engine_version(connection: Connection) -> str:
    """The version of the host engine, which must be of the library's major. Raises SourceUnavailable."""
    library = connection.library
    info = structs.VersionInfo(version=structs.struct_version(structs.VersionInfo, 2))
    if library.code("dcgmHostengineVersionInfo", connection.handle, ctypes.byref(info)) != codes.OK:
        return library.version
    version = str(info.rawBuildInfoString.partition(b"version:")[2].partition(b";")[0].decode("ascii", "replace"))
    major = version.partition(".")[0]
    if major.isdecimal() and int(major) != library.major:
        raise SourceUnavailable(
            SOURCE,
            f"the host engine at {connection.engine} is DCGM {version}, and {library.path} is {library.version}",
            f"point --dcgm_lib_path at libdcgm.so.{major}, or restart the host engine with the installed version",
        )
    return version or library.version


def _remedy(code: int) -> str:
    if code == codes.VERSION_MISMATCH:
        return "library and host engine are of different versions: restart nv-hostengine, or see --dcgm_lib_path"
    if code == codes.CONNECTION_NOT_VALID:
        return "start nv-hostengine (systemctl start nvidia-dcgm), or --dcgm_standalone_address=embedded"
    if code in (codes.LIBRARY_NOT_FOUND, -56):
        return "the NVIDIA driver's libnvidia-ml.so.1 is not there: install or load the driver"
    return ""
