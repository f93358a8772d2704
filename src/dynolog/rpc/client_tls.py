"""The client's side of TLS: what it trusts, what it shows, and which name the daemon's certificate must have."""

import functools
import os
from typing import TYPE_CHECKING

import msgspec

from dynolog.model.errors import DynologError

if TYPE_CHECKING:
    import ssl


class ClientTlsError(DynologError):
    """Files of the client that cannot be used, with what to do."""


class ClientTls(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files: `authority` signed the daemon's certificate; `certificate` and `key` are shown to a daemon that asks for one.

    `server_name` is the name (or address) that the daemon's certificate must have; "" the one it is called by.
    """

    authority: str
    certificate: str = ""
    key: str = ""
    server_name: str = ""

    def name_for(self, host: str) -> str:
        """The name that the certificate of the daemon on `host` must have."""
        return self.server_name or host.strip("[]").partition("%")[0]

    def context(self) -> "ssl.SSLContext":
        """TLS 1.2 or later; made once for the same files. Raises ClientTlsError."""
        return _context_of(self)


@functools.lru_cache(maxsize=4)
def _context_of(tls: ClientTls) -> "ssl.SSLContext":
    # 2 MB and 30 ms that only TLS needs.
    import ssl  # noqa: PLC0415

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _require("--tls-ca", tls.authority)
    try:
        context.load_verify_locations(tls.authority)
    except (ssl.SSLError, OSError) as error:
        raise ClientTlsError(
            f"--tls-ca {tls.authority} holds no certificate: it must be PEM, as openssl writes it"
        ) from error
    if tls.certificate:
        _load_own(context, tls)
    return context


def _load_own(context: "ssl.SSLContext", tls: ClientTls) -> None:
    import ssl  # noqa: PLC0415 - as above

    _require("--tls-cert", tls.certificate)
    # A file may hold both.
    key = tls.key or tls.certificate
    _require("--tls-key", key)
    try:
        # Without a function, OpenSSL asks the terminal for the password of an encrypted key: that is right here.
        context.load_cert_chain(tls.certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ClientTlsError(
                f"--tls-key {key} is not the key of --tls-cert {tls.certificate}: give its own"
            ) from error
        raise ClientTlsError(
            f"--tls-cert {tls.certificate} with --tls-key {key} cannot be used: both must be PEM, as openssl writes them"
        ) from error


def _require(option: str, path: str) -> None:
    try:
        # OpenSSL's error does not say which file it was.
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ClientTlsError(f"{option} {path} cannot be read: {error.strerror or error}") from error


def client_tls(
    *, authority: str, certificate: str = "", key: str = "", server_name: str = "", directory: str = ""
) -> ClientTls | None:
    """What options say together; None for no TLS. `directory` holds ca.crt and, for clients, client.crt and client.key.

    Raises ClientTlsError.
    """
    if directory:
        authority = authority or os.path.join(directory, "ca.crt")
        own = os.path.join(directory, "client.crt")
        if not certificate and os.path.exists(own):
            certificate, key = own, key or os.path.join(directory, "client.key")
    if not authority:
        given = next(
            (name for name, value in (("cert", certificate), ("key", key), ("server-name", server_name)) if value), ""
        )
        if given:
            raise ClientTlsError(
                f"--tls-{given} needs --tls-ca: the file with the authority that signed the daemon's certificate"
            )
        return None
    if key and not certificate:
        raise ClientTlsError("--tls-key needs --tls-cert: the certificate that belongs to it")
    return ClientTls(authority=authority, certificate=certificate, key=key, server_name=server_name)
