"""The compute driver's nodes and processes."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.sources.amdgpu.kfd import KfdNode, KfdProcesses, read_nodes
from dynolog.sources.host_files import HostFiles
from fakes.amd_trees import GIB, kfd_host, kfd_node, kfd_process
from fakes.drm_tree import DrmTree, drm_tree


@pytest.fixture
def tree(tmp_path: Path) -> DrmTree:
    tree = drm_tree(tmp_path)
    kfd_host(tree)
    return tree


def host(tree: DrmTree) -> HostFiles:
    return HostFiles(str(tree.root))


def test_only_links_of_xgmi_to_other_gpus_make_a_peer(tree: DrmTree) -> None:
    """Node 0 is the processor; GPUs reach each other over PCIe too."""
    kfd_node(tree, 1, 900, 0x4300, render=128, xgmi=[2], vram=GIB)
    kfd_node(tree, 2, 901, 0x4400, render=129, xgmi=[1, 0], vram=GIB)
    kfd_node(tree, 3, 902, 0x4500, render=130, xgmi=[], vram=GIB)
    for node in (1, 2):
        tree.files(
            f"sys/class/kfd/kfd/topology/nodes/{node}/p2p_links/0",
            {"properties": f"type 2\nnode_from {node}\nnode_to 3"},
        )
    assert read_nodes(host(tree)) == [
        KfdNode(gpu_id=900, pci_address="0000:43:00.0", partition=0, render_minor=128, xgmi_peers=1, memory_bytes=GIB),
        KfdNode(gpu_id=901, pci_address="0000:44:00.0", partition=0, render_minor=129, xgmi_peers=1, memory_bytes=GIB),
        KfdNode(gpu_id=902, pci_address="0000:45:00.0", partition=0, render_minor=130, xgmi_peers=0, memory_bytes=GIB),
    ]


def test_partitions_of_one_location_are_counted_in_the_order_of_their_nodes(tree: DrmTree) -> None:
    """Kernels before 6.6 do not put the partition's number into the location."""
    for part in range(3):
        kfd_node(tree, part + 1, 900 + part, 0x4300, render=128 + part, xgmi=[], vram=GIB)
    nodes = read_nodes(host(tree))
    assert [(node.gpu_id, node.partition) for node in nodes] == [(900, 0), (901, 1), (902, 2)]
    assert {node.pci_address for node in nodes} == {"0000:43:00.0"}


def test_a_node_that_a_device_cgroup_hides_is_left_out(tree: DrmTree) -> None:
    kfd_node(tree, 1, 900, 0x4300, render=128, xgmi=[2], vram=GIB)
    kfd_node(tree, 2, 901, 0x4400, render=129, xgmi=[1], vram=GIB)
    tree.remove("sys/class/kfd/kfd/topology/nodes/2/properties")
    assert [node.gpu_id for node in read_nodes(host(tree))] == [900]


def test_without_the_driver_there_is_nothing(tmp_path: Path) -> None:
    nowhere = HostFiles(str(tmp_path))
    assert read_nodes(nowhere) == []
    assert KfdProcesses(nowhere).read(0) == {}


def test_only_so_many_processes_are_looked_at_again_in_one_round(tree: DrmTree) -> None:
    pids = range(100, 100 + 2 * KfdProcesses.MOST_AGAIN)
    for pid in pids:
        kfd_process(tree, pid, {900: 0})
    processes = KfdProcesses(host(tree))
    assert processes.read(0) == {}
    for pid in pids:
        kfd_process(tree, pid, {900: GIB})
    found = [len(processes.read(KfdProcesses.FIRST_WAIT_NS).get(900, [])) for _ in range(3)]
    assert found == [KfdProcesses.MOST_AGAIN, 2 * KfdProcesses.MOST_AGAIN, 2 * KfdProcesses.MOST_AGAIN]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=20))
def test_any_content_is_read_without_error(tree: DrmTree, properties: bytes, link: bytes, number: bytes) -> None:
    kfd_node(tree, 1, 900, 0x4300, render=128, xgmi=[], vram=GIB)
    tree.write("sys/class/kfd/kfd/topology/nodes/1/properties", b"location_id 5\n" + properties)
    tree.write("sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties", link)
    tree.write("sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties", b"heap_type 1\n" + properties)
    tree.write("sys/class/kfd/kfd/topology/nodes/2/gpu_id", number)
    tree.write("sys/class/kfd/kfd/proc/7/vram_900", number)
    nodes = read_nodes(host(tree))
    assert all(node.gpu_id and node.pci_address.endswith(".0") for node in nodes)
    KfdProcesses(host(tree)).read(0)
