"""A transport that answers what a test scripts, and the smallest encoder."""

import threading
from collections.abc import Sequence

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.delivery.payload import Delivered, Payload, Verdict
from dynolog.exporters.spec import ExporterContext
from dynolog.model.flag import FlagValue, Settings
from dynolog.model.metric import Catalogue
from dynolog.model.record import Record


class NumberEncoder:
    """One payload a record: its number as text."""

    def encode(self, records: Sequence[Record]) -> Sequence[Payload]:
        return [Payload(body=b"%d" % record.wall_ns, records=1) for record in records]


class ScriptedTransport:
    """Gives `verdicts` in turn (an exception is raised), then `then` for ever; `gate` closed blocks each attempt."""

    timeout_s = 5.0

    def __init__(self, *verdicts: Verdict | Exception) -> None:
        self.verdicts = list(verdicts)
        self.then: Verdict | Exception = Delivered()
        self.attempts: list[Payload] = []
        self.gate = threading.Event()
        self.gate.set()
        self.closes = 0
        self._changed = threading.Condition()

    def send(self, payload: Payload) -> Verdict:
        with self._changed:
            self.attempts.append(payload)
            self._changed.notify_all()
        assert self.gate.wait(30)
        verdict = self.verdicts.pop(0) if self.verdicts else self.then
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    def close(self) -> None:
        self.closes += 1

    def wait_for(self, count: int) -> list[bytes]:
        """Until this many attempts were made; their bodies."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.attempts) >= count, 20), self.attempts
            return [payload.body for payload in self.attempts]


def delivery_context(**given: FlagValue) -> ExporterContext:
    """What a network exporter is made from, with these delivery flags."""
    return ExporterContext(
        settings=Settings(DELIVERY_FLAGS, given),
        catalogue=Catalogue(()),
        hostname="host",
        write_log=lambda _file, _line, _text: None,
    )


def numbered(*numbers: int) -> list[Record]:
    """Records that are told apart by their time."""
    return [Record(wall_ns=number, source="kernel", values={"n": number}) for number in numbers]
