"""Profiling hardware that is missing, held by others, blank, or broken; the same with each major."""

import pytest

from dynolog.model.gpu import ProfilingState
from fakes.dcgm.library import Rig, notices, of

_PROFILING = ("sm_active_ratio", "graphics_engine_active_ratio", "pcie_tx_bytes", "nvlink_rx_bytes")


def test_a_gpu_without_profiling_keeps_its_other_fields(rig: Rig) -> None:
    """B01: the default fields on a GeForce beside a data centre card."""
    rig.script.say("gpus 2", "prof 0 none")
    sample = rig.backend().sample()
    old, new = of(sample, 0), of(sample, 1)
    assert old.values["gpu_power_draw"] == 412.5
    assert not any(key in old.values for key in _PROFILING)
    assert all(key in new.values for key in _PROFILING)
    assert (old.values["dcgm_error"], sample.profiling) == (0, ProfilingState.ON)
    assert notices(sample) == {
        "dcgm_profiling_without": "GPU 0 has no profiling fields: profiling is not supported (-36)"
    }


def test_profiling_fields_that_a_gpu_lacks_are_dropped_one_by_one(rig: Rig) -> None:
    """B01: a card without FP64 counters still gives the rest."""
    rig.script.say("gpus 2", "prof 0 0:1001,1002,1003", "prof 0 1:1004,1005")
    sample = rig.backend().sample()
    assert "fp64_active" not in of(sample, 0).values
    assert of(sample, 0).values["hbm_mem_bw_util"] == 0.55
    assert of(sample, 1).values["fp64_active"] == 0.06


def test_profiling_that_went_blank_is_paused_and_resumed_once(rig: Rig) -> None:
    """B04: blank for three rounds on a GPU that had values, while its other fields are fine."""
    backend = rig.backend()
    assert "sm_active_ratio" in of(backend.sample(), 2).values
    rig.script.say("stuck 2")
    samples = [rig.next_sample(backend) for _ in range(3)]
    assert all("sm_active_ratio" not in of(sample, 2).values for sample in samples)
    assert of(samples[0], 2).values["gpu_power_draw"] == 412.5
    assert of(samples[2], 2).values["dcgm_error"] == 1
    assert len(rig.script.calls("dcgmProfPause")) == len(rig.script.calls("dcgmProfResume")) == 1
    assert "GPU 2 went blank" in notices(samples[2])["dcgm_profiling_renewed"]
    assert "sm_active_ratio" in of(rig.next_sample(backend), 2).values
    for _ in range(10):
        rig.next_sample(backend)
    assert len(rig.script.calls("dcgmProfPause")) == 1


def test_profiling_that_stays_blank_is_said_and_tried_again_seldom(rig: Rig) -> None:
    """B04: with back-off, not in every round."""
    backend = rig.backend()
    backend.sample()
    rig.script.say(*(f"value 2 {field} blank" for field in range(1001, 1013)))
    samples = [rig.next_sample(backend) for _ in range(60)]
    assert len(rig.script.calls("dcgmProfPause")) == 1
    assert "stay blank" in notices(samples[-1])["dcgm_profiling_blank"]
    for _ in range(10):
        rig.next_sample(backend)
    assert len(rig.script.calls("dcgmProfPause")) == 2
    assert "sm_active_ratio" in of(samples[-1], 1).values


def test_counters_that_have_no_window_yet_are_no_error(rig: Rig) -> None:
    """B12: after a start they are blank for a window or two; after that it is a fault."""
    rig.script.say("stuck 2")
    backend = rig.backend()
    errors = [of(backend.sample(), 2).values["dcgm_error"]]
    errors += [of(rig.next_sample(backend), 2).values["dcgm_error"] for _ in range(3)]
    assert errors == [0, 0, 1, 1]


