"""What the exit code of `dynolog` means."""

STOPPED = 0  # asked to stop, and everything was flushed
FAILED = 1  # something that should not happen; the log has the traceback
BAD_FLAG = 2  # a flag, flag file or combination of flags cannot be used
ADDRESS_IN_USE = 3  # the port or the IPC name is held by somebody else
NO_PERMISSION = 4  # a socket or file may not be opened
