"""Iterations, as far as a trace tells them."""

from pathlib import Path

import pytest

from dynolog.analysis.rank.step_spans import Steps, find_steps
from dynolog.analysis.reading.load import load
from fakes.traces import RECORDED, operation, trace


def steps(place: Path, *events: dict[str, object]) -> Steps:
    place.write_bytes(trace(events))
    return find_steps(load(str(place)))


def numbers(found: Steps) -> list[tuple[int, int, int]]:
    return [(step.number, step.begin_ns // 1000, step.end_ns // 1000) for step in found.spans]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "t.json"


def test_a_step_lasts_from_its_first_mark_to_its_last_on_host_and_device(place: Path) -> None:
    events = [operation(f"ProfilerStep#{i}", 100 * i, 90, cat="user_annotation") for i in (8, 7)]
    events.append(operation("ProfilerStep#7", 750, 100, cat="gpu_user_annotation", pid=0, tid=7))
    events.append(operation("ProfilerStep#7", 720, 10, cat="gpu_user_annotation", pid=0, tid=20))
    events.append(operation("ProfilerStep#x", 1, 2, cat="user_annotation"))
    found = steps(place, *events)
    assert (numbers(found), found.source) == ([(7, 700, 850), (8, 800, 890)], "ProfilerStep")


def test_g08_without_marks_the_ends_of_optimizer_steps_tell_them(place: Path) -> None:
    events = [operation("forward", 5, 1)]
    events += [operation("Optimizer.step#SGD.step", at, 10, cat="user_annotation") for at in (90, 190)]
    events += [operation("Optimizer.step#Adam.step", at, 10, cat="user_annotation") for at in (95, 195)]
    found = steps(place, *events)
    assert (numbers(found), found.source) == ([(0, 5, 100), (1, 100, 200)], "optimizer")


def test_g08_optimizers_between_which_nothing_is_differentiated_are_of_one_iteration(place: Path) -> None:
    """A model with two optimizers of the same class, or one that steps by groups."""
    name = "autograd::engine::evaluate_function: MmBackward0"
    events = [operation(name, at, 5) for at in (20, 70, 120, 170)]
    events += [operation("Optimizer.step#AdamW.step", at, 10, cat="user_annotation") for at in (80, 92, 180, 192)]
    found = steps(place, operation("forward", 5, 1), *events)
    assert numbers(found) == [(0, 5, 102), (1, 102, 202)]


def test_g08_where_nothing_tells_steps_there_are_none(place: Path) -> None:
    assert steps(place, operation("a", 1, 1)) == Steps([], "")


def test_a_recorded_request_of_three_iterations_has_them() -> None:
    found = find_steps(load(str(RECORDED / "iter_13260.json.gz")))
    assert (len(found.spans), found.source) == (3, "optimizer")
