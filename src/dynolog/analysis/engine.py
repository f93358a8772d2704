"""Where the files are read: here, in processes of this machine, or on the workers of a Dask cluster."""

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

import msgspec

from dynolog.analysis.many import LOST, map_files
from dynolog.analysis.rank.rank_summary import RankResult, summarise
from dynolog.analysis.reading.load import Progress
from dynolog.analysis.reading.trace_folder import Folder, TraceFileHead, scan
from dynolog.model.errors import DynologError
from dynolog.profiling.trace_bytes import TraceUnreadable

_CONNECT_S = 30


class EngineError(DynologError):
    """An engine that is unknown, not installed, or not there."""


class NotRead(msgspec.Struct, frozen=True):
    """A file that could not be read, and why."""

    path: str
    why: str


Show = Callable[[str, int], None]
Outcome = RankResult | NotRead


def read_ranks(
    paths: Sequence[str],
    ranks: Sequence[int] = (),
    *,
    engine: str = "",
    modules: bool = False,
    show: Show | None = None,
) -> tuple[Folder, list[Outcome]]:
    """The traces among files and in folders, each summarised. Paths are those of the engine's machines.

    `show` is told a file and how many more of its bytes were read; on a cluster it is not.

    Raises EngineError, RanksUnclear and OSError. What is wrong with one file costs that file.
    """
    if engine:
        return _on_cluster(_scheduler(engine), paths, ranks, modules=modules)
    folder = scan(paths, ranks)
    heads = {head.path: head for head in folder.traces}
    if show is not None and len(heads) == 1:  # it is read here, so that every block can be told
        (head,) = heads.values()
        return folder, [outcome_of(head, modules=modules, progress=partial(show, head.path))]
    work = partial(_of_path, heads, modules)
    outcomes = []
    for path, outcome in map_files(work, list(heads), lost=_lost):
        outcomes.append(outcome)
        if show is not None:
            show(path, heads[path].size_bytes)
    return folder, outcomes


def _lost(path: str) -> Outcome:
    return NotRead(path, LOST)


def _of_path(heads: dict[str, TraceFileHead], modules: bool, path: str) -> Outcome:
    return outcome_of(heads[path], modules=modules)


def outcome_of(head: TraceFileHead, *, modules: bool = False, progress: Progress | None = None) -> Outcome:
    """One file, with what is wrong with it as a value: it travels between processes and machines."""
    try:
        return summarise(head, modules=modules, progress=progress)
    except TraceUnreadable as error:
        return NotRead(head.path, error.reason)
    except OSError as error:
        return NotRead(head.path, error.strerror or str(error))


def _scheduler(engine: str) -> str:
    """`dask://HOST:PORT` → the scheduler's address."""
    parts = urlsplit(engine)
    if parts.scheme != "dask":
        raise EngineError(
            f"--engine {engine}: only dask://HOST:PORT is known (a Dask scheduler; pip install 'dynolog[dask]')"
        )
    if not parts.hostname or not parts.port:
        raise EngineError(f"--engine {engine}: say the scheduler's host and port, such as dask://node1:8786")
    return f"tcp://{parts.netloc}"


def _on_cluster(
    address: str, paths: Sequence[str], ranks: Sequence[int], *, modules: bool
) -> tuple[Folder, list[Outcome]]:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra; asyncio, tornado
    except ImportError:
        raise EngineError("--engine dask://... needs Dask: pip install 'dynolog[dask]'") from None
    try:
        client = Client(address, timeout=_CONNECT_S)  # type: ignore[no-untyped-call] # Dask is typed in part
    except OSError as error:
        raise EngineError(
            f"no Dask scheduler at {address} ({error}): start one with `dask scheduler`, or leave --engine out"
        ) from error
    with client:
        # Names of files may stand for other contents tomorrow: nothing is taken from the cluster's memory.
        folder: Folder = client.submit(scan, list(paths), tuple(ranks), pure=False).result()
        futures = client.map(partial(outcome_of, modules=modules), folder.traces, pure=False)
        outcomes: list[Outcome] = client.gather(futures)  # type: ignore[no-untyped-call]
        return folder, outcomes
