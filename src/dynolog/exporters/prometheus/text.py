"""The pages that Prometheus scrapes: text format 0.0.4 and OpenMetrics 1.0.

The client library renders these too, at more than ten times the cost (docs/benchmarks.md), which a scrape each second would make the
dearest thing that the daemon does. It still chooses the format, and renders what is asked for rarely (other versions, `name[]`).
"""

import gzip
from collections.abc import Iterator

from dynolog.exporters.prometheus.names import Family, Type
from dynolog.exporters.prometheus.sample import escape
from dynolog.exporters.prometheus.series import SeriesStore, View

_GZIP_LEVEL = 5


def headers(family: Family, openmetrics: bool) -> str:
    """The lines before the samples of a family."""
    if openmetrics:
        unit = f"# UNIT {family.name} {family.unit}\n" if family.unit else ""
        return f"# HELP {family.name} {escape(family.help)}\n# TYPE {family.name} {family.type}\n{unit}"
    name = family.sample
    kind = Type.GAUGE if family.type is Type.INFO else family.type
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


class Pages:
    """Each page is made once for each state of the store, however often it is asked for."""

    def __init__(self, store: SeriesStore) -> None:
        self._store = store
        self._view: View | None = None
        self._bodies: list[tuple[Family, str]] = []
        self._pages: dict[tuple[bool, bool], bytes] = {}
        self.rendered = 0

    def page(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """The whole page, in gzip when `compressed`."""
        with self._store.lock:
            if self._view is None or not self._store.is_current(self._view):
                self._render()
        page = self._pages.get((openmetrics, compressed))
        if page is None:
            if compressed:
                page = gzip.compress(self.page(openmetrics=openmetrics, compressed=False), _GZIP_LEVEL, mtime=0)
            else:
                page = "".join(self._pieces(openmetrics)).encode()
            self._pages[openmetrics, compressed] = page
        return page

    def _render(self) -> None:
        """The lines of all samples, which both formats have in common."""
        view = self._store.view()
        self._bodies = [(family, "".join([sample.line() for sample in samples])) for family, samples in view.families]
        self._view = view
        self._pages.clear()
        self.rendered += 1

    def _pieces(self, openmetrics: bool) -> Iterator[str]:
        for family, lines in self._bodies:
            yield headers(family, openmetrics)
            yield lines
        if openmetrics:
            yield "# EOF\n"
