"""Trees of /sys/class/infiniband as drivers make them: files of devices and ports at two steps of time."""

from collections.abc import Mapping

FOLDER = "sys/class/infiniband"
# File: value at step 0, what is added at step 1.
Counts = Mapping[str, tuple[int, int]]

# A ConnectX-7 on InfiniBand and RoCE: every file that its driver makes.
MLX5_COUNTERS: Counts = {
    "port_xmit_data": (9_000_000_000_000, 1001),
    "port_xmit_packets": (8_000_000_000, 1002),
    "port_xmit_discards": (3, 1003),
    "port_rcv_data": (7_000_000_000_000, 1004),
    "port_rcv_packets": (6_000_000_000, 1005),
    "port_rcv_errors": (0, 1006),
    "symbol_error": (12, 1007),
    "link_error_recovery": (1, 8),
    "link_downed": (2, 9),
    "port_rcv_remote_physical_errors": (0, 1010),
    "port_rcv_switch_relay_errors": (0, 1011),
    "port_xmit_constraint_errors": (0, 12),
    "port_rcv_constraint_errors": (0, 13),
    "local_link_integrity_errors": (0, 14),
    "excessive_buffer_overrun_errors": (5, 6),
    "VL15_dropped": (0, 1016),
    "port_xmit_wait": (77, 1017),
    "unicast_xmit_packets": (8_000_000_000, 1018),
    "unicast_rcv_packets": (6_000_000_000, 1019),
    "multicast_xmit_packets": (20, 1020),
    "multicast_rcv_packets": (30, 1021),
}
MLX5_HARDWARE: Counts = {
    "np_cnp_sent": (10, 2001),
    "rp_cnp_handled": (10, 2002),
    "rp_cnp_ignored": (10, 2003),
    "np_ecn_marked_roce_packets": (10, 2004),
    "rx_atomic_requests": (10, 2005),
    "rx_read_requests": (10, 2006),
    "rx_write_requests": (10, 2007),
    "out_of_sequence": (10, 2008),
    "out_of_buffer": (10, 2009),
    "packet_seq_err": (10, 2010),
    "implied_nak_seq_err": (10, 2011),
    "local_ack_timeout_err": (10, 2012),
    "rnr_nak_retry_err": (10, 2013),
    "duplicate_request": (10, 2014),
    "rx_icrc_encapsulated": (10, 2015),
    "roce_adp_retrans": (10, 2016),
    "roce_adp_retrans_to": (10, 2017),
    "roce_slow_restart": (10, 2018),
    "roce_slow_restart_cnps": (10, 2019),
    "roce_slow_restart_trans": (10, 2020),
    "req_cqe_error": (10, 2021),
    "req_cqe_flush_error": (10, 2022),
    "req_remote_access_errors": (10, 2023),
    "req_remote_invalid_request": (10, 2024),
    "resp_cqe_error": (10, 2025),
    "resp_cqe_flush_error": (10, 2026),
    "resp_local_length_error": (10, 2027),
    "resp_remote_access_errors": (10, 2028),
    "lifespan": (10, 0),
}
EFA_HARDWARE: Counts = {
    "tx_bytes": (5_000_000_000_000, 3001),
    "rx_bytes": (5_000_000_000_000, 3002),
    "tx_pkts": (1, 3003),
    "rx_pkts": (1, 3004),
    "rx_drops": (1, 3005),
    "send_bytes": (1, 3006),
    "send_wrs": (1, 3007),
    "recv_bytes": (1, 3008),
    "recv_wrs": (1, 3009),
    "rdma_read_bytes": (1, 3010),
    "rdma_read_wrs": (1, 3011),
    "rdma_read_wr_err": (1, 3012),
    "rdma_read_resp_bytes": (1, 3013),
    "rdma_write_bytes": (1, 3014),
    "rdma_write_wrs": (1, 3015),
    "rdma_write_wr_err": (1, 3016),
    "rdma_write_recv_bytes": (1, 3017),
    "retrans_bytes": (1, 3018),
    "retrans_pkts": (1, 3019),
    "retrans_timeout_events": (1, 3020),
    "impaired_remote_conn_events": (1, 3021),
    "unresponsive_remote_events": (1, 3022),
    "lifespan": (12, 0),
}
BNXT_HARDWARE: Counts = {
    "active_qps": (9, 0),
    "rx_pkts": (1, 1),
    "rx_bytes": (1, 2),
    "tx_pkts": (1, 3),
    "tx_bytes": (1, 4),
    "tx_roce_errors": (1, 5),
    "rx_roce_errors": (1, 6),
    "tx_roce_discards": (1, 7),
    "rx_roce_discards": (1, 8),
    "to_retransmits": (1, 9),
    "seq_err_naks_rcvd": (1, 10),
    "max_retry_exceeded": (1, 11),
    "rnr_naks_rcvd": (1, 12),
    "dup_req": (1, 13),
    "oos_drop_count": (1, 14),
    "rx_read_req": (1, 15),
    "rx_write_req": (1, 16),
    "rx_atomic_req": (1, 17),
    "rx_cnp_pkts": (1, 18),
    "tx_cnp_pkts": (1, 19),
    "rx_ecn_marked_pkts": (1, 20),
}
IRDMA_HARDWARE: Counts = {
    "cnpSent": (1, 1),
    "cnpHandled": (1, 2),
    "cnpIgnored": (1, 3),
    "RxECNMrkd": (1, 4),
    "InRdmaReads": (1, 5),
    "InRdmaWrites": (1, 6),
    "Rcvd Out of order packets": (1, 7),
    "RTO": (1, 8),
    "ip4InPkts": (1, 9),
}
# An Omni-Path adapter counts neither waits nor kinds of packets, and has no hw_counters at its ports.
HFI1_COUNTERS: Counts = {
    name: counts
    for name, counts in MLX5_COUNTERS.items()
    if name != "port_xmit_wait" and not name.startswith(("unicast", "multicast"))
}


# State, physical state and rate of a link.
Link = tuple[str, str, str]
NDR: Link = ("4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)")
EDR: Link = ("4: ACTIVE", "5: LinkUp", "100 Gb/sec (4X EDR)")
DISABLED: Link = ("1: DOWN", "3: Disabled", "100 Gb/sec (2X HDR)")
NO_LINK: Link = ("", "", "")
_NONE: Counts = {}


def port(
    device: str,
    number: int = 1,
    *,
    counters: Counts = _NONE,
    hardware: Counts = _NONE,
    step: int = 0,
    link: Link = NDR,
    owner: str = "",
) -> dict[str, str]:
    """The files of a port; `owner` is the network device of its first address."""
    folder = f"{FOLDER}/{device}/ports/{number}"
    state, physical, rate = link
    files = {f"{folder}/state": f"{state}\n", f"{folder}/phys_state": f"{physical}\n", f"{folder}/rate": f"{rate}\n"}
    for place, counts in (("counters", counters), ("hw_counters", hardware)):
        files.update((f"{folder}/{place}/{name}", f"{start + step * more}\n") for name, (start, more) in counts.items())
    if owner:
        files[f"{folder}/gid_attrs/ndevs/0"] = f"{owner}\n"
    return files


def mlx5(device: str, number: int = 1, step: int = 0, link: Link = NDR, owner: str = "") -> dict[str, str]:
    """A port of a ConnectX-7."""
    return port(device, number, counters=MLX5_COUNTERS, hardware=MLX5_HARDWARE, step=step, link=link, owner=owner)
