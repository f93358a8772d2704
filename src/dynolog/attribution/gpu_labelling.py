"""Labels of GPU records: the Labelling that the daemon uses, and how it is made from its flags."""

from dynolog.attribution.device_scan import DeviceScan
from dynolog.attribution.environment_map import FLAG, read_environment_map
from dynolog.attribution.identities import Identities
from dynolog.attribution.labelling import DeviceAttribution
from dynolog.attribution.pods import GPU_RESOURCES, Pods, kubelet
from dynolog.attribution.process_identity import IdentityReader
from dynolog.attribution.uses import device_attribution
from dynolog.model.flag import Settings
from dynolog.model.gpu import GpuReading
from dynolog.sources.host_files import HostFiles

# A backend that can list processes gives their number.
_COUNT = "gpu_processes"
# Of one device: a hundred contexts are many. Each costs a read of /proc in every round.
MOST_LOOKED_AT = 512


class GpuLabelling:
    """Implements attribution.labelling.Labelling. Used from one thread; nothing here waits.

    The first record of a process comes before the look at it has returned, and so without its labels.
    """

    def __init__(self, identities: Identities, scan: DeviceScan, pods: Pods | None = None) -> None:
        self._identities = identities
        self._scan = scan
        self._pods = pods
        self._crowded: set[str] = set()

    def labels_for(self, reading: GpuReading) -> DeviceAttribution:
        """Who is behind a device or MIG instance. Open files tell where the driver lists no processes; 0 of them is a list too."""
        processes = reading.processes
        if not processes and _COUNT not in reading.values:
            self._scan.advance()
            processes = self._scan.processes_of(reading)
        device = reading.device if reading.gpu_instance_id is None else f"{reading.device}/gi{reading.gpu_instance_id}"
        (self._crowded.add if len(processes) > MOST_LOOKED_AT else self._crowded.discard)(device)
        processes = processes[:MOST_LOOKED_AT]
        members = [(process, self._identities.get(process.pid)) for process in processes]
        return device_attribution(members, self._pods.of(reading) if self._pods is not None else ())

    @property
    def notices(self) -> tuple[tuple[str, str], ...]:
        """(key, sentence) pairs for a person: what keeps it from knowing more."""
        crowded = [
            (
                f"crowded {device}",
                f"GPU {device} lists more than {MOST_LOOKED_AT} processes: only those are looked up",
            )
            for device in sorted(self._crowded)
        ]
        pods = self._pods.notices if self._pods is not None else ()
        return (*self._identities.notices, *crowded, *pods)

    def close(self) -> None:
        """Stop its threads."""
        self._identities.close()


def gpu_labelling(settings: Settings, host: HostFiles) -> GpuLabelling:
    """As the flags say. Raises FlagError for a file of mappings that cannot be used."""
    pods = None
    if settings.on("enable_pod_resources_attribution"):
        resources = (
            *GPU_RESOURCES,
            *settings.names("pod_resources_gpu_resource"),
            *settings.names("pod_resources_tpu_resource"),
        )
        pods = Pods(resources, kubelet(settings.text("pod_resources_socket")))
    reader = IdentityReader(host, read_environment_map(settings.text(FLAG)))
    return GpuLabelling(Identities(reader), DeviceScan(host), pods)
