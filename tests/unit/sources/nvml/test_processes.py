"""Lists of processes in three versions, and merging them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from dynolog.model.gpu import GpuProcess
from dynolog.sources.nvml.processes import ListedProcess, merge
from fakes.nvml.backend_process import BackendProcess

Start = Callable[..., BackendProcess]
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF
LISTS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")


def test_compute_and_graphics_are_one_list(opened: Start) -> None:
    """A process in both has its memory once; memory that the driver does not tell is unknown, not 18 EB."""
    said = {"gpu.0.compute": f"10:1000,11:{NOT_AVAILABLE}", "gpu.0.graphics": "10:1000,12:300"}
    reading = opened({"count": 1, **said}).readings(0)["0"]
    assert reading.processes == (
        GpuProcess(pid=10, used_memory_bytes=1000, is_compute=True),
        GpuProcess(pid=11, used_memory_bytes=None, is_compute=True),
        GpuProcess(pid=12, used_memory_bytes=300, is_compute=False),
    )
    assert reading.values["gpu_processes"] == 3


def test_many_processes(opened: Start) -> None:
    """More than fit into any buffer of a usual size."""
    pids = range(1, 301)
    reading = opened({"count": 1, "gpu.0.compute": ",".join(f"{pid}:{pid}" for pid in pids)}).readings(0)["0"]
    assert [process.pid for process in reading.processes] == list(pids)


def test_version_1_is_read_where_there_is_no_other(opened: Start) -> None:
    """C10: a driver of branch 440 with a binding of today."""
    without = [f"{name}{version}" for name in LISTS for version in ("_v2", "_v3")]
    backend = opened({"count": 1, "gpu.0.compute": f"10:1000,11:{NOT_AVAILABLE}"}, without=without)
    sample = backend.sample(0)
    assert [(one.pid, one.used_memory_bytes) for one in sample.readings[0].processes] == [(10, 1000), (11, None)]


def test_lists_in_another_layout_are_not_believed(opened: Start) -> None:
    """C10: drivers of branch 535 wrote longer entries; the second would be process 0. The version before is right."""
    backend = opened({"count": 1, "lists_of_535": 1, "gpu.0.compute": "10:1000,11:2000,12:3000"})
    sample = backend.sample(0)
    assert [(one.pid, one.used_memory_bytes) for one in sample.readings[0].processes] == [
        (10, 1000),
        (11, 2000),
        (12, 3000),
    ]
    assert any("another layout" in sentence for _, sentence in sample.notices)
    backend.sample(1)
    assert backend.calls(f"{LISTS[0]}_v3") == 2  # size and content, once


def test_no_lists_at_all_are_unknown_not_none(opened: Start) -> None:
    """Missing is not zero: no gpu_processes when the driver lists none."""
    without = [f"{name}{version}" for name in LISTS for version in ("", "_v2", "_v3")]
    sample = opened({"count": 1}, without=without).sample(0)
    assert "gpu_processes" not in sample.readings[0].values
    assert any("processes are not read" in sentence for _, sentence in sample.notices)


def test_a_list_that_fails_costs_only_the_list(opened: Start) -> None:
    """C09: the device stays up whatever becomes of its processes."""
    reading = opened({"count": 1, "gpu.0.compute": "!999"}).readings(0)["0"]
    assert reading.is_up
    assert reading.processes == ()
    assert "gpu_processes" not in reading.values


entries = st.lists(
    st.builds(
        ListedProcess,
        st.integers(1, 20),
        st.none() | st.integers(0, 1 << 40),
        st.booleans(),
    )
)


@given(entries)
def test_merged_lists_have_each_process_once(listed: list[ListedProcess]) -> None:
    merged = {process.pid: process for process in merge(listed)}
    assert len(merged) == len(merge(listed))
    assert set(merged) == {entry.pid for entry in listed}
    for entry in listed:
        process = merged[entry.pid]
        amounts = [
            one.used_memory_bytes for one in listed if one.pid == entry.pid and one.used_memory_bytes is not None
        ]
        assert process.used_memory_bytes == max(amounts, default=None)
        assert process.is_compute == any(one.is_compute for one in listed if one.pid == entry.pid)
