"""Unix sockets that have a name, of one network namespace: `/proc/PID/net/unix` (proc_net_unix(5), unix(7))."""

from collections.abc import Iterator

import msgspec

# An abstract name is shown with `@` for each NUL, also the one that libkineto puts at its end.
_CLIENT = "dynoconfigclient"


class NamedSocket(msgspec.Struct, frozen=True):
    """Its inode, and its path, or `@name` for an abstract one (a NUL at the end of the name is left out)."""

    inode: int
    name: str

    @property
    def is_of_trainer(self) -> bool:
        """Whether it is the socket that libkineto polls a daemon from, abstract or in a directory."""
        return self.name.rpartition("/")[2].lstrip("@").startswith(_CLIENT)


def parse_unix_sockets(table: bytes) -> Iterator[NamedSocket]:
    """Those with a name; lines that do not parse are passed over. Never raises."""
    for line in table.split(b"\n")[1:]:
        columns = line.split(None, 7)
        if len(columns) == 8 and columns[6].isdigit():
            name = columns[7].decode("utf-8", "surrogateescape")
            yield NamedSocket(int(columns[6]), name[:-1] if name.startswith("@") and name.endswith("@") else name)
