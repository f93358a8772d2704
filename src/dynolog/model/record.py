"""What one report carries."""

from collections.abc import Mapping

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One report of one source.

    All kernel collectors due at a tick share one record with device names in the keys (`rx_bytes.eth0`); a GPU record
    is about one device, named by its labels. `subject` tells the records of one source apart for good (`0`, its MIG instance `0-gi1-ci0`,
    a job on it `0-job-7`), while labels may change. `intervals_ns` gives the measured interval of each collector whose
    values are in it, because collectors may run at different intervals. A missing value is a missing key, never 0.
    """

    wall_ns: int
    source: str
    values: Mapping[str, int | float | str]
    labels: Mapping[str, str] = {}
    intervals_ns: Mapping[str, int] = {}
    subject: str = ""

    @property
    def about(self) -> str:
        """The subject, or the device where nobody said one; "" for the host."""
        return self.subject or self.labels.get("device", "")
