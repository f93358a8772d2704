"""A flag that does nothing, because what it belongs to is off, is said with the switch that it needs."""

import pytest

from dynolog.daemon.flag_parser import FlagParser
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.idle_flags import idle_flags
from dynolog.daemon.main import main
from dynolog.model.flag import Settings

FLAGS = declared_flags()


def said(*words: str) -> tuple[str, ...]:
    return idle_flags(Settings(FLAGS, FlagParser(FLAGS).parse(list(words)).given))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ipc_fabric_name=mine"], "--ipc_fabric_name has no effect without --enable_ipc_monitor"),
        (
            ["--ipc_socket_dir=/run/x", "--ipc_namespaces"],
            "--ipc_socket_dir and --ipc_namespaces have no effect without --enable_ipc_monitor",
        ),
        (
            ["--enable_ipc_monitor", "--ipc_fabric_name=mine"],
            "--ipc_fabric_name=mine: PyTorch looks for dynolog, so no process can register: leave it out, or add --ipc_socket_dir",
        ),
        (["--prometheus_port=9100"], "--prometheus_port has no effect without --use_prometheus"),
        (["--access_token_file=/t"], "--access_token_file has no effect without --use_ODS or --use_scuba"),
        (["--perf_metrics=ipc"], "--perf_metrics has no effect without --enable_perf_monitor"),
        (["--dcgm_fields=100"], "--dcgm_fields has no effect without --enable_gpu_monitor"),
        (["--rdma_devices=mlx5_0"], "--rdma_devices has no effect without --enable_rdma_monitor"),
        (
            ["--noenable_disk_collector", "--disk_interval_s=5"],
            "--disk_interval_s has no effect without --enable_disk_collector",
        ),
        (
            ["--enable_pod_resources_attribution"],
            "--enable_pod_resources_attribution has no effect without --enable_gpu_monitor or --enable_tpu_monitor",
        ),
        (
            ["--pod_resources_socket=/s", "--enable_gpu_monitor"],
            "--pod_resources_socket has no effect without --enable_pod_resources_attribution",
        ),
    ],
)
def test_it_says_which_switch_is_off(words: list[str], sentence: str) -> None:
    assert said(*words) == (sentence,)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--noipc_namespaces", "--prometheus_port=8080"],  # as they are without being said
        ["--enable_ipc_monitor", "--ipc_socket_dir=/run/x", "--ipc_fabric_name=mine"],
        ["--use_prometheus", "--prometheus_port=9100"],
        ["--use_scuba", "--access_token_file=/t"],
        ["--log_format=json", "--disk_interval_s=5", "--per_cpu", "--exporter_queue_mb=2"],
        ["--enable_tpu_monitor", "--env_attribution_mappings_file=/m"],
    ],
)
def test_nothing_is_said_of_flags_that_do_something(words: list[str]) -> None:
    assert said(*words) == ()


def test_check_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--prometheus_port=9100"]) == 0
    assert capsys.readouterr().out == "--prometheus_port has no effect without --use_prometheus\nthe flags are fine\n"
