"""`dyno gpus`: what is known of each device, what is wrong with it in words, and why there may be none."""

import pytest

from dynolog.cli.gpus.health import health
from dynolog.cli.gpus.table import gpu_rows, gpus_table, no_gpus, source_lines
from dynolog.model.gpu import ProfilingState
from dynolog.model.gpu_view import GpuDevice, GpuStatus, GpuUse
from dynolog.rpc.messages import GpusReply

NOW_S = 1_700_000_000.0
NOW_NS = 1_700_000_000_000_000_000


def device(number: str = "0", **fields: object) -> GpuDevice:
    made: dict[str, object] = {"subject": number, "labels": {"device": number}, "values": {}}
    return GpuDevice(**(made | fields))  # type: ignore[arg-type] # what a test says


def reply(*devices: GpuDevice) -> GpusReply:
    return GpusReply(gpu=GpuStatus(enabled=True), devices=devices, wall_ns=NOW_NS)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "ok"),
        ({"xid_last_seen_timestamp.79": NOW_S - 185}, "Xid 79 3 min 5 s ago"),
        ({"xid_last_seen_timestamp.31": NOW_S - 86_401}, "ok"),
        (
            {"gpu_throttle_active.hw_power_brake": 1, "gpu_throttle_ms.thermal": 20},
            "throttled: hw power brake, thermal",
        ),
        ({"gpu_throttle_active.app_clocks": 1, "gpu_throttle_ms.low_utilization": 9, "gpu_throttle_ms.power": 0}, "ok"),
        ({"pcie_link_width": 8, "pcie_link_width_max": 16}, "PCIe x8 of x16"),
        ({"pcie_link_width": 16, "pcie_link_width_max": 16, "pcie_link_generation": 1}, "ok"),  # idle
        ({"nvlink_is_up.2": 0, "nvlink_is_up.10": 0, "nvlink_is_up.1": 1}, "NVLink down: 2, 10"),
        ({"row_remap_pending": 1}, "a memory row waits for a reset to be replaced"),
        ({"row_remap_failure": 1}, "a memory row could not be replaced: exchange the device"),
        ({"gpu_suspect": 1}, "profiling counters read 0 while it is busy"),
        ({"gpu_power_draw": "N/A"}, "ok"),
    ],
)
def test_health_in_words(values: dict[str, float], words: str) -> None:
    assert health(device(values=values), NOW_S) == words


def test_errors_that_ecc_could_not_correct_count_since_the_driver_started() -> None:
    hurt = device(counters={"ecc_uncorrected_errors": 2, "ras_errors_uncorrected.umc": 1})
    assert health(hurt, NOW_S) == "ECC: 3 uncorrected errors"


def test_all_that_is_wrong_is_said_the_worst_first() -> None:
    xids = {f"xid_last_seen_timestamp.{code}": NOW_S - code for code in (13, 31, 48, 63, 79)}
    lost = device(is_up=False, error="GPU is lost", values={**xids, "pcie_link_width": 4, "pcie_link_width_max": 16})
    assert health(lost, NOW_S) == (
        "lost: GPU is lost; Xid 13 13 s ago; Xid 31 31 s ago; Xid 48 48 s ago; 2 other Xids; PCIe x4 of x16"
    )
    assert health(device(is_up=False), NOW_S) == "lost"


