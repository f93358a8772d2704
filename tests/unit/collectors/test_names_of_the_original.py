"""Names, kinds and units that dashboards made for the original Dynolog rely on; written out here, so that a change shows."""

import pytest

from dynolog.collectors.registry import COLLECTORS
from dynolog.model.metric import Catalogue, Kind

CATALOGUE = Catalogue(metric for spec in COLLECTORS for metric in spec.metrics)
NAMES = [
    ("uptime", Kind.GAUGE, "s"),
    *((f"cpu_{what}", Kind.RATIO, "%") for what in ("u", "s", "i", "util", "guest", "guest_nice")),
    *((f"cpu_{what}_ms", Kind.DELTA, "ms") for what in ("u", "s", "n", "w", "x", "y", "z", "guest", "guest_nice")),
    *((f"cpu_{what}_node{node}", Kind.RATIO, "%") for what in "usi" for node in (0, 7)),
    *((f"{way}_bytes.eth0", Kind.DELTA, "By") for way in ("rx", "tx")),
    *((f"{way}_packets.eth0", Kind.DELTA, "{packet}") for way in ("rx", "tx")),
    *((f"{way}_errors.eth0.100", Kind.DELTA, "{error}") for way in ("rx", "tx")),
    ("mips", Kind.RATE, "{million_instructions}/s"),
    ("mega_cycles_per_second", Kind.RATE, "{million_cycles}/s"),
    *((f"{way}_drops.br-1a2b", Kind.DELTA, "{packet}") for way in ("rx", "tx")),
    *((f"mlx5_0.port_{way}_data", Kind.DELTA, "{four_bytes}") for way in ("xmit", "rcv")),
    *((f"mlx5_0.port_{way}_packets", Kind.DELTA, "{packet}") for way in ("xmit", "rcv")),
    ("mlx5_0.port_xmit_discards", Kind.DELTA, "{packet}"),
    ("mlx5_0.port_rcv_errors", Kind.DELTA, "{error}"),
    *((f"mlx5_0.{what}", Kind.DELTA, "{packet}") for what in ("np_cnp_sent", "rp_cnp_handled")),
    ("mlx5_bond_0.np_ecn_marked_roce_packets", Kind.DELTA, "{packet}"),
    *((f"mlx5_0.rx_{what}_requests", Kind.DELTA, "{request}") for what in ("atomic", "read", "write")),
    ("mlx5_0.tx_pause_ctrl_phy", Kind.DELTA, "{packet}"),
    *((f"mlx5_0.tx_prio{priority}_pause", Kind.DELTA, "{packet}") for priority in range(8)),
    *((f"mlx5_0.tx_pause_storm_{what}_events", Kind.DELTA, "{event}") for what in ("warning", "error")),
]


@pytest.mark.parametrize(("key", "kind", "unit"), NAMES)
def test_a_name_of_the_original_stays_what_it_was(key: str, kind: Kind, unit: str) -> None:
    series = CATALOGUE.resolve(key)
    assert series is not None
    assert (series.metric.kind, series.metric.unit) == (kind, unit)
    assert series.metric.key(series.instance) == key
