"""What can be scraped, and what leaves, when records come and stay away."""

import math
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.prometheus import Scraped

RX = "dynolog_network_receive_bytes_total"


def test_deltas_become_true_counters_since_the_start() -> None:
    scraped = Scraped()
    for grown in (100, 0, 23):
        scraped.put(network={"rx_bytes.eth0": grown, "rx_bytes.eth1": 1}, cpu={"cpu_u_ms": 10})
    samples = scraped.samples()
    assert samples[f'{RX}{{device="eth0"}}'] == 123
    assert samples[f'{RX}{{device="eth1"}}'] == 3
    assert samples["dynolog_cpu_user_seconds_total"] == 0.03


def test_gauges_and_ratios_are_the_last_ones_in_base_units() -> None:
    scraped = Scraped()
    scraped.put(cpu={"cpu_util": 10.0}, memory={"mem_used_bytes": 1})
    scraped.put(cpu={"cpu_util": 25.0}, memory={"mem_used_bytes": 2**40})
    assert scraped.samples()["dynolog_cpu_utilization_ratio"] == 0.25
    assert scraped.samples()["dynolog_memory_used_bytes"] == 2**40


def test_the_dynolog_style_has_the_values_of_the_log_as_gauges() -> None:
    scraped = Scraped("dynolog")
    scraped.put(network={"rx_bytes.eth0": 100}, cpu={"cpu_util": 10.0, "cpu_u_node1": 5.0, "cpu_u.cpu7": 2.0})
    scraped.put(network={"rx_bytes.eth0": 40}, cpu={"cpu_util": 12.5, "cpu_u_node1": 5.0, "cpu_u.cpu7": 2.0})
    samples = scraped.samples()
    assert samples['rx_bytes{host_name="h",net="eth0"}'] == 40
    assert samples['cpu_util{host_name="h"}'] == 12.5
    assert samples['cpu_u_node{host_name="h",node="1"}'] == 5
    assert samples['cpu_u_cpu{cpu="7",host_name="h"}'] == 2
    assert {family.type for name, family in scraped.families().items() if name == "rx_bytes"} == {"gauge"}


def test_a_reset_device_keeps_its_total() -> None:
    """The collector gives no delta for the round in which a counter went down."""
    scraped = Scraped()
    scraped.put(network={"rx_bytes.eth0": 100, "link_up.eth0": 1})
    scraped.put(network={"link_up.eth0": 1})
    assert scraped.samples()[f'{RX}{{device="eth0"}}'] == 100
    scraped.put(network={"rx_bytes.eth0": 5, "link_up.eth0": 1})
    assert scraped.samples()[f'{RX}{{device="eth0"}}'] == 105


@pytest.mark.parametrize(("style", "expected"), [("standard", 150), ("dynolog", 7)])
def test_counters_go_on_after_a_reload_also_of_devices_that_are_away(style: str, expected: int) -> None:
    """With the names of the log they are gauges, which begin with what comes."""
    first, second = Scraped(), Scraped(style)
    first.put(network={"rx_bytes.eth0": 100, "rx_bytes.eth1": 43})
    for _ in range(4):
        first.put(network={"rx_bytes.eth1": 25})
    second.store.take_over(first.store)
    assert not any("eth" in line for line in second.samples()), "what does not come is not shown"
    second.put(network={"rx_bytes.eth0": 1, "rx_bytes.eth1": 7})
    samples = {line: value for line, value in second.samples().items() if "eth" in line}
    assert sorted(samples.values()) == sorted((101 if style == "standard" else 1, expected))


def test_a_device_that_has_gone_leaves_within_three_rounds_and_goes_on_from_its_total_when_it_returns() -> None:
    scraped = Scraped()
    scraped.put(network={"rx_bytes.eth0": 100, "link_up.eth0": 1, "rx_bytes.eth1": 1})
    rounds = 0
    while f'{RX}{{device="eth0"}}' in scraped.samples():
        scraped.put(network={"rx_bytes.eth1": 1})
        rounds += 1
        assert 'dynolog_network_link_up{device="eth0"}' not in scraped.samples(), (
            "a gauge that is not known leaves at once"
        )
    assert rounds == 3
    assert scraped.samples()[f'{RX}{{device="eth1"}}'] == 4
    scraped.put(network={"rx_bytes.eth0": 7, "rx_bytes.eth1": 1})
    assert scraped.samples()[f'{RX}{{device="eth0"}}'] == 107


