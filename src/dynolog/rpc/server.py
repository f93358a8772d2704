"""The RPC server: listens, accepts, and gives each connection to the table."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from typing import TYPE_CHECKING

from dynolog.model.clock import Clock, SystemClock
from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings
from dynolog.model.reload import ReloadReport
from dynolog.rpc.auth import Gate, Token
from dynolog.rpc.authz_file import read_policy
from dynolog.rpc.connection import Connection
from dynolog.rpc.connection_table import ConnectionTable
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.listen import CannotListen, UnixListener, off_ipv6, tcp_listeners
from dynolog.rpc.methods import Methods
from dynolog.rpc.origin import is_loopback
from dynolog.rpc.policy import Policy
from dynolog.rpc.services import Services
from dynolog.rpc.tls_files import TlsFiles, tls_files_of
from dynolog.rpc.unix_path import default_unix_path

if TYPE_CHECKING:
    from dynolog.rpc.handshake import Handshakes

log = logging.getLogger(__name__)

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_OUT_OF_MEMORY = (errno.ENOBUFS, errno.ENOMEM)


class RpcServer:
    """Serves `services` on the addresses of the flags (rpc.flags), on the thread of `loop`.

    `notices` are sentences for a person about what was left out or is wrong (`dyno status --verbose` shows them).
    """

    # So many accepts a round; then whoever else waits on this thread has its turn.
    ACCEPT_BATCH = 16
    PAUSE_S = 0.2
    HANDSHAKE_PAUSE_S = 0.02

    def __init__(
        self, loop: asyncio.AbstractEventLoop, services: Services, settings: Settings, clock: Clock | None = None
    ) -> None:
        self._loop = loop
        self._settings = settings
        clock = clock or SystemClock()
        self._threads = FileThreads(loop)
        token_file = settings.text("rpc_token_file")
        self._token = Token(token_file) if token_file else None
        self._gate = Gate(self._threads, clock, self._token, settings.on("rpc_allow_unauthenticated"))
        self.methods = Methods(services, self._gate, clock)
        self.connections = ConnectionTable(
            loop,
            self.methods,
            self._threads,
            settings.integer("rpc_max_connections"),
            settings.number("rpc_request_timeout_s"),
        )
        self._notices: list[str] = []
        self._handshakes: Handshakes | None = None
        self.port = 0
        self._listeners: list[socket.socket] = []
        self._unix: UnixListener | None = None
        self._reserve = -1
        self._shortage_logged_s = -1e9

    def start(self) -> None:
        """Listen and serve. Raises DynologError (port taken, no permission, unfit token file) before anything is served."""
        if self._token is not None:
            self._token.value()
        self._follow(self._read_policy())
        if files := tls_files_of(self._settings):
            self._handshakes = self._with_tls(files)
        self._listeners = tcp_listeners(self._settings.names("rpc_bind_address"), self._settings.integer("port"))
        self.port = self._listeners[0].getsockname()[1]
        if self._handshakes is not None:
            asks = "clients must show a certificate" if files and files.authority else "clients need no certificate"
            log.info("rpc: TLS is on for every TCP address; %s", asks)
        self._open_unix()
        self._warn_of_other_machines()
        self._reserve = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        for listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._on_connections, listener)

    def _with_tls(self, files: TlsFiles) -> "Handshakes":
        # They import ssl, which a daemon without TLS does without.
        from dynolog.rpc.handshake import Handshakes  # noqa: PLC0415
        from dynolog.rpc.server_tls import ServerTls  # noqa: PLC0415

        timeout_s = self._settings.number("rpc_request_timeout_s")
        return Handshakes(ServerTls(files, self._threads), self.connections, self._gate.refusals, timeout_s)

    async def reload(self) -> ReloadReport:
        """Read --rpc_authz, the tokens it names, and the TLS files again. What cannot be used stays as it was."""
        changed, errors = [], []
        try:
            # Names of users and groups may be asked of a directory service.
            if self._follow(await self._threads.run(self._read_policy)):
                changed.append("the rules of --rpc_authz")
        except FlagError as error:
            errors.append(f"{error}: the rules from before stay in effect")
            log.error("reload: %s", errors[-1])  # noqa: TRY400 - a fault of the file; a traceback tells nothing
        if self._handshakes is not None:
            before = await self._handshakes.tls.current()
            if await self._handshakes.tls.current(anew=True) is not before:
                changed.append("the certificate of --rpc_tls_cert")
            if self._handshakes.tls.problem:
                errors.append(self._handshakes.tls.problem)
        return ReloadReport(changed=tuple(changed), errors=tuple(errors))

    def _read_policy(self) -> Policy | None:
        path = self._settings.text("rpc_authz")
        return read_policy(path) if path else None

    def _follow(self, policy: Policy | None) -> bool:
        if policy is not None:
            self._gate.follow(policy)
        return policy is not None

    @property
    def notices(self) -> list[str]:
        """See the class."""
        problem = self._handshakes.tls.problem if self._handshakes is not None else ""
        return [*self._notices, *filter(None, (problem, off_ipv6(self.addresses)))]

    def _warn_of_other_machines(self) -> None:
        open_to = [
            _shown(one)
            for one in self._listeners
            if one.family != socket.AF_UNIX and not is_loopback(one.getsockname()[0])
        ]
        if not open_to:
            return
        where = ", ".join(open_to)
        if self._gate.knows_strangers or (self._handshakes is not None and self._handshakes.tls.asks_for_certificates):
            return
        if self._settings.on("rpc_allow_unauthenticated"):
            self._say(
                f"every machine that reaches {where} may trace any process here: --rpc_token_file would ask for a secret"
            )
        elif self._token is None:
            self._say(f"other machines get only status and version on {where}: give --rpc_token_file for the rest")

    def _say(self, notice: str) -> None:
        self._notices.append(notice)
        log.warning("rpc: %s", notice)

    def _open_unix(self) -> None:
        path = self._settings.text("rpc_unix_socket")
        if path == "auto":
            path = default_unix_path()
        if path in ("", "none"):
            return
        try:
            self._unix = UnixListener(path)
        except CannotListen as error:
            self._say(f"{error}: the daemon goes on without it")
        else:
            self._listeners.append(self._unix.sock)
            if began_ns := self._unix.left_behind_ns:
                log.warning(
                    "the dynolog that ran before, since %s UTC, was not stopped: it was killed, or crashed: the kernel's log and "
                    "journalctl -u dynolog may say why",
                    time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began_ns // 1_000_000_000)),
                )

    @property
    def addresses(self) -> tuple[str, ...]:
        """What it listens on: `[::1]:1778`, `127.0.0.1:1778`, `/run/dynolog/dynolog.sock`."""
        return tuple(_shown(listener) for listener in self._listeners)

    async def stop(self) -> None:
        """Stop listening and end every connection."""
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._listeners = []
        if self._unix is not None:
            self._unix.close()
        if self._handshakes is not None:
            await self._handshakes.close()
        await self.connections.close()
        if self._reserve >= 0:
            os.close(self._reserve)
            self._reserve = -1

    def _on_connections(self, listener: socket.socket) -> None:
        handshakes = self._handshakes if listener.family != socket.AF_UNIX else None
        for _ in range(self.ACCEPT_BATCH):
            if handshakes is not None and not handshakes.has_room():
                self._rest(listener, self.HANDSHAKE_PAUSE_S)
                return
            try:
                sock, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    self._on_shortage(listener, error)
                    return
                if error.errno in _OUT_OF_MEMORY:
                    self._pause(listener, error)
                    return
                # The client is gone already (ECONNABORTED and what accept(2) lists for it): the next one.
                continue
            sock.setblocking(False)
            if handshakes is not None:
                handshakes.start(sock)
            else:
                Connection(self.connections, sock).start()

    def _on_shortage(self, listener: socket.socket, error: OSError) -> None:
        """No descriptor for the next client: an idle connection's is taken, else the client is let in by the reserve and sent away."""
        self._log_shortage(error)
        if error.errno == errno.EMFILE and (
            (self._handshakes is not None and self._handshakes.make_room()) or self.connections.make_room()
        ):
            return
        if self._reserve >= 0:
            os.close(self._reserve)
            self._reserve = -1
            with contextlib.suppress(OSError):
                listener.accept()[0].close()
        try:
            self._reserve = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # Somebody else in the process took it: wait until descriptors are free again, without spinning.
            self._pause(listener, error)

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        self._log_shortage(error)
        self._rest(listener, self.PAUSE_S)

    def _rest(self, listener: socket.socket, pause_s: float) -> None:
        self._loop.remove_reader(listener.fileno())
        self._loop.call_later(pause_s, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener not in self._listeners:
            return
        if self._reserve < 0:
            try:
                self._reserve = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                log.debug("rpc: still no descriptor: %s", error)
        self._loop.add_reader(listener.fileno(), self._on_connections, listener)

    def _log_shortage(self, error: OSError) -> None:
        now_s = self._loop.time()
        if now_s - self._shortage_logged_s > 60:
            self._shortage_logged_s = now_s
            log.warning("rpc: a client could not be accepted: %s: raise LimitNOFILE (ulimit -n)", error.strerror)


def _shown(listener: socket.socket) -> str:
    where = listener.getsockname()
    if isinstance(where, str):
        return where
    return f"[{where[0]}]:{where[1]}" if ":" in where[0] else f"{where[0]}:{where[1]}"
