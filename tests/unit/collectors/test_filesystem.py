"""File systems that answer, fail, hang and come back."""

import errno
import os
import threading
import time

import pytest

from dynolog.collectors.filesystem import METRICS, FilesystemCollector
from dynolog.sources.statvfs import FilesystemUse, filesystem_use
from fakes.collector_context import HostTree

ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
NFS = "2 1 0:60 / /nfs rw - nfs4 server:/x rw\n"


def use(device: int, **fields: int) -> FilesystemUse:
    values = {"size_bytes": 1000, "free_bytes": 400, "available_bytes": 200, "inodes": 50, "inodes_free": 40, **fields}
    return FilesystemUse(device=device, **values)


class FakeMounts:
    """Answers for mount points: a use, an error to raise, or an event to hang on until it is set."""

    def __init__(self, host_tree: HostTree) -> None:
        self.root = str(host_tree.root)
        self.answers: dict[str, FilesystemUse | OSError] = {}
        self.hang: dict[str, threading.Event] = {}
        self.asked: list[str] = []

    def ask(self, path: str) -> FilesystemUse:
        point = "/" + path.removeprefix(self.root).strip("/")
        self.asked.append(point)
        if event := self.hang.get(point):
            event.wait(30)
        answer = self.answers[point]
        if isinstance(answer, OSError):
            raise answer
        return answer


@pytest.fixture
def mounts(host_tree: HostTree) -> FakeMounts:
    fake = FakeMounts(host_tree)
    fake.answers = {"/": use(os.makedev(8, 1)), "/nfs": use(os.makedev(0, 60), size_bytes=5000)}
    host_tree.write("proc/self/mountinfo", ROOT + NFS)
    return fake


def statvfs_threads() -> int:
    return sum(thread.name == "statvfs" for thread in threading.enumerate())


def values_of(collector: FilesystemCollector) -> dict[str, int | float | str]:
    snapshot = collector.read()
    return collector.compute(snapshot, snapshot, 1.0)


def test_every_metric_of_a_file_system(host_tree: HostTree, mounts: FakeMounts) -> None:
    """600 of 1000 bytes are used and 200 are for users: 75 % as df counts; 10 of 50 inodes are used."""
    host_tree.write("proc/self/mountinfo", ROOT)
    values = values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert values == {
        "filesystem_size_bytes./": 1000,
        "filesystem_free_bytes./": 400,
        "filesystem_available_bytes./": 200,
        "filesystem_util./": 75,
        "filesystem_inodes./": 50,
        "filesystem_inodes_free./": 40,
        "filesystem_inodes_util./": 20,
        "filesystem_read_only./": 0,
        "filesystem_responding./": 1,
    }
    assert len(values) == len(METRICS)


def test_a_file_system_without_inodes_or_without_size_has_no_such_values(
    host_tree: HostTree, mounts: FakeMounts
) -> None:
    mounts.answers = {"/": use(os.makedev(8, 1), inodes=0, inodes_free=0), "/nfs": use(os.makedev(0, 60), size_bytes=0)}
    values = values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert not [key for key in values if "inodes" in key and key.endswith("./")]
    assert not [key for key in values if "bytes" in key and key.endswith("/nfs")]
    assert values["filesystem_responding./nfs"] == 1


@pytest.mark.parametrize(
    ("line", "read_only"),
    [
        (ROOT, 0),
        ("1 0 8:1 / / ro - ext4 /dev/sda1 rw\n", 1),  # this mount of it
        ("1 0 8:1 / / rw - ext4 /dev/sda1 ro\n", 1),  # the file system, so after an error before Linux 6.15
        ("1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro\n", 0),
        ("1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro,emergency_ro\n", 1),  # and since
    ],
)
def test_read_only_is_what_the_host_says(host_tree: HostTree, mounts: FakeMounts, line: str, read_only: int) -> None:
    """Of its process 1: in a container all of it is mounted read-only below /host."""
    host_tree.write("proc/1/mountinfo", line)
    host_tree.write("proc/self/mountinfo", "9 0 8:1 / / ro - ext4 /dev/sda1 rw\n")
    assert values_of(FilesystemCollector(host_tree.context(), mounts.ask))["filesystem_read_only./"] == read_only


