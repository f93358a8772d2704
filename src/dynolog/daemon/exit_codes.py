"""What the exit code of `dynolog` means."""

STOPPED = 0
FAILED = 1
BAD_FLAG = 2
ADDRESS_IN_USE = 3
NO_PERMISSION = 4
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE
MEANINGS = {
    STOPPED: "asked to stop, and everything was flushed",
    FAILED: "something that should not happen; the log has the traceback",
    BAD_FLAG: "a flag, flag file or combination of flags cannot be used",
    ADDRESS_IN_USE: "the port or the IPC name is held by somebody else",
    NO_PERMISSION: "a socket or file may not be opened",
    INTERRUPTED: "interrupted (Ctrl-C) before it was up; later that is a stop",
}
