"""A generated host of 256 CPUs, 4 NUMA nodes, 16 NICs and 64 disks whose right values are known: each step is one second."""

from pathlib import Path

from fakes.big_host.board import build_board
from fakes.big_host.disks import build_disks
from fakes.big_host.memory import build_memory
from fakes.big_host.network import build_network
from fakes.big_host.processors import build_processors

BUILDERS = (build_processors, build_memory, build_board, build_network, build_disks)


def build(root: Path, step: int) -> None:
    """Write or rewrite all files below `root` as they are at `step`."""
    for build_part in BUILDERS:
        build_part(root, step)