def test_a_gpu_that_never_had_profiling_values_is_left_alone(rig: Rig) -> None:
    """B04: there is nothing to bring back."""
    rig.script.say("stuck 2")
    backend = rig.backend()
    for _ in range(5):
        sample = rig.next_sample(backend)
    assert "dcgm_profiling_never" not in notices(sample)
    for _ in range(5):
        sample = rig.next_sample(backend)
    assert notices(sample)["dcgm_profiling_never"].startswith("profiling counters of GPU 2 have had no value")
    assert not rig.script.calls("dcgmProfPause")


def test_a_person_can_resume_what_another_client_of_the_engine_paused(rig: Rig) -> None:
    """A pause is the engine's: one of a daemon that was killed outlives it."""
    backend = rig.backend()
    backend.sample()
    session = backend._session  # to be another client of the same engine
    assert session is not None
    session.connection.library.call("dcgmProfPause", session.connection.handle)
    assert "sm_active_ratio" not in of(rig.next_sample(backend), 0).values
    assert backend.resume_profiling()
    assert "sm_active_ratio" in of(rig.next_sample(backend), 0).values


def test_zero_of_a_busy_gpu_is_left_to_the_reader(rig: Rig) -> None:
    """B05: GPU_UTIL 100 and everything else 0: the two that show it are given, the rest is not; the healthy peer is not touched."""
    rig.script.say("gpus 2", "value 0 203 100", *(f"value 0 {field} 0" for field in range(1001, 1013)))
    backend = rig.backend()
    backend.sample()
    sample = rig.next_sample(backend)
    assert {key for key in _PROFILING if key in of(sample, 0).values} == {
        "graphics_engine_active_ratio",
        "sm_active_ratio",
    }
    assert all(key in of(sample, 1).values for key in _PROFILING)


def test_counters_that_stay_suspect_are_mended_as_blank_ones_are(rig: Rig) -> None:
    """B04, B05."""
    rig.script.say("gpus 2", *(f"value 0 {field} 0" for field in range(1001, 1013)))
    backend = rig.backend()
    for _ in range(5):
        rig.next_sample(backend)
    assert len(rig.script.calls("dcgmProfPause")) == 1


def test_a_short_disagreement_interrupts_nobody(rig: Rig) -> None:
    """B04, B05: utilisation is of the last second; at five rounds a second three rounds of zeros behind a load's end are no fault."""
    rig.script.say("gpus 1")
    backend = rig.backend(interval_s=0.2)
    for _ in range(10):
        rig.next_sample(backend, 0.2)
    rig.script.say("value 0 203 100", *(f"value 0 {field} 0" for field in range(1001, 1013)))
    for _ in range(9):
        rig.next_sample(backend, 0.2)
    assert not rig.script.calls("dcgmProfPause")
    for _ in range(6):
        rig.next_sample(backend, 0.2)
    assert len(rig.script.calls("dcgmProfPause")) == 1


def test_zero_of_an_idle_gpu_is_zero(rig: Rig) -> None:
    """B05."""
    rig.script.say("gpus 1", "value 0 203 0", *(f"value 0 {field} 0" for field in range(1001, 1013)))
    backend = rig.backend()
    backend.sample()
    values = of(rig.next_sample(backend), 0).values
    assert (values["sm_active_ratio"], values["sm_occupancy"]) == (0.0, 0.0)


@pytest.mark.parametrize("code", [-34, -37, -48, -11])
def test_profiling_that_somebody_else_holds_is_said_and_asked_for_again(rig: Rig, code: int) -> None:
    """B07, B08: the other fields go on; back-off from a minute to ten; never a pause of the other's profiling."""
    rig.script.say(f"lock {code}")
    backend = rig.backend()
    sample = backend.sample()
    assert sample.profiling is ProfilingState.TAKEN
    assert "dcgm-exporter" in sample.profiling_why
    assert "dcgm-exporter" in notices(sample)["dcgm_profiling"]
    assert of(sample, 0).values["gpu_power_draw"] == 412.5
    assert of(sample, 0).values["dcgm_error"] == 0
    watched = len(_profiling_watches(rig))
    for _ in range(120):
        rig.next_sample(backend)
    assert len(_profiling_watches(rig)) - watched == 4, "after 60, 180, 420 and 900 s"
    rig.script.take_back("lock")
    for _ in range(60):
        sample = rig.next_sample(backend)
    assert sample.profiling is ProfilingState.ON
    assert "sm_active_ratio" in of(sample, 0).values
    assert not rig.script.calls("dcgmProfPause")


