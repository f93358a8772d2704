"""Bringing written traces here: streamed, resumed where it broke, checked, and put in place whole."""

import contextlib
import fcntl
import functools
import hashlib
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, cast

from dynolog.analysis.editing.host_tracks import original_sha256_of
from dynolog.cli.exit_codes import USAGE, CommandError
from dynolog.cli.gputrace.fetch_names import names_for, safe_name
from dynolog.cli.gputrace.fetched import Fetched
from dynolog.cli.gputrace.host_tracks import Amended, HostTracks
from dynolog.fleet.distributed_info import DistributedInfo, add_info, sha256_before, sha256_before_in
from dynolog.model.capture import CaptureInfo, CaptureState
from dynolog.model.errors import DynologError, RequestError
from dynolog.rpc.client import CannotReach, NoAnswer, Target
from dynolog.rpc.fetch_client import Fetch, FetchInterrupted
from dynolog.rpc.messages import FetchReply

_BLOCK_BYTES = 1 << 20
_ATTEMPTS_WITHOUT_PROGRESS = 3
_PAUSE_S = 0.5


class Stream(Protocol):
    """A file on its way: what it is, and its bytes from an offset on. Iterating raises FetchInterrupted when it ends too early."""

    @property
    def reply(self) -> FetchReply:
        """What the daemon says of the whole file."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Blocks of bytes."""
        ...


# Opens the stream of a file from an offset. Raises CannotReach, NoAnswer, RequestError.
OpenStream = Callable[[int], AbstractContextManager[Stream]]

# Writes another file, given the one that has come and the path to write; it may decline.
Amend = Callable[[str, str], Amended]


class FetchError(DynologError):
    """A file that could not be brought here; the others are."""


def fetch_all(
    target: Target,
    captures: Sequence[CaptureInfo],
    directory: str,
    *,
    compress: bool,
    host: HostTracks | None = None,
) -> list[Fetched]:
    """Bring the written files of these captures into a directory, which is made when it is missing.

    A trace that does not say its rank is told it, as far as the daemon knows, and gets the tracks of `host`.
    """
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--fetch {directory}: {error.strerror}", USAGE) from None
    written = [capture for capture in captures if capture.state is CaptureState.WRITTEN]
    names = names_for(written)
    fetched = []
    for capture in written:
        path = os.path.join(directory, names[capture.id])
        try:
            fetched.append(
                _already_here(capture, path, compress=compress)
                or fetch_one(
                    functools.partial(Fetch, target, capture.id),
                    capture.id,
                    path,
                    compress=compress,
                    info=_info_of(capture),
                    amend=functools.partial(host.add_to_capture, target, capture) if host else None,
                )
            )
        except DynologError as error:
            fetched.append(Fetched(capture_id=capture.id, path=path, error=str(error)))
        except OSError as error:
            fetched.append(Fetched(capture_id=capture.id, path=path, error=error.strerror or str(error)))
    return fetched


def _info_of(capture: CaptureInfo) -> DistributedInfo | None:
    if capture.rank is None or (capture.file is not None and capture.file.memory_snapshot):
        return None
    return DistributedInfo(rank=capture.rank, world_size=capture.world_size)


def _already_here(capture: CaptureInfo, path: str, *, compress: bool) -> Fetched | None:
    """Spares the transfer when an earlier run brought this very file. Raises FetchError when another has its name."""
    if capture.file is None:
        return None
    for final in (path, path + ".gz") if compress else (path,):
        if os.path.lexists(final):
            if capture.file.sha256 not in _digests(final):
                raise _taken(final)
            return Fetched(
                capture_id=capture.id,
                path=final,
                size_bytes=capture.file.size_bytes,
                sha256=capture.file.sha256,
                already_here=True,
            )
    return None


def _taken(path: str) -> FetchError:
    return FetchError(f"{path} is there already with other content: nothing was overwritten")


