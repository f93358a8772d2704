"""What an exporter gets of the records, by the rules of `--exporters_config`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dynolog.exporters.selection.rules import Rules, matcher
from dynolog.exporters.selection.window import Nature, Windows
from dynolog.model.metric import Catalogue, Kind, Metric, Scope
from dynolog.model.record import Record

Owners = Mapping[tuple[str, Scope], str]
_UNKNOWN = Nature(Kind.GAUGE, "")
# Keys hold device names, and devices come and go for months.
_MOST_KEYS = 20_000


class Selection:
    """The rules of one exporter, applied. `catalogue` and `owners` of the daemon; `renamed_*` are what the exporter needs."""

    def __init__(self, rules: Rules, catalogue: Catalogue, owners: Owners) -> None:
        self.rules = rules
        self._catalogue = catalogue
        self._owners = owners
        self._has_source = matcher(rules.sources or ("*",))
        self._has_metric = matcher(rules.metrics or ("*",))
        self._is_without = matcher(rules.without)
        self._takes: dict[str, bool] = {}
        self._natures: dict[str, Nature] = {}
        self._renamed: dict[str, str] = {}
        self._windows = Windows(int(rules.interval_s * 1e9), self._nature) if rules.interval_s else None

    @property
    def renamed_catalogue(self) -> Catalogue:
        """The catalogue with the new names."""
        rename = self.rules.rename
        if not rename:
            return self._catalogue

        def renamed(metrics: Iterable[Metric]) -> Iterator[Metric]:
            return (msgspec.structs.replace(metric, name=rename.get(metric.name, metric.name)) for metric in metrics)

        made = Catalogue(renamed(self._catalogue))
        self._catalogue.follow(lambda metrics: made.declare(renamed(metrics)))
        return made

    @property
    def renamed_owners(self) -> Owners:
        """The collectors, by the new names."""
        rename = self.rules.rename
        return {(rename.get(name, name), scope): owner for (name, scope), owner in self._owners.items()}

    def apply(self, records: Sequence[Record]) -> list[Record]:
        """What of the records is to be exported now."""
        selected = [chosen for record in records if (chosen := self._select(record)) is not None]
        if self._windows is not None:
            selected = [complete for record in selected for complete in self._windows.add(record)]
        return [self._rename(record) for record in selected]

    def flush(self) -> list[Record]:
        """What waits for its interval to end."""
        return [self._rename(record) for record in self._windows.flush()] if self._windows is not None else []

    def _select(self, record: Record) -> Record | None:
        if not self._has_source(record.source):
            return None
        values = {key: value for key, value in record.values.items() if self._is_taken(key)}
        if not any(self._nature(key).kind is not Kind.LABEL for key in values):
            return None
        return record if len(values) == len(record.values) else msgspec.structs.replace(record, values=values)

    def _is_taken(self, key: str) -> bool:
        taken = self._takes.get(key)
        if taken is None:
            _bound(self._takes)
            series = self._catalogue.resolve(key)
            name = series.metric.name if series else key
            # A GPU's labels say which the rest is about.
            is_label = series is not None and series.metric.kind is Kind.LABEL and series.metric.scope is Scope.GPU
            wanted = self._has_metric(key) or self._has_metric(name) or is_label
            taken = self._takes[key] = wanted and not (self._is_without(key) or self._is_without(name))
        return taken

    def _nature(self, key: str) -> Nature:
        nature = self._natures.get(key)
        if nature is None:
            _bound(self._natures)
            series = self._catalogue.resolve(key)
            if series is None:
                nature = _UNKNOWN
            else:
                owner = self._owners.get((series.metric.name, series.metric.scope), "")
                nature = Nature(series.metric.kind, owner)
            self._natures[key] = nature
        return nature

    def _rename(self, record: Record) -> Record:
        if not self.rules.rename:
            return record
        values = {self._new_key(key): value for key, value in record.values.items()}
        return msgspec.structs.replace(record, values=values)

    def _new_key(self, key: str) -> str:
        new = self._renamed.get(key)
        if new is None:
            _bound(self._renamed)
            series = self._catalogue.resolve(key)
            name = self.rules.rename.get(series.metric.name) if series else None
            new = key
            if series is not None and name is not None:
                new = msgspec.structs.replace(series.metric, name=name).key(series.instance)
            self._renamed[key] = new
        return new


def _bound(cache: dict[str, bool] | dict[str, str] | dict[str, Nature]) -> None:
    if len(cache) >= _MOST_KEYS:
        cache.clear()
