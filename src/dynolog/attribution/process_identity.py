"""Who a process belongs to: job labels from its environment, user, container and pod. One look at one process."""

import errno
import os
from collections.abc import Mapping

import msgspec

from dynolog.sources.cgroup_identity import CgroupIdentity, parse_cgroup
from dynolog.sources.host_files import HostFiles
from dynolog.sources.pod_names import PodName, PodNames
from dynolog.sources.process import parse_environment, parse_stat
from dynolog.sources.user_names import UserNames

_JOB_ID = "SLURM_JOB_ID"
_USER = "USER"
# An element of a job array has a SLURM_JOB_ID of its own, but people and squeue(1) know it as ARRAY_TASK.
_ARRAY = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")
_LONGEST_LABEL = 256


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found. `labels` are those of the mapped variables; `uid` -1 and "" where something could not be read.

    `job` holds the labels that name a job: all but the user's. `environment_is_known` False: it may be in a job all the same.
    """

    pid: int
    start_time_ticks: int
    name: str = ""
    uid: int = -1
    user: str = ""
    labels: Mapping[str, str] = {}
    user_label: str = ""
    cgroup: CgroupIdentity = CgroupIdentity()
    pod: PodName | None = None
    environment_is_known: bool = False

    @property
    def job(self) -> Mapping[str, str]:
        """The labels of its job, {} outside one."""
        return {label: value for label, value in self.labels.items() if label != self.user_label}


class IdentityReader:
    """Looks at processes below the root of `host`, and keeps nothing of an environment but the variables of `environment_map`.

    Reading an environment takes the mmap lock of the process and may block as long as it likes.
    """

    def __init__(self, host: HostFiles, environment_map: Mapping[str, str]) -> None:
        self._host = host
        self._map = dict(environment_map)
        arrays = _ARRAY if _JOB_ID in environment_map else ()
        self._wanted = frozenset(key.encode() for key in (*environment_map, *arrays))
        self._users = UserNames(host)
        self._pods = PodNames(host)

    def start_time(self, pid: int) -> int:
        """With the pid, what tells one process from the next; never blocks. Raises OSError (gone, hidden), ValueError."""
        stat = parse_stat(self._host.read(f"proc/{pid}/stat"))
        if stat.has_ended:
            raise ProcessLookupError(errno.ESRCH, "it has ended", str(pid))
        return stat.start_time_ticks

    def owner(self, pid: int) -> int:
        """The uid that /proc shows for a process, -1 when there is none; never blocks."""
        try:
            return os.stat(self._host.path(f"proc/{pid}")).st_uid
        except OSError:  # it has ended
            return -1

    def look(self, pid: int) -> ProcessIdentity:
        """All of it. Raises OSError or ValueError when the process has gone; a part that cannot be read is left out."""
        stat = parse_stat(self._host.read(f"proc/{pid}/stat"))
        cgroup = parse_cgroup(self._host.read_text(f"proc/{pid}/cgroup") or "")
        uid = self._uid(pid)
        user = self._users.name(uid) if uid >= 0 else ""
        environment = self._environment(pid)
        return ProcessIdentity(
            pid=pid,
            start_time_ticks=stat.start_time_ticks,
            name=stat.name,
            uid=uid,
            user=user,
            labels=self._labels(environment or {}, user, cgroup),
            user_label=self._map.get(_USER, ""),
            cgroup=cgroup,
            pod=self._pods.of(cgroup.container_id) if cgroup.container_id else None,
            environment_is_known=environment is not None,
        )

    def _environment(self, pid: int) -> dict[str, str] | None:
        try:
            return parse_environment(self._host.read(f"proc/{pid}/environ"), self._wanted)
        except OSError:  # another user's, or it has ended
            return None

    def _uid(self, pid: int) -> int:
        # `Uid:` has the real, effective, saved and file system uid (proc_pid_status(5)); the first is whose process it is.
        for line in (self._host.read_text(f"proc/{pid}/status") or "").splitlines():
            if line.startswith("Uid:"):
                numbers = line.split()[1:2]
                return int(numbers[0]) if numbers and numbers[0].isdecimal() else -1
        return -1

    def _labels(self, environment: Mapping[str, str], user: str, cgroup: CgroupIdentity) -> dict[str, str]:
        known = {key: value for key, value in environment.items() if value}
        if user:
            # The kernel knows better than a variable that anyone can set; a uid without a name says less than the variable.
            known[_USER] = user if not user.isdecimal() else known.get(_USER, user)
        if cgroup.slurm_job_id:
            known.setdefault(_JOB_ID, cgroup.slurm_job_id)
        array, task = (known.get(key, "") for key in _ARRAY)
        if array and task:
            known[_JOB_ID] = f"{array}_{task}"
        return {label: _shown(known[variable]) for variable, label in self._map.items() if variable in known}


def _shown(value: str) -> str:
    """A value as a label: what cannot be printed or encoded is replaced, and it has an end."""
    text = value[:_LONGEST_LABEL]
    return text if text.isprintable() and text.isascii() else "".join(one if one.isprintable() else "?" for one in text)
