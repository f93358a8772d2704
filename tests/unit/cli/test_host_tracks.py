"""From the daemon's samples to the traces of its host, and what is said when there are none."""

import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from dynolog.analysis.editing.host_tracks import original_sha256_of
from dynolog.analysis.reading.trace_folder import scan
from dynolog.cli.fleet.fetch_all import fetch_group
from dynolog.cli.gputrace.fetch import fetch_all
from dynolog.cli.gputrace.follow_up import FollowOptions
from dynolog.cli.gputrace.host_tracks import HostTracks, NoSamples, samples_of
from dynolog.cli.main import main
from dynolog.fleet.fan_out import FanOutOptions
from dynolog.fleet.manifest import HostEntry, Manifest, ManifestFile, ProcessEntry
from dynolog.model.capture import CaptureState, TraceFile, Transition
from dynolog.model.host_samples import SamplePage
from dynolog.rpc.client import Target
from fakes.framed_server import frame, framed_server
from fakes.host_samples import BASE_NS, MS, block
from fakes.rpc_daemon import running_daemon
from fakes.services import FakeServices, capture
from fakes.traces import operation, trace

BEGIN_NS = BASE_NS + 1_000_000
TRACE = trace([operation("a", 1000.0, 300_000.0)], {"baseTimeNanoseconds": BASE_NS})
FILE = TraceFile(
    size_bytes=len(TRACE),
    sha256=hashlib.sha256(TRACE).hexdigest(),
    events=1,
    duration_us=300_000.0,
    begin_wall_ns=BEGIN_NS,
)


def written(pid: int) -> dict[str, object]:
    return {
        "id": f"r1.{pid}",
        "pid": pid,
        "state": CaptureState.WRITTEN,
        "path": f"/tmp/t_{pid}.json",
        "file": FILE,
        "history": (
            Transition(CaptureState.PENDING, BEGIN_NS - 5000 * MS, ""),
            Transition(CaptureState.WRITTEN, BEGIN_NS + 1000 * MS, ""),
        ),
    }


def services(tmp_path: Path, *pids: int) -> FakeServices:
    """A daemon that has these written captures, and samples of their time in two pages."""
    fakes = FakeServices()
    captures = tuple(capture(**written(pid)) for pid in pids)  # type: ignore[arg-type] # by the fake's own names
    fakes.traces.publish(*captures)
    for one in captures:
        path = tmp_path / f"{one.pid}.json"
        path.write_bytes(TRACE)
        fakes.traces.files[one.id] = str(path)
    first, second = (block(BEGIN_NS + at * MS, {"cpu_user_pct": [5.0]}) for at in (0, 100))
    fakes.host.pages = {
        BEGIN_NS - 5000 * MS: SamplePage(blocks=(first,), next_wall_ns=BEGIN_NS + 100 * MS),
        BEGIN_NS + 100 * MS: SamplePage(blocks=(second,)),
    }
    return fakes


def counters(path: Path) -> int:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return sum(event["ph"] == "C" for event in json.loads(text)["traceEvents"])


@pytest.mark.parametrize("compress", [False, True])
def test_eight_ranks_of_a_host_share_samples_that_are_asked_for_once(tmp_path: Path, compress: bool) -> None:
    fakes = services(tmp_path, *range(1, 9))
    captures = fakes.traces.progress("r1")[0].captures
    with running_daemon(fakes) as port:
        target = Target(hostname="127.0.0.1", port=port)
        fetched = fetch_all(target, captures, str(tmp_path / "got"), compress=compress, host=HostTracks())
        again = fetch_all(target, captures, str(tmp_path / "got"), compress=compress, host=HostTracks())
    assert len(fetched) == 8
    for one in fetched:
        path = Path(one.path)
        assert (one.error, one.host_tracks, one.host_note) == ("", 1, "")
        assert counters(path) == 2
        assert one.sha256 == FILE.sha256 == original_sha256_of(one.path)
        assert one.fetched_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(list((tmp_path / "got").iterdir())) == 8, "nothing is left beside them"
    # Both pages once, within the time of the request.
    assert [begin_ns for begin_ns, _ in fakes.host.asked] == [BEGIN_NS - 5000 * MS, BEGIN_NS + 100 * MS]
    assert {end_ns for _, end_ns in fakes.host.asked} == {BEGIN_NS + 1000 * MS}
    assert all(one.already_here for one in again)


