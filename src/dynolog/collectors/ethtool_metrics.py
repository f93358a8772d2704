"""Statistics of drivers that are metrics: pauses, discards and errors of a port, under the names of mlx5."""

from dynolog.model.metric import Kind, Metric, Scope

PRIORITIES = range(8)

# Name: unit, meaning.
_NAMES: dict[str, tuple[str, str]] = {
    "tx_pause_ctrl_phy": ("{packet}", "Pause frames sent by the port: it asked its switch to stop"),
    "rx_pause_ctrl_phy": ("{packet}", "Pause frames received by the port: its switch asked it to stop"),
    "tx_pause_storm_warning_events": (
        "{event}",
        "Times the port sent pauses for long (the first watermark of its stall detection)",
    ),
    "tx_pause_storm_error_events": (
        "{event}",
        "Times it sent pauses so long that they were switched off; packets may be lost",
    ),
    **{
        f"tx_prio{n}_pause": ("{packet}", f"Pause frames (PFC) sent for priority {n}: this host could not take more")
        for n in PRIORITIES
    },
    **{
        f"rx_prio{n}_pause": (
            "{packet}",
            f"Pause frames (PFC) received for priority {n}: the network could not take more",
        )
        for n in PRIORITIES
    },
    **{
        f"tx_prio{n}_pause_duration": ("us", f"Time for which the other side was paused for priority {n}")
        for n in PRIORITIES
    },
    **{
        f"rx_prio{n}_pause_duration": ("us", f"Time for which sending of priority {n} was paused by the other side")
        for n in PRIORITIES
    },
    **{
        f"rx_prio{n}_discards": ("{packet}", f"Packets of priority {n} dropped because the port's buffer was full")
        for n in PRIORITIES
    },
    "rx_discards_phy": ("{packet}", "Packets dropped by the port because its buffers were full"),
    "tx_discards_phy": ("{packet}", "Packets that the port could not send and dropped"),
    "rx_buffer_passed_thres_phy": ("{event}", "Times the port's receive buffer was more than 85 % full"),
    "rx_out_of_buffer": ("{packet}", "Packets dropped because the host had posted no receive buffer"),
    "rx_missed_errors": ("{packet}", "Packets dropped by the adapter because the host was too slow to take them"),
    "link_down_events_phy": ("{event}", "Times the link went down"),
    "rx_symbol_err_phy": ("{error}", "Packets received with errors of the physical coding"),
    "rx_pcs_symbol_err_phy": ("{error}", "Symbols that forward error correction did not correct"),
    "rx_corrected_bits_phy": ("{bit}", "Bits that forward error correction corrected"),
    "rx_fec_corrected_blocks": ("{block}", "Blocks that forward error correction corrected"),
    "rx_fec_uncorrectable_blocks": ("{block}", "Blocks that forward error correction could not correct"),
    "rx_crc_errors_phy": ("{error}", "Packets received with a wrong check sum"),
}
# What other drivers (mlx4, bnxt, ice) call the same.
_SAME: dict[str, str] = {
    "tx_pause": "tx_pause_ctrl_phy",
    "rx_pause": "rx_pause_ctrl_phy",
    "tx_pause_frames": "tx_pause_ctrl_phy",
    "rx_pause_frames": "rx_pause_ctrl_phy",
    "rx_crc_errors.nic": "rx_crc_errors_phy",
    **{
        other: f"{way}_prio{n}_pause"
        for n in PRIORITIES
        for way in ("tx", "rx")
        for other in (f"{way}_pause_prio_{n}", f"{way}_pfc_ena_frames_pri{n}", f"{way}_priority_{n}_xoff.nic")
    },
}


def ethtool_metrics(scope: Scope, of: str) -> tuple[Metric, ...]:
    """The metrics for `scope`; `of` says whose they are."""
    return tuple(
        Metric(name=name, scope=scope, kind=Kind.DELTA, unit=unit, description=f"{text} ({of})")
        for name, (unit, text) in _NAMES.items()
    )


def known_name(statistic: str) -> str:
    """The metric that a driver's statistic is, "" when it is none."""
    return statistic if statistic in _NAMES else _SAME.get(statistic, "")