def test_a_counter_whose_device_stays_but_which_is_not_given_any_more_leaves_after_five_minutes() -> None:
    scraped = Scraped()
    scraped.put(network={"carrier_changes.eth0": 1, "rx_bytes.eth0": 0}, every_s=60)
    for _ in range(4):
        scraped.put(network={"rx_bytes.eth0": 0}, every_s=60)
    assert 'dynolog_network_carrier_changes_total{device="eth0"}' in scraped.samples()
    scraped.put(network={"rx_bytes.eth0": 0}, every_s=60)
    assert 'dynolog_network_carrier_changes_total{device="eth0"}' not in scraped.samples()


def test_a_value_ages_with_the_interval_of_its_own_collector() -> None:
    scraped = Scraped()
    scraped.put(disk={"disk_in_flight.sda": 2}, every_s=10)
    scraped.clock.move(1)
    scraped.put(memory={"mem_used_bytes": 1}, every_s=1)
    scraped.clock.move(2.9)
    assert "dynolog_memory_used_bytes" in scraped.samples()
    scraped.clock.move(0.2)
    assert "dynolog_memory_used_bytes" not in scraped.samples()
    assert 'dynolog_disk_in_flight{device="sda"}' in scraped.samples()
    scraped.clock.move(26)
    assert 'dynolog_disk_in_flight{device="sda"}' not in scraped.samples()


def test_a_stalled_collector_ages_alone() -> None:
    scraped = Scraped()
    scraped.put(disk={"disk_in_flight.sda": 2}, memory={"mem_used_bytes": 1})
    for _ in range(4):
        scraped.clock.move(1)
        scraped.put(memory={"mem_used_bytes": 1})
        assert scraped.samples()['dynolog_source_up{source="kernel"}'] == 1
    assert 'dynolog_disk_in_flight{device="sda"}' not in scraped.samples()
    assert "dynolog_memory_used_bytes" in scraped.samples()


def test_a_source_is_down_only_when_it_is_late_itself() -> None:
    """A collector about to go stale must not make a source look down that reported a tenth of a second ago."""
    scraped = Scraped()
    scraped.put(disk={"disk_in_flight.sda": 2}, memory={"mem_used_bytes": 1})
    scraped.clock.move(2.9)
    scraped.put(memory={"mem_used_bytes": 1})
    scraped.clock.move(0.2)
    assert scraped.samples()['dynolog_source_up{source="kernel"}'] == 1


def test_a_stale_source_leaves_but_for_the_sign_that_it_is_down() -> None:
    scraped = Scraped()
    scraped.put(network={"rx_bytes.eth0": 100}, own={"dynolog_threads": 4})
    assert scraped.samples()['dynolog_source_up{source="kernel"}'] == 1
    scraped.clock.move(3.1)
    assert set(scraped.samples()) == {
        'dynolog_source_up{source="kernel"}',
        'dynolog_source_last_report_timestamp_seconds{source="kernel"}',
        *(name for name in scraped.samples() if name.startswith("dynolog_build_info")),
    }
    assert scraped.samples()['dynolog_source_up{source="kernel"}'] == 0
    assert scraped.samples()['dynolog_source_last_report_timestamp_seconds{source="kernel"}'] == 1_700_000_000
    scraped.put(network={"rx_bytes.eth0": 1})
    assert scraped.samples()['dynolog_source_up{source="kernel"}'] == 1
    assert scraped.samples()[f'{RX}{{device="eth0"}}'] == 101, "a stall of the source loses no total"


def test_gpus_are_told_apart_and_carry_the_labels_of_their_record() -> None:
    scraped = Scraped()
    for device in ("0", "1"):
        scraped.put(
            "gpu", labels={"device": device, "job_id": "90210_2"}, whole={"gpu_power_draw": 300.0 + int(device)}
        )
    assert scraped.samples()['dynolog_gpu_power_draw_watts{device="1",job_id="90210_2"}'] == 301
    scraped.put("gpu", labels={"device": "1", "job_id": "90211"}, whole={"gpu_power_draw": 100.0})
    samples = scraped.samples()
    assert samples['dynolog_gpu_power_draw_watts{device="1",job_id="90211"}'] == 100
    assert 'dynolog_gpu_power_draw_watts{device="1",job_id="90210_2"}' not in samples
    assert samples['dynolog_gpu_power_draw_watts{device="0",job_id="90210_2"}'] == 300


def test_a_source_that_does_not_say_its_interval_ages_by_the_stamps_of_its_records() -> None:
    """A queue may have held records up, so that they come at once; and a clock that was set back says nothing."""
    scraped = Scraped()
    for wall_s in (1000, 1010, 400):
        scraped.put("plugin", labels={"device": "0"}, wall_s=wall_s, whole={"watts": 300.0})
    scraped.clock.move(29)
    assert 'dynolog_watts{device="0"}' in scraped.samples()
    scraped.clock.move(2)
    assert 'dynolog_watts{device="0"}' not in scraped.samples()
    assert scraped.samples()['dynolog_source_up{source="plugin"}'] == 0


