"""hwmon sensors on hand-made files."""

import pytest

from dynolog.collectors.sensors import SensorsCollector
from dynolog.model.errors import SourceUnavailable
from fakes.collector_context import HostTree
from fakes.measure import measure

HWMON = "sys/class/hwmon/hwmon"


def test_temperature_fan_and_power_by_chip_and_label(host_tree: HostTree) -> None:
    before = {
        f"{HWMON}0/name": "k10temp\n",
        f"{HWMON}0/temp1_label": "Tctl\n",
        f"{HWMON}0/temp1_input": "40000\n",
        f"{HWMON}1/name": "nct6775\n",
        f"{HWMON}1/fan2_input": "900\n",
        f"{HWMON}1/power1_average": "1\n",
        f"{HWMON}1/lower_something/temp1_input": "5\n",
    }
    after = {
        f"{HWMON}0/temp1_input": "45125\n",
        f"{HWMON}1/fan2_input": "1200\n",
        f"{HWMON}1/power1_average": "2500000\n",
    }
    assert measure(host_tree, SensorsCollector, before, after) == {
        "sensor_temperature_celsius.k10temp/Tctl": 45.125,
        "sensor_fan_rpm.nct6775/fan2": 1200,
        "sensor_power_watts.nct6775/power1": 2.5,
    }


def test_two_chips_of_one_name_are_told_apart_by_their_device(host_tree: HostTree) -> None:
    files = {}
    for socket in (0, 1):
        files[f"{HWMON}{socket}/name"] = "coretemp\n"
        files[f"{HWMON}{socket}/temp1_label"] = f"Package id {socket}\n"
        files[f"{HWMON}{socket}/temp2_label"] = "Core 0\n"
        files[f"{HWMON}{socket}/temp1_input"] = f"5{socket}000\n"
        files[f"{HWMON}{socket}/temp2_input"] = f"6{socket}000\n"
        host_tree.write(f"{HWMON}{socket}/name", "coretemp\n")
        (host_tree.root / f"{HWMON}{socket}/device").symlink_to(f"../../../devices/platform/coretemp.{socket}")
    assert measure(host_tree, SensorsCollector, files, {}) == {
        "sensor_temperature_celsius.coretemp.0/Package_id_0": 50,
        "sensor_temperature_celsius.coretemp.1/Package_id_1": 51,
        "sensor_temperature_celsius.coretemp.0/Core_0": 60,
        "sensor_temperature_celsius.coretemp.1/Core_0": 61,
    }


def test_one_label_twice_gives_two_series(host_tree: HostTree) -> None:
    files = {f"{HWMON}3/name": "chip\n"}
    for channel in (1, 2):
        files |= {f"{HWMON}3/temp{channel}_label": "T\n", f"{HWMON}3/temp{channel}_input": f"{channel}000\n"}
    assert measure(host_tree, SensorsCollector, files, {}) == {
        "sensor_temperature_celsius.chip/T": 1,
        "sensor_temperature_celsius.chip/T_hwmon3_temp2": 2,
    }


def test_a_faulty_vanished_or_garbled_sensor_is_missing_and_a_new_chip_is_seen(host_tree: HostTree) -> None:
    before = {f"{HWMON}0/name": "chip\n"} | {f"{HWMON}0/temp{n}_input": f"{n}000\n" for n in (1, 2, 3, 4)}
    before[f"{HWMON}0/temp1_fault"] = "0\n"
    after = {
        f"{HWMON}0/temp1_fault": "1\n",
        f"{HWMON}0/temp2_input": None,
        f"{HWMON}0/temp3_input": "N/A\n",
        f"{HWMON}9/name": "nvme\n",
        f"{HWMON}9/temp1_input": "33850\n",
    }
    assert measure(host_tree, SensorsCollector, before, after) == {
        "sensor_temperature_celsius.chip/temp4": 4,
        "sensor_temperature_celsius.nvme/temp1": 33.85,
    }


def test_disks_are_not_kept_spinning(host_tree: HostTree) -> None:
    with pytest.raises(SourceUnavailable, match="no sensor"):
        measure(host_tree, SensorsCollector, {f"{HWMON}0/name": "drivetemp\n", f"{HWMON}0/temp1_input": "30000\n"}, {})
