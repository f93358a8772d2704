"""Kernel files that are kept open, and what collectors share."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles, KernelFile
from fakes.collector_context import HostTree


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.sampled_from([0, 1, 4095, 4096, 4097, 10_000, 300_000]), st.integers(0, 9000))
def test_reading_into_a_buffer_gives_what_reading_gives(host_tree: HostTree, size: int, room: int) -> None:
    content = os.urandom(size)
    host_tree.write("proc/x", content)
    buffer = bytearray(room)
    file = HostFiles(str(host_tree.root)).file("proc/x")
    length = file.read_into(buffer)
    assert bytes(buffer[:length]) == content == file.read()
    file.close()


def test_a_file_that_comes_later_is_found(host_tree: HostTree) -> None:
    file = HostFiles(str(host_tree.root)).file("proc/x")
    with pytest.raises(FileNotFoundError):
        file.read_into(bytearray())
    host_tree.write("proc/x", "1")
    assert file.read_into(bytearray()) == 1


def test_a_failed_read_closes_the_descriptor(host_tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    (host_tree.root / "proc/x").mkdir(parents=True)
    file = KernelFile(str(host_tree.root / "proc/x"))
    for _ in range(2):
        with pytest.raises(IsADirectoryError):
            file.read_into(bytearray())
    assert file._fd == -1


def test_what_is_shared_is_made_once_for_each_host() -> None:
    host, other = HostFiles("/a"), HostFiles("/b")
    made: list[str] = []

    def make(files: HostFiles) -> list[str]:
        made.append(files.root)
        return [files.root]

    assert host.shared(make) is host.shared(make)
    assert other.shared(make) == ["/b"]
    assert made == ["/a", "/b"]
