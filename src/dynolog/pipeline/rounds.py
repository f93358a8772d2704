"""The rounds: all collectors that are due at a tick run one after another, and their values make one record.

Two threads. The worker sleeps until the next tick and runs the round. The watchdog looks a moment after each tick whether the
round is held up by a collector; if so, that thread is left to it, and a new worker takes the rest. Whatever hangs thus costs one
thread and nothing else, until it returns. No thread polls: each sleeps until the next thing that can happen.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from dynolog.collectors.spec import CollectorSpec, Context, Notices, Values
from dynolog.model.clock import Clock
from dynolog.model.record import Record
from dynolog.model.status import CollectorState, CollectorStatus
from dynolog.pipeline.budget import Cost, CpuBudget
from dynolog.pipeline.clock_watch import ClockWatch
from dynolog.pipeline.collector_run import Attempt, CollectorRun
from dynolog.pipeline.config import PipelineConfig
from dynolog.pipeline.device_records import DeviceBoard
from dynolog.pipeline.schedule import effective_interval_ns, interval_ns, patience_ns, phase_ns
from dynolog.sources.own_process import own_cpu_ns

_log = logging.getLogger(__name__)
SOURCE = "kernel"
Wait = Callable[[threading.Condition, float | None], object]


class _Round:
    """One tick's work. Handed from worker to worker when a collector hangs; guarded by the pipeline's lock."""

    def __init__(self, wall_ns: int, due: Sequence[CollectorRun]) -> None:
        self.wall_ns = wall_ns
        self.rest = deque(due)
        self.current: CollectorRun | None = None
        self.values: Values = {}
        self.intervals_ns: dict[str, int] = {}

    def add(self, name: str, attempt: Attempt) -> None:
        self.values.update(attempt.values)
        self.intervals_ns[name] = attempt.interval_ns


class Pipeline:
    """Runs the collectors and delivers their records.

    `context_of` makes what a collector is built from (called on a worker thread, under the deadline). `deliver` takes each record, on
    a worker thread, and must not block. `board` makes the records of devices. `wait` waits on a condition for some seconds (None: for
    ever) and `cpu_ns` tells the CPU time of this process; tests replace both.
    """

    def __init__(
        self,
        specs: Sequence[CollectorSpec],
        context_of: Callable[[CollectorSpec, Notices], Context],
        clock: Clock,
        deliver: Callable[[Record], None],
        config: PipelineConfig,
        *,
        board: DeviceBoard | None = None,
        wait: Wait = threading.Condition.wait,
        cpu_ns: Callable[[], int] = own_cpu_ns,
    ) -> None:
        self._clock = clock
        self._deliver = deliver
        self._wait = wait
        self._cpu_ns = cpu_ns
        self._budget = CpuBudget()
        # The plain lock is what a round takes for each collector: a Condition's own costs Python calls.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._runs = tuple(CollectorRun(spec, context_of, clock, board) for spec in specs)
        self._clock_watch = ClockWatch(clock.monotonic_ns(), clock.wall_ns())
        self._round: _Round | None = None
        self._idle_since_ns = 0
        # The worker with this number is in charge; one with an older number ends as soon as its collector returns.
        self._worker_number = 0
        self._worker: threading.Thread | None = None
        self._watchdog: threading.Thread | None = None
        self._stopping = False
        self._records = 0
        self._apply(config)

    def start(self) -> None:
        """Start sampling: the first readings at once, the first record at the first tick after them."""
        # What the start of the daemon cost is not the collectors' doing: the first minute begins here.
        self._budget.decide(self._clock.monotonic_ns(), self._cpu_ns(), 0.0, ())
        with self._lock:
            self._start_worker()
        self._watchdog = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._watchdog.start()

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Stop within `timeout_s`; False when a collector still hangs (its thread ends with the process)."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        with self._lock:
            self._stopping = True
            self._changed.notify_all()
            threads = [thread for thread in (self._worker, self._watchdog) if thread is not None]
        for thread in threads:
            thread.join(max((deadline_ns - self._clock.monotonic_ns()) / 1e9, 0.0))
        is_still = not any(thread.is_alive() for thread in threads)
        if is_still:
            for run in self._runs:
                run.close()
        return is_still

    def reconfigure(self, config: PipelineConfig) -> None:
        """Take over changed intervals and switches; collectors that stay on keep their base lines."""
        with self._lock:
            self._apply(config)
            self._changed.notify_all()

    def statuses(self) -> tuple[CollectorStatus, ...]:
        """State and counters of each collector that is on."""
        with self._lock:
            return tuple(run.status() for run in self._runs if run.enabled)

    def state_of(self, name: str) -> CollectorState | None:
        """The state of one collector; None when it is off."""
        with self._lock:
            return next((run.state for run in self._runs if run.name == name and run.enabled), None)

    def missing(self) -> tuple[str, ...]:
        """One sentence for each collector that could work here: what, why, and the remedy. What the machine does not have has none."""
        with self._lock:
            return tuple(run.missing for run in self._runs if run.enabled and run.missing)

    @property
    def records(self) -> int:
        """Records made since the start."""
        return self._records

    @property
    def cpu_pct_1m(self) -> float:
        """Percent of one core that the daemon used over the last minute (less right after the start)."""
        with self._lock:
            return self._budget.usage.pct

    def _apply(self, config: PipelineConfig) -> None:
        shared_ns = interval_ns(config.interval_s)
        slower = 0
        for run in self._runs:
            own_s = config.own_intervals_s.get(run.name, 0.0)
            run.configured_interval_ns = effective_interval_ns(config.interval_s, own_s, run.spec.shortest_interval_s)
            run.phase_ns = 0
            if own_s == 0 and run.configured_interval_ns > shared_ns:
                run.phase_ns = phase_ns(slower, config.interval_s, run.configured_interval_ns)
                slower += 1
            run.switch(run.name in config.enabled)
        self._budget_pct = config.cpu_budget_pct
        self._deadline_ns = interval_ns(config.deadline_s)
        shortest = min((run.configured_interval_ns for run in self._runs if run.enabled), default=interval_ns(60))
        self._patience_ns = patience_ns(self._deadline_ns, shortest)

    # --- the worker ----------------------------------------------------------------------------------------------------

    def _start_worker(self) -> None:
        """Put a new worker in charge; it waits for the lock that the caller holds. Raises RuntimeError when there is no thread."""
        number = self._worker_number + 1
        worker = threading.Thread(target=self._work, args=(number,), name=f"collect-{number}", daemon=True)
        worker.start()
        self._worker_number, self._worker = number, worker

    def _work(self, number: int) -> None:
        while (work := self._next_round(number)) is not None:
            if not self._run_round(work, number):
                return
            if (record := self._close_round(work)) is not None:
                self._send(record)

    def _next_round(self, number: int) -> _Round | None:
        """Sleep until a tick; the round then due, or the one that another worker left. None: this worker's time is over."""
        with self._lock:
            while not self._stopping and number == self._worker_number:
                if self._round is not None:
                    return self._round
                now_ns = self._clock.monotonic_ns()
                dues = self._dues(now_ns)
                if due := [run for run, due_ns in dues if due_ns <= now_ns]:
                    self._round = _Round(self._clock.wall_ns(), due)
                    return self._round
                tick_ns = min((due_ns for _, due_ns in dues), default=None)
                self._sleep(tick_ns, now_ns)
            return None

    def _sleep(self, until_ns: int | None, now_ns: int) -> None:
        """Until then (None: for ever), or until something has changed. With the lock held."""
        self._wait(self._changed, None if until_ns is None else (until_ns - now_ns) / 1e9)
        if until_ns is not None:
            self._clock_watch.woke(until_ns, self._clock.monotonic_ns(), self._clock.wall_ns())

    def _dues(self, now_ns: int) -> list[tuple[CollectorRun, int]]:
        offset_ns = self._clock.wall_ns() - now_ns
        dues = ((run, run.due_ns(now_ns, offset_ns, self._idle_since_ns)) for run in self._runs)
        return [(run, due_ns) for run, due_ns in dues if due_ns is not None]

    def _run_round(self, work: _Round, number: int) -> bool:
        """Run what is left of a round; False when this worker was held up and another one has taken over."""
        while (run := self._begin_next(work)) is not None:
            attempt = run.attempt()
            with self._lock:
                good = run.finish(attempt)
                in_charge = number == self._worker_number
                if in_charge:
                    work.current = None
                    if good:
                        work.add(run.name, attempt)
                else:
                    # The worker in charge sleeps until a tick that it chose without this collector.
                    self._changed.notify_all()
            if attempt.error is not None:
                run.say_unsaid()
            if good:
                for device in attempt.devices:
                    self._send(device.record(work.wall_ns))
            if not in_charge:
                if good and attempt.values:
                    self._send_late(work.wall_ns, run.name, attempt)
                return False
        return True

    def _send_late(self, wall_ns: int, name: str, attempt: Attempt) -> None:
        """A collector that held the round up but returned before the deadline: its values make a record of their own."""
        late = _Round(wall_ns, ())
        late.add(name, attempt)
        self._send(self._record(late))

    def _begin_next(self, work: _Round) -> CollectorRun | None:
        with self._lock:
            while work.rest and not self._stopping:
                run = work.rest.popleft()
                if run.enabled and run.reading_since_ns is None:
                    run.begin(self._clock.monotonic_ns())
                    work.current = run
                    return run
            return None

    def _close_round(self, work: _Round) -> Record | None:
        with self._lock:
            self._round = None
            self._idle_since_ns = self._clock.monotonic_ns()
            self._keep_budget()
            # One that the stop has cut short would look as if sources had gone.
            return self._record(work) if work.values and not work.rest else None

    def _record(self, work: _Round) -> Record:
        return Record(wall_ns=work.wall_ns, source=SOURCE, values=work.values, intervals_ns=work.intervals_ns)

    def _send(self, record: Record) -> None:
        with self._lock:
            self._records += 1
        try:
            self._deliver(record)
        except Exception:  # noqa: BLE001 - the boundary of this thread: sampling goes on whatever a destination does
            _log.exception("a record could not be delivered")

    def _keep_budget(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if not self._budget.is_due(now_ns):
            return
        costs = [Cost(run.name, run.cost_pct, run.stretch) for run in self._runs if run.enabled]
        changes = self._budget.decide(now_ns, self._cpu_ns(), self._budget_pct, costs)
        for run in self._runs:
            if run.name in changes:
                run.change_stretch(changes[run.name], self._budget.usage.pct, self._budget_pct)

    # --- the watchdog --------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        with self._lock:
            while not self._stopping:
                now_ns = self._clock.monotonic_ns()
                self._look(now_ns)
                self._sleep(self._next_look_ns(now_ns), now_ns)

    def _look(self, now_ns: int) -> None:
        for run in self._runs:
            if run.reading_since_ns is None:
                continue
            waited_ns = now_ns - run.reading_since_ns
            if waited_ns >= self._deadline_ns and not run.is_stalled:
                run.stall()
            if waited_ns >= self._patience_ns and self._round is not None and self._round.current is run:
                self._leave_behind(self._round)

    def _leave_behind(self, work: _Round) -> None:
        try:
            self._start_worker()
        except RuntimeError as error:
            # No thread to be had: the round waits, and the next look tries again.
            _log.warning("no thread to go on without %s: %s", work.current and work.current.name, error)
        else:
            work.current = None

    def _next_look_ns(self, now_ns: int) -> int | None:
        looks = [
            max(run.reading_since_ns + self._deadline_ns, now_ns + 1)
            for run in self._runs
            if run.reading_since_ns is not None and not run.is_stalled
        ]
        if self._round is None:
            ticks = [max(due_ns, now_ns) + self._patience_ns for _, due_ns in self._dues(now_ns)]
            if ticks:
                looks.append(min(ticks))
        else:
            current = self._round.current
            since_ns = current.reading_since_ns if current is not None else None
            if since_ns is None or now_ns - since_ns >= self._patience_ns:
                since_ns = now_ns
            looks.append(since_ns + self._patience_ns)
        return min(looks, default=None)
