"""How dyno ends: its exit codes, and the one error that carries one."""

from dynolog.model.errors import DynologError

DONE = 0
FAILED = 1  # nothing matched, a capture failed, or the daemon refused
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE: whoever read the output had enough


class CommandError(DynologError):
    """A command that cannot go on: one sentence for stderr, and the exit code."""

    def __init__(self, sentence: str, exit_code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class Interrupted(CommandError):  # noqa: N818 - what happened is its name
    """Ctrl-C while something goes on in the daemon; the sentence says what, and how to follow it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, INTERRUPTED)
