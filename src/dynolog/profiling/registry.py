"""Who the trainers are: they come with their first message, and leave when their process ends or falls silent.

A verified trainer is known by its host pid from the kernel's credentials and, through a pidfd opened at its first message,
by that very process: a reused pid is a new trainer. An unverified one (credential pid 0) is known by its address.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

from dynolog.ipc.handler import Sender
from dynolog.model.clock import Clock
from dynolog.model.errors import SourceUnavailable
from dynolog.model.trainer import Peer
from dynolog.profiling.inspector import Facts, Inspector
from dynolog.profiling.job import job_of
from dynolog.profiling.shared_values import shared
from dynolog.profiling.trainer import Trainer, details_of
from dynolog.sources.device_files import accelerators_present
from dynolog.sources.pidfd import PidfdWatch
from dynolog.sources.process import ProcessFacts

SILENT_S = 60
_SILENT_NS = SILENT_S * 1_000_000_000
# Unverified senders may have as many sockets as they like, so their number is bounded.
_MOST_UNVERIFIED = 4096
_MOST_CLAIMED_PIDS = 64
# A trainer is looked at once more when it has imported what it imports and begun: does one that started others work itself, and has one
# without a GPU opened its own?
_SECOND_LOOK_S = 20.0
_UnverifiedKey = tuple[bytes, int, int, int]


class ProcessWatch(Protocol):
    """Says which processes have ended (sources.pidfd.PidfdWatch)."""

    def fileno(self) -> int:
        """Readable while `gone` has something to say."""
        ...

    def watch(self, pid: int) -> int:
        """A token for the process. Raises ProcessLookupError (there is none), SourceUnavailable (it cannot be watched)."""
        ...

    def forget(self, token: int) -> None:
        """Watch it no longer."""
        ...

    def gone(self) -> list[int]:
        """Tokens of processes that have ended, each once, some at a time."""
        ...

    def close(self) -> None:
        """Forget all."""
        ...


class Registry:
    """All trainers. Lives on the socket thread; every method returns at once.

    `on_died(trainer)` is called when the process of a trainer has ended, `on_silent(trainer)` when it was dropped for not
    polling. A process that was given a config stays as long as it lives, however silent, because its death will be seen. `has_gpus`: the
    machine has accelerators, so trainers may come to hold one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        reader: Facts,
        *,
        on_died: Callable[[Trainer], None],
        on_silent: Callable[[Trainer], None],
        processes: ProcessWatch | None = None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._reader = reader
        self._on_died = on_died
        self._on_silent = on_silent
        self._verified: dict[int, Trainer] = {}
        self._unverified: dict[_UnverifiedKey, Trainer] = {}
        self._by_serial: dict[int, Trainer] = {}
        self._by_token: dict[int, Trainer] = {}
        self._tokens: dict[int, int] = {}  # of watched trainers, by serial
        self._keys: dict[int, _UnverifiedKey] = {}  # of unverified ones, by serial
        self._on_gpu: Counter[tuple[int, int]] = Counter()
        self._looked_twice: set[int] = set()  # serials
        self.has_gpus = accelerators_present()
        self._serial = 0
        self._sweep: asyncio.TimerHandle | None = None
        self._notices: dict[str, str] = {}
        self.inspector = Inspector(loop, reader, clock, self._on_facts)
        self._processes = processes or PidfdWatch()
        loop.add_reader(self._processes.fileno(), self.collect_deaths)

    def __len__(self) -> int:
        return len(self._by_serial)

    def __iter__(self) -> Iterator[Trainer]:
        return iter(self._by_serial.values())

    def __contains__(self, trainer: Trainer) -> bool:
        return self._by_serial.get(trainer.serial) is trainer

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know."""
        return (*self._notices.values(), *self.inspector.notices)

    # --- messages --------------------------------------------------------------------------------------------------

    def poll(self, peer: Peer, sender: Sender, job_id: int, pids: tuple[int, ...]) -> Trainer | None:
        """The trainer that polls; None for a process that has already ended, or when there is no room."""
        trainer = self._find_or_add(peer, sender, pids[0] if pids else 0)
        if trainer is not None:
            # A verified trainer's ancestors are read from the kernel, so of its claims only its own pid is kept.
            if trainer.claimed_pids[:1] != pids[:1] or not trainer.verified:
                trainer.claimed_pids = pids[: 1 if trainer.verified else _MOST_CLAIMED_PIDS]
            self._set_job(trainer, job_id)
            trainer.uid, trainer.gid = peer.uid, peer.gid
            trainer.note_poll(sender.address, self._clock.monotonic_ns())
        return trainer

    def context(self, peer: Peer, sender: Sender, gpu: int, pid: int, job_id: int) -> int:
        """A process announces itself on a GPU; how many of that job are on it now."""
        trainer = self._find_or_add(peer, sender, pid)
        if trainer is not None:
            if not trainer.claimed_pids:
                trainer.claimed_pids = (pid,)
            self._leave_gpu(trainer)
            trainer.gpu_and_job = (gpu, job_id)
            self._on_gpu[gpu, job_id] += 1
            self._set_job(trainer, job_id)
            trainer.last_poll_ns = self._clock.monotonic_ns()
        return self._on_gpu[gpu, job_id]

    def at(self, peer: Peer, sender: Sender) -> Trainer | None:
        """The trainer that was just answered on `sender`'s socket, if it is still here."""
        if peer.pid:
            return self._verified.get(peer.pid)
        place = (sender.address, sender.net_namespace)
        return next(
            (trainer for key, trainer in self._unverified.items() if key[:2] == place and key[3] == peer.uid), None
        )

    def _find(self, peer: Peer, sender: Sender, pid: int) -> Trainer | None:
        if peer.pid:
            return self._verified.get(peer.pid)
        return self._unverified.get((sender.address, sender.net_namespace, pid, peer.uid))

    def _find_or_add(self, peer: Peer, sender: Sender, pid: int) -> Trainer | None:
        trainer = self._find(peer, sender, pid)
        if trainer is not None and trainer.verified and trainer.sender != sender.address:
            # Another socket of the same process, or a new process with a reused pid whose predecessor's end is not yet seen.
            self.collect_deaths()
            trainer = self._find(peer, sender, pid)
            if trainer is not None and not trainer.watched and self._pid_was_reused(trainer):
                self._remove(trainer)
                self._on_died(trainer)
                trainer = None
        return trainer if trainer is not None else self._add(peer, sender, pid)

    def _pid_was_reused(self, trainer: Trainer) -> bool:
        # Without a pidfd only the start time tells one process from the next; stat(5) takes no lock of the process.
        if trainer.details is None:
            return False
        try:
            return self._reader.stat(trainer.host_pid).start_time_ticks != trainer.details.start_time_ticks
        except (OSError, ValueError):
            return True

    def _add(self, peer: Peer, sender: Sender, pid: int) -> Trainer | None:
        if not peer.pid and len(self._unverified) >= _MOST_UNVERIFIED:
            self._notices["unverified"] = (
                f"more than {_MOST_UNVERIFIED} unverified trainers: further ones are not registered"
            )
            return None
        self._serial += 1
        trainer = Trainer(self._serial, peer, sender.address, self._clock.monotonic_ns())
        if peer.pid:
            if not self._watch(trainer):
                return None
            self._verified[peer.pid] = trainer
            self.inspector.ask(trainer.serial, peer.pid, peer.uid)
        else:
            trainer.inspected = True
            key = (sender.address, sender.net_namespace, pid, peer.uid)
            self._unverified[key] = trainer
            self._keys[trainer.serial] = key
        self._by_serial[trainer.serial] = trainer
        if self._sweep is None:
            self._sweep = self._loop.call_later(SILENT_S, self.sweep)
        return trainer

    def _watch(self, trainer: Trainer) -> bool:
        try:
            token = self._processes.watch(trainer.host_pid)
        except ProcessLookupError:
            return False
        except SourceUnavailable as error:
            self._notices["pidfd"] = str(error)
            return True
        trainer.watched = True
        self._by_token[token] = trainer
        self._tokens[trainer.serial] = token
        return True

    def _set_job(self, trainer: Trainer, job_id: int) -> None:
        if trainer.job.wire_id != job_id:
            trainer.job = shared(trainer.job.with_wire_id(job_id))

    # --- what is learned later -------------------------------------------------------------------------------------

    def _on_facts(self, serial: int, facts: ProcessFacts | None) -> None:
        trainer = self._by_serial.get(serial)
        if trainer is None:
            return
        trainer.inspected = True
        if facts is not None:
            trainer.details = details_of(facts)
            trainer.job = shared(job_of(trainer.job.wire_id, facts.environment))
            trainer.note_cpu(facts.stat.cpu_ticks, self._clock.monotonic_ns())
            for pid in trainer.details.host_ancestors:
                if (ancestor := self._verified.get(pid)) and not ancestor.computes:
                    self._look_again_later(ancestor)
            if self.has_gpus and not facts.holds_gpu:
                self._look_again_later(trainer)

    def _look_again_later(self, trainer: Trainer) -> None:
        if trainer.serial not in self._looked_twice:
            self._looked_twice.add(trainer.serial)
            self._loop.call_later(_SECOND_LOOK_S, self.look_again, trainer)

    def look_again(self, trainer: Trainer) -> None:
        """Have another look at its process, if it is still here."""
        if trainer in self:
            self.inspector.ask(trainer.serial, trainer.host_pid, trainer.uid)

    def collect_deaths(self) -> None:
        """Processes that have ended leave now."""
        while tokens := self._processes.gone():
            for token in tokens:
                trainer = self._by_token[token]
                self._remove(trainer)
                self._on_died(trainer)

    def sweep(self) -> None:
        """Trainers that have not polled for 60 s leave, except those whose capture only their process's end can end."""
        self._sweep = None
        now_ns = self._clock.monotonic_ns()
        oldest_ns = now_ns
        for trainer in list(self._by_serial.values()):
            capture = trainer.active_capture
            if now_ns - trainer.last_poll_ns < _SILENT_NS:
                oldest_ns = min(oldest_ns, trainer.last_poll_ns)
            elif capture is None or capture.is_pending or not trainer.watched:
                self._remove(trainer)
                self._on_silent(trainer)
        if self._by_serial:
            wait_s = (oldest_ns + _SILENT_NS - now_ns) / 1e9
            self._sweep = self._loop.call_later(max(wait_s, 1.0), self.sweep)

    def close(self) -> None:
        """Forget everybody; nothing is reported."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._loop.remove_reader(self._processes.fileno())
        self._processes.close()
        self.inspector.close()

    def _remove(self, trainer: Trainer) -> None:
        del self._by_serial[trainer.serial]
        self._looked_twice.discard(trainer.serial)
        if trainer.verified:
            del self._verified[trainer.host_pid]
            token = self._tokens.pop(trainer.serial, None)
            if token is not None:
                del self._by_token[token]
                self._processes.forget(token)
        else:
            del self._unverified[self._keys.pop(trainer.serial)]
        self._leave_gpu(trainer)

    def _leave_gpu(self, trainer: Trainer) -> None:
        if trainer.gpu_and_job is not None:
            self._on_gpu[trainer.gpu_and_job] -= 1
            if self._on_gpu[trainer.gpu_and_job] <= 0:
                del self._on_gpu[trainer.gpu_and_job]
            trainer.gpu_and_job = None
