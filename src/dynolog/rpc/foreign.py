"""Which service it is that answers where a dynolog was looked for, by its first bytes."""

from collections.abc import Mapping

_WRONG_PORT = "check --hostname and --port (1778, unless the daemon was started with another)"
_BY_FIRST_BYTES: Mapping[bytes, str] = {
    b"SSH-": "an SSH server",
    b"HTTP": "an HTTP server, such as the page that Prometheus reads",
    b"220 ": "a mail or FTP server",
    b"220-": "a mail or FTP server",
    b"-ERR": "Redis or a mailbox",
    b"RFB ": "a VNC server",
}
# An alert (RFC 8446, 5.1), and the major version of every TLS: what is said to a request that is not TLS.
_TLS_ALERT = b"\x15\x03"
_TLS_ALERT_BYTES = 7


def what_answers(first: bytes) -> str:
    """What to say of a service that has sent these bytes, the first four or more, where the length of an answer was expected.

    It follows the name of a host: `is an SSH server, not a dynolog: check ...`.
    """
    if is_tls_alert(first):
        return "speaks TLS: give --tls-ca FILE, and --tls-cert and --tls-key if it asks for them"
    if kind := _BY_FIRST_BYTES.get(first[:4], ""):
        return f"is {kind}, not a dynolog: {_WRONG_PORT}"
    return f"answers in another protocol than a dynolog: {_WRONG_PORT}"


def is_tls_alert(received: bytes) -> bool:
    """Whether this is all that came, and an alert of TLS. Its first four bytes may also be the length of a true answer."""
    return received.startswith(_TLS_ALERT) and len(received) <= _TLS_ALERT_BYTES
