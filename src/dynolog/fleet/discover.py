"""`--discover`: the hosts that a command prints."""

from dynolog.fleet.hostlist import parse_hosts
from dynolog.fleet.targets import FleetTarget, HostQuery, HostsError, HostSet
from dynolog.fleet.tool import run_tool

_DEADLINE_S = 60.0  # it may ask a cloud's API
_MAX_OUTPUT_BYTES = 16 << 20


class DiscoveredHosts:
    """`--discover`."""

    def find(self, query: HostQuery) -> HostSet:
        """Run the command and read its output: hosts between blanks or commas, `#` begins a comment; brackets and ports as in --hosts.

        The command is split as a shell splits words, but no shell runs it. Raises HostsError when it fails, takes longer than 60 s,
        or prints no host.
        """
        import shlex  # noqa: PLC0415 - only for this option

        try:
            words = shlex.split(query.value)
        except ValueError as error:
            raise HostsError(f"--discover {query.value!r} cannot be split into words: {str(error).lower()}") from error
        if not words:
            raise HostsError("--discover needs a command that prints hosts, such as 'cat hosts.txt'")
        output = run_tool(words, deadline_s=_DEADLINE_S, max_output_bytes=_MAX_OUTPUT_BYTES)
        if output.exit_code:
            ended = f"signal {-output.exit_code}" if output.exit_code < 0 else f"exit code {output.exit_code}"
            raise HostsError(f"--discover: {words[0]} failed with {ended}: {output.complaint}")
        return HostSet(targets=_hosts(words[0], output.stdout, query.port))


def _hosts(command: str, output: bytes, port: int) -> tuple[FleetTarget, ...]:
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        raise HostsError(f"--discover: {command} printed something that is no text") from error
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    parts = [part for word in words if (part := word.strip(","))]
    if not parts:
        raise HostsError(f"--discover: {command} printed no host")
    try:
        return parse_hosts(",".join(parts), port)
    except HostsError as error:
        raise HostsError(f"--discover: {command} printed something that is no host: {error}") from error
