"""Flags of the public Dynolog whose parts are not in this version: they parse, and say so at start.

When a part is built, its flags move to where it is registered.
"""

from dynolog.model.flag import Flag, FlagValue

_PMU = "CPU performance counters are not in this version yet"
_GPU = "GPU metrics are not in this version yet"
_EXPORT = "this destination is not in this version yet; records go to the log"
_ATTRIBUTION = "attribution of GPUs to jobs and pods is not in this version yet"
_TLS = "TLS for RPC is not in this version yet"


def _flag(name: str, default: FlagValue, what: str, why: str, section: str) -> Flag:
    return Flag(
        name=name, default=default, help=f"{what} (not built yet)", section=section, not_built=f"--{name}: {why}"
    )


NOT_BUILT_FLAGS = (
    _flag("enable_perf_monitor", False, "CPU performance counters", _PMU, "collectors"),
    _flag("perf_monitor_reporting_interval_s", 60.0, "seconds between reports of the counters", _PMU, "collectors"),
    _flag("enable_gpu_monitor", False, "GPU metrics", _GPU, "gpu"),
    _flag("dcgm_lib_path", "/lib64/libdcgm.so", "where libdcgm is", _GPU, "gpu"),
    _flag(
        "dcgm_fields",
        "50,54,100,155,204,1001,1002,1003,1004,1005,1006,1007,1008,1009,1010,1011,1012",
        "DCGM fields",
        _GPU,
        "gpu",
    ),
    _flag("dcgm_reporting_interval_s", 10.0, "seconds between GPU reports", _GPU, "gpu"),
    _flag("dcgm_report_interval_s", 10.0, "the same as dcgm_reporting_interval_s", _GPU, "gpu"),
    _flag("dcgm_standalone_address", "", "a running DCGM host engine", _GPU, "gpu"),
    _flag("enable_tpu_monitor", False, "TPU metrics", _GPU, "gpu"),
    _flag("tpu_device_plugin_url", "http://localhost:2112/metrics", "the TPU device plugin", _GPU, "gpu"),
    _flag("tpu_reporting_interval_s", 10.0, "seconds between TPU reports", _GPU, "gpu"),
    _flag(
        "enable_rdma_monitor",
        False,
        "InfiniBand and RoCE counters",
        "RDMA metrics are not in this version yet",
        "collectors",
    ),
    _flag(
        "rdma_monitor_reporting_interval_s",
        60.0,
        "seconds between RDMA reports",
        "RDMA metrics are not in this version yet",
        "collectors",
    ),
    _flag("env_attribution_mappings_file", "", "environment variables that become labels", _ATTRIBUTION, "gpu"),
    _flag("enable_pod_resources_attribution", False, "pod names from the kubelet", _ATTRIBUTION, "gpu"),
    _flag(
        "pod_resources_socket",
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        "the kubelet's socket",
        _ATTRIBUTION,
        "gpu",
    ),
    _flag("pod_resources_gpu_resource", "nvidia.com/gpu", "resource name of GPUs", _ATTRIBUTION, "gpu"),
    _flag("pod_resources_tpu_resource", "google.com/tpu", "resource name of TPUs", _ATTRIBUTION, "gpu"),
    _flag("use_fbrelay", False, "FB relay", _EXPORT, "exporters"),
    _flag("fbrelay_address", "127.0.0.1", "FB relay address", _EXPORT, "exporters"),
    _flag("fbrelay_port", 10000, "FB relay port", _EXPORT, "exporters"),
    _flag("use_udsrelay", False, "relay over a unix socket", _EXPORT, "exporters"),
    _flag("udsrelay_socket_path", "/var/run/dyno-relay-logger.sock", "socket of the relay", _EXPORT, "exporters"),
    _flag("use_ODS", False, "ODS", _EXPORT, "exporters"),
    _flag("category_id", "", "ODS category", _EXPORT, "exporters"),
    _flag("ods_entity_prefix", "", "prefix of ODS entities", _EXPORT, "exporters"),
    _flag("use_scuba", False, "Scuba", _EXPORT, "exporters"),
    _flag("scribe_category", "perfpipe_dynolog_hpc", "Scuba category", _EXPORT, "exporters"),
    _flag("certificate_path", "", "CA bundle for ODS and Scuba", _EXPORT, "exporters"),
    Flag(
        name="access_token",
        default="",
        help="token for ODS and Scuba (not built yet)",
        section="exporters",
        not_built="--access_token: " + _EXPORT,
        secret=True,
    ),
    _flag("certs_dir", "", "certificates of the RPC server", _TLS, "rpc"),
)
