"""Lists of hosts as SLURM and people write them: `gpu[001-064,070],login:1779,b2u[05,02]n3`."""

import itertools
import re
import socket
from collections.abc import Iterator

from dynolog.fleet.targets import MAX_HOSTS, FleetTarget, HostQuery, HostsError, HostSet

_MAX_DIGITS = 9
_GROUP = re.compile(r"\[([^\[\]]*)\]")
_ZONE = re.compile(r"[0-9A-Za-z._-]{1,32}")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


class HostList:
    """`--hosts`."""

    def find(self, query: HostQuery) -> HostSet:
        """The hosts of a list."""
        return HostSet(targets=parse_hosts(query.value, query.port))


def parse_hosts(text: str, port: int) -> tuple[FleetTarget, ...]:
    """The daemons of a comma list, in order. Raises HostsError with the part that is wrong."""
    targets: list[FleetTarget] = []
    for part in split_list(text):
        names, own_port = split_port(part, port)
        for name in expand(names):
            targets.append(FleetTarget(host=name, port=own_port))
            if len(targets) > MAX_HOSTS:
                raise HostsError(f"the list names more than {MAX_HOSTS} hosts")
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
            raise HostsError(f"{text!r}: the brackets do not match at character {index + 1}")
        if char == "," and depth == 0:
            yield _part(text, start, index)
            start = index + 1
    if depth:
        raise HostsError(f"{text!r}: a bracket is not closed")
    yield _part(text, start, len(text))


def _part(text: str, start: int, end: int) -> str:
    part = text[start:end].strip()
    if not part:
        raise HostsError(f"{text!r}: a host is missing at character {start + 1}: give names such as gpu1,gpu[003-064]")
    return part


def split_port(part: str, port: int) -> tuple[str, int]:
    """A pattern and its port: `h:1779`, `[fe80::1]:1779`; a bare IPv6 address has none. Raises HostsError."""
    if part.startswith("[") and ":" in part.partition("]")[0]:
        address, _, rest = part[1:].partition("]")
        if not is_ipv6(address):
            raise HostsError(f"{part!r}: {address!r} is no IPv6 address")
        if rest and not rest.startswith(":"):
            raise HostsError(f"{part!r}: only a port such as :1779 may follow the address")
        return address, _port(part, rest[1:]) if rest else port
    if is_ipv6(part):
        return part, port
    pattern, colon, number = part.rpartition(":")
    return (pattern, _port(part, number)) if colon else (part, port)


def is_ipv6(text: str) -> bool:
    """Whether it is an IPv6 address, with or without a zone (`fe80::1%eth0`)."""
    address, percent, zone = text.partition("%")
    if percent and not _ZONE.fullmatch(zone):
        return False
    try:
        socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):  # ValueError: a NUL in it
        return False
    return True


def _port(part: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise HostsError(f"{part!r}: {text!r} is no port: a number from 1 to 65535")
    return int(text)


def expand(pattern: str) -> Iterator[str]:
    """The names of a pattern; several brackets give every combination, the last one fastest. Raises HostsError."""
    if is_ipv6(pattern):
        yield pattern
        return
    pieces = _GROUP.split(pattern)  # what stands between brackets at even places, what is in them at odd ones
    _check_name(pattern, "".join(pieces[::2]) if len(pieces) > 1 else pattern)
    choices = [_numbers(pattern, piece) if index % 2 else [piece] for index, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
        if count > MAX_HOSTS:
            raise HostsError(f"{pattern!r} names more than {MAX_HOSTS} hosts")
    yield from map("".join, itertools.product(*choices))


def _check_name(pattern: str, fixed: str) -> None:
    if not pattern or not all(char.isalnum() or char in "._-" for char in fixed) or pattern.startswith(("-", ".")):
        raise HostsError(f"{pattern!r} is no host name: letters, digits, '.', '-' and '_', with ranges in brackets")


def _numbers(pattern: str, group: str) -> list[str]:
    """`001-003,070` → 001, 002, 003, 070: as wide as the first number of each range is written."""
    numbers: list[str] = []
    for part in group.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            said = repr(part.strip()) if part.strip() else "nothing"
            raise HostsError(
                f"{pattern!r}: a number or a range such as 001-064 is expected in the brackets, not {said}"
            )
        low, high = match[1], match[2] or match[1]
        if max(len(low), len(high)) > _MAX_DIGITS:
            raise HostsError(f"{pattern!r}: {part.strip()} has too many digits")
        if int(high) < int(low):
            raise HostsError(f"{pattern!r}: the range {part.strip()} goes backwards: write {high}-{low}")
        if int(high) - int(low) + len(numbers) >= MAX_HOSTS:
            raise HostsError(f"{pattern!r} names more than {MAX_HOSTS} hosts")
        numbers += (str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
    return numbers
