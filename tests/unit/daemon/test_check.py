"""`dynolog --check`: what would end the start of the daemon, without starting anything."""

import fcntl
import importlib.util
import os
import socket
from pathlib import Path

import pytest

from dynolog.daemon import exit_codes
from dynolog.daemon.main import main
from dynolog.exporters.registry import EXPORTERS


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that opens a socket fails."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("the check opened a socket")

    monkeypatch.setattr(socket.socket, "__init__", refuse)


def checked(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str]:
    """Exit code, and all that was said."""
    code = main(["--check", "--flagfile=/dev/null", *flags])
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--use_statsd", "--statsd_address=foo"), "--statsd_address=foo: must be HOST:PORT"),
        (("--use_statsd", "--statsd_address=unix://relative"), "the path must be absolute"),
        (("--use_statsd", "--statsd_address=unix:///" + "x" * 108), "a socket path has at most 107 bytes"),
        (("--use_udsrelay", "--udsrelay_socket_path=/" + "x" * 108), "a socket path has at most 107 bytes"),
        (("--use_otlp", "--otlp_endpoint=ftp://x"), "--otlp_endpoint is not a URL"),
        (("--use_otlp", "--otlp_ssl_ca_cert_path=/nonexistent"), "/nonexistent cannot be read"),
        (("--use_otlp", "--otlp_protocol=grpc", "--otlp_ssl_client_key_path=/nonexistent"), "needs its key"),
        (("--use_otel", "--otel_endpoint=http://[::1"), "--otel_endpoint is not a URL"),
        (("--use_remote_write", "--remote_write_url=foo"), "--remote_write_url is not a URL"),
        (("--use_remote_write", "--remote_write_headers=novalue"), "--remote_write_headers: entry 1"),
        (("--use_ODS", "--access_token_file=/nonexistent"), "--access_token_file=/nonexistent"),
        (("--use_scuba", "--scuba_url=foo"), "--scuba_url is not a URL"),
        (("--use_file",), "--use_file needs a file"),
        (("--use_file", "--file_path=/nonexistent/x"), "the directory /nonexistent is not there"),
        (("--use_prometheus", "--prometheus_address=foo"), "--prometheus_address=foo is not an IP address"),
        (("--use_fbrelay", "--spool_dir=/proc/version/spool"), "/proc/version is no directory"),
        (("--exporters_config=/nonexistent",), "/nonexistent"),
    ],
)
def test_what_an_exporter_would_refuse_is_a_bad_flag(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], sentence: str
) -> None:
    code, said = checked(capsys, *flags)
    assert code == exit_codes.BAD_FLAG
    assert sentence in said
    assert "the flags are fine" not in said


def test_every_exporter_passes_with_flags_that_can_be_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No socket is opened, and nothing is made on disk."""
    flags = [f"--{spec.flags[0].name}" for spec in EXPORTERS]
    code, said = checked(capsys, *flags, f"--file_path={tmp_path}/x.jsonl", f"--spool_dir={tmp_path}/a/spool")
    assert (code, os.listdir(tmp_path)) == (exit_codes.STOPPED, [])
    assert said.endswith("the flags are fine\n")


def test_what_an_exporter_remarks_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = checked(capsys, "--use_ODS", "--access_token=sekret-token", "--ods_url=http://localhost/x")
    assert code == exit_codes.STOPPED
    assert "travels readable" in said
    assert "sekret-token" not in said


@pytest.mark.parametrize(
    ("flags", "library", "extra"),
    [
        (("--use_remote_write",), "cramjam", "dynolog[remote-write]"),
        (("--use_otlp", "--otlp_protocol=grpc"), "grpc", "dynolog[otlp-grpc]"),
    ],
)
def test_a_missing_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    library: str,
    extra: str,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    code, said = checked(capsys, *flags)
    assert code == exit_codes.BAD_FLAG
    assert extra in said


def test_urllib3_is_one_of_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    code, said = checked(capsys, "--use_scuba")
    assert code == exit_codes.BAD_FLAG
    assert "dynolog[http]" in said


def test_a_spool_that_a_daemon_holds_is_left_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "fbrelay").mkdir()
    with (tmp_path / "fbrelay" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert checked(capsys, "--use_fbrelay", f"--spool_dir={tmp_path}")[0] == exit_codes.STOPPED


def test_rules_that_make_two_metrics_one_are_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[prometheus.rename]\nrx_bytes = "tx_bytes"\n')
    code, said = checked(capsys, "--use_prometheus", f"--exporters_config={rules}")
    assert code == exit_codes.BAD_FLAG
    assert "tx_bytes" in said


def test_the_address_of_a_tpu_plugin_is_looked_at_when_tpus_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    address = "--tpu_device_plugin_url=nonsense"
    assert checked(capsys, address)[0] == 0
    code, said = checked(capsys, "--enable_tpu_monitor", address)
    assert code == exit_codes.BAD_FLAG
    assert "--tpu_device_plugin_url is not a URL that can be used" in said
