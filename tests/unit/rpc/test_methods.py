"""Requests and their replies, as bytes."""

import asyncio
import inspect
import json
import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.capture import CaptureState, Transition
from dynolog.model.clock import SystemClock
from dynolog.model.errors import RequestError
from dynolog.model.gpu_view import GpuDevice, GpuStatus
from dynolog.model.host_samples import SamplePage
from dynolog.model.trace_request import NotTraced, TraceOutcome, Transport
from dynolog.rpc.answers import Fetch
from dynolog.rpc.auth import Gate
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.messages import ProcessesReply
from dynolog.rpc.methods import LARGE_BODY_BYTES, MAX_TRACE_REQUESTS, Methods
from dynolog.rpc.origin import Origin
from dynolog.rpc.requests import FUNCTIONS, MAX_VALUES
from dynolog.rpc.trace_messages import MAX_CHOICES, MAX_PIDS
from fakes.services import FakeServices, capture, trainer

UNIX = Origin(transport=Transport.UNIX, who="pid 9 of uid 1000", uid=1000)
REMOTE = Origin(transport=Transport.REMOTE, who="10.0.0.9 port 4", peer=("10.0.0.9", 4), own=("10.0.0.1", 1778))


class Asked:
    """Methods on fakes, and one loop to run them on."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.fakes = FakeServices()
        self.methods = self.make(open_to_all=False)

    def make(self, open_to_all: bool) -> Methods:
        gate = Gate(FileThreads(self.loop), SystemClock(), None, open_to_all)
        return Methods(self.fakes.services, gate, SystemClock())

    def raw(self, body: bytes, origin: Origin = UNIX, methods: Methods | None = None) -> bytes | Fetch:
        answer = (methods or self.methods).answer(body, lambda: origin)
        return self.loop.run_until_complete(answer) if inspect.iscoroutine(answer) else answer  # type: ignore[return-value]

    def __call__(self, fn: str, origin: Origin = UNIX, **arguments: Any) -> Any:
        answer = self.raw(json.dumps({"fn": fn, **arguments}).encode(), origin)
        assert isinstance(answer, bytes)
        return json.loads(answer)


@pytest.fixture
def ask() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.loop.close()


def test_plain_status_is_exactly_the_original_one(ask: Asked) -> None:
    assert ask.raw(b'{"fn":"getStatus"}') == b'{"status":1}'
    ask.fakes.status.status = 0
    assert ask.raw(b'{"fn":"getStatus"}') == b'{"status":0}'


def test_status_gives_time_and_everything_only_when_asked(ask: Asked) -> None:
    assert set(ask("getStatus", time=True)) == {"status", "wall_ns"}
    assert ask("getStatus", verbose=True)["daemon"]["hostname"] == "node1"


def test_a_trace_reply_has_the_five_original_keys(ask: Asked) -> None:
    ask.fakes.traces.outcome = TraceOutcome(
        request_id="r1",
        matched=(11, 12),
        triggered=(11,),
        busy=1,
        captures=(capture(11),),
        not_traced=(NotTraced(pid=12, host_pid=12, code="busy", error="it records"),),
    )
    reply = ask("setKinetOnDemandRequest", config="A=1\n", pids=[0], job_id=2**64 - 1, process_limit=3)
    assert reply["processesMatched"] == [11, 12]
    assert reply["activityProfilersTriggered"] == [11]
    assert reply["eventProfilersTriggered"] == []
    assert reply["activityProfilersBusy"] == 1
    assert reply["eventProfilersBusy"] == 0
    assert reply["captures"][0]["pid"] == 11
    (request, caller), *_ = ask.fakes.traces.requests
    assert (request.config, request.pids, request.job_id, request.process_limit) == ("A=1\n", (0,), 2**64 - 1, 3)
    assert caller.uid == 1000


@pytest.mark.parametrize(
    "arguments",
    [
        {"config": 5},
        {},
        {"config": "", "pids": ["x"]},
        {"config": "", "pids": [1.5]},
        {"config": "", "job_id": "9" * 400},
        {"config": "", "job_id": 2**64},
        {"config": "", "process_limit": -1},
        {"config": "", "pids": list(range(MAX_PIDS + 1))},
    ],
)
def test_bad_arguments_of_a_trace_request_are_refused_with_a_sentence(ask: Asked, arguments: dict[str, Any]) -> None:
    reply = ask("setKinetOnDemandRequest", **arguments)
    assert (reply["status"], reply["code"]) == ("failed", "bad_request")
    assert len(reply["error"]) > 20
    assert not ask.fakes.traces.requests


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"fn":"nope"}', "unknown_function"),
        (b"hello", "bad_json"),
        (b"\xff\xfe\xfd\xfc", "bad_json"),
        (b"[" * 100_000, "bad_request"),
        (b'{"fn":"getStatus","x":' + b"[" * 5000 + b"]" * 5000 + b"}", "bad_json"),
        (b"[]", "bad_request"),
        (b"null", "bad_request"),
        (b"{}", "bad_request"),
        (b'{"fn":5}', "bad_request"),
        (b'{"fn":"waitTrace"}', "bad_request"),
        (b'{"fn":"fetchTrace","capture_id":"c1","offset":-1}', "bad_request"),
        (b'{"fn":"authenticated"}', "bad_request"),
    ],
)
def test_what_is_no_request_is_answered(ask: Asked, body: bytes, code: str) -> None:
    answer = ask.raw(body)
    assert isinstance(answer, bytes)
    assert json.loads(answer)["code"] == code


def test_a_refusal_of_the_service_keeps_its_code(ask: Asked) -> None:
    ask.fakes.traces.outcome = RequestError("path_not_writable", "uid 5 may not write /x")
    reply = ask("setKinetOnDemandRequest", config="")
    assert reply == {"status": "failed", "code": "path_not_writable", "error": "uid 5 may not write /x"}


def test_a_caller_without_the_right_is_logged(ask: Asked, caplog: pytest.LogCaptureFixture) -> None:
    ask.fakes.traces.outcome = RequestError("forbidden", "trainer 5 belongs to uid 0")
    assert ask("setKinetOnDemandRequest", config="")["code"] == "forbidden"
    assert "refused setKinetOnDemandRequest from pid 9 of uid 1000" in caplog.text


def test_a_fault_of_ours_is_counted_logged_and_answered(ask: Asked, caplog: pytest.LogCaptureFixture) -> None:
    ask.fakes.traces.outcome = ZeroDivisionError("oops")
    assert ask("setKinetOnDemandRequest", config="")["code"] == "internal"
    assert ask.methods.internal_errors == 1
    assert "oops" in caplog.text


def test_dcgm_pause_says_whether_anything_was_done(ask: Asked, caplog: pytest.LogCaptureFixture) -> None:
    """The public Dynolog's two functions and their replies; without a number the pause is one of 300 s."""
    caplog.set_level("INFO")
    assert ask("dcgmProfPause", duration_s=5) == {"status": False}
    assert ask("dcgmProfResume") == {"status": False}
    assert "nothing_done" in caplog.text
    ask.fakes.gpus.answer = True
    assert ask("dcgmProfPause") == {"status": True}
    assert ask("dcgmProfResume") == {"status": True}
    assert ask.fakes.gpus.pauses == [5, 0, 300, 0]


