"""Named unix sockets of a namespace, and who listens on a TCP port."""

import os
import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.tcp_listeners import holders, listener_inodes, parse_listeners
from dynolog.sources.unix_sockets import NamedSocket, parse_unix_sockets

UNIX = b"""Num       RefCount Protocol Flags    Type St Inode Path
00000000e670d943: 00000003 00000000 00000000 0001 03  1079
00000000e670d944: 00000002 00000000 00000000 0002 01  2001 @dynolog@
00000000e670d945: 00000002 00000000 00000000 0002 01  2002 @dynoconfigclient1b9d@
00000000e670d946: 00000002 00000000 00000000 0002 01  2003 /run/dy no/dynoconfigclient77
00000000e670d947: 00000002 00000000 00010000 0001 01  2004 /run/dbus/socket
"""
TCP = b"""  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:06F2 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 616 1 000000005dd70532 100 0 0 10 0
   1: 0100007F:06F2 0100007F:C4A6 01 00000000:00000000 03:000013B3 00000000     0        0 617 3 000000003bbfd157
   2: 0100007F:06F3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 618 1 000000005dd70532 100 0 0 10 0
   3: broken
"""


def test_names_are_shown_as_a_person_types_them() -> None:
    assert list(parse_unix_sockets(UNIX)) == [
        NamedSocket(2001, "@dynolog"),
        NamedSocket(2002, "@dynoconfigclient1b9d"),
        NamedSocket(2003, "/run/dy no/dynoconfigclient77"),
        NamedSocket(2004, "/run/dbus/socket"),
    ]


def test_a_trainers_socket_is_known_by_its_name_in_either_form() -> None:
    assert [one.inode for one in parse_unix_sockets(UNIX) if one.is_of_trainer] == [2002, 2003]


def test_only_listening_sockets_of_the_port_count() -> None:
    assert parse_listeners(TCP, 1778) == {616}
    assert parse_listeners(TCP, 1779) == {618}
    assert parse_listeners(TCP, 80) == frozenset()


@given(st.binary())
def test_rubbish_has_no_sockets_and_raises_nothing(table: bytes) -> None:
    list(parse_unix_sockets(table))
    parse_listeners(b"header\n" + table, 1778)


def test_a_real_listener_and_a_real_socket_are_found() -> None:
    name = f"\0dynoconfigclient-test-{os.getpid()}\0"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(name)
        inodes = listener_inodes(HostFiles(), server.getsockname()[1])
        assert inodes == {os.fstat(server.fileno()).st_ino}
        assert holders(HostFiles(), inodes) == [os.getpid()]
        mine = [
            one
            for one in parse_unix_sockets(HostFiles().read("proc/self/net/unix"))
            if one.inode == os.fstat(datagrams.fileno()).st_ino
        ]
        assert [one.name for one in mine] == ["@" + name.strip("\0")]


def test_without_a_table_nobody_listens(tmp_path: Path) -> None:
    assert listener_inodes(HostFiles(str(tmp_path)), 1778) == frozenset()
    assert holders(HostFiles(str(tmp_path)), frozenset()) == []
