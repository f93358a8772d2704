"""The command line that reaches the same daemon again, for messages that say what to type."""

from dynolog.rpc.client import Target


def command_for(target: Target, *words: str) -> str:
    """`dyno --hostname gpu7 trace r1`: only what differs from the defaults, quoted for a shell."""
    import shlex  # noqa: PLC0415 - only in messages

    default = Target()
    options: list[str] = []
    if target.unix:
        options += ["--unix", target.unix]
    else:
        if target.hostname != default.hostname:
            options += ["--hostname", target.hostname]
        if target.port != default.port:
            options += ["--port", str(target.port)]
    if target.token_file:
        options += ["--token-file", target.token_file]
    if target.tls is not None and not target.unix:
        options += ["--tls-ca", target.tls.authority]
        options += ["--tls-cert", target.tls.certificate] if target.tls.certificate else []
        options += ["--tls-key", target.tls.key] if target.tls.key else []
        options += ["--tls-server-name", target.tls.server_name] if target.tls.server_name else []
    return shlex.join(["dyno", *options, *words])
