"""Flags of the RPC."""

from dynolog.model.flag import Flag

FLAGS = (
    Flag(
        name="port",
        default=1778,
        help="TCP port of the RPC that dyno speaks; 0 lets the kernel choose one",
        section="rpc",
        minimum=0,
        maximum=65535,
    ),
    Flag(
        name="rpc_bind_address",
        default="::1,127.0.0.1",
        help="addresses the RPC listens on, a comma list; `::` is every address of this machine. Other machines' requests, "
        "except for status and version, then need --rpc_token_file or --rpc_allow_unauthenticated",
        section="rpc",
    ),
    Flag(
        name="rpc_unix_socket",
        default="auto",
        help="path of the RPC's unix socket; `auto` is /run/dynolog/dynolog.sock for root and $XDG_RUNTIME_DIR/dynolog.sock "
        "for others, `none` is none",
        section="rpc",
    ),
    Flag(
        name="rpc_token_file",
        default="",
        help="file with the secret (at least 16 characters, readable by its owner only) that lets other machines and "
        "other users do everything; read again when it changes (more tokens, with roles: --rpc_authz). Make one: "
        "(umask 077; head -c 32 /dev/urandom | base64 > FILE)",
        section="rpc",
    ),
    Flag(
        name="rpc_tls_cert",
        default="",
        help="PEM file with the daemon's certificate and those between it and the authority; turns TLS on for every TCP address "
        "of the RPC, loopback included (the unix socket stays as it is). Read again when it changes",
        section="rpc",
    ),
    Flag(name="rpc_tls_key", default="", help="PEM file with the key of --rpc_tls_cert, not encrypted", section="rpc"),
    Flag(
        name="rpc_tls_ca",
        default="",
        help="PEM file with the authorities whose client certificates are taken; clients must then show one",
        section="rpc",
    ),
    Flag(
        name="rpc_tls_crl",
        default="",
        help="PEM file with the list of client certificates that were revoked; with it, every authority needs a current list",
        section="rpc",
    ),
    Flag(
        name="certs_dir",
        default="",
        help="directory with server.crt, server.key, ca.crt and, if it is there, ca.crl: stands for the four flags before; "
        "NO_CERTS means no TLS",
        section="rpc",
    ),
    Flag(
        name="rpc_authz",
        default="",
        help="TOML file with rules: which certificate, token, user or group may read, trace, or administer the daemon "
        "(docs/security.md); SIGHUP and `dyno reload` read it again",
        section="rpc",
    ),
    Flag(
        name="rpc_allow_unauthenticated",
        default=False,
        help="let every machine that reaches --rpc_bind_address trace any process and fetch its traces",
        section="rpc",
    ),
    Flag(
        name="rpc_max_connections",
        default=512,
        help="connections held at once; beyond them the oldest one without a complete request goes",
        section="rpc",
        minimum=1,
        maximum=65536,
    ),
    Flag(
        name="rpc_request_timeout_s",
        default=10.0,
        help="time in which a client must have sent its whole request",
        section="rpc",
        minimum=0.1,
        maximum=3600,
    ),
)