def test_a_field_that_a_gpu_does_not_give_any_more_leaves_at_once() -> None:
    scraped = Scraped()
    scraped.put("gpu", labels={"device": "0"}, gpu={"gpu_power_draw": 300.0, "sm_occupancy": 0.5})
    scraped.put("gpu", labels={"device": "0"}, gpu={"gpu_power_draw": 300.0})
    assert 'dynolog_gpu_sm_occupancy_ratio{device="0"}' not in scraped.samples()
    assert 'dynolog_gpu_power_draw_watts{device="0"}' in scraped.samples()


def test_text_is_a_label_of_an_info_and_never_a_sample() -> None:
    """F03: `N/A` where a number belongs costs that sample only."""
    scraped = Scraped()
    scraped.put(uptime={"boot_id": "b-1", "uptime": "N/A"}, cpu={"cpu_util": ""}, memory={"mem_used_bytes": 1})
    samples = scraped.samples()
    assert samples['dynolog_boot_info{boot_id="b-1"}'] == 1
    assert "dynolog_host_uptime_seconds" not in samples
    assert "dynolog_cpu_utilization_ratio" not in samples
    assert samples["dynolog_memory_used_bytes"] == 1
    scraped.put(uptime={"boot_id": "b-2", "uptime": 5})
    assert scraped.samples()['dynolog_boot_info{boot_id="b-2"}'] == 1
    assert 'dynolog_boot_info{boot_id="b-1"}' not in scraped.samples()
    assert scraped.samples()["dynolog_host_uptime_seconds"] == 5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "7", -3])
def test_what_is_not_a_number_is_no_sample_and_spoils_no_total(bad: float | str) -> None:
    scraped = Scraped()
    scraped.put(network={"rx_bytes.eth0": 5}, cpu={"cpu_util": 1.0})
    scraped.put(network={"rx_bytes.eth0": bad}, cpu={"cpu_util": math.nan})
    assert scraped.samples()[f'{RX}{{device="eth0"}}'] == 5
    assert "dynolog_cpu_utilization_ratio" not in scraped.samples()


def test_two_names_that_become_one_in_utf8_cost_only_themselves() -> None:
    """Prometheus refuses a whole page with one line twice."""
    scraped = Scraped()
    mounts = {f"filesystem_free_bytes./mnt/{os.fsdecode(bytes([byte]))}": byte for byte in (0xFE, 0xFF)}
    scraped.put(filesystem=mounts, memory={"mem_used_bytes": 1})
    assert scraped.samples()['dynolog_filesystem_free_bytes{mountpoint="/mnt/\ufffd"}'] == 0xFF
    assert scraped.samples()["dynolog_memory_used_bytes"] == 1


def test_a_key_that_nothing_declares_is_a_gauge_with_a_legal_name() -> None:
    scraped = Scraped()
    scraped.put(memory={"processcount_?": 4, "mem_used_bytes": 1})
    assert scraped.samples()["dynolog_processcount__"] == 4
    for _ in range(2):
        scraped.put(cpu={"cpu_util": 1.0})
    assert "dynolog_processcount__" in scraped.samples(), "which round should have had it cannot be told"
    scraped.put(cpu={"cpu_util": 1.0})
    assert "dynolog_processcount__" not in scraped.samples()


def test_devices_that_come_and_go_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynolog.exporters.prometheus.series._MOST_DEPARTED", 50)
    scraped = Scraped()
    for number in range(300):
        scraped.put(network={f"rx_bytes.veth{number}": 1})
    assert len(scraped.store._departed) == 50
    group = scraped.store._groups["kernel", ""]
    assert len(group.entries) == len(group.parts["network"].samples) == 3


@given(st.lists(st.none() | st.integers(0, 10**6), min_size=1, max_size=30))
def test_a_counter_never_goes_down_whatever_is_missing(deltas: list[int | None]) -> None:
    scraped = Scraped()
    total = 0
    for delta in deltas:
        scraped.put(network={} if delta is None else {"rx_bytes.eth0": delta})
        total += delta or 0
        shown = scraped.samples().get(f'{RX}{{device="eth0"}}')
        assert shown is None or shown == total


def test_records_and_scrapes_at_once_see_whole_reports() -> None:
    """The two values of a report are always seen together."""
    scraped = Scraped()
    done = threading.Event()

    def report() -> None:
        for number in range(300):
            scraped.put(memory={"mem_used_bytes": number, "mem_free_bytes": number})
        done.set()

    thread = threading.Thread(target=report)
    thread.start()
    while not done.is_set():
        samples = scraped.samples()
        assert samples.get("dynolog_memory_used_bytes") == samples.get("dynolog_memory_free_bytes")
    thread.join()
