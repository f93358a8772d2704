"""What a process may do, by /proc/PID/status, limits and uid_map."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.process_privileges import (
    CAPABILITIES,
    Privileges,
    is_nested,
    parse_open_files_limit,
    parse_status,
    read_privileges,
)

STATUS = b"""Name:\tpython3
Umask:\t0022
State:\tS (sleeping)
Uid:\t1000\t1001\t1000\t1000
Gid:\t100\t101\t100\t100
Groups:\t4 27 44\x20
NSpid:\t77
CapInh:\t0000000000000000
CapPrm:\t0000004000080000
CapEff:\t0000004000080000
NoNewPrivs:\t1
Seccomp:\t2
Seccomp_filters:\t1
"""


def test_the_effective_ids_and_capabilities_are_read() -> None:
    found = parse_status(STATUS)
    assert (found.uid, found.gid, found.groups) == (1001, 101, (4, 27, 44))
    assert (found.seccomp, found.no_new_privileges) == (2, True)
    assert [name for name in CAPABILITIES if found.has(name)] == ["CAP_SYS_PTRACE", "CAP_PERFMON"]


def test_a_kernel_without_the_newer_lines_has_the_defaults() -> None:
    found = parse_status(b"Uid:\t0\t0\t0\t0\n")
    assert found == Privileges(uid=0)


@pytest.mark.parametrize("text", [b"", b"Name:\tx\n", b"Uid:\t5\n", b"Uid:\ta b c d\n"])
def test_other_content_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not the content"):
        parse_status(text)


@given(st.binary())
def test_no_line_of_rubbish_breaks_the_rest(rubbish: bytes) -> None:
    assert parse_status(b"Uid:\t5\t6\t5\t5\n" + b"X" + rubbish.replace(b"\n", b" ") + b"\nSeccomp:\t2\n").uid == 6


@given(st.binary())
def test_limits_and_maps_never_raise(text: bytes) -> None:
    limit = parse_open_files_limit(text)
    assert limit is None or limit >= 0
    assert is_nested(text) in (None, True, False)


def test_the_hard_limit_counts() -> None:
    line = b"Limit                     Soft Limit           Hard Limit           Units\n"
    assert (
        parse_open_files_limit(line + b"Max open files            1024                 524288               files \n")
        == 524288
    )
    assert (
        parse_open_files_limit(line + b"Max open files            unlimited            unlimited            files \n")
        is None
    )


def test_a_map_of_all_numbers_to_themselves_is_the_first_namespace() -> None:
    assert is_nested(b"         0          0 4294967295\n") is False
    assert is_nested(b"         0     100000      65536\n") is True
    assert is_nested(b"         0       1000          1\n         1     100000      65536\n") is True
    assert is_nested(b"") is None


def info(mode: int, uid: int, gid: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("who", "mode", "may"),
    [
        (Privileges(uid=5, gid=50), 0o600, True),
        (Privileges(uid=5, gid=50), 0o066, False),  # the owner's bits count, not the better ones of others
        (Privileges(uid=6, gid=50), 0o060, True),
        (Privileges(uid=6, gid=1, groups=(50,)), 0o060, True),
        (Privileges(uid=6, gid=50), 0o606, False),
        (Privileges(uid=6, gid=1), 0o006, True),
        (Privileges(uid=6, gid=1), 0o660, False),
        (Privileges(uid=6, gid=1, capabilities=1 << CAPABILITIES["CAP_DAC_OVERRIDE"]), 0o000, True),
    ],
)
def test_a_mode_is_judged_as_the_kernel_does(who: Privileges, mode: int, may: bool) -> None:
    assert who.may(info(mode, 5, 50), os.R_OK | os.W_OK) is may


def test_this_very_process_is_read_right() -> None:
    found = read_privileges(HostFiles(), "self")
    assert (found.uid, found.gid) == (os.geteuid(), os.getegid())
    assert set(found.groups) == set(os.getgroups())
    with pytest.raises(FileNotFoundError):
        read_privileges(HostFiles(), 2**22 + 7)
