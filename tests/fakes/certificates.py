"""An authority of a test, and certificates that it signed, as files."""

import datetime
import ssl
from pathlib import Path

import trustme

from dynolog.rpc.client_tls import ClientTls

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Authority:
    """Signs certificates into a directory: `server.crt`, `server.key` for one named `server`, `ca.crt` for itself."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._ca = trustme.CA()
        self.file = str(directory / "ca.crt")
        self._ca.cert_pem.write_to_path(self.file)

    def issue(self, name: str, *names: str, common_name: str | None = None, expired: bool = False) -> tuple[str, str]:
        """A certificate for these names (localhost and both loopback addresses when there are none); its file and its key's."""
        certificate = self._ca.issue_cert(
            *(names or ("localhost", "127.0.0.1", "::1")),
            common_name=common_name,
            not_before=LONG_AGO if expired else None,
            not_after=LONG_AGO + datetime.timedelta(days=1) if expired else None,
        )
        files = str(self.directory / f"{name}.crt"), str(self.directory / f"{name}.key")
        for path, blobs in zip(files, (certificate.cert_chain_pems, (certificate.private_key_pem,)), strict=True):
            # As tools replace them: never a file that is half written.
            temporary = Path(path + ".new")
            temporary.write_bytes(b"".join(blob.bytes() for blob in blobs))
            temporary.chmod(0o600)
            temporary.rename(path)
        return files

    def client(self, name: str = "", **options: str) -> ClientTls:
        """What dyno is told: it trusts this authority, and shows a certificate of this common name."""
        if not name:
            return ClientTls(authority=self.file, **options)
        certificate, key = self.issue(name, name, common_name=name)
        return ClientTls(authority=self.file, certificate=certificate, key=key, **options)

    def flags(self, *, mutual: bool = True) -> dict[str, str]:
        """The flags of a daemon with a certificate of this authority for this machine."""
        certificate, key = self.issue("server")
        return {
            "rpc_tls_cert": certificate,
            "rpc_tls_key": key,
            "rpc_tls_ca": self.file if mutual else "",
        }


def plain_context(authority: Authority, client: ClientTls | None = None) -> ssl.SSLContext:
    """A context of a client that a test breaks in its own way."""
    return (client or authority.client()).context()
