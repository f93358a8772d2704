"""Lists of hosts as SLURM and people write them: `gpu[001-064,070],login:1779,b2u[05,02]n3`."""

from collections.abc import Iterator

from dynolog.fleet.targets import MAX_HOSTS, FleetTarget, HostQuery, HostsError, HostSet

_MAX_DIGITS = 9


class HostList:
    """`--hosts`."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts of a list."""
        return HostSet(targets=parse_hosts(query.value, query.port))


def parse_hosts(text: str, port: int) -> tuple[FleetTarget, ...]:
    """The daemons of a comma list, in order. Raises HostsError with the part that is wrong."""
    targets: list[FleetTarget] = []
    for part in split_list(text):
        names, own_port = _split_port(part, port)
        for name in expand(names):
            targets.append(FleetTarget(host=name, port=own_port))
            if len(targets) > MAX_HOSTS:
                raise HostsError(f"the list names more than {MAX_HOSTS} hosts")
    if not targets:
        raise HostsError("the list names no host: give names such as gpu1,gpu2 or gpu[001-064]")
    return tuple(targets)


def split_list(text: str) -> Iterator[str]:
    """The parts between the commas that are not inside brackets. Raises HostsError for brackets that do not match."""
    depth, start = 0, 0
    for index, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        if not 0 <= depth <= 1:
            raise HostsError(f"{text!r}: the brackets at character {index + 1} do not match")
        if char == "," and depth == 0:
            yield _part(text, start, index)
            start = index + 1
    if depth:
        raise HostsError(f"{text!r}: a bracket is not closed")
    yield _part(text, start, len(text))


def _part(text: str, start: int, end: int) -> str:
    part = text[start:end].strip()
    if not part:
        raise HostsError(f"{text!r}: a host is missing at character {start + 1}: two commas, or one at the end")
    return part


def expand(pattern: str) -> Iterator[str]:
    """The names of a pattern; several brackets give every combination, the last one fastest. Raises HostsError."""
    raise NotImplementedError


def _split_port(part: str, port: int) -> tuple[str, int]:
    raise NotImplementedError
