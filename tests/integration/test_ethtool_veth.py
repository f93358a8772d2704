"""Statistics of a real driver: a pair of virtual Ethernet devices in a network namespace of their own."""

import os
import shutil
import subprocess
import sys

import pytest

# Runs in the namespace: what the reader and the collector make of the devices, as lines.
_PROGRAM = """
import socket
from dynolog.collectors.ethtool import SPEC
from dynolog.collectors.spec import Context
from dynolog.model.flag import Settings
from dynolog.sources.ethtool import EthtoolReader
from dynolog.sources.host_files import HostFiles
from subprocess import run

class Notices:
    def say(self, key, sentence):
        if sentence:
            print("said", sentence)

run(["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"], check=True)
found = EthtoolReader(lambda name: name).read("va")
print("peer", found["peer_ifindex"] == socket.if_nametoindex("vb"))
print("names", sorted(name for name in found if name.startswith("rx_queue_0_xdp"))[:2])
given = {"ethtool_interfaces": "v?,lo", "ethtool_counters": "rx_queue_0_xdp_packets,peer_ifindex"}
declared = []
collector = SPEC.factory(
    Context(host=HostFiles(), settings=Settings(SPEC.flags, given), notices=Notices(), declare=declared.extend)
)
first = collector.read()
print("values", sorted(collector.compute(first, collector.read(), 1.0).items()))
print("declared", sorted({metric.name for metric in declared}))
run(["ip", "link", "del", "va"], check=True)
print("gone", collector.compute(first, collector.read(), 1.0))
"""


@pytest.mark.root
def test_the_ioctl_reads_what_the_veth_driver_counts() -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs root, unshare and ip (Debian: util-linux, iproute2)")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "peer True",
        "names ['rx_queue_0_xdp_bytes', 'rx_queue_0_xdp_drops']",
        "values "
        + repr(
            [
                ("ethtool_peer_ifindex.va", 0),
                ("ethtool_peer_ifindex.vb", 0),
                ("ethtool_rx_queue_0_xdp_packets.va", 0),
                ("ethtool_rx_queue_0_xdp_packets.vb", 0),
            ]
        ),
        "declared ['ethtool_peer_ifindex', 'ethtool_rx_queue_0_xdp_packets']",
        "gone {}",
    ]