@pytest.mark.parametrize("with_host", [False, True])
@pytest.mark.parametrize("compress", [False, True])
def test_ranks_of_a_host_are_told_apart_in_what_is_fetched(tmp_path: Path, compress: bool, with_host: bool) -> None:
    """The daemon knows them; what is added goes together with the tracks, and is known again as added."""
    fakes = services(tmp_path, 1, 2)
    fakes.traces.publish(*(capture(**written(pid), rank=pid - 1, world_size=2) for pid in (1, 2)))  # type: ignore[arg-type] # by its own names
    captures = fakes.traces.progress("r1")[0].captures
    got = tmp_path / "got"
    with running_daemon(fakes) as port:
        target = Target(hostname="127.0.0.1", port=port)
        host = HostTracks() if with_host else None
        fetched = fetch_all(target, captures, str(got), compress=compress, host=host)
        once = {path.name: path.read_bytes() for path in got.iterdir()}
        again = fetch_all(target, captures, str(got), compress=compress, host=host)
    assert {path.name: path.read_bytes() for path in got.iterdir()} == once
    assert len(once) == 2, "nothing is left beside them"
    assert [one.already_here for one in again] == [True, True]
    for rank, one in enumerate(fetched):
        data = once[Path(one.path).name]
        assert (one.error, one.distributed_info_added, one.host_tracks) == ("", True, int(with_host))
        assert (one.sha256, one.fetched_sha256) == (FILE.sha256, hashlib.sha256(data).hexdigest())
        text = gzip.decompress(data) if compress else data
        assert json.loads(text)["distributedInfo"] == {"rank": rank, "world_size": 2}
        if not with_host:
            head = b'\n"distributedInfo": {"rank":%d,"world_size":2},' % rank
            assert text == TRACE.replace(b"{", b"{" + head, 1)
    assert [head.rank for head in scan([str(got)]).traces] == [0, 1]


def test_a_trace_that_says_its_rank_and_a_snapshot_are_fetched_as_they_are(tmp_path: Path) -> None:
    says = TRACE.replace(b"{", b'{"distributedInfo": {"rank": 7}, ', 1)
    facts = msgspec.structs.replace(FILE, sha256=hashlib.sha256(says).hexdigest(), size_bytes=len(says))
    fakes = services(tmp_path, 1)
    (tmp_path / "1.json").write_bytes(says)
    for file in (facts, msgspec.structs.replace(facts, memory_snapshot=True)):
        one = capture(**(written(1) | {"file": file}), rank=0, world_size=2)  # type: ignore[arg-type] # by the fake's own names
        got = tmp_path / str(file.memory_snapshot)
        with running_daemon(fakes) as port:
            target = Target(hostname="127.0.0.1", port=port)
            (fetched,) = fetch_all(target, [one], str(got), compress=False)
        assert (fetched.error, fetched.distributed_info_added, fetched.fetched_sha256) == ("", False, "")
        assert Path(fetched.path).read_bytes() == says


def test_without_samples_the_trace_is_as_it_was_written_and_that_is_said(tmp_path: Path) -> None:
    fakes = services(tmp_path, 1)
    fakes.host.pages = {}
    with running_daemon(fakes) as port:
        target = Target(hostname="127.0.0.1", port=port)
        captures = fakes.traces.progress("r1")[0].captures
        (fetched,) = fetch_all(target, captures, str(tmp_path / "got"), compress=False, host=HostTracks())
    assert fetched.host_note == "the daemon has no samples of that time: it takes them when asked with --with-host"
    assert Path(fetched.path).read_bytes() == TRACE
    assert not fetched.fetched_sha256


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "original"),
        (frame({"status": "failed", "code": "unknown_function", "error": "there is no such function"}), "older"),
    ],
)
def test_a_daemon_that_cannot_sample_is_named(answer: bytes | None, words: str) -> None:
    """The original closes without a word; an older one of ours says that it does not know the function."""
    with framed_server(lambda _request: answer) as server, pytest.raises(NoSamples, match=words):
        samples_of(Target(hostname="127.0.0.1", port=server.port), "r1")


