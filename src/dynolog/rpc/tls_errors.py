"""What an error of TLS means, and what to do. By its words alone, so that nobody needs ssl for it.

`verify_code` is OpenSSL's X509_V_ERR_* (openssl-verification-options(1)); `reason` is its word for an error, or for the alert of
the other side.
"""

from collections.abc import Mapping

# Of a daemon's certificate, for the client; {where} is the daemon, {name} what its certificate must be for.
_DAEMON_UNKNOWN = (
    "the certificate of {where} is not signed by the authority in --tls-ca: give the one that signed it with --tls-ca"
)
_DAEMON_NAME = "the certificate of {where} is not for {name}: call it by a name that it has, or say the right one with --tls-server-name"
_DAEMON: Mapping[int, str] = {
    **dict.fromkeys((2, 18, 19, 20, 21), _DAEMON_UNKNOWN),
    **dict.fromkeys((62, 63, 64), _DAEMON_NAME),
    10: "the certificate of {where} has expired: renew it there (the daemon takes the new file by itself), or set the clocks",
    9: "the certificate of {where} is not valid yet: set the clocks",
}
_NO_TLS = "{where} speaks no TLS: leave --tls-ca out, or start `dynolog` there with --rpc_tls_cert and --rpc_tls_key"
_ASKS = "{where} asks for a client certificate: give --tls-cert and --tls-key"
# What the daemon said of the client's, and what else can happen, for the client.
_AT_CLIENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"),
        _NO_TLS,
    ),
    **dict.fromkeys(("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE"), _ASKS),
    "UNKNOWN_CA": "{where} does not know the authority that signed --tls-cert: its --rpc_tls_ca must hold that one",
    "CERTIFICATE_EXPIRED": "the certificate in --tls-cert has expired, says {where}: renew it, or set the clocks",
    "CERTIFICATE_REVOKED": "the certificate in --tls-cert was revoked, says {where}: get a new one",
    "UNSUPPORTED_CERTIFICATE": "the certificate in --tls-cert may not be used by clients, says {where}: it needs the extended key "
    "usage clientAuth",
    "PROTOCOL_VERSION": "{where} and this dyno have no version of TLS in common: both need 1.2 or later",
}
# Of a client's certificate, for the daemon's log.
_CLIENT: Mapping[int, str] = {
    **dict.fromkeys((2, 18, 19, 20, 21), "its certificate is not signed by the authority in --rpc_tls_ca"),
    **dict.fromkeys((26, 79), "its certificate may not be used by clients: it needs the extended key usage clientAuth"),
    3: "--rpc_tls_crl has no list of the authority that signed its certificate",
    9: "its certificate is not valid yet",
    10: "its certificate has expired",
    12: "the list in --rpc_tls_crl has expired: get the next one",
    23: "its certificate was revoked",
}
# What the client said of the daemon's, and what else can happen, for the daemon's log.
_AT_DAEMON: Mapping[str, str] = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and --rpc_tls_ca asks for one: dyno --tls-cert FILE --tls-key FILE",
    "UNKNOWN_CA": "it does not know the authority that signed --rpc_tls_cert",
    "BAD_CERTIFICATE": "it refuses the certificate in --rpc_tls_cert: is the name it was called by among its names?",
    "CERTIFICATE_UNKNOWN": "it refuses the certificate in --rpc_tls_cert",
    "CERTIFICATE_EXPIRED": "it says that the certificate in --rpc_tls_cert has expired",
    **dict.fromkeys(("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "VERSION_TOO_LOW"), "it speaks no TLS from 1.2 on"),
}


def is_tls_error(error: BaseException) -> bool:
    """Whether it is one of ssl's."""
    return isinstance(error, OSError) and hasattr(error, "library")


def why_daemon_is_not_trusted(error: OSError, where: str, server_name: str) -> str:
    """A client's sentence for an error of TLS with the daemon `where`; `server_name` is the name that its certificate must have."""
    code, reason = _facts(error)
    if code:
        known = _DAEMON.get(code, "the certificate of {where} is refused: " + _message(error))
    else:
        known = _AT_CLIENT.get(reason, f"TLS with {{where}} failed ({_words(reason) or type(error).__name__})")
    return known.replace("{where}", where).replace("{name}", server_name)


def why_handshake_failed(error: OSError) -> str:
    """The daemon's sentence for an error of TLS with a client."""
    code, reason = _facts(error)
    if code:
        return _CLIENT.get(code, f"its certificate is refused: {_message(error)}")
    return _AT_DAEMON.get(reason, f"the handshake failed: {_words(reason) or type(error).__name__}")


def _facts(error: OSError) -> tuple[int, str]:
    """The code of a certificate that was refused here, and OpenSSL's word; that of an alert without its prefix (TLSV1_ALERT_UNKNOWN_CA)."""
    reason = str(getattr(error, "reason", "") or "")
    return int(getattr(error, "verify_code", 0) or 0), reason.partition("ALERT_")[2] or reason


def _message(error: OSError) -> str:
    return str(getattr(error, "verify_message", "") or error)


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")
