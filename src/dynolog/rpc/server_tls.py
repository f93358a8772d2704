"""The server's side of TLS: its certificate, made from files and made again when they change.

This module and those that import it are imported only by a daemon with --rpc_tls_cert: ssl costs 2 MB.
"""

import asyncio
import logging
import os
import ssl
import stat
from collections.abc import Callable

from dynolog.model.errors import FlagError
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.tls_files import TlsFiles

log = logging.getLogger(__name__)
_Facts = tuple[tuple[int, ...] | None, ...]


class _KeyIsEncrypted(Exception):  # noqa: N818 - what OpenSSL's question for a password means
    pass


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """TLS 1.2 or later with these files. Blocks. Raises FlagError that names the file and says what to do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
    # A connection carries one request, so nothing is ever resumed.
    context.num_tickets = 0
    _load(files.certificate, lambda: context.load_cert_chain(files.certificate, files.key, _no_password), files.key)
    if os.stat(files.key).st_mode & stat.S_IROTH:
        log.warning("rpc: every user can read the TLS key, and pass for this daemon: chmod o-r %s", files.key)
    if files.authority:
        _load(files.authority, lambda: context.load_verify_locations(files.authority))
        context.verify_mode = ssl.CERT_REQUIRED
    if files.revoked:
        _load(files.revoked, lambda: context.load_verify_locations(files.revoked))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _no_password() -> str:
    raise _KeyIsEncrypted


def _load(path: str, load: Callable[[], None], key: str = "") -> None:
    for one in (path, key):
        _check_file(one)
    try:
        load()
    except _KeyIsEncrypted:
        raise FlagError(
            f"TLS key {key} is encrypted, and nobody is there to type its password: decrypt it with `openssl pkey -in {key}`"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise FlagError(f"TLS key {key} is not the key of the certificate {path}: replace both together") from error
        what = f"{path} and its key {key} are" if key else f"{path} is"
        reason = (error.reason or "no PEM").lower().replace("_", " ")
        raise FlagError(f"TLS file {what} not usable ({reason}): it must be PEM, as openssl writes it") from error
    except OSError as error:
        raise FlagError(f"TLS file {path} cannot be read: {error.strerror or error}") from error


def _check_file(path: str) -> None:
    if not path:
        return
    try:
        # OpenSSL's error does not say which file it was.
        with open(path, "rb"):
            pass
    except OSError as error:
        raise FlagError(f"TLS file {path} cannot be read: {error.strerror}") from error


class ServerTls:
    """The context that handshakes begin with. Lives on the socket thread; files are looked at on the file threads.

    A change that cannot be used leaves the context as it was, and is logged once; `problem` says what is wrong until it is mended.
    """

    LOOK_S = 0.25
    AGAIN_S = 10.0  # between two tries of what could not be used
    PATIENCE_S = 0.5  # for a disk that does not answer; then the certificate from before must do

    def __init__(self, files: TlsFiles, threads: FileThreads) -> None:
        """Blocks. Raises FlagError for files that cannot be used."""
        self._files = files
        self._threads = threads
        self._facts = _facts_of(files)
        self._context = make_context(files)
        self._looked_s = -1e9
        self._tried_s = -1e9
        self._looking: asyncio.Task[None] | None = None
        self._stalled = False
        self.problem = ""

    @property
    def asks_for_certificates(self) -> bool:
        """Whether clients must show one."""
        return bool(self._files.authority)

    async def current(self, *, anew: bool = False) -> ssl.SSLContext:
        """The context of the files as they were a moment ago, or as they are now."""
        loop = asyncio.get_running_loop()
        if self._looking is None and (anew or loop.time() - self._looked_s >= self.LOOK_S):
            self._looked_s = loop.time()
            self._looking = loop.create_task(self._look())
        if self._looking is not None and not self._stalled:
            _, unfinished = await asyncio.wait({self._looking}, timeout=self.PATIENCE_S)
            self._stalled = bool(unfinished)
        return self._context

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            facts = await self._threads.run(_facts_of, self._files)
            # What was wrong may have been ours for a moment (no descriptor left), and then nothing changes.
            again = self.problem and loop.time() - self._tried_s >= self.AGAIN_S
            if facts != self._facts or again:
                self._facts, self._tried_s = facts, loop.time()
                self._context = await self._threads.run(make_context, self._files)
                self.problem = ""
                log.info("rpc: TLS: %s has changed and is in use", self._files.certificate)
        except FlagError as error:
            problem = f"{error}: the certificate from before stays in use"
            if problem != self.problem:
                log.error("rpc: %s", problem)  # noqa: TRY400 - a state of the files; a traceback tells nothing
            self.problem = problem
        finally:
            self._looking = None
            self._stalled = False

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking}, timeout=1.0)


def _facts_of(files: TlsFiles) -> _Facts:
    """What changes when a file does, or the link that leads to it (as Kubernetes replaces secrets)."""
    return tuple(_fact(path) for path in files.paths)


def _fact(path: str) -> tuple[int, ...] | None:
    try:
        now = os.stat(path)
    except OSError:
        return None
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
