"""Parsing of mountinfo, and the choice of what is measured."""

import os

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.mount_choice import Choice, choose_mounts
from dynolog.sources.mountinfo import Mount, MountReader, parse
from fakes.collector_context import HostTree

ROOT = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"


def choices(*lines: str, kinds: tuple[str, ...] = (), points: tuple[str, ...] = ()) -> dict[str, Choice]:
    chosen = choose_mounts(parse("\n".join(lines).encode()), frozenset(kinds), points)
    return {choice.mount.point: choice for choice in chosen}


def test_optional_fields_vary_in_number() -> None:
    lines = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=ro\n24 1 0:6 / /dev rw - devtmpfs none rw"
    assert parse(lines) == [
        Mount(36, 35, os.makedev(98, 0), "/mnt2", "ext3", "/dev/root"),
        Mount(24, 1, os.makedev(0, 6), "/dev", "devtmpfs", "none"),
    ]


def test_escapes_in_mount_points() -> None:
    r"""Space, tab, newline and backslash, and a name that is no UTF-8."""
    line = rb"5 1 0:9 / /my\040disk\011a\012b\134c rw - xfs /dev/\043 rw"
    assert parse(line)[0].point == "/my disk\ta\nb\\c"
    assert parse(line)[0].source == "/dev/#"
    assert os.fsencode(parse(b"5 1 0:9 / /\xff rw - xfs x rw")[0].point) == b"/\xff"


def test_a_malformed_line_costs_only_itself() -> None:
    bad = ["", "1 2", "x 1 8:1 / /a rw - ext4 d rw", "9 1 8 / /a rw - ext4 d rw", "9 1 8:1 / /a rw ext4 d rw"]
    bad += ["9 1 8:1 / a rw - ext4 d rw", "9 1 8:1 / /a rw -", "9 1 99999999999:1 / /a rw - ext4 d rw"]
    assert [mount.point for mount in parse("\n".join([*bad, ROOT]).encode())] == ["/"]


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    choose_mounts(parse(data))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 5),
            st.integers(0, 3),
            st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "//"]),
            st.sampled_from(["ext4", "nfs", "proc"]),
        ),
        max_size=8,
    )
)
def test_no_tangle_of_mounts_confuses_the_choice(tangle: list[tuple[int, int, int, str, str]]) -> None:
    """Whatever the parents say, it ends, and each file system is chosen at most once."""
    lines = [f"{number} {parent} 8:{dev} / {point} rw - {kind} d rw" for number, parent, dev, point, kind in tangle]
    chosen = choose_mounts(parse("\n".join(lines).encode()))
    assert len({choice.mount.device for choice in chosen}) == len(chosen)
    assert all(choice.mount.kind != "proc" for choice in chosen)


def test_file_systems_of_the_kernel_are_left_out() -> None:
    chosen = choices(
        ROOT,
        "2 1 0:22 / /proc rw - proc proc rw",
        "3 2 0:23 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw",
        "4 1 0:24 / /net rw - autofs auto.net rw",
        "5 1 0:25 / /sys rw - sysfs sysfs rw",
        "6 5 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
        "7 1 0:27 / /dev/shm rw - tmpfs tmpfs rw",
        "8 1 0:28 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw",
    )
    assert list(chosen) == ["/", "/dev/shm"]


def test_types_and_directories_left_out_by_flag() -> None:
    chosen = choices(
        ROOT,
        "2 1 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro",
        "3 1 0:40 / /run/user/1000 rw - tmpfs tmpfs rw",
        "4 1 0:41 / /run/users rw - tmpfs tmpfs rw",
        "5 1 0:42 / /run/user rw - tmpfs tmpfs rw",
        kinds=("squashfs",),
        points=("/run/user",),
    )
    assert list(chosen) == ["/", "/run/users"]


def test_a_file_system_mounted_in_many_places_is_measured_once_at_the_shortest() -> None:
    """Bind mounts and btrfs subvolumes share the device number."""
    chosen = choices(
        ROOT,
        "2 1 8:1 /srv /export/srv rw - ext4 /dev/sda1 rw",
        "3 1 0:50 /home /home rw - btrfs /dev/sdb rw",
        "4 1 0:50 /var /b rw - btrfs /dev/sdb rw",
    )
    assert list(chosen) == ["/", "/b"]


def test_of_mounts_at_one_point_the_last_counts() -> None:
    chosen = choices(ROOT, "2 1 8:2 / /data rw - xfs /dev/sdb rw", "3 2 8:3 / /data rw - xfs /dev/sdc rw")
    assert [choice.mount.source for choice in chosen.values()] == ["/dev/sda1", "/dev/sdc"]


def test_a_mount_hidden_by_a_later_one_above_it_is_left_out() -> None:
    """Otherwise the numbers of the one above would go by its name."""
    hidden = choices(ROOT, "2 1 8:2 / /a/b rw - xfs /dev/sdb rw", "3 1 8:3 / /a rw - xfs /dev/sdc rw")
    assert list(hidden) == ["/", "/a"]
    seen = choices(ROOT, "3 1 8:3 / /a rw - xfs /dev/sdc rw", "2 3 8:2 / /a/b rw - xfs /dev/sdb rw")
    assert list(seen) == ["/", "/a", "/a/b"]


def test_the_order_of_lines_does_not_hide_anything() -> None:
    """After an initial ram disk, /dev stands before the root it lies on."""
    assert list(choices("2 1 0:24 / /dev/shm rw - tmpfs tmpfs rw", ROOT)) == ["/", "/dev/shm"]


def test_what_may_hang() -> None:
    """Network and FUSE types, types that are not known, and anything on a path through those."""
    chosen = choices(
        ROOT,
        "2 1 0:60 / /nfs rw - nfs4 server:/x rw",
        "3 2 8:2 / /nfs/local rw - xfs /dev/sdb rw",
        "4 1 0:61 / /f rw - fuse.sshfs host: rw",
        "5 1 0:62 / /l rw - lustre mgs:/l rw",
        "6 1 0:63 / /newfs rw - inventedfs x rw",
        "7 1 8:3 / /nfsx rw - xfs /dev/sdc rw",
    )
    assert {point: choice.may_hang for point, choice in chosen.items()} == {
        "/": False,
        "/nfs": True,
        "/nfs/local": True,
        "/f": True,
        "/l": True,
        "/newfs": True,
        "/nfsx": False,
    }


def test_below_another_root_the_mounts_are_those_of_process_1(host_tree: HostTree) -> None:
    host_tree.write("proc/self/mountinfo", ROOT.replace("sda1", "mine"))
    host = HostFiles(str(host_tree.root))
    assert MountReader(host).read()[0].source == "/dev/mine"
    host_tree.write("proc/1/mountinfo", ROOT)
    reader = MountReader(host)
    assert reader.read()[0].source == "/dev/sda1"
    assert reader.read() is reader.read()
