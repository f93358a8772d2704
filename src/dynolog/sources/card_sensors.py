"""The hwmon directory of a graphics card (Documentation/hwmon/sysfs-interface.rst)."""

import re

from dynolog.sources.host_files import HostFiles

_CHANNEL = re.compile(r"([a-z]+)(\d+)_label")


class CardSensors:
    """Where the sensors of one card are. `folder` is below the root, "" when the card has none."""

    def __init__(self, host: HostFiles, device_folder: str, chip: str) -> None:
        """The first hwmon of the device whose name is `chip`: a device may have others (one for each engine of i915)."""
        self._host = host
        self.folder = ""
        for name in host.list(f"{device_folder}/hwmon"):
            folder = f"{device_folder}/hwmon/{name}"
            if host.read_text(f"{folder}/name") == chip:
                self.folder = folder
                break
        self.files = frozenset(host.list(self.folder)) if self.folder else frozenset[str]()

    def labelled(self, kind: str) -> dict[str, str]:
        """Channels of one kind by label: temp → {"junction": "temp2"}. A channel without label is named by itself."""
        channels: dict[str, str] = {}
        for file in sorted(self.files):
            label = _CHANNEL.fullmatch(file)
            if label and label[1] == kind and (text := self._host.read_text(f"{self.folder}/{file}")):
                channels.setdefault(text.lower(), kind + label[2])
        return channels

    def path(self, file: str) -> str:
        """The path of a file of this directory, below the root; "" when it is not there."""
        return f"{self.folder}/{file}" if file in self.files else ""

    def integer(self, file: str) -> int | None:
        """Read a number once; None when it is not there."""
        text = self._host.read_text(f"{self.folder}/{file}") if file in self.files else None
        try:
            return None if text is None else int(text)
        except ValueError:
            return None
