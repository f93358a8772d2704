"""What DCGM's return codes mean (`dcgmReturn_t` of dcgm_structs.h), and which of them call for the same behaviour."""

OK = 0
BAD_PARAMETER = -1
GENERIC_ERROR = -3
NOT_SUPPORTED = -6
UNINITIALIZED = -10
VERSION_MISMATCH = -12
UNKNOWN_FIELD = -13
NO_DATA = -14
NOT_WATCHED = -16
GPU_IS_LOST = -18
RESET_REQUIRED = -19
CONNECTION_NOT_VALID = -21
GROUP_INCOMPATIBLE = -23
LIBRARY_NOT_FOUND = -25
INSUFFICIENT_SIZE = -31
MODULE_NOT_LOADED = -33
IN_USE = -34
PROFILING_NOT_SUPPORTED = -36
PROFILING_LIBRARY_ERROR = -37
PROFILING_MULTI_PASS = -38

_WORDS = {
    BAD_PARAMETER: "bad parameter",
    GENERIC_ERROR: "unspecified error",
    -4: "out of memory",
    -5: "not configured",
    NOT_SUPPORTED: "not supported",
    -7: "could not be initialised",
    -8: "the driver's library (NVML) failed",
    -9: "pending",
    UNINITIALIZED: "not initialised",
    -11: "timed out",
    VERSION_MISMATCH: "version mismatch",
    UNKNOWN_FIELD: "unknown field",
    NO_DATA: "no data yet",
    -15: "stale data",
    NOT_WATCHED: "not watched",
    -17: "no permission",
    GPU_IS_LOST: "the GPU is lost",
    RESET_REQUIRED: "the GPU must be reset",
    -20: "function not found",
    CONNECTION_NOT_VALID: "the connection to the host engine is not valid",
    -22: "GPU not supported",
    GROUP_INCOMPATIBLE: "the GPUs of the group are not alike",
    -24: "a limit is reached",
    LIBRARY_NOT_FOUND: "a library was not found",
    -29: "the host engine does not run as root",
    INSUFFICIENT_SIZE: "not enough room",
    -32: "field not supported by this call",
    MODULE_NOT_LOADED: "a module of DCGM is not loaded",
    IN_USE: "in use",
    PROFILING_NOT_SUPPORTED: "profiling is not supported",
    PROFILING_LIBRARY_ERROR: "the profiling module failed",
    PROFILING_MULTI_PASS: "these fields cannot be counted at once",
    -44: "the driver is too old",
    -48: "a third-party library failed",
    -49: "not enough resources",
    -54: "the host engine is paused",
    -56: "the driver's library (NVML) is not loaded",
    -57: "the driver does not answer",
}

# The whole session with the engine is gone: connect again and redo groups and watches.
CONNECTION_LOST = frozenset((CONNECTION_NOT_VALID, UNINITIALIZED, -7))
# One field cannot be had; the others of a list can.
FIELD_REFUSED = frozenset((BAD_PARAMETER, NOT_SUPPORTED, UNKNOWN_FIELD, -17, -29, -32, MODULE_NOT_LOADED, -44))
# The device has no profiling counters, and will not get any.
NO_PROFILING = frozenset((NOT_SUPPORTED, -22, MODULE_NOT_LOADED, PROFILING_NOT_SUPPORTED, -44))


def words(code: int) -> str:
    """`the GPU is lost (-18)`."""
    return f"{_WORDS.get(code, 'error')} ({code})"


class DcgmError(Exception):
    """A call of libdcgm that failed: which, and with what."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {words(code)}")
        self.function = function
        self.code = code
