"""The IP addresses of this network namespace, without a socket: from /proc/net/fib_trie and /proc/net/if_inet6."""

import ipaddress
import re

from dynolog.sources.host_files import HostFiles

# A leaf of the trie with what it is for: an address, and on the next line that it is one of this host's own.
_LOCAL = re.compile(r"\|-- (\S+)\n\s*/32 host LOCAL")


def read_addresses(host: HostFiles) -> tuple[str, ...] | None:
    """IPv4 first, in order, each once; None where the kernel does not show them."""
    try:
        trie = host.read("proc/net/fib_trie").decode("ascii", "replace")
    except OSError:
        return None
    try:
        table = host.read("proc/net/if_inet6").decode("ascii", "replace")
    except OSError:  # IPv6 is off
        table = ""
    return (*parse_fib_trie(trie), *parse_if_inet6(table))


def parse_fib_trie(text: str) -> tuple[str, ...]:
    """The IPv4 addresses of /proc/net/fib_trie, which lists each in several tables."""
    found = {ipaddress.IPv4Address(word) for word in _LOCAL.findall(text) if _is_ipv4(word)}
    return tuple(str(address) for address in sorted(found))


def parse_if_inet6(text: str) -> tuple[str, ...]:
    """The IPv6 addresses of /proc/net/if_inet6: 32 hexadecimal digits first in each line."""
    found = {
        ipaddress.IPv6Address(int(words[0], 16))
        for line in text.splitlines()
        if (words := line.split()) and re.fullmatch(r"[0-9a-fA-F]{32}", words[0])
    }
    return tuple(str(address) for address in sorted(found))


def _is_ipv4(word: str) -> bool:
    try:
        ipaddress.IPv4Address(word)
    except ValueError:
        return False
    return True
