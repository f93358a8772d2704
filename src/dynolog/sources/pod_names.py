"""Names of pods by container, from the links that the kubelet keeps in `/var/log/containers` for log collectors."""

import os
import re
import time
from collections.abc import Callable

import msgspec

from dynolog.sources.host_files import HostFiles

_DIRECTORY = "var/log/containers"
# `<pod>_<namespace>_<container>-<64 hex digits>.log`; names of Kubernetes have no underscore.
_LINK = re.compile(r"^([^_]+)_([^_]+)_([^_]+)-([0-9a-f]{64})\.log$")
# The link of a new container appears when it starts; one that is not there is looked for again after this.
_LOOK_AGAIN_S = 30.0


class PodName(msgspec.Struct, frozen=True, kw_only=True):
    """A container of a pod, by its names."""

    namespace: str
    pod: str
    container: str


def parse_link(name: str) -> tuple[str, PodName] | None:
    """Container id and names in the name of a link; None for anything else."""
    found = _LINK.match(name)
    if not found:
        return None
    pod, namespace, container, container_id = found.groups()
    return container_id, PodName(namespace=namespace, pod=pod, container=container)


class PodNames:
    """Looks names up below the root of `host`; the directory is listed when an unknown container is asked for."""

    def __init__(self, host: HostFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = host.path(_DIRECTORY)
        self._clock = clock
        self._names: dict[str, PodName] = {}
        self._listed_s = -_LOOK_AGAIN_S

    def of(self, container_id: str) -> PodName | None:
        """The names of a container, None where no kubelet told them."""
        if container_id not in self._names and self._clock() - self._listed_s >= _LOOK_AGAIN_S:
            self._list()
        return self._names.get(container_id)

    def _list(self) -> None:
        self._listed_s = self._clock()
        try:
            links = os.listdir(self._directory)
        except OSError:  # no kubelet here
            self._names = {}
            return
        self._names = dict(filter(None, map(parse_link, links)))
