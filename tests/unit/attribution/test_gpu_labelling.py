"""Labels of a device that the driver lists very many processes for."""

from pathlib import Path

from dynolog.attribution.device_scan import DeviceScan
from dynolog.attribution.gpu_labelling import MOST_LOOKED_AT, GpuLabelling
from dynolog.attribution.identities import Identities
from dynolog.attribution.process_identity import ProcessIdentity
from dynolog.model.gpu import GpuProcess, GpuReading
from dynolog.sources.host_files import HostFiles


class CountingLook:
    """Every process exists; counts how many are asked for."""

    def __init__(self) -> None:
        self.asked: set[int] = set()

    def start_time(self, pid: int) -> int:
        self.asked.add(pid)
        return 1

    def owner(self, _pid: int) -> int:
        return 1000

    def look(self, pid: int) -> ProcessIdentity:
        return ProcessIdentity(pid=pid, start_time_ticks=1, environment_is_known=True)


def reading(count: int) -> GpuReading:
    return GpuReading(device="3", processes=tuple(GpuProcess(pid=pid) for pid in range(1, count + 1)))


def test_of_ten_thousand_processes_a_round_looks_at_a_bounded_number_and_says_so(tmp_path: Path) -> None:
    look = CountingLook()
    labelling = GpuLabelling(Identities(look), DeviceScan(HostFiles(str(tmp_path))))
    labelling.labels_for(reading(10_000))
    assert len(look.asked) == MOST_LOOKED_AT
    assert dict(labelling.notices)["crowded 3"].startswith("GPU 3 lists more than")
    labelling.labels_for(reading(2))
    assert not labelling.notices
    labelling.close()