def fetch_one(
    open_stream: OpenStream,
    capture_id: str,
    path: str,
    *,
    compress: bool,
    pause_s: float = _PAUSE_S,
    info: DistributedInfo | None = None,
    amend: Amend | None = None,
) -> Fetched:
    """Bring one file to `path` (with `.gz` when compressed here). Raises FetchError, FetchInterrupted, RequestError, OSError.

    Once it is whole and checked, `info` is added where it says none, and `amend` makes another file of that.

    What has come is kept beside it as `.NAME.ID.part` when the stream breaks for good, and the next try goes on from there.
    """
    directory, name = os.path.split(path)
    part = os.path.join(directory, f".{name}.{safe_name(capture_id)[-24:]}.part")
    # O_NOFOLLOW: in a directory that others may write to, nothing is written through their links.
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchError("another dyno is fetching this file") from None
        try:
            header = _receive(open_stream, file.fileno(), pause_s)
        except DynologError:
            if os.fstat(file.fileno()).st_size == 0:
                os.unlink(part)
            raise
        if header is None or _sha256(file.fileno()) != header.sha256:
            os.unlink(part)
            raise FetchError("its SHA-256 is not what the daemon announced: nothing was kept, try again")
        os.fsync(file.fileno())
        source, final = part, path
        has_info = info is not None and add_info(source, info, part + ".rank")
        if has_info:
            source = part + ".rank"
        amended = amend(source, part + ".host") if amend else Amended()
        if amended.tracks:
            source = part + ".host"
        with open(source, "rb") as ready:
            is_gzip = _is_gzip(ready.fileno())
            if compress and not is_gzip:
                final += ".gz"
                source = _compressed(ready.fileno(), part)
        with open(source, "rb") as ready:
            fetched_sha256 = _sha256(ready.fileno()) if has_info or amended.tracks else ""
        _put_in_place(source, final, directory)
        for left in (part, part + ".rank", part + ".host"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
    return Fetched(
        capture_id=capture_id,
        path=final,
        size_bytes=header.size_bytes,
        sha256=header.sha256,
        fetched_sha256=fetched_sha256,
        distributed_info_added=has_info,
        host_tracks=amended.tracks,
        host_note=amended.note,
    )


def _receive(open_stream: OpenStream, descriptor: int, pause_s: float) -> FetchReply | None:
    """Append what is missing until all is there; None when the file here is longer than the one there.

    A stream that breaks is opened again from where it stopped, as long as each try brings something.
    """
    failures = 0
    while True:
        have = os.fstat(descriptor).st_size
        try:
            with open_stream(have) as stream:
                header = stream.reply
                os.lseek(descriptor, have, os.SEEK_SET)
                for block in stream:
                    _write_all(descriptor, block)
        except (CannotReach, NoAnswer, FetchInterrupted, RequestError) as error:
            if isinstance(error, RequestError) and not error.is_temporary:
                if have == 0 or error.code != "bad_request":
                    raise
                os.ftruncate(descriptor, 0)  # what an earlier run left is longer than the file: it is another one
                continue
            failures = 0 if os.fstat(descriptor).st_size > have else failures + 1
            if failures >= _ATTEMPTS_WITHOUT_PROGRESS:
                raise
            time.sleep(pause_s)
            continue
        return header if os.fstat(descriptor).st_size == header.size_bytes else None


def _write_all(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _blocks(descriptor: int) -> Iterable[bytes]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    while block := os.read(descriptor, _BLOCK_BYTES):
        yield block


def _sha256(descriptor: int) -> str:
    digest = hashlib.sha256()
    for block in _blocks(descriptor):
        digest.update(block)
    return digest.hexdigest()


def _is_gzip(descriptor: int) -> bool:
    """By the first bytes: some versions put plain JSON into files named `.json.gz`."""
    return os.pread(descriptor, 2, 0) == b"\x1f\x8b"


def _compressed(descriptor: int, part: str) -> str:
    """A compressed copy beside `part`; no time in it, so that equal traces give equal files."""
    import gzip  # noqa: PLC0415 - only with --gzip

    path = part + ".gz"
    with (
        open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
    ):
        for block in _blocks(descriptor):
            packed.write(block)
        packed.flush()
        raw.flush()
    with open(path, "rb") as raw_again:
        os.fsync(raw_again.fileno())
    return path


def _put_in_place(source: str, final: str, directory: str) -> None:
    """Give the file its name, never over another one."""
    try:
        os.link(source, final)  # unlike a rename, it refuses when the name is taken
        os.unlink(source)
    except FileExistsError:
        os.unlink(source)
        raise _taken(final) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(final):
            raise _taken(final) from None
        os.rename(source, final)
    handle = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digests(path: str) -> Iterator[str]:
    """SHA-256 of a file as it is, without what was added here, and unpacked when it is gzip; none when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    try:
        yield _sha256(descriptor)
        yield original_sha256_of(path)
        yield sha256_before(path)
        if _is_gzip(descriptor):
            yield from _unpacked_digests(descriptor)
    except (OSError, EOFError, zlib.error):  # a directory of that name, or a gzip that ends too early
        return
    finally:
        os.close(descriptor)


def _unpacked_digests(descriptor: int) -> Iterator[str]:
    import gzip  # noqa: PLC0415 - only with --gzip

    digest = hashlib.sha256()
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as raw, gzip.GzipFile(fileobj=raw) as packed:
        while block := packed.read(_BLOCK_BYTES):
            digest.update(block)
        yield digest.hexdigest()
        yield sha256_before_in(cast("BinaryIO", packed))
