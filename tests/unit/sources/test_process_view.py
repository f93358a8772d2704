"""Processes with one view may write the same files; whatever could make a difference makes another view."""

import os
import tempfile
from pathlib import Path

import pytest

from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_view import file_view
from fakes.collector_context import HostTree
from fakes.processes import process_with

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: other users' processes")


def recorded(tree: HostTree, pid: int, *, namespace: str = "mnt:[1]", root: str = "/", groups: str = "4 24") -> str:
    directory = tree.root / f"proc/{pid}"
    tree.write(f"proc/{pid}/status", f"Name:\tpython\nGroups:\t{groups} \nNSpid:\t{pid}\n")
    (directory / "ns").mkdir()
    (directory / "ns" / "mnt").symlink_to(namespace)
    (directory / "root").symlink_to(root)
    return file_view(HostFiles(str(tree.root)), pid)


def test_namespace_root_and_groups_each_make_a_difference(host_tree: HostTree) -> None:
    same = recorded(host_tree, 1)
    assert same == recorded(host_tree, 2) == "mnt:[1] 4 24 /"
    others = [
        recorded(host_tree, 3, namespace="mnt:[2]"),
        recorded(host_tree, 4, root="/jail"),
        recorded(host_tree, 5, groups="4"),
        recorded(host_tree, 6, groups=""),
    ]
    assert len({same, *others}) == 5


def test_what_is_not_ours_to_see_makes_no_claim(host_tree: HostTree) -> None:
    host = HostFiles(str(host_tree.root))
    assert file_view(host, 7) == ""
    recorded(host_tree, 8)
    (host_tree.root / "proc/8/status").write_text("Name:\tpython\n")
    assert file_view(host, 8) == ""
    (host_tree.root / "proc/8/ns/mnt").unlink()
    assert file_view(host, 8) == ""


@pytest.mark.root
@needs_root
def test_real_processes_differ_by_groups_root_and_mounts() -> None:
    host = HostFiles()
    with (
        tempfile.TemporaryDirectory() as jail,
        process_with(uid=54321, groups="777") as first,
        process_with(uid=54321, groups="777") as second,
        process_with(uid=54321, groups="778") as other_groups,
        process_with(uid=54321, groups="777", root=jail) as other_root,
        process_with(uid=54321, groups="777", mount=f"none;{jail};tmpfs;size=1m;0") as other_mounts,
    ):
        assert file_view(host, first) == file_view(host, second) != ""
        assert Path(jail).name in file_view(host, other_root)
        assert len({file_view(host, pid) for pid in (first, other_groups, other_root, other_mounts)}) == 4
