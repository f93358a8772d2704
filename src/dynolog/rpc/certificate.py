"""The names in a verified client certificate."""

from collections.abc import Mapping
from typing import Any

import msgspec

_MOST_NAMES = 64
_ALTERNATIVES = ("DNS", "URI", "email", "IP Address")


class CertificateNames(msgspec.Struct, frozen=True):
    """`common_name` is "" when it has none; `alternatives` are its subject alternative names: DNS, URI (SPIFFE), email, address."""

    common_name: str
    alternatives: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every name by which a rule may mean it."""
        return (self.common_name, *self.alternatives) if self.common_name else self.alternatives

    def __str__(self) -> str:
        return next(iter(self.all), "without a name")


def names_of(certificate: Mapping[str, Any] | None) -> CertificateNames | None:
    """The names in what ssl.SSLObject.getpeercert() returns: nothing where no certificate was asked for, or given."""
    if not certificate:
        return None
    # Of several common names, the last is the most specific (RFC 6125, 2.3.1).
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    alternatives = [value for kind, value in certificate.get("subjectAltName", ()) if kind in _ALTERNATIVES]
    return CertificateNames(common[-1] if common else "", tuple(alternatives[:_MOST_NAMES]))
