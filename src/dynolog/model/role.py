"""What a caller of the RPC may do at most."""

from enum import IntEnum


class Role(IntEnum):
    """Each may do what the ones before it may. Whose trainers are meant is another question (Caller.may_act_for)."""

    NONE = 0  # what everybody may: plain status and version
    READ = 1  # see: trainers, captures, metrics, GPUs, the whole status
    TRACE = 2  # act: trace, fetch traces, pause GPU profiling
    ADMIN = 3  # change the daemon: reload it

    @property
    def word(self) -> str:
        """As it stands in files and messages."""
        return self.name.lower()
