"""Network exporters: records are encoded, queued, and sent by a thread of their own until the destination has them."""

import logging
import os
import threading
import time
from collections.abc import Sequence

import msgspec

from dynolog.exporters.delivery.backoff import Backoff
from dynolog.exporters.delivery.outbox import Outbox
from dynolog.exporters.delivery.payload import (
    Delivered,
    Encoder,
    Payload,
    Refused,
    RetryLater,
    SummingEncoder,
    Transport,
    Verdict,
)
from dynolog.exporters.delivery.spool import Spool
from dynolog.exporters.spec import ExporterContext
from dynolog.model.clock import Clock, SystemClock
from dynolog.model.record import Record
from dynolog.model.status import REFUSED, REJECTED, ExporterState
from dynolog.pipeline.delivery import Exporter, Progress
from dynolog.pipeline.losses import Losses

_log = logging.getLogger(__name__)
_MB = 1_000_000
_SAID_EVERY_NS = 60_000_000_000
_SYNC_EVERY_S = 1.0
# For a transport that does not say how long an attempt may take.
_TIMEOUT_S = 30.0
# An attempt that takes longer than this many of its transport's timeouts is cut: something answers byte by byte.
_MOST_TIMEOUTS = 3


class _Fate(msgspec.Struct):
    """How sending goes. Replaced field by field by the sending thread; read by others."""

    sent: int = 0
    retries: int = 0
    last_success_wall_ns: int = 0
    state: ExporterState = ExporterState.IDLE
    error: str = ""
    next_try_ns: int = 0
    sending_since_ns: int = 0