def test_the_command_shows_samples_and_adds_them_to_a_file_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes = services(tmp_path, 1)
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    mine.write_bytes(TRACE)
    other.write_bytes(TRACE + b"\n")
    with running_daemon(fakes) as port:
        at = ["--hostname", "127.0.0.1", "--port", str(port), "trace", "host", "r1"]
        assert main(at) == 0
        assert "cpu_user_pct" in capsys.readouterr().out
        assert main([*at, "--json"]) == 0
        blocks = json.loads(capsys.readouterr().out)["blocks"]
        assert [one["begin_wall_ns"] for one in blocks] == [[BEGIN_NS], [BEGIN_NS + 100 * MS]]
        assert main([*at, "--add", str(mine)]) == 0
        once = mine.read_bytes()
        assert counters(mine) == 2
        assert main([*at, "--add", str(mine)]) == 0
        assert "already" in capsys.readouterr().out
        assert mine.read_bytes() == once
        assert main([*at, "--add", str(other)]) == 1
        assert "no trace of request r1" in capsys.readouterr().err
        assert main([*at, "--add", str(tmp_path / "none.json")]) == 1


def test_a_group_fetched_again_after_an_interruption_has_its_tracks_once(tmp_path: Path) -> None:
    """With rank and world size in the file too: the first run put all in place, and died before the manifest said so."""
    fakes = services(tmp_path, 1)
    with running_daemon(fakes) as port:
        host = HostEntry(host="127.0.0.1", port=port, label="a", request_id="r1")
        process = ProcessEntry(host="a", pid=1, host_pid=1, rank=3, world_size=8)
        process.update(fakes.traces.progress("r1")[0].captures[0])
        manifest = Manifest(group_id="g", hosts=[host], processes=[process], created_wall_ns=1, config="")
        file = ManifestFile(manifest, str(tmp_path / "manifest.json"))
        options = FollowOptions(
            wait=True, wait_timeout_s=None, fetch=str(tmp_path / "got"), compress=False, with_host=True
        )
        fetch_group(file, FanOutOptions(), options, as_json=True)
        once = Path(process.fetched).read_bytes()
        assert (process.host_tracks, process.host_note, process.fetch_error) == (1, "", "")
        assert process.fetched_sha256 == hashlib.sha256(once).hexdigest() != process.sha256
        process.fetched = ""
        fetch_group(file, FanOutOptions(), options, as_json=True)
    assert (process.host_tracks, process.host_note, process.fetch_error) == (1, "", "")
    assert Path(process.fetched).read_bytes() == once
    assert json.loads(once)["distributedInfo"] == {"rank": 3, "world_size": 8}
    assert len(fakes.traces.fetches) == 1


def test_a_trace_has_the_gpus_of_its_own_process_and_no_other_processes(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(TRACE)
    samples = (
        block(
            BEGIN_NS, {"gpu_process.5.77": [1.0, None], "gpu_process.6.778": [1.0, 1.0], "gpu_clock_mhz.0": [9.0, 9.0]}
        ),
        block(BEGIN_NS, {"gpu_process.4.8": [1.0]}),
    )
    amended = HostTracks().add(
        lambda: samples,
        str(tmp_path / "t.json"),
        str(tmp_path / "out.json"),
        begin_wall_ns=BEGIN_NS,
        duration_us=300_000.0,
        sha256=FILE.sha256,
        host_pid=77,
    )
    assert amended.tracks == 2
    events = json.loads((tmp_path / "out.json").read_bytes())["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "C"} == {"host gpu_held.5", "host gpu_clock_mhz.0"}
