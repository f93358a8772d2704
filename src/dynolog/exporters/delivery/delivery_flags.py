"""Flags of delivery, which all network exporters share."""

from dynolog.model.flag import Flag

DELIVERY_FLAGS = (
    Flag(
        name="spool_dir",
        default="",
        help="keep on disk, below this directory, what network exporters cannot send now; empty: only in memory",
        section="exporters",
    ),
    Flag(
        name="spool_max_mb",
        default=256.0,
        minimum=1.0,
        maximum=1e6,
        help="MB that each network exporter may keep in --spool_dir; the oldest are dropped first",
        section="exporters",
    ),
    Flag(
        name="exporter_queue_mb",
        default=8.0,
        minimum=0.1,
        maximum=4096.0,
        help="MB of encoded records that each network exporter may hold in memory; the oldest are dropped first",
        section="exporters",
    ),
    Flag(
        name="exporters_config",
        default="",
        help="TOML file that says which sources and metrics each exporter gets, under which names, how often; SIGHUP reads it again",
        section="exporters",
    ),
)
