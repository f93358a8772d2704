"""The traces in a folder: found by what is in them, read no further than their heads."""

import io
import os
import re
import zlib
from collections.abc import Iterable, Sequence

import msgspec

from dynolog.analysis.reading.derived_names import derived
from dynolog.analysis.reading.trace_head import whole
from dynolog.fleet.manifest import Manifest, read_manifest
from dynolog.fleet.targets import HostsError
from dynolog.model.errors import DynologError
from dynolog.profiling.trace_bytes import TraceText, TraceUnreadable

MANIFEST = "manifest.json"
# libkineto writes what a trace is of before the events; how many ranks a group has decides how long that is.
_HEAD_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_EVENTS = re.compile(rb'"traceEvents"\s*:')
_EVENT_IN_LIST = re.compile(rb'\s*\[\s*(?:\{\s*"(?:ph|name|cat|args|ts|dur|pid|tid)"\s*:|\]\s*\Z)')
_MEMBER = {
    "rank": re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[]*?"rank"\s*:\s*"?(\d+)'),
    "world_size": re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[]*?"world_size"\s*:\s*"?(\d+)'),
    "host": re.compile(rb'"host_name"\s*:\s*"([^"\\]*)"'),
}
_MERGED = re.compile(rb'"dynolog"\s*:\s*\{\s*"merged"')
# `host_rank12_4711.json`; else `_r3_`, which may also be a part of a host's name.
_RANK_IN_NAME = tuple(re.compile(rf"(?:^|[^a-z]){word}[-_]?(\d+)(?![0-9a-z])", re.IGNORECASE) for word in ("rank", "r"))
_THREADS = 8
_SUFFIXES = (".json", ".json.gz", ".pt.trace.json", ".trace", ".gz")


class TraceFileHead(msgspec.Struct, frozen=True, kw_only=True):
    """A trace file by its head. `rank_from` says where the rank comes from: "file", "name", "manifest", "" when it is not known.

    `offset_ns` is what the manifest says of its host's clock: how far it is ahead of ours; None when nothing does.
    `merged`: several ranks are in it, put together by `dyno trace merge`.
    """

    path: str
    size_bytes: int
    rank: int | None = None
    rank_from: str = ""
    world_size: int | None = None
    host: str = ""
    offset_ns: int | None = None
    merged: bool = False


class RanksUnclear(DynologError):  # noqa: N818 - it says what is the case
    """Several traces of which some have no rank, or two the same."""


class Folder(msgspec.Struct, frozen=True):
    """The traces that were found, by rank, and the files that are none, each with why."""

    traces: list[TraceFileHead]
    others: list[str]
    notes: list[str]


def scan(paths: Sequence[str], ranks: Sequence[int] = ()) -> Folder:
    """The traces among files and in folders. Files that were named must be traces; in a folder others are left aside.

    So are, in a folder, traces that were made of others there: by their names (`t.slice.json.gz` beside `t.json`), or merged. It is noted.

    A rank is what `ranks` says, in the order of the files, else what the file says, a manifest beside it, or its name (`rank12`,
    `rank_12`, `_r3_`). One trace without any is rank 0, which is noted. Raises RanksUnclear when several have none, two the same, or they
    are of jobs of different sizes; and OSError for what was named. What cannot be read in a folder costs only itself and is noted.
    """
    named: list[str] = []
    listed: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            names = sorted(os.listdir(path))
            candidates = (os.path.join(path, name) for name in names if name != MANIFEST and name.endswith(_SUFFIXES))
            listed += filter(os.path.isfile, candidates)
        else:
            named.append(path)
    unreadable: dict[str, str] = {}
    heads = _read_heads(named, None) | _read_heads(listed, unreadable)
    for path in named:
        if heads[path] is None:
            raise RanksUnclear(f"{path} is no trace: `dyno trace validate` says why")
    made = _made({path: head for path, head in heads.items() if head is not None}) - set(named)
    found = [head for path, head in heads.items() if head is not None and path not in made]
    manifests = {place: _manifest(place) for place in {os.path.dirname(head.path) for head in found}}
    found = [_known_by(manifests[os.path.dirname(head.path)], head) for head in found]
    if ranks:
        if len(ranks) != len(found):
            raise RanksUnclear(f"{len(ranks)} ranks are given for {len(found)} traces")
        found = [
            msgspec.structs.replace(head, rank=rank, rank_from="given") for head, rank in zip(found, ranks, strict=True)
        ]
    others = [path for path, head in heads.items() if head is None and path not in unreadable]
    folder = _ranked(found, others)
    folder.notes.extend(f"{path} was left out: {why}" for path, why in unreadable.items())
    if made:
        folder.notes.append(
            f"{len(made)} left out that dyno trace made of other traces there, such as {os.path.basename(min(made))}: "
            "name a file to have it read"
        )
    return folder