def test_a_row_has_what_is_known() -> None:
    values = {
        "gpu_device_utilization": 97,
        "gpu_memory_used_bytes": 12_340_000_000,
        "gpu_memory_total_bytes": 141_000_000_000,
        "gpu_power_draw": 650.4,
        "gpu_power_limit": 700,
        "gpu_frequency_mhz": 1980,
        "gpu_temperature_celsius": 61,
    }
    uses = (
        GpuUse(labels={"job_id": "90210_2", "username": "ada"}, pids=(30, 7)),
        GpuUse(labels={"pod_name": "train-0", "pod_namespace": "ml"}, pids=(8,)),
    )
    (row,) = gpu_rows(reply(device(values=values, labels={"device": "0", "gpu_name": "NVIDIA H200"}, uses=uses)))
    assert row == (
        *("0", "NVIDIA H200", "97 %", "12.3/141.0 GB", "650/700 W", "1980 MHz", "61 °C", "ok"),
        *("90210_2, ml/train-0", "ada", "7,8,30"),
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert gpu_rows(reply(device()))[0] == ("0", *["-"] * 6, "ok", "-", "-", "-")


def test_a_job_may_be_known_without_its_processes() -> None:
    """Pods are known to the kubelet before they start anything."""
    labels = {"device": "0", "pod_namespace": "ml", "pod_name": "train-0"}
    assert gpu_rows(reply(device(labels=labels)))[0][8:] == ("ml/train-0", "-", "-")


def test_instances_stand_below_their_device_and_devices_by_number() -> None:
    def instance(number: str, gi: str) -> GpuDevice:
        labels = {"device": number, "gpu_instance_id": gi, "compute_instance_id": "0"}
        return device(number, labels=labels, values={"graphics_engine_active_ratio": 0.5})

    rows = gpu_rows(reply(device("10"), instance("2", "9"), device("2"), instance("2", "1")))
    assert [row[0] for row in rows] == ["2", "  2/gi1/ci0", "  2/gi9/ci0", "10"]
    assert rows[1][2] == "50 %"


def test_many_processes_are_counted() -> None:
    uses = (GpuUse(pids=tuple(range(100, 120))),)
    assert gpu_rows(reply(device(uses=uses)))[0][10] == "100,101,102,103,104,105 +14"


def test_many_jobs_and_users_are_counted() -> None:
    """A device that hundreds share must not push the table off the screen; `--json` has them all."""
    uses = tuple(GpuUse(labels={"job_id": str(number), "username": f"u{number % 5}"}) for number in range(10, 310))
    row = gpu_rows(reply(device(uses=uses)))[0]
    assert row[8:10] == ("10, 11, 12, 13 +296", "u0, u1, u2, u3 +1")


def test_names_from_outside_steer_no_terminal() -> None:
    text = gpus_table(reply(device(labels={"device": "0", "gpu_name": "\x1b[31mred"})), None)
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        (
            GpuStatus(enabled=True, backend="nvml", notes=("GPUs are read with nvml",), driver_version="570.1"),
            "driver 570.1",
        ),
        (GpuStatus(enabled=True, why="nvml: crashed"), "GPUs are not read now: nvml: crashed"),
        (GpuStatus(enabled=True, expected=8, seen=7), "7 of 8 GPUs answer"),
        (GpuStatus(enabled=True, paused_until_wall_ns=NOW_NS + 60 * 10**9), "Profiling is paused for 1 min 0 s more"),
        (
            GpuStatus(enabled=True, profiling=ProfilingState.TAKEN, profiling_why="dcgm-exporter may hold it"),
            "The profiling hardware is taken: dcgm-exporter may hold it",
        ),
        (GpuStatus(enabled=True, profiling_why="this device has none"), "Profiling: this device has none"),
    ],
)
def test_the_source_tells_what_it_is_and_what_is_wrong(gpu: GpuStatus, said: str) -> None:
    assert said in "\n".join(source_lines(gpu, NOW_NS))


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        (GpuStatus(enabled=False), "--enable_gpu_monitor"),
        (GpuStatus(enabled=True, why="GPUs: no backend works here"), "No GPU is read: GPUs: no backend works here"),
        (GpuStatus(enabled=True, backend="nvml"), "nvml finds no GPU"),
        (GpuStatus(enabled=True, backend="nvml", expected=2), "No sample"),
    ],
)
def test_why_there_is_none(gpu: GpuStatus, said: str) -> None:
    assert said in no_gpus(gpu)