def _profiling_watches(rig: Rig) -> list[str]:
    watches = [call for call in rig.script.calls("dcgmWatchFields") if "profiling=0" not in call]
    return watches + rig.script.calls("dcgmProfWatchFields")


def test_fields_that_do_not_fit_together_are_left_out_and_named(rig: Rig) -> None:
    """B07: of two groups with one major the one with more of the wanted fields is counted."""
    rig.script.say("gpus 1", "onepass", "prof 0 0:1001,1002,1003", "prof 0 0:1004,1005", "prof 0 1:1009,1010")
    sample = rig.backend().sample()
    values = of(sample, 0).values
    assert [key in values for key in ("sm_active_ratio", "tensorcore_active", "pcie_tx_bytes")] == [True, False, True]
    assert notices(sample)["dcgm_profiling_passes"].startswith("fields 1004, 1005 cannot be counted")


@pytest.mark.parametrize("together", [2, 1])
def test_devices_that_are_not_alike_for_the_engine_are_profiled_apart(rig: Rig, together: int) -> None:
    """B03: a mixed node, and a divided GPU beside its instances."""
    rig.script.say("gpus 2", "gi 1 5 3", f"together {together}")
    sample = rig.backend().sample()
    assert (len(sample.readings), sample.profiling) == (3, ProfilingState.ON)
    assert all("sm_active_ratio" in reading.values for reading in sample.readings)


def test_a_person_can_pause_and_resume(rig: Rig) -> None:
    """B07: paused, nothing of it is read and nothing is an error."""
    backend = rig.backend()
    backend.sample()
    assert backend.pause_profiling()
    sample = rig.next_sample(backend)
    assert sample.profiling is ProfilingState.PAUSED
    assert "sm_active_ratio" not in of(sample, 0).values
    assert (of(sample, 0).values["dcgm_error"], of(sample, 0).values["gpu_power_draw"]) == (0, 412.5)
    assert backend.resume_profiling()
    assert "sm_active_ratio" in of(rig.next_sample(backend), 0).values
    assert rig.script.calls("dcgmProfPause") == rig.script.calls("dcgmProfResume") == [""]


def test_a_pause_outlives_devices_and_engines_that_come_and_go(rig: Rig) -> None:
    backend = rig.backend(address="localhost")
    backend.sample()
    backend.pause_profiling()
    rig.script.say("absent 7")
    assert rig.next_sample(backend).profiling is ProfilingState.PAUSED
    rig.script.say("engine 2")
    assert rig.next_sample(backend).profiling is ProfilingState.PAUSED
    assert backend.resume_profiling()
    rig.next_sample(backend)
    assert "sm_active_ratio" in of(rig.next_sample(backend), 0).values


def test_without_profiling_fields_there_is_nothing_to_pause(rig: Rig) -> None:
    """B08: profiling hardware is not touched unless it is asked for."""
    backend = rig.backend("203")
    assert backend.sample().profiling is ProfilingState.OFF
    assert not backend.pause_profiling()
    assert not backend.resume_profiling()


def test_hardware_that_is_free_again_when_devices_change_is_not_called_taken(rig: Rig) -> None:
    """B07."""
    rig.script.say("lock -34")
    backend = rig.backend()
    backend.sample()
    rig.script.take_back("lock")
    rig.script.say("absent 7")
    sample = rig.next_sample(backend)
    assert (sample.profiling, sample.profiling_why) == (ProfilingState.ON, "")
    assert "sm_active_ratio" in of(sample, 0).values
