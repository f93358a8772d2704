"""Command lines and flag files made for the original Dynolog go on working."""

import pytest

from dynolog.daemon.flag_parser import FlagParser
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.main import not_built
from dynolog.model.flag import FlagValue, Settings

# As they are written in service files; those of glog, which the original links, at the end.
ORIGINAL = [
    ("--port=1778", "port", 1778),
    ("--kernel_monitor_reporting_interval_s=10", "kernel_monitor_reporting_interval_s", 10),
    ("--reporting_interval_s=10", "kernel_monitor_reporting_interval_s", 10),
    ("--perf_monitor_reporting_interval_s=5", "perf_monitor_reporting_interval_s", 5),
    ("--dcgm_reporting_interval_s=10", "dcgm_reporting_interval_s", 10),
    ("--dcgm_lib_path=/usr/lib/libdcgm.so", "dcgm_lib_path", "/usr/lib/libdcgm.so"),
    ("--dcgm_fields=100,155", "dcgm_fields", "100,155"),
    ("--enable_ipc_monitor", "enable_ipc_monitor", True),
    ("--enable_gpu_monitor", "enable_gpu_monitor", True),
    ("--enable_perf_monitor", "enable_perf_monitor", True),
    ("--enable_rdma_monitor", "enable_rdma_monitor", True),
    ("--rdma_monitor_reporting_interval_s=30", "rdma_monitor_reporting_interval_s", 30),
    ("--filter_nic_interfaces", "filter_nic_interfaces", True),
    ("--allow_interface_prefixes=eno,ens", "allow_interface_prefixes", "eno,ens"),
    ("--use_JSON", "use_JSON", True),
    ("--nouse_JSON", "use_JSON", False),
    ("--use_prometheus", "use_prometheus", True),
    ("--use_fbrelay", "use_fbrelay", True),
    ("--fbrelay_address=127.0.0.1", "fbrelay_address", "127.0.0.1"),
    ("--fbrelay_port=10000", "fbrelay_port", 10000),
    ("--use_ODS", "use_ODS", True),
    ("--use_scuba", "use_scuba", True),
    ("--ods_entity_prefix=rack1.", "ods_entity_prefix", "rack1."),
    ("--logtostderr=1", "logtostderr", True),
    ("--alsologtostderr", "alsologtostderr", True),
    ("--minloglevel=1", "minloglevel", 1),
    ("--log_dir=/var/log", "log_dir", "/var/log"),
    ("-v=2", "v", 2),
    ("--vmodule=IPCMonitor=2", "vmodule", "IPCMonitor=2"),
    ("--stderrthreshold=0", "stderrthreshold", 0),
    ("--max_log_size=100", "max_log_size", 100),
    ("--stop_logging_if_full_disk", "stop_logging_if_full_disk", True),
    ("--nolog_prefix", "log_prefix", False),
]


@pytest.mark.parametrize(("argument", "name", "value"), ORIGINAL)
def test_a_flag_of_the_original_parses(argument: str, name: str, value: FlagValue) -> None:
    assert FlagParser(declared_flags()).parse([argument]).given == {name: value}


def test_one_without_effect_says_so_when_it_is_set() -> None:
    flags = declared_flags()
    said = not_built(flags, Settings(flags, FlagParser(flags).parse(["--log_dir=/var/log", "--v=1"]).given))
    assert [sentence.partition(":")[0] for sentence in said] == [
        "--log_dir has no effect here",
        "--v has no effect here",
    ]
    assert "--log_file" in said[0]