class NetworkExporter:
    """An encoder, a queue and a transport (pipeline.delivery.QueueingExporter)."""

    def __init__(
        self,
        name: str,
        destination: str,
        encoder: Encoder,
        transport: Transport,
        context: ExporterContext,
        *,
        queue_records: int = 1000,
        gzip: bool = False,
        clock: Clock | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`name` is that of the spec, and of the directory below --spool_dir. `destination` is for people: without secrets.

        `gzip` compresses each payload once, before it is queued. Raises FlagError or AddressInUse when the spool cannot be used.
        """
        self.destination = destination
        self._name = name
        self._encoder = encoder
        self._transport = transport
        self._gzip = gzip
        self._clock = clock or SystemClock()
        self._backoff = backoff or Backoff()
        self._losses = Losses(f"{name} ({destination})", self._clock)
        settings = context.settings
        spool = None
        if directory := settings.text("spool_dir"):
            spool = Spool(os.path.join(directory, name), int(settings.number("spool_max_mb") * _MB))
        self._outbox = Outbox(
            name,
            self._clock,
            self._losses,
            max_records=queue_records,
            max_bytes=int(settings.number("exporter_queue_mb") * _MB),
            spool=spool,
        )
        self._fate = _Fate()
        self._said_ns: int | None = None
        self._failing_since_ns: int | None = None
        # Set when there may be something new to do: a payload, or the end.
        self._changed = threading.Event()
        self._ending = threading.Event()
        self._is_hurried = False
        self._complete = False
        self._end_ns: int | None = None
        self._thread: threading.Thread | None = None

    def export(self, records: Sequence[Record]) -> None:
        """Encode and queue the records."""
        self._cut_endless_attempt()
        for payload in self._encoder.encode(records):
            self._outbox.put(_gzipped(payload) if self._gzip and not payload.gzipped else payload)
        self._changed.set()
        self._start()

    def take_over(self, before: Exporter) -> None:
        """Let the encoder go on with the totals of its predecessor, if it has any (pipeline.delivery.SummingExporter)."""
        if isinstance(before, NetworkExporter) and hasattr(self._encoder, "take_over"):
            summing: SummingEncoder = self._encoder  # type: ignore[assignment] # it has `take_over`
            summing.take_over(before._encoder)  # noqa: SLF001 - of its own kind

    def progress(self) -> Progress:
        """Counters, queue, state and last error."""
        fate, levels = self._fate, self._outbox.levels
        return Progress(
            sent=fate.sent,
            dropped_by=self._losses.by_reason,
            queued=levels.records,
            queued_bytes=levels.size_bytes,
            last_success_wall_ns=fate.last_success_wall_ns,
            state=fate.state,
            error=fate.error,
            spool=levels.spool,
            spool_bytes=levels.spool_bytes,
            retries=fate.retries,
            next_try_s=max(fate.next_try_ns - self._clock.monotonic_ns(), 0) / 1e9 if fate.next_try_ns else 0.0,
        )

    def end_by(self, monotonic_ns: int) -> None:
        """Stop waiting between attempts, and give up at this time."""
        self._end_ns = monotonic_ns
        self._ending.set()
        self._changed.set()

    def close(self) -> None:
        """Deliver what is queued, as far as time allows; what is on disk stays there for the next start."""
        self._complete = True
        self._ending.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(self._rest_s())
        self._transport.close()
        self._outbox.close()

    # --- the sending thread ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name=f"send-{self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # No thread to be had: the payloads wait in the queue, and the next records try again.
            self._fate.error = str(error)
        else:
            self._thread = thread

    def _run(self) -> None:
        while self._rest_s() > 0:
            payload = self._outbox.take()
            if payload is not None:
                if not self._attempt(payload):
                    return
            elif self._complete:
                return
            else:
                self._changed.wait()
                self._changed.clear()

    def _attempt(self, payload: Payload) -> bool:
        """Send once, and wait when it is to be tried again; False when there is no more to be done."""
        self._fate.sending_since_ns = self._clock.monotonic_ns()
        verdict = self._send(payload)
        self._fate.sending_since_ns = 0
        if not isinstance(verdict, RetryLater):
            self._settle(payload, verdict)
            self._outbox.finish()
            return True
        delay_s = self._backoff.delay_s(verdict.after_s)
        fate = self._fate
        fate.next_try_ns = self._clock.monotonic_ns() + int(delay_s * 1e9)
        fate.state, fate.error = ExporterState.RETRYING, verdict.reason
        fate.retries += 1
        self._outbox.give_back()
        self._say_retry(verdict.reason, delay_s)
        if self._ending.is_set() and self._outbox.is_safe:
            return False  # what is on disk can wait for the next start
        self._wait(delay_s)
        fate.next_try_ns = 0
        return True

    def _send(self, payload: Payload) -> Verdict:
        try:
            return self._transport.send(payload)
        except OSError as error:
            return RetryLater(error.strerror or str(error) or type(error).__name__)
        except Exception as error:  # noqa: BLE001 - the boundary of this thread: counted, reported, and the next payload is tried
            # Its text may hold a header, and so a secret.
            return Refused(f"{type(error).__name__} while sending")

    def _settle(self, payload: Payload, verdict: Delivered | Refused) -> None:
        fate = self._fate
        self._backoff.reset()
        if isinstance(verdict, Refused):
            fate.state, fate.error = ExporterState.FAILING, verdict.reason
            self._losses.count(REFUSED, payload.records, verdict.reason)
            return
        rejected = min(verdict.rejected, payload.records)
        fate.sent += payload.records - rejected
        fate.last_success_wall_ns = self._clock.wall_ns()
        fate.state = ExporterState.OK
        fate.error = verdict.message
        self._losses.count(REJECTED, rejected, verdict.message)
        if self._failing_since_ns is not None:
            away_s = (self._clock.monotonic_ns() - self._failing_since_ns) / 1e9
            self._failing_since_ns = None
            _log.info("exporter %s (%s) delivers again after %.0f s", self._name, self.destination, away_s)

    def _say_retry(self, reason: str, delay_s: float) -> None:
        now_ns = self._clock.monotonic_ns()
        if self._failing_since_ns is None:
            self._failing_since_ns = now_ns
        if self._said_ns is not None and now_ns - self._said_ns < _SAID_EVERY_NS:
            return
        self._said_ns = now_ns
        _log.warning("exporter %s (%s): %s; tried again in %.1f s", self._name, self.destination, reason, delay_s)

    def _wait(self, delay_s: float) -> None:
        """Wait for the next attempt. The end of the daemon cuts the wait that it falls into short, and bounds those after it."""
        if self._is_hurried:
            time.sleep(min(delay_s, self._rest_s()))
            return
        left_s = delay_s
        while left_s > 0:
            if self._ending.wait(min(left_s, _SYNC_EVERY_S)):
                self._is_hurried = True
                self._backoff.reset()
                return
            self._outbox.sync()
            left_s = (self._fate.next_try_ns - self._clock.monotonic_ns()) / 1e9

    def _rest_s(self) -> float:
        if self._end_ns is None:
            return _TIMEOUT_S
        return max((self._end_ns - self._clock.monotonic_ns()) / 1e9, 0.0)

    def _cut_endless_attempt(self) -> None:
        since_ns = self._fate.sending_since_ns
        limit_s = _MOST_TIMEOUTS * getattr(self._transport, "timeout_s", _TIMEOUT_S)
        if since_ns and self._clock.monotonic_ns() - since_ns > limit_s * 1e9:
            self._transport.close()


def _gzipped(payload: Payload) -> Payload:
    """The same, compressed; the same bytes for the same body, whenever."""
    import gzip  # noqa: PLC0415 - only where a destination takes it

    # 6 takes half the time of 9 for a percent more bytes. (gzip.compress puts no time into the header at mtime 0.)
    return msgspec.structs.replace(payload, body=gzip.compress(payload.body, 6, mtime=0), gzipped=True)