def test_one_that_becomes_read_only_is_said_at_the_next_look(host_tree: HostTree, mounts: FakeMounts) -> None:
    host_tree.write("proc/self/mountinfo", ROOT)
    collector = FilesystemCollector(host_tree.context(), mounts.ask)
    assert values_of(collector)["filesystem_read_only./"] == 0
    host_tree.write("proc/self/mountinfo", ROOT.replace("sda1 rw", "sda1 rw,emergency_ro"))
    assert values_of(collector)["filesystem_read_only./"] == 1


def test_a_container_that_sees_none_of_the_hosts_file_systems_is_told(host_tree: HostTree, mounts: FakeMounts) -> None:
    """With only /proc and /sys below /host, its own file systems are found at the paths: other device numbers."""
    mounts.answers = {"/": use(os.makedev(0, 99)), "/nfs": FileNotFoundError(errno.ENOENT, "no such directory")}
    assert values_of(FilesystemCollector(host_tree.context(), mounts.ask)) == {}
    assert "mount its root directory there" in host_tree.notices.said["filesystem_unseen"]


def test_a_dead_server_costs_nothing_else(
    host_tree: HostTree, mounts: FakeMounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D20: one thread hangs, however many rounds pass; the rest is measured; it counts again once it answers."""
    monkeypatch.setattr(FilesystemCollector, "ANSWER_WITHIN_S", 0.02)
    collector = FilesystemCollector(host_tree.context(), mounts.ask)
    mounts.hang["/nfs"] = threading.Event()
    started = time.monotonic()
    for _ in range(5):
        values = values_of(collector)
        # Only the round in which it began to hang may wait for it.
        monkeypatch.setattr(FilesystemCollector, "ANSWER_WITHIN_S", 20.0)
        assert values["filesystem_size_bytes./"] == 1000
        assert values["filesystem_responding./nfs"] == 0
        assert "filesystem_size_bytes./nfs" not in values
    assert time.monotonic() - started < 60
    assert mounts.asked.count("/nfs") == 1
    assert statvfs_threads() == 1
    assert "does not answer" in host_tree.notices.said["filesystem /nfs"]

    release = mounts.hang.pop("/nfs")
    release.set()
    monkeypatch.setattr(FilesystemCollector, "ANSWER_WITHIN_S", 10.0)
    (errand,) = collector._errands.values()
    assert errand.wait(10)
    mounts.answers["/nfs"] = use(os.makedev(0, 60), size_bytes=6000)
    values = values_of(collector)
    assert values["filesystem_size_bytes./nfs"] == 6000, "the late answer of an old question is not a value"
    assert values["filesystem_responding./nfs"] == 1
    assert "answers again" in host_tree.notices.said["filesystem /nfs"]
    assert statvfs_threads() == 0


def test_many_dead_servers_share_one_wait(
    host_tree: HostTree, mounts: FakeMounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions are asked at once: the last of 20 is not behind the first."""
    monkeypatch.setattr(FilesystemCollector, "ANSWER_WITHIN_S", 0.05)
    release = threading.Event()
    lines = ROOT
    for number in range(20):
        lines += f"{number + 2} 1 0:{60 + number} / /n{number:02d} rw - nfs4 server:/x rw\n"
        mounts.hang[f"/n{number:02d}"] = release
        mounts.answers[f"/n{number:02d}"] = use(os.makedev(0, 60 + number))
    mounts.hang.pop("/n19")
    host_tree.write("proc/self/mountinfo", lines)
    collector = FilesystemCollector(host_tree.context(), mounts.ask)
    values = values_of(collector)
    assert values["filesystem_responding./n00"] == 0
    assert values["filesystem_responding./n19"] == 1
    release.set()
    assert all(errand.wait(10) for errand in collector._errands.values())


def test_a_hanging_mount_that_is_taken_away_and_mounted_again_does_not_pile_up_threads(
    host_tree: HostTree, mounts: FakeMounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FilesystemCollector, "ANSWER_WITHIN_S", 0.01)
    collector = FilesystemCollector(host_tree.context(), mounts.ask)
    release = mounts.hang["/nfs"] = threading.Event()
    for _ in range(4):
        host_tree.write("proc/self/mountinfo", ROOT + NFS)
        values_of(collector)
        host_tree.write("proc/self/mountinfo", ROOT)
        assert "filesystem_responding./nfs" not in values_of(collector)
    assert "not mounted any more" in host_tree.notices.said["filesystem /nfs"]
    assert mounts.asked.count("/nfs") == 1
    (errand,) = collector._errands.values()
    release.set()
    assert errand.wait(10)
    host_tree.write("proc/self/mountinfo", ROOT + " \n")
    values_of(collector)
    assert not collector._errands


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_a_file_system_that_fails_does_not_respond(host_tree: HostTree, mounts: FakeMounts, code: int) -> None:
    mounts.answers["/"] = mounts.answers["/nfs"] = OSError(code, os.strerror(code))
    collector = FilesystemCollector(host_tree.context(), mounts.ask)
    assert values_of(collector) == {"filesystem_responding./": 0, "filesystem_responding./nfs": 0}
    assert os.strerror(code) in host_tree.notices.said["filesystem /"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOENT])
