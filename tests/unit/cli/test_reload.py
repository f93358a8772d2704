"""dyno reload, on one daemon and on many."""

import json
from collections.abc import Iterator

import msgspec
import pytest

from dynolog.cli.main import main
from dynolog.model.reload import ReloadReport
from fakes.framed_server import framed_server, original_daemon
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices


class FakeReload:
    def __init__(self) -> None:
        self.report = ReloadReport()

    async def reload(self) -> ReloadReport:
        return self.report


@pytest.fixture
def reloads() -> FakeReload:
    return FakeReload()


@pytest.fixture
def port(reloads: FakeReload) -> Iterator[int]:
    with running_daemon(msgspec.structs.replace(FakeServices().services, reload=reloads)) as port:
        yield port


def test_what_changed_what_waits_and_what_failed(
    port: int, reloads: FakeReload, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", str(port), "reload"]) == 0
    assert capsys.readouterr().out == "nothing has changed\n"
    reloads.report = ReloadReport(
        changed=("--a=1",), waiting=("--port",), errors=("x: line 2\x1b[2J",), warnings=("careful",)
    )
    assert main(["--port", str(port), "reload"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "error: x: line 2\\x1b[2J",
        "now in effect: --a=1",
        "at the next start: --port",
        "warning: careful",
    ]
    assert main(["--port", str(port), "--json", "reload"]) == 1
    assert json.loads(capsys.readouterr().out)["waiting"] == ["--port"]


def test_many_hosts_with_one_outcome_share_a_paragraph(
    port: int, reloads: FakeReload, capsys: pytest.CaptureFixture[str]
) -> None:
    reloads.report = ReloadReport(changed=("--a=1",))
    with framed_server(original_daemon([])) as old:
        code = main(["reload", "--hosts", f"127.0.0.1:{port},localhost:{port},127.0.0.1:{old.port}"])
    printed = capsys.readouterr()
    assert code == 1
    assert printed.out.splitlines() == [f"127.0.0.1:{port}, localhost:", "    now in effect: --a=1"]
    assert "an older dynolog, which reloads on SIGHUP only" in printed.err


def test_a_server_without_a_daemon_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with running_daemon(FakeServices()) as port:
        assert main(["--port", str(port), "reload"]) == 1
    assert "nothing to reload" in capsys.readouterr().err


def test_the_original_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with framed_server(original_daemon([])) as server:
        assert main(["--port", str(server.port), "reload"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "the original C++ dynolog, which reads its flags at its start only: restart it" in said.err
