"""The network of a big host: 16 physical interfaces, some virtual ones, and the protocol counters.

Every counter is linear in the step, so that a test knows each delta: `nic_counters(3, 1)` less `nic_counters(3, 0)`.
"""

from pathlib import Path

from fakes.big_host.files import write, write_once

NICS = tuple(f"eth{number}" for number in range(16))
SPEED_MBPS = 400_000
_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
)
# Names and values in the kernel's form; a counter grows by its position in the line with every step.
_SNMP = {
    "Ip": "Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers "
    "OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates",
    "Tcp": "RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs "
    "RetransSegs InErrs OutRsts InCsumErrors",
    "Udp": "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors",
}
_NETSTAT = {
    "TcpExt": "SyncookiesSent SyncookiesRecv PruneCalled ListenOverflows ListenDrops "
    + " ".join(f"Filler{number}" for number in range(90))
    + " TCPLostRetransmit TCPFastRetrans TCPTimeouts TCPSpuriousRTOs TCPBacklogDrop TCPRcvQDrop TCPReqQFullDrop TCPOFOQueue "
    "TCPToZeroWindowAdv TCPSynRetrans TCPAbortOnTimeout TCPAbortOnMemory TCPMemoryPressures",
    "IpExt": "InNoRoutes InTruncatedPkts InOctets OutOctets InCEPkts",
}


def nic_counters(number: int, step: int) -> tuple[int, ...]:
    """rx bytes, packets, errors, drops, then tx: what /proc/net/dev says of NICS[number] at a step."""
    rx = (10**12 + step * 1_000_000 * (number + 1), 10**9 + step * 1000 * (number + 1), 5 + step * number, 7 + step)
    tx = (10**13 + step * 2_000_000 * (number + 1), 10**8 + step * 2000 * (number + 1), step, number)
    return rx + tx


def build_network(root: Path, step: int) -> None:
    """Write the network files of a step below `root`."""
    lines = [_line("lo", (step * 500, step * 5, 0, 0) * 2)]
    lines += [_line(name, nic_counters(number, step)) for number, name in enumerate(NICS)]
    lines += [_line(f"veth{number:08x}", (step * number, step, 0, 0) * 2) for number in range(8)]
    write(root, "proc/net/dev", _HEADER + "".join(lines))
    for number, name in enumerate(NICS):
        write_once(root, f"sys/class/net/{name}/device/vendor", "0x15b3\n")
        write_once(root, f"sys/class/net/{name}/speed", f"{SPEED_MBPS}\n")
        write(root, f"sys/class/net/{name}/operstate", "up\n" if number else "down\n")
        write(root, f"sys/class/net/{name}/carrier_changes", f"{2 + step * (number % 2)}\n")
    write(root, "proc/net/snmp", _table(_SNMP, step))
    write(root, "proc/net/netstat", _table(_NETSTAT, step))
    write(root, "proc/net/snmp6", f"Ip6InReceives {step}\nUdp6InDatagrams {step * 3}\nUdp6OutDatagrams {step * 4}\n")
    write(
        root,
        "proc/net/sockstat",
        f"sockets: used {900 + step}\nTCP: inuse {400 + step} orphan 1 tw {30 + step} alloc 420 mem {100 + step}\n"
        "UDP: inuse 20 mem 5\nUDPLITE: inuse 0\nRAW: inuse 1\nFRAG: inuse 0 memory 0\n",
    )
    write(root, "proc/net/sockstat6", "TCP6: inuse 12\nUDP6: inuse 4\nUDPLITE6: inuse 0\nRAW6: inuse 1\n")


def _line(name: str, counters: tuple[int, ...]) -> str:
    columns = (*counters[:4], 0, 0, 0, 0, *counters[4:], 0, 0, 0, 0)
    return f"{name:>6}: " + " ".join(map(str, columns)) + "\n"


def _table(protocols: dict[str, str], step: int) -> str:
    lines = []
    for protocol, names in protocols.items():
        values = " ".join(str(10_000 + step * position) for position in range(len(names.split())))
        lines.append(f"{protocol}: {names}\n{protocol}: {values}\n")
    return "".join(lines)
