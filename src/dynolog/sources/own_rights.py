"""Giving up what this process may do."""

import os
import struct

# capset(2): the header's version 3 and "this thread"; then effective, permitted and inheritable, in two halves of 32 bits.
_CAPSET_HEADER = struct.pack("=Ii", 0x20080522, 0)
_NO_CAPABILITY = bytes(24)
_PR_SET_NO_NEW_PRIVS = 38


def give_up_capabilities() -> None:
    """Have no capability from here on, and get none back by running a program. Raises OSError. For a process of one thread."""
    import ctypes  # noqa: PLC0415 - few processes come here

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.capset(_CAPSET_HEADER, _NO_CAPABILITY):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
