"""Files of hosts, as `mpirun --hostfile` takes them and plain ones: a host or a list a line, the rest of the line ignored.

Open MPI writes `gpu1 slots=8 max_slots=8`, MPICH `gpu1:8`: a number below 1024 is taken for its count of processes, a larger one
for the daemon's port. `#` begins a comment; a user before `@` is left out; hosts may stand there more than once.
"""

import sys

from dynolog.fleet.hostlist import parse_hosts, split_port
from dynolog.fleet.targets import MAX_HOSTS, FleetTarget, HostQuery, HostsError, HostSet, unique

MAX_BYTES = 16 << 20
_FIRST_USER_PORT = 1024


class HostFile:
    """`--hostfile`; `-` reads stdin."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts of a file."""
        return HostSet(targets=parse_hostfile(_read(query.value), query.value, query.port))


def _read(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise HostsError(f"the host file {path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise HostsError(f"the host file {path} has more than {MAX_BYTES >> 20} MB")
    return data.decode("utf-8-sig", "replace")


def parse_hostfile(text: str, path: str, port: int) -> tuple[FleetTarget, ...]:
    """The daemons of a file, each once, in order. Raises HostsError with the line that is wrong."""
    targets: list[FleetTarget] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            targets += _hosts(words[0].rpartition("@")[2], port)
        except HostsError as error:
            raise HostsError(f"{path}, line {number}: {error}") from None
        if len(targets) > MAX_HOSTS:
            targets = list(unique(targets))
            if len(targets) > MAX_HOSTS:
                raise HostsError(f"{path} names more than {MAX_HOSTS} hosts")
    if not targets:
        raise HostsError(f"{path} names no host")
    return unique(targets)


def _hosts(word: str, port: int) -> tuple[FleetTarget, ...]:
    if "," not in word:
        name, own_port = split_port(word, port)
        if own_port < _FIRST_USER_PORT and own_port != port:
            return tuple(FleetTarget(host=target.host, port=port) for target in parse_hosts(name, port))
    return parse_hosts(word, port)
