"""What NVML's return codes mean for a reader (nvmlReturn_t of the NVML reference)."""

from enum import IntEnum

from dynolog.model.errors import SourceUnavailable


class Code(IntEnum):
    """The return codes that are treated in a way of their own."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    NO_DATA = 21
    VGPU_ECC_NOT_SUPPORTED = 22
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    UNKNOWN = 999


# The driver and the binding do not know the same functions: no device will ever answer.
NO_SUCH_FUNCTION = frozenset({Code.FUNCTION_NOT_FOUND, Code.ARGUMENT_VERSION_MISMATCH, Code.DEPRECATED})
# This device does not have it, or not in its present mode.
NOT_HERE = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.INVALID_ARGUMENT,
        Code.NO_PERMISSION,
        Code.NOT_FOUND,
        Code.NO_DATA,
        Code.VGPU_ECC_NOT_SUPPORTED,
        Code.INVALID_STATE,
    }
)
# No other call on this device can work either.
DEVICE_LOST = frozenset(
    {Code.GPU_IS_LOST, Code.RESET_REQUIRED, Code.GPU_NOT_FOUND, Code.UNINITIALIZED, Code.DRIVER_NOT_LOADED}
)

_WORDS: dict[int, str] = {
    Code.UNINITIALIZED: "NVML lost its session",
    Code.NO_PERMISSION: "no permission",
    Code.DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    Code.LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 was not found",
    Code.FUNCTION_NOT_FOUND: "this driver is too old for nvidia-ml-py",
    Code.GPU_IS_LOST: "the GPU is lost: it fell off the bus or does not answer",
    Code.RESET_REQUIRED: "the GPU must be reset",
    Code.LIB_RM_VERSION_MISMATCH: "driver and library have different versions (version mismatch)",
    Code.GPU_NOT_FOUND: "the GPU was not found",
    Code.UNKNOWN: "Unknown Error",
}
_REMEDIES: dict[int, str] = {
    Code.NO_PERMISSION: "run the daemon as root, or give its user access to /dev/nvidia*",
    Code.DRIVER_NOT_LOADED: "load it (modprobe nvidia); the kernel log says why it is not",
    Code.LIBRARY_NOT_FOUND: "install the NVIDIA driver; in a container, start it with the NVIDIA container toolkit (--gpus all)",
    Code.FUNCTION_NOT_FOUND: "install a driver of branch 450 or newer",
    Code.LIB_RM_VERSION_MISMATCH: "the driver was upgraded while its old kernel module is loaded: reload the nvidia modules or reboot",
    Code.UNKNOWN: "in a container the access to /dev/nvidia* may have been taken away (systemctl daemon-reload on the host does that): "
    "start the container anew; elsewhere the kernel log has the driver's own message",
}


def words(code: int) -> str:
    """A sentence part for a person."""
    known = _WORDS.get(code)
    return f"{known} (NVML error {code})" if known else f"NVML error {code}"


def unavailable(code: int) -> SourceUnavailable:
    """The error for NVML as a whole, with the known cause and what to do."""
    return SourceUnavailable("nvml", words(code), _REMEDIES.get(code, ""))


class DeviceLostError(Exception):
    """No call on this device can work; the text says why."""

    def __init__(self, code: int) -> None:
        super().__init__(words(code))
        self.code = code