@pytest.mark.parametrize("duration_s", [0, -1, 604_801, 1 << 70])
def test_a_pause_of_no_time_or_of_more_than_a_week_is_refused(ask: Asked, duration_s: int) -> None:
    assert ask("dcgmProfPause", duration_s=duration_s)["code"] == "bad_request"
    assert ask.fakes.gpus.pauses == []


def test_gpus_are_listed_with_their_source(ask: Asked) -> None:
    assert ask("getGpus")["gpu"]["enabled"] is False
    ask.fakes.gpus.source = GpuStatus(enabled=True, backend="nvml", expected=1, seen=1)
    ask.fakes.gpus.listed = (GpuDevice(subject="0", labels={"device": "0"}, values={"gpu_power_draw": 90.5}),)
    answer = ask("getGpus")
    assert answer["gpu"]["backend"] == "nvml"
    assert answer["devices"][0]["values"] == {"gpu_power_draw": 90.5}


def test_status_says_until_when_gpu_profiling_is_paused_only_when_asked_for_more(ask: Asked) -> None:
    ask.fakes.gpus.source = GpuStatus(enabled=True, paused_until_wall_ns=1_700_000_300_000_000_000)
    assert ask("getStatus") == {"status": 1}
    assert ask("getStatus", time=True)["gpu_paused_until_wall_ns"] == 1_700_000_300_000_000_000


