"""The files that TLS of the RPC is made of, and the flags that name them."""

import os

import msgspec

from dynolog.model.errors import FlagError
from dynolog.model.flag import Settings

# --certs_dir of the public Dynolog's builds with TLS: this value turns it off, and the files have these names.
NO_CERTS = "NO_CERTS"
_SERVER_CERTIFICATE, _SERVER_KEY, _AUTHORITY, _REVOKED = "server.crt", "server.key", "ca.crt", "ca.crl"


class TlsFiles(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files. With `authority`, clients must show a certificate that it signed; `revoked` lists those that no longer count."""

    certificate: str
    key: str
    authority: str = ""
    revoked: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Those that are used."""
        return tuple(path for path in (self.certificate, self.key, self.authority, self.revoked) if path)


def tls_files_of(settings: Settings) -> TlsFiles | None:
    """The files that the flags name; None without TLS. Raises FlagError for flags that do not go together."""
    directory = settings.text("certs_dir")
    certificate, key = settings.text("rpc_tls_cert"), settings.text("rpc_tls_key")
    authority, revoked = settings.text("rpc_tls_ca"), settings.text("rpc_tls_crl")
    if directory and directory != NO_CERTS:
        certificate = certificate or os.path.join(directory, _SERVER_CERTIFICATE)
        key = key or os.path.join(directory, _SERVER_KEY)
        authority = authority or os.path.join(directory, _AUTHORITY)
        default_list = os.path.join(directory, _REVOKED)
        # The original takes a list of revoked certificates when there is one.
        revoked = revoked or (default_list if os.path.exists(default_list) else "")
    if not certificate and not key:
        if authority or revoked:
            flag = "rpc_tls_ca" if authority else "rpc_tls_crl"
            raise FlagError(f"--{flag} needs the daemon's own certificate: give --rpc_tls_cert and --rpc_tls_key too")
        return None
    if not certificate or not key:
        given, missing = ("cert", "key") if certificate else ("key", "cert")
        raise FlagError(f"--rpc_tls_{given} needs --rpc_tls_{missing}: a certificate and its key go together")
    if revoked and not authority:
        raise FlagError("--rpc_tls_crl lists client certificates, which only --rpc_tls_ca asks for: give that too")
    return TlsFiles(certificate=certificate, key=key, authority=authority, revoked=revoked)