def test_a_path_that_is_not_ours_says_nothing_of_the_file_system(
    host_tree: HostTree, mounts: FakeMounts, code: int
) -> None:
    mounts.answers["/nfs"] = OSError(code, os.strerror(code))
    values = values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert not [key for key in values if key.endswith("/nfs")]
    assert not host_tree.notices.said


def test_another_file_system_found_at_the_path_is_not_taken_for_it(host_tree: HostTree, mounts: FakeMounts) -> None:
    """In a container that does not see the host's mount, the directory below it answers; subvolumes are the exception."""
    host_tree.write("proc/self/mountinfo", ROOT + NFS + "3 1 0:70 / /b rw - btrfs /dev/sdb rw\n")
    mounts.answers["/nfs"] = use(os.makedev(8, 1))
    mounts.answers["/b"] = use(os.makedev(0, 71))
    values = values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert {key.partition(".")[2] for key in values} == {"/", "/b"}


def test_the_number_of_mounts_is_bounded_and_said(
    host_tree: HostTree, mounts: FakeMounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FilesystemCollector, "LARGEST_NUMBER", 3)
    lines = [f"{n} 1 8:{n} / /d{n} rw - xfs /dev/d{n} rw" for n in range(2, 9)]
    host_tree.write("proc/self/mountinfo", ROOT + "\n".join(lines))
    mounts.answers.update({f"/d{n}": use(os.makedev(8, n)) for n in range(2, 9)})
    values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert mounts.asked == ["/", "/d2", "/d3"]
    assert "more than 3" in host_tree.notices.said["filesystem_too_many"]


def test_flags_leave_types_and_directories_out_without_a_restart(host_tree: HostTree, mounts: FakeMounts) -> None:
    context = host_tree.context()
    collector = FilesystemCollector(context, mounts.ask)
    assert "filesystem_size_bytes./nfs" in values_of(collector)
    context.settings.update({"filesystem_exclude_types": "nfs4"})
    assert "filesystem_size_bytes./nfs" not in values_of(collector)
    context.settings.update({"filesystem_exclude_types": "", "filesystem_exclude_mounts": "/nfs/"})
    assert "filesystem_size_bytes./nfs" not in values_of(collector)


def test_a_mount_point_that_is_no_utf8_is_asked_by_its_bytes_and_shown_as_text(
    host_tree: HostTree, mounts: FakeMounts
) -> None:
    host_tree.write("proc/self/mountinfo", ROOT.encode() + b"2 1 8:2 / /\xff\\040x rw - xfs /dev/sdb rw\n")
    mounts.answers["/\udcff x"] = use(os.makedev(8, 2))
    values = values_of(FilesystemCollector(host_tree.context(), mounts.ask))
    assert values["filesystem_size_bytes./\\xff x"] == 1000


def test_the_real_call_agrees_with_statvfs() -> None:
    found, expected = filesystem_use("/"), os.statvfs("/")
    assert found.device == os.stat("/").st_dev
    assert found.size_bytes == expected.f_blocks * expected.f_frsize
    assert found.inodes == expected.f_files
