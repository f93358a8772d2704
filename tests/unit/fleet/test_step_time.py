"""The time of an iteration, out of traces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynolog.fleet.step_time import step_time, steps_in


def trace(*events: dict[str, object]) -> bytes:
    return json.dumps(
        {"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "user_annotation"} | one for one in events]}
    ).encode()


def step(ts: float, name: str = "Optimizer.step#SGD.step") -> dict[str, object]:
    return {"name": name, "ts": ts}


def test_steps_are_those_of_optimizers_in_order() -> None:
    data = trace(step(300.5), step(100), {"name": "aten::mm", "ts": 150}, step(200, "Optimizer.step#Adam.step"))
    assert steps_in(data) == [100, 200, 300.5]


def test_the_kind_of_which_there_are_more_counts_as_libkineto_counts() -> None:
    assert steps_in(trace(step(1), step(2), step(5, "ProfilerStep#7"))) == [1, 2]
    assert steps_in(trace(step(1), step(5, "ProfilerStep#7"), step(6, "ProfilerStep#8"))) == [5, 6]


def test_what_a_gpu_repeats_counts_once() -> None:
    data = trace(step(1), step(2), step(1) | {"cat": "gpu_user_annotation"}, step(3) | {"ph": "B"})
    assert steps_in(data) == [1, 2]


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"traceEvents": 5}', b"\xff", b"[" * 100_000])
def test_what_is_no_trace_tells_no_step(data: bytes) -> None:
    assert steps_in(data) == []


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert steps_in(data) == []


def test_the_fastest_process_decides() -> None:
    found = step_time([[0.0, 20_000.0, 40_000.0], [0.0, 5_000.0, 10_000.0, 30_000.0], []])
    assert found is not None
    assert (found.step_ms, found.steps, found.processes) == (10.0, 7, 2)


@pytest.mark.parametrize("begins", [[], [[]], [[1.0, 2.0]], [[5.0, 5.0, 5.0]]])
def test_too_few_steps_say_nothing(begins: list[list[float]]) -> None:
    assert step_time(begins) is None
