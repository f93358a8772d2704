"""Who is behind each GPU, for the records of devices: made when the first device is read, so that hosts without one load nothing."""

from typing import TYPE_CHECKING

from dynolog.attribution.flags import FLAGS
from dynolog.attribution.labelling import DeviceAttribution
from dynolog.model.flag import Settings
from dynolog.model.gpu import GpuReading
from dynolog.pipeline.notice_board import NoticeBoard
from dynolog.sources.host_files import HostFiles

if TYPE_CHECKING:
    from dynolog.attribution.gpu_labelling import GpuLabelling

_MAP = FLAGS[0]


def check_environment_map(settings: Settings) -> None:
    """Raises FlagError when --env_attribution_mappings_file is given and cannot be used."""
    if path := settings.text(_MAP.name):
        # Not needed by a daemon without the flag.
        from dynolog.attribution.environment_map import read_environment_map  # noqa: PLC0415

        read_environment_map(path)


class GpuOwners:
    """Implements attribution.labelling.Labelling. Raises FlagError, when it is made, for flags that cannot be used."""

    def __init__(self, settings: Settings, host: HostFiles, notices: NoticeBoard) -> None:
        check_environment_map(settings)
        self._settings = settings
        self._host = host
        self._board = notices
        self._said: set[str] = set()
        self._made: GpuLabelling | None = None

    def labels_for(self, reading: GpuReading) -> DeviceAttribution:
        """Called on the collectors' thread."""
        if self._made is None:
            # Only where there is a device to label.
            from dynolog.attribution.gpu_labelling import gpu_labelling  # noqa: PLC0415

            self._made = gpu_labelling(self._settings, self._host)
        found = self._made.labels_for(reading)
        self._say(dict(self._made.notices))
        return found

    @property
    def notices(self) -> tuple[str, ...]:
        """What keeps it from knowing more. From any thread."""
        return self._board.sentences

    def _say(self, notices: dict[str, str]) -> None:
        for key in self._said - notices.keys():
            self._board.say(key, "")  # it is over
        for key, sentence in notices.items():
            self._board.say(key, sentence)
        self._said = set(notices)
