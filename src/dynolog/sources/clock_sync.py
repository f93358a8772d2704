"""Whether the kernel holds its clock for synchronised: adjtimex(2), which every time daemon tells through (STA_UNSYNC)."""

import msgspec

_STA_UNSYNC = 0x0040
_TIME_ERROR = 5


class ClockSync(msgspec.Struct, frozen=True):
    """`is_synchronised` by the kernel's word; `max_error_us` is its bound on the error of the wall clock in µs."""

    is_synchronised: bool
    max_error_us: int


def judge(state: int, status: int, max_error_us: int) -> ClockSync:
    """From what adjtimex(2) returns and its `status` and `maxerror`."""
    return ClockSync(state != _TIME_ERROR and not status & _STA_UNSYNC, max_error_us)


def read_clock_sync() -> ClockSync:
    """Ask the kernel; nothing is changed (`modes` 0). Raises OSError, also where the call is not to be had."""
    try:
        import ctypes  # noqa: PLC0415 - a megabyte, and used once
    except ImportError as error:
        raise OSError("no ctypes in this interpreter") from error

    class Timex(ctypes.Structure):
        """The beginning of `struct timex`; the kernel writes 208 bytes."""

        _fields_ = (
            ("modes", ctypes.c_uint),
            ("offset", ctypes.c_long),
            ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long),
            ("status", ctypes.c_int),
            ("rest", ctypes.c_byte * 256),
        )

    timex = Timex()
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except AttributeError as error:
        raise OSError("the C library has no adjtimex(2)") from error
    state = adjtimex(ctypes.byref(timex))
    if state < 0:
        raise OSError(ctypes.get_errno(), "adjtimex(2) is refused")
    return judge(state, timex.status, timex.maxerror)
