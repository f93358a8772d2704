"""One session with NVML, used for all readings: opening one is dear, and polling with a new one each time upset old drivers."""

from typing import Any

from dynolog.model.errors import SourceUnavailable
from dynolog.sources.nvml.errors import unavailable


class Notices:
    """What a person should know, by key; it stands until it is taken back."""

    def __init__(self) -> None:
        self._sentences: dict[str, str] = {}

    def say(self, key: str, sentence: str) -> None:
        """Say or replace it; an empty sentence takes back what was said."""
        if sentence or key in self._sentences:
            self._sentences[key] = sentence

    def all(self) -> tuple[tuple[str, str], ...]:
        """Each with its key, for a sample."""
        return tuple(self._sentences.items())


class Session:
    """The library, loaded and initialised. `nvml` is the module of nvidia-ml-py (it has no types)."""

    def __init__(self) -> None:
        self.nvml: Any = None
        self.is_open = False
        self.driver_version = ""
        self.library_version = ""

    def open(self) -> None:
        """Initialise NVML. Raises SourceUnavailable (what, why, remedy).

        The library stays loaded for the life of the process: after an upgrade of the driver only a new process gets the new one.
        """
        self.close()
        try:
            import pynvml  # noqa: PLC0415 - an optional dependency, needed only here
        except ImportError as error:
            raise SourceUnavailable("nvml", "nvidia-ml-py is not installed", "pip install 'dynolog[gpu]'") from error
        self.nvml = pynvml
        try:
            pynvml.nvmlInitWithFlags(0)
        except pynvml.NVMLError as error:
            raise unavailable(error.value) from error
        self.is_open = True
        self.driver_version = self._text(pynvml.nvmlSystemGetDriverVersion)
        self.library_version = self._text(pynvml.nvmlSystemGetNVMLVersion)

    def _text(self, function: Any) -> str:
        try:
            return str(function())
        except self.nvml.NVMLError:
            return ""

    def close(self) -> None:
        """End the session. Never raises."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            self.nvml.nvmlShutdown()
        except self.nvml.NVMLError:
            return  # the driver has gone: there is nothing left to end
