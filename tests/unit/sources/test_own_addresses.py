"""The addresses of this machine, from recorded tables and from this machine's own."""

import socket
from pathlib import Path

import pytest

from dynolog.sources.host_files import HostFiles
from dynolog.sources.own_addresses import parse_fib_trie, parse_if_inet6, read_addresses

TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
        |-- 10.0.0.0
           /24 link UNICAST
        |-- 10.0.0.17
           /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
Local:
  +-- 0.0.0.0/0 3 0 5
        |-- 10.0.0.17
           /32 host LOCAL
"""
TABLE = """fd000000000000000000000000000017 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
"""


def test_recorded_tables() -> None:
    assert parse_fib_trie(TRIE) == ("10.0.0.17", "127.0.0.1")
    assert parse_if_inet6(TABLE) == ("::1", "fd00::17")


@pytest.mark.parametrize("text", ["", "\n", "|-- 999.1.1.1\n /32 host LOCAL\n", "zz 1\n", "0 1 2", "\0"])
def test_what_is_no_address_is_none(text: str) -> None:
    assert parse_fib_trie(text) == ()
    assert parse_if_inet6(text) == ()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert read_addresses(HostFiles(str(tmp_path))) is None
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/fib_trie").write_text(TRIE)
    assert read_addresses(HostFiles(str(tmp_path))) == ("10.0.0.17", "127.0.0.1")


def test_every_address_of_this_machine_can_be_bound_to() -> None:
    addresses = read_addresses(HostFiles("/"))
    assert addresses is not None
    assert "127.0.0.1" in addresses
    for address in addresses:
        if address.startswith("fe80"):  # it takes an interface to bind to
            continue
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
            sock.bind((address, 0))
