"""What `dynolog --check` looks at beyond the flags themselves: whether the exporters that are on could be made."""

import logging
import os

from dynolog.collectors import gpu, tpu
from dynolog.collectors.registry import declared_catalogue
from dynolog.daemon.gpu_owners import check_environment_map
from dynolog.daemon.listen_check import check_addresses
from dynolog.daemon.wiring import exporter_context, owners_of_metrics
from dynolog.exporters.registry import EXPORTERS, chosen
from dynolog.exporters.selection.selected_exporter import Selections
from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.rpc.check import check_rpc


class _Remarks(logging.Handler):
    """Keeps the warnings that exporters give when they are made."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def check_exporters(settings: Settings) -> tuple[str, ...]:
    """Remarks on addresses to listen on and on flags of exporters. Raises the DynologError that would end the start of the daemon.

    No socket is opened, nothing is written, and a daemon that runs is not disturbed: its spool is left alone.
    """
    gpu.options_of(settings, settings.text("root_dir"), settings.number(gpu.INTERVAL.name))
    tpu.check_flags(settings)
    check_environment_map(settings)
    check_rpc(settings)
    of_addresses = check_addresses(settings)
    remarks = _Remarks()
    root = logging.getLogger()
    root.addHandler(remarks)
    try:
        _check_spool(settings.text("spool_dir"))
        catalogue = declared_catalogue()
        context = exporter_context(
            settings, catalogue, owners_of_metrics(), lambda _file, _line, _text: None, lambda _line: None
        )
        selections = Selections(settings.text("exporters_config"), (spec.name for spec in EXPORTERS), context)
        for spec in chosen(settings):
            selections.check(spec)
    finally:
        root.removeHandler(remarks)
    return (*of_addresses, *remarks.sentences)


def _check_spool(directory: str) -> None:
    """Whether the daemon could make its spools there, as far as the nearest directory that is there tells."""
    if not directory:
        return
    path = os.path.abspath(directory)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path) or not os.access(path, os.W_OK | os.X_OK):
        what = "may not be written" if os.path.isdir(path) else "is no directory"
        raise FlagError(f"--spool_dir={directory}: {path} {what}: name a directory that dynolog may write")