def _made(heads: dict[str, TraceFileHead]) -> set[str]:
    """Paths of traces that were made of others in their folder."""
    originals = {os.path.dirname(path) for path, head in heads.items() if not head.merged}
    merged = {path for path, head in heads.items() if head.merged and os.path.dirname(path) in originals}
    return merged.union(derived(heads))


def _read_heads(paths: Sequence[str], unreadable: dict[str, str] | None) -> dict[str, TraceFileHead | None]:
    """What cannot be read goes with its reason into `unreadable`; when that is None, OSError is raised."""

    def read(path: str) -> TraceFileHead | None:
        try:
            return read_head(path)
        except OSError as error:
            if unreadable is None:
                raise
            unreadable[path] = error.strerror or str(error)
            return None

    if len(paths) < 2:
        return {path: read(path) for path in paths}
    # Shared file systems answer many at once as fast as one.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only for folders

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(paths, pool.map(read, paths), strict=True))


def _ranked(found: list[TraceFileHead], others: list[str]) -> Folder:
    notes: list[str] = []
    if len(found) == 1 and found[0].rank is None:
        notes.append(f"{found[0].path} does not say its rank: it is taken for rank 0")
        found = [msgspec.structs.replace(found[0], rank=0)]
    nameless = [head.path for head in found if head.rank is None]
    if nameless:
        raise RanksUnclear(
            f"{len(nameless)} of {len(found)} traces have no rank, in the file or its name, such as {nameless[0]}: "
            "put `rank<N>` into the names, say `--ranks 0,1,2` in the order of the files, or give only the files that are meant"
        )
    worlds = {head.world_size: head.path for head in found if head.world_size is not None}
    if len(worlds) > 1:
        (one, its), (other, theirs) = sorted(worlds.items())[:2]
        raise RanksUnclear(f"{its} is of a job of {one} ranks, {theirs} of one of {other}: give the traces of one job")
    ranks: dict[int, str] = {}
    for head in found:
        rank = head.rank or 0
        if rank in ranks:
            raise RanksUnclear(f"{ranks[rank]} and {head.path} are both of rank {rank}: give only one of them")
        ranks[rank] = head.path
    return Folder(sorted(found, key=lambda head: head.rank or 0), others, notes)


def read_head(path: str) -> TraceFileHead | None:
    """What the first bytes of a file tell; None when it is no trace. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        data = file.read(_HEAD_BYTES)
        size_bytes = os.fstat(file.fileno()).st_size
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, _HEAD_BYTES)
        except zlib.error:
            data = _before_the_damage(data)
    if not _EVENTS.search(data) and not _EVENT_IN_LIST.match(data) and not _long_head(data):
        return None
    found = {
        name: match[1].decode("utf-8", "replace") for name, member in _MEMBER.items() if (match := member.search(data))
    }
    rank = whole(found.get("rank"))
    rank_from = "file"
    if rank is None:
        rank, rank_from = rank_in_name(path), "name"
    return TraceFileHead(
        path=path,
        size_bytes=size_bytes,
        rank=rank,
        rank_from=rank_from if rank is not None else "",
        world_size=whole(found.get("world_size")),
        host=found.get("host", ""),
        merged=_MERGED.search(data) is not None,
    )


def _before_the_damage(data: bytes) -> bytes:
    text = bytearray()
    try:
        for block in TraceText(io.BytesIO(data).read):
            text += block
    except TraceUnreadable:
        return bytes(text)
    return bytes(text)


def _long_head(data: bytes) -> bool:
    """Whether the events only begin later: the process groups of a large job take megabytes."""
    return len(data) >= _HEAD_BYTES and b'"schemaVersion"' in data[:256]


def rank_in_name(path: str) -> int | None:
    """The rank that a file's name says; None when it says none, or two."""
    for pattern in _RANK_IN_NAME:
        ranks = {int(rank) for rank in pattern.findall(os.path.basename(path))}
        if ranks:
            return ranks.pop() if len(ranks) == 1 else None
    return None


def _known_by(manifest: Manifest | None, head: TraceFileHead) -> TraceFileHead:
    if manifest is None:
        return head
    name = os.path.basename(head.path)
    for process in manifest.processes:
        if name not in _names(process.fetched, process.path, process.host_path):
            continue
        offsets = [host.clock_offset_ns for host in manifest.hosts if process.host in (host.label, host.host)]
        head = msgspec.structs.replace(head, host=process.host, offset_ns=next(iter(offsets), None))
        if process.rank is not None and head.rank_from != "file":
            head = msgspec.structs.replace(head, rank=process.rank, rank_from="manifest")
        return head
    return head


def _names(*paths: str) -> Iterable[str]:
    return {os.path.basename(path) for path in paths if path}


def _manifest(directory: str) -> Manifest | None:
    try:
        return read_manifest(os.path.join(directory or ".", MANIFEST))
    except HostsError:
        return None  # there is none, or it is some other program's
