"""Errors that the device keeps count of: ECC, retired pages, remapped rows, PCIe replays, NVLink."""

from typing import Any

from dynolog.sources.nvml.field_values import Field, FieldReader
from dynolog.sources.nvml.values import Gathered, Probe, is_available

# NVML_FI_DEV_*; "volatile" counts since the driver was loaded, "aggregate" since the board was made.
_COUNTERS: dict[Field, str] = {
    (3, 0): "ecc_corrected_errors",  # ECC_SBE_VOL_TOTAL
    (4, 0): "ecc_uncorrected_errors",  # ECC_DBE_VOL_TOTAL
    (94, 0): "pcie_replays",  # PCIE_REPLAY_COUNTER
}
_GAUGES: dict[Field, str] = {
    (5, 0): "ecc_corrected_errors_lifetime",  # ECC_SBE_AGG_TOTAL
    (6, 0): "ecc_uncorrected_errors_lifetime",  # ECC_DBE_AGG_TOTAL
    (142, 0): "remapped_rows_corrected",
    (143, 0): "remapped_rows_uncorrected",
    (144, 0): "row_remap_pending",
    (145, 0): "row_remap_failure",
}
_RETIRED: tuple[Field, Field] = ((29, 0), (30, 0))  # pages, by the kind of error that they had
_MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS of API 13
# With the link as scope, on Hopper and later.
_STATE, _REPLAY, _RECOVERY, _CRC = 165, 161, 162, 163
_BY_LINK = ((_CRC, "nvlink_crc_errors"), (_REPLAY, "nvlink_replays"), (_RECOVERY, "nvlink_recoveries"))
# Before: an id for each link, for links 0-5 and 6-11. Two kinds of CRC error make one metric.
_LANE_IDS = (
    (32, 96, "nvlink_crc_errors"),  # NVLINK_CRC_FLIT_ERROR_COUNT_L0, _L6
    (39, 102, "nvlink_crc_errors"),  # NVLINK_CRC_DATA_ERROR_COUNT_L0, _L6
    (46, 108, "nvlink_replays"),
    (53, 114, "nvlink_recoveries"),
)


class Health:
    """The error counters of one GPU. Raises NVMLError of a call that failed as a whole."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._plain = FieldReader(nvml, (*_COUNTERS, *_GAUGES, *_RETIRED))
        self._scoped = FieldReader(nvml, ((_STATE, link) for link in range(_MOST_LINKS)))
        self._link_errors: FieldReader | None = None

    def ask_again(self) -> None:
        """Look anew for what the device did not have."""
        self._plain.ask_again()
        self._scoped.ask_again()
        self._link_errors = None

    def read(self, handle: Any, gathered: Gathered) -> None:
        """Add counters and gauges."""
        found = self._plain.read(handle)
        for field, name in _COUNTERS.items():
            gathered.count(name, found.get(field))
        for field, name in _GAUGES.items():
            gathered.put(name, found.get(field))
        retired = [found[field] for field in _RETIRED if field in found and is_available(found[field])]
        if retired:
            gathered.put("retired_pages", sum(retired))
        self._read_links(handle, gathered)

    def _read_links(self, handle: Any, gathered: Gathered) -> None:
        states = {link: state for (_, link), state in self._scoped.read(handle).items()}
        has_scopes = bool(states)
        if not has_scopes:
            states = self._states_by_call(handle)
        for link, state in states.items():
            gathered.put(f"nvlink_is_up.{link}", int(state == 1))
        if self._link_errors is None:
            self._link_errors = FieldReader(self._nvml, self._error_fields(list(states), has_scopes))
        self._count_errors(self._link_errors, handle, gathered)

    @staticmethod
    def _count_errors(reader: FieldReader, handle: Any, gathered: Gathered) -> None:
        found = {field: value for field, value in reader.read(handle).items() if is_available(value)}
        # A sum that lacks a part would fall now, and rise by errors that never were when the part is back.
        incomplete = {_key_of(field) for field in reader.asked if field not in found}
        sums: dict[str, int | float] = {}
        for field, value in found.items():
            key = _key_of(field)
            sums[key] = sums.get(key, 0) + value
        for key, total in sums.items():
            if key not in incomplete:
                gathered.count(key, total)

    def _states_by_call(self, handle: Any) -> dict[int, int | float]:
        states: dict[int, int | float] = {}
        for link in range(_MOST_LINKS):
            try:
                states[link] = self._nvml.nvmlDeviceGetNvLinkState(handle, link)
            except self._nvml.NVMLError:
                break  # links are numbered without holes: the device has no more
        return states

    @staticmethod
    def _error_fields(links: list[int], has_scopes: bool) -> list[Field]:
        if has_scopes:
            return [(field, link) for field, _ in _BY_LINK for link in links]
        return [
            (low + link if link < 6 else high + link - 6, 0)
            for low, high, _ in _LANE_IDS
            for link in links
            if link < 12
        ]


def _key_of(field: Field) -> str:
    number, link = field
    for scoped, name in _BY_LINK:
        if number == scoped:
            return f"{name}.{link}"
    for low, high, name in _LANE_IDS:
        if low <= number < low + 6:
            return f"{name}.{number - low}"
        if high <= number < high + 6:
            return f"{name}.{number - high + 6}"
    raise ValueError(f"field {number} is not of a link")


def health_probe(health: Health) -> Probe:
    """The same as a probe, so that a failure costs only the health of this device."""

    def read(_nvml: Any, handle: Any, gathered: Gathered) -> None:
        health.read(handle, gathered)

    return Probe("nvmlDeviceGetFieldValues", "ECC, row remapping and NVLink errors", read)
