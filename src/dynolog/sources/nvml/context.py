"""What all devices of one session share."""

from collections.abc import Callable
from typing import Any

from dynolog.sources.nvml.processes import ProcessLists
from dynolog.sources.nvml.session import Notices, Session
from dynolog.sources.nvml.values import Guard
from dynolog.sources.nvml.xid import XidEvents


class SessionContext:
    """The library, what is known of its functions, and the parts that serve all devices."""

    def __init__(self, session: Session, notices: Notices) -> None:
        self.nvml: Any = session.nvml
        self.notices = notices
        self.driver_version = session.driver_version
        self.xids = XidEvents(self.nvml)
        self.processes = ProcessLists(self.nvml, notices, session.driver_version)
        self._absent: set[str] = set()

    def guard(self) -> Guard:
        """A guard for one device."""
        return Guard(self.nvml, self.notices, self.driver_version, self._absent)

    def optional(self, call: Callable[[Any], Any], handle: Any) -> Any:
        """What a call on a device gives, None when it fails."""
        try:
            return call(handle)
        except (self.nvml.NVMLError, UnicodeDecodeError):  # a name may be any bytes
            return None
