"""What DCGM, its engine and its GPUs do wrong, and what comes of it; the same with each major."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.dcgm.library import Rig, notices, of


@pytest.mark.parametrize("word", ["blank", "not_found", "not_permitted", "nodata", "blank32"])
def test_blanks_of_each_type_are_no_value(rig: Rig, word: str) -> None:
    """B02: an integer, a double, a text and a scaled counter; counted, and never a number."""
    fields = (100, 1009, 156, 252) if word == "blank32" else (100, 1009, 155, 1002, 156, 252, 54)
    rig.script.say("gpus 2", *(f"value 0 {field} {word}" for field in fields))
    backend = rig.backend()
    backend.sample()
    sample = rig.next_sample(backend, 20)
    reading = of(sample, 0)
    gone = {"gpu_frequency_mhz", "pcie_tx_bytes", "gpu_memory_used_bytes"}
    gone |= set() if word == "blank32" else {"gpu_power_draw", "sm_active_ratio"}
    assert not gone & set(reading.values)
    assert "gpu_energy_joules" not in reading.counters
    assert all(not isinstance(value, int | float) or value < 1e13 for value in reading.values.values())
    assert reading.values["gpu_blank_values"] == sample.blank_values == len(fields)
    assert (reading.values["dcgm_error"], of(sample, 1).values["dcgm_error"]) == (1, 0)
    assert reading.is_up
    assert gone <= set(of(sample, 1).values)


def test_an_unsupported_field_is_said_and_is_no_error(rig: Rig) -> None:
    """B13: when a version answers N/A instead of 0, the series that is gone is explained."""
    rig.script.say("gpus 1", "value 0 100 not_supported", "value 0 202 not_supported")
    sample = rig.backend().sample()
    assert "gpu_frequency_mhz" not in of(sample, 0).values
    assert (of(sample, 0).values["dcgm_error"], sample.blank_values) == (0, 0)
    said = notices(sample)["dcgm_unsupported_0"]
    version = sample.library_version
    assert said == f"GPU 0 with DCGM {version}: fields that are not supported: 100 gpu_frequency_mhz, 202 pcie_replays"


def test_one_bad_card_costs_only_itself(rig: Rig) -> None:
    """B03: everything of one GPU is blank."""
    rig.script.say("gpus 3", *(f"value 1 {field} blank" for field in (*range(50, 600), *range(1001, 1013))))
    sample = rig.backend().sample()
    assert [reading.is_up for reading in sample.readings] == [True, False, True]
    assert (sample.expected, sample.seen) == (3, 2)
    assert of(sample, 1).error == "no field of it has a value"
    assert not of(sample, 1).values


def test_a_restarted_host_engine_is_joined_again_with_all_watches(rig: Rig) -> None:
    """B09: groups and watches are redone, and no old value is given."""
    backend = rig.backend(address="localhost")
    backend.sample()
    before = len(rig.script.calls("dcgmWatchFields"))
    rig.script.say("engine 2", "value * 155 99")
    sample = rig.next_sample(backend)
    assert of(sample, 0).values["gpu_power_draw"] == 99.0
    assert len(rig.script.calls("dcgmWatchFields")) == 2 * before
    assert len(rig.script.calls("dcgmConnect_v2")) == 2


def test_without_its_host_engine_nothing_is_given(rig: Rig) -> None:
    """B09, B10: the sample fails with what to do, until the engine is back."""
    backend = rig.backend(address="localhost")
    backend.sample()
    rig.script.say("engine down")
    why = r"cannot be joined.*-21.*start nv-hostengine"
    with pytest.raises(SourceUnavailable, match=why):
        rig.next_sample(backend)
    with pytest.raises(SourceUnavailable, match=why):
        backend.open()
    rig.script.take_back("engine")
    backend.open()
    assert backend.sample().seen == 8


def test_an_engine_found_by_itself_is_waited_for(rig: Rig) -> None:
    """B09: `auto` does not start a second engine because the one that it joined is being restarted."""
    rig.engine_answers = True
    backend = rig.backend()
    backend.sample()
    rig.script.say("engine down")
    rig.engine_answers = False
    with pytest.raises(SourceUnavailable):
        rig.next_sample(backend)
    assert not rig.script.calls("dcgmStartEmbedded")


def test_an_own_engine_is_given_up_for_a_host_engine(rig: Rig) -> None:
    """B08: two engines would fight for the profiling hardware."""
    backend = rig.backend()
    backend.sample()
    rig.engine_answers = True
    sample = rig.next_sample(backend, 31)
    assert (sample.seen, rig.script.calls("dcgmConnect_v2")) == (8, ["localhost:5555 unix=0 timeout=3000"])


def test_something_else_on_the_port_is_not_a_host_engine(rig: Rig) -> None:
    backend = rig.backend()
    backend.sample()
    rig.engine_answers = True
    rig.script.say("fail dcgmConnect_v2 -21 0")
    assert rig.next_sample(backend, 31).seen == 8
    assert rig.next_sample(backend, 31).seen == 8
    assert len(rig.script.calls("dcgmStartEmbedded")) == 2


def test_values_older_than_two_intervals_are_dropped(rig: Rig) -> None:
    """B09: at 10 s a value of 20 s ago is one, of 22 s ago is none."""
    rig.script.say("gpus 2", "age 0 155 20000000", "age 1 155 22000000")
    sample = rig.backend().sample()
    assert "gpu_power_draw" in of(sample, 0).values
    assert "gpu_power_draw" not in of(sample, 1).values
    assert of(sample, 1).values["dcgm_error"] == 1


def test_a_value_whose_status_is_not_ok_is_none(rig: Rig) -> None:
    """B02: whatever number stands in it."""
    rig.script.say("gpus 1", "value 0 155 !-15 400", "value 0 100 !-6 1000")
    sample = rig.backend().sample()
    assert not {"gpu_power_draw", "gpu_frequency_mhz"} & set(of(sample, 0).values)
    assert sample.blank_values == 1
    assert "100 gpu_frequency_mhz" in notices(sample)["dcgm_unsupported_0"]


def test_what_a_call_does_not_fill_is_not_taken_from_the_call_before(rig: Rig) -> None:
    """B09."""
    backend = rig.backend()
    for _ in range(2):  # the first reads slow fields too, with other values in the same places
        backend.sample()
    rig.script.say("fills 10")
    sample = backend.sample()
    assert of(sample, 0).values["gpu_power_draw"] == 412.5
    assert "sm_active_ratio" not in of(sample, 0).values
    assert sample.seen == 8
    assert "gpu_power_draw" not in of(sample, 1).values


def test_a_field_that_makes_a_call_fail_costs_only_itself(rig: Rig) -> None:
    """B01: an engine that answers 'unspecified error' to the whole list."""
    rig.script.say("gpus 2", "odd 155", "odd 310")
    sample = rig.backend().sample()
    for gpu in (0, 1):
        reading = of(sample, gpu)
        assert reading.is_up
        assert "gpu_power_draw" not in reading.values
        assert "ecc_corrected_errors" not in reading.counters
        assert reading.values["gpu_frequency_mhz"] == 1980
        assert (reading.values["gpu_blank_values"], reading.values["dcgm_error"]) == (2, 1)


def test_no_call_asks_for_more_than_an_old_engine_can_answer(rig: Rig) -> None:
    """B11: 12 GPUs with seven instances each; engines before 3.1 have room for 16 kB an answer, and a group for 64 entities."""
    rig.script.say("gpus 12", *(f"gi {gpu} {gpu * 7 + part} {part}" for gpu in range(12) for part in range(7)))
    sample = rig.backend("53", "50", "203", "314", *map(str, range(1001, 1013))).sample()
    assert (len(sample.readings), sample.blank_values) == (96, 0)
    assert not rig.script.calls("too_much")
    assert all("sm_active_ratio" in reading.values for reading in sample.readings)


def test_a_lost_gpu_is_down_and_missed_and_its_peers_go_on(rig: Rig) -> None:
    backend = rig.backend()
    backend.sample()
    rig.script.say("absent 3")
    sample = rig.next_sample(backend)
    lost = of(sample, 3)
    assert (lost.is_up, lost.uuid, lost.values) == (False, "GPU-00000003-0000-0000-0000-000000000000", {})
    assert "no longer lists it" in lost.error
    assert (sample.expected, sample.seen) == (8, 7)
    assert sum(reading.is_up for reading in sample.readings) == 7
    rig.script.take_back("absent")
    sample = rig.next_sample(backend)
    assert of(sample, 3).is_up
    assert (sample.expected, sample.seen) == (8, 8)
    assert "sm_active_ratio" in of(sample, 3).values


@pytest.mark.parametrize(
    ("code", "words"), [(-18, "the GPU is lost (-18)"), (-19, "the GPU must be reset (-19)")], ids=["lost", "reset"]
)
def test_a_gpu_whose_fields_say_that_it_is_lost_is_down(rig: Rig, code: int, words: str) -> None:
    """While it is still in the list."""
    backend = rig.backend()
    backend.sample()
    rig.script.say(f"status 2 {code}")
    sample = rig.next_sample(backend)
    assert (of(sample, 2).is_up, of(sample, 2).error, of(sample, 2).values) == (False, words, {})
    assert (sample.seen, sample.expected, of(sample, 1).is_up) == (7, 8, True)


def test_a_gpu_that_a_group_does_not_take_is_down(rig: Rig) -> None:
    rig.script.say("refuse 2")
    sample = rig.backend().sample()
    assert (of(sample, 2).is_up, of(sample, 2).error) == (False, "the GPU is lost (-18)")
    assert (sample.seen, of(sample, 1).is_up) == (7, True)


def test_without_any_gpu_another_backend_is_for_it(rig: Rig) -> None:
    rig.script.say("gpus 0")
    with pytest.raises(SourceUnavailable, match="supports no GPU of this machine: use --gpu_backend=nvml"):
        rig.backend()


def test_an_added_gpu_is_watched(rig: Rig) -> None:
    rig.script.say("gpus 2")
    backend = rig.backend()
    assert backend.sample().seen == 2
    rig.script.say("gpus 2")
    rig.script.take_back("gpus")
    rig.script.say("gpus 3")
    sample = rig.next_sample(backend)
    assert (sample.expected, sample.seen) == (3, 3)
    assert of(sample, 2).values["gpu_power_draw"] == 412.5


def test_the_bus_says_how_many_gpus_there_should_be(rig: Rig, host_tree: HostTree) -> None:
    """B11 of the whole machine: one never came up. A bridge, a sound card, and one that a virtual machine has do not count."""
    for slot, (vendor, kind, driver) in enumerate(
        (
            *[("0x10de", "0x030200", "nvidia")] * 9,
            ("0x10de", "0x030000", ""),
            ("0x10de", "0x030200", "vfio-pci"),
            ("0x10de", "0x040300", "snd_hda_intel"),
            ("0x10de", "0x068000", "nvswitch"),
            ("0x1002", "0x030200", "amdgpu"),
        )
    ):
        folder = f"sys/bus/pci/devices/0000:{slot:02x}:00.0"
        host_tree.write(f"{folder}/vendor", vendor + "\n")
        host_tree.write(f"{folder}/class", kind + "\n")
        if driver:
            (host_tree.root / folder / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    sample = rig.backend("203").sample()
    assert (sample.expected, sample.seen) == (10, 8)


def test_a_card_in_the_place_of_another_replaces_it(rig: Rig) -> None:
    backend = rig.backend("203")
    backend.sample()
    rig.script.say("absent 7", "gpus 9", "value 8 57 00000000:08:00.0", "value 8 54 GPU-new")
    sample = rig.next_sample(backend)
    assert [reading.device for reading in sample.readings] == [*"01234568"]
    assert (sample.expected, sample.seen) == (8, 8)


@pytest.mark.parametrize("code", [-3, -8, -11])
def test_a_first_watch_that_fails_is_tried_again(rig: Rig, code: int) -> None:
    """B15: a race at boot."""
    rig.script.say(f"fail dcgmWatchFields {code} 1")
    assert rig.backend().sample().seen == 8


def test_a_watch_that_never_works_is_an_error_with_a_remedy(rig: Rig) -> None:
    """B15: not fatal to anything but this source."""
    rig.script.say("fail dcgmGroupCreate -3 0")
    with pytest.raises(SourceUnavailable, match="nothing can be watched"):
        rig.backend()
    rig.script.take_back("fail")
    backend = rig.backends[0]
    backend.open()
    assert backend.sample().seen == 8


def test_a_field_that_the_engine_refuses_costs_only_itself(rig: Rig) -> None:
    """B01: found in a list of dozens by halving it."""
    rig.script.say("unwatchable 155", "unwatchable 310")
    sample = rig.backend().sample()
    reading = of(sample, 0)
    assert "gpu_power_draw" not in reading.values
    assert "ecc_corrected_errors" not in reading.counters
    assert reading.values["gpu_frequency_mhz"] == 1980
    assert reading.counters["ecc_uncorrected_errors"] == 1
    assert notices(sample)["dcgm_refused"].endswith("does not watch field 155, 310")
    assert reading.values["dcgm_error"] == 0


def test_nothing_is_left_in_the_engine_however_often_devices_change(rig: Rig) -> None:
    """An engine has room for 64 groups."""
    rig.script.say("gi 0 1 3")
    backend = rig.backend()
    for round_number in range(40):
        rig.script.take_back("absent")
        if round_number % 2:
            rig.script.say("absent 7")
        assert rig.next_sample(backend).seen == 8 - round_number % 2
    backend.close()
    backend.open()
    assert backend.sample().seen == 7


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from((50, 54, 55, 67, 100, 112, 155, 156, 203, 240, 252, 390, 391, 400, 410, 1001, 1002, 1009)),
            st.integers(-(2**63), 2**63 - 1).map(str)
            | st.floats(allow_nan=True, allow_infinity=True).map(str)
            | st.sampled_from(("blank", "not_supported", "nodata", "blank32", "<<<ODD>>>", "text", "")),
        ),
        max_size=12,
    )
)
def test_no_value_of_any_kind_brings_it_down(rig: Rig, said: list[tuple[int, int, str]]) -> None:
    """Whatever an engine answers, no blank gets through and the other GPU is not touched."""
    for beginning in ("value", "gpus"):
        rig.script.take_back(beginning)
    rig.script.say("gpus 3", *(f"value {gpu} {field} {value}" for gpu, field, value in said))
    backend = rig.backend()
    sample = backend.sample()
    backend.close()
    assert of(sample, 2).values["gpu_power_draw"] == 412.5
    for reading in sample.readings:
        for key in ("gpu_power_draw", "sm_active_ratio", "gpu_frequency_mhz"):
            value = reading.values.get(key, 0)
            assert isinstance(value, int | float)
            assert value < 140737488355328 or key == "gpu_frequency_mhz"
            assert value < 9223372036854775792
