"""Addresses as libkineto writes them, and who holds one."""

import os
import socket
import stat
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.ipc.address import (
    abstract,
    describe_holder,
    display,
    filesystem,
    is_served,
    open_to_everybody,
    prepare_directory,
    remove_stale,
    socket_inodes,
)
from dynolog.model.errors import DynologError
from fakes.collector_context import HostTree

TABLE = """Num       RefCount Protocol Flags    Type St Inode Path
00000000e670d943: 00000003 00000000 00000000 0001 03  1079
0000000067feb34a: 00000002 00000000 00000000 0002 01  8002 @dynolog@
0000000067feb34b: 00000002 00000000 00000000 0002 01  8003 @dynologx@
0000000067feb34c: 00000002 00000000 00000000 0002 01  8004 /run/dyno one/dynolog
0000000067feb34d: 00000002 00000000 00000000 0002 01  8005 dynolog
"""


def test_the_trailing_nul_is_part_of_an_abstract_name() -> None:
    assert abstract("dynolog") == b"\0dynolog\0"
    assert display(abstract("dynolog")) == "@dynolog"
    assert abstract("x" * 106)
    with pytest.raises(DynologError, match="too long"):
        abstract("x" * 107)


def test_a_path_is_joined_as_libkineto_joins_it() -> None:
    """It compares the text, so a trailing slash of the flag stays."""
    assert filesystem("/run/dyno", "dynolog") == b"/run/dyno/dynolog"
    assert filesystem("/run/dyno/", "dynolog") == b"/run/dyno//dynolog"
    assert display(b"/run/dyno/dynolog") == "/run/dyno/dynolog"
    with pytest.raises(DynologError, match="too long a path"):
        filesystem("/" + "x" * 100, "dynolog")


def test_sockets_are_found_by_their_whole_name() -> None:
    assert socket_inodes(TABLE.encode(), abstract("dynolog")) == {8002}
    assert socket_inodes(TABLE.encode(), b"/run/dyno one/dynolog") == {8004}
    assert socket_inodes(TABLE.encode(), abstract("dyno")) == frozenset()


@given(st.binary(max_size=300))
def test_no_table_breaks_the_search(table: bytes) -> None:
    assert socket_inodes(b"heading\n" + table, abstract("dynolog")) == frozenset()


def test_the_holder_is_named_with_its_command(host_tree: HostTree) -> None:
    host_tree.write("net/unix", TABLE)
    host_tree.write("4242/cmdline", b"dynolog\0--port\x001779\0")
    host_tree.write("17/cmdline", b"other\0")
    for pid, inode in ((4242, 8002), (17, 8003)):
        (host_tree.root / str(pid) / "fd").mkdir()
        (host_tree.root / str(pid) / "fd" / "5").symlink_to(f"socket:[{inode}]")
    assert describe_holder(abstract("dynolog"), str(host_tree.root)) == "pid 4242 (dynolog --port 1779)"


def test_a_holder_out_of_sight_is_said_to_be(host_tree: HostTree) -> None:
    assert "cannot look into" in describe_holder(abstract("dynolog"), str(host_tree.root))
    host_tree.write("net/unix", TABLE)
    host_tree.write("self/nothing", "")
    assert "cannot look into" in describe_holder(abstract("dynolog"), str(host_tree.root))


def test_the_real_proc_names_this_process() -> None:
    name = f"dynolog-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
        held.bind(abstract(name))
        assert describe_holder(abstract(name)).startswith(f"pid {os.getpid()} (")


def test_a_file_that_a_dead_daemon_left_is_removed(socket_dir: str) -> None:
    path = filesystem(socket_dir, "dynolog")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(path)
        assert is_served(path)
        with pytest.raises(DynologError, match=f"held by pid {os.getpid()}"):
            remove_stale(path)
    assert not is_served(path)
    remove_stale(path)
    assert not os.path.lexists(path)
    remove_stale(path)  # nothing there is fine


def test_a_stream_server_at_the_path_is_not_removed(socket_dir: str) -> None:
    path = filesystem(socket_dir, "dynolog")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(path)
        other.listen()
        with pytest.raises(DynologError, match="held by"):
            remove_stale(path)
        assert os.path.lexists(path)


def test_a_file_that_is_no_socket_is_left_alone(socket_dir: str) -> None:
    path = filesystem(socket_dir, "dynolog")
    os.symlink("/etc/hostname", path)
    with pytest.raises(DynologError, match="not a socket"):
        remove_stale(path)
    assert os.path.islink(path)


def test_a_link_that_took_the_place_of_the_socket_is_not_followed(socket_dir: str) -> None:
    path = filesystem(socket_dir, "dynolog")
    target = os.path.join(socket_dir, "target")
    with open(target, "w", encoding="ascii"):
        os.chmod(target, 0o600)
    os.symlink(target, path)
    with pytest.raises(OSError, match="replaced"):
        open_to_everybody(path)
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as private:
        private.bind(path + b"-private")
        os.chmod(path + b"-private", 0o600)
        os.symlink(path + b"-private", path)
        with pytest.raises(OSError, match="replaced"):
            open_to_everybody(path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_directory_is_made_so_that_every_user_can_put_a_socket_in_it(socket_dir: str) -> None:
    made = os.path.join(socket_dir, "a", "b")
    assert prepare_directory(made) == ""
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o1777
    os.chmod(made, 0o755)
    assert "chmod 1777" in prepare_directory(made)
    with open(os.path.join(socket_dir, "file"), "w", encoding="ascii"):
        pass
    with pytest.raises(DynologError, match="cannot be made"):
        prepare_directory(os.path.join(socket_dir, "file", "below"))
