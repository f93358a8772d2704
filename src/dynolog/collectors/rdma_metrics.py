"""Metrics of InfiniBand and RoCE ports. `port_*_data` stays in the words of 4 bytes of the specification, as the public Dynolog logs it."""

from dynolog.collectors.ethtool_metrics import ethtool_metrics
from dynolog.model.metric import Kind, Metric, Scope

# Name: kind, unit, meaning.
_LINK: dict[str, tuple[Kind, str, str]] = {
    "port_up": (Kind.GAUGE, "1", "1 when the port is active, else 0"),
    "port_state": (
        Kind.GAUGE,
        "1",
        "Logical state of the port: 1 down, 2 initialize, 3 armed, 4 active, 5 active and deferred",
    ),
    "port_phys_state": (
        Kind.GAUGE,
        "1",
        "Physical state of the port: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 error recovery, 7 test",
    ),
    "port_rate_gbps": (Kind.GAUGE, "Gbit/s", "Speed of the link of a port that is not down"),
    "port_width": (Kind.GAUGE, "{lane}", "Lanes of the link of a port that is not down"),
}
_WORDS = "{four_bytes}"
_COUNTERS: dict[str, tuple[str, str]] = {
    "port_xmit_data": (_WORDS, "Data sent, in words of 4 bytes"),
    "port_xmit_packets": ("{packet}", "Packets sent"),
    "port_xmit_discards": ("{packet}", "Packets to be sent that were dropped: the port was down or congested"),
    "port_rcv_data": (_WORDS, "Data received, in words of 4 bytes"),
    "port_rcv_packets": ("{packet}", "Packets received, those with errors included"),
    "port_rcv_errors": ("{error}", "Packets received with errors"),
    "symbol_error": ("{error}", "Minor link errors on one or more lanes"),
    "link_error_recovery": ("{event}", "Times the link recovered from an error by itself"),
    "link_downed": ("{event}", "Times the link failed to recover and went down"),
    "port_rcv_remote_physical_errors": ("{error}", "Packets received that were marked bad on their way"),
    "port_rcv_switch_relay_errors": ("{packet}", "Packets received that could not be forwarded"),
    "port_xmit_constraint_errors": ("{packet}", "Packets not sent because of a partition or raw filter"),
    "port_rcv_constraint_errors": ("{packet}", "Packets received and dropped because of a partition or raw filter"),
    "local_link_integrity_errors": ("{error}", "Times local physical errors passed their threshold"),
    "excessive_buffer_overrun_errors": (
        "{error}",
        "Times the receive buffer overran in consecutive flow control periods",
    ),
    "vl15_dropped": ("{packet}", "Management packets (virtual lane 15) dropped for want of room"),
    "port_xmit_wait": ("{tick}", "Ticks for which the port had data to send and no credit: congestion ahead"),
    "unicast_xmit_packets": ("{packet}", "Unicast packets sent, those with errors included"),
    "unicast_rcv_packets": ("{packet}", "Unicast packets received, those with errors included"),
    "multicast_xmit_packets": ("{packet}", "Multicast packets sent, those with errors included"),
    "multicast_rcv_packets": ("{packet}", "Multicast packets received, those with errors included"),
    "np_cnp_sent": ("{packet}", "Congestion notifications sent, because packets with the ECN mark arrived here"),
    "rp_cnp_handled": ("{packet}", "Congestion notifications received that slowed a sender here down"),
    "rp_cnp_ignored": ("{packet}", "Congestion notifications received and ignored"),
    "np_ecn_marked_roce_packets": ("{packet}", "RoCE packets received with the ECN mark of congestion"),
    "rx_atomic_requests": ("{request}", "Atomic requests received"),
    "rx_read_requests": ("{request}", "Read requests received"),
    "rx_write_requests": ("{request}", "Write requests received"),
    "out_of_sequence": ("{packet}", "Packets received out of order"),
    "out_of_buffer": ("{packet}", "Packets dropped because a queue had no receive buffer posted"),
    "packet_seq_err": ("{error}", "Negative acknowledgements received for a sequence error: packets were lost"),
    "implied_nak_seq_err": (
        "{error}",
        "Acknowledgements that came for a later packet than a read's or atomic's answer",
    ),
    "local_ack_timeout_err": ("{error}", "Times an acknowledgement did not come in time and packets were sent again"),
    "rnr_nak_retry_err": ("{error}", "Receiver-not-ready answers to requests from here"),
    "rnr_naks_rcvd": ("{packet}", "Receiver-not-ready answers received"),
    "duplicate_request": ("{request}", "Requests received again after they had been carried out"),
    "max_retry_exceeded": ("{error}", "Times a sender gave up after its last retry"),
    "rx_icrc_encapsulated": ("{error}", "RoCE packets received with a wrong check sum"),
    "roce_adp_retrans": ("{event}", "Adaptive retransmissions of RoCE"),
    "roce_adp_retrans_to": ("{event}", "Times RoCE traffic timed out because of adaptive retransmission"),
    "roce_slow_restart": ("{event}", "Times RoCE started slowly again"),
    "roce_slow_restart_cnps": ("{packet}", "Congestion notifications made by slow restart"),
    "roce_slow_restart_trans": ("{event}", "Times the state of RoCE became slow restart"),
    "req_cqe_error": ("{error}", "Requests completed with an error"),
    "req_cqe_flush_error": ("{error}", "Requests flushed because their queue was in error"),
    "req_remote_access_errors": ("{error}", "Requests refused by the other side for want of access"),
    "req_remote_invalid_request": ("{error}", "Requests refused by the other side as invalid"),
    "resp_cqe_error": ("{error}", "Receives completed with an error"),
    "resp_cqe_flush_error": ("{error}", "Receives flushed because their queue was in error"),
    "resp_local_length_error": ("{error}", "Messages received that were longer than their buffer"),
    "resp_remote_access_errors": ("{error}", "Requests received that had no access"),
    "rdma_tx_bytes": ("By", "Bytes sent, as the driver counts them (EFA, bnxt_re)"),
    "rdma_rx_bytes": ("By", "Bytes received, as the driver counts them (EFA, bnxt_re)"),
    "rdma_tx_packets": ("{packet}", "Packets sent, as the driver counts them"),
    "rdma_rx_packets": ("{packet}", "Packets received, as the driver counts them"),
    "rdma_tx_errors": ("{error}", "Packets that were not sent right, as the driver counts them"),
    "rdma_rx_errors": ("{error}", "Packets that were not received right, as the driver counts them"),
    "rdma_tx_discards": ("{packet}", "Packets to be sent that were dropped, as the driver counts them"),
    "rdma_rx_discards": ("{packet}", "Packets received and dropped, as the driver counts them"),
    "send_bytes": ("By", "Bytes of send requests (EFA)"),
    "send_wrs": ("{request}", "Send requests (EFA)"),
    "recv_bytes": ("By", "Bytes received into posted buffers (EFA)"),
    "recv_wrs": ("{request}", "Receives completed (EFA)"),
    "rdma_read_bytes": ("By", "Bytes read from other hosts (EFA)"),
    "rdma_read_wrs": ("{request}", "Read requests (EFA)"),
    "rdma_read_wr_err": ("{error}", "Read requests that failed (EFA)"),
    "rdma_read_resp_bytes": ("By", "Bytes sent in answer to reads (EFA)"),
    "rdma_write_bytes": ("By", "Bytes written to other hosts (EFA)"),
    "rdma_write_wrs": ("{request}", "Write requests (EFA)"),
    "rdma_write_wr_err": ("{error}", "Write requests that failed (EFA)"),
    "rdma_write_recv_bytes": ("By", "Bytes written here by other hosts (EFA)"),
    "retrans_bytes": ("By", "Bytes sent again (EFA)"),
    "retrans_pkts": ("{packet}", "Packets sent again (EFA)"),
    "retrans_timeout_events": ("{event}", "Times sending again timed out and another path was taken (EFA)"),
    "impaired_remote_conn_events": ("{event}", "Times a connection became slow or lossy (EFA)"),
    "unresponsive_remote_events": ("{event}", "Times another host did not answer (EFA)"),
}
METRICS = (
    *(
        Metric(name=name, scope=Scope.RDMA, kind=kind, unit=unit, description=text)
        for name, (kind, unit, text) in _LINK.items()
    ),
    *(
        Metric(name=name, scope=Scope.RDMA, kind=Kind.DELTA, unit=unit, description=text)
        for name, (unit, text) in _COUNTERS.items()
    ),
    *ethtool_metrics(Scope.RDMA, "of the network devices of an RDMA port"),
)
