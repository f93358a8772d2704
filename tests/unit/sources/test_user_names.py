"""Names of users by /etc/passwd alone."""

import pwd
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dynolog.sources.host_files import HostFiles
from dynolog.sources.user_names import UserNames, parse_passwd


def test_names_are_those_of_the_hosts_file_and_follow_its_changes(tmp_path: Path) -> None:
    names = UserNames(HostFiles(str(tmp_path)))
    assert names.name(1000) == "1000"
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc/passwd"
    file.write_text(
        "root:x:0:0::/root:/bin/sh\n# a comment\nada:x:1000:1000:Ada:/home/ada:/bin/sh\nada2:x:1000:1:::\n+::::::\n"
    )
    assert [names.name(uid) for uid in (0, 1000, 1001)] == ["root", "ada", "1001"]
    file.write_text("grace:x:1000:1000::/:/bin/sh\n")
    assert [names.name(uid) for uid in (0, 1000)] == ["0", "grace"]
    file.unlink()
    assert names.name(1000) == "1000"


def test_this_machines_file_is_read_as_the_c_library_reads_it() -> None:
    names = UserNames(HostFiles())
    for entry in pwd.getpwall():
        if parse_passwd(Path("/etc/passwd").read_bytes()).get(entry.pw_uid):
            assert names.name(entry.pw_uid) == pwd.getpwuid(entry.pw_uid).pw_name


@given(st.binary())
def test_no_content_is_an_error(data: bytes) -> None:
    parse_passwd(data)
