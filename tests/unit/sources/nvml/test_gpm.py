"""Activity from GPM, and rates from counters where there is no GPM."""

from collections.abc import Callable

import pytest

from dynolog.model.gpu import ProfilingState
from fakes.nvml.backend_process import BackendProcess

Start = Callable[..., BackendProcess]
MIB = 1 << 20
ACTIVITY = {"sm_active_ratio", "sm_occupancy", "tensorcore_active", "hbm_mem_bw_util", "graphics_engine_active_ratio"}


def test_means_are_between_the_two_last_rounds(opened: Start) -> None:
    """B12: the library refuses samples in the wrong order or of two devices; none is made anew each round."""
    backend = opened({"count": 2, "gpu.0.gpm.2": 10, "gpu.1.gpm.2": 20})
    assert "sm_active_ratio" not in backend.readings(0)["0"].values
    for now_s in range(1, 6):
        backend.script.set({"gpu.0.gpm.2": 10 + now_s})
        readings = backend.readings(now_s)
        assert readings["0"].values["sm_active_ratio"] == pytest.approx((10 + now_s) / 100)
        assert readings["1"].values["sm_active_ratio"] == 0.2
    assert backend.ask("alive").number == 4
    assert backend.calls("nvmlGpmSampleAlloc") == 4


def test_metrics_that_a_device_does_not_have_are_missing(opened: Start) -> None:
    """Never 0: a metric with an error, one that is no number, one below 0, and one of 10,000 %."""
    backend = opened({"count": 1, "gpu.0.gpm.1": 50, "gpu.0.gpm.2": "!3", "gpu.0.gpm.3": "nan", "gpu.0.gpm.5": -1})
    backend.script.set({"gpu.0.gpm.10": 10_000, "gpu.0.gpm.11": 100.4})
    backend.sample(0)
    values = backend.readings(1)["0"].values
    assert ACTIVITY & set(values) == {"graphics_engine_active_ratio"}
    assert values["fp64_active"] == 1.0


def test_a_device_without_gpm_has_no_activity(opened: Start) -> None:
    """Nothing is made up of other values; the status says why."""
    backend = opened({"count": 2, "gpu.*.gpm": 0, "gpu.*.utilization": 90, "gpu.*.gpm.2": 50})
    backend.sample(0)
    sample = backend.sample(1)
    assert all(not ACTIVITY & set(reading.values) for reading in sample.readings)
    assert sample.profiling is ProfilingState.OFF
    assert "Hopper" in sample.profiling_why


def test_a_mixed_machine(opened: Start) -> None:
    """B03: one old card beside a new one costs the new one nothing."""
    backend = opened({"count": 2, "gpu.0.gpm": 0, "gpu.1.gpm.2": 50})
    backend.sample(0)
    sample = backend.sample(1)
    assert "sm_active_ratio" not in sample.readings[0].values
    assert sample.readings[1].values["sm_active_ratio"] == 0.5
    assert sample.profiling is ProfilingState.ON


def test_a_round_that_failed_does_not_lengthen_the_next_mean(opened: Start) -> None:
    """B12: after a failure the means begin anew, so that they are never of longer than a round."""
    backend = opened({"count": 1, "gpu.0.gpm.2": 50})
    backend.sample(0)
    assert "sm_active_ratio" in backend.readings(1)["0"].values
    backend.script.set({"fn.nvmlGpmSampleGet": "!999"})
    assert "sm_active_ratio" not in backend.readings(2)["0"].values
    backend.script.set({"fn.nvmlGpmSampleGet": None})
    assert "sm_active_ratio" not in backend.readings(3)["0"].values
    assert "sm_active_ratio" in backend.readings(4)["0"].values
    backend.script.set({"gpu.0.answers": "!15"})
    backend.sample(5)
    backend.script.set({"gpu.0.answers": None})
    assert "sm_active_ratio" not in backend.readings(6)["0"].values


def test_rates_from_counters(opened: Start) -> None:
    """Without GPM: KiB of all links and bytes of PCIe, over the measured time; one that went back gives nothing."""
    fields = {"field.138.4294967295": 1000, "field.139.4294967295": 5000, "field.197": 1 << 40, "field.198": 7}
    backend = opened({"count": 1, "gpu.0.gpm": 0, **{f"gpu.0.{name}": value for name, value in fields.items()}})
    rates = {"nvlink_tx_bytes", "nvlink_rx_bytes", "pcie_tx_bytes", "pcie_rx_bytes"}
    assert not rates & set(backend.readings(0)["0"].values)
    backend.script.set({"gpu.0.field.138.4294967295": 1000 + 4096, "gpu.0.field.139.4294967295": 4999})
    backend.script.set({"gpu.0.field.197": (1 << 40) + 3000})
    values = backend.readings(4)["0"].values
    assert {name: values[name] for name in rates & set(values)} == {
        "nvlink_tx_bytes": 1 << 20,
        "pcie_tx_bytes": 750,
        "pcie_rx_bytes": 0,
    }


def test_a_pcie_counter_of_32_bits_is_not_used(opened: Start) -> None:
    """It wraps many times in a round: a rate from it would be a number out of nowhere."""
    backend = opened({"count": 1, "gpu.0.gpm": 0, "gpu.0.field.197": 10, "gpu.0.uint.197": 1})
    backend.sample(0)
    backend.script.set({"gpu.0.field.197": 4000})
    assert "pcie_tx_bytes" not in backend.readings(1)["0"].values