def test_processes_are_listed_by_job_and_either_pid(ask: Asked) -> None:
    ask.fakes.traces.registered = (trainer(1, host_pid=501, job="90210_2"), trainer(7, host_pid=7))
    assert len(ask("listProcesses")["trainers"]) == 2
    assert [one["host_pid"] for one in ask("listProcesses", job="90210_2")["trainers"]] == [501]
    assert [one["host_pid"] for one in ask("listProcesses", pids=[501])["trainers"]] == [501]
    assert ask("listProcesses", pids=[3])["trainers"] == []
    typed = ask.raw(b'{"fn":"listProcesses"}')
    assert isinstance(typed, bytes)
    assert msgspec.json.decode(typed, type=ProcessesReply).trainers == ask.fakes.traces.registered


@pytest.mark.parametrize(
    ("job", "pids"),
    [
        ("90210", [1, 2, 3]),  # the whole array, also the element to which SLURM gave the array's own number
        ("90210_[1-2]", [1, 2]),
        ("90211", [1]),  # an element's own number
        ("90210.0", [1, 2, 3]),  # steps are not told apart
        ("9021", []),
        ("7", [4]),
        ("7_1", []),
    ],
)
def test_a_job_is_listed_as_it_is_traced(ask: Asked, job: str, pids: list[int]) -> None:
    """By the same rules: a bare id means every element of an array."""
    ask.fakes.traces.registered = (
        trainer(1, job="90210_1", job_id=90211),
        trainer(2, job="90210_2", job_id=90212),
        trainer(3, job="90210_3", job_id=90210),
        trainer(4, job="7", job_id=7),
        trainer(5, job="", job_id=0),
    )
    assert [one["pid"] for one in ask("listProcesses", job=job)["trainers"]] == pids


def test_a_job_that_is_none_is_refused(ask: Asked) -> None:
    assert ask("listProcesses", job="x")["code"] == "bad_request"


def test_metrics_come_with_their_units(ask: Asked) -> None:
    reply = ask("getMetrics")
    assert reply["records"][0]["values"] == {"cpu_u": 12.5, "uptime": 99}
    assert reply["units"] == {"cpu_u": "%", "uptime": "s"}
    assert ask("getMetrics", source="gpu")["records"] == []
    assert [one["name"] for one in ask("listMetrics")["metrics"]] == ["cpu_u", "uptime"]


def test_a_name_of_odd_bytes_costs_nobody_the_answer(ask: Asked) -> None:
    """A job of one user, a mount of another: every user asks this daemon."""
    odd = os.fsdecode(b"12\xff")
    ask.fakes.traces.registered = (trainer(1, job=odd, command=odd), trainer(2))
    assert [one["job"] for one in ask("listProcesses")["trainers"]] == ["12\\udcff", ""]
    record = ask.fakes.metrics.records[0]
    ask.fakes.metrics.records = (msgspec.structs.replace(record, values={f"cpu_u.{odd}": 1}, labels={"job": odd}),)
    assert ask("getMetrics")["records"][0]["values"] == {"cpu_u.12\\udcff": 1}


