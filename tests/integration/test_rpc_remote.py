"""Another machine's requests: to an address that is not loopback, in a network namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parents[1])
STORY = """
import sys
sys.path.insert(0, {tests!r})
from dynolog.model.errors import RequestError
from dynolog.rpc.client import Target, call
from dynolog.rpc.messages import *
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices

def code(target, request, reply_type):
    try:
        call(target, request, reply_type)
        return "ok"
    except RequestError as error:
        return error.code

fakes = FakeServices()
trace = SetKinetOnDemandRequest(config="")
for flags in ({{}}, {{"rpc_token_file": {token!r}}}, {{"rpc_allow_unauthenticated": True}}):
    with running_daemon(fakes, rpc_bind_address="127.0.0.1,10.99.0.1", **flags) as port:
        far = Target(hostname="10.99.0.1", port=port)
        signed = Target(hostname="10.99.0.1", port=port, token_file={token!r})
        print(
            code(far, GetStatus(), StatusReply), code(far, GetVersion(), VersionReply),
            code(far, GetStatus(verbose=True), StatusReply), code(far, trace, TraceReply),
            code(signed, trace, TraceReply), code(Target(hostname="127.0.0.1", port=port), trace, TraceReply),
        )
print(*[f"{{caller.transport}}:{{caller.uid}}:{{caller.authenticated}}" for _, caller in fakes.traces.requests])
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a network namespace")
def test_only_a_token_or_an_open_door_lets_another_machine_trace(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("correct horse battery staple")
    token.chmod(0o600)
    setup = 'ip link set lo up && ip addr add 10.99.0.1/32 dev lo || exit 77; exec "$@"'
    story = [sys.executable, "-c", STORY.format(tests=TESTS, token=str(token))]
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", setup, "sh", *story], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode == 77:
        pytest.skip("needs ip(8)")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ok", "ok", "unauthenticated", "unauthenticated", "unauthenticated", "ok"]
    assert lines[1].split() == ["ok", "ok", "unauthenticated", "unauthenticated", "ok", "ok"]
    # The last daemon has no token, so it cannot check a signature: it says so rather than ignore it.
    assert lines[2].split() == ["ok", "ok", "ok", "ok", "unauthenticated", "ok"]
    assert lines[3].split() == [
        "loopback:0:False",
        "remote:None:True",
        "loopback:0:False",
        "remote:None:True",
        "loopback:0:False",
    ]
    assert "refused setKinetOnDemandRequest from 10.99.0.1" in done.stderr
