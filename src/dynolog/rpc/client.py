"""The client side of the RPC: where a daemon is, and one call to it."""

import msgspec


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon to talk to: TCP `hostname`:`port`, or a unix socket path when `unix` is set. Timeout in seconds for a whole call."""

    hostname: str = "localhost"
    port: int = 1778
    unix: str = ""
    token_file: str = ""
    timeout_s: float = 10.0
