"""Flags of the public Dynolog whose parts are not in this version: they parse, and say so at start.

When a part is built, its flags move to where it is registered.
"""

from dynolog.model.flag import Flag, FlagValue

_ATTRIBUTION = "attribution of GPUs to jobs and pods is not in this version yet"
_TLS = "TLS for RPC is not in this version yet"


def _flag(name: str, default: FlagValue, what: str, why: str, section: str) -> Flag:
    return Flag(
        name=name, default=default, help=f"{what} (not built yet)", section=section, not_built=f"--{name}: {why}"
    )


NOT_BUILT_FLAGS = (
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
    _flag("certs_dir", "", "certificates of the RPC server", _TLS, "rpc"),
)
