"""Which files the flags of TLS name."""

from pathlib import Path

import pytest

from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.rpc.flags import FLAGS
from dynolog.rpc.tls_files import TlsFiles, tls_files_of


def files_of(**flags: str) -> TlsFiles | None:
    return tls_files_of(Settings(FLAGS, flags))


def test_without_flags_there_is_no_tls() -> None:
    assert files_of() is None


def test_the_flags_name_the_files() -> None:
    assert files_of(rpc_tls_cert="c", rpc_tls_key="k") == TlsFiles(certificate="c", key="k")
    files = files_of(rpc_tls_cert="c", rpc_tls_key="k", rpc_tls_ca="a", rpc_tls_crl="r")
    assert files == TlsFiles(certificate="c", key="k", authority="a", revoked="r")
    assert files is not None
    assert files.paths == ("c", "k", "a", "r")


def test_the_originals_directory_stands_for_them_and_a_list_is_taken_when_it_is_there(tmp_path: Path) -> None:
    directory = str(tmp_path)
    expected = TlsFiles(
        certificate=f"{directory}/server.crt", key=f"{directory}/server.key", authority=f"{directory}/ca.crt"
    )
    assert files_of(certs_dir=directory) == expected
    (tmp_path / "ca.crl").touch()
    with_list = files_of(certs_dir=directory)
    assert with_list is not None
    assert with_list.revoked == f"{directory}/ca.crl"


def test_the_originals_word_for_no_tls() -> None:
    assert files_of(certs_dir="NO_CERTS") is None


def test_a_flag_beside_the_directory_wins() -> None:
    files = files_of(certs_dir="/d", rpc_tls_cert="c")
    assert files == TlsFiles(certificate="c", key="/d/server.key", authority="/d/ca.crt")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"rpc_tls_cert": "c"}, "--rpc_tls_cert needs --rpc_tls_key"),
        ({"rpc_tls_key": "k"}, "--rpc_tls_key needs --rpc_tls_cert"),
        ({"rpc_tls_ca": "a"}, "--rpc_tls_ca needs the daemon's own certificate"),
        ({"rpc_tls_crl": "r"}, "--rpc_tls_crl needs the daemon's own certificate"),
        ({"rpc_tls_cert": "c", "rpc_tls_key": "k", "rpc_tls_crl": "r"}, "only --rpc_tls_ca asks for"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(flags: dict[str, str], sentence: str) -> None:
    with pytest.raises(FlagError, match=sentence):
        files_of(**flags)
