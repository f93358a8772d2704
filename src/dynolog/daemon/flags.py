"""The daemon's own flags, and the full set that a daemon accepts."""

import msgspec

from dynolog.attribution.flags import FLAGS as ATTRIBUTION_FLAGS
from dynolog.collectors.registry import COLLECTORS
from dynolog.collectors.spec import CollectorSpec
from dynolog.daemon.glog_flags import GLOG_FLAGS
from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.registry import EXPORTERS, LIVE_FLAGS
from dynolog.model.flag import Flag
from dynolog.rpc.flags import FLAGS as RPC_FLAGS

DAEMON_FLAGS = (
    Flag(
        name="kernel_monitor_reporting_interval_s",
        aliases=("reporting_interval_s",),
        default=60.0,
        minimum=0.01,
        maximum=86400.0,
        help="seconds between reports of the kernel collectors; fractions are fine",
        live=True,
    ),
    Flag(name="root_dir", default="/", help="read this root's /proc and /sys (the host's, mounted into a container)"),
    Flag(
        name="cpu_budget_pct",
        default=1.0,
        minimum=0.0,
        maximum=100.0,
        help="percent of one core the daemon may use over a minute before it stretches its costliest collectors; 0 never",
        live=True,
    ),
    Flag(
        name="collector_deadline_s",
        default=2.0,
        minimum=0.05,
        maximum=600.0,
        help="seconds after which a collector that has not returned is stalled",
    ),
    Flag(
        name="shutdown_timeout_s",
        default=5.0,
        minimum=0.0,
        maximum=300.0,
        help="seconds that stopping may take to deliver what network exporters have queued; without them it takes 2 s at most",
    ),
    Flag(name="log_file", default="", help="write the log here instead of to stderr"),
    Flag(name="log_rotate_mb", default=10.0, minimum=0.0, help="start a new log file at this size in MB; 0 never"),
    Flag(name="log_keep", default=7, minimum=1, maximum=1000, help="how many old log files to keep, compressed"),
    Flag(
        name="minloglevel",
        default=0,
        minimum=0,
        maximum=3,
        help="lowest level logged: 0 info, 1 warning, 2 error, 3 fatal",
    ),
    Flag(
        name="logtostderr",
        default=True,
        help="accepted for the original's sake: without --log_file the log goes to stderr",
    ),
    Flag(name="alsologtostderr", default=False, help="accepted for the original's sake and ignored"),
)

IPC_FLAGS = (
    Flag(
        name="enable_ipc_monitor",
        default=False,
        help="let PyTorch processes register over the IPC, so that they can be traced",
        section="ipc",
    ),
    Flag(
        name="ipc_socket_dir",
        default="",
        help="listen on the filesystem socket DIR/dynolog as well (KINETO_IPC_SOCKET_DIR of the trainers)",
        section="ipc",
    ),
    Flag(
        name="ipc_namespaces",
        default=False,
        help="find network namespaces (containers) that hold trainers and listen in them too; needs root",
        section="ipc",
    ),
    Flag(
        name="ipc_fabric_name",
        default="dynolog",
        help="abstract name of the IPC; trainers look for dynolog, so another one leaves only --ipc_socket_dir to reach this daemon",
        section="ipc",
    ),
)


def collector_flags(spec: CollectorSpec) -> tuple[Flag, ...]:
    """The flags every collector has, and its own."""
    return (
        Flag(
            name=spec.enable_flag,
            aliases=(f"enable_{spec.name}_collector",) if spec.own_enable_flag else (),
            default=spec.on_by_default,
            help=f"collect: {spec.summary} ({spec.needs})",
            section="collectors",
            live=True,
        ),
        Flag(
            name=spec.interval_flag,
            aliases=(f"{spec.name}_interval_s",) if spec.own_interval_flag else (),
            default=spec.default_interval_s,
            minimum=0.0,
            maximum=86400.0,
            help=f"seconds between readings of the {spec.name} collector; 0: as often as reports are made"
            + (f", at most every {spec.shortest_interval_s:g} s" if spec.shortest_interval_s else ""),
            section="collectors",
            live=True,
        ),
        *spec.flags,
    )


def declared_flags() -> tuple[Flag, ...]:
    """Every flag the daemon accepts, each name once."""
    flags = [
        *DAEMON_FLAGS,
        *GLOG_FLAGS,
        *IPC_FLAGS,
        *RPC_FLAGS,
        *(flag for spec in COLLECTORS for flag in collector_flags(spec)),
        *ATTRIBUTION_FLAGS,
        *DELIVERY_FLAGS,
        *(flag for exporter in EXPORTERS for flag in exporter.flags),
    ]
    flags = [msgspec.structs.replace(flag, live=True) if flag.name in LIVE_FLAGS else flag for flag in flags]
    # Two collectors may share a flag (--per_cpu).
    return tuple({flag.name: flag for flag in flags}.values())
