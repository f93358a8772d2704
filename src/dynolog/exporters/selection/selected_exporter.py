"""Exporters behind the rules of `--exporters_config`."""

import logging
import threading
from collections.abc import Iterable, Sequence

import msgspec

from dynolog.exporters.selection.rules import FLAG, Rules, read_rules
from dynolog.exporters.selection.selection import Selection
from dynolog.exporters.spec import ExporterContext, ExporterSpec
from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.model.record import Record
from dynolog.model.reload import ReloadReport
from dynolog.pipeline.delivery import Exporter, Progress, QueueingExporter, SummingExporter

_log = logging.getLogger(__name__)


class SelectedExporter:
    """An exporter that gets what a selection leaves of the records. The selection may be replaced from another thread."""

    def __init__(self, exporter: Exporter, selection: Selection) -> None:
        self.destination = exporter.destination
        self._exporter = exporter
        self._selection = selection
        self._next: Selection | None = None
        self._lock = threading.Lock()

    def replace(self, selection: Selection) -> None:
        """From the next records on."""
        with self._lock:
            self._next = selection

    def export(self, records: Sequence[Record]) -> None:
        """Deliver what is selected."""
        with self._lock:
            replaced, self._next = self._next, None
        waiting: list[Record] = []
        if replaced is not None:
            waiting = self._selection.flush()
            self._selection = replaced
        if selected := waiting + self._selection.apply(records):
            self._exporter.export(selected)

    def take_over(self, before: Exporter) -> None:
        """Let the exporter go on with the totals of the one behind `before`."""
        if isinstance(before, SelectedExporter) and hasattr(self._exporter, "take_over"):
            summing: SummingExporter = self._exporter  # type: ignore[assignment] # it has `take_over`
            summing.take_over(before._exporter)  # noqa: SLF001 - of its own kind

    def close(self) -> None:
        """Deliver what waits for the end of its interval, too."""
        try:
            if waiting := self._selection.flush():
                self._exporter.export(waiting)
        finally:
            self._exporter.close()


class SelectedQueueingExporter(SelectedExporter):
    """The same for an exporter with a queue of its own."""

    def __init__(self, exporter: QueueingExporter, selection: Selection) -> None:
        super().__init__(exporter, selection)
        self._queueing = exporter

    def progress(self) -> Progress:
        """Of the exporter."""
        return self._queueing.progress()

    def end_by(self, monotonic_ns: int) -> None:
        """Tell the exporter."""
        self._queueing.end_by(monotonic_ns)


class Selections:
    """The rules of all exporters, and the exporters made with them."""

    def __init__(self, path: str, exporters: Iterable[str], context: ExporterContext) -> None:
        """Raises FlagError for a file that cannot be used; an empty `path` leaves all exporters as they are."""
        self._path = path
        self._names = tuple(exporters)
        self._context = context
        self._rules = self._read()
        self._made: dict[str, SelectedExporter] = {}

    def make(self, spec: ExporterSpec, settings: Settings | None = None) -> Exporter:
        """An exporter, behind its rules when there is a file; by `settings` where others than the daemon's are meant."""
        context = self._with(settings)
        if not self._path:
            return spec.factory(context)
        selection = self._selection(spec.name, self._rules)
        exporter = spec.factory(_renamed(context, selection))
        made = self._made[spec.name] = _behind(exporter, selection)
        return made

    def check(self, spec: ExporterSpec, settings: Settings | None = None) -> None:
        """Raise the DynologError of an exporter that could not be made, without opening anything; its spool is not looked at."""
        asked = settings or self._context.settings
        context = self._with(Settings(asked.flags.values(), {**asked.given, "spool_dir": ""}))
        if self._path:
            context = _renamed(context, self._selection(spec.name, self._rules))
        if spec.check is not None:
            spec.check(context)
        else:
            spec.factory(context)

    def reload(self) -> ReloadReport:
        """Read the file again: new rules take effect at once, new names at the next start. What came of it is also logged."""
        if not self._path:
            return ReloadReport()
        changed: list[str] = []
        waiting: list[str] = []
        try:
            rules = self._read()
        except FlagError as error:
            _log.error("reload: rules of exporters not reloaded: %s", error)
            return ReloadReport(errors=(f"rules of exporters not reloaded: {error}",))
        for name, exporter in self._made.items():
            old, new = self._rules.get(name, Rules()), rules.get(name, Rules())
            if old.rename != new.rename:
                _log.warning("reload: --%s: [%s]: rename takes effect at the next start", FLAG, name)
                waiting.append(f"--{FLAG}: [{name}]: rename")
                new = rules[name] = msgspec.structs.replace(new, rename=old.rename)
            if new != old:
                exporter.replace(self._selection(name, rules))
                _log.info("reload: --%s: [%s]: new rules are in effect", FLAG, name)
                changed.append(f"--{FLAG}: [{name}]")
        self._rules = rules
        return ReloadReport(changed=tuple(changed), waiting=tuple(waiting))

    def forget(self, spec: ExporterSpec) -> None:
        """An exporter is no more."""
        self._made.pop(spec.name, None)

    def _with(self, settings: Settings | None) -> ExporterContext:
        return self._context if settings is None else msgspec.structs.replace(self._context, settings=settings)

    def _read(self) -> dict[str, Rules]:
        return read_rules(self._path, self._names, self._context.catalogue) if self._path else {}

    def _selection(self, name: str, rules: dict[str, Rules]) -> Selection:
        return Selection(rules.get(name, Rules()), self._context.catalogue, self._context.owners)


def _renamed(context: ExporterContext, selection: Selection) -> ExporterContext:
    return msgspec.structs.replace(context, catalogue=selection.renamed_catalogue, owners=selection.renamed_owners)


def _behind(exporter: Exporter, selection: Selection) -> SelectedExporter:
    if hasattr(exporter, "progress"):
        queueing: QueueingExporter = exporter  # type: ignore[assignment] # it has `progress`
        return SelectedQueueingExporter(queueing, selection)
    return SelectedExporter(exporter, selection)
