"""`dynolog --check` of addresses to listen on: what this machine does not have is said, with what it has."""

from pathlib import Path

import pytest

from dynolog.daemon.flags import declared_flags
from dynolog.daemon.listen_check import check_addresses
from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.sources.host_files import HostFiles

TRIE = "|-- 10.0.0.17\n /32 host LOCAL\n|-- 127.0.0.1\n /32 host LOCAL\n"
TABLE = """fd000000000000000000000000000017 02 40 00 80 eth0
fe800000000000000000000000000001 02 40 20 80 eth0
00000000000000000000000000000001 01 80 10 80 lo
"""
HAS = "of this machine now, so the daemon would not start here; it has 10.0.0.17, 127.0.0.1, ::1, fd00::17, fe80::1"


def check(directory: Path, table: str = TABLE, **given: str | bool) -> tuple[str, ...]:
    (directory / "proc/net").mkdir(parents=True, exist_ok=True)
    (directory / "proc/net/fib_trie").write_text(TRIE)
    (directory / "proc/net/if_inet6").write_text(table)
    return check_addresses(Settings(declared_flags(), given), HostFiles(str(directory)))


@pytest.mark.parametrize(
    "addresses", ["10.0.0.17", "::", "0.0.0.0", "*", "localhost", "127.9.9.9", "[fd00::17]", "fe80::1%eth0", "FD00:0::17"]
)  # fmt: skip
def test_what_can_be_listened_on_is_not_worth_a_word(tmp_path: Path, addresses: str) -> None:
    assert check(tmp_path, rpc_bind_address=addresses) == ()


def test_each_flag_is_named_with_what_there_is(tmp_path: Path) -> None:
    said = check(
        tmp_path, rpc_bind_address="10.0.0.18,127.0.0.1,fd00::9", use_prometheus=True, prometheus_address="10.9.9.9"
    )
    assert said == (
        f"--rpc_bind_address: 10.0.0.18, fd00::9 are no addresses {HAS}",
        f"--prometheus_address: 10.9.9.9 is no address {HAS}",
    )


def test_an_exporter_that_is_off_listens_nowhere(tmp_path: Path) -> None:
    assert check(tmp_path, prometheus_address="10.9.9.9") == ()


def test_with_ipv6_off_its_addresses_are_left_out_as_at_the_start(tmp_path: Path) -> None:
    assert check(tmp_path, "", rpc_bind_address="::1,127.0.0.1") == ()


def test_what_is_no_address_is_a_bad_flag(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="--rpc_bind_address=gpu17 is not an IP address"):
        check(tmp_path, rpc_bind_address="gpu17")


def test_where_the_kernel_shows_no_addresses_nothing_is_said(tmp_path: Path) -> None:
    given = Settings(declared_flags(), {"rpc_bind_address": "10.9.9.9"})
    assert check_addresses(given, HostFiles(str(tmp_path))) == ()
