"""Files of hosts, as `mpirun --hostfile` takes them and plain ones."""

from dynolog.fleet.targets import HostQuery, HostSet


class HostFile:
    """`--hostfile`."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts of a file."""
        raise NotImplementedError