def test_a_wait_is_never_longer_than_a_minute(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(request_id: str, seen_version: int, timeout_s: float) -> Any:
        waits.append(timeout_s)
        return ask.fakes.traces.progress(request_id)[0]

    monkeypatch.setattr(ask.fakes.traces, "wait", wait)
    ask.fakes.traces.publish(capture())
    for asked_s in (1e12, -5, 7):
        assert ask("waitTrace", request_id="r1", timeout_s=asked_s)["requests"][0]["request_id"] == "r1"
    assert waits == [60, 0, 7]


def test_unknown_requests_are_not_found(ask: Asked) -> None:
    for fn in ("getTrace", "waitTrace"):
        assert ask(fn, request_id="r9")["code"] == "not_found"
    assert ask("getTrace")["requests"] == []


@pytest.mark.parametrize("fn", sorted(FUNCTIONS))
def test_another_machine_gets_status_and_version_and_nothing_else(ask: Asked, fn: str) -> None:
    arguments = {"config": "", "request_id": "r1", "capture_id": "c1"}
    reply = ask(fn, REMOTE, **arguments)
    if fn in ("getStatus", "getVersion"):
        assert reply.get("status") != "failed"
    else:
        assert reply["code"] == "unauthenticated"
    assert ask("getStatus", REMOTE, verbose=True)["code"] == "unauthenticated"


def test_another_machine_gets_everything_when_the_door_is_open(ask: Asked) -> None:
    answer = ask.raw(b'{"fn":"setKinetOnDemandRequest","config":""}', REMOTE, ask.make(open_to_all=True))
    assert isinstance(answer, bytes)
    assert json.loads(answer)["processesMatched"] == []
    assert ask.fakes.traces.requests[0][1].may_act_for(1234, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = (
    "config",
    "pids",
    "job_id",
    "process_limit",
    "request_id",
    "timeout_s",
    "capture_id",
    "offset",
    "verbose",
    "source",
    "job",
)


@given(
    function=st.sampled_from([*sorted(FUNCTIONS), "authenticated", "", "\ud800"]) | st.text(max_size=8),
    arguments=st.dictionaries(st.sampled_from(ARGUMENTS), JSON, max_size=5),
)
def test_any_arguments_get_one_json_object(function: str, arguments: dict[str, Any]) -> None:
    asked = Asked()
    try:
        for origin in (UNIX, REMOTE):
            answer = asked.raw(json.dumps({**arguments, "fn": function}).encode(), origin)
            assert isinstance(answer, bytes)
            assert isinstance(json.loads(answer), dict)
        assert asked.methods.internal_errors == 0
    finally:
        asked.loop.close()


@given(body=st.binary(max_size=80))
def test_any_bytes_get_one_json_object(body: bytes) -> None:
    asked = Asked()
    try:
        answer = asked.raw(body)
        assert isinstance(answer, bytes)
        assert json.loads(answer)["status"] == "failed"
        assert asked.methods.internal_errors == 0
    finally:
        asked.loop.close()


def test_more_values_than_any_request_has_are_refused_before_they_are_built(ask: Asked) -> None:
    """A megabyte of short texts takes tens of milliseconds to become objects, and trainers would wait for it."""
    body = b'{"fn":"setKinetOnDemandRequest","config":"","names":[' + b'"a",' * MAX_VALUES + b'"a"]}'
    answer = ask.raw(body)
    assert isinstance(answer, bytes)
    assert json.loads(answer)["code"] == "bad_request"
    assert str(MAX_VALUES) in json.loads(answer)["error"]


@pytest.mark.parametrize(
    "choice",
    [{"names": ["a"] * (MAX_CHOICES + 1)}, {"ranks": [1] * (MAX_CHOICES + 1)}, {"gpus": ["1"] * (MAX_CHOICES + 1)}],
)
def test_choices_beyond_any_persons_are_refused(ask: Asked, choice: dict[str, Any]) -> None:
    assert ask("setKinetOnDemandRequest", config="A=1", **choice)["code"] == "bad_request"


def test_one_caller_has_so_many_trace_requests_at_once_and_others_are_free(ask: Asked) -> None:
    """Each starts a process that looks at directories: five hundred at once would bring the machine down."""
    held = asyncio.Event()

    entered = 0

    async def hang(_request: object, _caller: object) -> TraceOutcome:
        nonlocal entered
        entered += 1
        await held.wait()
        return TraceOutcome()

    ask.fakes.traces.request_traces = hang  # type: ignore[method-assign, assignment]
    body = b'{"fn":"setKinetOnDemandRequest","config":"A=1"}'
    other = Origin(transport=Transport.UNIX, who="pid 8 of uid 2000", uid=2000)

    async def story() -> tuple[bytes, bytes]:
        async def asked(origin: Origin) -> bytes:
            answer = ask.methods.answer(body, lambda: origin)
            assert not isinstance(answer, bytes)
            done = await answer
            assert isinstance(done, bytes)
            return done

        first = [asyncio.ensure_future(asked(UNIX)) for _ in range(MAX_TRACE_REQUESTS)]
        while entered < MAX_TRACE_REQUESTS:
            await asyncio.sleep(0)
        refused = await asked(UNIX)
        others = asyncio.ensure_future(asked(other))
        await asyncio.sleep(0)
        held.set()
        assert all(json.loads(one).get("code") is None for one in await asyncio.gather(*first))
        again = await asked(UNIX)
        assert json.loads(again).get("code") is None, "the places are free again"
        return refused, await others

    refused, others = ask.loop.run_until_complete(story())
    assert json.loads(refused)["code"] == "busy"
    assert "processesMatched" in json.loads(others)


@pytest.mark.parametrize(
    "body", [b'{"fn":"getStatus","more":"' + b"x" * LARGE_BODY_BYTES + b'"}', b'{"fn":"listMetrics"}']
)
def test_what_takes_milliseconds_is_answered_one_a_round(ask: Asked, body: bytes) -> None:
    """However many such requests are complete at once, trainers and getStatus are served between any two."""

    async def story() -> list[int]:
        rounds = 0
        answered: list[int] = []

        async def one() -> None:
            answer = ask.methods.answer(body, lambda: UNIX)
            assert not isinstance(answer, bytes)
            assert isinstance(await answer, bytes)
            answered.append(rounds)

        tasks = [asyncio.ensure_future(one()) for _ in range(4)]
        while not all(task.done() for task in tasks):
            rounds += 1
            await asyncio.sleep(0)
        return answered

    answered = ask.loop.run_until_complete(story())
    assert len(set(answered)) == 4


def test_the_requests_of_one_group_can_be_asked_for(ask: Asked) -> None:
    for request_id, group_id in (("r1", "g1"), ("r2", "g2"), ("r3", "")):
        ask.fakes.traces.publish(capture(), request_id=request_id, group_id=group_id)
    assert [one["request_id"] for one in ask("getTrace", group_id="g2")["requests"]] == ["r2"]
    assert ask("getTrace", group_id="g9")["requests"] == []
    assert len(ask("getTrace")["requests"]) == 3


def test_host_samples_of_a_request_are_those_from_asking_to_its_last_file(ask: Asked) -> None:
    """Without a request, of any time; while one goes on, up to now. Pages go on where the client says."""
    steps = (Transition(CaptureState.PENDING, 1_000, ""), Transition(CaptureState.WRITTEN, 5_000, ""))
    ask.fakes.traces.publish(capture(1, state=CaptureState.WRITTEN, history=steps), request_id="over")
    ask.fakes.traces.publish(capture(2, history=steps[:1]), request_id="going on")
    ask.fakes.host.pages[1_000] = SamplePage(next_wall_ns=3_000)
    assert ask("getHostSamples", request_id="over") == {"blocks": [], "next_wall_ns": 3_000, "status": "ok"}
    ask("getHostSamples", request_id="over", begin_wall_ns=3_000)
    assert ask.fakes.host.asked == [(1_000, 5_000), (3_000, 5_000)]
    ask("getHostSamples", request_id="going on")
    assert ask.fakes.host.asked[-1][1] > 10**18
    ask("getHostSamples", begin_wall_ns=7, end_wall_ns=9)
    assert ask.fakes.host.asked[-1] == (7, 9)
    assert ask("getHostSamples", request_id="none")["code"] == "not_found"


@pytest.mark.parametrize(
    ("interval_ms", "is_good"), [(0, True), (19, False), (20, True), (10_000, True), (10_001, False), (-1, False)]
)
def test_the_interval_of_host_samples_is_bounded(ask: Asked, interval_ms: int, is_good: bool) -> None:
    answer = ask("setKinetOnDemandRequest", config="", host_interval_ms=interval_ms)
    assert ("processesMatched" in answer) == is_good
    if is_good:
        assert ask.fakes.traces.requests[-1][0].host_interval_ms == interval_ms
    else:
        assert answer["code"] == "bad_request"
