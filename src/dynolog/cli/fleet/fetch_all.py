"""Bringing the traces of many hosts here, several at a time: resumed, checked, and completed with rank and world size."""

import functools
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Sequence

from dynolog.analysis.editing.host_tracks import original_sha256_of
from dynolog.cli.gputrace.fetch import fetch_one
from dynolog.cli.gputrace.fetch_names import safe_name, with_suffix
from dynolog.cli.gputrace.follow_up import FollowOptions
from dynolog.cli.gputrace.host_tracks import HostTracks
from dynolog.cli.printable import printable
from dynolog.cli.quantities import count, size
from dynolog.fleet.distributed_info import DistributedInfo, add_info, sha256_before, sha256_of
from dynolog.fleet.fan_out import FanOutOptions
from dynolog.fleet.manifest import HostEntry, ManifestFile, ProcessEntry
from dynolog.model.errors import DynologError
from dynolog.rpc.client import Target
from dynolog.rpc.fetch_client import Fetch

AT_A_TIME = 8
_MOST_LINES = 64


def fetch_group(file: ManifestFile, fan_out: FanOutOptions, options: FollowOptions, *, as_json: bool) -> None:
    """Fetch every written trace that is not here yet, and note each in the manifest. Raises KeyboardInterrupt."""
    manifest = file.manifest
    each_is_said = not as_json and len(manifest.processes) <= _MOST_LINES
    hosts = {host.label: host for host in manifest.hosts}
    tracks = HostTracks() if options.with_host else None
    wanted = [process for process in manifest.processes if process.outcome == "written" and process.capture_id]
    os.makedirs(options.fetch, exist_ok=True)
    names = _names(wanted, manifest.processes)
    work: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(wanted)):
        work.put(index)

    def worker() -> None:
        while True:
            try:
                index = work.get_nowait()
            except queue.Empty:
                return
            process = wanted[index]
            path = os.path.join(options.fetch, names[index])
            _fetch(process, hosts[process.host], path, fan_out, options.compress, tracks)
            done.put(index)

    for _ in range(min(AT_A_TIME, len(wanted))):
        # Not an executor: after Ctrl-C the interpreter would wait for its threads.
        threading.Thread(target=worker, name="fetch", daemon=True).start()
    for _ in wanted:
        process = wanted[done.get()]
        file.touch()
        if each_is_said and process.fetched:
            print(printable(f"{process.fetched}: {size(process.fetched_size_bytes)}, SHA-256 checked"))
    for note, number in Counter(one.host_note for one in wanted if one.host_note).items():
        print(printable(f"note: {count(number, 'trace')} without counters of the host: {note}"), file=sys.stderr)


def _names(wanted: Sequence[ProcessEntry], everybody: Sequence[ProcessEntry]) -> list[str]:
    """File names here. Those of the template differ already; for others the host, then the capture, makes the difference."""
    taken = Counter(safe_name(process.path) for process in everybody)
    names = []
    for process in wanted:
        name = safe_name(process.path)
        if taken[name] > 1:
            name = with_suffix(name, f"_{safe_name(process.host)}_{safe_name(process.capture_id)}")
        names.append(name)
    return names


def _fetch(  # noqa: PLR0917 - what one file needs
    process: ProcessEntry,
    host: HostEntry,
    path: str,
    fan_out: FanOutOptions,
    compress: bool,
    tracks: HostTracks | None,
) -> None:
    """One file. What goes wrong stands in the entry."""
    process.fetch_error = ""
    info = None if process.rank is None else DistributedInfo(rank=process.rank, world_size=process.world_size)
    target = Target(
        hostname=host.host,
        port=host.port,
        token_file=fan_out.token_file,
        timeout_s=fan_out.timeout_s,
        tls=fan_out.tls,
    )
    try:
        if process.fetched and _is_here(process):
            return
        process.fetched = ""
        has_tracks = os.path.lexists(path) and original_sha256_of(path) == process.sha256
        if not has_tracks and not (os.path.lexists(path) and process.sha256 in (sha256_before(path), sha256_of(path))):
            fetch_one(functools.partial(Fetch, target, process.capture_id), process.capture_id, path, compress=False)
        if info is not None and not process.memory_snapshot:
            process.distributed_info_added = add_info(path, info) or sha256_of(path) != sha256_before(path)
        if tracks is not None and not has_tracks and not process.memory_snapshot:
            _add_tracks(process, tracks, target, host.request_id, path)
        if compress:
            path = _compressed(path)
        process.fetched_sha256 = sha256_of(path)
        process.fetched_size_bytes = os.stat(path).st_size
        process.fetched = path
    except DynologError as error:
        process.fetch_error = str(error)
    except OSError as error:
        process.fetch_error = error.strerror or str(error)


def _add_tracks(process: ProcessEntry, tracks: HostTracks, target: Target, request_id: str, path: str) -> None:
    """The counters of its host; once for each trace, the samples of a host once for all of its traces."""
    amended = tracks.add(
        tracks.of(target, request_id),
        path,
        path,
        begin_wall_ns=process.begin_wall_ns,
        duration_us=process.duration_us,
        sha256=process.sha256,
        host_pid=process.host_pid,
    )
    process.host_tracks, process.host_note = amended.tracks, amended.note


def _is_here(process: ProcessEntry) -> bool:
    try:
        return sha256_of(process.fetched) == process.fetched_sha256
    except OSError:
        return False


def _compressed(path: str) -> str:
    """Compress a file that is no gzip yet, in place of it; no time in it, so that equal traces give equal files."""
    import gzip  # noqa: PLC0415 - only with --gzip
    import shutil  # noqa: PLC0415

    with open(path, "rb") as plain:
        if plain.read(2) == b"\x1f\x8b":
            return path
        plain.seek(0)
        temporary = f"{path}.{os.getpid()}.gz.tmp"
        with open(temporary, "xb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
    os.rename(temporary, path + ".gz")
    os.unlink(path)
    return path + ".gz"
